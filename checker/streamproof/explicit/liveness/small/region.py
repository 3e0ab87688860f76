"""A part of the product of states and places, what can be reached in it, and its components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from streamproof.explicit.cycles import Graph, components
from streamproof.explicit.liveness.automaton import Automaton
from streamproof.explicit.liveness.small.arena import Arena, marked
from streamproof.system.records import dataclass


@dataclass(frozen=True)
class Region:
    """Nodes, each a state together with a place that reads it, and the edges between them.

    Staying in a node is possible where its place may follow itself; such edges are not written down.
    """

    state: Sequence[int]
    """Per node, its state."""
    place: Sequence[int]
    """Per node, its place."""
    offsets: Sequence[int]
    """Where the edges of each node begin; one more at the end."""
    targets: Sequence[int]
    takes: Sequence[int]
    """Per edge, the obligations that it takes; edges that only change the place take none."""

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.state)

    def edges(self, node: int) -> range:
        """The numbers of the edges that leave a node."""
        return range(self.offsets[node], self.offsets[node + 1])

    def components(self) -> Iterator[list[int]]:
        """The strongly connected components."""
        return components(Graph(self.offsets, self.targets), bytearray(b"\x01" * self.nodes))

    def only(self, kept: Sequence[int]) -> Region:
        """The part of the region with the nodes that are marked; they keep their order."""
        nodes = marked(kept)
        names = dict(zip(nodes, range(len(nodes)), strict=True))
        offsets, targets, takes = [0], list[int](), list[int]()
        for node in nodes:
            for edge in self.edges(node):
                name = names.get(self.targets[edge])
                if name is not None:
                    targets.append(name)
                    takes.append(self.takes[edge])
            offsets.append(len(targets))
        return Region([self.state[n] for n in nodes], [self.place[n] for n in nodes], offsets, targets, takes)


def region(arena: Arena, automaton: Automaton, places: Sequence[int], inside: Sequence[bytes]) -> Region:
    """The nodes of these places, for each of them the states marked, and the edges among them.

    Nodes come place by place, and in the order of the states.
    """
    graph, found = arena.graph, [marked(mask) for mask in inside]
    if len(places) == 1 and len(found[0]) == graph.states:
        return Region(found[0], [places[0]] * graph.states, graph.offsets, graph.targets, arena.takes)
    names = [[-1] * graph.states for _ in places]
    number = count()
    for known, states in zip(names, found, strict=True):
        for state in states:
            known[state] = next(number)
    offsets, targets, takes = [0], list[int](), list[int]()
    for here, following, states in zip(places, _following(automaton, places), found, strict=True):
        for state in states:
            steps = slice(graph.offsets[state], graph.offsets[state + 1])
            for at in following:
                known = names[at]
                for target, taken in zip(graph.targets[steps], arena.takes[steps], strict=True):
                    if known[target] >= 0:
                        targets.append(known[target])
                        takes.append(taken)
                if places[at] != here and known[state] >= 0:
                    targets.append(known[state])
                    takes.append(0)
            offsets.append(len(targets))
    return Region(
        [state for states in found for state in states],
        [place for place, states in zip(places, found, strict=True) for _ in states],
        offsets,
        targets,
        takes,
    )


def reached(
    arena: Arena, automaton: Automaton, places: Sequence[int], inside: Sequence[bytes], entries: Sequence[bytes]
) -> list[dict[int, tuple[int, int]]]:
    """For each place the states that can be reached from the entries, with what is before each: the position of a place and
    a state, -1 and -1 before an entry. Nearer ones are found first, so ways back are shortest ones.

    Entries must be inside.
    """
    graph, before = arena.graph, [dict[int, tuple[int, int]]() for _ in places]
    order = [(at, state) for at, mask in enumerate(entries) for state in marked(mask)]
    for at, state in order:
        before[at][state] = (-1, -1)
    following = _following(automaton, places)
    for node in order:
        at, state = node
        targets = graph.targets[graph.offsets[state] : graph.offsets[state + 1]]
        for to in following[at]:
            known, allowed = before[to], inside[to]
            for target in targets:
                if allowed[target] and target not in known:
                    known[target] = node
                    order.append((to, target))
            if to != at and allowed[state] and state not in known:
                known[state] = node
                order.append((to, state))
    return before


def _following(automaton: Automaton, places: Sequence[int]) -> list[list[int]]:
    """For each of the places, the positions of those that may follow it."""
    return [[at for at, other in enumerate(places) if other in automaton.places[one].after] for one in places]
