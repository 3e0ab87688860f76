"""The partitions of a TaskExecutor: those of memory-only caching exchanges in memory, all others in its store.

Memory-only caching is for recovery, as far as memory allows it (FLIP-1, phase 1): what has been sent, that is, read to its
end, stays in memory, and is discarded when more is stored than there is room for, what was read longest ago first. A reader
that comes back for it misses it, and it is made again. What has not been sent is the only copy: it is never discarded, and
nothing is spilled. If it has no room, its producer fails.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from streamproof_runtime.errors import RuntimeFailure
from streamproof_runtime.subtasks.spilling import SpillingQueue
from streamproof_runtime.taskexecutor.partitions import Key, Missing, Partitions


class MemoryFull(RuntimeFailure):
    """A memory-only result that no reader has read does not fit in memory."""


class CachedPartitions:
    """A store, and the memory for the partitions of some datasets."""

    def __init__(self, store: Partitions, in_memory: Container[str]) -> None:
        """`in_memory`: datasets."""
        self.store, self._in_memory = store, in_memory
        self.size = 0
        """How much is in memory, in the unit of the store."""
        self._kept: dict[Key, list[Any]] = {}
        """What was appended, each time in the form of the store."""
        self._counts: dict[Key, int] = {}
        self._sizes: dict[Key, int] = {}
        self._sent: dict[Key, None] = {}
        """What has been read to its end, what was read longest ago first."""

    def create(self, key: Key) -> None:
        """An empty partition."""
        if key[0] in self._in_memory:
            self._kept[key], self._sizes[key], self._counts[key] = [], 0, 0
        else:
            self.store.create(key)

    def append(self, key: Key, records: list[Any]) -> None:
        """More records, none if the partition is lost meanwhile. Raises `OSError` if the disk is full."""
        if key[0] not in self._in_memory:
            self.store.append(key, records)
        elif key in self._kept:
            packed, size = self.store.packed(records)
            self._kept[key].append(packed)
            self._counts[key] += len(records)
            self._sizes[key] += size
            self.size += size

    def finish(self, key: Key) -> None:
        """Nothing more will be appended. Raises `OSError` if the disk is full."""
        if key[0] not in self._in_memory:
            self.store.finish(key)

    @property
    def is_full(self) -> bool:
        """Whether there is more in memory than there is room for."""
        return self.size > self.store.room

    def settle(self) -> list[Key]:
        """Discards what has been sent while memory is full; those partitions."""
        discarded: list[Key] = []
        while self._sent and self.is_full:
            discarded.append(next(iter(self._sent)))
            self._forget(discarded[-1])
        return discarded

    def expect_room(self, key: Key) -> None:
        """Raises `MemoryFull` if what has not been sent is too much."""
        if self.is_full and key[0] in self._in_memory:
            source, _, target = key[0].partition(">")
            raise MemoryFull(
                f"the results of {source} for {target} do not fit in the memory of a TaskExecutor ({self.store.room:,} "
                f"{self.store.unit}), and a memory-only exchange does not spill; make it caching()"
            )

    def open(self, key: Key) -> tuple[Iterator[Any], int]:
        """The records and their number. Raises `Missing`."""
        if key[0] not in self._in_memory:
            return self.store.open(key)
        if key not in self._kept:
            raise Missing(key)
        if key in self._sent:
            self._sent[key] = self._sent.pop(key)
        found = self._kept[key]
        return (record for packed in found for record in self.store.unpacked(packed)), self._counts[key]

    def consumed(self, key: Key) -> None:
        """A reader has read a partition to its end."""
        if key in self._kept:
            self._sent.pop(key, None)
            self._sent[key] = None

    def release(self, dataset: str, attempt: int) -> list[Key]:
        """Drops the partitions of an attempt; those that were there."""
        found = [key for key in self._kept if key[:2] == (dataset, attempt)]
        for key in found:
            self._forget(key)
        return [*found, *self.store.release(dataset, attempt)]

    def remove(self, key: Key) -> None:
        """Drops a partition, if it is there."""
        self._forget(key)
        self.store.remove(key)

    def queue(self, kind: type[SpillingQueue] = SpillingQueue) -> SpillingQueue:
        """The queue of a feedback channel."""
        return self.store.queue(kind)

    def keys(self) -> list[Key]:
        """All that are there."""
        return [*self._kept, *self.store.keys()]

    def clear(self) -> list[Key]:
        """Drops all; those that were there."""
        found = [*self._kept]
        self._kept, self._sizes, self._counts, self._sent, self.size = {}, {}, {}, {}, 0
        return [*found, *self.store.clear()]

    def _forget(self, key: Key) -> None:
        self._kept.pop(key, None)
        self._sent.pop(key, None)
        self._counts.pop(key, None)
        self.size -= self._sizes.pop(key, 0)
