"""Decision of temporal properties on a state graph: they hold on all fair behaviours, or there is a lasso that violates them.

The product of the state graph and the Büchi automaton of the negated formula is searched; the property is violated if and
only if the product has a reachable fair cycle.

Formulas of one model often have the same operators over different conditions. The automaton is built for a formula with
numbered conditions, cached by the shape of the formula, and the actual conditions are substituted.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from streamproof.explicit.liveness.buchi import BuchiAutomaton, buchi_automaton
from streamproof.explicit.liveness.fair_components import fair_components, find_lasso
from streamproof.explicit.liveness.fair_graph import FairGraph, Labels, Lasso, TemporalAnswer, numbered_constraints
from streamproof.explicit.liveness.product import ReachableProduct
from streamproof.explicit.liveness.tableau import state_term, tableau
from streamproof.explicit.state_graph import StateGraph
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Release,
    Until,
    claims,
)
from streamproof.system.model import System
from streamproof.system.records import replace
from streamproof.system.sorts import BOOL


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
    if term is not None:
        return _numbered(term, numbers)

    def part(inner: Formula) -> Formula:
        return _shape(inner, numbers)

    match formula:
        case NotF(arg):
            return NotF(part(arg))
        case AndF(args):
            return AndF(_all(args, numbers))
        case OrF(args):
            return OrF(_all(args, numbers))
        case Always(arg):
            return Always(part(arg))
        case Eventually(arg):
            return Eventually(part(arg))
        case Until(left, right):
            return Until(part(left), part(right))
        case Release(left, right):
            return Release(part(left), part(right))
        case LeadsTo(left, right):
            return LeadsTo(part(left), part(right))
        case Atom() | Recurs():
            raise AssertionError("an atom is a condition on one state, and those on steps are brought to such before")


def _all(formulas: Iterable[Formula], numbers: dict[Expr, Expr]) -> tuple[Formula, ...]:
    return tuple(_shape(formula, numbers) for formula in formulas)


def _numbered(term: Expr, numbers: dict[Expr, Expr]) -> Formula:
    if isinstance(term, e.Const):
        return Atom(term)
    if isinstance(term, e.Not):
        return NotF(_numbered(term.arg, numbers))
    return Atom(numbers.setdefault(term, b.var(str(len(numbers)), BOOL)))


class TemporalChecker:
    """Decides formulas, over terms of one system, on the state graph of that system.

    Raises `TooLarge` for more steps or more fairness constraints than can be numbered.
    """

    def __init__(self, system: System, graph: StateGraph) -> None:
        self.graph = graph
        self._fair = FairGraph.of(graph, numbered_constraints(system), len(system.instances))

    def decide(self, formula: Formula) -> TemporalAnswer:
        """Whether `formula` is true of every fair behaviour. Raises `TooLarge` for too many atoms.

        The conjuncts of a conjunction are decided one by one, with a small automaton each.
        """
        parts = tuple(claims(formula))
        for part in parts:
            lasso = self.accepted(negation_automaton(part))
            if lasso is not None:
                return TemporalAnswer(lasso)
        return TemporalAnswer(None, bool(parts) and all(map(self._vacuous, parts)))

    def accepted(self, automaton: BuchiAutomaton) -> Lasso | None:
        """A fair lasso that the automaton accepts, or None."""
        labels = Labels.of(self.graph, automaton)
        reachable = ReachableProduct(self._fair, automaton, labels)
        for scc in automaton.sccs:
            product = reachable.enter(scc)
            if product is None or not scc.accepting:
                continue
            found = fair_components(self._fair, automaton, scc, labels, product)
            if found:
                return find_lasso(self._fair, automaton, scc, labels, reachable, found)
        return None

    def _vacuous(self, claim: Formula) -> bool:
        """Whether the claim is an implication whose antecedent is never true."""
        if isinstance(claim, OrF) and isinstance(claim.args[0], Eventually):
            claim = claim.args[-1]  # under a constraint; see `system.constraint`
        inner = claim.arg if isinstance(claim, Always) else claim
        condition = state_term(inner.left) if isinstance(inner, LeadsTo) else None
        return condition is not None and not self.graph.evaluate([condition]).any()
