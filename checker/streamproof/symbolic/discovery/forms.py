"""Numeric terms as linear forms over atomic features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from streamproof.symbolic.discovery.linear import Number, plus, scaled
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Variable
from streamproof.system.sorts import BoolSort, EnumSort

Form: TypeAlias = dict[Expr, Number]
"""Terms with their coefficients; the constant is the coefficient of the term 1."""

ONE = b.num(1)


def form(term: Expr) -> Form:
    """A numeric term as a linear form; products and quotients of variables are atomic."""
    match term:
        case e.Const(value=value):
            return {ONE: value} if value else {}
        case e.Add(left=x, right=y):
            return plus(form(x), form(y))
        case e.Sub(left=x, right=y):
            return plus(form(x), form(y), -1)
        case e.Mul(left=e.Const(value=value), right=x) | e.Mul(left=x, right=e.Const(value=value)):
            return scaled(form(x), value)
        case e.Ite(cond=c, then=e.Const(value=x), other=e.Const(value=y)):
            return plus(scaled(flag(c), x - y), {ONE: y} if y else {})
        case _:
            return {term: 1}


def flag(condition: Expr) -> Form:
    """A condition as a number: 1 where it is true, 0 where it is false."""
    match condition:
        case e.Const(value=value):
            return {ONE: 1} if value else {}
        case e.Not(arg=inner):
            return plus({ONE: 1}, flag(inner), -1)
        case e.Eq(left=left, right=e.Const(value=value)) if isinstance(left.sort, EnumSort):
            members = left.sort.members
            if value != members[0]:
                return {condition: 1}
            # The indicators of all values sum to 1, so the first is redundant, and its omission avoids a trivial law.
            others: Form = {b.eq(left, b.const(left.sort, m)): -1 for m in members[1:]}
            return plus({ONE: 1}, others)
        case _:
            return {condition: 1}


def features(variable: Variable) -> tuple[Expr, ...]:
    """The features of a scalar variable: itself, or an indicator for each value but the first."""
    own = b.var(variable.name, variable.sort)
    match variable.sort:
        case EnumSort(members):
            return tuple(b.eq(own, b.const(variable.sort, m)) for m in members[1:])
        case _:
            return (own,)


def amount(feature: Expr) -> Form:
    """The linear form of a feature, possibly rewritten by substitution."""
    return flag(feature) if isinstance(feature.sort, BoolSort) else form(feature)


def as_term(weights: Mapping[Expr, Number]) -> Expr:
    """The sum term of a linear form with integer coefficients."""
    total: Expr | None = None
    for term in sorted(weights, key=lambda term: term is ONE):
        factor = int(weights[term])
        number = b.ite(term, b.num(1), b.num(0)) if isinstance(term.sort, BoolSort) else term
        size = b.num(abs(factor)) if term is ONE else b.mul(b.num(abs(factor)), number)
        if total is None:
            total = size if factor > 0 else b.sub(b.num(0), size)
        else:
            total = b.add(total, size) if factor > 0 else b.sub(total, size)
    return b.num(0) if total is None else total
