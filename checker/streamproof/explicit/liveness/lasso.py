"""From a fair component to a lasso: a path to it, and a cycle in it that satisfies every fairness constraint."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from streamproof.explicit.liveness.buchi import BuchiAutomaton, Scc
from streamproof.explicit.liveness.fair_components import FairComponents, acceptance, resting
from streamproof.explicit.liveness.fair_graph import FairGraph, Labels, Mask
from streamproof.explicit.liveness.outcome import Lasso, without_stutter
from streamproof.explicit.liveness.product import Product
from streamproof.explicit.liveness.reachable import ReachableProduct


def find_lasso(
    fair: FairGraph,
    automaton: BuchiAutomaton,
    scc: Scc,
    labels: Labels,
    reachable: ReachableProduct,
    found: Sequence[FairComponents],
) -> Lasso:
    """A lasso on one of the fair components over an SCC, with a short stem (not always the shortest)."""
    for one in found:
        rest = resting(fair, automaton, one.product, acceptance(scc, labels, one.product))
        rest &= one.component >= 0
        if rest.any():
            node = _nearest(reachable, one.product, rest)[1]
            state = int(one.product.state[node])
            return Lasso(tuple(without_stutter(reachable.stem(int(one.product.reader[node]), state))), (state,))
    best = min((*_nearest(reachable, one.product, one.component >= 0), at) for at, one in enumerate(found))
    one, node = found[best[2]], best[1]
    component = one.component == one.component[node]
    inner = one.product.only(component)
    node = int(np.count_nonzero(component[:node]))
    stem = without_stutter(reachable.stem(int(inner.reader[node]), int(inner.state[node])))
    cycle = _Cycle(fair, inner, acceptance(scc, labels, inner), node).run()
    states = without_stutter([int(inner.state[k]) for k in cycle])
    return Lasso(tuple(stem), tuple(states[:-1]) if len(states) > 1 else tuple(states))


def _nearest(reachable: ReachableProduct, product: Product, among: Mask) -> tuple[int, int]:
    """A marked node with a short stem, and the length of the stem; states are in the order of discovery."""
    found = np.flatnonzero(among)
    stems = []
    for reader in np.unique(product.reader[found]):
        mine = found[product.reader[found] == reader]
        node = int(mine[np.argmin(product.state[mine])])
        stems.append((len(reachable.stem(int(reader), int(product.state[node]))), node))
    return min(stems)


class _Cycle:
    """A closed walk through one component that meets every acceptance set and satisfies every fairness constraint."""

    def __init__(self, fair: FairGraph, inner: Product, met: Sequence[Mask], start: int) -> None:
        self.fair, self.inner, self.met = fair, inner, met
        self.sources, self.digraph = inner.sources, inner.digraph
        self.walk = [start]

    def run(self) -> list[int]:
        """The nodes of the walk; the last is the first."""
        for mask in self.met:
            if not any(mask[node] for node in self.walk):
                self._extend(mask)
        for constraint in range(len(self.fair.constraints)):
            self._satisfy(constraint)
        start = np.zeros(self.inner.nodes, dtype=np.bool_)
        start[self.walk[0]] = True
        self._extend(start)
        return self.walk

    def _satisfy(self, constraint: int) -> None:
        """Extend the walk, if needed, so that it takes the constraint or, for weak fairness, visits a node that disables
        it."""
        fair, inner = self.fair, self.inner
        states = [int(inner.state[node]) for node in self.walk]
        if any(fair.takes(constraint, a, b) for a, b in pairwise(states) if a != b):
            return
        weak = fair.is_weak(constraint)
        if weak and not all(fair.is_enabled(constraint, state) for state in states):
            return
        enabled = fair.enabled(constraint)[inner.state]
        if not enabled.any():
            return
        taking = np.flatnonzero(inner.taken == constraint)
        goal = np.zeros(inner.nodes, dtype=np.bool_)
        goal[self.sources[taking]] = True
        if weak:
            goal |= ~enabled
        self._extend(goal)
        here = self.walk[-1]
        if weak and not enabled[here]:
            return
        mine = taking[self.sources[taking] == here]
        self.walk.append(int(inner.targets[mine[0]]))

    def _extend(self, goal: Mask) -> None:
        """Extend the walk to a nearest marked node, unless it ends at one."""
        here = self.walk[-1]
        if not goal[here]:
            self.walk += self.digraph.path(here, goal)
