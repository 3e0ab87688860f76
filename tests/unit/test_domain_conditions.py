"""The condition that a term is in a domain is true of exactly the values in the domain, for each sort of values."""

from __future__ import annotations

from itertools import permutations, product
from typing import get_args

import pytest

from streamproof.system import (
    BOOL,
    ArraySort,
    EnumSort,
    Interpreter,
    ModelError,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    System,
    Variable,
)
from streamproof.system import build as b
from streamproof.system.sorts import Sort, UnionSort, bag_sort, compatible, contains, values

RANGES = (RangeSort(0, 1), RangeSort(0, 2), RangeSort(-1, 1))
FAMILIES: dict[str, tuple[Sort, ...]] = {
    "truth values": (BOOL,),
    "numbers": RANGES,
    "names": (EnumSort(("A", "B")),),
    "records": tuple(RecordSort((("x", r), ("y", OptionSort(s)))) for r, s in product(RANGES[:2], repeat=2)),
    "unions": tuple(UnionSort((("One", RecordSort((("x", r),))), ("None", RecordSort(())))) for r in RANGES),
    "options": tuple(map(OptionSort, RANGES)),
    "arrays": tuple(ArraySort(BOOL, r) for r in RANGES),
    "bags": tuple(bag_sort(BOOL, capacity) for capacity in range(1, 4)),
    "queues": tuple(QueueSort(r, capacity) for r in RANGES for capacity in (1, 2)),
    "sets": tuple(map(SetSort, RANGES)),
}
"""Sorts that are compatible with the others of their family only."""


def test_every_sort_is_here() -> None:
    """Each class of sorts has a family."""
    classes = {cls for family in FAMILIES.values() for sort in family for cls in type(sort).__mro__}
    assert {*get_args(Sort)} <= classes


@pytest.mark.parametrize("family", FAMILIES)
def test_the_condition_is_that_of_the_domain(family: str) -> None:
    """For each two sorts of a family and each value of the first, the condition is whether the second contains the value."""
    outside = 0
    for own, sort in product(FAMILIES[family], repeat=2):
        system = System("m", (Variable("v", own, (next(iter(values(own))),)),), ())
        condition = b.in_domain(b.var("v", own), sort)
        for value in values(own):
            assert Interpreter(system).value(condition, (value,)) is contains(sort, value), (own, sort, value)
            outside += not contains(sort, value)
    assert (outside > 0) is (len(FAMILIES[family]) > 1)


def test_a_term_of_an_incompatible_sort_is_rejected() -> None:
    """Sorts of two families are not compatible, and a term of one has no condition for the domain of the other."""
    pairs = 0
    for one, other in permutations(FAMILIES, 2):
        for own, sort in product(FAMILIES[one], FAMILIES[other]):
            assert not compatible(own, sort)
            with pytest.raises(ModelError, match=r"a value of .* expected"):
                b.in_domain(b.var("v", own), sort)
            pairs += 1
    assert pairs > 700
