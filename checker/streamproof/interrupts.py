"""Ctrl-C, SIGTERM and limits on time, for all verbs.

The first Ctrl-C within `gently` only sets a flag: a search stops at its next safe point with its results. Elsewhere, and in
`abruptly`, it raises `KeyboardInterrupt`. The end of a time limit raises `TimeUp`. Both also end native code in `waking` and
`apart`. The flag stays set, so that no second search begins and the exit code is that of an interrupted run. `supervisor`
kills code that does not react, and then prints what this module reported last: `doing` and `known`.
This module imports no slow modules: the handlers are set before anything else is loaded.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

SOON = 0.02
"""Delay in seconds before an exception that Python dropped is raised again."""
AGAIN = 0.5
"""Delay in seconds before the end of a time limit is raised again, if it was lost."""
OFTEN = 0.5
"""Interval between two reports of `known`, in seconds."""


class TimeUp(BaseException):
    """The time limit is reached. Not an `Exception`: a model that catches those must not catch this one."""


class _ProcessLimits:
    """The interrupts and time limits of this process."""

    def __init__(self) -> None:
        self.requested = self.busy = self.broken = False
        self.gentle = 0
        self.deadline: float | None = None
        self.seconds = 0.0
        self.stage = ""
        self.reported = float("-inf")
        self.supervisor: int | None = None
        self.ignoring = False
        self.pipe: object = None
        self.calls: list[list[Callable[[], None]]] = []
        self.lock: Any = None
        self.raised: type[BaseException] | None = None
        self.hook: Callable[[Any], object] = sys.__unraisablehook__
        self.stop: Callable[[], None] | None = None
        self.stoppable: frozenset[int] = frozenset()


_run = _ProcessLimits()


def install(supervisor: int | None) -> None:
    """Install the signal handlers; `supervisor` is a file descriptor for messages to the supervisor."""
    _run.supervisor = supervisor
    _run.ignoring = supervisor is not None and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    _run.pipe = None if supervisor is None else identity(supervisor)
    handle()


def detach() -> None:
    """For a process that the worker forked: it does not write to the supervisor, and Ctrl-C is for its parent."""
    _run.supervisor = None
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def identity(handle: int) -> object:
    """The identity of an open file: a model may close it and open another file under the same number."""
    try:
        found = os.fstat(handle)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def handle() -> None:
    """Set the handlers; again after a model may have set its own."""
    if _run.supervisor is None:
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    sys.unraisablehook = _dropped


def requested() -> bool:
    """Whether the user has interrupted the program."""
    return _run.requested


def finished(code: int) -> None:
    """Report the exit code of the finished program to the supervisor."""
    _send(f"code\t{code}")


def known(text: str) -> None:
    """Report progress to the supervisor, which prints the last one if it has to kill this process."""
    now = time.monotonic()
    if now >= _run.reported + OFTEN:
        _run.reported = now
        _send("known\t" + " ".join(text.split()))


def how_to_end() -> str:
    """A line that names a signal that ends the program, if its caller made it ignore Ctrl-C; empty after the first call."""
    ignoring, _run.ignoring = _run.ignoring, False
    text = "streamproof: the caller of this program made it ignore Ctrl-C; to end it early: kill"
    return f"{text} {os.getppid()}\n" if ignoring else ""


def stage() -> str:
    """The block of `doing` that surrounds the caller, or that was left by an exception; empty if there is none."""
    return _run.stage


def _interrupt(number: int, frame: FrameType | None) -> None:
    stop, _run.stop = _run.stop, None
    if stop is not None and number in _run.stoppable:
        stop()
        return
    again, _run.requested = _run.requested, True
    if not _run.gentle or again:
        _run.raised, _run.broken = KeyboardInterrupt, True
        raise KeyboardInterrupt


def _send(line: str) -> None:
    """Send one line to the supervisor; failures are ignored."""
    if _run.supervisor is not None and identity(_run.supervisor) == _run.pipe:
        try:
            os.write(_run.supervisor, line.encode("utf-8", "replace") + b"\n")
        except OSError:
            _run.supervisor = None


def _dropped(what: Any) -> None:
    """Raise an interrupt again, after a delay, that came in a destructor or a callback, where Python drops exceptions.

    An object whose construction was interrupted may lack attributes in its destructor; such errors are ignored.
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
    """Inside, our handlers replace Python's defaults; handlers of the caller stay. Yields whether ours are set."""
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
    """Inside, the first Ctrl-C or SIGTERM only sets a flag, read by the function yielded; a second one raises.

    Raises `KeyboardInterrupt` at once if the program was interrupted before. In library use, a handler of the caller stays;
    Python's default handler is replaced inside the block, and the flag is restored after it.
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
def stopped_first(stop: Callable[[], None], *, by_term: bool = False) -> Iterator[None]:
    """Inside, the first Ctrl-C only calls `stop`, in the signal handler; SIGTERM, unless it stops too (`by_term`), and a
    second signal are interrupts."""
    with _handled():
        _run.stop = stop
        _run.stoppable = frozenset({signal.SIGINT, signal.SIGTERM} if by_term else {signal.SIGINT})
        _send("\t".join(("stoppable", *(str(int(number)) for number in _run.stoppable))))
        try:
            yield
        finally:
            _run.stop = None
            _send("unstoppable")


@contextmanager
def abruptly(*, at_once: bool = False) -> Iterator[None]:
    """Inside, also within `gently`, Ctrl-C and SIGTERM raise `KeyboardInterrupt`; `at_once`: also one that came before."""
    if not _in_main_thread():
        yield
        return
    gentle, _run.gentle = _run.gentle, 0
    try:
        if at_once and gentle and _run.requested:
            raise KeyboardInterrupt
        yield
    finally:
        _run.gentle = gentle


def apart(work: Callable[[], T]) -> T:
    """The result of native code that runs in another thread, so that signal handlers of this one can run.

    An exception of a handler leaves the thread behind; it ends with the process.
    """
    if not _in_main_thread():
        return work()
    import threading

    made: list[T] = []
    failed: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            made.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name="native code", daemon=True).start()
    done.wait()
    if failed:
        raise failed[0]
    return made[0]


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Inside, `left` counts down, and `doing` is interrupted at the end. An outer limit that ends earlier is kept."""
    before = _run.deadline, _run.seconds
    if seconds is not None and (_run.deadline is None or time.monotonic() + seconds < _run.deadline):
        _run.deadline, _run.seconds = time.monotonic() + seconds, seconds
    try:
        yield
    finally:
        _run.deadline, _run.seconds = before


@contextmanager
def unlimited() -> Iterator[None]:
    """Inside, the time limit is suspended: parts have their own limits."""
    before, _run.deadline = _run.deadline, None
    try:
        yield
    finally:
        _run.deadline = before


def left() -> float:
    """Seconds until the limit; infinity without limit."""
    return float("inf") if _run.deadline is None else _run.deadline - time.monotonic()


def limit() -> float:
    """The current time limit, in seconds."""
    return _run.seconds


@contextmanager
def doing(what: str, *, silent: bool = True) -> Iterator[None]:
    """Interrupt the block with `TimeUp` at the end of the time limit.

    Unless `silent`, the supervisor reports a slow block as `what`. A nested block is part of the outer one.
    """
    if _run.busy or not _in_main_thread():
        yield
        return
    deadline = _run.deadline
    _send(f"doing\t{'' if deadline is None else deadline}\t{_run.seconds}\t{what}\t{'silent' if silent else ''}")
    _run.busy = True
    _run.stage = what
    try:
        with _handled():
            try:
                with alarm():
                    yield
                _run.stage = ""
            except Exception as error:
                if _run.raised is None:
                    raise
                raise _run.raised from error  # ctypes wraps exceptions raised while it converts arguments
    finally:
        _run.busy = False
        _run.raised = None
        _send("done")


def busy() -> bool:
    """Whether a block of `doing` surrounds the caller."""
    return _run.busy


@contextmanager
def alarm() -> Iterator[None]:
    """Raise `TimeUp` in the block at the end of the time limit, in Python code; the process is never killed.

    Not for nested blocks. A timer of the caller is restored afterwards.
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
    """Whether ctypes wrapped an exception of a signal handler while it converted an argument."""
    import ctypes

    return isinstance(error, ctypes.ArgumentError)


def _time_up(number: int, frame: FrameType | None) -> None:
    signal.setitimer(signal.ITIMER_REAL, AGAIN)
    if frame is not None and frame.f_globals.get("__name__") in (__name__, "contextlib"):
        return  # a block is being left: half of that would leave its timer running
    _run.raised, _run.broken = TimeUp, True
    raise TimeUp


def answer(solver: Any, *assumptions: Any) -> Any:
    """The result of `check` of a Z3 solver; Ctrl-C and the time limit end it with `unknown` or an exception."""
    if not hasattr(solver, "calm"):
        solver.set("ctrl_c", False)  # else it would intercept Ctrl-C
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
        if woken:  # an interrupt that came too late would end the next query
            with suppress(Exception):
                solver.push()
                solver.pop()


@contextmanager
def waking(wake: Callable[[], None]) -> Iterator[None]:
    """Inside, a signal makes another thread call `wake` repeatedly, until native code returns to the handlers."""
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
    """Start the thread that reads arriving signals from a pipe while Python is blocked; returns its lock."""
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
            while calls:  # native code that begins just now may miss the first call
                with lock:
                    calls = tuple(call for call in calls if any(call is other for other in _run.calls))
                    for (wake,) in calls:
                        wake()
                time.sleep(SOON)


def _in_main_thread() -> bool:
    """Whether this is the main thread, which runs signal handlers."""
    threading = sys.modules.get("threading")
    return threading is None or threading.current_thread() is threading.main_thread()
