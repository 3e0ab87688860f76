"""Ctrl-C, SIGTERM and limits on time, for all verbs.

The first Ctrl-C within `gently` only sets a flag: a search stops at its next safe point with what it knows. Everywhere else
it raises `KeyboardInterrupt`, and at the end of a time limit `TimeUp`, also while native code runs in `waking`. The flag
stays set, so that no second search begins and the exit code is that of an interrupted run. What reacts to none of this is
killed by `supervisor`. This module imports nothing that takes time: the handlers are in place before anything else is loaded.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SOON = 0.02
"""Seconds after which an exception is raised again that Python has dropped."""


class TimeUp(BaseException):
    """The time limit is met. No `Exception`: a model that catches those must not catch this one."""


class _Run:
    """What this process knows of interrupts and limits."""

    requested = False
    gentle = 0
    deadline: float | None = None
    seconds = 0.0
    supervisor: int | None = None
    busy = False
    wakers: list[Callable[[], None]]
    listener: tuple[int, int] | None = None


_run = _Run()
_run.wakers = []


def install(supervisor: int | None) -> None:
    """Make this process end as its user asks; `supervisor` is a file descriptor for what it should know."""
    _run.supervisor = supervisor
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    sys.unraisablehook = _dropped


def requested() -> bool:
    """Whether the user has asked for an end."""
    return _run.requested


def answering() -> None:
    """What was known at an interrupt is about to be shown, which may take its time."""
    if _run.requested:
        _tell("gentle")


def _interrupt(number: int, frame: FrameType | None) -> None:
    again, _run.requested = _run.requested, True
    if not _run.gentle or again:
        raise KeyboardInterrupt
    _tell("gentle")


def _tell(line: str) -> None:
    """Send the supervisor one line; what is left of the process must not fail without one."""
    if _run.supervisor is not None:
        try:
            os.write(_run.supervisor, line.encode("utf-8", "replace") + b"\n")
        except OSError:
            _run.supervisor = None


def _dropped(what: Any) -> None:
    """Raise again, shortly, an interrupt that came in a destructor or a callback, where Python drops exceptions."""
    if isinstance(what.exc_value, KeyboardInterrupt | TimeUp):
        error = what.exc_value

        def again(number: int, frame: FrameType | None) -> None:
            signal.signal(signal.SIGALRM, before)
            raise error

        before = signal.signal(signal.SIGALRM, again)
        signal.setitimer(signal.ITIMER_REAL, SOON)
        return
    sys.__unraisablehook__(what)


@contextmanager
def gently() -> Iterator[Callable[[], bool]]:
    """Within it, the first Ctrl-C or SIGTERM only sets a flag, which the function given reads; a second one raises.

    Raises `KeyboardInterrupt` at once where the program has been interrupted before. In a library, whoever calls may have
    a handler of its own, which stays; Python's own is replaced for the time of the block, and so is the flag.
    """
    if not _in_main_thread():
        yield lambda: False
        return
    ours = signal.getsignal(signal.SIGINT) is _interrupt
    if ours and _run.requested and not _run.gentle:
        raise KeyboardInterrupt
    replaced = None
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        replaced = signal.signal(signal.SIGTERM, _interrupt)
        signal.signal(signal.SIGINT, _interrupt)
    elif not ours:
        yield lambda: False
        return
    _run.gentle += 1
    try:
        yield requested
    finally:
        _run.gentle -= 1
        if replaced is not None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, replaced)
            _run.requested = False


@contextmanager
def patiently() -> Iterator[None]:
    """Within it there is something to lose: the first Ctrl-C has no one killed, however long native code takes."""
    _tell("patient")
    try:
        yield
    finally:
        _tell("impatient")


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Within it, `left` counts down and `doing` is broken off at the end. An outer limit that ends earlier is kept."""
    before = _run.deadline, _run.seconds
    if seconds is not None and (_run.deadline is None or time.monotonic() + seconds < _run.deadline):
        _run.deadline, _run.seconds = time.monotonic() + seconds, seconds
    try:
        yield
    finally:
        _run.deadline, _run.seconds = before


@contextmanager
def unlimited() -> Iterator[None]:
    """Within it there is no limit: parts have limits of their own."""
    before, _run.deadline = _run.deadline, None
    try:
        yield
    finally:
        _run.deadline = before


def left() -> float:
    """Seconds until the limit; infinity where there is none."""
    return float("inf") if _run.deadline is None else _run.deadline - time.monotonic()


def limit() -> float:
    """The limit as it was given, in seconds."""
    return _run.seconds


@contextmanager
def doing(what: str, *, silent: bool = True) -> Iterator[None]:
    """Break off the block with `TimeUp` at the end of the time limit.

    Unless `silent`, the supervisor says that it takes long. Within another such block it is part of that one.
    """
    if _run.busy or not _in_main_thread():
        yield
        return
    deadline = _run.deadline
    _tell(f"doing\t{'' if deadline is None else deadline}\t{_run.seconds}\t{what}\t{'silent' if silent else ''}")
    _run.busy = True
    try:
        with alarm():
            yield
    finally:
        _run.busy = False
        _tell("done")


def busy() -> bool:
    """Whether a block of `doing` surrounds the caller."""
    return _run.busy


@contextmanager
def alarm() -> Iterator[None]:
    """Raise `TimeUp` at the end of the time limit in the block, where Python runs: nobody is killed.

    Not for a block in another one. A timer of somebody else's goes on afterwards.
    """
    deadline = _run.deadline
    if deadline is None or not _in_main_thread():
        yield
        return
    if deadline <= time.monotonic():
        raise TimeUp
    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, _time_up)
    other, every = signal.setitimer(signal.ITIMER_REAL, deadline - began)
    try:
        yield
    except Exception as error:
        if deadline <= time.monotonic() and _is_wrapped(error):
            raise TimeUp from None
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if other:
            signal.setitimer(signal.ITIMER_REAL, max(SOON, other - (time.monotonic() - began)), every)


def _is_wrapped(error: Exception) -> bool:
    """Whether an exception that a signal handler raised came out as one of ctypes: it was converting an argument."""
    import ctypes

    return isinstance(error, ctypes.ArgumentError)


def _time_up(number: int, frame: FrameType | None) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    raise TimeUp


def answer(solver: Any, *assumptions: Any) -> Any:
    """What a solver of Z3 answers to `check`, which Ctrl-C and the time limit end too, with `unknown` or an exception."""
    solver.set("ctrl_c", False)  # or it would keep Ctrl-C for itself
    with waking(solver.ctx.interrupt):
        return solver.check(*assumptions)


@contextmanager
def waking(wake: Callable[[], None]) -> Iterator[None]:
    """Within it, a signal has `wake` called in another thread, until native code gives way to the handlers."""
    if not _in_main_thread():
        yield
        return
    _listen()
    _run.wakers.append(wake)
    try:
        yield
    finally:
        _run.wakers.remove(wake)


def _listen() -> None:
    """Start the thread to which the system writes each signal that arrives, whatever Python is doing."""
    if _run.listener is None:
        import threading

        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        _run.listener = reading, writing
        threading.Thread(target=_wake, args=(reading,), name="signals", daemon=True).start()
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)


def _wake(signals: int) -> None:
    while numbers := os.read(signals, 64):
        if set(numbers) & {signal.SIGINT, signal.SIGTERM, signal.SIGALRM}:
            # What begins just now may miss the first call.
            for _ in range(50):
                for wake in tuple(_run.wakers):
                    wake()
                if not _run.wakers:
                    break
                time.sleep(SOON)


def _in_main_thread() -> bool:
    """Whether signal handlers run here."""
    threading = sys.modules.get("threading")
    return threading is None or threading.current_thread() is threading.main_thread()
