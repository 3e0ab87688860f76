"""From a fair component to a lasso: a real way to it and a real way round in it that pays everything owed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from streamproof.explicit.liveness.outcome import Lasso, without_stutter
from streamproof.explicit.liveness.small.arena import Arena
from streamproof.explicit.liveness.small.fair import Fair
from streamproof.explicit.liveness.small.reach import Reach
from streamproof.explicit.liveness.small.region import Region


def find_lasso(arena: Arena, reach: Reach, fair: Sequence[Fair]) -> Lasso:
    """A lasso on one of the fair components of a part; the stem leads to the nearest of them, as far as that is known."""
    for one in fair:
        rest = [n for n, number in enumerate(one.component) if number >= 0 and one.rests[n]]
        if rest:
            node = _nearest(reach, one.region, rest)[1]
            state = one.region.state[node]
            return Lasso(tuple(without_stutter(reach.stem(one.region.place[node], state))), (state,))
    best = min(
        (*_nearest(reach, one.region, (n for n, number in enumerate(one.component) if number >= 0)), at)
        for at, one in enumerate(fair)
    )
    one, node = fair[best[2]], best[1]
    stem = without_stutter(reach.stem(one.region.place[node], one.region.state[node]))
    kept = bytes(number == one.component[node] for number in one.component)
    inner = one.region.only(kept)
    met = [bytes(mark for mark, inside in zip(mask, kept, strict=True) if inside) for mask in one.met]
    walk = _Round(arena, inner, met, sum(kept[:node])).run()
    states = without_stutter([inner.state[k] for k in walk])
    return Lasso(tuple(stem), tuple(states[:-1]) if len(states) > 1 else tuple(states))


def _nearest(reach: Reach, region: Region, among: Iterable[int]) -> tuple[int, int]:
    """Of some nodes, one with a short stem, and the length of that: the states are in the order of discovery."""
    first: dict[int, int] = {}
    for node in among:
        first.setdefault(region.place[node], node)
    return min((len(reach.stem(place, region.state[node])), node) for place, node in first.items())


class _Round:
    """A walk through one component that starts and ends at the same node and pays everything on its way."""

    def __init__(self, arena: Arena, inner: Region, met: Sequence[bytes], start: int) -> None:
        self.arena, self.inner, self.met = arena, inner, met
        self.offered = [arena.offered[state] for state in inner.state]
        self.way = [start]

    def run(self) -> list[int]:
        """The nodes of the walk, the first one again at the end."""
        for mask in self.met:
            if not any(mask[node] for node in self.way):
                self._walk({node for node, met in enumerate(mask) if met})
        for at in range(len(self.arena.obligations)):
            self._pay(1 << at)
        if self.way[-1] != self.way[0]:
            self._walk({self.way[0]})
        return self.way

    def _pay(self, owed: int) -> None:
        """Go on until the walk pays what is owed to one obligation, given as a set of it alone."""
        inner, weak = self.inner, owed & self.arena.weak
        states = [inner.state[node] for node in self.way]
        if any(self.arena.taken(a, b) & owed for a, b in pairwise(states) if a != b):
            return
        if weak and not all(self.offered[node] & owed for node in self.way):
            return
        if not any(offered & owed for offered in self.offered):
            return
        taking: dict[int, int] = {}
        for node in range(inner.nodes):
            for edge in inner.edges(node):
                if inner.takes[edge] & owed:
                    taking.setdefault(node, inner.targets[edge])
        resting = {node for node, offered in enumerate(self.offered) if not offered & owed} if weak else set()
        self._walk(taking.keys() | resting)
        here = self.way[-1]
        if here not in resting:
            self.way.append(taking[here])

    def _walk(self, goal: set[int]) -> None:
        """Go on to a nearest node of the component that is in `goal`."""
        here = self.way[-1]
        if here in goal:
            return
        before = {here: here}
        level = [here]
        while level:
            fresh: dict[int, int] = {}
            for node in level:
                for edge in self.inner.edges(node):
                    target = self.inner.targets[edge]
                    if target not in before:
                        fresh.setdefault(target, node)
            before |= fresh
            level = sorted(fresh)
            hit = next((node for node in level if node in goal), None)
            if hit is not None:
                back = [hit]
                while back[-1] != here:
                    back.append(before[back[-1]])
                self.way += back[-2::-1]
                return
        raise AssertionError("a component is strongly connected")
