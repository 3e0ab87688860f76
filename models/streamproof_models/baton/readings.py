"""Variants of the baton that take a sentence of FLIP-15, part III, at its word, with the number of its step.

docs/protocols/flip-15.md compares each with the rule that replaces it. Where more batons can be under way than the rules
allow, channels have room for some of them."""

from __future__ import annotations

from streamproof import WEAK, action, require
from streamproof_models.baton.machine import Baton


class FirstEntry(Baton, variant="first-entry"):
    """Rule 3: a head takes the first event "not associated with a StreamScope" (step 3.2) for all: one END is enough."""

    def take_ends(self, s, o):
        """Operators other than heads wait for END on all inputs."""
        if o in self.heads:
            require(any(self.is_next(s, c, "END") for c in self.routes.inputs[o]))
        else:
            super().take_ends(s, o)


class Broadcast(Baton, variant="broadcast"):
    """Rule 4: batons are sent on every output (step 1: "broadcast"); operators that cannot answer drop them."""

    def strays(self, o, baton):
        """The outputs of an operator that do not lead back to the baton's goal."""
        return [c for c in self.routes.outputs[o] if c not in dict(self.routes.onward(o, baton))]

    def carried(self):
        """Also every baton on the strays of the operator that sends it."""
        routes = self.routes
        sent = [(o, b) for o in self.heads for b in routes.own(o)]
        sent += [(self.target[c], routes.answer(c, b)) for c, batons in routes.carried.items() for b in batons]
        stray = [(c, baton) for o, baton in sent if baton is not None for c in self.strays(o, baton)]
        return {c: (*batons, *(b for to, b in stray if to == c)) for c, batons in super().carried().items()}

    def send(self, s, o, baton, busy, id):
        """On every output."""
        super().send(s, o, baton, busy, id)
        for c in self.strays(o, baton):
            self.push(s, c, str(baton), busy, id)

    def align(self, s, c, baton, busy, id):
        """Only what leads back."""
        if baton in self.routes.carried[c]:
            super().align(s, c, baton, busy, id)

    def room(self, c):
        """Two batons more."""
        return super().room(c) + 2


class InnerForward(Baton, variant="inner-forward"):
    """Rule 7: the head of an inner loop "will just add its status to the event and forward it downstream" (step 3.3)."""

    def enter_loop(self, s, o, baton, busy, id):
        """Out of the loop at once, without a turn around it."""
        out = baton.entering(self.routes.scope(o)).second_turn
        self.send(s, o, out, self.collective_status(busy, s.held[o] > 0), id)


class SecondPassUnchecked(Baton, variant="second-pass-unchecked"):
    """Rule 7: operators behind an inner loop wait for both copies (fig. 1), and its head adds its status to each (step 3.2):
    IDLE also if it has received a record in between, and sent it around again."""

    def leave_loop(self, s, o, baton, busy, id):
        """The first copy has waited for this one."""
        s.since_baton[o] = "NONE"
        self.send(s, o, baton.second_turn, self.collective_status(busy, s.held[o] > 0), id)


class NotAbsorbed(Baton, variant="not-absorbed"):
    """Rule 7: the head of an inner loop forwards an outer baton each time that it arrives (step 3.3), also around its own
    loop again."""

    def leave_loop(self, s, o, baton, busy, id):
        """Out of the loop, and around it."""
        super().leave_loop(s, o, baton, busy, id)
        s.since_baton[o] = "CLEAN"
        self.send(s, o, baton, self.collective_status(busy, s.held[o] > 0), id)

    def room(self, c):
        """One baton more."""
        return super().room(c) + 1


class NoSecondWait(Baton, variant="no-second-wait"):
    """Rule 7: only joins "wait (align) to receive the event twice" (fig. 1): a baton leaves an inner loop at once, and the
    result of the one that goes around it counts in the next attempt."""

    def enter_loop(self, s, o, baton, busy, id):
        """Around the loop and out of it at once."""
        found = self.collective_status(busy, s.held[o] > 0) or self.is_dirty(s, o)
        s.since_baton[o] = "CLEAN"
        around = baton.entering(self.routes.scope(o))
        for turn in (around, around.second_turn):
            self.send(s, o, turn, found, id)

    def leave_loop(self, s, o, baton, busy, id):
        """The head remembers the result."""
        s.since_baton[o] = "DIRTY" if busy or self.is_dirty(s, o) else "NONE"

    def room(self, c):
        """Two batons more."""
        return super().room(c) + 2


class EagerRetry(Baton, variant="eager-retry"):
    """Rule 9: a single head repeats "with an increased attempt id" (step 4.2) as soon as it receives a record, while the last
    baton is still under way."""

    ids: int = 4

    def note_record(self, s, o):
        """Another attempt at once."""
        if self.routes.is_only_head(o) and s.phase[o] == "ATTEMPTING":
            self.next_attempt(s, o)
        else:
            super().note_record(s, o)

    def room(self, c):
        """Three batons more."""
        return super().room(c) + 3


class EagerRetryStale(EagerRetry, variant="eager-retry-stale"):
    """As eager-retry, but ids are not compared: the return of an aborted attempt is taken for that of the current one."""

    def is_current(self, s, o, id):
        """Always."""
        return True


class UncoordinatedHeads(Baton, variant="uncoordinated-heads"):
    """Rule 10: each of several heads decides alone: step 4 speaks of "the operator"."""

    def confirm(self, s, o, busy):
        """Without another turn."""
        self.decide(s, o, busy)


class CompletedTogether(Baton, variant="completed-together"):
    """Rule 11: a completed scope completes the loops in it: "all operators [...] terminate" (step 4.1.2), inner heads too."""

    @action(o="heads", fairness=WEAK)
    def start_attempts(self, s, o):
        """Only the outermost head makes attempts."""
        if self.routes.scope(o).level == 1:
            super().start_attempts(s, o)
        else:
            require(s.phase[o] == "RUNNING")
            self.take_ends(s, o)
            s.phase[o] = "TERMINATED"
            self.send_end(s, o)


class ScopeKept(Baton, variant="scope-kept"):
    """Rule 11: an event keeps its scope: step 3.2 associates one only if it has none, so the next head does nothing."""

    @action(o="heads", fairness=WEAK)
    def start_attempts(self, s, o):
        """Only where no event can have passed the head of another loop, unless that loop is inside this one."""
        before, _ = self.routes.upstream(o)
        scope = self.routes.scope(o)
        require(all(scope.contains(self.routes.scope(head)) for head in self.heads if head in before))
        super().start_attempts(s, o)


class Literal(InnerForward, UncoordinatedHeads, variant="literal"):
    """The text at its word: inner-forward and uncoordinated-heads together; every operator adds its status (steps 3.1 to
    3.3)."""
