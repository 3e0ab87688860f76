"""Promela's names, types and expressions for the variables and terms of a scalar system.

Promela computes with 32-bit integers and C's truncating division. Larger integers are rejected; floor division is
expressed by the truncating one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from streamproof.base.errors import TooLarge
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.sorts import BoolSort, EnumSort, RangeSort, Sort, Value

LARGEST = 2**31 - 1
"""The largest integer of Promela; its negative is the least integer used."""
WEIGHT_LIMIT = 200_000
"""Maximum size of one expression, in operators and operands, repeated parts counted again."""


class PromelaNames:
    """Unique identifiers: letters, digits and underscores. A prefix separates them from Spin's own names."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def new(self, prefix: str, text: str) -> str:
        """An identifier that begins with `prefix` and is otherwise as similar to `text` as possible."""
        base = f"{prefix}_{re.sub(r'[^A-Za-z0-9]+', '_', text).strip('_')}".rstrip("_")
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name


def declared_type(sort: Sort) -> str:
    """The narrowest type of Promela for a scalar sort. Raises `TooLarge` beyond 32 bits."""
    lo, hi = bounds(sort)
    if lo >= 0 and hi <= 1:
        return "bit"
    if lo >= 0 and hi <= 255:
        return "byte"
    if lo >= -(2**15) and hi < 2**15:
        return "short"
    _expect_narrow(lo, hi)
    return "int"


def bounds(sort: Sort) -> tuple[int, int]:
    """The least and the largest number that encodes a value of a scalar sort."""
    match sort:
        case BoolSort():
            return 0, 1
        case RangeSort(lo, hi):
            return lo, hi
        case EnumSort(members):
            return 0, len(members) - 1
        case _:
            raise AssertionError(f"{sort} is not a scalar sort")


def literal(sort: Sort, value: Value) -> str:
    """A value of a scalar sort as a number; negative ones in parentheses."""
    number = sort.members.index(value) if isinstance(sort, EnumSort) else int(value)
    return str(number) if number >= 0 else f"({number})"


def meaning(sort: Sort) -> str:
    """The encoding of a scalar sort's values, for a comment."""
    match sort:
        case BoolSort():
            return "0 False, 1 True"
        case RangeSort(lo, hi):
            return f"{lo}..{hi}"
        case EnumSort(members):
            return ", ".join(f"{at} {name}" for at, name in enumerate(members))
        case _:
            raise AssertionError(f"{sort} is not a scalar sort")


class PromelaTerms:
    """Writes terms as Promela expressions; `known` maps terms to variables that already hold their values."""

    def __init__(self, known: Mapping[Expr, str]) -> None:
        self._known = known
        self._weights: dict[Expr, int] = {}

    def weight(self, term: Expr) -> int:
        """The size of the text of `term`, in operators and operands, repeated parts counted again."""
        for part in e.unfinished(term, self._weights, self._inside):
            self._weights[part] = 1 if part in self._known else _weight(part, self._weights)
        return self._weights[term]

    def text(self, term: Expr) -> str:
        """`term` as an expression. Raises `TooLarge` if it is too long, or may need more than 32 bits."""
        if self.weight(term) > WEIGHT_LIMIT:
            raise TooLarge(
                f"a condition would be written with {self.weight(term):,} operators and operands in Promela",
                remedy="choose smaller parameters, or split it into several actions or properties",
            )
        texts: dict[Expr, str] = {}
        for part in e.unfinished(term, texts, self._inside):
            texts[part] = self._known.get(part) or _term_text(part, texts)
        return texts[term]

    def holding(self, held: Mapping[Expr, str]) -> PromelaTerms:
        """The same with variables that hold the values of some more terms."""
        return PromelaTerms({**self._known, **held})

    def mentioned(self, term: Expr) -> set[Expr]:
        """The known terms used in the text of `term`."""
        seen: set[Expr] = set()
        for part in e.unfinished(term, seen, self._inside):
            seen.add(part)
        return seen & self._known.keys()

    def _inside(self, term: Expr) -> tuple[Expr, ...]:
        """The parts that the text of `term` has; of a known term none."""
        return () if term in self._known else e.children(term)


def _weight(term: Expr, weights: Mapping[Expr, int]) -> int:
    parts = [weights[c] for c in e.children(term)]
    if isinstance(term, e.FloorDiv | e.Mod):
        return 8 + 4 * sum(parts)
    return 1 + sum(parts)


def _term_text(term: Expr, texts: Mapping[Expr, str]) -> str:
    if isinstance(term.sort, RangeSort):
        _expect_narrow(term.sort.lo, term.sort.hi)
    match term:
        case e.Const(sort=sort, value=value):
            return literal(sort, value)
        case e.Not(arg=x):
            return f"!{texts[x]}"
        case e.And(args=args):
            return f"({' && '.join(texts[a] for a in args)})"
        case e.Or(args=args):
            return f"({' || '.join(texts[a] for a in args)})"
        case e.Ite(cond=c, then=x, other=y):
            return f"({texts[c]} -> {texts[x]} : {texts[y]})"
        case e.FloorDiv(left=x, right=y):
            return _quotient(texts[x], texts[y], bounds(x.sort), bounds(y.sort))
        case e.Mod(left=x, right=y):
            return _remainder(texts[x], texts[y], bounds(x.sort), bounds(y.sort))
        case (
            e.Eq(left=x, right=y)
            | e.Less(left=x, right=y)
            | e.LessEq(left=x, right=y)
            | e.Add(left=x, right=y)
            | e.Sub(left=x, right=y)
            | e.Mul(left=x, right=y)
        ):
            return f"({texts[x]} {_SIGN[type(term)]} {texts[y]})"
        case _:
            raise AssertionError(f"{type(term).__name__} is not a scalar term of a known state")


_SIGN: dict[type[e.Node], str] = {
    e.Eq: "==",
    e.Less: "<",
    e.LessEq: "<=",
    e.Add: "+",
    e.Sub: "-",
    e.Mul: "*",
}


def _quotient(x: str, y: str, of_x: tuple[int, int], of_y: tuple[int, int]) -> str:
    """``x // y``: truncation rounds up if the signs differ and the remainder is not 0."""
    exact = f"({x} / {y})"
    if not (of_x[0] >= 0 and of_y[0] >= 0):
        exact = f"((({x} % {y}) != 0 && ({x} < 0) != ({y} < 0)) -> {exact} - 1 : {exact})"
    return _unless_zero(exact, y, of_y)


def _remainder(x: str, y: str, of_x: tuple[int, int], of_y: tuple[int, int]) -> str:
    """``x % y`` with the sign of the divisor: C's has the sign of the dividend."""
    exact = f"({x} % {y})"
    if not (of_x[0] >= 0 and of_y[0] >= 0):
        exact = f"(({exact} != 0 && ({x} < 0) != ({y} < 0)) -> {exact} + {y} : {exact})"
    return _unless_zero(exact, y, of_y)


def _unless_zero(text: str, y: str, of_y: tuple[int, int]) -> str:
    return f"({y} == 0 -> 0 : {text})" if of_y[0] <= 0 <= of_y[1] else text


def _expect_narrow(lo: int, hi: int) -> None:
    if lo < -LARGEST or hi > LARGEST:
        raise TooLarge(
            f"an integer from {lo} to {hi} does not fit Promela's 32 bits", remedy="choose smaller ranges or parameters"
        )
