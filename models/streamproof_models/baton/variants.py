"""Variants of the baton that omit or change one rule; `baton_readings` has those that take a sentence of FLIP-15 at its word.

Where more batons can be under way than the rules allow, channels have room for some of them."""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, State, action, invariant, require
from streamproof_models.baton.machine import Baton, Routes
from streamproof_models.scopes.topologies import topology


class FirstEnd(Baton, variant="first-end"):
    """Rules 2 and 3: END on one input counts as END on all."""

    def take_ends(self, s, o):
        """END is left where it is."""
        require(any(self.is_next(s, c, "END") for c in self.routes.inputs[o]))


class UpstreamUnwaited(Baton, variant="upstream-unwaited"):
    """Rule 2: an operator outside loops that holds a record sends END with the status BUSY, and is not visited again; the
    proposal terminates such operators "in-order after all prior operators"."""

    @action(o="others", fairness=WEAK)
    def terminate(self, s, o):
        """END goes on with the status; the operator terminates when it holds no record."""
        require(s.phase[o] == "RUNNING")
        self.take_ends(s, o)
        s.phase[o] = "ATTEMPTING" if s.held[o] > 0 else "TERMINATED"
        for c in self.routes.outputs[o]:
            self.push(s, c, "END", busy=s.held[o] > 0)

    @action(o="others", fairness=WEAK)
    def terminate_later(self, s, o):
        """It holds no record any more."""
        require(s.phase[o] == "ATTEMPTING")
        require(s.held[o] == 0)
        s.phase[o] = "TERMINATED"

    @action(o="heads", fairness=WEAK)
    def start_attempts(self, s, o):
        """The first attempt is BUSY if one of the ENDs is."""
        require(s.phase[o] == "RUNNING")
        busy = any(len(s.channel[c]) > 0 and s.channel[c].head.busy for c in self.routes.inputs[o]) or s.held[o] > 0
        self.take_ends(s, o)
        s.phase[o] = "ATTEMPTING"
        self.attempt(s, o, busy)


class Unstarted(Baton, variant="unstarted"):
    """Rule 2: an operator that has not started counts as terminated."""

    def state(self):
        """Operators are to start."""
        phase = {t: "RUNNING" if t in self.sources else "TERMINATED" for t in self.tasks}
        declared = dict(super().state().items())
        declared["phase"] = Array(self.tasks, Enum("RUNNING", "ATTEMPTING", "TERMINATED"), init=phase)
        return State(**declared, started=Array(self.operators, Bool()))

    @action(o="operators", fairness=WEAK)
    def start(self, s, o):
        """An operator starts."""
        require(not s.started[o])
        s.started[o] = True
        s.phase[o] = "RUNNING"


class NoAlignment(Baton, variant="no-alignment"):
    """Rule 5: an operator forwards each copy of a baton at once, and the first one that returns to the head decides."""

    def setup(self):
        """No joins."""
        super().setup()
        self.joins = {}

    def room(self, c):
        """Two batons more."""
        return super().room(c) + 2


class BlockingAlignment(Baton, variant="blocking-alignment"):
    """Rule 5: records behind a baton are blocked while an operator waits for it elsewhere, as behind a checkpoint barrier."""

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """Only from channels on which no baton has arrived that is waited for."""
        if self.joins:
            require(all(c not in arrived for arrived in s.arrived))
        super().receive(s, c)


class FirstStatus(Baton, variant="first-status"):
    """Rule 6: an operator that waits for a baton on several inputs reads its own status when the first copy arrives."""

    def align(self, s, c, baton, busy, id):
        """The status of a later moment does not count."""
        o = self.target[c]
        join = f"{baton} at {o}"
        if join not in self.joins or o in self.heads:
            super().align(s, c, baton, busy, id)
        else:
            require(c not in s.arrived[join])
            first = len(s.arrived[join]) == 0
            s.busy[join] = self.collective_status(s.busy[join], busy or (first and s.held[o] > 0))
            s.arrived[join].add(c)
            if len(s.arrived[join]) == len(self.joins[join]):
                together = s.busy[join]
                s.arrived[join].clear()
                s.busy[join] = False
                self.send(s, o, baton, together, id)


class StatusDropped(Baton, variant="status-dropped"):
    """Rule 6: an operator overwrites the status of a baton: an IDLE one after a BUSY one makes it IDLE."""

    def collective_status(self, busy, busy_too):
        """The last one."""
        return busy_too


class HeadUnasked(Baton, variant="head-unasked"):
    """Rule 6: a head that starts an attempt does not add its own status, against step 3.2 ("Add operator status")."""

    def attempt(self, s, o, busy):
        """The baton starts as IDLE."""
        super().attempt(s, o, False)

    @invariant
    def step_4_1_is_enough(self, s):
        """Step 4.1: a head that "did not receive any data [...] in between" and has its baton back IDLE has nothing to do."""
        return all(s.phase[o] != "TERMINATED" or s.held[o] == 0 for o in self.heads)


class NoDirtyCheck(Baton, variant="no-dirty-check"):
    """Rules 7 and 8: a head ignores records received since it sent the baton."""

    def is_dirty(self, s, o):
        """Never."""
        return False


class MarkReset(Baton, variant="mark-reset"):
    """Rule 10: a head begins each lap of an attempt with a new mark; the second lap does not carry what the first found."""

    def confirm(self, s, o, busy):
        """Around once more, as if it were the first time."""
        _, confirmation = self.routes.own(o)
        s.since_baton[o] = "CLEAN"
        self.send(s, o, confirmation, s.held[o] > 0, s.id[o])


class Timeout(Baton, variant="timeout"):
    """What the proposal replaces: a head whose feedback inputs were empty for a while terminates, however long the while."""

    @action(o="heads")
    def time_out(self, s, o):
        """Nothing more comes from outside the loop, and nothing is there from inside."""
        require(s.phase[o] == "ATTEMPTING")
        require(s.held[o] == 0)
        require(all(self.is_empty(s, c) for c in self.routes.feedback_inputs[o]))
        s.phase[o] = "TERMINATED"
        self.send_end(s, o)


class Reopened(Timeout, variant="reopened"):
    """As timeout, but a head that has terminated attempts again when it receives a record."""

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """The record is not lost."""
        o = self.target[c]
        if o in self.heads and s.phase[o] == "TERMINATED":
            s.phase[o] = "ATTEMPTING"
        super().receive(s, c)


class StaleAttempt(Baton, variant="stale-attempt"):
    """Rule 9: a head does not compare ids."""

    def is_current(self, s, o, id):
        """Always."""
        return True


class InnerFirst(Baton, variant="inner-first"):
    """Rule 11: the head of an inner loop that receives an outer baton completes its own scope first, and drops the baton."""

    def enter_loop(self, s, o, baton, busy, id):
        """An attempt of its own scope."""
        if s.phase[o] == "RUNNING":
            s.phase[o] = "ATTEMPTING"
            self.attempt(s, o, s.held[o] > 0)

    def room(self, c):
        """One baton more."""
        return super().room(c) + 1


class Unscoped(Baton, variant="unscoped"):
    """A loop begins in another and is closed outside it, as the API before the proposal allowed."""

    topology: str = "unscoped"

    def make_routes(self):
        """If loops are not scopes, batons go on every path that leads back."""
        return Routes(topology(self.topology), scoped=False)


class Restored(Baton, variant="restored"):
    """An attempt that goes on from a checkpoint: its channels begin with records. All properties hold."""

    @action(c="channels")
    def replay(self, s, c):
        """Another record is there from the beginning: nothing has happened yet, or all that has happened left no trace. While
        all run there is neither END nor a baton."""
        require(s.records < self.work)
        require(all(phase == "RUNNING" for phase in s.phase) and all(held == 0 for held in s.held))
        s.records += 1
        self.push(s, c, "RECORD")
