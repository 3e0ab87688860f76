"""When to stop: limits on states, levels, time and memory, and the user's interrupt."""

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
"""Distinct states that are kept when the caller names no limit."""

MEMORY_SHARE = 0.8
"""The part of the machine's (or the container's) memory that the process may come to hold."""


class Stop(Enum):
    """Why a search ended before every reachable state was expanded."""

    STATES = "max_states"
    DEPTH = "max_depth"
    TIME = "time_limit"
    MEMORY = "memory"
    INTERRUPTED = "interrupted"
    MISTAKE = "evaluation error"
    DECIDED = "every property decided"
    VIOLATIONS = "max_violations"
    PAUSE = "goes on later"
    HANDOVER = "larger than this tier is for"


@dataclass(slots=True)
class Budget:
    """The limits of one search and the clock that started with it."""

    options: SearchOptions = DEFAULTS
    max_bytes: int | None = field(init=False)
    """What the process may hold: as the options say, or else a share of the machine's memory."""
    started: float = field(default_factory=time.monotonic)
    _asked: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        self.max_bytes = self.options.memory
        if self.max_bytes is None:
            memory = memory_of_machine()
            self.max_bytes = int(memory * MEMORY_SHARE) if memory else None

    @property
    def max_states(self) -> int:
        """Distinct states that are kept."""
        return self.options.max_states or DEFAULT_MAX_STATES

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def spent(self) -> Stop | None:
        """The limit of time, memory or patience that has been met, if any."""
        if self.interrupted:
            return Stop.INTERRUPTED
        if left() <= 0 or (self.options.time_limit is not None and self.elapsed >= self.options.time_limit):
            return Stop.TIME
        if self.max_bytes is not None and resident_bytes() >= self.max_bytes:
            return Stop.MEMORY
        return None

    def allows(self, more: int) -> bool:
        """Whether so many bytes more stay within the limit on memory."""
        return self.max_bytes is None or resident_bytes() + more <= self.max_bytes

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Ctrl-C or SIGTERM asks for a stop at the next safe point; a second one raises `KeyboardInterrupt` as usual."""
        with gently() as asked:
            self._asked = asked
            try:
                yield
            finally:
                was = self.interrupted
                self._asked = lambda: was

    def interrupt(self) -> None:
        """The user has asked for a stop while nothing listened."""
        self._asked = lambda: True

    @property
    def interrupted(self) -> bool:
        """Whether the user has asked for a stop."""
        return self._asked()


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
