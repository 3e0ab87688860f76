"""A second thread that has memory made ready before a loop with one worker comes to it.

Pages are cleared when they are first touched, which is up to a third of the time of a search; another processor can do that.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterable

from streamproof.explicit.limits import Budget
from streamproof.system.errors import SystemFailure

PAUSE = 0.004
"""Seconds between two looks at how far the search is."""
PIECE = 1 << 21
"""Bytes made ready at once: a large page."""
LEAST, MOST = PIECE, 1 << 25
"""So many bytes at least and at most lie ready ahead of what is written in order."""
SHARE = 2
"""Nothing is made ready once the process holds this part of the memory it may have."""
_POPULATE_WRITE = 23
"""``MADV_POPULATE_WRITE`` of Linux 5.14 and later."""


class Prefault:
    """Touches what `coming` names, addresses of memory and up to which byte of it, again and again; `stop` it before
    that memory goes."""

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
                self._thread = None  # no more threads: the search touches its memory itself

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
            return  # nothing is lost: pages then come when they are touched

    def _touch(self, address: int, end: int) -> None:
        """Has the bytes from what is ready to `end` of the memory at `address` cleared."""
        at = self._ready.get(address, 0)
        while at + PIECE <= end and not self._over.is_set():
            if not self._budget.allows((self._budget.max_bytes or 0) // SHARE):
                raise SystemFailure("no memory to spare")
            if self._advise(address + at, PIECE, _POPULATE_WRITE):
                raise SystemFailure("the system does not clear memory ahead")
            at = self._ready[address] = at + PIECE
