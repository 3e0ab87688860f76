"""Leaves: the scalar components of a value of composite sort.

=========  =====================================================  ========================================
sort       leaves                                                 named
=========  =====================================================  ========================================
Array      those of each element, in index order                  ``credit[1]``
Bag        the count of each value of the item sort               ``wire[DATA]``
Record     those of each field, in field order                    ``head.epoch``
Union      the case, then the fields of each case                 ``msg.case``, ``msg.Vote.value``
Option     whether it is present, then those of the value         ``owner?``, ``owner``
Queue      the length, then those of each slot                    ``wire.len``, ``wire[0]``, ``wire[1]``
Set        one Bool per value of the element sort                 ``seen{DATA}``
=========  =====================================================  ========================================

An empty range has no leaf.

The value of an absent option, the unused slots of a queue and the fields of other cases of a union have the default of
their sort, so two values of a sort are equal exactly when their leaves are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from streamproof.base.errors import TooLarge
from streamproof.base.records import dataclass
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    Scalar,
    SetSort,
    Sort,
    UnionSort,
    Value,
    cardinality,
    default,
    is_empty,
    is_scalar,
    show,
    values,
)

SET_LIMIT = 4096
"""Maximum number of values of an element sort for which a set is represented by one Bool per value."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar variable for a component of an original one."""

    name: str
    sort: Scalar


def leaves(sort: Sort, name: str) -> Iterator[Leaf]:
    """The leaves of a variable `name` of this sort, in order."""
    match sort:
        case BoolSort() | RangeSort() | EnumSort():
            if not is_empty(sort):
                yield Leaf(name, sort)
        case RecordSort(fields):
            for field, inner in fields:
                yield from leaves(inner, f"{name}.{field}")
        case UnionSort(cases):
            yield Leaf(f"{name}.case", sort.tag)
            for case, payload in cases:
                yield from leaves(payload, f"{name}.{case}")
        case ArraySort(index, element):
            for key in values(index):
                yield from leaves(element, f"{name}[{show(index, key)}]")
        case OptionSort(element):
            yield Leaf(f"{name}?", BOOL)
            yield from leaves(element, name)
        case QueueSort(element, capacity):
            yield Leaf(f"{name}.len", RangeSort(0, capacity))
            for slot in range(capacity):
                yield from leaves(element, f"{name}[{slot}]")
        case SetSort(element):
            for value in candidates(element):
                yield Leaf(f"{name}{{{show(element, value)}}}", BOOL)
        case _:
            assert_never(sort)


def leaf_count(sort: Sort) -> int:
    """The number of leaves of a variable of this sort, without listing them."""
    match sort:
        case RecordSort(fields):
            return sum(leaf_count(inner) for _, inner in fields)
        case UnionSort(cases):
            return 1 + sum(leaf_count(fields) for _, fields in cases)
        case ArraySort(index, element):
            return cardinality(index) * leaf_count(element)
        case OptionSort(element):
            return 1 + leaf_count(element)
        case QueueSort(element, capacity):
            return 1 + capacity * leaf_count(element)
        case SetSort(element):
            return cardinality(element)
        case _:
            return 0 if is_empty(sort) else 1


def encode(sort: Sort, value: Value) -> tuple[Value, ...]:
    """The leaves of one value, in order."""
    match sort:
        case BoolSort() | RangeSort() | EnumSort():
            return () if is_empty(sort) else (value,)
        case RecordSort(fields):
            return tuple(part for (_, inner), item in zip(fields, value, strict=True) for part in encode(inner, item))
        case UnionSort(cases):
            own, fields = value
            return (own, *(part for n, s in cases for part in encode(s, fields if n == own else default(s))))
        case ArraySort(_, element):
            if is_scalar(element) and not is_empty(element):
                return value  # type: ignore[no-any-return]
            return tuple(part for item in value for part in encode(element, item))
        case OptionSort(element):
            return (value is not None, *encode(element, default(element) if value is None else value))
        case QueueSort(element, capacity):
            slots = (*value, *(default(element),) * (capacity - len(value)))
            return (len(value), *(part for item in slots for part in encode(element, item)))
        case SetSort(element):
            return tuple(candidate in value for candidate in candidates(element))
        case _:
            assert_never(sort)


def decode(sort: Sort, parts: Iterator[Value]) -> Value:
    """The value encoded by the next leaves in `parts`."""
    match sort:
        case BoolSort() | RangeSort() | EnumSort():
            return default(sort) if is_empty(sort) else next(parts)
        case RecordSort(fields):
            return tuple(decode(inner, parts) for _, inner in fields)
        case UnionSort(cases):
            own = next(parts)
            payloads = {n: decode(fields, parts) for n, fields in cases}
            return (own, payloads[own])
        case ArraySort(index, element):
            return tuple(decode(element, parts) for _ in range(cardinality(index)))
        case OptionSort(element):
            present = next(parts)
            value = decode(element, parts)
            return value if present else None
        case QueueSort(element, capacity):
            length = next(parts)
            return tuple(decode(element, parts) for _ in range(capacity))[:length]
        case SetSort(element):
            return frozenset(candidate for candidate in candidates(element) if next(parts))
        case _:
            assert_never(sort)


def candidates(element: Sort) -> tuple[Value, ...]:
    """Every possible member of a set over `element`, in order. Raises `TooLarge` above `SET_LIMIT`."""
    size = cardinality(element)
    if size > SET_LIMIT:
        raise TooLarge(
            f"a Set over {element} would need {size} Booleans",
            remedy=f"use an element sort of at most {SET_LIMIT} values, or a Queue of the few members that can be there",
        )
    return tuple(values(element))
