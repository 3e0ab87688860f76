"""Tables, rings and answers: problems of the benchmarks of Ivy, I4 and mypyvy."""

from __future__ import annotations

from typing import Any

from streamproof import ANY, Array, Bool, Enum, Model, Range, State, action, initially, invariant, lemma, require


class ShardedTable(Model):
    """`cav19/sharded-kv`: every key has one owner; a key moves with its value in a message."""

    n: int = 2
    keys: int = 1
    values: int = 2
    limits = {"n": (1, None), "keys": (1, None), "values": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """Tables are empty; who owns a key, is open."""
        rows = Array(self.n, Array(self.keys, Array(self.values, Bool())))
        return State(table=rows, moving=rows, owner=Array(self.n, Array(self.keys, Bool(init=ANY))))

    @initially
    def owned(self, s: Any) -> bool:
        """A key has at most one owner."""
        n, k = range(self.n), range(self.keys)
        return all(not s.owner[i][a] or not s.owner[j][a] or i == j for i in n for j in n for a in k)

    @action(i="n", j="n", k="keys", v="values")
    def reshard(self, s: Any, i: int, j: int, k: int, v: int) -> None:
        """A key moves from one node to another."""
        require(s.table[i][k][v])
        s.table[i][k][v] = False
        s.owner[i][k] = False
        s.moving[j][k][v] = True

    @action(i="n", k="keys", v="values")
    def arrive(self, s: Any, i: int, k: int, v: int) -> None:
        """The message arrives."""
        require(s.moving[i][k][v])
        s.moving[i][k][v] = False
        s.table[i][k][v] = True
        s.owner[i][k] = True

    @action(i="n", k="keys", v="values")
    def put(self, s: Any, i: int, k: int, v: int) -> None:
        """The owner writes a value."""
        require(s.owner[i][k])
        s.table[i][k] = [w == v for w in range(self.values)]

    @lemma
    def one_place(self, s: Any) -> bool:
        """A key is at its owner, or in one message."""
        n, k, v = range(self.n), range(self.keys), range(self.values)
        return all(
            (not s.owner[i][a] or not s.owner[j][a] or i == j)
            and (not s.table[i][a][x] or s.owner[i][a])
            and (not s.moving[i][a][x] or not s.owner[j][a])
            and (not s.moving[i][a][x] or not s.moving[j][a][y] or (i == j and x == y))
            for i in n
            for j in n
            for a in k
            for x in v
            for y in v
        )

    @invariant
    def keys_unique(self, s: Any) -> bool:
        """A key is in one table, with one value."""
        n, k, v = range(self.n), range(self.keys), range(self.values)
        return all(
            not s.table[i][a][x] or not s.table[j][a][y] or (i == j and x == y)
            for i in n
            for j in n
            for a in k
            for x in v
            for y in v
        )


class RingElection(Model):
    """`i4/leader_election_in_ring`: the greatest identifier goes all the way round (Chang and Roberts)."""

    n: int = 3
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """Identifiers are open; a message bears the position of the node whose identifier it has."""
        return State(
            name=Array(self.n, Range(0, self.n - 1, init=ANY)),
            pending=Array(self.n, Array(self.n, Bool())),
            leader=Array(self.n, Bool()),
        )

    @initially
    def different(self, s: Any) -> bool:
        """Identifiers differ."""
        return all(i == j or s.name[i] != s.name[j] for i in range(self.n) for j in range(self.n))

    def after(self, i: int, j: int) -> bool:
        """Whether the second node follows the first in the ring."""
        return j == i + 1 or (i == self.n - 1 and j == 0)

    def between(self, i: int, j: int, k: int) -> bool:
        """Whether the second node lies strictly between the first and the third, in the direction of the ring."""
        return (i < j and j < k) or (j < k and k <= i) or (k <= i and i < j)

    @action(i="n", j="n")
    def send(self, s: Any, i: int, j: int) -> None:
        """A node sends its identifier to the next."""
        require(self.after(i, j))
        s.pending[i][j] = True

    @action(m="n", i="n", j="n")
    def receive(self, s: Any, m: int, i: int, j: int) -> None:
        """An identifier arrives; it goes on if it is not less than the node's own."""
        require(s.pending[m][i] and self.after(i, j))
        if s.name[i] <= s.name[m]:
            s.pending[m][j] = True

    @action(i="n")
    def win(self, s: Any, i: int) -> None:
        """A node's own identifier arrives."""
        require(s.pending[i][i])
        s.leader[i] = True

    @lemma
    def greater(self, s: Any) -> bool:
        """An identifier is greater than those of the nodes that it has passed; a leader's than all."""
        n = range(self.n)
        return all(
            (i == j or s.name[i] != s.name[j])
            and (not s.pending[i][k] or not self.between(i, j, k) or s.name[j] < s.name[i])
            and (not s.leader[i] or i == j or s.name[j] < s.name[i])
            for i in n
            for j in n
            for k in n
        )

    @invariant
    def one_leader(self, s: Any) -> bool:
        """At most one leader."""
        return all(not s.leader[i] or not s.leader[j] or i == j for i in range(self.n) for j in range(self.n))


class ClientServer(Model):
    """`mypyv/client_server_ae`: a response that was received answers a request of the same client."""

    n: int = 2
    requests: int = 2
    responses: int = 2
    limits = {"n": (1, None), "requests": (1, None), "responses": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """Nothing has been sent; which response answers which request, is open."""
        return State(
            match=Array(self.requests, Array(self.responses, Bool(init=ANY))),
            asked=Array(self.n, Array(self.requests, Bool())),
            sent=Array(self.n, Array(self.responses, Bool())),
            received=Array(self.n, Array(self.responses, Bool())),
        )

    @action(i="n", r="requests")
    def ask(self, s: Any, i: int, r: int) -> None:
        """A client sends a request."""
        s.asked[i][r] = True

    @action(i="n", r="requests", p="responses")
    def respond(self, s: Any, i: int, r: int, p: int) -> None:
        """The server answers it."""
        require(s.asked[i][r] and s.match[r][p])
        s.sent[i][p] = True

    @action(i="n", p="responses")
    def receive(self, s: Any, i: int, p: int) -> None:
        """The response arrives."""
        require(s.sent[i][p])
        s.received[i][p] = True

    @lemma
    def for_a_request(self, s: Any) -> bool:
        """A response was sent for a request."""
        return all(
            not s.sent[i][p] or any(s.asked[i][r] and s.match[r][p] for r in range(self.requests))
            for i in range(self.n)
            for p in range(self.responses)
        )

    @invariant
    def answers(self, s: Any) -> bool:
        """So was one that was received."""
        return all(
            not s.received[i][p] or any(s.asked[i][r] and s.match[r][p] for r in range(self.requests))
            for i in range(self.n)
            for p in range(self.responses)
        )


class Firewall(Model):
    """`mypyvy/firewall`: who sends to an internal node was sent something by one."""

    n: int = 3
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """Nothing has been sent; which nodes are internal, is open."""
        return State(
            internal=Array(self.n, Bool(init=ANY)),
            sent=Array(self.n, Array(self.n, Bool())),
            allowed=Array(self.n, Bool()),
        )

    @action(i="n", j="n")
    def out(self, s: Any, i: int, j: int) -> None:
        """An internal node sends outwards."""
        require(s.internal[i] and not s.internal[j])
        s.sent[i][j] = True
        s.allowed[j] = True

    @action(i="n", j="n")
    def back(self, s: Any, i: int, j: int) -> None:
        """A node that is allowed to sends inwards."""
        require(not s.internal[i] and s.internal[j] and s.allowed[i])
        s.sent[i][j] = True

    @lemma
    def allowed_by_one(self, s: Any) -> bool:
        """An allowed node was sent something by an internal one."""
        n = range(self.n)
        return all(not s.allowed[i] or any(s.internal[j] and s.sent[j][i] for j in n) for i in n)

    @invariant
    def only_answers(self, s: Any) -> bool:
        """So was every node that has sent to an internal one."""
        n = range(self.n)
        return all(
            not s.sent[i][j] or not s.internal[j] or any(s.internal[k] and s.sent[k][i] for k in n)
            for i in n
            for j in n
        )


class Simple(Model):
    """`tla/Simple`: each process sets its own flag, then reads its neighbour's (Lamport, Teaching Concurrency)."""

    n: int = 3
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """No flag is set."""
        return State(x=Array(self.n, Bool()), y=Array(self.n, Bool()), at=Array(self.n, Enum("A", "B", "DONE")))

    @action(i="n")
    def write(self, s: Any, i: int) -> None:
        """A process sets its flag."""
        require(s.at[i] == "A")
        s.x[i] = True
        s.at[i] = "B"

    @action(i="n", j="n")
    def read(self, s: Any, i: int, j: int) -> None:
        """It reads the flag of its neighbour."""
        require(s.at[i] == "B" and (j == i + 1 or (i == self.n - 1 and j == 0)))
        s.y[i] = s.x[j]
        s.at[i] = "DONE"

    @lemma
    def not_all(self, s: Any) -> bool:
        """A flag is set before its process reads; where all have read, one has read a set flag."""
        n = range(self.n)
        return all(s.at[i] == "A" or s.x[i] for i in n) and (
            any(s.at[i] != "DONE" for i in n) or any(s.y[i] for i in n)
        )

    @invariant
    def some(self, s: Any) -> bool:
        """When all are done, one has read a set flag."""
        return any(s.at[i] != "DONE" for i in range(self.n)) or any(s.y[i] for i in range(self.n))
