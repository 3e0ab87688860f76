"""Temporal formulas in Promela's LTL. It reads an arrow as an implication, so conditional terms are expanded."""

from __future__ import annotations

from typing import assert_never

from streamproof.base.errors import TooLarge
from streamproof.exchange.promela.terms import PromelaTerms
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
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
)
from streamproof.transform.assume import Substitution

MOST_CASES = 2_000
"""Maximum number of conditional terms of one condition that are expanded."""
DEEPEST = 200
"""Maximum nesting depth of conditional terms."""


class Claims:
    """Writes formulas whose conditions are scalar terms supported by `terms`.

    `started`: the bit that is set once the behaviour has begun; None if it begins immediately.
    """

    def __init__(self, terms: PromelaTerms, started: str | None = None) -> None:
        self._terms = terms
        self._started = started

    def claim(self, formula: Formula) -> str:
        """The formula, evaluated at the first state of the behaviour; states before that are ignored."""
        return self._formula_from(formula, self._started)

    def text(self, formula: Formula) -> str:
        """The formula. Raises `TooLarge` for a condition with too many cases, or with a division of negative numbers."""
        return self._formula_from(formula, None)

    def _formula_from(self, formula: Formula, started: str | None) -> str:
        """The formula, evaluated at the first state where the condition `started` is true; None: at the first state."""
        here, before = ("", "") if started is None else (f"{started} && ", f"!{started} || ")
        match formula:
            case Atom(expr):
                text = self._condition(expr)
                return text if started is None else f"(!{started} U ({here}{text}))"
            case NotF(arg):
                return f"(!{self._formula_from(arg, started)})"
            case AndF(args):
                return f"({' && '.join(self._formula_from(arg, started) for arg in args)})" if args else "(true)"
            case OrF(args):
                return f"({' || '.join(self._formula_from(arg, started) for arg in args)})" if args else "(false)"
            case Always(arg):
                return f"([] {_operand(before, self.text(arg))})"
            case Eventually(arg):
                return f"(<> {_operand(here, self.text(arg))})"
            case Until(left, right):
                return f"({_operand(before, self.text(left))} U {_operand(here, self.text(right))})"
            case Release(left, right):
                return f"({_operand(here, self.text(left))} V {_operand(before, self.text(right))})"
            case LeadsTo(left, right):
                return f"([] ({before}(!{self.text(left)}) || (<> {self.text(right)})))"
            case Recurs() | Happens():
                raise AssertionError("conditions on steps are brought to conditions on states before")
            case _:
                assert_never(formula)

    def _condition(self, expr: Expr) -> str:
        term = _spread(expr, [MOST_CASES])
        if term is b.TRUE or term is b.FALSE:
            return "(true)" if term is b.TRUE else "(false)"
        text = self._terms.text(term)
        if "->" in text:
            raise TooLarge(
                "a temporal property divides numbers that may be negative, or by zero, which Promela's logic cannot say",
                remedy="compare before dividing, or check it with streamproof check",
            )
        return f"({text})"


def truncated(formula: Formula, outside: Expr, *, wanted: bool = True) -> Formula:
    """The formula (not `wanted`: its negation) for behaviours that may leave a constraint, and stay in `outside` then.

    Spin has no constraint. In negation normal form, every condition and every negated one is also true outside: a behaviour
    that leaves violates the formula only if what it did before refutes it. This does not use `constraint.weakened`.
    """

    def turn(part: Formula) -> Formula:
        return truncated(part, outside, wanted=wanted)

    match formula:
        case Atom(expr, text, loc):
            return Atom(b.or_((outside, expr if wanted else b.not_(expr))), text, loc)
        case Happens():
            raise AssertionError("not within a constraint")
        case Recurs():
            return OrF((formula if wanted else NotF(formula), Eventually(Atom(outside))))
        case NotF(arg):
            return truncated(arg, outside, wanted=not wanted)
        case AndF(args) | OrF(args):
            return (AndF if isinstance(formula, AndF) is wanted else OrF)(tuple(map(turn, args)))
        case Always(arg) | Eventually(arg):
            return (Always if isinstance(formula, Always) is wanted else Eventually)(turn(arg))
        case Until(left, right) | Release(left, right):
            return (Until if isinstance(formula, Until) is wanted else Release)(turn(left), turn(right))
        case LeadsTo(left, right):
            return turn(Always(OrF((NotF(left), Eventually(right)))))
        case _:
            assert_never(formula)


def _spread(term: Expr, left: list[int], depth: int = 0) -> Expr:
    """The Boolean term without conditional terms: one case per outcome of each condition. `left`: the maximum number."""
    found = next((part for part in e.subterms(term) if isinstance(part, e.Ite)), None)
    if found is None:
        return term
    left[0] -= 1
    if left[0] < 0 or depth > DEEPEST:
        raise TooLarge(
            f"a condition of a temporal property has more than {MOST_CASES:,} cases, or {DEEPEST} in each other",
            remedy="choose smaller parameters",
        )
    then, other = (_spread(Substitution({found: side})(term), left, depth + 1) for side in (found.then, found.other))
    return b.or_((b.and_((found.cond, then)), b.and_((b.not_(found.cond), other))))


def _operand(condition: str, text: str) -> str:
    return f"({condition}{text})" if condition else text
