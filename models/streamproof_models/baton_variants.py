"""Variants of FLIP-15's termination protocol: other interpretations and omitted rules; each changes one rule, `literal`
several.

Quoted words are those of the proposal, part III, with the number of the step if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamproof import STRONG, WEAK, action, invariant, require
from streamproof_models.baton import Baton
from streamproof_models.baton_wiring import Baton as Kind
from streamproof_models.baton_wiring import Wiring
from streamproof_models.scoped_topologies import topology


class NoAlignment(Baton, variant="no-alignment"):
    """Nobody in a loop waits for a baton on all inputs: each copy is sent on, and the first that is back decides."""

    more: ClassVar[int] = 2

    def aligns(self, task: str, baton: Kind) -> bool:
        """Nobody waits."""
        return False


class FirstEnd(Baton, variant="first-end"):
    """Outside attempts nobody aligns: END on one input counts as END on all."""

    def take_ends(self, s, o):
        """One will do."""
        require(any(self.ended(s, c) for c in self.inputs[o]))

    def ended(self, s, c):
        """Whether END is next on a channel."""
        return len(s.channel[c]) > 0 and s.channel[c].head.kind == "END"


class FirstEntry(FirstEnd, variant="first-entry"):
    """A head takes the first event "not associated with a StreamScope" (step 3.2) for all: it starts at END on one input."""

    @action(o="others", fairness=WEAK)
    def terminate(self, s, o):
        """Operators other than heads wait for END on all inputs."""
        for c in self.inputs[o]:
            require(self.ended(s, c))
        super().terminate(s, o)


class NoDirtyCheck(Baton, variant="no-dirty-check"):
    """A head ignores records received since it sent the baton."""

    def dirty(self, s, o):
        """Never."""
        return False


class StatusDropped(Baton, variant="status-dropped"):
    """An operator overwrites the status of a baton with its own: an IDLE one behind a BUSY one makes it IDLE."""

    def joined(self, first: Any, second: Any) -> Any:
        """The last one counts."""
        return second

    def added(self, s, o, busy):
        """The operator's own counts."""
        return s.held[o] > 0


class StaleAttempt(Baton, variant="stale-attempt"):
    """A head does not compare ids."""

    def current(self, s, o, id):
        """Any will do."""
        return True


class EagerRetry(Baton, variant="eager-retry"):
    """A single head aborts its attempt as soon as it receives a record: the next baton overtakes the last one's return."""

    ids: int = 4
    more: ClassVar[int] = 3

    def notice(self, s, o):
        """Another attempt at once."""
        if not self.wiring.alone(o):
            super().notice(s, o)
        elif s.status[o] == "ATTEMPTING":
            self.decide(s, o, True)
        else:
            super().notice(s, o)


class EagerRetryStale(EagerRetry, variant="eager-retry-stale"):
    """As eager-retry, but ids are not compared: the return of an aborted attempt is taken for that of the current one."""

    def current(self, s, o, id):
        """Any will do."""
        return True


class InnerFirst(Baton, variant="inner-first"):
    """The head of an inner loop that gets a baton from outside completes its own scope first."""

    more: ClassVar[int] = 1

    def enter(self, s, o, kind, busy, id):
        """The baton from outside waits for that, and is not needed when it is done."""
        if s.status[o] == "RUNNING":
            s.status[o] = "ATTEMPTING"
            s.turn[o] = "CLEAN"
            self.send_own(s, o, 1, s.held[o] > 0)


class UncoordinatedHeads(Baton, variant="uncoordinated-heads"):
    """Each of several heads of a scope decides alone when its baton is back."""

    def decides_alone(self, o: str) -> bool:
        """Always."""
        return True


class Timeout(Baton, variant="timeout"):
    """What the proposal replaces: a head whose feedback inputs were empty for a while terminates, however long the while."""

    @action(o="heads")
    def time_out(self, s, o):
        """Nothing more comes from outside, and nothing is there from the loop."""
        require(s.status[o] == "ATTEMPTING")
        require(s.held[o] == 0)
        for c in self.feedbacks[o]:
            require(len(s.channel[c]) == 0)
        self.complete(s, o)


class Reopened(Timeout, variant="reopened"):
    """As timeout, but a head that has terminated goes on when a record comes after all."""

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """It attempts again."""
        if self.target[c] in self.heads and s.status[self.target[c]] == "TERMINATED":
            s.status[self.target[c]] = "ATTEMPTING"
        super().receive(s, c)


class Unscoped(Baton, variant="unscoped"):
    """A loop begins in another and is closed outside it, as the API before the proposal allowed."""

    topology: str = "unscoped"

    def wire(self) -> Wiring:
        """If loops are not scopes, batons go on every path that leads back."""
        return Wiring(topology(self.topology), scoped=False)


class InnerForward(Baton, variant="inner-forward"):
    """The head of an inner loop "will just add its status to the event and forward it downstream" (step 3.3)."""

    def enter(self, s, o, kind, busy, id):
        """Out of the loop at once, without a turn around it."""
        self.send(s, o, kind.entering(self.wiring.scope(o), 2), self.added(s, o, busy), id)


class HeadUnasked(Baton, variant="head-unasked"):
    """A head that starts an attempt does not add its own status: step 4 speaks of records received, not of records held."""

    def send_own(self, s, o, turn, busy):
        """The first baton is IDLE."""
        super().send_own(s, o, turn, busy if turn == 2 else False)


class UpstreamUnwaited(Baton, variant="upstream-unwaited"):
    """An operator outside loops adds BUSY "to the event and broadcast[s] it" (step 3.1), and is not visited again."""

    @action(o="others", fairness=WEAK)
    def terminate(self, s, o):
        """END goes on with the status; the operator terminates when it is done."""
        require(s.status[o] == "RUNNING")
        self.take_ends(s, o)
        s.status[o] = "ATTEMPTING" if s.held[o] > 0 else "TERMINATED"
        for c in self.outputs[o]:
            self.push(s, c, "END", s.held[o] > 0, 0)

    @action(o="others", fairness=WEAK)
    def retire(self, s, o):
        """It is done."""
        require(s.status[o] == "ATTEMPTING")
        require(s.held[o] == 0)
        s.status[o] = "TERMINATED"

    @action(o="heads", fairness=WEAK)
    def begin(self, s, o):
        """The first attempt is BUSY when one of the events was."""
        require(s.status[o] == "RUNNING")
        busy = any(len(s.channel[c]) > 0 and s.channel[c].head.busy for c in self.inputs[o]) or s.held[o] > 0
        self.take_ends(s, o)
        s.status[o] = "ATTEMPTING"
        s.turn[o] = "CLEAN"
        self.send_own(s, o, 1, busy)


class BlockingAlignment(Baton, variant="blocking-alignment"):
    """An operator that waits for a baton takes no records where it has come, as if it were a checkpoint barrier."""

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """Only while the channel's baton is not waited with."""
        target = self.target[c]
        for (task, kind), channels in self.waiting.items():
            if task == target and c in channels:
                require(not s.got[f"{kind} at {c}"])
        super().receive(s, c)


class Broadcast(Baton, variant="broadcast"):
    """Batons are sent on every output (step 1: "broadcast"), also to operators that cannot answer; these drop them."""

    more: ClassVar[int] = 2

    def carried(self) -> Mapping[str, tuple[Kind, ...]]:
        """Every channel out of an operator that sends a baton carries it."""
        found = {c: dict.fromkeys(batons) for c, batons in super().carried().items()}
        self.strays: dict[tuple[str, Kind], tuple[str, ...]] = {}
        for task in self.operators:
            sent = dict.fromkeys(
                step
                for c, batons in super().carried().items()
                if self.target[c] == task
                for b in batons
                for step in self.wiring.sent_for(c, b)
            )
            for kind in (*sent, *(self.wiring.own(task) if task in self.heads else ())):
                leading = {c for c, _ in self.wiring.onward(task, kind)}
                self.strays[task, kind] = tuple(c for c in self.outputs[task] if c not in leading)
                for c in self.strays[task, kind]:
                    found[c][kind] = None
        return {c: tuple(batons) for c, batons in found.items()}

    def send(self, s, o, kind, busy, id):
        """Everywhere."""
        super().send(s, o, kind, busy, id)
        for c in self.strays[o, kind]:
            self.push(s, c, str(kind), busy, id)

    def handle(self, s, c, kind, busy, id):
        """Nothing, where it leads nowhere."""
        if kind in self.wiring.carried[c]:
            super().handle(s, c, kind, busy, id)


class CompletedTogether(Baton, variant="completed-together"):
    """A completed scope completes the loops in it: "all operators [...] terminate" (step 4.1.2), inner heads included."""

    @action(o="heads", fairness=WEAK)
    def begin(self, s, o):
        """Only the outermost head makes attempts."""
        if self.wiring.scope(o).level == 1:
            super().begin(s, o)
        else:
            require(s.status[o] == "RUNNING")
            self.take_ends(s, o)
            self.complete(s, o)


class ScopeKept(Baton, variant="scope-kept"):
    """An event keeps its scope: step 3.2 associates one only if it has none, so the next head does nothing."""

    @action(o="heads", fairness=WEAK)
    def begin(self, s, o):
        """Only where no event can have passed another head."""
        before, _ = self.wiring.reaching(o)
        scope = self.wiring.scope(o)
        require(
            all(
                t not in self.heads or self.wiring.scope(t) == scope or scope.is_outer_of(self.wiring.scope(t))
                for t in before
            )
        )
        super().begin(s, o)


class TightWeak(Baton, variant="tight-weak"):
    """As tight, but an operator that finds room only now and then, others being quicker, need not be served eventually."""

    capacity: int = 1
    hold: int = 1
    insist: bool = True

    @action(c="from_operators", fairness=WEAK)
    def emit(self, s, c):
        """Where there is room, what is to be sent is sent."""
        super().emit(s, c)


class Tight(TightWeak, variant="tight"):
    """Batons share small buffers with records: one item a channel, one record an operator; feedback edges spill to disk."""

    @action(c="channels", fairness=STRONG)
    def receive(self, s, c):
        """An operator that can receive a record again and again eventually does, whatever else comes between."""
        super().receive(s, c)

    @action(c="channels", baton="kinds", fairness=STRONG)
    def take(self, s, c, baton):
        """So does one that finds room again and again for a baton."""
        super().take(s, c, baton)


class Bounded(Tight, variant="bounded"):
    """As tight, but feedback edges have buffers like every other channel, and no disk."""

    spilling: bool = False


class BoundedWithoutEnd(Bounded, variant="bounded-without-end"):
    """As bounded, while the sources have not ended: no baton is under way."""

    @action(o="sources")
    def end(self, s, o):
        """Never."""
        require(False)


class NoSecondWait(Baton, variant="no-second-wait"):
    """A baton leaves an inner loop without waiting for the one that goes around it: what that finds counts the next time."""

    more: ClassVar[int] = 2

    def enter(self, s, o, kind, busy, id):
        """Around the loop and out of it at once."""
        found = self.added(s, o, busy) or self.dirty(s, o)
        s.turn[o] = "CLEAN"
        for turn in (1, 2):
            self.send(s, o, kind.entering(self.wiring.scope(o), turn), found, id)

    def leave(self, s, o, kind, busy, id):
        """Remember what it has found."""
        s.turn[o] = "DIRTY" if busy or self.dirty(s, o) else "NONE"


class Literal(UpstreamUnwaited, InnerForward, UncoordinatedHeads, HeadUnasked, variant="literal"):
    """The text at its word: upstream-unwaited, inner-forward, uncoordinated-heads and head-unasked together."""

    @invariant
    def step_4_1_is_enough(self, s):
        """Step 4.1: a head that "did not receive any data [...] in between" and has its baton back IDLE has nothing to do."""
        return all(s.status[o] != "TERMINATED" or s.held[o] == 0 for o in self.heads)
