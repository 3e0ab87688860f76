"""The message cost of the baton: batons received after the computation has ended, until every operator has terminated.

A model derived from the baton, with a counter: ``streamproof check streamproof_models.baton.costs:BatonCosts``.
"""

from __future__ import annotations

from streamproof import WEAK, Range, State, action, measure
from streamproof_models.baton.machine import Baton


class BatonCosts(Baton):
    """The baton with a count of batons; more than `counted` are a mistake of the model."""

    name = "baton_costs"
    counted: int = 40
    limits = {"counted": (1, None)}

    def state(self):
        """The same with a counter."""
        return State(**dict(super().state().items()), spent=Range(0, self.counted))

    def has_ended(self, s):
        """Whether the computation has ended: there is no record, and no source will send one."""
        return s.records == 0 and all(s.phase[o] == "TERMINATED" for o in self.sources)

    @action(c="channels", baton=lambda m, c: m.batons[c], fairness=WEAK)
    def receive_baton(self, s, c, baton):
        """An operator receives a baton, which is counted after the end."""
        super().receive_baton(s, c, baton)
        if self.has_ended(s):
            s.spent += 1

    @measure
    def messages_after_the_end(self, s):
        """Messages of the detection that are received after the end of the computation."""
        return s.spent
