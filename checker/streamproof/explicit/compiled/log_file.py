"""Files that grow at their end and are read anywhere: what a search has on disk, spilled or as a checkpoint."""

from __future__ import annotations

import os
from typing import IO, Self


class LogFile:
    """Bytes in a file, of which the first `size` count: what lies behind them is of a run that was killed.

    Its methods raise `OSError`.
    """

    def __init__(self, file: IO[bytes], size: int = 0) -> None:
        self._file = file
        self.size = size

    def append(self, data: memoryview) -> None:
        """Write at the end."""
        self.write(self.size, data)

    def write(self, place: int, data: memoryview) -> None:
        """Write all of the bytes, from a place on."""
        while len(data):
            done = os.pwrite(self._file.fileno(), data, place)
            data, place = data[done:], place + done
        self.size = max(self.size, place)

    def read(self, place: int, into: memoryview) -> None:
        """Fill a buffer from the file, beginning at an offset. Raises `EOFError` where the file is too short."""
        while len(into):
            done = os.preadv(self._file.fileno(), [into], place)
            if not done:
                raise EOFError
            into, place = into[done:], place + done

    def cut(self, size: int) -> None:
        """Shorten the file to `size` bytes."""
        os.ftruncate(self._file.fileno(), size)
        self.size = size

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; one without a name is gone."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
