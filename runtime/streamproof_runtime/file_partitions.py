"""Partitions on disk, in files without a name: nothing is left of them when the process ends, however it ends."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any

from streamproof_runtime.partitions import Key, Missing
from streamproof_runtime.wire import Frames, frame

_CHUNK = 1 << 16


class FilePartitions:
    """One temporary file for each partition, in the form of messages."""

    def __init__(self) -> None:
        self._files: dict[Key, IO[bytes]] = {}
        self._counts: dict[Key, int] = {}

    def create(self, key: Key) -> None:
        """An empty file."""
        self._files[key], self._counts[key] = tempfile.TemporaryFile(), 0  # noqa: SIM115  (kept open)

    def append(self, key: Key, record: Any) -> None:
        """One more record."""
        self._files[key].write(frame(record))
        self._counts[key] += 1

    def open(self, key: Key) -> tuple[Iterator[Any], int]:
        """The records, read piece by piece."""
        if key not in self._files:
            raise Missing(key)
        self._files[key].flush()
        return self._records(self._files[key]), self._counts[key]

    def _records(self, file: IO[bytes]) -> Iterator[Any]:
        frames, at = Frames(), 0
        while True:
            file.seek(at)
            data = file.read(_CHUNK)
            if not data:
                return
            at += len(data)
            yield from list(frames.feed(data))

    def release(self, dataset: str, attempt: int) -> None:
        """Closes the files of an attempt."""
        for key in [k for k in self._files if k[:2] == (dataset, attempt)]:
            self._files.pop(key).close()
            del self._counts[key]

    def clear(self) -> None:
        """Closes all files."""
        for key in list(self._files):
            self.release(*key[:2])
