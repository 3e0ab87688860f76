"""From a fair component to a lasso: a real way to it and a real way round in it that pays everything owed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from streamproof.explicit.liveness.arena import Arena, Labels, Mask
from streamproof.explicit.liveness.automaton import Automaton, Part
from streamproof.explicit.liveness.fair import Fair, marks_met, resting
from streamproof.explicit.liveness.outcome import Lasso, without_stutter
from streamproof.explicit.liveness.reach import Reach
from streamproof.explicit.liveness.region import Region


def find_lasso(
    arena: Arena, automaton: Automaton, part: Part, labels: Labels, reach: Reach, fair: Sequence[Fair]
) -> Lasso:
    """A lasso on one of the fair components of a part; the stem leads to the nearest of them, as far as that is known."""
    for one in fair:
        rest = resting(arena, automaton, one.region, marks_met(automaton, part, labels, one.region))
        rest &= one.component >= 0
        if rest.any():
            node = _nearest(reach, one.region, rest)[1]
            state = int(one.region.state[node])
            return Lasso(tuple(without_stutter(reach.stem(int(one.region.place[node]), state))), (state,))
    best = min((*_nearest(reach, one.region, one.component >= 0), at) for at, one in enumerate(fair))
    one, node = fair[best[2]], best[1]
    component = one.component == one.component[node]
    inner = one.region.only(component)
    node = int(np.count_nonzero(component[:node]))
    stem = without_stutter(reach.stem(int(inner.place[node]), int(inner.state[node])))
    walk = _Round(arena, inner, marks_met(automaton, part, labels, inner), node).run()
    states = without_stutter([int(inner.state[k]) for k in walk])
    return Lasso(tuple(stem), tuple(states[:-1]) if len(states) > 1 else tuple(states))


def _nearest(reach: Reach, region: Region, among: Mask) -> tuple[int, int]:
    """Of the nodes marked, one with a short stem, and the length of that: the states are in the order of discovery."""
    found = np.flatnonzero(among)
    ways = []
    for place in np.unique(region.place[found]):
        mine = found[region.place[found] == place]
        node = int(mine[np.argmin(region.state[mine])])
        ways.append((len(reach.stem(int(place), int(region.state[node]))), node))
    return min(ways)


class _Round:
    """A walk through one component that starts and ends at the same node and pays everything on its way."""

    def __init__(self, arena: Arena, inner: Region, met: Sequence[Mask], start: int) -> None:
        self.arena, self.inner, self.met = arena, inner, met
        self.sources, self.offsets = inner.sources, inner.offsets.astype(np.int64)
        self.way = [start]

    def run(self) -> list[int]:
        """The nodes of the walk, the first one again at the end."""
        for mask in self.met:
            if not any(mask[node] for node in self.way):
                self._walk(mask)
        for obligation in range(len(self.arena.obligations)):
            self._pay(obligation)
        start = np.zeros(self.inner.nodes, dtype=np.bool_)
        start[self.way[0]] = True
        if self.way[-1] != self.way[0]:
            self._walk(start)
        return self.way

    def _pay(self, obligation: int) -> None:
        arena, inner = self.arena, self.inner
        states = [int(inner.state[node]) for node in self.way]
        if any(arena.takes(obligation, a, b) for a, b in pairwise(states) if a != b):
            return
        weak = arena.is_weak(obligation)
        if weak and not all(arena.is_enabled(obligation, state) for state in states):
            return
        enabled = arena.enabled(obligation)[inner.state]
        if not enabled.any():
            return
        taking = np.flatnonzero(inner.owed == obligation)
        goal = np.zeros(inner.nodes, dtype=np.bool_)
        goal[self.sources[taking]] = True
        if weak:
            goal |= ~enabled
        self._walk(goal)
        here = self.way[-1]
        if weak and not enabled[here]:
            return
        mine = taking[self.sources[taking] == here]
        self.way.append(int(inner.targets[mine[0]]))

    def _walk(self, goal: Mask) -> None:
        """Go on to a nearest node of the component that is marked."""
        here = self.way[-1]
        if goal[here]:
            return
        before = np.full(self.inner.nodes, -1, dtype=np.int32)
        before[here] = here
        level: npt.NDArray[np.int64] = np.array([here], dtype=np.int64)
        while len(level):
            counts = self.offsets[level + 1] - self.offsets[level]
            edges = np.repeat(self.offsets[level] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
            targets, sources = self.inner.targets[edges], np.repeat(level, counts)
            fresh = before[targets] < 0
            targets, at = np.unique(targets[fresh], return_index=True)
            before[targets] = sources[fresh][at]
            hit = targets[goal[targets]]
            if len(hit):
                back = [int(hit[0])]
                while back[-1] != here:
                    back.append(int(before[back[-1]]))
                self.way += back[-2::-1]
                return
            level = targets.astype(np.int64)
        raise AssertionError("a component is strongly connected")
