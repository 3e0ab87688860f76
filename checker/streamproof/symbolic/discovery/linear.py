"""Exact linear algebra over the rationals: sparse vectors, elimination, the null space.

A vector is a mapping from keys (any hashable) to nonzero numbers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Generic, TypeVar

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
