"""The output buffers of a subtask, and when they leave.

A buffer leaves when it is full. Without a timeout, what a subtask has made of a buffer, or a source in a step, leaves at
once. With a timeout, other buffers stay and are filled further; all of them leave when the timeout has passed since the first
record came (`TIMEOUT`), and before END, a baton or a barrier is sent (`EVENT`), so that none overtakes a record. With the
timeout 0 each record has a buffer of its own, with `NEVER` only the other two rules hold.

For the protocols a subtask holds a buffer until the last output buffer with records of it has left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streamproof_runtime.jobs.records import expected_size
from streamproof_runtime.subtasks.buffers import BYTES, Output, packed

NEVER = -1
"""The timeout of a buffer that leaves only when it is full, or before an event."""
TIMEOUT, EVENT = "timeout", "event"
"""Why buffers that are not full leave."""

Buffer = tuple[str, int, list[Any]]
"""A channel, an input of its receiver, and records."""


@dataclass(slots=True)
class _Open:
    side: int
    values: list[Any]
    size: int
    since: int
    """The number of the buffer that was processed when the first record came."""


class OutputBuffers:
    """The output buffers of one subtask."""

    def __init__(self, records: int, timeout: float | None = None) -> None:
        """`records`: the largest number in a buffer; `timeout` in milliseconds, None: nothing stays."""
        self.records, self.timeout = 1 if timeout == 0 else records, timeout
        self.stay = bool(timeout)
        self._open: dict[str, _Open] = {}
        self._processed = self._done = 0

    def __bool__(self) -> bool:
        """Whether a record waits in a buffer that is not full."""
        return bool(self._open)

    @property
    def held(self) -> int:
        """Buffers that have been processed, and have or had records in a buffer that has not left."""
        return self._processed - self._done

    def add(self, outputs: Iterable[Output]) -> list[Buffer]:
        """Fills buffers; returns those that leave now. Raises `Unsendable` for a record that is too large."""
        return self._filled(outputs) if self.stay else packed(outputs, self.records)

    def processed(self) -> None:
        """A buffer has been processed: all its outputs have been added."""
        self._processed += 1

    def done(self) -> int:
        """How many more processed buffers have no record in a buffer that has not left."""
        least = min((found.since for found in self._open.values()), default=self._processed)
        before, self._done = self._done, least
        return least - before

    def flush(self) -> list[Buffer]:
        """All buffers leave."""
        left = [(channel, found.side, found.values) for channel, found in self._open.items()]
        self._open.clear()
        return left

    def _filled(self, outputs: Iterable[Output]) -> list[Buffer]:
        leaving: list[Buffer] = []
        for channel, side, value in outputs:
            found = self._open.get(channel)
            if found is not None and found.side != side:
                leaving.append((channel, found.side, found.values))
                found = None
            if found is None:
                found = self._open[channel] = _Open(side, [], 0, self._processed)
            found.values.append(value)
            found.size += expected_size(value)
            if len(found.values) >= self.records or found.size >= BYTES:
                leaving.append((channel, side, found.values))
                del self._open[channel]
        return leaving
