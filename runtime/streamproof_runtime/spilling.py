"""Queues of feedback channels: a few items in memory, the rest in a spill, in the order of arrival.

A feedback channel has no credits, because a bounded cycle of channels could block itself. What waits there is bounded in
memory all the same.
"""

from __future__ import annotations

from collections import deque
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

    def __init__(self) -> None:
        self._items: deque[tuple[Any, ...]] = deque()

    def write(self, item: tuple[Any, ...]) -> None:
        """Appends an item."""
        self._items.append(item)

    def read(self, most: int) -> list[tuple[Any, ...]]:
        """The oldest."""
        return [self._items.popleft() for _ in range(min(most, len(self._items)))]


class SpillingQueue:
    """A queue with at most `limit` items in memory."""

    def __init__(self, spill: Spill, limit: int) -> None:
        self._spill, self._limit = spill, limit
        self.memory: deque[tuple[Any, ...]] = deque()
        self.spilled = 0
        """Items in the spill."""

    def append(self, item: tuple[Any, ...]) -> None:
        """Appends an item: to the spill, if there is no place in memory or others wait there. Raises `OSError`."""
        if self.spilled or len(self.memory) >= self._limit:
            self._spill.write(item)
            self.spilled += 1
        else:
            self.memory.append(item)

    def popleft(self) -> tuple[Any, ...]:
        """Takes the oldest item; raises `IndexError` if there is none."""
        item = self.memory.popleft()
        if not self.memory and self.spilled:
            self.memory.extend(self._spill.read(self._limit))
            self.spilled -= len(self.memory)
        return item

    def __getitem__(self, at: int) -> tuple[Any, ...]:
        """An item in memory; the first is always there."""
        return self.memory[at]

    def __len__(self) -> int:
        return len(self.memory) + self.spilled
