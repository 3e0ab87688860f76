"""Translation of parametric terms to solver terms, given the values of names in one state.

A number is a solver integer, an enumeration member its position, a truth value a Boolean. Composite values are Python
tuples of such terms, so no theory of records is needed. An array of unbounded length is one solver array per scalar
component of its elements (`Lanes`); within another one, it is one solver array of solver arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeAlias

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import dataclass
from streamproof.symbolic.theory import OPERATORS, Integers, SolverContext, Term
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    RangeSort,
    RecordSort,
    Sort,
    TermRange,
    Value,
    default,
    position,
    values,
)
from streamproof.transform.unbounded import BINDING, Forall, Tabulated, Total, instead_of

Shape: TypeAlias = Any
"""A solver term, a tuple of shapes, `Lanes` or `Computed`."""


class Outside(ModelError):
    """A term outside the fragment supported by proofs for every size."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """An array of unbounded length: the shape of an element, with a solver array in place of every scalar. No part of it is
    `Computed`."""

    element: Shape


@dataclass(frozen=True, slots=True)
class Computed:
    """An array of unbounded length, by its element at each index."""

    at: Callable[[Term], Shape]


def element_at(array: Lanes | Computed, index: Term) -> Shape:
    """The element of an array of unbounded length."""
    return array.at(index) if isinstance(array, Computed) else mapped(lambda lane: lane[index], array.element)


def mapped(change: Callable[..., Term], *shapes: Shape) -> Shape:
    """Applies `change` to corresponding scalars."""
    first = shapes[0]
    if any(isinstance(shape, Computed) for shape in shapes):
        return Computed(lambda index: mapped(change, *(element_at(shape, index) for shape in shapes)))
    if isinstance(first, tuple):
        return tuple(mapped(change, *parts) for parts in zip(*shapes, strict=True))
    if isinstance(first, Lanes):
        return Lanes(mapped(change, *(s.element for s in shapes)))
    return change(*shapes)


def _computed(shape: Shape) -> bool:
    """Whether a part of a shape is `Computed`."""
    return isinstance(shape, Computed) or (isinstance(shape, tuple) and any(map(_computed, shape)))


def outside(sort: Sort, loc: Loc | None, what: str = "") -> Outside:
    """The error for an unsupported sort."""
    return Outside(
        f"{what or 'a value'} of {sort} is not supported in proofs for every size",
        loc=loc,
        remedy=instead_of(sort),
    )


class Universe(SolverContext):
    """The solver context of one proof, and its fresh constants."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = Integers(self.ctx)
        self._count = 0
        self.views = count(1)

    def fresh(self, name: str, sort: Sort, loc: Loc | None = None) -> Shape:
        """Fresh constants for a value of `sort`. Raises `Outside` for an unsupported sort."""
        self._count += 1
        return self._shape(f"{name}!{self._count}", sort, loc, 0)

    def _shape(self, name: str, sort: Sort, loc: Loc | None, depth: int) -> Shape:
        """The shape of a value within `depth` arrays of unbounded length."""
        match sort:
            case BoolSort():
                return self._lane(name, self.z3.BoolSort(self.ctx), depth)
            case RangeSort() | EnumSort():
                return self._lane(name, self.z3.IntSort(self.ctx), depth)
            case RecordSort(fields):
                return tuple(self._shape(f"{name}.{n}", s, loc, depth) for n, s in fields)
            case OptionSort(element):
                return (self._shape(f"{name}?", BoolSort(), loc, depth), self._shape(name, element, loc, depth))
            case ArraySort(index=TermRange(), element=element):
                return Lanes(self._shape(name, element, loc, depth + 1))
            case ArraySort(index, element):
                return tuple(self._shape(f"{name}[{k}]", element, loc, depth) for k in values(index))
        raise outside(sort, loc, name.partition("!")[0])

    def _lane(self, name: str, sort: Any, depth: int) -> Term:
        for _ in range(depth):
            sort = self.z3.ArraySort(self.z3.IntSort(self.ctx), sort)
        return self.z3.Const(name, sort)

    def number(self, value: int) -> Term:
        """A numeral."""
        return self.z3.IntVal(value, self.ctx)

    def truth(self, value: bool) -> Term:
        """A truth value."""
        return self.z3.BoolVal(value, self.ctx)

    def literal(self, sort: Sort, value: Value, loc: Loc | None) -> Shape:
        """A value of `sort`."""
        match sort:
            case BoolSort():
                return self.truth(value)
            case RangeSort():
                return self.number(value)
            case EnumSort(members):
                return self.number(members.index(value))
            case RecordSort(fields):
                return tuple(self.literal(s, v, loc) for (_, s), v in zip(fields, value, strict=True))
            case OptionSort(element) if value is None:
                return (self.truth(False), self.absent(element, loc))
            case OptionSort(element):
                return (self.truth(True), self.literal(element, value, loc))
            case ArraySort(_, element):
                return tuple(self.literal(element, v, loc) for v in value)
        raise outside(sort, loc)

    def absent(self, sort: Sort, loc: Loc | None) -> Shape:
        """The result of a term of `sort` where it is undefined; an array of unbounded length has any elements then."""
        match sort:
            case RecordSort(fields):
                return tuple(self.absent(s, loc) for _, s in fields)
            case OptionSort(element):
                return (self.truth(False), self.absent(element, loc))
            case ArraySort(index=TermRange()):
                return self.fresh("absent", sort, loc)
            case ArraySort(index, element):
                return tuple(self.absent(element, loc) for _ in values(index))
        return self.literal(sort, default(sort), loc)

    def same(self, left: Shape, right: Shape) -> Term:
        """Equality, scalar by scalar; absent options are equal."""
        if isinstance(left, tuple):
            return self.all_of(self.same(x, y) for x, y in zip(left, right, strict=True))
        if isinstance(left, Lanes):
            return self.same(left.element, right.element)
        return left == right


class SymbolicView:
    """The values of terms in one state: `names` gives the shapes of variables, parameters and bound indices.

    `following` is the view of the state after the step, for primed terms. Sums over unbounded ranges are constants
    (`totals`) that the proof constrains; so are universal conditions inside values (`conditions`).
    """

    def __init__(
        self,
        universe: Universe,
        names: Mapping[str, Shape],
        following: SymbolicView | None = None,
        inner: frozenset[str] = frozenset(),
    ) -> None:
        self._inner = inner
        self.number = next(universe.views)
        """The number of this view, unique in the universe."""
        self.conditions: list[tuple[SymbolicView, Forall, Term]] = []
        """Universal conditions inside values, each with its view and its Boolean constant."""
        self.universe = universe
        self.names = names
        self.following = following
        self.totals: dict[Total, Term] = {}
        self._known: dict[Expr, Shape] = {}

    def bound(self, name: str, value: Term) -> SymbolicView:
        """The same state with a bound index."""
        view = SymbolicView(self.universe, {**self.names, name: value}, self.following, self._inner | {name})
        view.totals, view.conditions = self.totals, self.conditions
        return view

    def value(self, root: Expr) -> Shape:
        """The shape of a term. Raises `Outside` for an unsupported term."""
        for term in e.unfinished(root, self._known, _inside):
            self._known[term] = self._translate(term)
        return self._known[root]

    def _translate(self, term: Expr) -> Shape:
        u, z3, of = self.universe, self.universe.z3, self._known
        match term:
            case e.Const(sort=sort, value=value):
                return u.literal(sort, value, term.loc)
            case e.Var(name=name):
                return self.names[name]
            case e.Next(name=name):
                assert self.following is not None
                return self.following.names[name]
            case e.Not(arg=a):
                return z3.Not(of[a])
            case e.And(args=args):
                return z3.And([of[a] for a in args])
            case e.Or(args=args):
                return z3.Or([of[a] for a in args])
            case e.Ite(cond=c, then=a, other=b):
                return mapped(lambda x, y: z3.If(of[c], x, y), of[a], of[b])
            case e.Eq(left=a, right=b):
                return self._equal(a.sort, of[a], of[b])
            case e.Less() | e.LessEq() | e.Add() | e.Sub() | e.Mul():
                return OPERATORS[type(term)](of[term.left], of[term.right])
            case e.FloorDiv(sort=RangeSort() as sort, left=a, right=b):
                return u.numbers.floor_div(of[a], of[b], sort)
            case e.Mod(sort=RangeSort() as sort, left=a, right=b):
                return u.numbers.mod(of[a], of[b], sort)
            case e.MakeArray(elements=parts) | e.MakeRecord(values=parts):
                return tuple(of[p] for p in parts)
            case e.Select(array=array, index=index):
                return self._selected(array, index)
            case e.Store(array=array, index=index, value=value):
                return self._stored(array, index, of[value])
            case e.Field(record=record, name=name):
                return of[record][_field(record, name)]
            case e.WithField(record=record, name=name, value=value):
                at, whole = _field(record, name), of[record]
                return (*whole[:at], of[value], *whole[at + 1 :])
            case e.Some(arg=a):
                return (u.truth(True), of[a])
            case e.IsNone(arg=a):
                return z3.Not(of[a][0])
            case e.Unwrap(sort=sort, arg=a):
                absent = u.absent(sort, term.loc)
                return mapped(lambda x, y: z3.If(of[a][0], x, y), of[a][1], absent)
            case Total():
                return self.total(term)
            case Tabulated(bound=e.Var(name=name), body=body):
                return Computed(lambda index: self.bound(name, index).value(body))
            case Forall():
                name = u.fresh("all", BOOL)
                self.conditions.append((self, term, name))
                return name
            case _:
                raise outside(e.children(term)[0].sort, term.loc)

    def total(self, total: Total) -> Term:
        """The constant of a sum in this state. Raises `Outside` if it depends on another index."""
        if e.variables(total.body) & self._inner - e.variables(total.bound):
            raise Outside(
                "a sum over any number of indices inside all(...), any(...) or another sum depends on their index",
                loc=total.loc,
                remedy="state it for the parts instead of the sum, or give the parameter a value",
            )
        if total not in self.totals:
            self.totals[total] = self.universe.fresh("sum", total.sort)
        return self.totals[total]

    def _equal(self, sort: Sort, left: Shape, right: Shape) -> Term:
        if isinstance(sort, OptionSort):
            z3 = self.universe.z3
            inner = self._equal(sort.element, left[1], right[1])
            return z3.And(left[0] == right[0], z3.Implies(left[0], inner))
        if isinstance(sort, ArraySort) and isinstance(sort.index, TermRange):
            raise Outside("two arrays of any length are compared", remedy="compare them with all(...) over the index")
        if isinstance(sort, RecordSort | ArraySort):
            sorts = [s for _, s in sort.fields] if isinstance(sort, RecordSort) else [sort.element] * len(left)
            parts = zip(sorts, left, right, strict=True)
            return self.universe.all_of(self._equal(s, x, y) for s, x, y in parts)
        return left == right

    def _selected(self, array: Expr, index: Expr) -> Shape:
        z3, sort, whole = self.universe.z3, array.sort, self._known[array]
        assert isinstance(sort, ArraySort)
        if isinstance(whole, Lanes | Computed):
            return element_at(whole, self._known[index])
        if isinstance(index, e.Const):
            at = position(sort.index, index.value)
            return whole[at] if at is not None else self.universe.absent(sort.element, None)
        chosen = self.universe.absent(sort.element, array.loc)
        for key, element in reversed([*zip(values(sort.index), whole, strict=True)]):
            here = self._is_at(sort, index, key)
            chosen = mapped(lambda x, y, c=here: z3.If(c, x, y), element, chosen)
        return chosen

    def _stored(self, array: Expr, index: Expr, value: Shape) -> Shape:
        z3, sort, whole = self.universe.z3, array.sort, self._known[array]
        assert isinstance(sort, ArraySort)
        at = self._known[index]
        if isinstance(whole, Lanes) and not _computed(value):
            return Lanes(mapped(lambda lane, x: z3.Store(lane, at, x), whole.element, value))
        if isinstance(whole, Lanes | Computed):
            return Computed(lambda i: mapped(lambda x, y: z3.If(i == at, x, y), value, element_at(whole, i)))
        parts = []
        for key, old in zip(values(sort.index), whole, strict=True):
            here = self._is_at(sort, index, key)
            parts.append(mapped(lambda x, y, c=here: z3.If(c, x, y), value, old))
        return tuple(parts)

    def _is_at(self, sort: ArraySort, index: Expr, key: Value) -> Term:
        if isinstance(index, e.Const):
            return self.universe.truth(index.value == key)
        return self._known[index] == self.universe.literal(sort.index, key, None)


def _inside(term: Expr) -> tuple[Expr, ...]:
    """The terms whose values are needed: the bodies of sums and universal conditions mention an index without one."""
    return () if isinstance(term, BINDING) else e.children(term)


def _field(record: Expr, name: str) -> int:
    assert isinstance(record.sort, RecordSort)
    return record.sort.index(name)
