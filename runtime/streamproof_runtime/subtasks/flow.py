"""Credit-based flow control of the channels of one attempt, without input and output.

A buffer leaves its sender only for a credit, and a credit is a free buffer that the receiver keeps for the channel. The
receiver has `exclusive` buffers for each channel, and `floating` ones that the channels of a gate share: it requests them
for a channel whose sender has a backlog. A subtask with a buffer that waits for credit takes no step. Feedback channels have
no limit: a bounded cycle of channels could block itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from streamproof_runtime.subtasks.subtask import Item

BUFFERS = 64
"""Exclusive buffers of a channel; one holds records, END or a baton."""
FLOATING = 8
"""Floating buffers of a gate."""

Leaving = tuple[str, Item, int]
"""A channel, an item that leaves on it, and the backlog that stays behind."""


class Outputs:
    """The sending ends of channels: their credits, and the buffers that wait for credit."""

    def __init__(self, channels: Iterable[str], exclusive: int = BUFFERS) -> None:
        """`channels` have a limit; other channels have none."""
        self.credit = dict.fromkeys(channels, exclusive)
        self.waiting: dict[str, deque[Item]] = {channel: deque() for channel in self.credit}
        self._stalled: set[str] = set()
        """Channels on which an item waits."""

    def offer(self, items: Iterable[tuple[str, Item]]) -> list[Leaving]:
        """New items; returns those that leave now, in order for each channel."""
        leaving: list[Leaving] = []
        limited: dict[str, None] = {}
        for channel, item in items:
            if channel in self.credit:
                self.waiting[channel].append(item)
                limited[channel] = None
            else:
                leaving.append((channel, item, 0))
        for channel in limited:
            leaving += self.send(channel)
        return leaving

    def grant(self, channel: str, credits: int) -> list[Leaving]:
        """Adds credits; returns the items that leave now, in order."""
        self.credit[channel] += credits
        return self.send(channel)

    def send(self, channel: str) -> list[Leaving]:
        """The items that have a credit."""
        queue, leaving = self.waiting[channel], []
        while queue and self.has_credit(channel):
            item = queue.popleft()
            self.credit[channel] -= 1
            leaving.append((channel, item, len(queue)))
        (self._stalled.add if queue else self._stalled.discard)(channel)
        return leaving

    def has_credit(self, channel: str) -> bool:
        """Whether the receiver has a buffer."""
        return self.credit[channel] > 0

    def is_blocked(self, channels: Iterable[str]) -> bool:
        """Whether an item waits for credit on one of these channels."""
        return not self._stalled.isdisjoint(channels)


class Gate:
    """The receiving ends of the channels of a subtask: their buffers, and the floating ones that they share."""

    def __init__(self, channels: Iterable[str], exclusive: int = BUFFERS, floating: int = FLOATING) -> None:
        self.exclusive, self.pool = exclusive, floating
        self.free = dict.fromkeys(channels, exclusive)
        """Free buffers of each channel, those that the sender has a credit for among them."""
        self.floating = dict.fromkeys(self.free, 0)
        """Floating buffers that a channel has."""
        self.backlog = dict.fromkeys(self.free, 0)
        self.unannounced = dict.fromkeys(self.free, 0)
        self.released: set[str] = set()
        self._batch = max(1, (exclusive + 1) // 2)

    def receive(self, channel: str, backlog: int) -> None:
        """A buffer arrives, with the backlog of its sender."""
        self.free[channel] -= 1
        self.backlog[channel] = backlog

    def consume(self, channel: str) -> None:
        """A buffer is free again: a floating one that the channel does not require returns to the pool."""
        if self.floating[channel] and self.free[channel] >= self.required(channel):
            self.give_back(channel, 1)
        else:
            self.recycle(channel)

    def recycle(self, channel: str) -> None:
        """A free buffer of the channel is a new credit."""
        self.free[channel] += 1
        self.unannounced[channel] += 1

    def give_back(self, channel: str, count: int) -> None:
        """Floating buffers return to the pool."""
        self.floating[channel] -= count
        self.pool += count

    def release(self, channel: str) -> None:
        """END has been taken: its buffer is free, and the floating buffers of the channel return to the pool."""
        self.released.add(channel)
        self.consume(channel)
        self.give_back(channel, self.floating[channel])

    def required(self, channel: str) -> int:
        """Free buffers that the channel should have."""
        return self.exclusive + self.backlog[channel]

    def announcements(self) -> Iterator[tuple[str, int, int]]:
        """Lends floating buffers. Yields channels with the credits that their senders get now, and how many of these are
        floating buffers just lent; other new credits wait until half of the exclusive buffers are free."""
        for channel in self.free:
            lent = 0 if channel in self.released else self.lend(channel)
            credits = self.unannounced[channel]
            if lent or credits >= self._batch:
                self.unannounced[channel] = 0
                yield channel, credits, lent

    def is_sent(self) -> bool:
        """Whether an announcement arrives."""
        return True

    def lend(self, channel: str) -> int:
        """The pool gives the channel the floating buffers that it requires, as far as there are any."""
        lent = max(0, min(self.pool, self.required(channel) - self.free[channel])) if self.backlog[channel] else 0
        self.pool -= lent
        self.floating[channel] += lent
        self.free[channel] += lent
        self.unannounced[channel] += lent
        return lent


@dataclass(frozen=True, slots=True)
class FlowRules:
    """The rules of flow control in a TaskExecutor."""

    outputs: type[Outputs] = Outputs
    gate: type[Gate] = Gate
    fenced: bool = True
    """Whether buffers and credits of an earlier attempt are ignored."""
    has_exclusive: bool = True
    """Whether channels have exclusive buffers."""
    announces_backlog: bool = True
    """Whether a sender without credit announces its backlog."""
    stops_reading: bool = False
    """On processes, a receiver whose channel has no free buffer stops reading the whole connection, and a sender waits for
    the connection, as in Flink before 1.5."""
