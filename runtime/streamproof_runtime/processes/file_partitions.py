"""Partitions and spilled queues on disk, in files without a name: nothing of them outlives the process, however it ends."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

from streamproof_runtime.processes.wire import Frames, frame, packed, packed_item
from streamproof_runtime.subtasks.spilling import IN_MEMORY, SpillingQueue
from streamproof_runtime.taskexecutor.partitions import Key, Missing

_CHUNK = 1 << 16


class FilePartitions:
    """One temporary file for each partition, in the form of messages."""

    room, unit = 1 << 26, "bytes"

    def __init__(self) -> None:
        self._files: dict[Key, IO[bytes]] = {}
        self._counts: dict[Key, int] = {}

    def create(self, key: Key) -> None:
        """An empty file."""
        self._files[key], self._counts[key] = tempfile.TemporaryFile(), 0  # noqa: SIM115  (kept open)

    def append(self, key: Key, records: list[Any]) -> None:
        """More records."""
        self._files[key].write(frame(packed(records)))
        self._counts[key] += len(records)

    def finish(self, key: Key) -> None:
        """What was appended is in the file."""
        self._files[key].flush()

    def packed(self, records: list[Any]) -> tuple[bytes, int]:
        """As a frame."""
        data = frame(packed(records))
        return data, len(data)

    def unpacked(self, packed: bytes) -> list[Any]:
        """Other values at each reading, which their reader may change."""
        found: list[Any] = next(Frames().feed(packed))
        return found

    def open(self, key: Key) -> tuple[Iterator[Any], int]:
        """The records, read piece by piece."""
        if key not in self._files:
            raise Missing(key)
        return self._records(self._files[key]), self._counts[key]

    def _records(self, file: IO[bytes]) -> Iterator[Any]:
        frames, at = Frames(), 0
        while True:
            file.seek(at)
            data = file.read(_CHUNK)
            if not data:
                return
            at += len(data)
            for records in list(frames.feed(data)):
                yield from records

    def release(self, dataset: str, attempt: int) -> list[Key]:
        """Closes the files of an attempt."""
        return self._closed([k for k in self._files if k[:2] == (dataset, attempt)])

    def remove(self, key: Key) -> None:
        """Closes the file of a partition."""
        self._closed([key] if key in self._files else [])

    def _closed(self, keys: list[Key]) -> list[Key]:
        for key in keys:
            del self._counts[key]
            with suppress(OSError):  # of a full disk; the file is closed
                self._files.pop(key).close()
        return keys

    def queue(self, kind: type[SpillingQueue] = SpillingQueue) -> SpillingQueue:
        """A queue that spills to a file."""
        return kind(FileSpill(), IN_MEMORY)

    def clear(self) -> list[Key]:
        """Closes all files."""
        return self._closed([*self._files])

    def keys(self) -> list[Key]:
        """All that are there."""
        return [*self._files]


class FileSpill:
    """A spill on disk, in a file without a name that is emptied when all of it has been read."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._frames = Frames()
        self._read: deque[Any] = deque()
        self._at = self._end = 0

    def write(self, item: tuple[Any, ...]) -> None:
        """Appends an item."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (kept open)
        data = frame(packed_item(item))
        self._file.seek(self._end)
        self._end += len(data)
        while data:
            data = data[self._file.write(data) :]

    def read(self, most: int) -> list[tuple[Any, ...]]:
        """The oldest."""
        while len(self._read) < most and self._at < self._end and self._file is not None:
            self._file.seek(self._at)
            data = self._file.read(_CHUNK)
            self._at += len(data)
            self._read.extend(self._frames.feed(data))
        if self._file is not None and self._at == self._end:
            self._file.truncate(0)
            self._at = self._end = 0
        return [tuple(self._read.popleft()) for _ in range(min(most, len(self._read)))]
