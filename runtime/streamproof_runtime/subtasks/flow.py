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
from typing import Any

from streamproof_runtime.subtasks.items import PART, RECORD, Item
from streamproof_runtime.subtasks.sender_pools import SenderPool

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
        self.pools: dict[str, SenderPool] = {}
        """The pool of each channel; a channel without one has as many buffers as it needs."""
        self._unwritten: dict[str, deque[Item]] = {}
        """What waits for a buffer of the pool."""
        self._spanning: dict[str, deque[tuple[int, list[Any]]]] = {}
        """Inputs and values of records that span buffers and have not left whole."""
        self.cut: set[str] = set()
        """Channels on which the first parts of a record have left, and the last one has not."""
        self._stalled: set[str] = set()
        """Channels on which an item waits."""

    def span(self, channel: str, item: Item) -> None:
        """A record is offered in parts."""
        if channel in self.credit:
            self._spanning.setdefault(channel, deque()).append((item[2], item[3]))

    def offer(self, items: Iterable[tuple[str, Item]]) -> tuple[list[Leaving], dict[str, int]]:
        """New items; returns those without a limit, and how many of each other channel have a buffer now."""
        leaving: list[Leaving] = []
        written: dict[str, int] = {}
        for channel, item in items:
            if channel not in self.credit:
                leaving.append((channel, item, 0))
            elif channel in self.pools:
                self._unwritten.setdefault(channel, deque()).append(item)
                self._stalled.add(channel)
                written[channel] = written.get(channel, 0) + self.write(channel)
            else:
                self.waiting[channel].append(item)
                written[channel] = written.get(channel, 0) + 1
        return leaving, {channel: count for channel, count in written.items() if count}

    def write(self, channel: str) -> int:
        """Writes what has waited for a buffer, as far as the pool has some; returns the number of buffers."""
        unwritten, waiting = self._unwritten.get(channel), self.waiting[channel]
        before = len(waiting)
        while unwritten and self.pools[channel].permits(channel, len(waiting)):
            waiting.append(unwritten.popleft())
        return len(waiting) - before

    def overtaken(self, channel: str) -> list[tuple[int, list[Any]]]:
        """What waits on a channel: inputs and records. One that spans buffers counts until its last part has left."""
        spanning = iter(self._spanning.get(channel, ()))
        items = (*self.waiting[channel], *self._unwritten.get(channel, ()))
        return [
            next(spanning) if isinstance(item[3], bytes) else (item[2], item[3]) for item in items if item[0] == RECORD
        ]

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
            if item[0] == PART:
                self.cut.add(channel)
            elif item[0] == RECORD and isinstance(item[3], bytes):
                self.cut.discard(channel)
                self._spanning[channel].popleft()
        (self._stalled.add if queue or self._unwritten.get(channel) else self._stalled.discard)(channel)
        return leaving

    def has_credit(self, channel: str) -> bool:
        """Whether the receiver has a buffer."""
        return self.credit[channel] > 0

    def is_blocked(self, channels: Iterable[str]) -> bool:
        """Whether an item waits for a buffer or for credit on one of these channels."""
        return bool(self._stalled) and not self._stalled.isdisjoint(channels)


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
        batch, backlog, unannounced = self._batch, self.backlog, self.unannounced
        for channel, credits in unannounced.items():
            lent = self.lend(channel) if backlog[channel] and channel not in self.released else 0
            if lent or credits >= batch:
                credits, unannounced[channel] = unannounced[channel], 0
                yield channel, credits, lent

    def is_sent(self) -> bool:
        """Whether an announcement arrives."""
        return True

    def lend(self, channel: str) -> int:
        """The pool gives a channel whose sender has a backlog the floating buffers that it requires, if there are any."""
        lent = max(0, min(self.pool, self.required(channel) - self.free[channel]))
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
    pool: type[SenderPool] = SenderPool
    fenced: bool = True
    """Whether buffers and credits of an earlier attempt are ignored."""
    has_exclusive: bool = True
    """Whether channels have exclusive buffers."""
    announces_backlog: bool = True
    """Whether a sender without credit announces its backlog."""
    stops_reading: bool = False
    """On processes, a receiver whose channel has no free buffer stops reading the whole connection, and a sender waits for
    the connection, as in Flink before 1.5."""
