"""Items: what travels on a channel between two subtasks.

``(RECORD, clock, side, values)`` is a buffer of records for an input of the receiver, ``(END, clock, busy)``,
``(BATON, clock, baton, busy, id)`` and ``(BARRIER, {}, checkpoint)`` are events. ``(PART, {}, side, bytes)`` is a buffer
with a part of a record that spans buffers; the last part is a RECORD with bytes in place of the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

RECORD, END, BATON, BARRIER, PART = 0, 1, 2, 3, 4
"""Kinds of items."""

Clock: TypeAlias = Mapping[str, int]
Item: TypeAlias = tuple[Any, ...]


def kind_of(item: Item) -> str:
    """The kind of an item in the log; of a baton with its name."""
    return f"baton {item[2]}" if item[0] == BATON else ("record", "end", "", "barrier", "part")[item[0]]
