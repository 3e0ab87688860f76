"""Shortest lassos: of the fair behaviours on which a formula is false, one with the fewest steps of stem and cycle together.

What a finite word does to an automaton is a relation: the automaton states before and after it, with the acceptance sets met
between (J. R. Büchi 1962). The search knows of a stem its last state and the automaton states that can read it, of a cycle
the relation and the fairness constraints that it satisfies; both are searched breadth first. So the word of a lasso is
judged, not one run of the automaton on it, which may have to go round the cycle several times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from streamproof.explicit.liveness.buchi import BuchiAutomaton
from streamproof.explicit.liveness.fair_graph import FairGraph, Labels, Lasso, Numbers, Product
from streamproof.explicit.state_graph import sources

Readers = frozenset[int]
Relation = frozenset[tuple[int, int, int]]
"""Automaton states before and after a word, with the acceptance sets met between as bits, if both are in one component."""
Node = TypeVar("Node", bound=tuple[Any, ...])
OFTEN = 4_096
"""Number of edges after which the time is looked at."""


class _WordRelations:
    """What words do to an automaton. Relations are numbered; 0 is that of the empty word."""

    def __init__(self, automaton: BuchiAutomaton) -> None:
        self.states = automaton.states
        self.home: dict[int, int] = {}
        self.met: dict[int, tuple[int, ...]] = {}
        """The tables of the acceptance sets, of the automaton states of accepting components."""
        for number, scc in enumerate(automaton.sccs):
            for at, member in enumerate(scc.members):
                self.home[member] = number
                if scc.acceptance_sets is not None:
                    self.met[member] = tuple(tables[at] for tables in scc.acceptance_sets)
        self.relations: list[Relation] = [frozenset()]
        self.numbers: dict[Relation, int] = {frozenset({(-1, -1, 0)}): 0}
        self.letter, self.then = cache(self._letter), cache(self._then)
        self.accepts, self.after = cache(self._accepts), cache(self._after)

    def begin(self, letter: int) -> Readers:
        """The automaton states in which a run may read a first letter."""
        return self._reading((k for k, one in enumerate(self.states) if one.initial), letter)

    def _after(self, readers: Readers, letter: int, following: int) -> Readers:
        """The automaton states that can read `following` after some that have read `letter`; all of `readers` can."""
        return self._reading((to for k in readers for to in self.states[k].after), following)

    def _reading(self, some: Iterable[int], letter: int) -> Readers:
        return frozenset(k for k in some if self.states[k].label >> letter & 1)

    def _number(self, relation: set[tuple[int, int, int]]) -> int:
        """The number of a relation, without those entries that meet less than another one."""
        best: dict[tuple[int, int], list[int]] = {}
        for before, after, met in sorted(relation, key=lambda one: -one[2].bit_count()):
            known = best.setdefault((before, after), [])
            if not any(met & other == met for other in known):
                known.append(met)
        kept = frozenset((b, a, met) for (b, a), some in best.items() for met in some)
        if kept not in self.numbers:
            self.numbers[kept] = len(self.relations)
            self.relations.append(kept)
        return self.numbers[kept]

    def _letter(self, letter: int) -> int:
        """The relation of a word of one letter."""
        found = set()
        for k, one in enumerate(self.states):
            if one.label >> letter & 1:
                met = sum((table >> letter & 1) << bit for bit, table in enumerate(self.met.get(k, ())))
                found |= {(k, to, met if self.home[k] == self.home[to] else 0) for to in one.after}
        return self._number(found)

    def _then(self, first: int, letter: int) -> int:
        """The relation of a word and one more letter."""
        if first == 0:
            return self.letter(letter)
        found = set()
        for middle, after, more in self.relations[self.letter(letter)]:
            for before, there, met in self.relations[first]:
                if there == middle:
                    found.add((before, after, met | more if self.home[before] == self.home[after] else 0))
        return self._number(found)

    def _accepts(self, relation: int, readers: Readers) -> bool:
        """Whether a run from one of these automaton states accepts the infinite repetition of a word."""
        after: dict[int, list[tuple[int, int]]] = {}
        for one, to, met in self.relations[relation]:
            after.setdefault(one, []).append((to, met))

        def reached(start: int) -> set[int]:
            found, todo = set[int](), [start]
            while todo:
                for to, _ in after.get(todo.pop(), ()):
                    if to not in found:
                        found.add(to)
                        todo.append(to)
            return found

        ways = {k: reached(k) for k in after}
        for k in {*readers}.union(*(ways.get(k, ()) for k in readers)):
            if k in self.met and k in ways.get(k, ()):
                round_trip = {to for to in ways[k] if k in ways.get(to, ())}
                met = 0
                for one in round_trip:
                    for to, more in after[one]:
                        met |= more if to in round_trip else 0
                if met == (1 << len(self.met[k])) - 1:
                    return True
        return False


class _Inner:
    """The steps within fair components, and the fairness constraints that a closed walk along them satisfies, as bits.

    The lower bits: a weak constraint is taken, or not enabled in some state; a strong one is taken. The upper bits: a strong
    one is enabled.
    """

    def __init__(self, fair: FairGraph, found: Sequence[tuple[Product, Numbers]]) -> None:
        self.fair = fair
        count = len(fair.constraints)
        self.weak = sum(1 << c for c in range(count) if fair.is_weak(c))
        self.strong, self.shift = (1 << count) - 1 - self.weak, count
        self.bits = [sum(1 << c for c in some) for some in fair.sets]
        pairs = [np.empty(0, dtype=np.int64)]
        for product, component in found:
            before = sources(product.offsets)
            inside = (component[before] >= 0) & (component[before] == component[product.targets])
            left, right = product.state[before[inside]].astype(np.int64), product.state[product.targets[inside]]
            pairs.append(left[left != right] * fair.states + right[left != right])
        whole = np.unique(np.concatenate(pairs))
        self.left, self.right = np.divmod(whole, fair.states)
        self.order = np.argsort(self.right, kind="stable")
        self.ends = self.right[self.order]
        self.steps, self.before = cache(self._steps), cache(self._before)

    def _steps(self, state: int) -> tuple[int, list[tuple[int, int]]]:
        """The bits of a state, and the steps from it, each with its bits."""
        fair = self.fair
        begin, end = np.searchsorted(self.left, (state, state + 1))
        to: dict[int, int] = dict.fromkeys(self.right[begin:end].tolist(), 0)
        enabled = 0
        at = slice(fair.offsets[state], fair.offsets[state + 1])
        for target, taken in zip(fair.targets[at].tolist(), fair.taken[at].tolist(), strict=True):
            if taken >= 0:
                enabled |= self.bits[taken]
                if target in to:
                    to[target] |= self.bits[taken]
        return self.weak & ~enabled | (self.strong & enabled) << self.shift, list(to.items())

    def _before(self, state: int) -> list[int]:
        begin, end = np.searchsorted(self.ends, (state, state + 1))
        found: list[int] = self.left[self.order[begin:end]].tolist()
        return found

    def is_fair(self, bits: int) -> bool:
        """Whether a closed walk with these bits is fair."""
        return bits & self.weak == self.weak and not bits >> self.shift & self.strong & ~bits


class ShortestLasso:
    """The shortest lasso so far, and the search for shorter ones, of at most `work` edges, until `is_over`."""

    def __init__(self, fair: FairGraph, known: Lasso, work: int, is_over: Callable[[], bool]) -> None:
        self.fair, self.work, self.is_over = fair, work, is_over
        self.best = normal(known)
        self.proved = True
        """Whether nothing that was searched has a shorter one."""
        self._look = work

    def among(self, automaton: BuchiAutomaton, labels: Labels, found: Sequence[tuple[Product, Numbers]]) -> None:
        """Looks for a shorter lasso that the automaton accepts; `found` are all fair components of its product."""
        if not self.proved:
            return
        if sum(len(product.targets) for product, _ in found) > 16 * self.work:
            self.proved = False
            return
        valuations, words, inner = labels.valuations, _WordRelations(automaton), _Inner(self.fair, found)
        before: dict[tuple[int, Readers], tuple[int, Readers] | None] = {}
        for state in range(self.fair.graph.initial):
            before[state, words.begin(int(valuations[state]))] = None
        level, steps = [node for node in before if node[1]], 0
        while level and steps < self.best.steps and self.proved:
            following = []
            for node in level:
                state, readers = node
                letter = int(valuations[state])
                cycle: list[int] | None = None
                if not self.fair.restless[state] and words.accepts(words.letter(letter), readers):
                    cycle = [state]
                elif steps + 2 < self.best.steps:
                    cycle = self._cycle(words, inner, valuations, node, self.best.steps - steps)
                if cycle is not None:
                    self.best = normal(Lasso(tuple(_back(before, node)), tuple(cycle)))
                if steps + 1 >= self.best.steps:
                    continue
                targets = self.fair.targets[self.fair.offsets[state] : self.fair.offsets[state + 1]].tolist()
                if not self._spend(len(targets)):
                    break
                for to in dict.fromkeys(targets):
                    after = (to, words.after(readers, letter, int(valuations[to])))
                    if to != state and after[1] and after not in before:
                        before[after] = node
                        following.append(after)
            level, steps = following, steps + 1

    def _spend(self, edges: int) -> bool:
        """Take `edges` from the work that is left; whether it suffices."""
        self.work -= edges
        if self.work < 0 or (self._look - self.work > OFTEN and self.is_over()):
            self.proved = False
        elif self._look - self.work > OFTEN:
            self._look = self.work
        return self.proved

    def _cycle(
        self,
        words: _WordRelations,
        inner: _Inner,
        valuations: npt.NDArray[np.uint16],
        entry: tuple[int, Readers],
        most: int,
    ) -> list[int] | None:
        """The states of a shortest fair and accepted closed walk of fewer than `most` steps from the end of a stem."""
        start, readers = entry
        back, level = {start: 0}, [start]
        for steps in range(1, most - 1):
            level = [b for state in level for b in inner.before(state) if b not in back]
            back |= dict.fromkeys(level, steps)
            level = list(dict.fromkeys(level))
            if not level or not self._spend(len(level)):
                break
        if len(back) == 1 or not self.proved:
            return None
        begin = (start, 0, 0)
        before: dict[tuple[int, int, int], tuple[int, int, int] | None] = {begin: None}
        places, steps = [begin], 1
        while places and steps < most:
            following = []
            for place in places:
                state, relation, bits = place
                own, edges = inner.steps(state)
                relation = words.then(relation, int(valuations[state]))
                if not self._spend(len(edges)):
                    return None
                for to, more in edges:
                    met = bits | own | more
                    if to == start and inner.is_fair(met) and words.accepts(relation, readers):
                        return _back(before, place)
                    after = (to, relation, met)
                    if to in back and steps + back[to] < most and after not in before:
                        before[after] = place
                        following.append(after)
            places, steps = following, steps + 1
        return None


def _back(before: Mapping[Node, Node | None], node: Node) -> list[int]:
    """The states on the way to a node, which begins with its state."""
    way, at = list[int](), node or None
    while at is not None:
        way.append(at[0])
        at = before[at]
    return way[::-1]


def normal(lasso: Lasso) -> Lasso:
    """The same infinite behaviour with the fewest steps."""
    stem, cycle = list(lasso.stem), list(lasso.cycle)
    period = next(p for p in range(1, len(cycle) + 1) if len(cycle) % p == 0 and cycle[p:] == cycle[:-p])
    cycle = cycle[:period]
    # The stem ends with the first state of the cycle.
    while len(stem) > 1 and stem[-2] == cycle[-1]:
        stem.pop()
        cycle = [cycle[-1], *cycle[:-1]]
    return Lasso(tuple(stem), tuple(cycle))
