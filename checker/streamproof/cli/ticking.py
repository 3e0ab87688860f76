"""The progress of a solver on the terminal; the seconds advance during a query."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from streamproof.cli.outputs import Status, effort_text, is_live

if TYPE_CHECKING:
    from streamproof.symbolic.solver import Effort

EVERY = 1.0
"""Interval between two updates, in seconds."""


class Ticking:
    """A status line with running seconds; each call sets its `Effort` or text."""

    def __init__(self, *, live: bool) -> None:
        self._status = Status(live=live)
        self._live = live and is_live()
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._text: Callable[[float], str] = lambda seconds: f"{seconds:.0f} s"
        self._since = self._begun = time.monotonic()
        self._clock = threading.Thread(target=self._tick, daemon=True)

    def __call__(self, doing: Effort | str) -> None:
        """Show the current activity."""
        now = time.monotonic()
        if isinstance(doing, str):
            begun = self._begun
            self._text = lambda _: f"{time.monotonic() - begun:.0f} s: {doing}"
        else:
            self._text = lambda more: effort_text(doing, more)
        self._since = now
        self._show()

    def _show(self) -> None:
        with self._lock:
            if self._live and not self._done.is_set():
                self._status(self._text(time.monotonic() - self._since))

    def _tick(self) -> None:
        while not self._done.wait(EVERY):
            self._show()

    def __enter__(self) -> Self:
        self._status.__enter__()
        if self._live:
            self._clock.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._done.set()
            self._status.__exit__(kind, error, at)
