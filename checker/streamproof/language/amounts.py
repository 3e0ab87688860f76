"""Parameters that stand for every number, as ordinary Python meets them while a model is read.

`state()`, `setup()` and helpers compute with parameters in plain Python. An `Amount` is what they get of a free one: it adds,
subtracts, multiplies and compares into terms, and refuses, by `Undecided`, what only a number can do. Inside rules it is the
term itself (`unveiled`).
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from streamproof.language.frames import caller
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Const, Expr
from streamproof.system.records import dataclass
from streamproof.system.sorts import RangeSort
from streamproof.system.unbounded import Undecided, term_range, written


class Amount:
    """A number, or a truth value, that depends on free parameters."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __add__(self, other: Any) -> Any:
        return _combined(b.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _combined(b.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _combined(b.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _combined(b.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return _combined(b.mul, self, other)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return _combined(b.sub, 0, self)

    def __lt__(self, other: Any) -> Any:
        return _combined(b.less, self, other)

    def __le__(self, other: Any) -> Any:
        return _combined(b.less_eq, self, other)

    def __gt__(self, other: Any) -> Any:
        return _combined(b.less, other, self)

    def __ge__(self, other: Any) -> Any:
        return _combined(b.less_eq, other, self)

    def __eq__(self, other: object) -> Any:
        return True if self._same(other) else _combined(b.eq, self, other)

    def __ne__(self, other: object) -> Any:
        return False if self._same(other) else _combined(lambda x, y: b.not_(b.eq(x, y)), self, other)

    def _same(self, other: object) -> bool:
        return isinstance(other, Amount) and other.expr is self.expr

    def __hash__(self) -> int:
        return id(self.expr)

    def __repr__(self) -> str:
        return written(self.expr)

    def _unknown(self, *_: Any) -> NoReturn:
        raise Undecided(
            f"{self!r} is any number here: ordinary Python cannot decide by it or count up to it",
            loc=caller(),
            remedy="decide inside a rule, or give the parameter a value",
        )

    __bool__ = __index__ = __int__ = __iter__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _unknown
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __abs__ = __float__ = __len__ = _unknown


@dataclass(frozen=True, slots=True)
class Indices:
    """``range(...)`` with an end that depends on free parameters."""

    least: Expr
    most: Expr

    @property
    def sort(self) -> RangeSort:
        """The integers in it."""
        return term_range(self.least, self.most)

    def __iter__(self) -> NoReturn:
        raise Undecided(
            f"range({written(self.least)}, {written(b.add(self.most, b.num(1)))}) has any number of elements here",
            loc=caller(),
            remedy="use it as the index of an Array, or inside all(...), any(...) and sum(...)",
        )


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The first value of an array of any length: `value` at every index."""

    value: Any


def _combined(make: Callable[..., Expr], left: Any, right: Any) -> Any:
    terms = [_term(left), _term(right)]
    if terms[0] is None or terms[1] is None:
        return NotImplemented
    made = make(*terms)
    return made.value if isinstance(made, Const) else Amount(made)


def _term(value: Any) -> Expr | None:
    if isinstance(value, Amount):
        return value.expr
    return b.num(value) if isinstance(value, int) and not isinstance(value, bool) else None


def unveiled(value: Any) -> Any:
    """What a rule sees of a value of ordinary Python: the term of an `Amount`, everything else as it is."""
    return value.expr if isinstance(value, Amount) else value


def indices(*ends: Any) -> Any:
    """Python's ``range``, also with ends that are amounts."""
    if not any(isinstance(end, Amount) for end in ends):
        return range(*ends)
    return between([unveiled(end) for end in ends], caller())


def between(ends: list[Any], loc: Loc | None) -> Indices:
    """The `Indices` of the arguments of ``range``. Raises `ModelError` for a step."""
    if len(ends) > 2:
        raise ModelError("range(...) with a step over any number of elements", loc=loc, remedy="leave out the step")
    terms = [b.num(end) if isinstance(end, int) else end for end in ends]
    first = terms[0] if len(terms) == 2 else b.num(0)
    return Indices(first, b.sub(terms[-1], b.num(1)))


@contextmanager
def ranging(model: type) -> Iterator[None]:
    """Meanwhile, ``range`` means `indices` in the modules in which a model and the models it builds on are written."""
    modules = {id(m.__dict__): m.__dict__ for c in model.__mro__ if (m := sys.modules.get(c.__module__)) is not None}
    places = [m for m in modules.values() if "range" not in m and m is not builtins.__dict__]
    for place in places:
        place["range"] = indices
    try:
        yield
    finally:
        for place in places:
            del place["range"]
