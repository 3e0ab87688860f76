"""Limits of a search on states, levels, time and memory, and interrupts by the user."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from enum import Enum

from streamproof.interrupts import gently, left
from streamproof.system.memory import memory_of_machine, resident_bytes
from streamproof.system.options import DEFAULTS, SearchOptions
from streamproof.system.records import dataclass

DEFAULT_MAX_STATES = 0xFFFF_FFF0
"""Default limit on distinct states."""

MEMORY_SHARE = 0.8
"""Default limit on memory, as a share of the memory of the machine (or the container)."""


class Stop(Enum):
    """The reason why a search ended before every reachable state was expanded."""

    STATES = "max_states"
    DEPTH = "max_depth"
    TIME = "time_limit"
    MEMORY = "memory"
    INTERRUPTED = "interrupted"
    MISTAKE = "evaluation error"
    DECIDED = "every property decided"
    VIOLATIONS = "max_violations"
    PAUSE = "continues later"
    HANDOVER = "larger than this tier is for"


@dataclass(slots=True)
class Budget:
    """The limits of one search, and the clock started with it."""

    options: SearchOptions = DEFAULTS
    max_bytes: int | None = field(init=False)
    """Memory limit of the process: that of the options, or else a share of the machine's memory."""
    started: float = field(default_factory=time.monotonic)
    _interrupted: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        self.max_bytes = self.options.memory
        if self.max_bytes is None:
            memory = memory_of_machine()
            self.max_bytes = int(memory * MEMORY_SHARE) if memory else None

    @property
    def max_states(self) -> int:
        """Limit on distinct states."""
        return self.options.max_states or DEFAULT_MAX_STATES

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def spent(self) -> Stop | None:
        """`TIME`, `MEMORY` or `INTERRUPTED` if that limit is reached, else None."""
        if self.interrupted:
            return Stop.INTERRUPTED
        if left() <= 0 or (self.options.time_limit is not None and self.elapsed >= self.options.time_limit):
            return Stop.TIME
        if self.max_bytes is not None and resident_bytes() >= self.max_bytes:
            return Stop.MEMORY
        return None

    def allows(self, more: int) -> bool:
        """Whether an allocation of `more` bytes stays within the memory limit."""
        return self.max_bytes is None or resident_bytes() + more <= self.max_bytes

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Inside, Ctrl-C or SIGTERM requests a stop at the next safe point; a second one raises `KeyboardInterrupt`."""
        with gently() as interrupted:
            self._interrupted = interrupted
            try:
                yield
            finally:
                was = self.interrupted
                self._interrupted = lambda: was

    def interrupt(self) -> None:
        """Record an interrupt that arrived outside `listening`."""
        self._interrupted = lambda: True

    @property
    def interrupted(self) -> bool:
        """Whether the user has interrupted the search."""
        return self._interrupted()


def processors() -> int:
    """Number of processors available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
