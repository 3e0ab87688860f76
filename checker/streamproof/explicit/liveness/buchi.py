"""Generalised Büchi automata from tableaux, reduced, for the product with the state graph.

A run visits one automaton state per state of the behaviour; an automaton state reads the states whose valuation is in its
`label`. A run is accepted if it finally stays in one strongly connected component (SCC) and meets every acceptance set of
that component infinitely often; a visit meets a set if the valuation is in the set's table.

Formulas of one model often have the same operators over different conditions. The automaton is built for a formula with
numbered conditions, cached by the shape of the formula, and the actual conditions are substituted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from streamproof.base.records import dataclass, replace
from streamproof.explicit.liveness.tableau import Node, Tableau, Transition, state_term, tableau
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import Atom, Formula, NotF, mapped
from streamproof.system.sorts import BOOL


@dataclass(frozen=True, slots=True)
class BuchiState:
    """One state of the automaton."""

    label: int
    """Truth table of the states that it reads."""
    initial: bool
    """Whether a run may begin here."""
    after: tuple[int, ...]
    """Its successors."""


@dataclass(frozen=True, slots=True)
class Scc:
    """A strongly connected component of the automaton."""

    members: tuple[int, ...]
    """The numbers of its states."""
    cyclic: bool
    """Whether a run can stay in it."""
    acceptance_sets: tuple[tuple[int, ...], ...] | None
    """Per set, a truth table per member. None: no run that stays here is accepted."""

    @property
    def accepting(self) -> bool:
        """Whether a run that stays here can be accepted."""
        return self.acceptance_sets is not None


@dataclass(frozen=True)
class BuchiAutomaton:
    """The states and their components, in topological order: each component before those it leads to."""

    conditions: tuple[Expr, ...]
    everything: int
    """The truth table that is always true."""
    states: tuple[BuchiState, ...]
    sccs: tuple[Scc, ...]

    def before(self, state: int) -> tuple[int, ...]:
        """The predecessors of a state."""
        return tuple(k for k, one in enumerate(self.states) if state in one.after)


def negation_automaton(claim: Formula) -> BuchiAutomaton:
    """The automaton that accepts the behaviours on which `claim` is false. Raises `TooLarge` for too many atoms."""
    numbers: dict[Expr, Expr] = {}
    automaton = _of_shape(_shape(claim, numbers))
    given = {number: condition for condition, number in numbers.items()}
    return replace(automaton, conditions=tuple(given[number] for number in automaton.conditions))


@lru_cache(maxsize=64)
def _of_shape(shape: Formula) -> BuchiAutomaton:
    return buchi_automaton(tableau(NotF(shape)))


def _shape(formula: Formula, numbers: dict[Expr, Expr]) -> Formula:
    """The formula with its largest conditions on one state replaced by numbered ones, added to `numbers`; constants stay."""
    term = state_term(formula)
    if term is None:
        return mapped(formula, lambda part: _shape(part, numbers))
    return _numbered(term, numbers)


def _numbered(term: Expr, numbers: dict[Expr, Expr]) -> Formula:
    if isinstance(term, e.Const):
        return Atom(term)
    if isinstance(term, e.Not):
        return NotF(_numbered(term.arg, numbers))
    return Atom(numbers.setdefault(term, b.var(str(len(numbers)), BOOL)))


def buchi_automaton(table: Tableau) -> BuchiAutomaton:
    """The automaton of a tableau: a state for each pair of nodes that a move joins, equivalent states merged."""
    steps: dict[tuple[Node, Node], list[Transition]] = {}
    for node, moves in table.moves.items():
        for move in moves:
            steps.setdefault((node, move.to), []).append(move)
    pairs = list(steps)
    labels = [_union(move.table for move in steps[pair]) for pair in pairs]
    after = [{k for k, pair in enumerate(pairs) if pair[0] == own[1]} for own in pairs]
    sets = [
        [_union(m.table for m in steps[pair] if promise not in m.put_off) for promise in table.promises]
        for pair in pairs
    ]
    start = [pair[0] == table.start for pair in pairs]
    return _Reduction(table, labels, after, sets, start).run()


def _union(tables: Iterable[int]) -> int:
    whole = 0
    for one in tables:
        whole |= one
    return whole


class _Reduction:
    def __init__(
        self, table: Tableau, labels: list[int], after: list[set[int]], sets: list[list[int]], start: list[bool]
    ) -> None:
        self.table, self.labels, self.after, self.sets, self.start = table, labels, after, sets, start

    def run(self) -> BuchiAutomaton:
        self._keep(self._useful())
        self._merge()
        self._fold()
        order = components(self.after)
        sccs = tuple(self._scc(tuple(sorted(members))) for members in order)
        states = tuple(
            BuchiState(label, start, tuple(sorted(after)))
            for label, start, after in zip(self.labels, self.start, self.after, strict=True)
        )
        return BuchiAutomaton(self.table.conditions, self.table.everything, states, sccs)

    def _cyclic(self, members: Sequence[int]) -> bool:
        return len(members) > 1 or members[0] in self.after[members[0]]

    def _scc(self, members: tuple[int, ...]) -> Scc:
        cyclic = self._cyclic(members)
        if not cyclic:
            return Scc(members, False, None)
        needed = []
        for at in range(len(self.table.promises)):
            tables = tuple(self.sets[k][at] for k in members)
            if not any(tables):
                return Scc(members, True, None)
            if any(own != self.labels[k] for own, k in zip(tables, members, strict=True)):
                needed.append(tables)
        return Scc(members, True, tuple(dict.fromkeys(needed)))

    def _useful(self) -> list[int]:
        """The reachable states from which a run can be accepted."""
        good = {k for members in components(self.after) if self._scc(tuple(members)).accepting for k in members}
        backwards: list[set[int]] = [set() for _ in self.after]
        for k, following in enumerate(self.after):
            for other in following:
                backwards[other].add(k)
        forward = _closure({k for k, first in enumerate(self.start) if first}, self.after)
        return sorted(_closure(good, backwards) & forward)

    def _keep(self, kept: Sequence[int], renamed: Mapping[int, int] | None = None) -> None:
        names = {k: k for k in kept} if renamed is None else renamed
        position = {k: at for at, k in enumerate(kept)}
        after = [{position[names[o]] for o in self.after[k] if o in names and names[o] in position} for k in kept]
        begins = {names[k] for k, first in enumerate(self.start) if first and k in names}
        self.labels = [self.labels[k] for k in kept]
        self.sets = [self.sets[k] for k in kept]
        self.start = [k in begins for k in kept]
        self.after = after

    def _merge(self) -> None:
        """Merge states that are bisimilar, by partition refinement."""
        relevant: dict[int, tuple[object, ...]] = {}
        for members in components(self.after):
            scc = self._scc(tuple(sorted(members)))
            for at, k in enumerate(scc.members):
                relevant[k] = (scc.accepting, tuple(t[at] for t in scc.acceptance_sets or ()))
        block: list[object] = [(self.labels[k], relevant[k]) for k in range(len(self.labels))]
        while True:
            finer = [(block[k], frozenset(block[o] for o in self.after[k])) for k in range(len(block))]
            numbers: dict[object, int] = {}
            named: list[object] = [numbers.setdefault(signature, len(numbers)) for signature in finer]
            if len(numbers) == len(set(block)):
                break
            block = named
        first: dict[object, int] = {}
        renamed = {k: first.setdefault(own, k) for k, own in enumerate(block)}
        self._keep(sorted(set(renamed.values())), renamed)

    def _fold(self) -> None:
        """Replace states on no cycle by states on a cycle with the same label and the same successors."""
        while True:
            on_cycle = {k for members in components(self.after) if self._cyclic(tuple(members)) for k in members}
            pair = next(
                (
                    (k, o)
                    for k in range(len(self.labels))
                    if k not in on_cycle
                    for o in sorted(on_cycle)
                    if self.labels[k] == self.labels[o] and self.after[k] == self.after[o]
                ),
                None,
            )
            if pair is None:
                return
            renamed = {k: k for k in range(len(self.labels))} | {pair[0]: pair[1]}
            self._keep([k for k in range(len(self.labels)) if k != pair[0]], renamed)


def _closure(start: set[int], after: Sequence[set[int]]) -> set[int]:
    seen, todo = set(start), list(start)
    while todo:
        for other in after[todo.pop()] - seen:
            seen.add(other)
            todo.append(other)
    return seen


def components(after: Sequence[set[int]]) -> list[list[int]]:
    """The strongly connected components of a small graph, each before those it leads to.

    Automata have a few nodes, so that a quadratic algorithm suffices; `state_graph` has that for state spaces.
    """
    reach = [_closure({k}, after) for k in range(len(after))]
    found: list[list[int]] = []
    for k in range(len(after)):
        home = next((members for members in found if members[0] in reach[k] and k in reach[members[0]]), None)
        if home is None:
            found.append([k])
        else:
            home.append(k)
    # The nodes reachable from a component are a proper superset of those reachable from its successors.
    return sorted(found, key=lambda members: -len(reach[members[0]]))
