"""Reads through long chains of writes, and literals that are no values of their sort."""

from __future__ import annotations

import pytest

from streamproof.system import BOOL, ArraySort, Expr, ModelError, RangeSort, RecordSort, SetSort
from streamproof.system import build as b

LONG = 5000
"""More than Python lets functions nest."""
NUMBERS = RangeSort(0, LONG)


def test_reading_an_array_behind_thousands_of_writes() -> None:
    """The element at an index that none of them wrote is that of the array below them."""
    array = ArraySort(NUMBERS, NUMBERS)
    written: Expr = b.var("a", array)
    for at in range(1, LONG):
        written = b.store(written, b.num(at), b.num(at))
    assert b.select(written, b.num(0)) is b.select(b.var("a", array), b.num(0))
    assert b.select(written, b.num(1)) is b.num(1)


def conditional_writes(count: int) -> tuple[Expr, Expr]:
    """An array, and the same after as many writes, each under a condition of its own, at indices from 1 on."""
    array = b.var("a", ArraySort(NUMBERS, NUMBERS))
    written = array
    for at in range(1, count + 1):
        written = b.ite(b.var(f"c{at}", BOOL), b.store(written, b.num(at), b.num(0)), written)
    return array, written


def test_reading_behind_conditional_writes_is_the_read_below_them() -> None:
    """No condition decides about an element that no side of it writes; one that writes it decides alone."""
    array, written = conditional_writes(200)
    assert b.select(written, b.num(0)) is b.select(array, b.num(0))
    for at in (1, 100, 200):
        assert b.select(written, b.num(at)) is b.ite(b.var(f"c{at}", BOOL), b.num(0), b.select(array, b.num(at)))


def test_conditional_writes_of_different_arrays_stay_apart() -> None:
    """Where the two sides of a condition are different arrays, every element depends on it, behind further writes too."""
    sort = ArraySort(NUMBERS, NUMBERS)
    chosen = b.ite(b.var("c", BOOL), b.var("a", sort), b.var("z", sort))
    written = b.ite(b.var("d", BOOL), b.store(chosen, b.num(2), b.num(0)), chosen)
    read = b.ite(b.var("c", BOOL), b.select(b.var("a", sort), b.num(1)), b.select(b.var("z", sort), b.num(1)))
    assert b.select(written, b.num(1)) is b.select(chosen, b.num(1)) is read
    assert b.select(written, b.num(2)) is b.ite(b.var("d", BOOL), b.num(0), b.select(chosen, b.num(2)))


def test_a_write_at_an_unknown_index_hides_what_is_below() -> None:
    """Behind a write at a known index and a condition, the element is that after the write at the unknown one."""
    array, index = b.var("a", ArraySort(NUMBERS, NUMBERS)), b.var("i", NUMBERS)
    unknown = b.store(array, index, b.num(0))
    written = b.ite(b.var("c", BOOL), b.store(unknown, b.num(2), b.num(0)), unknown)
    assert b.select(written, b.num(1)) is b.select(unknown, b.num(1)) is not b.select(array, b.num(1))


def test_reading_a_record_behind_thousands_of_writes() -> None:
    """The same for the fields of a record, whose writes alternate."""
    sort = RecordSort((("x", NUMBERS), ("y", NUMBERS), ("z", BOOL)))
    record: Expr = b.var("r", sort)
    for at in range(LONG):
        record = b.with_field(record, "xy"[at % 2], b.num(at))
    assert b.field(record, "z") is b.field(b.var("r", sort), "z")
    assert b.field(record, "y") is b.num(LONG - 1)


def test_asking_a_set_behind_thousands_of_changes() -> None:
    """Membership is that of the last change of the same element, or of the set below all changes."""
    sort = SetSort(NUMBERS)
    changed: Expr = b.var("s", sort)
    for at in range(1, LONG):
        change = b.insert if at % 2 else b.remove
        changed = change(changed, b.num(at))
    assert b.member(changed, b.num(0)) is b.member(b.var("s", sort), b.num(0))
    assert (b.member(changed, b.num(1)), b.member(changed, b.num(2))) == (b.TRUE, b.FALSE)


@pytest.mark.parametrize("value", [True, False, None, "1", 1.0])
def test_what_is_no_integer_is_no_literal_of_a_range(value: object) -> None:
    """Python's True is an int; in a model it is a truth value and nothing else."""
    with pytest.raises(ModelError, match="is not a value of"):
        b.const(RangeSort(0, 1), value)
