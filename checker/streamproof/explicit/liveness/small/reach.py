"""Which states each place of the automaton can read, and how a run gets there."""

from __future__ import annotations

from dataclasses import field
from operator import and_

from streamproof.explicit.liveness.automaton import Automaton, Part
from streamproof.explicit.liveness.small.arena import Arena, Labels, marked
from streamproof.explicit.liveness.small.region import Region, region
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
    regions: dict[int, tuple[Region, list[int]]] = field(default_factory=dict)
    """Per place of a cyclic part, its region and for each node the node before it on a run; -1 for where the part is
    entered."""

    def enter(self, part: Part) -> Region | None:
        """What can be reached of a part, those before it having been entered; None when nothing can."""
        places = self.automaton.places
        only = part.places[0]
        alone = len(part.places) == 1 and part.cyclic
        if alone and places[only].initial and places[only].label == self.labels.everything:
            self.everywhere.add(only)
            self.reads[only] = b"\x01" * self.arena.graph.states
            if part.marks is None:
                return None
        inside = [self.labels.mask(places[p].label) for p in part.places]
        entries = [bytes(map(and_, self._entries(part, p), mask)) for p, mask in zip(part.places, inside, strict=True)]
        if not part.cyclic or not any(map(any, entries)):
            self.reads.update(
                (p, mask) for p, mask in zip(part.places, entries, strict=True) if p not in self.everywhere
            )
            return None
        whole = region(self.arena, self.automaton, part.places, inside)
        if entries == inside:
            before = [-1] * whole.nodes
        elif only in self.everywhere:
            return whole
        else:
            begins = dict(zip(part.places, entries, strict=True))
            found = whole.reached(
                [n for n, (p, state) in enumerate(zip(whole.place, whole.state, strict=True)) if begins[p][state]]
            )
            kept = bytearray(whole.nodes)
            for node in found:
                kept[node] = 1
            names = {-1: -1} | {node: name for name, node in enumerate(marked(kept))}
            before = [names[found[node]] for node in marked(kept)]
            whole = whole.only(kept)
        for p in part.places:
            reads = bytearray(self.arena.graph.states)
            for at, state in zip(whole.place, whole.state, strict=True):
                if at == p:
                    reads[state] = 1
            self.reads[p] = bytes(reads)
            self.regions[p] = (whole, before)
        return whole

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
            if place in self.regions:
                place, state = self._through(place, state, way)
            way.append(state)
            if self.automaton.places[place].initial and state < self.arena.graph.initial:
                return way[::-1]
            place, state = self._before(place, state)

    def _through(self, place: int, state: int, way: list[int]) -> tuple[int, int]:
        """Go back to where the part of `place` is entered; the states on the way, without that one, are noted."""
        whole, before = self.regions[place]
        node = next(n for n in range(whole.nodes) if whole.state[n] == state and whole.place[n] == place)
        while before[node] >= 0:
            way.append(whole.state[node])
            node = before[node]
        return whole.place[node], whole.state[node]

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
