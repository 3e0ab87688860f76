"""Cycles in the graph of reachable states as arrays, for graphs too large for `cycles`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from streamproof.explicit.graph import StateGraph, strong_components


def first_round(graph: StateGraph) -> list[int] | None:
    """The states of a cycle, or None when there is none.

    The cycle starts at the first state, in the order of discovery, that lies on any cycle, and is a shortest one through
    it: the same choice as `cycles.find_cycle` makes.
    """
    sources = np.repeat(np.arange(graph.states, dtype=np.int32), np.diff(graph.offsets))
    own = sources[sources == graph.targets]
    first_idle = int(own.min()) if len(own) else graph.states
    _, component = strong_components(graph.offsets, graph.targets)
    shared = np.bincount(component)[component] > 1
    first = min(first_idle, int(shared.argmax()) if shared.any() else graph.states)
    if first == graph.states:
        return None
    return _shortest(graph, first, component == component[first])


def _shortest(graph: StateGraph, start: int, inside: npt.NDArray[np.bool_]) -> list[int]:
    """A shortest way from `start` back to it through the states marked, level by level."""
    before = np.full(graph.states, -1, dtype=np.int64)
    level = np.array([start], dtype=np.int64)
    while len(level):
        counts = graph.offsets[level + 1] - graph.offsets[level]
        sources = np.repeat(level, counts)
        places = np.repeat(graph.offsets[level] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        targets = graph.targets[places].astype(np.int64)
        back = np.flatnonzero(targets == start)
        if len(back):
            way = [int(sources[back[0]])]
            while way[-1] != start:
                way.append(int(before[way[-1]]))
            return way[::-1]
        fresh = inside[targets] & (before[targets] < 0)
        targets, sources = targets[fresh], sources[fresh]
        level, at = np.unique(targets, return_index=True)
        before[level] = sources[at]
    raise AssertionError("a component without a way round")
