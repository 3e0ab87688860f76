"""Temporal formulas (LTL without next): a closed union over state conditions and two kinds of step conditions.

A behaviour is an infinite sequence of states; a finite one stutters in its last state. Without a "next" operator,
formulas are invariant under stuttering. The meaning is defined in `temporal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from typing import TypeAlias, assert_never

from streamproof.base.errors import Loc
from streamproof.base.records import dataclass
from streamproof.system.expr import Const, Expr


@dataclass(frozen=True, slots=True)
class Atom:
    """A state condition: true where `expr` is true, with its source text and position."""

    expr: Expr
    text: str = field(default="", compare=False)
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NotF:
    """Negation."""

    arg: Formula


@dataclass(frozen=True, slots=True)
class AndF:
    """Conjunction."""

    args: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class OrF:
    """Disjunction."""

    args: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Always:
    """Always: true from here on."""

    arg: Formula


@dataclass(frozen=True, slots=True)
class Eventually:
    """Eventually: true here or at some later position."""

    arg: Formula


@dataclass(frozen=True, slots=True)
class Until:
    """Until: `right` is true here or later, and `left` at every position before that."""

    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Release:
    """Release: `right` is true up to and including the first position where `left` is; always, if there is none."""

    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class LeadsTo:
    """Leads to: whenever `left` is true, `right` is true then or later."""

    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Recurs:
    """Infinitely often, a step changes the state and satisfies `step`, which also reads the next state.

    This expresses the fairness of an action; `constraint.by_states` expresses it by state conditions.
    """

    step: Expr
    text: str = field(default="", compare=False)
    loc: Loc | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Happens:
    """Now or later, a step changes the state and satisfies `step`, and `arg` is true in the state after it.

    Without a constraint only. `constraint.by_states` expresses it by state conditions.
    """

    step: Expr
    arg: Formula
    text: str = field(default="", compare=False)
    loc: Loc | None = field(default=None, compare=False)


Formula: TypeAlias = Atom | NotF | AndF | OrF | Always | Eventually | Until | Release | LeadsTo | Recurs | Happens

FORMULAS = (Atom, NotF, AndF, OrF, Always, Eventually, Until, Release, LeadsTo, Recurs, Happens)
"""The classes of the union, for `isinstance`."""


def parts(formula: Formula) -> tuple[Formula, ...]:
    """The direct subformulas, from left to right."""
    match formula:
        case Atom() | Recurs():
            return ()
        case NotF(arg) | Always(arg) | Eventually(arg) | Happens(arg=arg):
            return (arg,)
        case AndF(args) | OrF(args):
            return args
        case Until(left, right) | Release(left, right) | LeadsTo(left, right):
            return (left, right)
        case _:
            assert_never(formula)


def subformulas(formula: Formula) -> Iterator[Formula]:
    """The formula and everything in it, inner formulas first, from left to right, with repetitions."""
    for part in parts(formula):
        yield from subformulas(part)
    yield formula


def atoms(formula: Formula) -> Iterator[Atom]:
    """The state conditions, from left to right, with repetitions."""
    return (part for part in subformulas(formula) if isinstance(part, Atom))


def recurring(formula: Formula) -> Iterator[Recurs]:
    """The step conditions, from left to right, with repetitions; that of a `Happens` as if it had to recur."""
    for part in subformulas(formula):
        if isinstance(part, Recurs | Happens):
            yield Recurs(part.step, part.text, part.loc)


def happenings(formula: Formula) -> Iterator[Happens]:
    """The steps that are followed by a formula, inner ones first, with repetitions."""
    return (part for part in subformulas(formula) if isinstance(part, Happens))


def untils(formula: Formula) -> Iterator[Until]:
    """The *untils*, inner ones first, with repetitions."""
    return (part for part in subformulas(formula) if isinstance(part, Until))


def claims(formula: Formula) -> Iterator[Formula]:
    """The conjuncts of a formula, including those under a common *always*."""
    match formula:
        case AndF(args):
            for arg in args:
                yield from claims(arg)
        case Always(AndF(args)):
            for arg in args:
                yield from claims(Always(arg))
        case _:
            yield formula


def folded(formula: Formula) -> Formula | bool:
    """The formula without constants, or a constant."""
    match formula:
        case Atom(expr) | Recurs(expr):
            return expr.value if isinstance(expr, Const) and (isinstance(formula, Atom) or not expr.value) else formula
        case NotF(arg):
            one = folded(arg)
            return not one if isinstance(one, bool) else NotF(one)
        case AndF(args) | OrF(args):
            decides = isinstance(formula, OrF)
            some = [folded(arg) for arg in args]
            kept = tuple(one for one in some if not isinstance(one, bool))
            if any(one is decides for one in some):
                return decides
            if not kept:
                return not decides
            return kept[0] if len(kept) == 1 else type(formula)(kept)
        case Always(arg) | Eventually(arg):
            one = folded(arg)
            return one if isinstance(one, bool) else type(formula)(one)
        case Happens(step, arg, text, loc):
            one = folded(arg)
            if one is False or (isinstance(step, Const) and not step.value):
                return False
            return Happens(step, AndF(()) if one is True else one, text, loc)
        case Until(left, right):
            before, after = folded(left), folded(right)
            if isinstance(after, bool) or before is False:
                return after
            return Eventually(after) if isinstance(before, bool) else Until(before, after)
        case Release(left, right):
            before, after = folded(left), folded(right)
            if isinstance(after, bool) or before is True:
                return after
            return Always(after) if isinstance(before, bool) else Release(before, after)
        case LeadsTo(left, right):
            before, after = folded(left), folded(right)
            if before is False or after is True:
                return True
            if isinstance(after, bool):
                return Always(NotF(before)) if not isinstance(before, bool) else False
            return Always(Eventually(after)) if isinstance(before, bool) else LeadsTo(before, after)
        case _:
            assert_never(formula)


def of_state(formula: Formula) -> bool:
    """Whether the formula is a condition on one state, without temporal operators."""
    return isinstance(formula, Atom) or (isinstance(formula, NotF | AndF | OrF) and all(map(of_state, parts(formula))))


def refutable(formula: Formula, *, wanted: bool = True) -> bool:
    """Whether its operators allow a finite prefix that makes the formula false (not `wanted`: true), whatever follows."""
    match formula:
        case Atom():
            return True
        case Recurs():
            return False
        case NotF(arg):
            return refutable(arg, wanted=not wanted)
        case AndF(args) | OrF(args):
            each = (refutable(arg, wanted=wanted) for arg in args)
            return any(each) if isinstance(formula, AndF) is wanted else all(each)
        case Always(arg) | Eventually(arg):
            return isinstance(formula, Always) is wanted and refutable(arg, wanted=wanted)
        case Happens(arg=arg):
            return not wanted and refutable(arg, wanted=False)
        case Until(left, right):
            return refutable(right, wanted=wanted) and (not wanted or refutable(left))
        case Release(left, right):
            return refutable(right, wanted=wanted) and (wanted or refutable(left, wanted=False))
        case LeadsTo(left, right):
            return refutable(Always(OrF((NotF(left), Eventually(right)))), wanted=wanted)
        case _:
            assert_never(formula)


def mapped(formula: Formula, change: Callable[[Formula], Formula]) -> Formula:
    """The same operator with `change` applied to its direct subformulas; an atom and a step condition unchanged."""
    match formula:
        case Atom() | Recurs():
            return formula
        case NotF() | Always() | Eventually():
            return type(formula)(change(formula.arg))
        case Happens(step, arg, text, loc):
            return Happens(step, change(arg), text, loc)
        case AndF() | OrF():
            return type(formula)(tuple(map(change, formula.args)))
        case Until() | Release() | LeadsTo():
            return type(formula)(change(formula.left), change(formula.right))
        case _:
            assert_never(formula)


def rewritten(formula: Formula, change: Callable[[Expr], Expr]) -> Formula:
    """The formula with `change` applied to the term of every state and step condition."""
    match formula:
        case Atom(expr, text, loc):
            return Atom(change(expr), text, loc)
        case Recurs(step, text, loc):
            return Recurs(change(step), text, loc)
        case Happens(step, arg, text, loc):
            return Happens(change(step), rewritten(arg, change), text, loc)
        case _:
            return mapped(formula, partial(rewritten, change=change))


def written(formula: Formula) -> str:
    """The formula in the source syntax."""
    match formula:
        case Atom(expr, text):
            return text or repr(expr)
        case NotF(arg):
            return f"not {_closed(arg)}"
        case AndF(args):
            return " and ".join(map(_closed, args)) or "True"
        case OrF(args):
            return " or ".join(map(_closed, args)) or "False"
        case Always(arg):
            return f"always({written(arg)})"
        case Eventually(arg):
            return f"eventually({written(arg)})"
        case Until(left, right):
            return f"until({written(left)}, {written(right)})"
        case Release(left, right):
            return f"release({written(left)}, {written(right)})"
        case LeadsTo(left, right):
            return f"leads_to({written(left)}, {written(right)})"
        case Recurs(step, text):
            return f"recurs({text or repr(step)})"
        case Happens(step, AndF(()), text):
            return f"eventually({text or repr(step)})"
        case Happens(step, arg, text):
            return f"eventually({text or repr(step)}, then {written(arg)})"
        case _:
            assert_never(formula)


def _closed(formula: Formula) -> str:
    """The formula as an operand, in parentheses where needed."""
    text = written(formula)
    loose = isinstance(formula, AndF | OrF | NotF) or (isinstance(formula, Atom) and " " in text)
    return f"({text})" if loose else text
