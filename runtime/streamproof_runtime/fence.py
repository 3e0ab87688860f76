"""The fence of a simulated run: whatever a repeated run could not repeat raises `OutsideSimulation`."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from streamproof_runtime.errors import OutsideSimulation

_MODULES: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (
        time,
        ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "sleep"),
    ),
    (os, ("urandom", "getrandom", "fork")),
    (
        random,
        ("random", "randint", "randrange", "choice", "choices", "shuffle", "sample", "uniform", "gauss", "getrandbits"),
    ),
    (threading.Thread, ("start",)),
)
_EVENTS = ("socket.__new__", "subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "_thread.start_new_thread")
_state = {"up": False, "hooked": False}


def _audit(event: str, _args: tuple[Any, ...]) -> None:
    if _state["up"] and event in _EVENTS:
        raise OutsideSimulation(f"{event} in a simulated run")


def _refuse(name: str) -> Callable[..., NoReturn]:
    def refused(*_args: object, **_named: object) -> NoReturn:
        raise OutsideSimulation(f"{name} in a simulated run; Context.choose makes choices that can be repeated")

    return refused


@contextmanager
def fence() -> Iterator[None]:
    """Raises the fence: clocks, sleep, entropy, threads, sockets and processes raise `OutsideSimulation` inside.

    An instance of `random.Random` with a seed of its own stays usable. The functions are replaced in their modules; a
    name that was imported from one before is not.
    """
    if not _state["hooked"]:
        sys.addaudithook(_audit)
        _state["hooked"] = True
    saved = [(module, name, getattr(module, name)) for module, names in _MODULES for name in names]
    try:
        for module, name, _ in saved:
            setattr(module, name, _refuse(f"{module.__name__}.{name}"))
        _state["up"] = True
        yield
    finally:
        _state["up"] = False
        for module, name, function in saved:
            setattr(module, name, function)
