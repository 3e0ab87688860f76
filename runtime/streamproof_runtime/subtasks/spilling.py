"""Queues of feedback channels: a few items in memory, the rest in a spill, in the order of arrival.

A feedback channel has no credits, because a bounded cycle of channels could block itself. What waits there is bounded in
memory all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

IN_MEMORY = 64
"""Largest number of items of a feedback channel in memory."""


class Spill(Protocol):
    """Where items wait that have no place in memory."""

    def write(self, item: tuple[Any, ...]) -> None:
        """Appends an item. Raises `OSError` if the disk is full."""

    def read(self, most: int) -> list[tuple[Any, ...]]:
        """Takes up to `most` items, the oldest first."""


class MemorySpill:
    """The spill of a simulated TaskExecutor."""

    def __init__(self, expect_space: Callable[[], None] = lambda: None) -> None:
        """`expect_space` raises `OSError` if the disk is full."""
        self._expect_space = expect_space
        self._items: deque[tuple[Any, ...]] = deque()

    def write(self, item: tuple[Any, ...]) -> None:
        """Appends an item."""
        self._expect_space()
        self._items.append(item)

    def read(self, most: int) -> list[tuple[Any, ...]]:
        """The oldest."""
        return [self._items.popleft() for _ in range(min(most, len(self._items)))]


class SpillingQueue:
    """A queue with at most `limit` items in memory. Items are numbered from 0 as they arrive, also in the spill."""

    def __init__(self, spill: Spill, limit: int) -> None:
        self.spill, self.limit = spill, limit
        self.memory: deque[tuple[int, tuple[Any, ...]]] = deque()
        """Items with their numbers."""
        self.spilled = 0
        """Items in the spill."""
        self.arrived = 0
        """Items that have ever arrived."""
        self.taken = -1
        """Number of the item that was taken last."""

    def append(self, item: tuple[Any, ...]) -> None:
        """Appends an item: to the spill, if there is no place in memory or others wait there. Raises `OSError`."""
        number, self.arrived = self.arrived, self.arrived + 1
        if self.has_place(item):
            self.memory.append((number, item))
        else:
            self.write(number, item)

    def has_place(self, item: tuple[Any, ...]) -> bool:
        """Whether a new item stays in memory."""
        return not self.spilled and len(self.memory) < self.limit

    def write(self, number: int, item: tuple[Any, ...]) -> None:
        """An item goes to the spill. Raises `OSError`."""
        self.spill.write((*item, number))
        self.spilled += 1

    def popleft(self) -> tuple[Any, ...]:
        """Takes the oldest item in memory; raises `IndexError` if there is none. `read_back` is due."""
        self.taken, item = self.memory.popleft()
        return item

    def read_back(self) -> list[int]:
        """Fills an empty memory from the spill; returns the numbers of the items. Raises `OSError`."""
        if self.memory or not self.spilled:
            return []
        found = self.fetch()
        self.spilled -= len(found)
        self.memory.extend(found)
        return [number for number, _ in found]

    def fetch(self) -> list[tuple[int, tuple[Any, ...]]]:
        """Takes the oldest items from the spill, as many as memory has places for."""
        return [(item[-1], item[:-1]) for item in self.spill.read(self.limit)]

    def __getitem__(self, at: int) -> tuple[Any, ...]:
        """An item in memory; the first is always there."""
        return self.memory[at][1]

    def __len__(self) -> int:
        return len(self.memory) + self.spilled
