"""Views of a state for native execution, with the same places, kinds of value and errors as in lowering.

A container is a view of a `Box`: a local name bound to it shares changes there, and keeps it when the place of the
state gets another one. Scalars and options are plain values. Assigning a container copies its contents.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, assert_never

from streamproof.base.errors import ModelError, StreamproofError
from streamproof.language.lower.cases import Case, case_class, fields_of, unknown_case
from streamproof.language.lower.conversion import mismatch, named_parts, no_field, plain_key, unknown_member
from streamproof.language.lower.methods import no_method
from streamproof.language.lower.sources import CallSite, fail
from streamproof.language.lower.terms import describe
from streamproof.language.native.value_places import FixedValue, ValuePlace
from streamproof.system.sorts import (
    ArraySort,
    BagSort,
    BoolSort,
    EnumSort,
    KeySort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    TupleSort,
    UnionSort,
    Value,
    bag_items,
    bag_of,
    cardinality,
    contains,
    index_keys,
    index_value,
    ordered,
    position,
    show,
)


class View:
    """Common base of containers: equality and contents are those of the value at the place."""

    __slots__ = ("_place", "_sort")
    _sort: Any
    _place: ValuePlace

    def __init__(self, sort: Sort, place: ValuePlace) -> None:
        object.__setattr__(self, "_sort", sort)
        object.__setattr__(self, "_place", place)

    def __eq__(self, other: object) -> bool:
        try:
            return bool(raw(self._sort, other, None, "") == self._place.get())
        except StreamproofError:
            return False

    def __hash__(self) -> int:
        return hash(self._place.get())

    def __bool__(self) -> bool:
        raise ModelError(
            f"a condition must be a Bool, got {self._sort}",
            loc=CallSite().loc,
            remedy="compare explicitly: x != 0, len(q) > 0, o is not None",
        )

    def __repr__(self) -> str:
        return show(self._sort, self._place.get())


def look(sort: Sort, place: ValuePlace) -> Any:
    """The view of a value of `sort` at `place`."""
    match sort:
        case BoolSort() | RangeSort() | EnumSort():
            return place.get()
        case OptionSort(element):
            value = place.get()
            return None if value is None else look(element, FixedValue(value))
        case TupleSort():
            return RecordView(sort, FixedValue(place.get()))
        case RecordSort():
            return RecordView(sort, place)
        case UnionSort():
            return _case(sort, place.get())
        case BagSort():
            return BagView(sort, place)
        case ArraySort():
            return ArrayView(sort, place)
        case QueueSort():
            return QueueView(sort, place)
        case SetSort():
            return SetView(sort, place)
        case _:
            assert_never(sort)


def _case(sort: UnionSort, value: Value) -> Case:
    """The value of a union as an instance of its case."""
    name, parts = value
    fields = sort.payload(name).fields
    kind = case_class(name, tuple(n for n, _ in fields))
    return kind(*(look(s, FixedValue(part)) for (_, s), part in zip(fields, parts, strict=True)))


def raw(sort: Sort, given: Any, spot: CallSite | None, text: str) -> Value:
    """The plain value of `given` as a value of `sort`; integers may still lie outside their range."""
    if isinstance(given, View):
        return given._place.get()
    part = text if text.startswith("a part of") else f"a part of {text}"
    match sort:
        case OptionSort(element):
            return None if given is None else raw(element, given, spot, text)
        case _ if given is None and spot is not None:
            raise fail(f"{text} is None where a value is needed", spot, (text, "None"))
        case BoolSort() if isinstance(given, bool):
            return given
        case RangeSort() if isinstance(given, int) and not isinstance(given, bool):
            return given
        case EnumSort(members) if isinstance(given, str):
            if given not in members:
                raise unknown_member(sort, given, spot.loc if spot else None)
            return given
        case RecordSort(fields) if isinstance(given, Mapping) and set(given) == {n for n, _ in fields}:
            return tuple(raw(s, given[n], spot, part) for n, s in fields)
        case RecordSort(fields) if isinstance(given, tuple | list) and len(given) == len(fields):
            return tuple(raw(s, v, spot, part) for v, (_, s) in zip(given, fields, strict=True))
        case UnionSort() if isinstance(given, Case):
            own = fields_of(type(given), sort)
            if own is None:
                raise unknown_case(type(given), sort, spot.loc if spot else None)
            return (type(given).__name__, raw(own, given._values, spot, part))
        case BagSort(item=element):
            if isinstance(given, tuple | list):
                return _bag(sort, [raw(element, v, spot, part) for v in given], spot)
        case ArraySort(index, element) if isinstance(given, Mapping) and set(given) == set(index_keys(index)):
            return tuple(raw(element, given[k], spot, part) for k in index_keys(index))
        case ArraySort(index, element) if isinstance(given, tuple | list) and len(given) == cardinality(index):
            return tuple(raw(element, v, spot, part) for v in given)
        case QueueSort(element, _) if isinstance(given, tuple | list):
            return tuple(raw(element, v, spot, part) for v in given)
        case SetSort(element) if isinstance(given, AbstractSet):
            return frozenset(raw(element, v, spot, part) for v in given)
    raise mismatch(sort, describe(given), spot.loc if spot else None)


def _bag(sort: BagSort, items: list[Value], spot: CallSite | None) -> Value:
    """The bag of values; without a place in the source, one outside the sort makes it different from every bag."""
    for value in items:
        if not contains(sort.item, value):
            if spot is None:
                return None
            raise fail(f"a value of the bag leaves {sort.item}", spot, ("value", _shown(sort.item, value)))
    return bag_of(sort, items)


def checked(sort: Sort, given: Any, spot: CallSite) -> Value:
    """The assigned value, checked against the sort of the place."""
    text = spot.target()
    value = raw(sort, given, spot, f"the new {text}")
    if not contains(sort, value):
        raise fail(f"{text} leaves {sort}", spot, (f"new {text}", _shown(sort, value)))
    return value


def _shown(sort: Sort, value: Value) -> str:
    return "None" if value is None else show(sort, value)


def _expect_inside(sort: Sort, value: Value, spot: CallSite, put: str) -> None:
    if not contains(sort, value):
        raise fail(f"the value {put} {spot.owner()} leaves {sort}", spot, ("value", _shown(sort, value)))


def _tuple_operation(apply: Callable[[Any, Any], Any]) -> Callable[[RecordView, Any], Any]:
    return lambda record, other: apply(tuple(record), tuple(other))


class RecordView(View):
    """Named fields, read and written as attributes, and read as the tuple of their values."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self._sort.fields)

    def __getitem__(self, at: Any) -> Any:
        return tuple(self)[at]

    def __iter__(self) -> Iterator[Any]:
        return (look(sort, self._place.part(at)) for at, (_, sort) in enumerate(self._sort.fields))

    def __contains__(self, value: object) -> bool:
        return value in tuple(self)

    def _replace(self, **changes: Any) -> RecordView:
        """The value with other fields."""
        spot, old = CallSite(), {name: getattr(self, name) for name, _ in self._sort.fields}
        for name in changes:
            if name not in old:
                raise no_field(self._sort, name, spot.loc)
        return RecordView(self._sort, FixedValue(raw(self._sort, {**old, **changes}, spot, "the record")))

    __add__ = _tuple_operation(operator.add)
    __radd__ = _tuple_operation(lambda record, other: other + record)
    __lt__, __le__ = _tuple_operation(operator.lt), _tuple_operation(operator.le)
    __gt__, __ge__ = _tuple_operation(operator.gt), _tuple_operation(operator.ge)

    def _at(self, name: str) -> tuple[Sort, int]:
        try:
            at = self._sort.index(name)
        except KeyError:
            spot = CallSite()
            raise no_field(self._sort, name, spot.loc) from None
        return self._sort.fields[at][1], at

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        sort, at = self._at(name)
        return look(sort, self._place.part(at))

    def __setattr__(self, name: str, given: Any) -> None:
        sort, at = self._at(name)
        self._place.replace(at, checked(sort, given, CallSite()))


Sequence.register(RecordView)  # for patterns


def _plain_tuples(key: Any) -> Any:
    """A key, in which records are the tuples of their fields."""
    return tuple(map(_plain_tuples, key)) if isinstance(key, RecordView | tuple) else key


class ArrayView(View):
    """Elements by index."""

    __slots__ = ()

    def _at(self, key: Any) -> int:
        index, key = self._sort.index, _plain_tuples(key)
        own = index_value(index, plain_key(key, None)) if isinstance(index, KeySort) else key
        at = position(index, own) if not isinstance(key, View) else None
        if at is None:
            spot = CallSite()
            if key is None or (isinstance(key, tuple) and None in key):
                raise fail(f"{spot.index()} is None where a value is needed", spot, (spot.index(), "None"))
            parts = named_parts(spot.index(), key)
            raise fail(f"index outside {index}", spot, *((name, str(part)) for name, part in parts))
        return at

    def __getitem__(self, key: Any) -> Any:
        return look(self._sort.element, self._place.part(self._at(key)))

    def __setitem__(self, key: Any, given: Any) -> None:
        at = self._at(key)
        self._place.replace(at, checked(self._sort.element, given, CallSite()))

    def __len__(self) -> int:
        return cardinality(self._sort.index)

    def __iter__(self) -> Iterator[Any]:
        return (self[key] for key in index_keys(self._sort.index))

    def __reversed__(self) -> Iterator[Any]:
        return (self[key] for key in reversed(index_keys(self._sort.index)))

    def __contains__(self, value: object) -> bool:
        return any(v == value for v in self)


_HEAD: Any = object()
"""The default position of `QueueView.pop`."""


class QueueView(View):
    """A bounded first-in-first-out queue."""

    __slots__ = ()

    @property
    def head(self) -> Any:
        """The head."""
        return self._item(0, "head of the empty queue")

    @property
    def full(self) -> bool:
        """Whether the queue is full."""
        return bool(len(self) >= self._sort.capacity)

    def _index(self, at: Any, message: str) -> int:
        """A position counted from the head."""
        whole = self._place.get()
        if at is None:
            raise fail("position is None where a value is needed", CallSite(), ("position", "None"))
        index = int(at + len(whole) if at < 0 else at)
        if not 0 <= index < len(whole):
            spot = CallSite()
            queue = (spot.owner(), show(self._sort, whole))
            operands = (queue,) if message.startswith("head") else (("position", str(index)), queue)
            raise fail(f"{message} {spot.owner()}", spot, *operands)
        return index

    def _item(self, at: Any, message: str) -> Any:
        return look(self._sort.element, FixedValue(self._place.get()[self._index(at, message)]))

    def _added(self, given: Iterable[Any], place: int, full: str, leaves: str) -> None:
        """Adds values in front of a position."""
        spot, whole, element = CallSite(), self._place.get(), self._sort.element
        added = tuple(raw(element, v, spot, "the value") for v in given)
        if len(whole) + len(added) > self._sort.capacity:
            raise fail(f"{full} {spot.owner()}", spot, (spot.owner(), show(self._sort, whole)))
        for value in added:
            _expect_inside(element, value, spot, leaves)
        self._place.put((*whole[:place], *added, *whole[place:]))

    def push(self, given: Any) -> None:
        """Appends a value."""
        self._added((given,), len(self), "push on the full queue", "pushed on")

    append = push

    def extend(self, given: Iterable[Any]) -> None:
        """Appends values."""
        self._added(tuple(given), len(self), "extend beyond the capacity of the queue", "pushed on")

    def insert(self, at: int, given: Any) -> None:
        """Inserts a value in front of a position; as in Python, one outside is the next end."""
        place = max(at + len(self), 0) if at < 0 else at
        self._added((given,), place, "insert into the full queue", "inserted into")

    def pop(self, at: Any = _HEAD) -> Any:
        """Removes the head, or the element at a position."""
        index = (
            self._index(0, "head of the empty queue") if at is _HEAD else self._index(at, "position outside the queue")
        )
        whole = self._place.get()
        self._place.put((*whole[:index], *whole[index + 1 :]))
        return look(self._sort.element, FixedValue(whole[index]))

    popleft = pop

    def remove(self, given: Any) -> None:
        """Removes the first element that is equal to a value."""
        index = self._first(given, "remove()")
        whole = self._place.get()
        self._place.put((*whole[:index], *whole[index + 1 :]))

    def index(self, given: Any) -> int:
        """The position of the first element that is equal to a value."""
        return self._first(given, "index()")

    def count(self, given: Any) -> int:
        """The number of elements that are equal to a value."""
        return sum(v == given for v in self)

    def _first(self, given: Any, what: str) -> int:
        for at, value in enumerate(self):
            if value == given:
                return at
        spot = CallSite()
        raise fail(f"{what} of a value that is not in {spot.owner()}", spot)

    def clear(self) -> None:
        """Removes all values."""
        self._place.put(())

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return list(self)[at]
        return self._item(at, "position outside the queue")

    def __add__(self, other: Iterable[Any]) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Iterable[Any]) -> list[Any]:
        return [*other, *self]

    def __iadd__(self, other: Iterable[Any]) -> QueueView:
        self._place.put(checked(self._sort, [*self, *other], CallSite()))
        return self

    def __setitem__(self, at: int, given: Any) -> None:
        raise no_method(self._sort, "[] =", CallSite().loc)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._place.get())

    def __iter__(self) -> Iterator[Any]:
        return iter([look(self._sort.element, FixedValue(v)) for v in self._place.get()])

    def __reversed__(self) -> Iterator[Any]:
        return iter(list(self)[::-1])

    def __contains__(self, value: object) -> bool:
        return any(v == value for v in self)


def _bag_comparison(apply: Callable[[Any, Any], bool]) -> Callable[[BagView, Any], bool]:
    return lambda bag, other: apply(*bag._counters(other))


class BagView(View):
    """A bounded multiset; iterated in the order of its item sort."""

    __slots__ = ()

    def _count(self, given: Any, spot: CallSite | None) -> int:
        value = raw(self._sort.item, given, spot, "the value")
        return bag_items(self._sort, self._place.get()).count(value)

    def _put(self, items: list[Value]) -> None:
        self._place.put(bag_of(self._sort, items))

    def add(self, given: Any) -> None:
        """Adds one occurrence of a value."""
        spot, item = CallSite(), self._sort.item
        value, items = raw(item, given, spot, "the value"), bag_items(self._sort, self._place.get())
        if len(items) >= self._sort.capacity:
            raise fail(f"add to the full bag {spot.owner()}", spot, (spot.owner(), repr(self)))
        _expect_inside(item, value, spot, "added to")
        self._put([*items, value])

    def discard(self, given: Any) -> None:
        """Removes one occurrence of a value, if present."""
        value, items = raw(self._sort.item, given, CallSite(), "the value"), bag_items(self._sort, self._place.get())
        if value in items:
            items.remove(value)
            self._put(items)

    def remove(self, given: Any) -> None:
        """Removes one occurrence of a value, which must be present."""
        spot = CallSite()
        if self._count(given, spot) == 0:
            shown = _shown(self._sort.item, raw(self._sort.item, given, spot, "the value"))
            raise fail(f"remove() of a value that is not in {spot.owner()}", spot, ("value", shown))
        self.discard(given)

    def clear(self) -> None:
        """Removes all values."""
        self._put([])

    def count(self, given: Any) -> int:
        """The number of occurrences of a value."""
        return self._count(given, CallSite())

    def __len__(self) -> int:
        return int(sum(self._place.get()))

    def __iter__(self) -> Iterator[Any]:
        items = bag_items(self._sort, self._place.get())
        return iter([look(self._sort.item, FixedValue(v)) for v in items])

    def __contains__(self, value: object) -> bool:
        try:
            return self._count(value, None) > 0
        except StreamproofError:  # None is in no bag of numbers
            return False

    def _counters(self, other: Any) -> tuple[Counter[Value], Counter[Value]]:
        """The counts of both operands; a list may have values that are no items."""
        sort, spot = self._sort, CallSite()
        if isinstance(other, tuple | list):
            items = [self._item(v) for v in other]
        else:
            items = bag_items(sort, raw(sort, other, spot, "the other bag"))
        return Counter(bag_items(sort, self._place.get())), Counter(items)

    def _item(self, given: Any) -> Value:
        """A value of a list as an item; one that is none, such as None among numbers, is different from all items."""
        try:
            return raw(self._sort.item, given, None, "")
        except StreamproofError:
            return ("no item", repr(given))

    __le__, __ge__ = _bag_comparison(operator.le), _bag_comparison(operator.ge)
    __lt__, __gt__ = _bag_comparison(operator.lt), _bag_comparison(operator.gt)


_SetOperation = Callable[["SetView", Any], "SetView"]


def _set_operations(apply: Callable[[Any, Any], Any]) -> tuple[_SetOperation, _SetOperation, _SetOperation]:
    """An operator of sets: with the set as first operand, as second operand, and as the place of the result."""
    return (
        lambda own, other: own._made(apply(own._place.get(), own._members(other))),
        lambda own, other: own._made(apply(own._members(other, first=True), own._place.get())),
        lambda own, other: own._change(apply(own._place.get(), own._members(other))),
    )


def _set_comparison(apply: Callable[[Any, Any], Any], mirrored: type[ast.cmpop]) -> Callable[[SetView, Any], bool]:
    return lambda own, other: bool(apply(own._place.get(), own._members(other, mirrored=mirrored)))


class SetView(View):
    """A set of values; iterated in the order of its element sort."""

    __slots__ = ()

    def _members(self, given: Any, first: bool = False, mirrored: type[ast.cmpop] | None = None) -> frozenset[Value]:
        """The other operand of the current operation; `first` says whether it is the first one. `mirrored`: the comparison
        in which Python exchanged the operands."""
        spot = CallSite()
        return frozenset(raw(self._sort, given, spot, spot.operand(first, mirrored)))

    def _made(self, members: Iterable[Value]) -> SetView:
        return SetView(self._sort, FixedValue(frozenset(members)))

    def _change(self, members: frozenset[Value]) -> SetView:
        self._place.put(checked(self._sort, self._made(members), CallSite()))
        return self

    def add(self, given: Any) -> None:
        """Adds a value."""
        spot, element = CallSite(), self._sort.element
        value = raw(element, given, spot, "the value")
        _expect_inside(element, value, spot, "added to")
        self._place.put(self._place.get() | {value})

    def discard(self, given: Any) -> None:
        """Removes a value, if present."""
        self._place.put(self._place.get() - {raw(self._sort.element, given, CallSite(), "the value")})

    def remove(self, given: Any) -> None:
        """Removes a value that must be present."""
        spot = CallSite()
        value = raw(self._sort.element, given, spot, "the value")
        if value not in self._place.get():
            shown = _shown(self._sort.element, value)
            raise fail(f"remove() of a value that is not in {spot.owner()}", spot, ("value", shown))
        self._place.put(self._place.get() - {value})

    def clear(self) -> None:
        """Removes all values."""
        self._place.put(frozenset())

    def __len__(self) -> int:
        return len(self._place.get())

    def __iter__(self) -> Iterator[Any]:
        element = self._sort.element
        return iter([look(element, FixedValue(v)) for v in ordered(element, self._place.get())])

    def __contains__(self, value: object) -> bool:
        if isinstance(value, str) and isinstance(self._sort.element, EnumSort):
            return value in self._place.get()  # also a value of a wider Enum
        try:
            return raw(self._sort.element, value, None, "") in self._place.get()
        except StreamproofError:  # None is in no set of numbers
            return False

    __or__, __ror__, __ior__ = _set_operations(operator.or_)
    __and__, __rand__, __iand__ = _set_operations(operator.and_)
    __sub__, __rsub__, __isub__ = _set_operations(operator.sub)
    __le__, __lt__ = _set_comparison(operator.le, ast.GtE), _set_comparison(operator.lt, ast.Gt)
    __ge__, __gt__ = _set_comparison(operator.ge, ast.LtE), _set_comparison(operator.gt, ast.Lt)
