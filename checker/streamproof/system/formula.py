"""Temporal formulas (LTL without next): a closed union over state conditions and one kind of step condition.

A behaviour is an infinite sequence of states; a finite one stutters in its last state. Without a "next" operator,
formulas are invariant under stuttering. The meaning is defined in `temporal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from typing import TypeAlias, assert_never

from streamproof.system.errors import Loc
from streamproof.system.expr import Expr
from streamproof.system.records import dataclass


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


Formula: TypeAlias = Atom | NotF | AndF | OrF | Always | Eventually | Until | Release | LeadsTo | Recurs

FORMULAS = (Atom, NotF, AndF, OrF, Always, Eventually, Until, Release, LeadsTo, Recurs)
"""The classes of the union, for `isinstance`."""


def parts(formula: Formula) -> tuple[Formula, ...]:
    """The direct subformulas, from left to right."""
    match formula:
        case Atom() | Recurs():
            return ()
        case NotF(arg) | Always(arg) | Eventually(arg):
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
    """The step conditions, from left to right, with repetitions."""
    return (part for part in subformulas(formula) if isinstance(part, Recurs))


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


def mapped(formula: Formula, change: Callable[[Formula], Formula]) -> Formula:
    """The same operator with `change` applied to its direct subformulas; an atom unchanged."""
    match formula:
        case Atom() | Recurs():
            return formula
        case NotF() | Always() | Eventually():
            return type(formula)(change(formula.arg))
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
        case _:
            assert_never(formula)


def _closed(formula: Formula) -> str:
    """The formula as an operand, in parentheses where needed."""
    text = written(formula)
    loose = isinstance(formula, AndF | OrF | NotF) or (isinstance(formula, Atom) and " " in text)
    return f"({text})" if loose else text
