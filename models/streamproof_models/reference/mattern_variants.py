"""What goes wrong in the four-counter method when it counts once, counts the active, or gives up."""

from __future__ import annotations

from streamproof import WEAK, action, require
from streamproof_models.reference.mattern import Mattern


class TwoCounters(Mattern, variant="two-counters"):
    """One round is believed: a message that the token misses is made up for by one that it counts only where it arrived."""

    def detected(self, s):
        return s.token_at == 0 and s.rounds > 0 and s.sum_received == s.sum_sent


class CountsTheActive(Mattern, variant="counts-the-active"):
    """Processes count while they work, so that one which works for long is not noticed."""

    def counts(self, s, i):
        return True


class GivesUp(Mattern, variant="gives-up"):
    """After two rounds there is no other."""

    @action(fairness=WEAK)
    def begin_round(self, s):
        require(s.rounds < 2)
        super().begin_round(s)
