"""Network buffers: records of one channel that travel, are received and are processed together.

For the protocols a buffer is what moves: it is one event when it is sent, when it is received, and when it is processed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

RECORDS = 512
"""Largest number of records in a buffer."""
PIECE = 32
"""Records of a buffer that one step processes: heartbeats are answered between steps."""
BYTES = 32 * 1024
"""Size in bytes at which a buffer is full; its last record may exceed it."""
_DEPTH = 8

Output = tuple[str, int, Any]
"""A channel, an input of its receiver, and a record."""


def size(value: Any, depth: int = _DEPTH) -> int:
    """About the size of a record in bytes."""
    kind = type(value)
    if kind is str or kind is bytes:
        return 8 + len(value)
    if depth and (kind is tuple or kind is list or kind is set or kind is frozenset):
        return 8 + sum([size(part, depth - 1) for part in value])
    if depth and kind is dict:
        return 8 + sum([size(part, depth - 1) for pair in value.items() for part in pair])
    return 8 if kind is int or kind is float else sys.getsizeof(value)


def packed(outputs: Iterable[Output], records: int) -> list[tuple[str, int, list[Any]]]:
    """Outputs as buffers of at most `records` records, each of one input of the receiver; a channel keeps its order."""
    made: list[tuple[str, int, list[Any]]] = []
    open_: dict[str, tuple[int, list[Any], int]] = {}
    for channel, side, value in outputs:
        found = open_.get(channel)
        if found is None or found[0] != side or len(found[1]) >= records or found[2] >= BYTES:
            values: list[Any] = []
            made.append((channel, side, values))
            found = side, values, 0
        found[1].append(value)
        open_[channel] = side, found[1], found[2] + (size(value) if records > 1 else 0)
    return made
