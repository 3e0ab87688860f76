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
