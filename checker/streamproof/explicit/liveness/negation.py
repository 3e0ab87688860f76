"""The Büchi automaton of the negation of a formula, cached by the shape of the formula.

Formulas of one model often have the same operators over different conditions. The automaton is built for a formula with
numbered conditions, and the actual conditions are substituted.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from streamproof.explicit.liveness.buchi import BuchiAutomaton, buchi_automaton
from streamproof.explicit.liveness.tableau import state_term, tableau
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
)
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
