"""Integer encodings for the solver: bit-vectors of exactly sufficient width, or the solver's integers.

Both are exact. In `Bits`, every term is a signed vector wide enough for the interval of its sort, and operands are
widened before an operation, so nothing wraps around. `Integers` decides the same queries by another procedure. Bounded
searches use `Bits`: two to three times faster on protocols of control states, half as fast on models that add counters.
Induction tries both, because a sum over many counters can take minutes in one and an instant in the other. A finished
proof is confirmed with the other encoding. `benchmarks/symbolic_numbers.py` prints the comparison.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, assert_never

from streamproof.system.sorts import EnumSort, RangeSort

Term: TypeAlias = Any
"""A solver term; Z3's Python binding is untyped."""


def interval(sort: RangeSort | EnumSort) -> tuple[int, int]:
    """The numbers that encode the values of a Range (themselves) or an Enum (their positions)."""
    match sort:
        case RangeSort(lo, hi):
            return lo, hi
        case EnumSort(members):
            return 0, len(members) - 1
        case _:
            assert_never(sort)


class SolverContext:
    """A solver context of its own, with the connectives of propositional logic."""

    integers = True
    """Whether numbers are the solver's integers; else they are bit-vectors."""

    def __init__(self) -> None:
        import z3

        self.z3 = z3
        self.ctx: Any = z3.Context()

    def all_of(self, formulas: Iterable[Term]) -> Term:
        """Conjunction."""
        parts = list(formulas)
        return self.z3.And(parts) if parts else self.z3.BoolVal(True, self.ctx)

    def any_of(self, formulas: Iterable[Term]) -> Term:
        """Disjunction."""
        parts = list(formulas)
        return self.z3.Or(parts) if parts else self.z3.BoolVal(False, self.ctx)

    def no(self, formula: Term) -> Term:
        """Negation."""
        return self.z3.Not(formula)

    def switch(self, name: str) -> Term:
        """A Boolean that switches assertions on and off."""
        return self.z3.Bool(f"switch {name}", self.ctx)


class Theory(ABC):
    """The operations on numbers that the encoding needs. `sort` is that of the result, or of the constant."""

    def __init__(self, ctx: Any) -> None:
        import z3

        self._z3 = z3
        self._ctx = ctx

    @abstractmethod
    def unknown(self, name: str, sort: RangeSort | EnumSort) -> Term:
        """A constant that can represent every value of `sort`, possibly more."""

    @abstractmethod
    def read(self, unknown: Term, sort: RangeSort | EnumSort) -> Term:
        """The value of such a constant, as a term for arithmetic."""

    @abstractmethod
    def literal(self, value: int) -> Term:
        """A number."""

    @abstractmethod
    def level(self, left: Term, right: Term, sort: RangeSort | None = None) -> tuple[Term, Term]:
        """Two operands of one type, which has the values of `sort` too."""

    def choose(self, cond: Term, then: Term, other: Term) -> Term:
        """`then` if `cond` else `other`."""
        return self._z3.If(cond, *self.level(then, other))

    def apply(
        self, function: Callable[[Term, Term], Term], left: Term, right: Term, sort: RangeSort | None = None
    ) -> Term:
        """A comparison, sum, difference or product; `sort` is that of a numeric result."""
        return function(*self.level(left, right, sort))

    @abstractmethod
    def floor_div(self, left: Term, right: Term, sort: RangeSort) -> Term:
        """Quotient rounded down; 0 for a zero divisor."""

    @abstractmethod
    def mod(self, left: Term, right: Term, sort: RangeSort) -> Term:
        """Remainder with the divisor's sign; 0 for a zero divisor."""

    @abstractmethod
    def number(self, value: Term, sort: RangeSort | EnumSort) -> int:
        """The number that a solver model assigns to a constant of `sort`."""


class Bits(Theory):
    """Numbers as signed bit-vectors, each as wide as the interval of its term requires."""

    def unknown(self, name: str, sort: RangeSort | EnumSort) -> Term:
        """A constant, without a sign bit if no value is negative."""
        lo, hi = interval(sort)
        return self._z3.BitVec(name, max(1, hi.bit_length()) if lo >= 0 else _width(lo, hi), self._ctx)

    def read(self, unknown: Term, sort: RangeSort | EnumSort) -> Term:
        """The constant with its sign bit restored."""
        return self._z3.ZeroExt(1, unknown) if interval(sort)[0] >= 0 else unknown

    def literal(self, value: int) -> Term:
        """As narrow as the number allows."""
        return self._z3.BitVecVal(value, _width(value, value), self._ctx)

    def level(self, left: Term, right: Term, sort: RangeSort | None = None) -> tuple[Term, Term]:
        """At the wider width, or that of the result."""
        return self._widened_pair(
            max(left.size(), right.size(), 0 if sort is None else _width(sort.lo, sort.hi)), left, right
        )

    def floor_div(self, left: Term, right: Term, sort: RangeSort) -> Term:
        """Subtracts the remainder first: the division is then exact, so the solver's rounding towards zero has no effect."""
        # `left - remainder`, and the least number divided by -1, need one bit more than the operands.
        a, b = self._widened_pair(1 + max(left.size(), right.size()), left, right)
        zero = self._z3.BitVecVal(0, a.size(), self._ctx)
        return self._z3.If(b == zero, zero, (a - a % b) / b)

    def mod(self, left: Term, right: Term, sort: RangeSort) -> Term:
        """The solver's signed remainder follows the divisor, as Python's."""
        a, b = self.level(left, right)
        zero = self._z3.BitVecVal(0, a.size(), self._ctx)
        return self._z3.If(b == zero, zero, a % b)

    def number(self, value: Term, sort: RangeSort | EnumSort) -> int:
        """Signed where the constant has a sign bit."""
        return int(value.as_long() if interval(sort)[0] >= 0 else value.as_signed_long())

    def _widened_pair(self, width: int, left: Term, right: Term) -> tuple[Term, Term]:
        wide = [self._z3.SignExt(width - t.size(), t) if t.size() < width else t for t in (left, right)]
        return wide[0], wide[1]


def _width(lo: int, hi: int) -> int:
    """Minimum number of bits in two's complement for all values from `lo` to `hi`."""
    return 1 + max((n if n >= 0 else ~n).bit_length() for n in (lo, hi))


class Integers(Theory):
    """Numbers as the solver's unbounded integers; the encoding asserts the bounds of constants."""

    def unknown(self, name: str, sort: RangeSort | EnumSort) -> Term:
        """An integer constant."""
        return self._z3.Int(name, self._ctx)

    def read(self, unknown: Term, sort: RangeSort | EnumSort) -> Term:
        """Itself."""
        return unknown

    def literal(self, value: int) -> Term:
        """A numeral."""
        return self._z3.IntVal(value, self._ctx)

    def level(self, left: Term, right: Term, sort: RangeSort | None = None) -> tuple[Term, Term]:
        """Themselves."""
        return left, right

    def floor_div(self, left: Term, right: Term, sort: RangeSort) -> Term:
        """The solver rounds down for positive divisors; for negative ones both signs are inverted."""
        zero = self.literal(0)
        return self._z3.If(right == zero, zero, self._z3.If(right < zero, (-left) / (-right), left / right))

    def mod(self, left: Term, right: Term, sort: RangeSort) -> Term:
        """The solver's remainder is never negative; for negative divisors both signs are inverted."""
        zero = self.literal(0)
        return self._z3.If(right == zero, zero, self._z3.If(right < zero, -((-left) % (-right)), left % right))

    def number(self, value: Term, sort: RangeSort | EnumSort) -> int:
        """The numeral."""
        return int(value.as_long())
