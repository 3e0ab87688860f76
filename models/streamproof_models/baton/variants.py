"""Variants of the baton that omit or change one rule; `baton_readings` has those that take a sentence of FLIP-15 at its word.

Where more batons can be under way than the rules allow, channels have room for some of them."""

from __future__ import annotations

from streamproof import WEAK, action, require
from streamproof_models.baton.machine import Baton, Routes
from streamproof_models.scopes.topologies import topology


class FirstEnd(Baton, variant="first-end"):
    """Rules 2 and 3: END on one input counts as END on all."""

    def take_ends(self, s, o):
        """END is left where it is."""
        require(any(self.is_next(s, c, "END") for c in self.routes.inputs[o]))


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


class StatusDropped(Baton, variant="status-dropped"):
    """Rule 6: an operator overwrites the status of a baton: an IDLE one after a BUSY one makes it IDLE."""

    def collective_status(self, busy, busy_too):
        """The last one."""
        return busy_too


class NoDirtyCheck(Baton, variant="no-dirty-check"):
    """Rules 7 and 8: a head ignores records received since it sent the baton."""

    def is_dirty(self, s, o):
        """Never."""
        return False


class Timeout(Baton, variant="timeout"):
    """What the proposal replaces: a head whose feedback inputs were empty for a while terminates, however long the while."""

    @action(o="heads")
    def time_out(self, s, o):
        """Nothing more comes from outside the loop, and nothing is there from inside."""
        require(s.phase[o] == "ATTEMPTING")
        require(s.held[o] == 0)
        require(all(len(s.channel[c]) == 0 for c in self.routes.feedback_inputs[o]))
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
