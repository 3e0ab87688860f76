"""Unnamed temporary files for spilled data; the operating system deletes them when the process ends."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from streamproof.base.errors import SystemFailure
from streamproof.explicit.compiled.log_file import LogFile

Array = npt.NDArray[Any]


class SpillFile:
    """A log of elements of one NumPy type. Raises `SystemFailure`."""

    def __init__(self, folder: Path, kind: npt.DTypeLike, width: int | None = None) -> None:
        """`width`: number of columns, if elements are rows."""
        self._folder = folder
        self._kind = np.dtype(kind)
        self._row = () if width is None else (width,)
        self._size = self._kind.itemsize * (width or 1)
        with self._failing():
            self._log = LogFile(tempfile.TemporaryFile(dir=folder, buffering=0))  # noqa: SIM115

    @property
    def count(self) -> int:
        """Number of elements."""
        return self._log.size // self._size

    def append(self, elements: Array) -> None:
        """Write at the end."""
        self.write(self.count, elements)

    def write(self, at: int, elements: Array) -> None:
        """Write at element `at`."""
        with self._failing():
            self._log.write(at * self._size, _bytes(np.ascontiguousarray(elements, dtype=self._kind)))

    def read(self, first: int, last: int) -> Array:
        """The elements from `first` to `last`."""
        elements = np.empty((last - first, *self._row), dtype=self._kind)
        with self._failing():
            self._log.read(first * self._size, _bytes(elements))
        return elements

    def cut(self, count: int) -> None:
        """Remove all but the first `count` elements."""
        with self._failing():
            self._log.cut(count * self._size)

    def close(self) -> None:
        """Free the disk space."""
        self._log.close()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except EOFError:
            raise SystemFailure(
                f"a file in {self._folder} ends too early", remedy="is another process at work on this disk?"
            ) from None
        except OSError as error:
            raise SystemFailure(
                f"cannot spill to {self._folder}: {error.strerror or error}",
                remedy="name a folder on a disk with free space with --spill DIR",
            ) from None


def _bytes(elements: Array) -> memoryview:
    return elements.reshape(-1).view(np.uint8).data if elements.size else memoryview(b"")
