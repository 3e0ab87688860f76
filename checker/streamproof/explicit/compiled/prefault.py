"""A helper thread that faults in memory ahead of a loop with one worker.

The operating system clears pages when they are first touched: up to a third of the time of a search. Another processor can do
that.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterable

from streamproof.explicit.level_search import Budget
from streamproof.system.errors import SystemFailure

PAUSE = 0.004
"""Interval between two checks of the progress of the search, in seconds."""
PIECE = 1 << 21
"""Bytes faulted in at a time: a large page."""
LEAST, MOST = PIECE, 1 << 25
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
