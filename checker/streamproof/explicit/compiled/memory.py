"""Memory that grows without moving: reserved address space, with pages allocated on first touch.

A helper thread (`Prefault`) touches pages ahead of a search with one worker: the operating system clears a page when it is
first touched, which takes up to a third of the time of a search, and another processor can do that.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from streamproof.explicit.level_search import Budget
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


PAUSE = 0.004
"""Interval between two checks of the progress of the search, in seconds."""
PIECE = 1 << 21
"""Bytes faulted in at a time: a large page."""
AHEAD_LEAST, AHEAD_MOST = PIECE, 1 << 25
"""Least and largest number of bytes faulted in ahead of sequential writes."""
SHARE = 2
"""Share of the memory limit above which no memory is faulted in."""
_POPULATE_WRITE = 23
"""``MADV_POPULATE_WRITE`` of Linux 5.14 and later."""


class Prefault:
    """Repeatedly faults in the memory returned by `coming`: pairs of an address and a size in bytes. Call `stop` before that
    memory is freed."""

    def __init__(self, coming: Callable[[], Iterable[tuple[int, int]]], budget: Budget) -> None:
        self._coming = coming
        self._budget = budget
        self._over = threading.Event()
        self._ready: dict[int, int] = {}
        self._thread: threading.Thread | None = None
        if sys.platform == "linux":
            self._advise = ctypes.CDLL(None).madvise
            self._advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
            self._thread = threading.Thread(target=self._run, daemon=True)
            try:
                self._thread.start()
            except RuntimeError:
                self._thread = None  # thread limit reached: the search faults in its memory itself

    def stop(self) -> None:
        """Ends the thread."""
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            while True:
                for address, end in self._coming():
                    self._touch(address, end)
                if self._over.wait(PAUSE):
                    return
        except SystemFailure:
            return  # harmless: pages are then allocated on first touch

    def _touch(self, address: int, end: int) -> None:
        """Fault in the memory at `address` up to byte `end`, beginning after the bytes already done."""
        at = self._ready.get(address, 0)
        while at + PIECE <= end and not self._over.is_set():
            if not self._budget.allows((self._budget.max_bytes or 0) // SHARE):
                raise SystemFailure("no memory to spare")
            if self._advise(address + at, PIECE, _POPULATE_WRITE):
                raise SystemFailure("the system does not support MADV_POPULATE_WRITE")
            at = self._ready[address] = at + PIECE
