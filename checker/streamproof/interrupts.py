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
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

SOON = 0.02
"""Seconds after which an exception is raised again that Python has dropped."""
AGAIN = 0.5
"""Seconds after which the end of a time limit is raised again, if it got lost."""


class TimeUp(BaseException):
    """The time limit is met. No `Exception`: a model that catches those must not catch this one."""


class _Run:
    """What this process knows of interrupts and limits."""

    def __init__(self) -> None:
        self.requested = self.busy = self.broken = False
        self.gentle = 0
        self.deadline: float | None = None
        self.seconds = 0.0
        self.supervisor: int | None = None
        self.pipe: object = None
        self.calls: list[list[Callable[[], None]]] = []
        self.lock: Any = None
        self.raised: type[BaseException] | None = None
        self.hook: Callable[[Any], object] = sys.__unraisablehook__


_run = _Run()


def install(supervisor: int | None) -> None:
    """Make this process end as its user asks; `supervisor` is a file descriptor for what it should know."""
    _run.supervisor = supervisor
    _run.pipe = None if supervisor is None else identity(supervisor)
    handle()


def identity(handle: int) -> object:
    """What an open file is: a model may close it, and open a file of its own under the same number."""
    try:
        found = os.fstat(handle)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def handle() -> None:
    """Set the handlers, again where a model may have set its own."""
    if _run.supervisor is None:
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    sys.unraisablehook = _dropped


def requested() -> bool:
    """Whether the user has asked for an end."""
    return _run.requested


def finished(code: int) -> None:
    """The program has come to its end, and its exit code is this one."""
    _tell(f"code\t{code}")


def answering() -> None:
    """What was known at an interrupt is about to be shown, which may take its time."""
    if _run.requested:
        _tell("gentle")


def _interrupt(number: int, frame: FrameType | None) -> None:
    again, _run.requested = _run.requested, True
    if not _run.gentle or again:
        _run.raised, _run.broken = KeyboardInterrupt, True
        raise KeyboardInterrupt
    _tell("gentle")


def _tell(line: str) -> None:
    """Send the supervisor one line; what is left of the process must not fail without one."""
    if _run.supervisor is not None and identity(_run.supervisor) == _run.pipe:
        try:
            os.write(_run.supervisor, line.encode("utf-8", "replace") + b"\n")
        except OSError:
            _run.supervisor = None


def _dropped(what: Any) -> None:
    """Raise an interrupt again, shortly, that came in a destructor or a callback, where Python drops exceptions.

    An object whose construction an interrupt broke off may miss attributes in its destructor, which is no news.
    """
    if _run.broken and what.exc_type is AttributeError and getattr(what.object, "__name__", "") == "__del__":
        return
    error = _run.raised
    if error is None or not (isinstance(what.exc_value, error) or what.exc_type.__name__ == "ArgumentError"):
        _run.hook(what)
        return

    def again(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGALRM, before)
        raise error

    before = signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, SOON)


@contextmanager
def _handled() -> Iterator[bool]:
    """Our handlers in place of Python's own, as in the program; what is there of somebody else's stays. Gives whether."""
    ours = signal.getsignal(signal.SIGINT) is _interrupt
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield ours
        return
    before, hook = signal.signal(signal.SIGTERM, _interrupt), sys.unraisablehook
    signal.signal(signal.SIGINT, _interrupt)
    _run.hook, sys.unraisablehook = hook, _dropped
    try:
        yield True
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, before)
        sys.unraisablehook = hook
        _run.requested = False
        _run.raised = None


@contextmanager
def gently() -> Iterator[Callable[[], bool]]:
    """Within it, the first Ctrl-C or SIGTERM only sets a flag, which the function given reads; a second one raises.

    Raises `KeyboardInterrupt` at once where the program has been interrupted before. In a library, whoever calls may have
    a handler of its own, which stays; Python's own is replaced for the time of the block, and so is the flag.
    """
    if not _in_main_thread():
        yield lambda: False
        return
    with _handled() as ours:
        if not ours:
            yield lambda: False
            return
        if _run.requested and not _run.gentle:
            raise KeyboardInterrupt
        _run.gentle += 1
        try:
            yield requested
        finally:
            _run.gentle -= 1


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
        with _handled():
            try:
                with alarm():
                    yield
            except Exception as error:
                if _run.raised is None:
                    raise
                raise _run.raised from error  # in the arguments of a call of ctypes it has become an error of these
    finally:
        _run.busy = False
        _run.raised = None
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
    hook = sys.unraisablehook
    if hook is not _dropped:
        _run.hook, sys.unraisablehook = hook, _dropped
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
        sys.unraisablehook = hook
        if other:
            signal.setitimer(signal.ITIMER_REAL, max(SOON, other - (time.monotonic() - began)), every)


def _is_wrapped(error: Exception) -> bool:
    """Whether an exception that a signal handler raised came out as one of ctypes: it was converting an argument."""
    import ctypes

    return isinstance(error, ctypes.ArgumentError)


def _time_up(number: int, frame: FrameType | None) -> None:
    signal.setitimer(signal.ITIMER_REAL, AGAIN)
    _run.raised, _run.broken = TimeUp, True
    raise TimeUp


def answer(solver: Any, *assumptions: Any) -> Any:
    """What a solver of Z3 answers to `check`, which Ctrl-C and the time limit end too, with `unknown` or an exception."""
    if not hasattr(solver, "calm"):
        solver.set("ctrl_c", False)  # or it would keep Ctrl-C for itself
        solver.calm = True
    woken = False

    def wake() -> None:
        nonlocal woken
        woken = True
        solver.ctx.interrupt()

    try:
        with waking(wake):
            return solver.check(*assumptions)
    finally:
        if woken:  # an interrupt that came too late ends what is asked next
            with suppress(Exception):
                solver.push()
                solver.pop()


@contextmanager
def waking(wake: Callable[[], None]) -> Iterator[None]:
    """Within it, a signal has `wake` called in another thread, until native code gives way to the handlers."""
    if not _in_main_thread():
        yield
        return
    lock = _listen()
    call = [wake]
    _run.calls.append(call)
    try:
        yield
    finally:
        with lock:
            _run.calls.remove(call)


def _listen() -> Any:
    """Start the thread to which the system writes each signal that arrives, whatever Python is doing; gives its lock."""
    if _run.lock is None:
        import threading

        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        _run.lock = threading.Lock()
        threading.Thread(target=_wake, args=(reading, _run.lock), name="signals", daemon=True).start()
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return _run.lock


def _wake(signals: int, lock: Any) -> None:
    while numbers := os.read(signals, 64):
        if set(numbers) & {signal.SIGINT, signal.SIGTERM, signal.SIGALRM}:
            calls = tuple(_run.calls)
            while calls:  # what begins just now may miss the first call
                with lock:
                    calls = tuple(call for call in calls if any(call is other for other in _run.calls))
                    for (wake,) in calls:
                        wake()
                time.sleep(SOON)


def _in_main_thread() -> bool:
    """Whether signal handlers run here."""
    threading = sys.modules.get("threading")
    return threading is None or threading.current_thread() is threading.main_thread()
