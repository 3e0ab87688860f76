"""What exchanging interchangeable names does to the leaves of a state, as terms over the leaves.

The leaves of an array move with its elements, the Booleans of a set with its members, and a leaf that holds a name holds
the new one, unless it means nothing: the value of an absent option and the slots behind the end of a queue hold the
default of their sort before and after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

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
    values,
)


def images(system: System, renaming: Renaming) -> tuple[Expr, ...]:
    """For each leaf of a state of `system`, in order, its value in the renamed state as a term over the leaves."""
    return tuple(
        image
        for v in system.variables
        for image in _images(v.sort, [b.var(leaf.name, leaf.sort) for leaf in leaves(v.sort, v.name)], b.TRUE, renaming)
    )


def _images(sort: Sort, parts: Sequence[Expr], alive: Expr, renaming: Renaming) -> list[Expr]:
    """The leaves of a renamed value, from those of the value. Leaves that are not `alive` hold their sort's default."""
    match sort:
        case BoolSort() | RangeSort():
            return [parts[0]]
        case EnumSort(members):
            return (
                [b.ite(alive, _renamed_name(parts[0], renaming[sort]), b.const(sort, members[0]))]
                if (sort in renaming)
                else [parts[0]]
            )
        case RecordSort(fields):
            return [
                x
                for (_, s), chunk in zip(fields, _chunks([s for _, s in fields], parts), strict=True)
                for x in _images(s, chunk, alive, renaming)
            ]
        case ArraySort(index, element):
            order = sources(index, renaming)
            chunks = list(_chunks([element] * len(order), parts))
            return [x for at in order for x in _images(element, chunks[at], alive, renaming)]
        case OptionSort(element):
            return [parts[0], *_images(element, parts[1:], b.and_((alive, parts[0])), renaming)]
        case QueueSort(element, capacity):
            slots = _chunks([element] * capacity, parts[1:])
            return [
                parts[0],
                *(
                    x
                    for at, slot in enumerate(slots)
                    for x in _images(element, slot, b.and_((alive, b.less(b.num(at), parts[0]))), renaming)
                ),
            ]
        case SetSort(element):
            every = candidates(element)
            place = {renamed(element, value, renaming): at for at, value in enumerate(every)}
            return [parts[place[value]] for value in every]
        case _:
            assert_never(sort)


def _renamed_name(term: Expr, names: Mapping[str, str]) -> Expr:
    result = term
    for old, new in names.items():
        if old != new:
            result = b.ite(b.eq(term, b.const(term.sort, old)), b.const(term.sort, new), result)
    return result


def _chunks(sorts: Sequence[Sort], parts: Sequence[Expr]) -> Iterator[Sequence[Expr]]:
    """The leaves of each of several values that stand one after the other."""
    at = 0
    for sort in sorts:
        size = sum(1 for _ in leaves(sort, ""))
        yield parts[at : at + size]
        at += size


def liveness(system: System) -> tuple[Expr, ...]:
    """For each leaf of a state of `system`, when it means something; elsewhere it holds the default of its sort.

    The value of an absent option and the slots behind the end of a queue mean nothing.
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
