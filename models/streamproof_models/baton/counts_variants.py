"""Variants of the baton with numbers in place of queues: those of `baton` that end early."""

from __future__ import annotations

from streamproof import require
from streamproof_models.baton import readings, variants
from streamproof_models.baton.counts import BatonCounts


class FirstEndCounts(variants.FirstEnd, BatonCounts, variant="first-end"):
    """Rules 2 and 3: END on one input counts as END on all."""


class FirstEntryCounts(readings.FirstEntry, BatonCounts, variant="first-entry"):
    """Rule 3: a head takes END on one input for all."""


class NoAlignmentCounts(variants.NoAlignment, BatonCounts, variant="no-alignment"):
    """Rule 5: an operator forwards each copy of a baton at once, and the first one that returns to the head decides."""


class FirstStatusCounts(BatonCounts, variant="first-status"):
    """Rule 6: an operator that waits for a baton on several inputs reads its own status when the first copy arrives."""

    def align(self, s, c, baton, busy, id):
        """The status of a later moment does not count."""
        o = self.target[c]
        join = f"{baton} at {o}"
        if join not in self.joins or o in self.heads:
            super().align(s, c, baton, busy, id)
        else:
            inputs = self.waited[join]
            require(not s.arrived[inputs[c]])
            first = not any(s.arrived[p] for p in inputs.values())
            s.busy[join] = self.collective_status(s.busy[join], busy or (first and s.held[o] > 0))
            s.arrived[inputs[c]] = True
            if all(s.arrived[p] for p in inputs.values()):
                together = s.busy[join]
                for p in inputs.values():
                    s.arrived[p] = False
                s.busy[join] = False
                self.send(s, o, baton, together, id)


class StatusDroppedCounts(variants.StatusDropped, BatonCounts, variant="status-dropped"):
    """Rule 6: an operator overwrites the status of a baton: an IDLE one after a BUSY one makes it IDLE."""


class HeadUnaskedCounts(variants.HeadUnasked, BatonCounts, variant="head-unasked"):
    """Rule 6: a head that starts an attempt does not add its own status."""


class InnerForwardCounts(readings.InnerForward, BatonCounts, variant="inner-forward"):
    """Rule 7: the head of an inner loop adds its status to an outer baton and sends it out of the loop."""


class SecondPassUncheckedCounts(readings.SecondPassUnchecked, BatonCounts, variant="second-pass-unchecked"):
    """Rule 7: the head of an inner loop adds its status to each of two turns."""


class NotAbsorbedCounts(readings.NotAbsorbed, BatonCounts, variant="not-absorbed"):
    """Rule 7: the head of an inner loop forwards an outer baton each time that it arrives."""


class NoSecondWaitCounts(readings.NoSecondWait, BatonCounts, variant="no-second-wait"):
    """Rule 7: a baton leaves an inner loop at once; what it finds on its way around the loop counts in the next attempt."""


class NoDirtyCheckCounts(variants.NoDirtyCheck, BatonCounts, variant="no-dirty-check"):
    """Rules 7 and 8: a head ignores records received since it sent the baton."""


class TimeoutCounts(variants.Timeout, BatonCounts, variant="timeout"):
    """A head whose feedback inputs were empty for a while terminates."""


class StaleAttemptCounts(variants.StaleAttempt, BatonCounts, variant="stale-attempt"):
    """Rule 9: a head does not compare ids."""


class UncoordinatedHeadsCounts(readings.UncoordinatedHeads, BatonCounts, variant="uncoordinated-heads"):
    """Rule 10: each of several heads decides alone."""


class MarkResetCounts(variants.MarkReset, BatonCounts, variant="mark-reset"):
    """Rule 10: a head begins each lap of an attempt with a new mark."""


class InnerFirstCounts(variants.InnerFirst, BatonCounts, variant="inner-first"):
    """Rule 11: the head of an inner loop that receives an outer baton completes its own scope first, and drops the baton."""


class CompletedTogetherCounts(readings.CompletedTogether, BatonCounts, variant="completed-together"):
    """Rule 11: a completed scope completes the loops in it."""


class UnscopedCounts(variants.Unscoped, BatonCounts, variant="unscoped"):
    """A loop begins in another and is closed outside it."""

    topology: str = "unscoped"


class LiteralCounts(readings.Literal, BatonCounts, variant="literal"):
    """The text at its word: inner-forward and uncoordinated-heads together."""


class ReopenedCounts(variants.Reopened, BatonCounts, variant="reopened"):
    """As timeout, but a head that has terminated attempts again when it receives a record."""
