"""Flattening: composite terms rewritten to terms over leaves.

The rewriting exactly follows the total semantics of every term (`expr`). A value outside the sort of its target, which
only a model error produces, is reported by the accompanying check and not represented further.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias, TypeVar, assert_never

from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.leaves import candidates, leaves
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    UnionSort,
    Value,
    cardinality,
    default,
    is_empty,
    is_scalar,
    ordered,
    position,
    values,
)


@dataclass(frozen=True, slots=True)
class _Parts:
    """An array or a record."""

    items: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class _Tagged:
    """A union: its case, and the fields of every case; those of other cases have their default."""

    tag: Expr
    payloads: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class _Maybe:
    """An option; `item` is the default of the element sort when not `present`."""

    present: Expr
    item: Shape


@dataclass(frozen=True, slots=True)
class _Line:
    """A queue; slots from `length` on hold the default of the element sort."""

    length: Expr
    slots: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class _Members:
    """A set: for each candidate, whether it is a member; other candidates are not members."""

    has: Mapping[Value, Expr]


T = TypeVar("T")
Shape: TypeAlias = Expr | _Parts | _Tagged | _Maybe | _Line | _Members


def _of_leaves(sort: Sort, parts: Iterator[Expr]) -> Shape:
    match sort:
        case BoolSort() | RangeSort() | EnumSort():
            return b.const(sort, default(sort)) if is_empty(sort) else next(parts)
        case RecordSort(fields):
            return _Parts(tuple(_of_leaves(inner, parts) for _, inner in fields))
        case UnionSort(cases):
            return _Tagged(next(parts), tuple(_of_leaves(fields, parts) for _, fields in cases))
        case ArraySort(index, element):
            return _Parts(tuple(_of_leaves(element, parts) for _ in range(cardinality(index))))
        case OptionSort(element):
            present = next(parts)
            return _Maybe(present, _of_leaves(element, parts))
        case QueueSort(element, capacity):
            length = next(parts)
            return _Line(length, tuple(_of_leaves(element, parts) for _ in range(capacity)))
        case SetSort(element):
            return _Members({candidate: next(parts) for candidate in candidates(element)})
        case _:
            assert_never(sort)


def _constant(sort: Sort, value: Value) -> Shape:
    match sort:
        case BoolSort() | RangeSort() | EnumSort():
            return b.const(sort, value)
        case RecordSort(fields):
            return _Parts(tuple(_constant(inner, item) for (_, inner), item in zip(fields, value, strict=True)))
        case UnionSort():
            return _tagged(sort, value[0], _constant(sort.payload(value[0]), value[1]))
        case ArraySort(_, element):
            return _Parts(tuple(_constant(element, item) for item in value))
        case OptionSort(element):
            return _Maybe(b.truth(value is not None), _constant(element, default(element) if value is None else value))
        case QueueSort(element, capacity):
            slots = (*value, *(default(element),) * (capacity - len(value)))
            return _Line(b.num(len(value)), tuple(_constant(element, item) for item in slots))
        case SetSort(element):
            return _Members(dict.fromkeys(ordered(element, value), b.TRUE))
        case _:
            assert_never(sort)


def _tagged(sort: UnionSort, case: str, payload: Shape) -> Shape:
    """The value of a union from its case and fields."""
    every = (payload if name == case else _constant(fields, default(fields)) for name, fields in sort.cases)
    return _Tagged(b.const(sort.tag, case), tuple(every))


def _to_leaves(sort: Sort, shape: Shape, found: list[Expr]) -> None:
    """Appends the terms for the leaves of a variable of this sort, in order; excess elements are dropped."""
    match sort, shape:
        case (ArraySort(_, element), _Parts(items)):
            if is_scalar(element) and not is_empty(element):
                found += map(_scalar, items)
                return
            for item in items:
                _to_leaves(element, item, found)
        case (RecordSort(fields), _Parts(items)):
            for (_, inner), item in zip(fields, items, strict=True):
                _to_leaves(inner, item, found)
        case (UnionSort(cases), _Tagged(tag, payloads)):
            found.append(tag)
            for (_, payload), item in zip(cases, payloads, strict=True):
                _to_leaves(payload, item, found)
        case (OptionSort(element), _Maybe(present, item)):
            found.append(present)
            _to_leaves(element, item, found)
        case (QueueSort(element, capacity), _Line(length, slots)):
            found.append(length)
            for slot in slots[:capacity]:
                _to_leaves(element, slot, found)
        case (SetSort(element), _Members(has)):
            found += (has.get(candidate, b.FALSE) for candidate in candidates(element))
        case _ if not is_empty(sort):
            found.append(_scalar(shape))


def _scalar(shape: Shape) -> Expr:
    assert isinstance(shape, e.Node), "a scalar term expected"
    return shape


def _ite(cond: Expr, then: Shape, other: Shape) -> Shape:
    """Leaf by leaf; both operands have been converted to one sort."""
    if then is other:
        return then
    match then, other:
        case (_Parts(a), _Parts(c)):
            return _Parts(tuple(_ite(cond, x, y) for x, y in zip(a, c, strict=True)))
        case (_Tagged(m, a), _Tagged(n, c)):
            return _Tagged(b.ite(cond, m, n), tuple(_ite(cond, x, y) for x, y in zip(a, c, strict=True)))
        case (_Maybe(p, a), _Maybe(q, c)):
            return _Maybe(b.ite(cond, p, q), _ite(cond, a, c))
        case (_Line(m, a), _Line(n, c)):
            return _Line(b.ite(cond, m, n), tuple(_ite(cond, x, y) for x, y in zip(a, c, strict=True)))
        case (_Members(a), _Members(c)):
            return _Members({v: b.ite(cond, a.get(v, b.FALSE), c.get(v, b.FALSE)) for v in {**a, **c}})
        case _:
            return b.ite(cond, _scalar(then), _scalar(other))


def _equal(one: Shape, other: Shape) -> Expr:
    """Leaf by leaf; both operands have been converted to one sort."""
    match one, other:
        case (_Parts(a), _Parts(c)):
            return b.and_(_equal(x, y) for x, y in zip(a, c, strict=True))
        case (_Maybe(p, a), _Maybe(q, c)):
            return b.and_((b.eq(p, q), _equal(a, c)))
        case (_Line(m, a), _Line(n, c)) | (_Tagged(m, a), _Tagged(n, c)):
            return b.and_((b.eq(m, n), *(_equal(x, y) for x, y in zip(a, c, strict=True))))
        case (_Members(a), _Members(c)):
            return b.and_(b.eq(a.get(v, b.FALSE), c.get(v, b.FALSE)) for v in {**a, **c})
        case _:
            return b.eq(_scalar(one), _scalar(other))


def _fit(shape: Shape, have: Sort, want: Sort) -> Shape:
    """The value converted to sort `want`: absent parts get its defaults, queues its number of slots."""
    if have == want:
        return shape
    match shape, have, want:
        case (_Parts(items), ArraySort(_, old), ArraySort(_, new)):
            return _Parts(tuple(_fit(item, old, new) for item in items))
        case (_Parts(items), RecordSort(olds), RecordSort(news)):
            return _Parts(tuple(_fit(i, o, n) for i, (_, o), (_, n) in zip(items, olds, news, strict=True)))
        case (_Tagged(tag, payloads), UnionSort(olds), UnionSort(news)):
            own = want.tag
            return _Tagged(
                tag,
                tuple(
                    _hidden(b.eq(tag, b.const(own, name)), _fit(item, old, new), old, new)
                    for item, (_, old), (name, new) in zip(payloads, olds, news, strict=True)
                ),
            )
        case (_Maybe(present, item), OptionSort(old), OptionSort(new)):
            return _Maybe(present, _hidden(present, _fit(item, old, new), old, new))
        case (_Line(length, slots), QueueSort(old, _), QueueSort(new, capacity)):
            empty = _constant(new, default(new))
            line = [_fit(slot, old, new) for slot in slots[:capacity]]
            if default(old) != default(new):
                line = [_ite(b.less(b.num(k), length), slot, empty) for k, slot in enumerate(line)]
            return _Line(length, (*line, *(empty,) * (capacity - len(line))))
        case _:
            return shape


def _hidden(shown: Expr, fitted: Shape, old: Sort, new: Sort) -> Shape:
    """A value fitted from `old` to `new`, with the default of `new` unless it is `shown`."""
    return fitted if default(old) == default(new) else _ite(shown, fitted, _constant(new, default(new)))


class Rewriter:
    """Rewrites terms over composite variables to terms over their leaves; shared terms are rewritten once."""

    def __init__(self) -> None:
        self._known: dict[Expr, Shape] = {}

    def scalar(self, term: Expr) -> Expr:
        """The leaf term of a term of scalar sort."""
        return _scalar(self.shape(term))

    def flat(self, term: Expr, sort: Sort) -> tuple[Expr, ...]:
        """The terms for the leaves of a target of this sort that is assigned `term`."""
        found: list[Expr] = []
        _to_leaves(sort, _fit(self.shape(term), term.sort, sort), found)
        return tuple(found)

    def shape(self, term: Expr) -> Shape:
        """The flattened form of `term`; absent parts have the defaults of `term.sort`."""
        for part in e.unfinished(term, self._known):
            self._known[part] = self._compute(part)
        return self._known[term]

    def _fitted(self, term: Expr, sort: Sort) -> Shape:
        return _fit(self._known[term], term.sort, sort)

    def _compute(self, term: Expr) -> Shape:
        known, scalar, loc = self._known, self._known_scalar, term.loc
        match term:
            case e.Const(sort=sort, value=value):
                return _constant(sort, value)
            case e.Var(sort=sort, name=name):
                return _of_leaves(sort, (b.var(leaf.name, leaf.sort, loc) for leaf in leaves(sort, name)))
            case e.Next(sort=sort, name=name):
                return _of_leaves(sort, (b.next_(leaf.name, leaf.sort, loc) for leaf in leaves(sort, name)))
            case e.Not(arg=a):
                return b.not_(scalar(a), loc)
            case e.And(args=args):
                return b.and_(map(scalar, args), loc)
            case e.Or(args=args):
                return b.or_(map(scalar, args), loc)
            case e.Ite(sort=sort, cond=c, then=x, other=y):
                return _ite(scalar(c), self._fitted(x, sort), self._fitted(y, sort))
            case e.Eq(left=x, right=y):
                common = b.join(x.sort, y.sort)
                return _equal(self._fitted(x, common), self._fitted(y, common))
            case e.Less() | e.LessEq() | e.Add() | e.Sub() | e.Mul() | e.FloorDiv() | e.Mod():
                return b.OPERATIONS[type(term)](scalar(term.left), scalar(term.right), loc)
            case e.MakeArray(sort=ArraySort(_, element), elements=parts):
                return _Parts(tuple(self._fitted(p, element) for p in parts))
            case e.MakeRecord(sort=RecordSort(fields), values=parts):
                return _Parts(tuple(self._fitted(p, s) for p, (_, s) in zip(parts, fields, strict=True)))
            case e.Select(array=array, index=index):
                return self._select(array, scalar(index))
            case e.Store(array=array, index=index, value=value):
                return self._store(array, scalar(index), value)
            case e.Field(record=record, name=name):
                return _as(_Parts, known[record]).items[_as(RecordSort, record.sort).index(name)]
            case e.WithField(record=record, name=name, value=value):
                sort = _as(RecordSort, record.sort)
                at, items = sort.index(name), _as(_Parts, known[record]).items
                return _Parts((*items[:at], self._fitted(value, sort.fields[at][1]), *items[at + 1 :]))
            case e.MakeCase(sort=UnionSort() as sort, case=case, payload=payload):
                return _tagged(sort, case, self._fitted(payload, sort.payload(case)))
            case e.IsCase(arg=a, case=case):
                tagged, names = self._union(a)
                return b.eq(tagged.tag, b.const(names, case), loc)
            case e.Payload(arg=a, case=case):
                tagged, names = self._union(a)
                return tagged.payloads[names.places[case]]
            case e.Some(arg=a):
                return _Maybe(b.TRUE, known[a])
            case e.IsNone(arg=a):
                return b.not_(_as(_Maybe, known[a]).present, loc)
            case e.Unwrap(arg=a):
                return _as(_Maybe, known[a]).item
            case e.Length(queue=q):
                return _as(_Line, known[q]).length
            case e.Peek(queue=q, index=index):
                return self._peek(q, scalar(index))
            case e.Push(sort=QueueSort(element, capacity), queue=q, value=value):
                return _push(_as(_Line, known[q]), self._fitted(value, element), capacity)
            case e.Pop(sort=QueueSort(element, _), queue=q):
                return _pop(_as(_Line, known[q]), _constant(element, default(element)))
            case e.Member(set_=s, value=value):
                has = _as(_Members, known[s]).has
                return b.or_((b.and_((held, self._equals(value, v))) for v, held in has.items()), loc)
            case e.Insert(sort=SetSort(element), set_=s, value=value):
                has = _as(_Members, known[s]).has
                return _Members({v: b.or_((has.get(v, b.FALSE), self._equals(value, v))) for v in candidates(element)})
            case e.Remove(set_=s, value=value):
                has = _as(_Members, known[s]).has
                return _Members({v: b.and_((held, b.not_(self._equals(value, v)))) for v, held in has.items()})
            case e.Union(left=x, right=y):
                one, two = _as(_Members, known[x]).has, _as(_Members, known[y]).has
                return _Members({v: b.or_((one.get(v, b.FALSE), two.get(v, b.FALSE))) for v in {**one, **two}})
            case e.Intersection(left=x, right=y):
                one, two = _as(_Members, known[x]).has, _as(_Members, known[y]).has
                return _Members({v: b.and_((held, two.get(v, b.FALSE))) for v, held in one.items()})
            case e.Difference(left=x, right=y):
                one, two = _as(_Members, known[x]).has, _as(_Members, known[y]).has
                return _Members({v: b.and_((held, b.not_(two.get(v, b.FALSE)))) for v, held in one.items()})
            case e.Subset(left=x, right=y):
                one, two = _as(_Members, known[x]).has, _as(_Members, known[y]).has
                return b.and_((b.implies(held, two.get(v, b.FALSE)) for v, held in one.items()), loc)
            case e.Size(set_=s):
                return _total([b.ite(held, b.num(1), b.num(0)) for held in _as(_Members, known[s]).has.values()])
            case _:
                raise AssertionError(f"{type(term).__name__} does not fit its sort {term.sort}")

    def _union(self, term: Expr) -> tuple[_Tagged, EnumSort]:
        return _as(_Tagged, self._known[term]), _as(UnionSort, term.sort).tag

    def _known_scalar(self, term: Expr) -> Expr:
        return _scalar(self._known[term])

    def _equals(self, term: Expr, value: Value) -> Expr:
        """The condition that `term`, of the same or a compatible sort, has the given value."""
        return _equal_value(self._known[term], value)

    def _select(self, array: Expr, index: Expr) -> Shape:
        sort, items = _as(ArraySort, array.sort), _as(_Parts, self._known[array]).items
        tests = [
            (b.eq(index, b.const(sort.index, key)), item) for key, item in zip(values(sort.index), items, strict=True)
        ]
        return _choice(tests, None if _covers(sort, index) else _constant(sort.element, default(sort.element)))

    def _store(self, array: Expr, index: Expr, value: Expr) -> Shape:
        sort, items = _as(ArraySort, array.sort), _as(_Parts, self._known[array]).items
        new = self._fitted(value, sort.element)
        hits = [b.eq(index, b.const(sort.index, key)) for key in values(sort.index)]
        return _Parts(tuple(_ite(hit, new, item) for hit, item in zip(hits, items, strict=True)))

    def _peek(self, queue: Expr, index: Expr) -> Shape:
        element = _as(QueueSort, queue.sort).element
        tests = [(b.eq(index, b.num(k)), slot) for k, slot in enumerate(_as(_Line, self._known[queue]).slots)]
        return _choice(tests, _constant(element, default(element)))


def _choice(tests: list[tuple[Expr, Shape]], other: Shape | None) -> Shape:
    """The shape of the first true test, else `other`; without `other`, one of the tests is always true."""
    possible = [(test, shape) for test, shape in tests if test is not b.FALSE]
    result = possible.pop()[1] if other is None else other
    for test, shape in reversed(possible):
        result = _ite(test, shape, result)
    return result


def _covers(sort: ArraySort, index: Expr) -> bool:
    """Whether every possible value of `index` is an index of `sort`."""
    if isinstance(index.sort, RangeSort):
        return all(position(sort.index, end) is not None for end in (index.sort.lo, index.sort.hi))
    return index.sort == sort.index


def _push(line: _Line, value: Shape, capacity: int) -> _Line:
    length, least = line.length, _as(RangeSort, line.length.sort).lo
    slots = tuple(_ite(b.eq(length, b.num(k)), value, slot) for k, slot in enumerate(line.slots))
    longer = _within(b.ite(b.less(length, b.num(capacity)), b.add(length, b.num(1)), length), least, capacity)
    return _Line(longer, slots)


def _pop(line: _Line, empty: Shape) -> _Line:
    length = line.length
    shorter = b.ite(b.less(b.num(0), length), b.sub(length, b.num(1)), length)
    slots = tuple(then for _, then in pairwise((*line.slots, empty)))
    return _Line(_within(shorter, 0, max(0, _as(RangeSort, length.sort).hi - 1)), slots)


def _within(term: Expr, lo: int, hi: int) -> Expr:
    """A conditional with the sort `lo` to `hi`, which is known to contain its value."""
    if isinstance(term, e.Ite):
        return e.intern(e.Ite, RangeSort(lo, hi), term.loc, term.cond, term.then, term.other)
    return term


def _total(terms: list[Expr]) -> Expr:
    """A balanced sum, so that the term stays shallow."""
    while len(terms) > 1:
        odd = terms[-1:] if len(terms) % 2 else []
        terms = [b.add(x, y) for x, y in zip(terms[::2], terms[1::2], strict=False)] + odd
    return terms[0] if terms else b.num(0)


def _equal_value(shape: Shape, value: Value) -> Expr:
    """The condition that a shape equals this value."""
    match shape:
        case _Parts(items):
            return b.and_(_equal_value(item, part) for item, part in zip(items, value, strict=True))
        case _Tagged(tag, payloads):
            assert isinstance(tag.sort, EnumSort)
            fields = _equal_value(payloads[tag.sort.places[value[0]]], value[1])
            return b.and_((b.eq(tag, b.const(tag.sort, value[0])), fields))
        case _Maybe(present, item):
            return b.not_(present) if value is None else b.and_((present, _equal_value(item, value)))
        case _Line(length, slots):
            if len(value) > len(slots):
                return b.FALSE
            here = (_equal_value(slot, part) for slot, part in zip(slots, value, strict=False))
            return b.and_((b.eq(length, b.num(len(value))), *here))
        case _Members(has):
            if any(v not in has for v in value):
                return b.FALSE
            return b.and_(held if v in value else b.not_(held) for v, held in has.items())
        case _:
            return b.eq(shape, b.const(shape.sort, value))


def _as(kind: type[T], value: object) -> T:
    """A shape or a sort, which is known to be of this kind."""
    assert isinstance(value, kind)
    return value
