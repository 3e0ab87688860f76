"""Which states each place of the automaton can read, and how a run gets there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from streamproof.explicit.liveness.automaton import Automaton, Part
from streamproof.explicit.liveness.small.arena import Arena, Labels, both, marked
from streamproof.explicit.liveness.small.region import Region, reached, region
from streamproof.system.records import dataclass


@dataclass(frozen=True)
class Reach:
    """The part of the product that can be reached, found part by part of the automaton.

    Every state of the graph can be reached, so a place that begins a run and reads everything for ever reads all of them.
    """

    arena: Arena
    automaton: Automaton
    labels: Labels
    everywhere: set[int] = field(default_factory=set)
    """Places that read every state, on a run that has visited no other place."""
    reads: dict[int, bytes] = field(default_factory=dict)
    """Per place, the states that it reads on some run."""
    ways: dict[int, tuple[tuple[int, ...], dict[int, tuple[int, int]]]] = field(default_factory=dict)
    """Per place of a cyclic part, the places of the part, and for each state that it reads what is before that on a run: the
    position of one of them, and a state; -1 for where the part is entered."""

    def enter(self, part: Part) -> Region | None:
        """What can be reached of a part, those before it having been entered; None when nothing can, or when no run that
        stays there is accepted."""
        places = self.automaton.places
        only = part.places[0]
        alone = len(part.places) == 1 and part.cyclic
        if alone and places[only].initial and places[only].label == self.labels.everything:
            self.everywhere.add(only)
            self.reads[only] = b"\x01" * self.arena.graph.states
            if part.marks is None:
                return None
        inside = [self.labels.mask(places[p].label) for p in part.places]
        entries = [both(self._entries(part, p), mask) for p, mask in zip(part.places, inside, strict=True)]
        if not part.cyclic or not any(map(any, entries)):
            self.reads.update(
                (p, mask) for p, mask in zip(part.places, entries, strict=True) if p not in self.everywhere
            )
            return None
        if entries == inside:
            found = [dict.fromkeys(marked(mask), (-1, -1)) for mask in inside]
        elif only in self.everywhere:
            return region(self.arena, self.automaton, part.places, inside)
        else:
            found = reached(self.arena, self.automaton, part.places, inside, entries)
            inside = [_mask(states, self.arena.graph.states) for states in found]
        self.reads.update(zip(part.places, inside, strict=True))
        for place, before in zip(part.places, found, strict=True):
            self.ways[place] = (part.places, before)
        return None if part.marks is None else region(self.arena, self.automaton, part.places, inside)

    def _entries(self, part: Part, place: int) -> bytes:
        """The states that `place` may read first of its part, whatever its label says."""
        graph = self.arena.graph
        found = bytearray(graph.states)
        if self.automaton.places[place].initial:
            found[: graph.initial] = b"\x01" * graph.initial
        for other in self.automaton.before(place):
            if other not in part.places:
                if all(self.reads[other]):
                    return self.reads[other]
                for state in marked(self.reads[other]):
                    found[state] = 1
                    for target in graph.targets[graph.offsets[state] : graph.offsets[state + 1]]:
                        found[target] = 1
        return bytes(found)

    def stem(self, place: int, state: int) -> list[int]:
        """The states of a run whose last one is read by `place`, the first an initial one."""
        way: list[int] = []
        while True:
            if place in self.everywhere:
                return [*self.arena.graph.path(state), *reversed(way)]
            if place in self.ways:
                place, state = self._through(place, state, way)
            way.append(state)
            if self.automaton.places[place].initial and state < self.arena.graph.initial:
                return way[::-1]
            place, state = self._before(place, state)

    def _through(self, place: int, state: int, way: list[int]) -> tuple[int, int]:
        """Go back to where the part of `place` is entered; the states on the way, without that one, are noted."""
        while True:
            places, before = self.ways[place]
            at, earlier = before[state]
            if at < 0:
                return place, state
            way.append(state)
            place, state = places[at], earlier

    def _before(self, place: int, state: int) -> tuple[int, int]:
        """A place of an earlier part, and the state that it reads, before `place` reads `state`."""
        own = next(part for part in self.automaton.parts if place in part.places)
        others = [other for other in self.automaton.before(place) if other not in own.places]
        for other in others:
            if self.reads[other][state]:
                return other, state
        graph = self.arena.graph
        for other in others:
            for source in marked(self.reads[other]):
                if state in graph.targets[graph.offsets[source] : graph.offsets[source + 1]]:
                    return other, source
        raise AssertionError("a node that was reached has one before it")


def _mask(numbers: Iterable[int], states: int) -> bytes:
    mask = bytearray(states)
    for number in numbers:
        mask[number] = 1
    return bytes(mask)
