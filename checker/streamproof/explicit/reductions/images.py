"""The image of a state under a renaming, leaf by leaf, as terms over the leaves.

The leaves of an array move with its elements, and the Booleans of a set with its members. A leaf with a name gets the new
name, unless it is meaningless: the value of an absent option, the fields of other cases of a union and the slots behind
the end of a queue keep the default of their sort.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar, assert_never

from streamproof.explicit.reductions.renaming import Renaming, renamed, sources
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.leaves import candidates, leaves
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
    values,
)

Part = TypeVar("Part")


def origins(system: System, renaming: Renaming) -> tuple[int, ...]:
    """For each leaf of a renamed state, the position of its source leaf in the original state."""
    found: list[int] = []
    for v in system.variables:
        size = sum(1 for _ in leaves(v.sort, v.name))
        found += _origins(v.sort, range(len(found), len(found) + size), renaming)
    return tuple(found)


def _origins(sort: Sort, parts: Sequence[int], renaming: Renaming) -> list[int]:
    match sort:
        case BoolSort() | RangeSort() | EnumSort():
            return list(parts)
        case RecordSort(fields):
            inner = [s for _, s in fields]
            chunks = zip(inner, _chunks(inner, parts), strict=True)
            return [at for s, chunk in chunks for at in _origins(s, chunk, renaming)]
        case UnionSort(cases):
            payloads = [own for _, own in cases]
            pairs = zip(payloads, _chunks(payloads, parts[1:]), strict=True)
            return [parts[0], *(at for own, chunk in pairs for at in _origins(own, chunk, renaming))]
        case ArraySort(index, element):
            order = sources(index, renaming)
            rows = list(_chunks([element] * len(order), parts))
            return [at for row in order for at in _origins(element, rows[row], renaming)]
        case OptionSort(element):
            return [parts[0], *_origins(element, parts[1:], renaming)]
        case QueueSort(element, capacity):
            slots = _chunks([element] * capacity, parts[1:])
            return [parts[0], *(at for slot in slots for at in _origins(element, slot, renaming))]
        case SetSort(element):
            every = candidates(element)
            place = {renamed(element, value, renaming): at for at, value in enumerate(every)}
            return [parts[place[value]] for value in every]
        case _:
            assert_never(sort)


def images(system: System, renaming: Renaming) -> tuple[Expr, ...]:
    """For each leaf of a state of `system`, in order, its value in the renamed state as a term over the leaves."""
    every = [leaf for v in system.variables for leaf in leaves(v.sort, v.name)]
    alive = liveness(system)
    found: list[Expr] = []
    for at in origins(system, renaming):
        sort = every[at].sort
        term = b.var(every[at].name, sort)
        if isinstance(sort, EnumSort) and sort in renaming:
            term = b.ite(alive[at], _renamed_name(term, renaming[sort]), b.const(sort, sort.members[0]))
        found.append(term)
    return tuple(found)


def _renamed_name(term: Expr, names: Mapping[str, str]) -> Expr:
    result = term
    for old, new in names.items():
        if old != new:
            result = b.ite(b.eq(term, b.const(term.sort, old)), b.const(term.sort, new), result)
    return result


def _chunks(sorts: Sequence[Sort], parts: Sequence[Part]) -> Iterator[Sequence[Part]]:
    """The leaves of each of several adjacent values."""
    at = 0
    for sort in sorts:
        size = sum(1 for _ in leaves(sort, ""))
        yield parts[at : at + size]
        at += size


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
    match sort:
        case RecordSort(fields):
            inner = [s for _, s in fields]
            for s, chunk in zip(inner, _chunks(inner, parts), strict=True):
                yield from _alive(s, chunk, alive)
        case UnionSort(cases):
            yield alive
            payloads = [own for _, own in cases]
            for name, own, chunk in zip(sort.tag.members, payloads, _chunks(payloads, parts[1:]), strict=True):
                yield from _alive(own, chunk, b.and_((alive, b.eq(parts[0], b.const(sort.tag, name)))))
        case ArraySort(index, element):
            for chunk in _chunks([element] * len(list(values(index))), parts):
                yield from _alive(element, chunk, alive)
        case OptionSort(element):
            yield alive
            yield from _alive(element, parts[1:], b.and_((alive, parts[0])))
        case QueueSort(element, capacity):
            yield alive
            for at, slot in enumerate(_chunks([element] * capacity, parts[1:])):
                yield from _alive(element, slot, b.and_((alive, b.less(b.num(at), parts[0]))))
        case _:
            for _ in parts:
                yield alive
