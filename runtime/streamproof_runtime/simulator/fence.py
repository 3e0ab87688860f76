"""The fence of a simulated run: whatever a repeated run could not repeat raises `OutsideSimulation`."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from streamproof_runtime.errors import OutsideSimulation

_GENERATOR = getattr(random.random, "__self__", None)
_RANDOM = tuple(n for n in dir(random) if getattr(getattr(random, n), "__self__", None) is _GENERATOR)
"""The functions of the generator that the module has."""
_MODULES: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (
        time,
        tuple(
            n + of for n in ("time", "monotonic", "perf_counter", "process_time", "thread_time") for of in ("", "_ns")
        ),
    ),
    (time, ("sleep", "clock_gettime", "clock_gettime_ns")),
    (os, ("urandom", "getrandom", "fork")),
    (random, (*_RANDOM, "_urandom")),  # the last is that of `SystemRandom` and `secrets`
    (threading.Thread, ("start",)),
)
_EVENTS = ("socket.__new__", "subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "_thread.start_new_thread")
# The thread whose run is fenced (None: no run is), and whether the audit hook is installed.
_fenced: list[int | None] = [None]
_hooked: list[bool] = [False]


def _audit(event: str, _args: tuple[Any, ...]) -> None:
    if event in _EVENTS and _fenced[0] == threading.get_ident():
        raise OutsideSimulation(f"{event} in a simulated run")


@lru_cache(maxsize=256)
def _refuse(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def refused(*args: Any, **named: Any) -> Any:
        if _fenced[0] != threading.get_ident():
            return function(*args, **named)
        raise OutsideSimulation(f"{name} in a simulated run; Context.choose makes choices that can be repeated")

    return refused


@contextmanager
def replaced() -> Iterator[None]:
    """Replaces the functions in their modules: what is imported from them meanwhile is refused inside the fence, too."""
    saved = [(module, name, getattr(module, name)) for module, names in _MODULES for name in names]
    try:
        for module, name, function in saved:
            setattr(module, name, _refuse(f"{module.__name__}.{name}", function))
        yield
    finally:
        for module, name, function in saved:
            setattr(module, name, function)


@contextmanager
def fence() -> Iterator[None]:
    """Raises the fence: clocks, sleep, entropy, threads, sockets and processes raise `OutsideSimulation` inside.

    It holds for the calling thread: threads that the process had before go on, and a run cannot start one. An instance
    of `random.Random` with a seed of its own stays usable. The functions are replaced in their modules; a name that was
    imported from one before, and not inside `replaced`, is not, and `datetime` has a clock of its own.
    """
    if not _hooked[0]:
        sys.addaudithook(_audit)
        _hooked[0] = True
    with replaced():
        _fenced[0] = threading.get_ident()
        try:
            yield
        finally:
            _fenced[0] = None
