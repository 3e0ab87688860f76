"""Network buffers: records of one channel that travel, are received and are processed together.

For the protocols a buffer is what moves: it is one event when it is sent, when it is received, and when it is processed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamproof_runtime.jobs.records import expected_size

RECORDS = 512
"""Largest number of records in a buffer."""
PIECE = 32
"""Records of a buffer that one step processes: heartbeats are answered between steps."""
BYTES = 32 * 1024
"""Size in bytes at which a buffer is full; its last record may exceed it."""

Output = tuple[str, int, Any]
"""A channel, an input of its receiver, and a record."""


def packed(outputs: Iterable[Output], records: int) -> list[tuple[str, int, list[Any]]]:
    """Outputs as buffers of at most `records` records, each of one input of the receiver; a channel keeps its order. Raises
    `Unsendable` for a record that is too large."""
    made: list[tuple[str, int, list[Any]]] = []
    open_: dict[str, tuple[int, list[Any], int]] = {}
    for channel, side, value in outputs:
        found = open_.get(channel)
        if found is None or found[0] != side or len(found[1]) >= records or found[2] >= BYTES:
            values: list[Any] = []
            made.append((channel, side, values))
            found = side, values, 0
        found[1].append(value)
        open_[channel] = side, found[1], found[2] + expected_size(value)
    return made
