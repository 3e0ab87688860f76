"""Reference verdicts for temporal properties of small systems, by an algorithm independent of the engine's.

The method is that of O. Lichtenstein and A. Pnueli (1985). A node (atom) is a state with a guess of the subformulas
that are true from there on; an edge joins two nodes if the step (or stuttering) is possible and the guesses are
consistent. The formula is violated if a node that guesses it false reaches a set of nodes that a fair behaviour can
visit infinitely often and that fulfils every *until*. For step conditions, the guess is made once for the whole
behaviour: whether such steps occur infinitely often in that set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from streamproof.base.records import dataclass
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    Happens,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Release,
    Until,
    folded,
    happenings,
    mapped,
    subformulas,
    untils,
)
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Fairness, FairnessConstraint, Property, State, System, fairness_constraints
from streamproof.system.prefixes import obligation, progressed

if TYPE_CHECKING:
    import networkx as nx

Guess: TypeAlias = tuple[bool, ...]
"""For each *until*, in a fixed order, whether it is true from here on; for each step condition, whether it recurs; for each
step that is followed by a formula, whether it happens from here on."""

Node: TypeAlias = tuple[State, Guess]


def can_be_violated(system: System, formula: Formula, initial: Sequence[State], states: Sequence[State]) -> bool:
    """Whether some fair behaviour from one of `initial` violates `formula`; `states` are all reachable states.

    Raises `EvaluationError` for a model error.
    """
    return _LassoSearch(ReferenceTableau(system, formula)).violated(initial, states)


def can_be_violated_within(
    system: System, prop: Property, initial: Sequence[State], successors: Mapping[State, Sequence[State]]
) -> bool:
    """Whether a temporal property of a constrained system is violated: by a fair behaviour that stays within the
    constraint, or by a finite behaviour within it after which nothing can make the formula true.

    `successors` has the steps from all reachable states. The formula is that of the system without the constraint, so this
    does not depend on `constraint.weakened`. Raises `EvaluationError` for a model error.
    """
    assert system.constraint is not None, "a constrained system"
    formula, limits = (
        folded(system.constraint.own_formula(prop.name)),
        [Atom(c.expr) for c in system.constraint.conjuncts],
    )
    if isinstance(formula, bool):
        formula = AndF(()) if formula else OrF(())
    interpreter = Interpreter(system)
    inside = {s for s in successors if all(interpreter.value(limit.expr, s) for limit in limits)}
    todo = [(state, obligation(formula)) for state in initial if state in inside]
    known = {*todo}
    for state, owed in todo:  # which grows
        rest = progressed(owed, lambda condition, state=state: bool(interpreter.value(condition, state)))  # type: ignore[misc]
        if not rest:
            return True
        new = {(then, rest) for then in (state, *successors[state]) if then in inside} - known
        known |= new
        todo += new
    stays = OrF((Eventually(NotF(AndF(tuple(limits)))), formula))
    return can_be_violated(system, stays, initial, tuple(successors))


def plain(formula: Formula) -> Formula:
    """The formula with only the operators *not*, *and* and *until*."""
    true = AndF(())
    match formula:
        case OrF(args):
            return NotF(AndF(tuple(NotF(plain(arg)) for arg in args)))
        case Eventually(arg):
            return Until(true, plain(arg))
        case Always(arg):
            return NotF(Until(true, NotF(plain(arg))))
        case Release(left, right):
            return NotF(Until(NotF(plain(left)), NotF(plain(right))))
        case LeadsTo(left, right):
            return plain(Always(OrF((NotF(left), Eventually(right)))))
        case _:
            return mapped(formula, plain)


@dataclass(frozen=True, slots=True)
class _Facts:
    """Per state, the enabled fairness constraints; per step, those that it takes."""

    enabled: Mapping[State, frozenset[int]]
    takes: Mapping[tuple[State, State], frozenset[int]]


class ReferenceTableau:
    """The nodes of one formula and their edges: guesses must be consistent with the present state and the next guess."""

    def __init__(self, system: System, formula: Formula) -> None:
        self.system, self.formula = system, plain(formula)
        self.interpreter = Interpreter(system)
        self.untils = tuple(dict.fromkeys(untils(self.formula)))
        self.happenings = tuple(dict.fromkeys(happenings(self.formula)))
        self.steps = tuple(dict.fromkeys(part for part in subformulas(self.formula) if isinstance(part, Recurs)))
        self.fairness: tuple[FairnessConstraint, ...] = fairness_constraints(system)
        guessed = (*self.untils, *self.steps, *self.happenings)
        self.guesses: tuple[Guess, ...] = tuple(product((False, True), repeat=len(guessed)))
        self._known: dict[tuple[State, Formula], bool] = {}
        self._after: dict[tuple[Guess, tuple[bool, ...]], tuple[int, ...]] = {}

    def true(self, formula: Formula, node: Node) -> bool:
        """Whether a formula in core form is true at a node, if its guess is right."""
        match formula:
            case Atom(expr):
                if (node[0], formula) not in self._known:
                    self._known[node[0], formula] = bool(self.interpreter.value(expr, node[0]))
                return self._known[node[0], formula]
            case NotF(arg):
                return not self.true(arg, node)
            case AndF(args):
                return all(self.true(arg, node) for arg in args)
            case Until():
                return node[1][self.untils.index(formula)]
            case Recurs():
                return node[1][len(self.untils) + self.steps.index(formula)]
            case Happens():
                return node[1][len(self.untils) + len(self.steps) + self.happenings.index(formula)]
            case _:
                raise AssertionError("only plain formulas are left")

    def fits(self, node: Node, then: Guess) -> bool:
        """Whether the present guess is consistent with the present state and the next guess."""
        always = slice(len(self.untils), len(self.untils) + len(self.steps))
        return node[1][always] == then[always] and all(
            node[1][at] == (self.true(until.right, node) or (self.true(until.left, node) and then[at]))
            for at, until in enumerate(self.untils)
        )

    def makes(self, step: Recurs | Happens, edge: tuple[Node, Node]) -> bool:
        """Whether an edge is a step that changes the state and satisfies the condition."""
        (before, _), (after, _) = edge
        return before != after and bool(self.interpreter.value(step.step, before, after))

    def happens(self, part: Happens, edge: tuple[Node, Node]) -> bool:
        """Whether an edge is such a step, and what the formula says is true after it."""
        return self.makes(part, edge) and self.true(part.arg, edge[1])

    def crosses(self, edge: tuple[Node, Node]) -> bool:
        """Whether the guesses of `happenings` at both ends of an edge are consistent."""
        return all(
            self.true(part, edge[0]) == (self.happens(part, edge) or self.true(part, edge[1]))
            for part in self.happenings
        )

    def after(self, node: Node) -> tuple[int, ...]:
        """The numbers of the guesses that may follow a node."""
        key = node[1], tuple(self.true(part, node) for until in self.untils for part in (until.left, until.right))
        if key not in self._after:
            self._after[key] = tuple(n for n, guess in enumerate(self.guesses) if self.fits(node, guess))
        return self._after[key]


class _LassoSearch:
    def __init__(self, tableau: ReferenceTableau) -> None:
        self.tableau = tableau
        self.system, self.interpreter = tableau.system, tableau.interpreter
        self.untils, self.steps, self.fairness = tableau.untils, tableau.steps, tableau.fairness

    def violated(self, initial: Sequence[State], states: Sequence[State]) -> bool:
        import networkx as nx

        graph: nx.DiGraph[Node] = nx.DiGraph()
        facts = self._facts(states)
        follow: dict[State, set[State]] = {state: {state} for state in states}
        for before, after in facts.takes:
            follow[before].add(after)
        guesses = self.tableau.guesses
        for state in states:
            for guess in guesses:
                graph.add_node((state, guess))
                for after in follow[state]:
                    for then in guesses:
                        edge = (state, guess), (after, then)
                        if self.tableau.fits((state, guess), then) and self.tableau.crosses(edge):
                            graph.add_edge((state, guess), (after, then))
        good = set(self._fair(graph, facts))
        begin = [(s, g) for s in initial for g in guesses if not self.tableau.true(self.tableau.formula, (s, g))]
        return any(node in good or not good.isdisjoint(nx.descendants(graph, node)) for node in begin)

    def _facts(self, states: Sequence[State]) -> _Facts:
        enabled: dict[State, frozenset[int]] = {}
        takes: dict[tuple[State, State], set[int]] = {}
        owners: dict[int, set[int]] = {}
        for at, one in enumerate(self.fairness):
            for number in one.numbers:
                owners.setdefault(number, set()).add(at)
        for state in states:
            here: set[int] = set()
            for number, instance in enumerate(self.system.instances):
                after = self.interpreter.take(instance, state)
                if after is not None and after != state:
                    takes.setdefault((state, after), set()).update(owners.get(number, ()))
                    here |= owners.get(number, set())
            enabled[state] = frozenset(here)
        return _Facts(enabled, {step: frozenset(some) for step, some in takes.items()})

    def _fair(self, graph: nx.DiGraph[Node], facts: _Facts) -> Iterator[Node]:
        """The nodes of strongly connected components that are fair and fulfil every *until*."""
        import networkx as nx

        for component in nx.strongly_connected_components(graph):
            inner = graph.subgraph(component)
            if inner.number_of_edges() == 0:
                continue
            if not all(
                any(not node[1][at] or self.tableau.true(until.right, node) for node in component)
                for at, until in enumerate(self.untils)
            ):
                continue
            if not all(
                any(not self.tableau.true(part, node) for node in component)
                or any(self.tableau.happens(part, edge) for edge in inner.edges)
                for part in self.tableau.happenings
            ):
                continue
            barred = [edge for edge in inner.edges if self._barred(edge)]
            if barred:
                rest = inner.copy()
                rest.remove_edges_from(barred)
                yield from self._fair(rest, facts)
                continue
            if not all(
                not node[1][len(self.untils) + at] or any(self.tableau.makes(step, edge) for edge in inner.edges)
                for node in list(component)[:1]
                for at, step in enumerate(self.steps)
            ):
                continue
            taken: set[int] = set()
            for (before, _), (after, _) in inner.edges:
                taken |= facts.takes.get((before, after), frozenset())
            missing = set(range(len(self.fairness))) - taken
            weak = {at for at in missing if self.fairness[at].fairness is Fairness.WEAK}
            if any(all(at in facts.enabled[state] for state, _ in component) for at in weak):
                continue
            strong = missing - weak
            left = {node for node in component if strong.isdisjoint(facts.enabled[node[0]])}
            if left == set(component):
                yield from component
            else:
                yield from self._fair(graph.subgraph(left).copy(), facts)

    def _barred(self, edge: tuple[Node, Node]) -> bool:
        """Whether an edge is a step of a kind that is guessed not to recur."""
        guesses = edge[0][1][len(self.untils) :]
        return any(not g and self.tableau.makes(step, edge) for g, step in zip(guesses, self.steps, strict=False))
