"""Locks that move between nodes or are granted by a server: problems of the benchmark of I4, IC3PO and mypyvy."""

from __future__ import annotations

from typing import Any

from streamproof import ANY, Array, Bool, Model, Nat, Range, State, action, initially, invariant, lemma, require


class LockServer(Model):
    """`i4/lock_server`: each server has one semaphore, and links at most one client."""

    clients: int = 2
    servers: int = 2
    limits = {"clients": (1, None), "servers": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """No client is linked."""
        return State(
            link=Array(self.clients, Array(self.servers, Bool())), semaphore=Array(self.servers, Bool(init=True))
        )

    @action(c="clients", d="servers")
    def connect(self, s: Any, c: int, d: int) -> None:
        """A client takes the semaphore."""
        require(s.semaphore[d])
        s.link[c][d] = True
        s.semaphore[d] = False

    @action(c="clients", d="servers")
    def disconnect(self, s: Any, c: int, d: int) -> None:
        """A client gives it back."""
        require(s.link[c][d])
        s.link[c][d] = False
        s.semaphore[d] = True

    @invariant
    def mutex(self, s: Any) -> bool:
        """At most one client of each server."""
        return all(
            not s.link[c][d] or not s.link[e][d] or c == e
            for c in range(self.clients)
            for e in range(self.clients)
            for d in range(self.servers)
        )

    @lemma
    def taken(self, s: Any) -> bool:
        """The semaphore of a linked client is taken."""
        return all(not s.link[c][d] or not s.semaphore[d] for c in range(self.clients) for d in range(self.servers))


class LockService(Model):
    """`ex/lockserv_automaton`: requests, grants and releases are messages; a request may be sent again."""

    n: int = 3
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """The lock is free."""
        node = Array(self.n, Bool())
        return State(lock=node, grant=node, unlock=node, holds=node, held=Bool())

    @action(i="n")
    def ask(self, s: Any, i: int) -> None:
        """A request is sent."""
        s.lock[i] = True

    @action(i="n")
    def give(self, s: Any, i: int) -> None:
        """The server grants the lock."""
        require(s.lock[i] and not s.held)
        s.held = True
        s.lock[i] = False
        s.grant[i] = True

    @action(i="n")
    def take(self, s: Any, i: int) -> None:
        """A grant arrives."""
        require(s.grant[i])
        s.grant[i] = False
        s.holds[i] = True

    @action(i="n")
    def release(self, s: Any, i: int) -> None:
        """A release is sent."""
        require(s.holds[i])
        s.holds[i] = False
        s.unlock[i] = True

    @action(i="n")
    def returned(self, s: Any, i: int) -> None:
        """A release arrives."""
        require(s.unlock[i])
        s.unlock[i] = False
        s.held = False

    @invariant
    def mutex(self, s: Any) -> bool:
        """At most one holder."""
        return all(i == j or not s.holds[i] or not s.holds[j] for i in range(self.n) for j in range(self.n))


class SimpleDecentralizedLock(Model):
    """`ex/simple-decentralized-lock`: the lock is a message from one node to another."""

    n: int = 3
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """One node has the lock."""
        return State(
            message=Array(self.n, Array(self.n, Bool())),
            has=Array(self.n, Bool(init=ANY)),
            first=Range(0, self.n - 1, init=ANY),
        )

    @initially
    def one(self, s: Any) -> bool:
        """Which node it is, is open."""
        return all(s.has[i] == (i == s.first) for i in range(self.n))

    @action(i="n", j="n")
    def send(self, s: Any, i: int, j: int) -> None:
        """The holder sends it."""
        require(s.has[i])
        s.message[i][j] = True
        s.has[i] = False

    @action(i="n", j="n")
    def receive(self, s: Any, i: int, j: int) -> None:
        """As in the benchmark, the *sender* named in the message has the lock then."""
        require(s.message[i][j])
        s.message[i][j] = False
        s.has[i] = True

    @invariant
    def mutex(self, s: Any) -> bool:
        """At most one holder."""
        return all(i == j or not s.has[i] or not s.has[j] for i in range(self.n) for j in range(self.n))

    @lemma
    def one_token(self, s: Any) -> bool:
        """Where there is a message, nobody has the lock, and there is no other message."""
        n = range(self.n)
        return all(
            not s.message[i][j] or (not s.has[k] and (not s.message[k][m] or (i == k and j == m)))
            for i in n
            for j in n
            for k in n
            for m in n
        )


class DecentralizedLock(Model):
    """`ex/decentralized-lock`: a transfer has an epoch and is taken by a node of an earlier one; it is never forgotten."""

    n: int = 2
    epochs: int = 3
    limits = {"n": (1, None), "epochs": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """The first node has the lock."""
        return State(
            has=Array(self.n, Bool()),
            message=Array(self.n, Array(self.epochs, Bool())),
            epoch=Array(self.n, Range(0, self.epochs - 1)),
            begun=Bool(),
        )

    @action(i="n")
    def begin(self, s: Any, i: int) -> None:
        """The first holder."""
        require(not s.begun)
        s.begun = True
        s.has[i] = True

    @action(i="n", t="epochs")
    def take(self, s: Any, i: int, t: int) -> None:
        """A transfer of a later epoch is taken."""
        require(s.message[i][t] and t > s.epoch[i])
        s.has[i] = True
        s.epoch[i] = t

    @action(i="n", j="n", t="epochs")
    def release(self, s: Any, i: int, j: int, t: int) -> None:
        """The holder sends the lock with a later epoch."""
        require(s.has[i] and t > s.epoch[i])
        s.has[i] = False
        s.message[j][t] = True

    @invariant
    def mutex(self, s: Any) -> bool:
        """At most one holder."""
        return all(i == j or not s.has[i] or not s.has[j] for i in range(self.n) for j in range(self.n))

    @lemma
    def early(self, s: Any) -> bool:
        """Before the first holder nobody has the lock, and there is no message."""
        n, e = range(self.n), range(self.epochs)
        return s.begun or (all(not s.has[i] for i in n) and all(not s.message[i][t] for i in n for t in e))

    @lemma
    def latest(self, s: Any) -> bool:
        """A holder's epoch is the latest of all nodes and messages."""
        n, e = range(self.n), range(self.epochs)
        return all(
            not s.has[i] or (s.epoch[j] <= s.epoch[i] and (not s.message[j][t] or t <= s.epoch[i]))
            for i in n
            for j in n
            for t in e
        )

    @lemma
    def one_open(self, s: Any) -> bool:
        """Of messages that are not outdated there is one, and then nobody has the lock."""
        n, e = range(self.n), range(self.epochs)
        return all(
            not s.message[i][t] or t <= s.epoch[i] or (not s.message[j][u] or u <= s.epoch[j] or (i == j and t == u))
            for i in n
            for j in n
            for t in e
            for u in e
        ) and all(not s.message[i][t] or t <= s.epoch[i] or not s.has[j] for i in n for j in n for t in e)

    @lemma
    def ordered(self, s: Any) -> bool:
        """An epoch of a message that is not outdated is later than all epochs and other messages."""
        n, e = range(self.n), range(self.epochs)
        return all(
            not s.message[i][t] or t <= s.epoch[i] or (s.epoch[j] < t and (not s.message[j][u] or u <= t))
            for i in n
            for j in n
            for t in e
            for u in e
        )


class RicartAgrawala(Model):
    """`distai/Ricart-Agrawala`: a node enters when all have replied; who has another's reply does not reply to it."""

    n: int = 3
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """Nobody has asked."""
        pairs = Array(self.n, Array(self.n, Bool()))
        return State(holds=Array(self.n, Bool()), replied=pairs, requested=pairs)

    @action(i="n", j="n")
    def request(self, s: Any, i: int, j: int) -> None:
        """One node asks another."""
        require(i != j and not s.requested[i][j])
        s.requested[i][j] = True

    @action(i="n", j="n")
    def reply(self, s: Any, i: int, j: int) -> None:
        """The other one replies."""
        require(i != j and s.requested[i][j] and not s.replied[i][j] and not s.holds[j] and not s.replied[j][i])
        s.requested[i][j] = False
        s.replied[i][j] = True

    @action(i="n")
    def enter(self, s: Any, i: int) -> None:
        """All others have replied."""
        require(all(i == j or s.replied[i][j] for j in range(self.n)))
        s.holds[i] = True

    @action(i="n")
    def leave(self, s: Any, i: int) -> None:
        """The replies are used up."""
        require(s.holds[i])
        s.holds[i] = False
        s.replied[i] = [False for j in range(self.n)]

    @invariant
    def mutex(self, s: Any) -> bool:
        """At most one node holds the lock."""
        return all(i == j or not s.holds[i] or not s.holds[j] for i in range(self.n) for j in range(self.n))

    @lemma
    def not_both(self, s: Any) -> bool:
        """Of two nodes at most one has the other's reply; a holder has all."""
        n = range(self.n)
        return all(not s.replied[i][j] or not s.replied[j][i] for i in n for j in n if i != j) and all(
            not s.holds[i] or s.replied[i][j] for i in n for j in n if i != j
        )


class Ticket(Model):
    """`mypyv/ticket`: threads draw numbers and are served in their order."""

    n: int = 2
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """Nobody waits."""
        return State(
            waits=Array(self.n, Bool()),
            inside=Array(self.n, Bool()),
            number=Array(self.n, Nat()),
            service=Nat(),
            following=Nat(),
        )

    @action(i="n")
    def draw(self, s: Any, i: int) -> None:
        """A thread draws a number."""
        require(not s.waits[i] and not s.inside[i])
        s.waits[i] = True
        s.number[i] = s.following
        s.following += 1

    @action(i="n")
    def enter(self, s: Any, i: int) -> None:
        """Its number is served."""
        require(s.waits[i] and s.number[i] <= s.service)
        s.waits[i] = False
        s.inside[i] = True

    @action(i="n")
    def leave(self, s: Any, i: int) -> None:
        """The next number is served."""
        require(s.inside[i])
        s.inside[i] = False
        s.service += 1

    @invariant
    def mutex(self, s: Any) -> bool:
        """At most one thread is inside."""
        return all(i == j or not s.inside[i] or not s.inside[j] for i in range(self.n) for j in range(self.n))

    @lemma
    def drawn(self, s: Any) -> bool:
        """Numbers in use differ and are drawn; one that waits is not passed, and the one inside is served."""
        n = range(self.n)
        return s.service <= s.following and all(
            not (s.waits[i] and s.inside[i])
            and (not s.waits[i] or s.service <= s.number[i] < s.following)
            and (not s.inside[i] or s.number[i] == s.service < s.following)
            and (
                i == j
                or not (s.waits[i] or s.inside[i])
                or not (s.waits[j] or s.inside[j])
                or s.number[i] != s.number[j]
            )
            for i in n
            for j in n
        )


class DistributedLock(Model):
    """`ex/distributed_lock_maxheld`: the lock is granted with a later epoch; the holder's epoch is the latest."""

    n: int = 2
    epochs: int = 3
    limits = {"n": (1, None), "epochs": (2, None)}
    check_deadlock = False

    def state(self) -> State:
        """The first node has the lock, in epoch 1."""
        return State(
            held=Array(self.n, Bool(init=ANY)),
            epoch=Array(self.n, Range(0, self.epochs - 1, init=ANY)),
            transfer=Array(self.epochs, Array(self.n, Bool())),
            locked=Array(self.epochs, Array(self.n, Bool())),
            first=Range(0, self.n - 1, init=ANY),
        )

    @initially
    def begun(self, s: Any) -> bool:
        """Who is first, is open."""
        return all(s.held[i] == (i == s.first) and s.epoch[i] == (1 if i == s.first else 0) for i in range(self.n))

    @action(i="n", j="n", e="epochs")
    def grant(self, s: Any, i: int, j: int, e: int) -> None:
        """The holder sends the lock with a later epoch."""
        require(s.held[i] and e > s.epoch[i])
        s.transfer[e][j] = True
        s.held[i] = False

    @action(i="n", e="epochs")
    def accept(self, s: Any, i: int, e: int) -> None:
        """A transfer arrives; an outdated one is ignored."""
        require(s.transfer[e][i])
        if e > s.epoch[i]:
            s.held[i] = True
            s.epoch[i] = e
            s.locked[e][i] = True

    @lemma
    def latest(self, s: Any) -> bool:
        """An epoch that is not outdated at its node is later than all others, and then nobody holds the lock."""
        n, e = range(self.n), range(self.epochs)
        return all(
            (not s.held[i] or not s.transfer[a][j] or a <= s.epoch[i])
            and (not s.transfer[a][i] or a <= s.epoch[i] or (s.epoch[j] < a and not s.held[j]))
            for i in n
            for j in n
            for a in e
        ) and all(
            not s.transfer[a][i] or a <= s.epoch[i] or not s.transfer[b][j] or (b < a or (a == b and i == j))
            for i in n
            for j in n
            for a in e
            for b in e
        )

    @lemma
    def one_holder(self, s: Any) -> bool:
        """At most one holder."""
        return all(i == j or not s.held[i] or not s.held[j] for i in range(self.n) for j in range(self.n))

    @invariant
    def holder_is_latest(self, s: Any) -> bool:
        """No node has a later epoch than the holder."""
        return all(not s.held[i] or s.epoch[j] <= s.epoch[i] for i in range(self.n) for j in range(self.n))


class DistributedLockEpochs(DistributedLock):
    """`ex/distributed_lock_abstract`: the same rules; every epoch is locked by one node at most."""

    @lemma
    def by_transfer(self, s: Any) -> bool:
        """What is locked was sent to the node, which is not before it; an epoch is sent to one node."""
        n, e = range(self.n), range(self.epochs)
        return all((not s.locked[a][i] or (s.transfer[a][i] and a <= s.epoch[i])) for i in n for a in e) and all(
            not s.transfer[a][i] or not s.transfer[a][j] or i == j for i in n for j in n for a in e
        )

    @invariant
    def one_each(self, s: Any) -> bool:
        """At most one node has locked an epoch."""
        n, e = range(self.n), range(self.epochs)
        return all(not s.locked[a][i] or not s.locked[a][j] or i == j for i in n for j in n for a in e)


class LockServices(Model):
    """`cav19/lockserv_multi`: the lock service with any number of locks."""

    n: int = 2
    locks: int = 2
    limits = {"n": (1, None), "locks": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """All locks are free."""
        each = Array(self.locks, Array(self.n, Bool()))
        return State(lock=each, grant=each, unlock=each, holds=each, free=Array(self.locks, Bool(init=True)))

    @action(k="locks", i="n")
    def ask(self, s: Any, k: int, i: int) -> None:
        """A request is sent."""
        s.lock[k][i] = True

    @action(k="locks", i="n")
    def give(self, s: Any, k: int, i: int) -> None:
        """The server grants a lock."""
        require(s.lock[k][i] and s.free[k])
        s.lock[k][i] = False
        s.grant[k][i] = True
        s.free[k] = False

    @action(k="locks", i="n")
    def take(self, s: Any, k: int, i: int) -> None:
        """A grant arrives."""
        require(s.grant[k][i])
        s.grant[k][i] = False
        s.holds[k][i] = True

    @action(k="locks", i="n")
    def release(self, s: Any, k: int, i: int) -> None:
        """A release is sent."""
        require(s.holds[k][i])
        s.holds[k][i] = False
        s.unlock[k][i] = True

    @action(k="locks", i="n")
    def returned(self, s: Any, k: int, i: int) -> None:
        """A release arrives."""
        require(s.unlock[k][i])
        s.unlock[k][i] = False
        s.free[k] = True

    @lemma
    def one_token(self, s: Any) -> bool:
        """Each lock is in one place."""
        k, n = range(self.locks), range(self.n)
        return all(
            (not s.free[a] or (not s.grant[a][i] and not s.unlock[a][i] and not s.holds[a][i]))
            and (i == j or not (s.grant[a][i] or s.unlock[a][i] or s.holds[a][i]) or not s.grant[a][j])
            and (i == j or not (s.grant[a][i] or s.unlock[a][i] or s.holds[a][i]) or not s.unlock[a][j])
            and (not s.grant[a][i] or (not s.unlock[a][i] and not s.holds[a][i]))
            and (not s.unlock[a][i] or not s.holds[a][i])
            for a in k
            for i in n
            for j in n
        )

    @invariant
    def mutex(self, s: Any) -> bool:
        """At most one holder of each lock."""
        k, n = range(self.locks), range(self.n)
        return all(i == j or not s.holds[a][i] or not s.holds[a][j] for a in k for i in n for j in n)
