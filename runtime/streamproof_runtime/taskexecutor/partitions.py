"""Stored partitions of one TaskExecutor: what a blocking exchange keeps until its readers have finished."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

from streamproof_runtime.subtasks.spilling import MemorySpill, SpillingQueue

Key: TypeAlias = tuple[str, int, int]
"""A dataset, the attempt of the region that has made it, and the number of the subtask."""

ROOM = 1_000
"""Records of memory-only partitions for which a simulated TaskExecutor has memory."""


class Missing(Exception):
    """A partition is not there."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"partition {key[2]} of {key[0]} is not there")
        self.dataset = key[0]


class Partitions(Protocol):
    """Where partitions are stored."""

    room: int
    """How much of memory-only partitions is kept in memory, in units."""
    unit: str
    """For messages."""

    def packed(self, records: list[Any]) -> tuple[Any, int]:
        """Records in the form in which they are kept in memory, and what they take."""

    def unpacked(self, packed: Any) -> list[Any]:
        """The records again."""

    def create(self, key: Key) -> None:
        """An empty partition."""

    def append(self, key: Key, records: list[Any]) -> None:
        """More records. Raises `OSError` if the disk is full."""

    def finish(self, key: Key) -> None:
        """Nothing more will be appended. Raises `OSError` if the disk is full."""

    def open(self, key: Key) -> tuple[Iterator[Any], int]:
        """The records and their number. Raises `Missing`."""

    def release(self, dataset: str, attempt: int) -> list[Key]:
        """Drops the partitions of an attempt; those that were there."""

    def remove(self, key: Key) -> None:
        """Drops a partition, if it is there."""

    def queue(self, kind: type[SpillingQueue] = SpillingQueue) -> SpillingQueue:
        """The queue of a feedback channel."""

    def clear(self) -> list[Key]:
        """Drops all; those that were there."""

    def keys(self) -> list[Key]:
        """All that are there."""


class MemoryPartitions:
    """Partitions of a simulated TaskExecutor."""

    unit = "records"

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self.full = 0
        """Faults for which the disk is full now."""
        self.stored: dict[Key, list[Any]] = {}

    def expect_space(self) -> None:
        """Raises `OSError` if the disk is full."""
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def cleaned(self) -> None:
        """A fault is over."""
        self.full -= 1

    def packed(self, records: list[Any]) -> tuple[list[Any], int]:
        """As they are."""
        return records, len(records)

    def unpacked(self, packed: list[Any]) -> list[Any]:
        """As they are."""
        return packed

    def create(self, key: Key) -> None:
        """An empty one."""
        self.stored[key] = []

    def append(self, key: Key, records: list[Any]) -> None:
        """More records; none if the partition is lost meanwhile."""
        self.expect_space()
        if key in self.stored:
            self.stored[key] += records

    def finish(self, key: Key) -> None:
        """What is in memory is there."""

    def open(self, key: Key) -> tuple[Iterator[Any], int]:
        """The records."""
        if key not in self.stored:
            raise Missing(key)
        return iter(self.stored[key]), len(self.stored[key])

    def release(self, dataset: str, attempt: int) -> list[Key]:
        """Drops those of an attempt."""
        found = [k for k in self.stored if k[:2] == (dataset, attempt)]
        for key in found:
            del self.stored[key]
        return found

    def remove(self, key: Key) -> None:
        """Drops one."""
        self.stored.pop(key, None)

    def queue(self, kind: type[SpillingQueue] = SpillingQueue) -> SpillingQueue:
        """One that spills soon, so that small jobs spill too."""
        return kind(MemorySpill(self.expect_space), 2)

    def clear(self) -> list[Key]:
        """Drops all."""
        found, self.stored = [*self.stored], {}
        return found

    def keys(self) -> list[Key]:
        """All that are there."""
        return [*self.stored]
