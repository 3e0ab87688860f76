"""A part of the product of states and places: its components, and what can be reached in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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

    def reached(self, entries: Iterable[int]) -> dict[int, int]:
        """The nodes that can be reached from `entries`, nearest first, and the node before each; -1 before an entry."""
        before = dict.fromkeys(entries, -1)
        order = list(before)
        for node in order:
            for target in self.targets[self.offsets[node] : self.offsets[node + 1]]:
                if target not in before:
                    before[target] = node
                    order.append(target)
        return before

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
    names: list[dict[int, int]] = []
    total = 0
    for states in found:
        names.append(dict(zip(states, range(total, total + len(states)), strict=True)))
        total += len(states)
    offsets, targets, takes = [0], list[int](), list[int]()
    for one, states in zip(places, found, strict=True):
        following = [at for at, other in enumerate(places) if other in automaton.places[one].after]
        for state in states:
            steps = range(graph.offsets[state], graph.offsets[state + 1])
            for at in following:
                known = names[at]
                for step in steps:
                    name = known.get(graph.targets[step])
                    if name is not None:
                        targets.append(name)
                        takes.append(arena.takes[step])
                if places[at] != one and state in known:
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
