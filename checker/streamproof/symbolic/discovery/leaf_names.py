"""Leaves as expressions of the model: each scalar component in terms of its original variable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.leaves import candidates
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
    is_empty,
    values,
)
from streamproof.transform.assume import Substitution
from streamproof.transform.scalarise import Scalarised


def in_terms_of_the_model(scalarised: Scalarised) -> Substitution:
    """Translates conditions on leaves to conditions on the original variables, with the same value in every state."""
    mapping: dict[Expr, Expr] = {}
    for variable in scalarised.original.variables:
        names = scalarised.leaves[variable.name]
        for name, read in zip(names, leaf_terms(variable.sort, b.var(variable.name, variable.sort)), strict=True):
            leaf = scalarised.system.variables[scalarised.system.index[name]]
            mapping[b.var(name, leaf.sort)] = read
    return Substitution(mapping)


def _case_of(sort: UnionSort, whole: Expr) -> Expr:
    """The name of the case of a value."""
    *others, last = sort.tag.members
    found = b.const(sort.tag, last)
    for name in reversed(others):
        found = b.ite(b.is_case(whole, name), b.const(sort.tag, name), found)
    return found


def leaf_terms(sort: Sort, whole: Expr) -> Iterator[Expr]:
    """The expression of each leaf of a value, in the order of `leaves`."""
    match sort:
        case BoolSort() | RangeSort() | EnumSort():
            if not is_empty(sort):
                yield whole
        case RecordSort(fields):
            for name, inner in fields:
                yield from leaf_terms(inner, b.field(whole, name))
        case ArraySort(index, element):
            for key in values(index):
                yield from leaf_terms(element, b.select(whole, b.const(index, key)))
        case UnionSort(cases):
            yield _case_of(sort, whole)
            for name, own in cases:
                yield from leaf_terms(own, b.payload(whole, name))
        case OptionSort(element):
            yield b.not_(b.is_none(whole))
            yield from leaf_terms(element, b.unwrap(whole))
        case QueueSort(element, capacity):
            yield b.length(whole)
            for slot in range(capacity):
                yield from leaf_terms(element, b.peek(whole, b.num(slot)))
        case SetSort(element):
            for value in candidates(element):
                yield b.member(whole, b.const(element, value))
        case _:
            assert_never(sort)
