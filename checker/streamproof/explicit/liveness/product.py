"""The product of the state graph and one SCC of a Büchi automaton."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from streamproof.explicit.digraph import Digraph
from streamproof.explicit.liveness.buchi import BuchiAutomaton
from streamproof.explicit.liveness.fair_graph import (
    PIECE,
    Constraints,
    FairGraph,
    Mask,
    Numbers,
    gather,
    refuse_more_steps,
)
from streamproof.explicit.state_graph import sources
from streamproof.system.records import dataclass


@dataclass(frozen=True)
class Product:
    """Nodes (a state of the graph and an automaton state that reads it) and edges.

    A node can stutter if its automaton state has a self-loop; stutter edges are not stored.
    """

    state: Numbers
    """Per node, its state of the graph."""
    reader: npt.NDArray[np.int16]
    """Per node, its automaton state."""
    offsets: npt.NDArray[np.int64]
    """Offset of the edges of each node; shape (nodes + 1,)."""
    targets: Numbers
    taken: Constraints
    """Per edge, the fairness constraint that it takes; -1 for edges that change only the automaton state."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.state)

    @property
    def digraph(self) -> Digraph:
        """The nodes and edges, without labels."""
        return Digraph(self.offsets, self.targets)

    @property
    def sources(self) -> Numbers:
        """Per edge, its source node; computed on each access."""
        return sources(self.offsets)

    def only(self, kept: Mask) -> Product:
        """The subgraph of these nodes, in the same order."""
        names = np.cumsum(kept, dtype=np.int32) - np.int32(1)
        inside = np.repeat(kept, np.diff(self.offsets))
        inside &= gather(kept, self.targets)
        offsets = _fewer(self.offsets, inside, kept)
        return Product(
            self.state[kept], self.reader[kept], offsets, gather(names, self.targets[inside]), self.taken[inside]
        )


def product(fair: FairGraph, automaton: BuchiAutomaton, readers: Sequence[int], inside: Sequence[Mask]) -> Product:
    """The product of the automaton states `readers` and, for each of them, the states marked in `inside`.

    Nodes are ordered by automaton state, then by state. Raises `TooLarge` for more edges than can be numbered.
    """
    names = np.full((len(readers), fair.states), -1, dtype=np.int32)
    total = 0
    for at, mask in enumerate(inside):
        count = int(np.count_nonzero(mask))
        names[at, mask] = np.arange(total, total + count, dtype=np.int32)
        total += count
    state = np.concatenate([np.flatnonzero(mask).astype(np.int32) for mask in inside])
    reader = np.concatenate([np.full(np.count_nonzero(m), r, np.int16) for r, m in zip(readers, inside, strict=True)])
    if len(readers) == 1:
        if inside[0].all():
            return Product(state, reader, fair.offsets, fair.targets, fair.taken)
        kept = gather(inside[0], fair.sources)
        kept &= gather(inside[0], fair.targets)
        offsets = _fewer(fair.offsets, kept, inside[0])
        return Product(state, reader, offsets, gather(names[0], fair.targets[kept]), fair.taken[kept])
    before, targets, taken = [], [], []
    for at, one in enumerate(readers):
        for to, other in enumerate(readers):
            if other not in automaton.states[one].after:
                continue
            kept = gather(inside[at], fair.sources) & gather(inside[to], fair.targets)
            before.append(gather(names[at], fair.sources[kept]))
            targets.append(gather(names[to], fair.targets[kept]))
            taken.append(fair.taken[kept])
            if one != other:
                stays = inside[at] & inside[to]
                before.append(names[at][stays])
                targets.append(names[to][stays])
                taken.append(np.full(np.count_nonzero(stays), -1, dtype=np.int16))
    refuse_more_steps(sum(map(len, before)))
    whole = np.concatenate(before)
    order = np.argsort(whole, kind="stable")
    offsets = np.zeros(total + 1, dtype=np.int64)
    np.cumsum(np.bincount(whole, minlength=total), out=offsets[1:])
    return Product(state, reader, offsets, np.concatenate(targets)[order], np.concatenate(taken)[order])


def _fewer(offsets: npt.NDArray[np.signedinteger[Any]], edges: Mask, nodes: Mask) -> npt.NDArray[np.int64]:
    """Offsets of the edges of each node in a subgraph; all kept edges start at kept nodes."""
    counts = np.zeros(len(nodes), dtype=np.int32)
    for first in range(0, len(nodes), PIECE):
        ends = offsets[first : first + PIECE + 1]
        sums = np.zeros(int(ends[-1] - ends[0]) + 1, dtype=np.int32)
        np.cumsum(edges[ends[0] : ends[-1]], dtype=np.int32, out=sums[1:])
        counts[first : first + PIECE] = np.diff(sums[ends - ends[0]])
    found = np.zeros(np.count_nonzero(nodes) + 1, dtype=np.int64)
    np.cumsum(counts[nodes], out=found[1:])
    return found
