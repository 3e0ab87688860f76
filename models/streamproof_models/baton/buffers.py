"""Variants of the baton with small buffers, which it shares with records."""

from __future__ import annotations

from streamproof import STRONG, WEAK, action, choose, require
from streamproof_models.baton.machine import Baton


class TightWeak(Baton, variant="tight-weak", without="finish"):
    """As tight, but an operator that finds room only now and then, others being quicker, need not be served eventually."""

    capacity: int = 1
    """Capacity of a channel, in records and batons."""
    hold: int = 1
    """Maximum number of records that an operator holds at a time."""
    spilling: bool = True
    """Whether feedback edges have unlimited capacity."""

    limits = {"capacity": (1, None), "hold": (1, None)}

    def room(self, c):
        """Only a spilling feedback edge is unlimited."""
        return super().room(c) if self.spilling and self.routes.links[c].feedback else self.capacity

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """An operator with room decides at once whether a record is used up, or held until it is sent on."""
        o = self.target[c]
        runs = s.phase[o] != "TERMINATED"
        require(not runs or s.held[o] < self.hold)
        super().receive(s, c)
        if runs:
            used_up = True
            if o in self.source.values():
                used_up = choose([False, True])
            if used_up:
                s.held[o] -= 1
                s.records -= 1

    @action(c="from_operators", fairness=WEAK)
    def emit(self, s, c):
        """What is to be sent on is sent when there is room."""
        super().emit(s, c)


class Tight(TightWeak, variant="tight"):
    """Batons share small buffers with records: one item a channel, one record an operator; feedback edges spill to disk."""

    @action(c="channels", fairness=STRONG)
    def receive(self, s, c):
        """An operator that can receive a record again and again eventually does, whatever else comes between."""
        super().receive(s, c)

    @action(c="channels", baton=lambda m, c: m.batons[c], fairness=STRONG)
    def receive_baton(self, s, c, baton):
        """So does one that finds room again and again for a baton."""
        super().receive_baton(s, c, baton)


class Bounded(Tight, variant="bounded"):
    """As tight, but feedback edges have buffers like every other channel, and no disk."""

    spilling: bool = False


class BoundedWithoutEnd(Bounded, variant="bounded-without-end", without="end_source"):
    """As bounded, while the sources have not ended: no baton is under way."""
