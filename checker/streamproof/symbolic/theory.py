"""Scalar expressions as terms of the solver, in two encodings of integers: bit-vectors, or the solver's integers.

Both are exact. In `Bits`, every term is a signed vector wide enough for the interval of its sort, and operands are
widened before an operation, so nothing wraps around. `Integers` decides the same queries by another procedure. Bounded
searches use `Bits`: two to three times faster on protocols of control states, half as fast on models that add counters.
Induction tries both, because a sum over many counters can take minutes in one and an instant in the other. A finished
proof is confirmed with the other encoding. `benchmarks/symbolic_numbers.py` prints the comparison.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, assert_never

from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.sorts import BoolSort, EnumSort, RangeSort, Scalar, Sort, Value

OPERATORS = {
    e.Less: operator.lt,
    e.LessEq: operator.le,
    e.Add: operator.add,
    e.Sub: operator.sub,
    e.Mul: operator.mul,
}
"""The operators of Python, and so of solver terms, that mean what an expression means."""


class Terms:
    """Translates expressions over given constants, with a cache.

    Numbers encode the values of ranges (themselves) and enums (their positions); Booleans are Booleans.
    """

    def __init__(
        self,
        ctx: Any,
        theory: Theory,
        sorts: Mapping[str, Scalar],
        current: Mapping[str, Term],
        following: Mapping[str, Term],
    ) -> None:
        import z3

        self._z3 = z3
        self._ctx = ctx
        self._theory = theory
        self._sorts = sorts
        self._current = current
        self._following = following
        self._known: dict[Expr, Term] = {}

    def term(self, root: Expr) -> Term:
        """The solver's term for `root`."""
        for term in e.unfinished(root, self._known):
            self._known[term] = self._translate(term)
        return self._known[root]

    def read(self, constants: Mapping[str, Term], name: str) -> Term:
        """The value of a variable, given the constants of its state."""
        sort = self._sorts[name]
        return constants[name] if isinstance(sort, BoolSort) else self._theory.read(constants[name], sort)

    def literal(self, sort: Sort, value: Value) -> Term:
        """A value of a scalar sort."""
        match sort:
            case BoolSort():
                return self._z3.BoolVal(value, self._ctx)
            case EnumSort(members):
                return self._theory.literal(members.index(value))
            case _:
                return self._theory.literal(value)

    def same(self, left: Term, right: Term, sort: Sort) -> Term:
        """Equality of two values, `sort` being that of either."""
        return left == right if isinstance(sort, BoolSort) else self._theory.apply(operator.eq, left, right)

    def choose(self, cond: Term, then: Term, other: Term, sort: Sort) -> Term:
        """`then` if `cond` else `other`, `sort` being that of either."""
        return self._z3.If(cond, then, other) if isinstance(sort, BoolSort) else self._theory.choose(cond, then, other)

    def _translate(self, term: Expr) -> Term:
        z3, theory, t = self._z3, self._theory, self._known
        match term:
            case e.Const(sort=sort, value=value):
                return self.literal(sort, value)
            case e.Var(name=name):
                return self.read(self._current, name)
            case e.Next(name=name):
                return self.read(self._following, name)
            case e.Not(arg=a):
                return z3.Not(t[a])
            case e.And(args=args):
                return z3.And([t[a] for a in args])
            case e.Or(args=args):
                return z3.Or([t[a] for a in args])
            case e.Ite(sort=sort, cond=c, then=a, other=b):
                return self.choose(t[c], t[a], t[b], sort)
            case e.Eq(left=a, right=b):
                return self.same(t[a], t[b], a.sort)
            case e.Less(left=a, right=b) | e.LessEq(left=a, right=b):
                return theory.apply(OPERATORS[type(term)], t[a], t[b])
            case e.Add(left=a, right=b) | e.Sub(left=a, right=b) | e.Mul(left=a, right=b):
                assert isinstance(term.sort, RangeSort)
                return theory.apply(OPERATORS[type(term)], t[a], t[b], term.sort)
            case e.FloorDiv(sort=RangeSort() as sort, left=a, right=b):
                return theory.floor_div(t[a], t[b], sort)
            case e.Mod(sort=RangeSort() as sort, left=a, right=b):
                return theory.mod(t[a], t[b], sort)
            case _:
                raise TypeError(f"not a scalar term: {term!r}")


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
