"""Which states each place of the automaton can read, and how a run gets there."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from streamproof.explicit.liveness.arena import Arena, Labels, Mask, Numbers, gather
from streamproof.explicit.liveness.automaton import Automaton, Part
from streamproof.explicit.liveness.region import Region, region
from streamproof.system.records import dataclass


@dataclass
class Reach:
    """The part of the product that can be reached, found part by part of the automaton.

    Every state of the graph can be reached, so a place that begins a run and reads everything for ever reads all of them.
    """

    arena: Arena
    automaton: Automaton
    labels: Labels
    everywhere: set[int] = field(default_factory=set)
    """Places that read every state, on a run that has visited no other place."""
    reads: dict[int, Mask] = field(default_factory=dict)
    """Per place, the states that it reads on some run."""
    regions: dict[int, tuple[Region, Numbers]] = field(default_factory=dict)
    """Per place of a cyclic part, its region and for each node the node before it on a run; -1 for where the part is
    entered."""

    def enter(self, part: Part) -> Region | None:
        """What can be reached of a part, those before it having been entered; None when nothing can."""
        arena, places = self.arena, self.automaton.places
        if len(part.places) == 1:
            only = part.places[0]
            place = places[only]
            if part.cyclic and place.initial and place.label == self.labels.everything:
                self.everywhere.add(only)
                self.reads[only] = np.ones(arena.states, dtype=np.bool_)
                if part.marks is None:
                    return None
        entries = {p: self._entries(part, p) & self.labels.mask(places[p].label) for p in part.places}
        if not any(mask.any() for mask in entries.values()):
            self.reads.update({p: mask for p, mask in entries.items() if p not in self.everywhere})
            return None
        if not part.cyclic:
            self.reads.update(entries)
            return None
        inside = [self.labels.mask(places[p].label) for p in part.places]
        whole = region(arena, self.automaton, part.places, inside)
        if all((entries[p] == mask).all() for p, mask in zip(part.places, inside, strict=True)):
            before = np.full(whole.nodes, -1, dtype=np.int32)
        elif part.places[0] in self.everywhere:
            return whole
        else:
            begins = [np.flatnonzero(entries[p][whole.state] & (whole.place == p)) for p in part.places]
            order, before = whole.reached(np.sort(np.concatenate(begins)).astype(np.int32))
            if len(order) < whole.nodes:
                kept = np.zeros(whole.nodes, dtype=np.bool_)
                kept[order] = True
                names = np.cumsum(kept, dtype=np.int32) - np.int32(1)
                before = np.where(before >= 0, names[before], np.int32(-1))[kept]
                whole = whole.only(kept)
        for p in part.places:
            reads = np.zeros(arena.states, dtype=np.bool_)
            reads[whole.state[whole.place == p]] = True
            self.reads[p] = reads
            self.regions[p] = (whole, before)
        return whole

    def _entries(self, part: Part, place: int) -> Mask:
        """The states that `place` may read first of its part, whatever its label says."""
        found = np.zeros(self.arena.states, dtype=np.bool_)
        if self.automaton.places[place].initial:
            found[: self.arena.graph.initial] = True
        for other in self.automaton.before(place):
            if other not in part.places:
                reads = self.reads[other]
                found |= reads
                if not reads.all() and reads.any():
                    found[self.arena.targets[gather(reads, self.arena.sources)]] = True
        return found

    def stem(self, place: int, state: int) -> list[int]:
        """The states of a run whose last one is read by `place`, the first an initial one."""
        way: list[int] = []
        while True:
            if place in self.everywhere:
                return [*self.arena.graph.path(state), *reversed(way)]
            if place in self.regions:
                place, state = self._through(place, state, way)
            way.append(state)
            if self.automaton.places[place].initial and state < self.arena.graph.initial:
                return way[::-1]
            place, state = self._before(place, state)

    def _through(self, place: int, state: int, way: list[int]) -> tuple[int, int]:
        """Go back to where the part of `place` is entered; the states on the way, without that one, are noted."""
        whole, before = self.regions[place]
        node = int(np.flatnonzero((whole.state == state) & (whole.place == place))[0])
        while before[node] >= 0:
            way.append(int(whole.state[node]))
            node = int(before[node])
        return int(whole.place[node]), int(whole.state[node])

    def _before(self, place: int, state: int) -> tuple[int, int]:
        """A place of an earlier part, and the state that it reads, before `place` reads `state`."""
        own = next(part for part in self.automaton.parts if place in part.places)
        others = [other for other in self.automaton.before(place) if other not in own.places]
        for other in others:
            if self.reads[other][state]:
                return other, state
        steps = np.flatnonzero(self.arena.targets == state)
        for other in others:
            sources = self.arena.sources[steps]
            found = np.flatnonzero(self.reads[other][sources])
            if len(found):
                return other, int(sources[found[0]])
        raise AssertionError("a node that was reached has one before it")
