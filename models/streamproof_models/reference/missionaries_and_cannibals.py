"""Missionaries and cannibals cross a river in a boat for two, and must not be outnumbered on either bank.

Leslie Lamport's version in the TLA+ examples, in which people are individuals. Published for three of each: 64 states,
283 generated, depth 13; the shortest solution passes through twelve states.
"""

from __future__ import annotations

from itertools import combinations

from streamproof import Array, Enum, Model, Set, State, action, choose, reachable, require


class MissionariesAndCannibals(Model):
    """One step takes one or two people across, if both banks are safe afterwards."""

    name = "reference.missionaries_and_cannibals"
    each: int = 3

    def setup(self):
        self.missionaries = [f"m{i + 1}" for i in range(self.each)]
        self.cannibals = [f"c{i + 1}" for i in range(self.each)]
        people = self.missionaries + self.cannibals
        self.people = people
        self.boatloads = [*((p,) for p in people), *combinations(people, 2)]

    def state(self):
        return State(
            boat=Enum("east", "west"),
            bank=Array(["east", "west"], Set(Enum(*self.people)), init={"east": self.people, "west": []}),
        )

    def require_safe(self, group):
        """There are no missionaries in `group`, or they are not outnumbered: each reason counts as a step of its own."""
        if choose(["no missionaries", "not outnumbered"]) == "no missionaries":
            require(not any(p in group for p in self.missionaries))
        else:
            require(sum(p in group for p in self.cannibals) <= sum(p in group for p in self.missionaries))

    @action
    def cross(self, s):
        """The boat takes one or two people from its bank to the other."""
        load = choose(self.boatloads)
        here = s.boat
        there = "west" if here == "east" else "east"
        require(all(p in s.bank[here] for p in load))
        for p in load:
            s.bank[here].discard(p)
            s.bank[there].add(p)
        s.boat = there
        self.require_safe(s.bank["east"])
        self.require_safe(s.bank["west"])

    @reachable
    def crossed(self, s):
        """Everyone is on the west bank."""
        return len(s.bank["east"]) == 0
