"""Files without a name, for what does not fit into memory: they are gone when the process ends, however it ends."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from streamproof.system.errors import SystemFailure

Array = npt.NDArray[Any]


class Spool:
    """A file of elements of one kind, written at its end or at a place, and read anywhere. Raises `SystemFailure`."""

    def __init__(self, folder: Path, kind: npt.DTypeLike, width: int | None = None) -> None:
        """`width`: an element is a row of so many numbers."""
        self._folder = folder
        self._kind = np.dtype(kind)
        self._row = () if width is None else (width,)
        self._size = self._kind.itemsize * (width or 1)
        self.count = 0
        """Elements up to the end."""
        try:
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise _failure(folder, error) from None

    def append(self, elements: Array) -> None:
        """Write at the end."""
        self.write(self.count, elements)

    def write(self, at: int, elements: Array) -> None:
        """Write from element `at` on."""
        rest = _bytes(np.ascontiguousarray(elements, dtype=self._kind))
        place = at * self._size
        try:
            while len(rest):
                done = os.pwrite(self._file.fileno(), rest, place)
                rest, place = rest[done:], place + done
        except OSError as error:
            raise _failure(self._folder, error) from None
        self.count = max(self.count, at + len(elements))

    def read(self, first: int, last: int) -> Array:
        """The elements from `first` to `last`."""
        elements = np.empty((last - first, *self._row), dtype=self._kind)
        rest, place = _bytes(elements), first * self._size
        try:
            while len(rest):
                done = os.preadv(self._file.fileno(), [rest], place)
                if not done:
                    raise SystemFailure(
                        f"a file in {self._folder} ends too early", remedy="is another process at work on this disk?"
                    )
                rest, place = rest[done:], place + done
        except OSError as error:
            raise _failure(self._folder, error) from None
        return elements

    def cut(self, count: int) -> None:
        """Forget what lies behind the first so many elements."""
        self.count = count

    def close(self) -> None:
        """Give the space back."""
        self._file.close()


def _bytes(elements: Array) -> memoryview:
    return elements.reshape(-1).view(np.uint8).data if elements.size else memoryview(b"")


def _failure(folder: Path, error: OSError) -> SystemFailure:
    return SystemFailure(
        f"cannot spill to {folder}: {error.strerror or error}", remedy="--spill DIR names a folder on a disk with room"
    )
