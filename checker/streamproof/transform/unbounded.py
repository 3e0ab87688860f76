"""Extensions of the finite waist for proofs for every size: unbounded integers, symbolic bounds, quantifiers.

A `Parametric` holds a transition system in which some parameters are constants of unknown value. It is not a `System`,
so that no engine that counts states accepts it. Its terms are those of `expr` and two more: `Forall` and `Total`, over
an index from a range whose ends are terms; `Tabulated` is an array with a term for each index. An `ArraySort` over such a
range is an array of unbounded length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any, TypeGuard

from streamproof.base.errors import Loc, ModelError
from streamproof.base.options import setting
from streamproof.base.records import dataclass, replace
from streamproof.system import expr as e
from streamproof.system.build import TRUE, add, ite, less_eq, mul, not_, num, sub, var
from streamproof.system.expr import Expr, Node, intern
from streamproof.system.model import System
from streamproof.system.sorts import (
    BOOL,
    INFINITY,
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    TermRange,
    UnionSort,
)
from streamproof.transform.assume import Substitution

EACH = "c'"
"""The name of the index in sums and discovered claims; the quote makes it invalid in source code."""


class Undecided(ModelError):
    """Ordinary Python tests the value of a free parameter."""


class Unbounded(ModelError):
    """A finite system was requested, but the model declares unbounded integers."""


def integers(least: int | None, most: int | None) -> RangeSort:
    """All integers between two numbers; None: an infinite end."""
    return RangeSort(-INFINITY if least is None else least, INFINITY if most is None else most)


def term_range(least: Expr, most: Expr) -> RangeSort:
    """The integers between two terms of numbers; a plain range if both are constant. Raises `ModelError` if it is empty."""
    assert isinstance(least.sort, RangeSort)
    assert isinstance(most.sort, RangeSort)
    if isinstance(least, e.Const) and isinstance(most, e.Const):
        return RangeSort(least.value, most.value)
    return TermRange(least.sort.lo, most.sort.hi, least, most, f"Range({written(least)}, {written(most)})")


def endless(sort: RangeSort) -> bool:
    """Whether a range has an infinite end, or ends that are terms."""
    return isinstance(sort, TermRange) or sort.lo == -INFINITY or sort.hi == INFINITY


WIDEST = 2**30 - 1
"""The largest absolute value of an unbounded integer in a search; a sum of two has the 32 bits of TLC and Promela."""
_AS_DECLARED: ContextVar[bool] = ContextVar("_AS_DECLARED", default=False)


@contextmanager
def as_declared(declared: bool = True) -> Iterator[None]:
    """Within this context, unbounded integers have no range in the systems of models with a constraint either: for proofs.
    Not `declared`: they have one."""
    with setting(_AS_DECLARED, declared):
        yield


def is_as_declared() -> bool:
    """Whether this runs within `as_declared`."""
    return _AS_DECLARED.get()


def searchable(sort: Sort) -> Sort:
    """`sort` with a wide range for each unbounded integer, except in sets, which have a bit for each of their values."""
    match sort:
        case RangeSort(lo, hi) if type(sort) is RangeSort and endless(sort):
            return RangeSort(max(lo, -WIDEST), min(hi, WIDEST))
        case RecordSort(parts):
            return replace(sort, fields=tuple((name, searchable(part)) for name, part in parts))
        case UnionSort(parts):
            return replace(sort, cases=tuple((name, searchable(part)) for name, part in parts))
        case ArraySort(element=element) | OptionSort(element) | QueueSort(element):
            return replace(sort, element=searchable(element))
        case _:
            return sort


def ranges(sort: Sort) -> Iterator[RangeSort]:
    """Every range in a sort."""
    match sort:
        case RangeSort():
            yield sort
        case ArraySort(index, element):
            yield from ranges(index)
            yield from ranges(element)
        case RecordSort(parts) | UnionSort(parts):
            for _, part in parts:
                yield from ranges(part)
        case OptionSort(element) | QueueSort(element) | SetSort(element):
            yield from ranges(element)


def has_unbounded(sort: Sort) -> bool:
    """Whether a sort contains integers without a bound, which depend on no parameter."""
    return any(type(part) is RangeSort and endless(part) for part in ranges(sort))


def any_length(sort: Sort) -> TypeGuard[ArraySort]:
    """Whether it is the sort of arrays whose length is a term of free parameters."""
    return isinstance(sort, ArraySort) and isinstance(sort.index, TermRange)


def unsupported(sort: Sort) -> Sort | None:
    """The first set, queue or union in a sort, which proofs for every size do not support; None if there is none."""
    match sort:
        case SetSort() | QueueSort() | UnionSort():
            return sort
        case ArraySort(element=element) | OptionSort(element):
            return unsupported(element)
        case RecordSort(fields):
            return next((found for _, part in fields if (found := unsupported(part)) is not None), None)
        case _:
            return None


def instead_of(sort: Sort) -> str:
    """The remedy for an unsupported sort."""
    match sort:
        case SetSort(element=TermRange(least=e.Const(value=0), most=e.Sub(left=length, right=e.Const(value=1)))):
            return f"use Array({written(length, 'self.')}, Bool())"
        case SetSort(element=TermRange(least=least, most=most)):
            return f"use Array(Range({written(least, 'self.')}, {written(most, 'self.')}), Bool())"
        case SetSort(element=RangeSort() | EnumSort() | BoolSort() as element):
            return f"use Array({element}, Bool())"
        case _:
            return "where order and identity do not matter, count: a Range or Nat for each kind of element"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Forall(Node):
    """`body` for every value of the variable `bound` in its range; true if the range is empty."""

    bound: Expr
    body: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Total(Node):
    """The sum of `body` over the range of the variable `bound`; 0 if the range is empty."""

    bound: Expr
    body: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Tabulated(Node):
    """The array of unbounded length whose element at each index is `body`, for that value of the variable `bound`."""

    bound: Expr
    body: Expr


BINDING = (Forall, Total, Tabulated)
"""The terms that bind an index."""


def tabulated(sort: ArraySort, bound: Expr, body: Expr, loc: Loc | None = None) -> Expr:
    """An array of `sort` with `body` as the element at each index."""
    return intern(Tabulated, sort, loc, bound, body)


def forall(bound: Expr, body: Expr, loc: Loc | None = None) -> Expr:
    """`body` for every value of `bound`."""
    return TRUE if body is TRUE else intern(Forall, BOOL, loc, bound, body)


def at_most(left: Expr, right: Expr) -> Expr:
    """`left <= right`, without simplification by the operands' sorts, because their ranges are to be proved."""
    return intern(e.LessEq, BOOL, None, left, right)


def conjuncts(term: Expr) -> Iterator[Expr]:
    """The parts of a conjunction, those under a quantifier included."""
    if isinstance(term, Forall):
        yield from conjuncts(term.body)
    elif isinstance(term, e.And):
        for part in term.args:
            yield from conjuncts(part)
    else:
        yield term


def exists(bound: Expr, body: Expr, loc: Loc | None = None) -> Expr:
    """`body` for some value of `bound`."""
    return not_(forall(bound, not_(body), loc), loc)


def total(bound: Expr, body: Expr, loc: Loc | None = None) -> Expr:
    """The sum of `body` over the values of `bound`, split by linearity so that equal parts are equal terms."""
    assert isinstance(body.sort, RangeSort)
    assert isinstance(bound, e.Var)
    match body:
        case e.Add(left=left, right=right):
            return add(total(bound, left, loc), total(bound, right, loc), loc)
        case e.Sub(left=left, right=right):
            return sub(total(bound, left, loc), total(bound, right, loc), loc)
        case e.Mul(left=e.Const() as weight, right=part) | e.Mul(left=part, right=e.Const() as weight):
            return mul(weight, total(bound, part, loc), loc)
    if bound.name not in e.variables(body):
        return mul(count(bound), body, loc)
    if not any(isinstance(t, Forall | Total) for t in e.subterms(body)):
        same = var(EACH, bound.sort)
        bound, body = same, Substitution({bound: same})(body)
    assert isinstance(body.sort, RangeSort)
    sort = integers(0 if body.sort.lo >= 0 else None, None if body.sort.hi > 0 else 0)
    return intern(Total, sort, loc, bound, body)


def count(bound: Expr) -> Expr:
    """The number of values of a bound variable."""
    assert isinstance(bound.sort, RangeSort)
    if not isinstance(bound.sort, TermRange):
        return num(bound.sort.hi - bound.sort.lo + 1)
    least, most = bound.sort.least, bound.sort.most
    match least, most:
        case e.Const(value=0), e.Sub(left=length, right=e.Const(value=1)):  # range(n)
            return ite(less_eq(num(0), length), length, num(0))
        case _:
            return ite(less_eq(least, most), add(sub(most, least), num(1)), num(0))


@dataclass(frozen=True, slots=True)
class Free:
    """A free parameter: any number from `least` to `most` (None: an infinite end)."""

    name: str
    least: int | None
    most: int | None

    @property
    def sort(self) -> RangeSort:
        """The sort of its values."""
        return integers(self.least, self.most)


@dataclass(frozen=True)
class Parametric:
    """A transition system with free parameters.

    `system` has the state variables only, without initial values: `initial` is the initial condition. Parameters occur
    in its terms as variables of their own names, and so do the index parameters of an instance, whose `args` name them.
    """

    system: System
    free: tuple[Free, ...]
    initial: Expr
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """The parameters with a fixed value."""
    firsts: Mapping[str, int] = field(default_factory=dict)
    """For arrays of unbounded length, the number of initial values of an element; 1 if not listed."""


def written(term: Expr, owner: str = "") -> str:
    """The text of a numeric term or comparison, with `owner` before each name; of other terms, their structure."""
    match term:
        case e.Const(value=value):
            return str(value)
        case e.Var(name=name):
            return owner + name
        case e.Add() | e.Less() | e.LessEq() | e.Eq():
            symbol = {e.Add: "+", e.Less: "<", e.LessEq: "<=", e.Eq: "=="}[type(term)]
            return f"{written(term.left, owner)} {symbol} {written(term.right, owner)}"
        case e.Sub(left=left, right=right):
            return f"{written(left, owner)} - {_atom(right, owner)}"
        case e.Mul(left=left, right=right):
            return f"{_atom(left, owner)} * {_atom(right, owner)}"
        case e.Not(arg=arg):
            return f"not ({written(arg, owner)})"
        case e.Select(array=array, index=index):
            return f"{written(array, owner)}[{written(index)}]"
        case e.Field(record=record, name=name):
            return f"{written(record, owner)}.{name}"
        case e.Ite(cond=cond, then=e.Const(value=1), other=e.Const(value=0)):
            return f"({written(cond, owner)})"
        case e.Ite(cond=cond, then=e.Const(value=0), other=e.Const(value=1)):
            return f"(not {_atom(cond, owner)})"
        case Total(bound=e.Var(name=name, sort=RangeSort() as sort), body=body):
            index = name.rstrip("'")
            while index in e.variables(body):  # a variable of the model has this name
                index += "_"
            here = Substitution({term.bound: var(index, sort)})(body)
            least, most = (sort.least, sort.most) if isinstance(sort, TermRange) else (num(sort.lo), num(sort.hi))
            after = _one_more(most)
            ends = (least, after) if least is not num(0) else (after,)
            return f"sum({written(here, owner)} for {index} in range({', '.join(written(end, owner) for end in ends)}))"
        case _:
            return repr(term)


def _one_more(term: Expr) -> Expr:
    """The term plus 1, shortened."""
    match term:
        case e.Sub(left=left, right=e.Const(value=int(value))) if value > 0:
            return sub(left, num(value - 1)) if value > 1 else left
        case _:
            return add(term, num(1))


def _atom(term: Expr, owner: str) -> str:
    text = written(term, owner)
    return f"({text})" if isinstance(term, e.Add | e.Sub) else text
