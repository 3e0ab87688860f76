"""The output buffers of a subtask, and when they leave.

A buffer leaves when it is full: when it has the largest number of records, or the next one does not fit. One that is larger
than a buffer is alone (`spanning`). Without a timeout, what a subtask has made of a buffer, or a source in a step, leaves at
once. With a timeout, other buffers stay and are filled further; all of them leave when the timeout has passed since the first
record came (`TIMEOUT`), and before END, a baton or a barrier is sent (`EVENT`), so that none overtakes a record. With the
timeout 0 each record has a buffer of its own, with `NEVER` only the other two rules hold.

For the protocols a subtask holds a buffer until the last output buffer with records of it has left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streamproof_runtime.jobs.records import expected_size, total_size
from streamproof_runtime.subtasks.buffers import BYTES, Output

NEVER = -1
"""The timeout of a buffer that leaves only when it is full, or before an event."""
TIMEOUT, EVENT = "timeout", "event"
"""Why buffers that are not full leave."""


@dataclass(slots=True)
class _Open:
    channel: str
    side: int
    since: int
    """The number of the buffer that was processed when the first record came."""
    values: list[Any]
    size: int = 0

    def fill(self, values: list[Any], start: int, records: int, most: int) -> int:
        """Adds values from `start` on until the buffer is full, an empty one at least one; returns where the rest begins.
        Raises `Unsendable` for a record that is too large."""
        part = values[start : start + records - len(self.values)]
        added = total_size(part)
        if self.size + added > most:
            added, fits = 0, 0
            for value in part:
                more = expected_size(value)
                if (self.values or fits) and self.size + added + more > most:
                    break
                added, fits = added + more, fits + 1
            part = part[:fits]
        self.values += part
        self.size += added
        return start + len(part)


class OutputBuffers:
    """The output buffers of one subtask."""

    def __init__(self, records: int, timeout: float | None = None, size: int = BYTES) -> None:
        """`records`: the largest number in a buffer; `timeout` in milliseconds, None: nothing stays; `size` in bytes."""
        self.records, self.timeout, self._size = 1 if timeout == 0 else records, timeout, size
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

    def add(self, outputs: Iterable[Output]) -> list[Output]:
        """Fills buffers, each of one input of the receiver; a channel keeps its order. Returns those that leave now. Raises
        `Unsendable` for a record that is too large."""
        leaving: list[_Open] = []
        stay, opened, records, most = self.stay, self._open, self.records, self._size
        for channel, side, values in outputs:
            at, end = 0, len(values)
            while at < end:
                found = opened.get(channel)
                if found is None or found.side != side:
                    if found is not None and stay:
                        leaving.append(found)
                    found = opened[channel] = _Open(channel, side, self._processed, [])
                    if not stay:
                        leaving.append(found)
                at = found.fill(values, at, records, most)
                if at < end or len(found.values) >= records or found.size >= most:
                    del opened[channel]
                    if stay:
                        leaving.append(found)
        if not stay:
            opened.clear()
        return [(found.channel, found.side, found.values) for found in leaving]

    def processed(self) -> None:
        """A buffer has been processed: all its outputs have been added."""
        self._processed += 1

    def done(self) -> int:
        """How many more processed buffers have no record in a buffer that has not left."""
        least = min((found.since for found in self._open.values()), default=self._processed)
        before, self._done = self._done, least
        return least - before

    def flush(self) -> list[Output]:
        """All buffers leave."""
        left = [(channel, found.side, found.values) for channel, found in self._open.items()]
        self._open.clear()
        return left
