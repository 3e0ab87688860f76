"""Append-only files with random reads: the storage of spilled searches and checkpoints."""

from __future__ import annotations

import os
from typing import IO, Self


class LogFile:
    """A file whose first `size` bytes are valid; bytes after them are from a killed run.

    The methods raise `OSError`.
    """

    def __init__(self, file: IO[bytes], size: int = 0) -> None:
        self._file = file
        self.size = size

    def append(self, data: memoryview) -> None:
        """Write at the end."""
        self.write(self.size, data)

    def write(self, place: int, data: memoryview) -> None:
        """Write all of `data` at the offset `place`."""
        while len(data):
            done = os.pwrite(self._file.fileno(), data, place)
            data, place = data[done:], place + done
        self.size = max(self.size, place)

    def read(self, place: int, into: memoryview) -> None:
        """Fill a buffer from the file at the offset `place`. Raises `EOFError` if the file is too short."""
        while len(into):
            done = os.preadv(self._file.fileno(), [into], place)
            if not done:
                raise EOFError
            into, place = into[done:], place + done

    def cut(self, size: int) -> None:
        """Truncate the file to `size` bytes."""
        os.ftruncate(self._file.fileno(), size)
        self.size = size

    def sync(self) -> None:
        """Flush the file to the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; a file without a name is deleted."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
