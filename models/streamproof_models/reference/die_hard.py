"""The water puzzle of the film Die Hard 3: measure four litres with jugs of three and five.

A classic first model (Leslie Lamport's TLA+ course). Published: 16 states, 97 generated, depth 8; the shortest
solution passes through seven states.
"""

from __future__ import annotations

from streamproof import Model, Range, State, action, reachable


class DieHard(Model):
    """Fill a jug at the tap, empty it, or pour one into the other until that is full or this is empty."""

    name = "reference.die_hard"
    small_jug: int = 3
    large_jug: int = 5
    goal: int = 4

    def state(self):
        return State(small=Range(0, self.small_jug), large=Range(0, self.large_jug))

    @action
    def fill_small(self, s):
        """From the tap."""
        s.small = self.small_jug

    @action
    def fill_large(self, s):
        """From the tap."""
        s.large = self.large_jug

    @action
    def empty_small(self, s):
        """Into the drain."""
        s.small = 0

    @action
    def empty_large(self, s):
        """Into the drain."""
        s.large = 0

    @action
    def pour_small_into_large(self, s):
        """As much as fits."""
        poured = min(s.small, self.large_jug - s.large)
        s.small -= poured
        s.large += poured

    @action
    def pour_large_into_small(self, s):
        """As much as fits."""
        poured = min(s.large, self.small_jug - s.small)
        s.large -= poured
        s.small += poured

    @reachable
    def measured(self, s):
        """The goal stands in the large jug."""
        return s.large == self.goal
