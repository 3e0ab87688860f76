"""Memory that grows without moving: reserved address space, with pages allocated on first touch."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from streamproof.system.errors import SystemFailure

if TYPE_CHECKING:
    from collections.abc import Sequence

_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
LEAST = 1 << 24
"""Smallest useful reservation, in bytes."""
APART = 128
"""Size of two adjacent cache lines in bytes; processors fetch them together."""


class Reserve:
    """Zeroed memory of up to `size` bytes; untouched pages are not allocated. Raises `SystemFailure` if none is available."""

    def __init__(self, size: int, *, huge: bool = False) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        while True:
            try:
                self._map = mmap.mmap(-1, size, flags=flags)
                break
            except OSError as error:
                # Under a limit on address space (ulimit -v), try smaller sizes.
                size //= 2
                if size < LEAST:
                    raise SystemFailure(
                        f"no memory: {error}", remedy="raise the limit on address space (ulimit -v)"
                    ) from None
        self.size = size
        if huge:
            with suppress(OSError, AttributeError):
                self._map.madvise(mmap.MADV_HUGEPAGE)
        self._anchor: Any = ctypes.c_char.from_buffer(self._map)
        self.address = ctypes.addressof(self._anchor)

    def bytes(self, start: int, end: int) -> memoryview:
        """The bytes from `start` to `end`; release the view before `close`."""
        return memoryview(self._map)[start:end]

    def array(self, kind: Any, count: int) -> Any:
        """The first `count` elements as a NumPy array of type `kind`, which keeps the memory alive."""
        import numpy as np

        return np.frombuffer(self._map, dtype=kind, count=count)

    def close(self) -> None:
        """Free the memory."""
        self._anchor = None
        with suppress(BufferError):
            self._map.close()


def give_back() -> None:
    """Return freed memory from the C library to the operating system (`malloc_trim`), where supported."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class WordBlock:
    """A fixed array of 64-bit words shared by compiled code and Python.

    Aligned to its own cache lines, against false sharing between threads.
    """

    def __init__(self, values: Sequence[int]) -> None:
        self._memory = (ctypes.c_char * (8 * len(values) + 2 * APART))()
        begin = -ctypes.addressof(self._memory) % APART
        self._words = (ctypes.c_uint64 * max(len(values), 1)).from_buffer(self._memory, begin)
        self._words[: len(values)] = list(values)
        self.address = ctypes.addressof(self._words)

    def __getitem__(self, at: int) -> int:
        return self._words[at]

    def __setitem__(self, at: int, value: int) -> None:
        self._words[at] = value

    def all(self) -> list[int]:
        """All words."""
        return list(self._words)

    def fill(self, values: Sequence[int]) -> None:
        """Replace all words."""
        self._words[: len(values)] = list(values)

    def slice(self, start: int, end: int) -> list[int]:
        """The words from `start` to `end`."""
        return self._words[start:end]
