"""Credit-based flow control of the channels of one attempt, without input and output.

The receiver of a channel has a number of exclusive buffers, one for each item that is under way or waits at the receiver.
The sender has a credit for each free buffer; items beyond its credit wait at the sender, and a subtask with such an item
takes no step. The receiver returns credits when half of its buffers are free. Feedback channels have no limit: a bounded
cycle of channels could block itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from streamproof_runtime.subtask import Item

BUFFERS = 64
"""Exclusive buffers of a channel; one holds records, END or a baton."""


class Flow:
    """Credits of the outgoing channels of a TaskExecutor, and free buffers of its incoming ones."""

    def __init__(self, outgoing: Iterable[str], incoming: Iterable[str], buffers: int = BUFFERS) -> None:
        """`outgoing` and `incoming` are channels with a limit; other channels have none."""
        self.credit = dict.fromkeys(outgoing, buffers)
        self.waiting: dict[str, deque[Item]] = {channel: deque() for channel in self.credit}
        self._free = dict.fromkeys(incoming, 0)
        self._batch = (buffers + 1) // 2

    def admit(self, channel: str, item: Item) -> bool:
        """Whether an item can leave now; if not, it is kept until `grant` returns it."""
        credit = self.credit.get(channel)
        if credit is None:
            return True
        if credit and not self.waiting[channel]:
            self.credit[channel] = credit - 1
            return True
        self.waiting[channel].append(item)
        return False

    def grant(self, channel: str, credits: int) -> list[Item]:
        """Adds credits to an outgoing channel; returns the items that leave now, in order."""
        queue = self.waiting[channel]
        leaving = [queue.popleft() for _ in range(min(credits, len(queue)))]
        self.credit[channel] += credits - len(leaving)
        return leaving

    def free(self, channel: str) -> int:
        """Frees one buffer of an incoming channel; returns the number of credits that the sender gets now."""
        count = self._free.get(channel)
        if count is None:
            return 0
        credits = count + 1 if count + 1 >= self._batch else 0
        self._free[channel] = 0 if credits else count + 1
        return credits

    def is_blocked(self, channels: Iterable[str]) -> bool:
        """Whether an item waits for credit on one of these channels."""
        waiting = self.waiting
        return any(waiting.get(channel) for channel in channels)
