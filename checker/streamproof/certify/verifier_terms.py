"""Expressions as terms of Z3, read directly: for the verifier, and independent of the engines' translation.

A value is a structure of Python whose ends are terms of Z3, integers for numbers and for members of an Enum, so nothing can
overflow, and there is no detour over scalar variables. The ends have the names and the order of `system.leaves`; parts that
are not there hold the default.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import z3

from streamproof.system import expr as e
from streamproof.system import sorts as s
from streamproof.system.leaves import leaves
from streamproof.system.model import System
from streamproof.system.records import dataclass
from streamproof.system.sorts import Sort, Value, contains, default, values

NO = z3.BoolVal(False)


@dataclass(frozen=True, slots=True)
class Maybe:
    """An option: whether it is there, and what."""

    there: Any
    item: Any


@dataclass(frozen=True, slots=True)
class Line:
    """A queue: its length, and its slots from the head on; those past the length mean nothing."""

    length: Any
    slots: tuple[Any, ...]


Meaning: TypeAlias = Any
"""A term of Z3; a tuple of the parts of an array or record; a `Maybe`; a `Line`; a dict from possible members to terms."""


def literal(sort: Sort, value: Value) -> Meaning:
    """A value as a structure."""
    match sort:
        case s.BoolSort():
            return z3.BoolVal(value)
        case s.RangeSort():
            return z3.IntVal(value)
        case s.EnumSort(members):
            return z3.IntVal(members.index(value))
        case s.RecordSort(fields):
            return tuple(literal(f, part) for (_, f), part in zip(fields, value, strict=True))
        case s.ArraySort(_, element):
            return tuple(literal(element, part) for part in value)
        case s.OptionSort(element):
            return Maybe(z3.BoolVal(value is not None), literal(element, default(element) if value is None else value))
        case s.QueueSort(element, _):
            return Line(z3.IntVal(len(value)), tuple(literal(element, part) for part in value))
        case s.SetSort(element):
            return {v: z3.BoolVal(v in value) for v in values(element)}


def choose(cond: Any, one: Meaning, other: Meaning) -> Meaning:
    """`one` if `cond` else `other`."""
    match one, other:
        case tuple(), tuple():
            return tuple(choose(cond, x, y) for x, y in zip(one, other, strict=True))
        case Maybe(), Maybe():
            return Maybe(z3.If(cond, one.there, other.there), choose(cond, one.item, other.item))
        case Line(_, a), Line(_, b):
            both = tuple(choose(cond, x, y) for x, y in zip(a, b, strict=False))
            return Line(z3.If(cond, one.length, other.length), both + (a[len(b) :] or b[len(a) :]))
        case dict(), dict():
            return {v: z3.If(cond, one.get(v, NO), other.get(v, NO)) for v in {**one, **other}}
        case _:
            return z3.If(cond, one, other)


def same(one: Meaning, other: Meaning) -> Any:
    """Equality of two values; parts that are not there do not count."""
    match one, other:
        case tuple(), tuple():
            return z3.And(*(same(x, y) for x, y in zip(one, other, strict=True)))
        case Maybe(), Maybe():
            return z3.And(one.there == other.there, z3.Or(z3.Not(one.there), same(one.item, other.item)))
        case Line(length, a), Line(_, b):
            slots = (z3.Or(length <= k, same(x, y)) for k, (x, y) in enumerate(zip(a, b, strict=False)))
            return z3.And(length == other.length, length <= min(len(a), len(b)), *slots)
        case dict(), dict():
            return z3.And(*(one.get(v, NO) == other.get(v, NO) for v in {**one, **other}))
        case _:
            return one == other


def ends(sort: Sort, value: Meaning, more: list[Any]) -> Iterator[Any]:
    """The terms of a value of `sort`, in the order of `leaves`; parts that are not there are the default.

    To `more` is added what is true of a set with a member that `sort` does not have, which no end would show.
    """
    match sort:
        case s.RecordSort(fields):
            for (_, own), part in zip(fields, value, strict=True):
                yield from ends(own, part, more)
        case s.ArraySort(_, element):
            for part in value:
                yield from ends(element, part, more)
        case s.OptionSort(element):
            yield value.there
            yield from ends(element, choose(value.there, value.item, literal(element, default(element))), more)
        case s.QueueSort(element, capacity):
            yield value.length
            nothing = literal(element, default(element))
            for k, slot in enumerate((*value.slots, *(nothing,) * capacity)[:capacity]):
                yield from ends(element, choose(value.length > k, slot, nothing), more)
        case s.SetSort(element):
            more += [has for v, has in value.items() if not contains(element, v)]
            yield from (value.get(v, NO) for v in values(element))
        case _:
            yield value


def built(sort: Sort, terms: Iterator[Any]) -> Meaning:
    """The value whose ends come next in `terms`."""
    match sort:
        case s.RecordSort(fields):
            return tuple(built(own, terms) for _, own in fields)
        case s.ArraySort(index, element):
            return tuple(built(element, terms) for _ in values(index))
        case s.OptionSort(element):
            return Maybe(next(terms), built(element, terms))
        case s.QueueSort(element, capacity):
            return Line(next(terms), tuple(built(element, terms) for _ in range(capacity)))
        case s.SetSort(element):
            return {v: next(terms) for v in values(element)}
        case _:
            return next(terms)


class Place:
    """The values of all variables at one position of a behaviour, as constants that nothing is known of."""

    def __init__(self, system: System, number: int) -> None:
        self.named: dict[str, Any] = {}
        self.variables: dict[str, Meaning] = {}
        for v in system.variables:
            parts = list(leaves(v.sort, v.name))
            own = [
                (z3.Bool if isinstance(leaf.sort, s.BoolSort) else z3.Int)(f"{leaf.name} {number}") for leaf in parts
            ]
            self.named |= {leaf.name: term for leaf, term in zip(parts, own, strict=True)}
            self.variables[v.name] = built(v.sort, iter(own))
        self.known: dict[e.Expr, Meaning] = {}


class Reading:
    """What expressions mean at a place, and in the step to the next."""

    def __init__(self, now: Place, then: Place | None = None) -> None:
        self.now, self.then = now, then
        self.known: dict[e.Expr, Meaning] = now.known if then is None else {}

    def of(self, term: e.Expr) -> Meaning:
        """The meaning of a term; shared ones are read once."""
        for part in e.subterms(term) if term not in self.known else ():
            if part not in self.known:
                self.known[part] = self._read(part)
        return self.known[term]

    def _read(self, term: Any) -> Meaning:
        m = self.known.__getitem__
        match term:
            case e.Const(sort=sort, value=value):
                return literal(sort, value)
            case e.Var(name=name):
                return self.now.variables[name]
            case e.Next(name=name) if self.then is not None:
                return self.then.variables[name]
            case e.Not(arg=a):
                return z3.Not(m(a))
            case e.And(args=args):
                return z3.And(*map(m, args))
            case e.Or(args=args):
                return z3.Or(*map(m, args))
            case e.Ite(cond=c, then=a, other=b):
                return choose(m(c), m(a), m(b))
            case e.Eq(left=a, right=b):
                return same(m(a), m(b))
            case e.Less() | e.LessEq() | e.Add() | e.Sub() | e.Mul():
                return ARITHMETIC[type(term)](m(term.left), m(term.right))
            case e.FloorDiv(left=a, right=b):
                return _divided(m(a), m(b))
            case e.Mod(left=a, right=b):
                return z3.If(m(b) == 0, 0, m(a) - m(b) * _divided(m(a), m(b)))
            case e.MakeArray(elements=parts) | e.MakeRecord(values=parts):
                return tuple(map(m, parts))
            case e.Select(array=array, index=index):
                found = literal(_sort(array).element, default(_sort(array).element))
                for key, item in zip(values(_sort(array).index), m(array), strict=True):
                    found = choose(m(index) == literal(_sort(array).index, key), item, found)
                return found
            case e.Store(array=array, index=index, value=value):
                keys = (literal(_sort(array).index, key) for key in values(_sort(array).index))
                return tuple(choose(m(index) == k, m(value), old) for k, old in zip(keys, m(array), strict=True))
            case e.Field(record=record, name=name):
                return m(record)[_sort(record).index(name)]
            case e.WithField(record=record, name=name, value=value):
                at, whole = _sort(record).index(name), m(record)
                return (*whole[:at], m(value), *whole[at + 1 :])
            case e.Some(arg=a):
                return Maybe(z3.BoolVal(True), m(a))
            case e.IsNone(arg=a):
                return z3.Not(m(a).there)
            case e.Unwrap(arg=a):
                return choose(m(a).there, m(a).item, literal(_sort(a).element, default(_sort(a).element)))
            case e.Length(queue=q):
                return m(q).length
            case e.Peek(queue=q, index=index):
                found = literal(_sort(q).element, default(_sort(q).element))
                for k, slot in enumerate(m(q).slots):
                    found = choose(z3.And(m(index) == k, m(q).length > k), slot, found)
                return found
            case e.Push(queue=q, value=value):
                line, free = m(q), m(q).length < _sort(q).capacity
                slots = (*line.slots, *(m(value),) * (_sort(q).capacity - len(line.slots)))
                pushed = tuple(choose(z3.And(free, line.length == k), m(value), old) for k, old in enumerate(slots))
                return Line(z3.If(free, line.length + 1, line.length), pushed)
            case e.Pop(queue=q):
                return Line(z3.If(m(q).length > 0, m(q).length - 1, 0), m(q).slots[1:])
            case e.Member(set_=a, value=value):
                return z3.Or(*(z3.And(has, self._is(value, v)) for v, has in m(a).items()))
            case e.Insert(set_=a, value=value):
                some = {*values(_sort(term).element), *m(a)}
                return {v: z3.Or(m(a).get(v, NO), self._is(value, v)) for v in some}
            case e.Remove(set_=a, value=value):
                return {v: z3.And(has, z3.Not(self._is(value, v))) for v, has in m(a).items()}
            case e.Union(left=a, right=b):
                return {v: z3.Or(m(a).get(v, NO), m(b).get(v, NO)) for v in {**m(a), **m(b)}}
            case e.Intersection(left=a, right=b):
                return {v: z3.And(has, m(b).get(v, NO)) for v, has in m(a).items()}
            case e.Difference(left=a, right=b):
                return {v: z3.And(has, z3.Not(m(b).get(v, NO))) for v, has in m(a).items()}
            case e.Subset(left=a, right=b):
                return z3.And(*(z3.Implies(has, m(b).get(v, NO)) for v, has in m(a).items()))
            case e.Size(set_=a):
                return z3.Sum(*(z3.If(has, 1, 0) for has in m(a).values())) if m(a) else z3.IntVal(0)
            case _:
                raise ValueError(f"no meaning for {type(term).__name__}")

    def _is(self, term: e.Expr, value: Value) -> Any:
        """Whether a term has a value, which is one of its sort or of a compatible one."""
        return same(self.known[term], literal(term.sort, value))


ARITHMETIC: Mapping[Any, Callable[[Any, Any], Any]] = {
    e.Less: operator.lt,
    e.LessEq: operator.le,
    e.Add: operator.add,
    e.Sub: operator.sub,
    e.Mul: operator.mul,
}


def _sort(term: e.Expr) -> Any:
    return term.sort


def _divided(a: Any, b: Any) -> Any:
    """Rounded towards minus infinity; Z3 does so for divisors above 0."""
    return z3.If(b == 0, 0, z3.If(b < 0, (-a) / (-b), a / b))
