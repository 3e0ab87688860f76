"""The image of a state under a renaming, leaf by leaf.

The leaves of an array move with its elements, and the Booleans of a set with its members (`origins`). A leaf with a name
gets the new name, unless it is meaningless and keeps the default of its sort (`liveness`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TypeVar, assert_never

from streamproof.explicit.reductions.renaming import Renaming, renamed, sources
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.leaves import candidates, leaf_count, leaves
from streamproof.system.model import System
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
    cardinality,
)

Part = TypeVar("Part")


def origins(system: System, renaming: Renaming) -> tuple[int, ...]:
    """For each leaf of a renamed state, the position of its source leaf in the original state."""
    found: list[int] = []
    for v in system.variables:
        found += _origins(v.sort, range(len(found), len(found) + leaf_count(v.sort)), renaming)
    return tuple(found)


def _origins(sort: Sort, parts: Sequence[int], renaming: Renaming) -> list[int]:
    if isinstance(sort, SetSort):
        every = candidates(sort.element)
        place = {renamed(sort.element, value, renaming): at for at, value in enumerate(every)}
        return [parts[place[value]] for value in every]
    own, rows = _split(sort, parts)
    order = sources(sort.index, renaming) if isinstance(sort, ArraySort) else range(len(rows))
    return [*own, *(at for row in order for at in _origins(*rows[row], renaming))]


def _split(sort: Sort, parts: Sequence[Part]) -> tuple[Sequence[Part], list[tuple[Sort, Sequence[Part]]]]:
    """The leaves of a value: its own (the case of a union, the length of a queue), and those of each component."""
    inner: list[Sort] = []
    match sort:
        case BoolSort() | RangeSort() | EnumSort() | SetSort():
            pass
        case RecordSort(components) | UnionSort(components):
            inner = [component for _, component in components]
        case ArraySort(index, element):
            inner = [element] * cardinality(index)
        case OptionSort(element):
            inner = [element]
        case QueueSort(element, capacity):
            inner = [element] * capacity
        case _:
            assert_never(sort)
    sizes = [leaf_count(component) for component in inner]
    first = len(parts) - sum(sizes)
    begins = accumulate(sizes, initial=first)
    rows = [(component, parts[at : at + size]) for component, at, size in zip(inner, begins, sizes, strict=False)]
    return parts[:first], rows


def liveness(system: System) -> tuple[Expr, ...]:
    """For each leaf of a state of `system`, the condition under which it is meaningful; otherwise it has its sort's default.

    The value of an absent option, the fields of other cases of a union and the slots behind the end of a queue are
    meaningless.
    """
    return tuple(
        alive
        for v in system.variables
        for alive in _alive(v.sort, [b.var(leaf.name, leaf.sort) for leaf in leaves(v.sort, v.name)], b.TRUE)
    )


def _alive(sort: Sort, parts: Sequence[Expr], alive: Expr) -> Iterator[Expr]:
    own, rows = _split(sort, parts)
    yield from (alive for _ in own)
    for at, (component, leaves_) in enumerate(rows):
        match sort:
            case UnionSort():
                present = b.eq(parts[0], b.const(sort.tag, sort.tag.members[at]))
            case OptionSort():
                present = parts[0]
            case QueueSort():
                present = b.less(b.num(at), parts[0])
            case _:
                present = b.TRUE
        yield from _alive(component, leaves_, b.and_((alive, present)))
