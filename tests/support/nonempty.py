"""Loops over computed values that have assertions in them: there must be a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def nonempty(values: Iterable[T]) -> Iterator[T]:
    """The values; fails at the end if there was none."""
    empty = True
    for value in values:
        empty = False
        yield value
    assert not empty, "no value to check"
