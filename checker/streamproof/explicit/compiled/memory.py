"""Memory that grows without moving: address space is reserved, and pages come when they are first touched."""

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
"""The smallest reservation worth having, in bytes."""
APART = 128
"""Bytes of two neighbouring lines, which processors fetch together."""


class Reserve:
    """Zeroed memory of up to `size` bytes; what is never touched costs nothing. Raises `SystemFailure` when there is none."""

    def __init__(self, size: int, *, huge: bool = False) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        while True:
            try:
                self._map = mmap.mmap(-1, size, flags=flags)
                break
            except OSError as error:
                # Limits on address space (ulimit -v) are met by asking for less.
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
        """The bytes from `start` to `end`; let go of the view before `close`."""
        return memoryview(self._map)[start:end]

    def array(self, kind: Any, count: int) -> Any:
        """The first so many elements as a NumPy array of this kind, which keeps the memory alive."""
        import numpy as np

        return np.frombuffer(self._map, dtype=kind, count=count)

    def close(self) -> None:
        """Give the memory back."""
        self._anchor = None
        with suppress(BufferError):
            self._map.close()


def give_back() -> None:
    """Hand memory that was freed, but kept for later, back to the system, where the C library can do that."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class WordBlock:
    """A fixed array of 64-bit words that compiled code and Python share.

    It has its lines of memory for itself: threads that write to neighbouring blocks would take them from each other.
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
        """Every word."""
        return list(self._words)

    def fill(self, values: Sequence[int]) -> None:
        """Replace every word."""
        self._words[:] = list(values)

    def slice(self, start: int, end: int) -> list[int]:
        """The words from `start` to `end`."""
        return self._words[start:end]
