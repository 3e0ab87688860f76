"""A part of the product of states and places, as arrays: its components, and what can be reached in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from streamproof.explicit.graph import strong_components
from streamproof.explicit.liveness.arena import PIECE, Arena, Mask, Numbers, gather, refuse_more_steps
from streamproof.explicit.liveness.automaton import Automaton
from streamproof.system.records import dataclass

WALKED = 100_000
"""Regions of at most so many nodes and edges have been walked through before SciPy would be loaded."""


@dataclass(frozen=True)
class Region:
    """Nodes, each a state together with a place that reads it, and the edges between them.

    Staying in a node is possible where its place may follow itself; such edges are not written down.
    """

    state: Numbers
    """Per node, its state."""
    place: npt.NDArray[np.int16]
    """Per node, its place."""
    offsets: Numbers
    """Where the edges of each node begin; one more at the end."""
    targets: Numbers
    owed: npt.NDArray[np.int16]
    """Per edge, the obligation that it takes, or -1; edges that only change the place take none."""

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.state)

    @property
    def sources(self) -> Numbers:
        """Per edge, the node that it leaves, made anew each time."""
        return np.repeat(np.arange(self.nodes, dtype=np.int32), np.diff(self.offsets))

    def components(self) -> tuple[int, Numbers]:
        """How many strongly connected components there are, and which one each node is in."""
        return strong_components(self.offsets, self.targets)

    def reached(self, entries: Numbers) -> tuple[Numbers, Numbers]:
        """The nodes that can be reached from `entries`, nearest first, and the node before each; -1 before an entry."""
        if max(self.nodes, len(self.targets)) <= WALKED:
            return self._reached_in_python(entries)
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order

        # One more node, with edges to all entries, is where the search begins.
        indices = np.concatenate((self.targets, entries))
        offsets = np.append(self.offsets, np.int32(len(indices)))
        weights = np.broadcast_to(np.float64(1), len(indices))
        matrix = csr_array((weights, indices, offsets), shape=(self.nodes + 1, self.nodes + 1), copy=False)
        order, before = breadth_first_order(matrix, self.nodes, directed=True)
        before = np.where(before == self.nodes, -1, np.maximum(before, -1))[: self.nodes].astype(np.int32)
        return order[1:].astype(np.int32), before

    def _reached_in_python(self, entries: Numbers) -> tuple[Numbers, Numbers]:
        offsets, targets = self.offsets.tolist(), self.targets.tolist()
        before = dict.fromkeys(entries.tolist(), -1)
        order = list(before)
        for node in order:
            for target in targets[offsets[node] : offsets[node + 1]]:
                if target not in before:
                    before[target] = node
                    order.append(target)
        found = np.full(self.nodes, -1, dtype=np.int32)
        found[order] = list(before.values())
        return np.array(order, dtype=np.int32), found

    def only(self, kept: Mask) -> Region:
        """The part of the region with these nodes; they keep their order."""
        names = np.cumsum(kept, dtype=np.int32) - np.int32(1)
        inside = np.repeat(kept, np.diff(self.offsets))
        inside &= gather(kept, self.targets)
        offsets = _fewer(self.offsets, inside, kept)
        return Region(
            self.state[kept], self.place[kept], offsets, gather(names, self.targets[inside]), self.owed[inside]
        )


def region(arena: Arena, automaton: Automaton, places: Sequence[int], inside: Sequence[Mask]) -> Region:
    """The nodes of these places, for each of them the states marked, and the edges among them.

    Nodes come place by place, and in the order of the states. Raises `TooLarge` for more edges than can be numbered.
    """
    names = np.full((len(places), arena.states), -1, dtype=np.int32)
    total = 0
    for at, mask in enumerate(inside):
        count = int(np.count_nonzero(mask))
        names[at, mask] = np.arange(total, total + count, dtype=np.int32)
        total += count
    state = np.concatenate([np.flatnonzero(mask).astype(np.int32) for mask in inside])
    place = np.concatenate([np.full(np.count_nonzero(m), p, np.int16) for p, m in zip(places, inside, strict=True)])
    if len(places) == 1:
        if inside[0].all():
            return Region(state, place, arena.offsets.astype(np.int32), arena.targets, arena.owed)
        kept = gather(inside[0], arena.sources)
        kept &= gather(inside[0], arena.targets)
        offsets = _fewer(arena.offsets, kept, inside[0])
        return Region(state, place, offsets, gather(names[0], arena.targets[kept]), arena.owed[kept])
    sources, targets, owed = [], [], []
    for at, one in enumerate(places):
        for to, other in enumerate(places):
            if other not in automaton.places[one].after:
                continue
            kept = gather(inside[at], arena.sources) & gather(inside[to], arena.targets)
            sources.append(gather(names[at], arena.sources[kept]))
            targets.append(gather(names[to], arena.targets[kept]))
            owed.append(arena.owed[kept])
            if one != other:
                stays = inside[at] & inside[to]
                sources.append(names[at][stays])
                targets.append(names[to][stays])
                owed.append(np.full(np.count_nonzero(stays), -1, dtype=np.int16))
    refuse_more_steps(sum(map(len, sources)))
    whole = np.concatenate(sources)
    order = np.argsort(whole, kind="stable")
    offsets = np.zeros(total + 1, dtype=np.int32)
    np.cumsum(np.bincount(whole, minlength=total), out=offsets[1:])
    return Region(state, place, offsets, np.concatenate(targets)[order], np.concatenate(owed)[order])


def _fewer(offsets: npt.NDArray[np.signedinteger[Any]], edges: Mask, nodes: Mask) -> Numbers:
    """Where the edges of each node begin when only these edges and nodes are left; no edge of another node is."""
    counts = np.zeros(len(nodes), dtype=np.int32)
    for first in range(0, len(nodes), PIECE):
        ends = offsets[first : first + PIECE + 1]
        sums = np.zeros(int(ends[-1] - ends[0]) + 1, dtype=np.int32)
        np.cumsum(edges[ends[0] : ends[-1]], dtype=np.int32, out=sums[1:])
        counts[first : first + PIECE] = np.diff(sums[ends - ends[0]])
    found = np.zeros(np.count_nonzero(nodes) + 1, dtype=np.int32)
    np.cumsum(counts[nodes], out=found[1:])
    return found
