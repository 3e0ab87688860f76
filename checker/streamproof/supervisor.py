"""The program as two processes: a worker, and a small supervisor that enforces its end.

The worker has its own session; the supervisor forwards signals. It kills a worker that does not react, reports slow steps,
reports why a worker died, and leaves no process behind: it adopts processes that the worker started. Loaded before everything
else.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from streamproof import interrupts

GRACE = 4.5
"""Seconds after a signal or a time limit until the worker and its child processes are killed: all ends within 5 s."""
LONG = 2.0
"""Processor time in seconds after which the supervisor reports the current step."""
VERY_LONG = 10.0
"""The same in seconds of wall-clock time, for steps that wait."""
LOOK = 0.2
"""Interval between two checks of a slow worker, in seconds."""
CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of Linux: this process adopts orphaned descendants."""
INTERRUPTED, MODEL, TOO_LARGE, SYSTEM, INCONCLUSIVE = 130, 150, 152, 153, 160
"""Exit codes, equal to those of `base.errors`, which is not loaded here."""


def supervised(work: Callable[[], int]) -> int:
    """Run `work` in a worker process; returns its exit code, in both processes: the caller ends the process with it."""
    messages, outgoing = os.pipe()
    alive, living = os.pipe()
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    forwarded = {signal.SIGTERM, signal.SIGTSTP, signal.SIGCHLD}
    # What the caller ignores stays ignored: `nohup`, and jobs in the background of a script.
    optional = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    forwarded |= {number for number in optional if signal.getsignal(number) is not signal.SIG_IGN}
    signal.pthread_sigmask(signal.SIG_BLOCK, forwarded)
    worker = os.fork()
    if worker == 0:
        for unused in (messages, living, woken, waking):
            os.close(unused)
        os.setsid()
        _end_with(alive)
        try:
            interrupts.install(outgoing)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, forwarded)
            return work()
        except BaseException as error:  # outside of the program's handlers: while modules are loaded
            if not isinstance(error, KeyboardInterrupt) and not interrupts.requested():
                raise
            _print("streamproof: error: interrupted\n")
            return INTERRUPTED
    os.close(outgoing)
    os.close(alive)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    for number in forwarded:
        signal.signal(number, _noted)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, forwarded)
    _adopt()
    watched = _Supervisor(worker, messages, woken)
    code = watched.run()
    _end_children(min(watched.ends_at, time.monotonic() + GRACE))
    return code


def finish(work: Callable[[], int]) -> NoReturn:
    """Do the work of a worker process, and end the process with its exit code, without Python's finalisation."""
    import atexit
    import sys

    try:
        code = work()
    except SystemExit as end:  # shell completion exits this way
        code = end.code if isinstance(end.code, int) else 0
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    interrupts.finished(code)
    answered, sys.stdout = sys.stdout, sys.stderr
    atexit._run_exitfuncs()
    for stream in (answered, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _noted(number: int, frame: FrameType | None) -> None:
    """Empty handler: signals are read from the pipe of `signal.set_wakeup_fd`."""


def _end_with(supervisor: int) -> None:
    """End this process and its session when the other end of the pipe is closed."""
    import _thread

    def wait() -> None:
        os.read(supervisor, 1)
        os.killpg(0, signal.SIGKILL)

    _thread.start_new_thread(wait, ())


def _adopt() -> None:
    """Adopt orphaned descendants."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1, 0, 0, 0)


class _Supervisor:
    """The state of the worker. `kill_at`: time at which it is killed; `why`: the message and exit code in that case.

    `ends_at`: time at which everything must have ended, after a signal. `stage`, `known`: what the worker reported last.
    """

    def __init__(self, worker: int, messages: int, woken: int) -> None:
        self.worker, self.messages, self.woken = worker, messages, woken
        self.open = [messages, woken]
        self.signals = 0
        self.kill_at = self.ends_at = float("inf")
        self.why = ("", INTERRUPTED)
        self.killed = False
        self.stoppable: frozenset[int] = frozenset()
        """The signals of which the first stops a job: it is no interrupt."""
        self.doing = self.stage = self.known = ""
        self.since = (0.0, 0.0)
        self.unread = b""
        self.answered: int | None = None
        """The exit code reported by the worker, if it finished."""

    def run(self) -> int:
        """Wait for the worker; returns the exit code."""
        while True:
            ended, status = os.waitpid(self.worker, os.WNOHANG)
            if ended:
                self.listen()
                return self.code(os.waitstatus_to_exitcode(status))
            wait = min(self.kill_at - time.monotonic(), LOOK if self.doing else float("inf"))
            for ready in select.select(self.open, [], [], None if wait == float("inf") else max(wait, 0))[0]:
                if ready == self.woken:
                    for number in os.read(self.woken, 64):
                        self.signalled(number)
                else:
                    self.receive(os.read(self.messages, 4096))
            if time.monotonic() >= self.kill_at:
                self.kill()
            self.report_slow()

    def listen(self) -> None:
        """Read the remaining messages of an ended worker; its child processes may keep the pipe open."""
        os.set_blocking(self.messages, False)
        with suppress(BlockingIOError):
            while some := os.read(self.messages, 4096):
                self.receive(some)

    def signalled(self, number: int) -> None:
        """Forward a signal. The grace period begins with the first one, but for one that stops a job; the third one
        kills the worker."""
        if number in self.stoppable:
            self.stoppable = frozenset()
            os.kill(self.worker, number)
        elif number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            self.signals += 1
            self.doing = ""
            self.why = ("interrupted", INTERRUPTED)
            self.ends_at = min(self.ends_at, time.monotonic() + GRACE)
            self.kill_at = min(self.kill_at, self.ends_at) if self.signals < 3 else time.monotonic()
            os.kill(self.worker, signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)
        elif number == signal.SIGTSTP:
            self.stop()

    def stop(self) -> None:
        """Stop the worker's session and this process, until this one is continued.

        A stopped worker cannot end if its supervisor is killed, so a third process watches for that.
        """
        reading, writing = os.pipe()
        watcher = os.fork()
        if watcher == 0:
            os.setsid()
            os.dup2(reading, 0)
            os.closerange(3, 1 << 20)  # else the worker would not notice the end of its supervisor
            if not os.read(0, 1):
                os.killpg(self.worker, signal.SIGKILL)
            os._exit(0)
        os.close(reading)
        os.killpg(self.worker, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.killpg(self.worker, signal.SIGCONT)
        os.write(writing, b"\n")
        os.close(writing)
        os.waitpid(watcher, 0)

    def receive(self, some: bytes) -> None:
        """Handle messages of the worker."""
        if not some:
            self.open.remove(self.messages)
        *lines, self.unread = (self.unread + some).split(b"\n")
        for line in lines:
            match line.decode("utf-8", "replace").split("\t"):
                case ["known", text]:
                    self.known = text
                case ["stoppable", *numbers]:
                    self.stoppable = frozenset(map(int, numbers))
                case ["unstoppable"]:
                    self.stoppable = frozenset()
                case ["doing", _, _, what, _] if self.signals:
                    self.stage = what
                case ["doing", deadline, seconds, what, silent]:
                    self.stage = what
                    self.doing, self.since = "" if silent else what, (time.monotonic(), self.computed())
                    self.kill_at = float(deadline) + GRACE if deadline else float("inf")
                    self.why = (f"time limit of {float(seconds):g} s reached while {what}", INCONCLUSIVE)
                case ["code", code]:
                    self.answered = int(code)
                    self.kill_at = min(self.kill_at, time.monotonic() + GRACE)
                    self.why = ("functions registered with atexit take too long", self.answered)
                case ["done"]:
                    self.stage = ""
                    if not self.signals:
                        self.doing, self.kill_at = "", float("inf")

    def report_slow(self) -> None:
        """Report a slow step."""
        begun, computed = self.since
        if self.doing and (time.monotonic() > begun + VERY_LONG or self.computed() > computed + LONG):
            _print(f"streamproof: {self.doing} ...\n")
            self.doing = ""

    def computed(self) -> float:
        """Processor time of the worker in seconds; 0 where the operating system does not report it."""
        with suppress(OSError):
            return time.clock_gettime((~self.worker << 3) | 2)
        return 0.0

    def kill(self) -> None:
        """Kill the worker's session."""
        with suppress(ProcessLookupError):
            os.killpg(self.worker, signal.SIGKILL)
        self.killed, self.kill_at = True, float("inf")
        message, code = self.why
        more = ""
        if self.answered is None:
            more += f"  progress before that: {self.known}\n" if self.known else ""
            if code == INCONCLUSIVE:
                more += "  nothing was decided; raise the limit\n"
            elif self.stage:
                message += f" while {self.stage}"
        _print(f"streamproof: {'' if self.answered is not None else 'error: '}{message}\n{more}")

    def code(self, code: int) -> int:
        """The exit code of a worker that ended with `code`, negative for the number of a signal."""
        if self.answered is not None:  # atexit functions of a model may end it differently
            return self.answered
        if self.killed:
            return self.why[1]
        if code == INTERRUPTED:
            return code
        if code >= 0:
            _print(f"streamproof: error: the program ended itself with exit code {code}, without a verdict\n")
            if short := little_memory():
                _print(f"  {short}\n")
                return TOO_LARGE
            _print("  a model, or a library that it loads, calls os._exit or closes files of the program\n")
            return MODEL
        name = signal.Signals(-code).name
        if code == -signal.SIGKILL:
            _print(f"streamproof: error: killed ({name}), probably by the operating system because memory ran out\n")
            _print("  choose smaller parameters or a smaller input, or a machine with more memory\n")
            return TOO_LARGE
        _print(f"streamproof: error: the process crashed ({name})\n")
        if short := little_memory():
            _print(f"  {short}\n")
            return TOO_LARGE
        _print("  this is a defect of streamproof, or of a library the model loads; please report it\n")
        return SYSTEM


def _end_children(end: float) -> None:
    """Wait for child processes that the worker left behind, and kill those that have not ended at the time `end`."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        if time.monotonic() > end:
            for child in _children():
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        time.sleep(LOOK / 10)


def _children() -> list[int]:
    with suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]
    return []


def little_memory() -> str:
    """The probable reason for a failing library under a limit on address space; empty without such a limit."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return ""
    return (
        f"probably a library could not allocate memory: the limit of {limit / 10**9:.3g} GB on the address space (ulimit -v)"
        " is too low; raise it, or choose smaller parameters"
    )


def _print(text: str) -> None:
    """Write to standard error, on a terminal in place of the worker's status line; a broken pipe is ignored."""
    with suppress(OSError):
        if select.select([], [2], [], LOOK)[1]:
            over = "\r\x1b[2K" if os.isatty(2) and os.environ.get("TERM", "") not in ("dumb", "unknown") else ""
            os.write(2, (over + text).encode())
