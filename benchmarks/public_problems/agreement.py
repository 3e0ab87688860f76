"""Votes, leaders and commitment: problems of the benchmarks of Ivy, IC3PO and mypyvy.

A quorum is a row of a relation that no rule changes; that any two quorums have a node in common is a condition on the first
state.
"""

from __future__ import annotations

from typing import Any

from streamproof import ANY, Array, Bool, Enum, Model, Range, State, action, initially, invariant, lemma, require


class Quorums(Model):
    """Nodes and quorums of any number; the base of the problems with quorums."""

    n: int = 2
    quorums: int = 2
    values: int = 2
    limits = {"n": (1, None), "quorums": (1, None), "values": (1, None)}
    check_deadlock = False

    def member(self) -> Any:
        """Which nodes are in which quorum."""
        return Array(self.quorums, Array(self.n, Bool(init=ANY)))

    @initially
    def common(self, s: Any) -> bool:
        """Two quorums have a node in common."""
        q = range(self.quorums)
        return all(any(s.member[a][i] and s.member[b][i] for i in range(self.n)) for a in q for b in q)

    @lemma
    def still_common(self, s: Any) -> bool:
        """The condition on the first state, which stays."""
        q = range(self.quorums)
        return all(any(s.member[a][i] and s.member[b][i] for i in range(self.n)) for a in q for b in q)


class ToyConsensusForall(Quorums):
    """`mypyv/toy_consensus_forall`: every node votes once; the quorum that decided last is remembered."""

    def state(self) -> State:
        """Nobody has voted."""
        return State(
            member=self.member(),
            voted=Array(self.n, Bool()),
            vote=Array(self.n, Array(self.values, Bool())),
            decided=Array(self.values, Bool()),
            deciding=Range(0, self.quorums - 1),
        )

    @action(i="n", v="values")
    def cast(self, s: Any, i: int, v: int) -> None:
        """A vote."""
        require(not s.voted[i])
        s.vote[i][v] = True
        s.voted[i] = True

    @action(v="values", q="quorums")
    def decide(self, s: Any, v: int, q: int) -> None:
        """All of a quorum have voted for the value."""
        require(all(not s.member[q][i] or s.vote[i][v] for i in range(self.n)))
        s.decided[v] = True
        s.deciding = q

    @lemma
    def once(self, s: Any) -> bool:
        """Who has voted has done it once, and the deciding quorum has voted for what is decided."""
        v = range(self.values)
        return all(
            (not s.vote[i][a] or s.voted[i])
            and (not s.vote[i][a] or not s.vote[i][b] or a == b)
            and (not s.decided[a] or not s.member[s.deciding][i] or s.vote[i][a])
            for i in range(self.n)
            for a in v
            for b in v
        )

    @invariant
    def agreement(self, s: Any) -> bool:
        """At most one value is decided."""
        return all(
            not s.decided[v] or not s.decided[w] or v == w for v in range(self.values) for w in range(self.values)
        )


class QuorumLeaderElection(Quorums):
    """`ex/quorum-leader-election`: who has the votes of a quorum is the leader."""

    def state(self) -> State:
        """Nobody has voted."""
        return State(
            member=self.member(),
            voted=Array(self.n, Array(self.n, Bool())),
            leader=Array(self.n, Bool()),
            last=Range(0, self.quorums - 1),
        )

    @action(v="n", i="n")
    def vote(self, s: Any, v: int, i: int) -> None:
        """A node votes for one."""
        require(all(not s.voted[v][m] for m in range(self.n)))
        s.voted[v][i] = True

    @action(i="n", q="quorums")
    def become_leader(self, s: Any, i: int, q: int) -> None:
        """All of a quorum have voted for the node."""
        require(all(not s.member[q][m] or s.voted[m][i] for m in range(self.n)))
        s.leader[i] = True
        s.last = q

    @lemma
    def once(self, s: Any) -> bool:
        """A vote is given once; the last quorum has voted for every leader."""
        n = range(self.n)
        return all(
            (not s.voted[v][i] or not s.voted[v][j] or i == j)
            and (not s.leader[i] or not s.member[s.last][v] or s.voted[v][i])
            for v in n
            for i in n
            for j in n
        )

    @invariant
    def one_leader(self, s: Any) -> bool:
        """At most one leader."""
        return all(not s.leader[i] or not s.leader[j] or i == j for i in range(self.n) for j in range(self.n))


class ConsensusWithoutDecision(Quorums):
    """`mypyv/consensus_wo_decide`: requests for votes, votes, and a leader."""

    def state(self) -> State:
        """Nothing has been sent."""
        pairs = Array(self.n, Array(self.n, Bool()))
        return State(
            member=self.member(),
            request=pairs,
            voted=Array(self.n, Bool()),
            message=pairs,
            votes=pairs,
            leader=Array(self.n, Bool()),
            quorum=Range(0, self.quorums - 1),
        )

    @action(i="n", j="n")
    def ask(self, s: Any, i: int, j: int) -> None:
        """A node asks another for its vote."""
        s.request[i][j] = True

    @action(i="n", j="n")
    def answer(self, s: Any, i: int, j: int) -> None:
        """The other one votes, once."""
        require(not s.voted[i] and s.request[j][i])
        s.message[i][j] = True
        s.voted[i] = True

    @action(i="n", j="n")
    def receive(self, s: Any, i: int, j: int) -> None:
        """A vote arrives."""
        require(s.message[j][i])
        s.votes[i][j] = True

    @action(q="quorums", i="n")
    def choose_quorum(self, s: Any, q: int, i: int) -> None:
        """A quorum whose votes a node has."""
        require(all(not s.member[q][m] or s.votes[i][m] for m in range(self.n)))
        s.quorum = q

    @action(i="n")
    def become_leader(self, s: Any, i: int) -> None:
        """A node has the votes of the chosen quorum."""
        require(all(not s.member[s.quorum][m] or s.votes[i][m] for m in range(self.n)))
        s.leader[i] = True

    @lemma
    def given(self, s: Any) -> bool:
        """A vote is sent before it arrives, and to one node."""
        n = range(self.n)
        return all(
            (not s.votes[i][j] or s.message[j][i])
            and (not s.message[i][j] or s.voted[i])
            and (not s.message[i][j] or not s.message[i][k] or j == k)
            for i in n
            for j in n
            for k in n
        )

    @lemma
    def led(self, s: Any) -> bool:
        """A leader has the votes of the chosen quorum."""
        n = range(self.n)
        return all(not s.leader[i] or not s.member[s.quorum][j] or s.votes[i][j] for i in n for j in n)

    @invariant
    def one_leader(self, s: Any) -> bool:
        """At most one leader."""
        return all(not s.leader[i] or not s.leader[j] or i == j for i in range(self.n) for j in range(self.n))


class ConsensusForall(ConsensusWithoutDecision):
    """`mypyv/consensus_forall`: the same, and the leader decides a value, once."""

    def state(self) -> State:
        """Nothing has been sent."""
        decided = Array(self.n, Array(self.values, Bool()))
        return State(**dict(super().state().items()), decided=decided)

    @action(i="n", v="values")
    def decide(self, s: Any, i: int, v: int) -> None:
        """The leader decides, once."""
        require(s.leader[i] and all(not s.decided[i][w] for w in range(self.values)))
        s.decided[i][v] = True

    @lemma
    def by_the_leader(self, s: Any) -> bool:
        """Who decided is a leader, and did it once."""
        n, v = range(self.n), range(self.values)
        return all(not s.decided[i][a] or s.leader[i] for i in n for a in v) and all(
            not s.decided[i][a] or not s.decided[i][b] or a == b for i in n for a in v for b in v
        )

    @invariant
    def agreement(self, s: Any) -> bool:
        """At most one value is decided."""
        n, v = range(self.n), range(self.values)
        return all(not s.decided[i][a] or not s.decided[j][b] or a == b for i in n for j in n for a in v for b in v)


class TransactionCommit(Model):
    """`tla/TCommit`: participants decide together."""

    n: int = 3
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """All are at work."""
        return State(at=Array(self.n, Enum("WORKING", "PREPARED", "COMMITTED", "ABORTED")))

    @action(i="n")
    def prepare(self, s: Any, i: int) -> None:
        """A participant is prepared."""
        require(s.at[i] == "WORKING")
        s.at[i] = "PREPARED"

    @action(i="n")
    def commit(self, s: Any, i: int) -> None:
        """All are prepared or have committed."""
        require(s.at[i] == "PREPARED" and all(s.at[j] in ("PREPARED", "COMMITTED") for j in range(self.n)))
        s.at[i] = "COMMITTED"

    @action(i="n")
    def abort(self, s: Any, i: int) -> None:
        """Nobody has committed."""
        require(s.at[i] in ("WORKING", "PREPARED") and all(s.at[j] != "COMMITTED" for j in range(self.n)))
        s.at[i] = "ABORTED"

    @invariant
    def consistent(self, s: Any) -> bool:
        """Nobody has aborted where another has committed."""
        return all(s.at[i] != "ABORTED" or s.at[j] != "COMMITTED" for i in range(self.n) for j in range(self.n))


class TwoPhaseCommit(Model):
    """`i4/two_phase_commit`: votes, a coordinator that notices failures, and decisions."""

    n: int = 2
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """All are alive, and nobody has voted."""
        node = Array(self.n, Bool())
        return State(
            yes=node,
            no=node,
            alive=Array(self.n, Bool(init=True)),
            go_commit=node,
            go_abort=node,
            committed=node,
            aborted=node,
            flag=Bool(),
        )

    @action(i="n")
    def vote_yes(self, s: Any, i: int) -> None:
        """A vote for it."""
        require(s.alive[i] and not s.no[i] and not s.committed[i] and not s.aborted[i])
        s.yes[i] = True

    @action(i="n")
    def vote_no(self, s: Any, i: int) -> None:
        """A vote against it."""
        require(s.alive[i] and not s.yes[i] and not s.committed[i] and not s.aborted[i])
        s.no[i] = True
        s.flag = True
        s.aborted[i] = True

    @action(i="n")
    def fail(self, s: Any, i: int) -> None:
        """A node fails."""
        require(s.alive[i])
        s.alive[i] = False
        s.flag = True

    @action
    def go(self, s: Any) -> None:
        """All have voted for it."""
        require(all(not s.go_commit[i] and not s.go_abort[i] and s.yes[i] for i in range(self.n)))
        s.go_commit = [True for _ in range(self.n)]

    @action
    def stop(self, s: Any) -> None:
        """Somebody has voted against it, or failed."""
        require(all(not s.go_commit[i] and not s.go_abort[i] for i in range(self.n)))
        require(any(s.no[i] or not s.alive[i] for i in range(self.n)))
        s.go_abort = [True for _ in range(self.n)]

    @action(i="n")
    def commit(self, s: Any, i: int) -> None:
        """A node hears the decision."""
        require(s.alive[i] and s.go_commit[i])
        s.committed[i] = True

    @action(i="n")
    def abort(self, s: Any, i: int) -> None:
        """A node hears the decision."""
        require(s.alive[i] and s.go_abort[i])
        s.aborted[i] = True

    @lemma
    def decided_once(self, s: Any) -> bool:
        """The decision is one for all, for it if all voted so, against it if somebody did not or failed."""
        n = range(self.n)
        return all(
            (not s.go_commit[i] or (s.yes[j] and not s.go_abort[j] and s.go_commit[j]))
            and (not s.go_abort[i] or s.flag)
            and (not s.committed[i] or s.go_commit[i])
            and (not s.aborted[i] or s.no[i] or s.go_abort[i])
            and (not s.no[i] or (s.flag and not s.yes[i]))
            for i in n
            for j in n
        )

    @invariant
    def one_decision(self, s: Any) -> bool:
        """Nobody commits where another aborts."""
        return all(not s.committed[i] or not s.aborted[j] for i in range(self.n) for j in range(self.n))

    @invariant
    def by_all(self, s: Any) -> bool:
        """What is committed has all votes."""
        return all(not s.committed[i] or s.yes[j] for i in range(self.n) for j in range(self.n))

    @invariant
    def for_a_reason(self, s: Any) -> bool:
        """What is aborted has a reason."""
        return all(not s.aborted[i] or s.flag for i in range(self.n))


class TwoPhase(Model):
    """`tla/TwoPhase`: resource managers, a transaction manager and messages, as Lamport and Gray have it."""

    n: int = 2
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self) -> State:
        """All are at work."""
        return State(
            at=Array(self.n, Enum("WORKING", "PREPARED", "COMMITTED", "ABORTED")),
            manager=Enum("INIT", "COMMITTED", "ABORTED"),
            heard=Array(self.n, Bool()),
            prepared=Array(self.n, Bool()),
            commit=Bool(),
            abort=Bool(),
        )

    @action(i="n")
    def hear(self, s: Any, i: int) -> None:
        """The manager receives that one is prepared."""
        require(s.manager == "INIT" and s.prepared[i])
        s.heard[i] = True

    @action
    def order(self, s: Any) -> None:
        """All are prepared."""
        require(s.manager == "INIT" and all(s.heard[i] for i in range(self.n)))
        s.manager = "COMMITTED"
        s.commit = True

    @action
    def give_up(self, s: Any) -> None:
        """The manager aborts."""
        require(s.manager == "INIT")
        s.manager = "ABORTED"
        s.abort = True

    @action(i="n")
    def prepare(self, s: Any, i: int) -> None:
        """A resource manager is prepared."""
        require(s.at[i] == "WORKING")
        s.at[i] = "PREPARED"
        s.prepared[i] = True

    @action(i="n")
    def refuse(self, s: Any, i: int) -> None:
        """A resource manager aborts by itself."""
        require(s.at[i] == "WORKING")
        s.at[i] = "ABORTED"

    @action(i="n")
    def committed(self, s: Any, i: int) -> None:
        """The order to commit arrives."""
        require(s.commit)
        s.at[i] = "COMMITTED"

    @action(i="n")
    def aborted(self, s: Any, i: int) -> None:
        """The order to abort arrives."""
        require(s.abort)
        s.at[i] = "ABORTED"

    @lemma
    def orders(self, s: Any) -> bool:
        """What the manager has ordered and heard."""
        n = range(self.n)
        return (
            s.commit == (s.manager == "COMMITTED")
            and s.abort == (s.manager == "ABORTED")
            and all(not s.heard[i] or s.prepared[i] for i in n)
            and all(not s.prepared[i] or s.at[i] != "WORKING" for i in n)
            and all(not s.commit or s.heard[i] for i in n)
            and all(s.at[i] != "COMMITTED" or s.commit for i in n)
            and all(not s.prepared[i] or s.at[i] != "ABORTED" or s.abort for i in n)
        )

    @invariant
    def consistent(self, s: Any) -> bool:
        """Nobody has aborted where another has committed."""
        return all(s.at[i] != "ABORTED" or s.at[j] != "COMMITTED" for i in range(self.n) for j in range(self.n))
