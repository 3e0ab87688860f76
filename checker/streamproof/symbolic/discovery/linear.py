"""Exact linear algebra over the rationals: sparse vectors, elimination, the null space; numeric terms as linear forms.

A vector is a mapping from keys (any hashable) to nonzero numbers; a form is one over atomic features.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Generic, TypeAlias, TypeVar

from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Variable
from streamproof.system.sorts import BoolSort, EnumSort

K = TypeVar("K", bound=Hashable)

Number = int | Fraction


def plus(one: Mapping[K, Number], other: Mapping[K, Number], times: Number = 1) -> dict[K, Number]:
    """`one + times * other`."""
    total = dict(one)
    for key, value in other.items():
        total[key] = total.get(key, 0) + times * value
        if not total[key]:
            del total[key]
    return total


def scaled(vector: Mapping[K, Number], by: Number) -> dict[K, Number]:
    """`by * vector`."""
    return {key: by * value for key, value in vector.items()} if by else {}


def primitive(vector: Mapping[K, Number]) -> dict[K, int]:
    """The primitive integer vector of the same direction whose first entry is positive."""
    if not vector:
        return {}
    fractions = {key: Fraction(value) for key, value in vector.items()}
    denominator = math.lcm(*(f.denominator for f in fractions.values()))
    whole = {key: int(f * denominator) for key, f in fractions.items()}
    divisor = math.gcd(*whole.values())
    sign = 1 if next(iter(whole.values())) > 0 else -1
    return {key: sign * value // divisor for key, value in whole.items()}


class VectorSpan(Generic[K]):
    """The span of vectors, in reduced row echelon form: every pivot appears in one row, with entry 1.

    `order` lists the possible pivots; earlier keys are preferred. A vector without any of them is ignored.
    """

    def __init__(self, order: Iterable[K]) -> None:
        self._rank = {key: n for n, key in enumerate(order)}
        self.rows: dict[K, dict[K, Number]] = {}

    def add(self, vector: Mapping[K, Number]) -> bool:
        """Adds the vector; whether it was outside the span."""
        rest = self.reduced(vector)
        candidates = [key for key in rest if key in self._rank]
        if not candidates:
            return False
        pivot = min(candidates, key=self._rank.__getitem__)
        row = scaled(rest, Fraction(1) / rest[pivot])
        for key, other in self.rows.items():
            if pivot in other:
                self.rows[key] = plus(other, row, -other[pivot])
        self.rows[pivot] = row
        return True

    def reduced(self, vector: Mapping[K, Number]) -> dict[K, Number]:
        """The remainder of a vector after elimination of every pivot."""
        rest = dict(vector)
        for key in list(rest):
            if key in self.rows and key in rest:
                rest = plus(rest, self.rows[key], -rest[key])
        return rest


def null_space(equations: Iterable[Mapping[K, Number]], unknowns: Sequence[K]) -> tuple[dict[K, int], ...]:
    """A basis of all solutions for the `unknowns` of the equations ``sum(entry * unknown) = 0``.

    Vectors are primitive and simplified: few entries, preferably positive.
    """
    span: VectorSpan[K] = VectorSpan(unknowns)
    for equation in equations:
        span.add(equation)
    basis: list[dict[K, int]] = []
    for free in unknowns:
        if free not in span.rows:
            vector: dict[K, Number] = {free: 1}
            for pivot, row in span.rows.items():
                if free in row:
                    vector[pivot] = -row[free]
            basis.append(primitive({key: vector[key] for key in unknowns if key in vector}))
    return tuple(_sparser(basis, unknowns))


def _sparser(basis: list[dict[K, int]], order: Sequence[K]) -> list[dict[K, int]]:
    """A basis with fewer entries, and fewer negative ones, obtained by combining pairs of vectors."""
    improved = True
    while improved:
        improved = False
        for n, one in enumerate(basis):
            # Each vector is combined with the current others only: using its own former value would lose a dimension.
            for other in basis[:n] + basis[n + 1 :]:
                shared = [key for key in order if key in one and key in other]
                if not shared or len(other) > 2 * len(one):
                    continue
                for key in shared:
                    rest = plus(scaled(one, other[key]), other, -one[key])
                    simpler = primitive({k: rest[k] for k in order if k in rest})
                    if _weight(simpler) < _weight(one):
                        one = simpler
                        improved = True
                        break
            basis[n] = one
    return basis


def _weight(vector: Mapping[K, int]) -> tuple[int, int]:
    return len(vector), sum(value < 0 for value in vector.values())


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
