"""The representation invariant of leaves: absent options, unused queue slots and
the fields of other cases of a union have their default value, and a bag is within its capacity.

It holds in every state that the interpreter reaches; code that works on leaves alone relies on it (see `leaves`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import islice
from typing import assert_never

from streamproof.system import build as b
from streamproof.system import sorts
from streamproof.system.expr import Expr
from streamproof.system.leaves import encode, leaves
from streamproof.transform.scalarise import Scalarised


def canonical(scalarised: Scalarised) -> Iterator[Expr]:
    """The representation invariant: a condition on leaves for each variable of the model that needs one."""
    parts: Iterator[Expr] = (b.var(v.name, v.sort) for v in scalarised.system.variables)
    return (c for v in scalarised.original.variables if (c := _canonical(v.sort, parts)) != b.TRUE)


def _canonical(sort: sorts.Sort, parts: Iterator[Expr]) -> Expr:
    """Whether the next leaves in `parts` are canonical: the encoding of some value."""
    match sort:
        case sorts.BoolSort() | sorts.RangeSort() | sorts.EnumSort():
            if not sorts.is_empty(sort):
                next(parts)
            return b.TRUE
        case sorts.RecordSort(fields):
            return b.and_([_canonical(inner, parts) for _, inner in fields])
        case sorts.UnionSort(cases):
            tag = next(parts)
            return b.and_([c for n, fields in cases for c in _hidden(fields, b.eq(tag, b.const(sort.tag, n)), parts)])
        case sorts.BagSort(index, capacity=capacity):
            counts = list(islice(parts, sorts.cardinality(index)))
            return b.less_eq(reduce(b.add, counts, b.num(0)), b.num(capacity))
        case sorts.ArraySort(index, element):
            return b.and_([_canonical(element, parts) for _ in range(sorts.cardinality(index))])
        case sorts.OptionSort(element):
            present = next(parts)
            return b.not_(present) if sorts.is_empty(element) else b.and_(_hidden(element, present, parts))
        case sorts.QueueSort(element, capacity):
            length = next(parts)
            return b.and_([c for k in range(capacity) for c in _hidden(element, b.less(b.num(k), length), parts)])
        case sorts.SetSort(element):
            return b.and_([_canonical(sorts.BOOL, parts) for _ in range(sorts.cardinality(element))])
        case _:
            assert_never(sort)


def _hidden(element: sorts.Sort, shown: Expr, parts: Iterator[Expr]) -> tuple[Expr, Expr]:
    """The condition on the next leaves in `parts`: canonical, and at their default unless `shown`."""
    own = tuple(islice(parts, sum(1 for _ in leaves(element, ""))))
    absent = encode(element, sorts.default(element))
    at_default = b.and_([b.eq(leaf, b.const(leaf.sort, value)) for leaf, value in zip(own, absent, strict=True)])
    return _canonical(element, iter(own)), b.or_((shown, at_default))
