"""The program as two processes: one works, the other, small, sees to it that the work ends when it should.

The worker has a session of its own; the supervisor passes on what the terminal and others send. It kills a worker that does
not react, says when something takes long, says why a worker has died, and leaves no process behind: whatever the worker had
started is the supervisor's once the worker has ended. Loaded before everything else.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from streamproof import interrupts

GRACE = 5.0
"""Seconds for a worker that is to end now, and for what it leaves behind."""
LONG = 2.0
"""Seconds of computing after which the supervisor says what is being done."""
VERY_LONG = 10.0
"""The same in seconds on the clock, for work that waits."""
LOOK = 0.2
"""Seconds between two looks at a worker that may take long."""
CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of Linux: processes whose parent has died become this one's."""
INTERRUPTED, MODEL, TOO_LARGE, SYSTEM, INCONCLUSIVE = 130, 150, 152, 153, 160
"""Exit codes, as in `system.errors`, which is not loaded here."""


def supervised(work: Callable[[], int]) -> int:
    """Run `work` in a process of its own; gives its exit code."""
    messages, telling = os.pipe()
    alive, living = os.pipe()
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    forwarded = {signal.SIGINT, signal.SIGTERM, signal.SIGTSTP, signal.SIGCHLD}
    forwarded |= {n for n in (signal.SIGHUP, signal.SIGQUIT) if signal.getsignal(n) is not signal.SIG_IGN}
    signal.pthread_sigmask(signal.SIG_BLOCK, forwarded)
    worker = os.fork()
    if worker == 0:
        for unused in (messages, living, woken, waking):
            os.close(unused)
        os.setsid()
        _end_with(alive)
        try:
            interrupts.install(telling)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, forwarded)
            return work()
        except KeyboardInterrupt:  # before the program could catch it, or after
            _say("streamproof: error: interrupted\n")
            os._exit(INTERRUPTED)
    os.close(telling)
    os.close(alive)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    for number in forwarded:
        signal.signal(number, _noted)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, forwarded)
    _adopt()
    code = _Supervisor(worker, messages, woken).run()
    _end_children()
    return code


def _noted(number: int, frame: FrameType | None) -> None:
    """Signals are read from the pipe that `signal.set_wakeup_fd` writes to."""


def _end_with(supervisor: int) -> None:
    """Have this process, and what it has started, end when the other end of the pipe is closed."""
    import _thread

    def wait() -> None:
        os.read(supervisor, 1)
        os.killpg(0, signal.SIGKILL)

    _thread.start_new_thread(wait, ())


def _adopt() -> None:
    """Become the parent of processes whose own parent has ended."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1, 0, 0, 0)


class _Supervisor:
    """What is known of the worker. `kill_at`: when it is killed, and `why` the message and exit code then."""

    def __init__(self, worker: int, messages: int, woken: int) -> None:
        self.worker, self.messages, self.woken = worker, messages, woken
        self.open = [messages, woken]
        self.asked = 0
        self.kill_at = float("inf")
        self.why = ("", INTERRUPTED)
        self.killed = self.patient = False
        self.doing = ""
        self.since = (0.0, 0.0)
        self.unread = b""
        self.answered: int | None = None
        """The exit code of a program that came to its end."""

    def run(self) -> int:
        """Wait for the worker; gives the exit code."""
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
                    self.told(os.read(self.messages, 4096))
            if time.monotonic() >= self.kill_at:
                self.kill()
            self.look()

    def listen(self) -> None:
        """Read what the worker has sent before its end; what it has started may keep the pipe open."""
        os.set_blocking(self.messages, False)
        with suppress(BlockingIOError):
            while some := os.read(self.messages, 4096):
                self.told(some)

    def signalled(self, number: int) -> None:
        """Pass on a signal. Who asks three times does not wait any more."""
        if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            self.asked += 1
            self.doing = ""
            self.why = ("interrupted", INTERRUPTED)
            grace = float("inf") if self.patient and self.asked == 1 else GRACE if self.asked < 3 else 0
            self.kill_at = time.monotonic() + grace
            os.kill(self.worker, signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)
        elif number == signal.SIGTSTP:
            self.stop()

    def stop(self) -> None:
        """Stop the worker, what is in its session, and this process, until this one is continued.

        A worker that is stopped cannot end with its supervisor, should that be killed: a third process sees to it.
        """
        reading, writing = os.pipe()
        watcher = os.fork()
        if watcher == 0:
            os.setsid()
            os.dup2(reading, 0)
            os.closerange(3, 1 << 20)  # or the worker, while it runs, would not notice the end of its supervisor
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

    def told(self, some: bytes) -> None:
        """Read what the worker says of itself."""
        if not some:
            self.open.remove(self.messages)
        *lines, self.unread = (self.unread + some).split(b"\n")
        for line in lines:
            match line.decode("utf-8", "replace").split("\t"):
                case ["patient" | "impatient" as mood] if self.answered is None:
                    self.patient = mood == "patient"
                    if self.asked == 1:
                        self.kill_at = float("inf") if self.patient else time.monotonic() + GRACE
                case ["gentle"] if self.asked == 1:
                    self.kill_at = float("inf")
                case ["doing", deadline, seconds, what, silent] if not self.asked:
                    self.doing, self.since = "" if silent else what, (time.monotonic(), self.computed())
                    self.kill_at = float(deadline) + GRACE if deadline else float("inf")
                    self.why = (f"time limit of {float(seconds):g} s reached while {what}", INCONCLUSIVE)
                case ["code", code]:
                    self.answered = int(code)
                    self.kill_at = min(self.kill_at, time.monotonic() + GRACE)
                    self.why = ("what is to be called at the end of the program takes too long", self.answered)
                case ["done"] if not self.asked:
                    self.doing, self.kill_at = "", float("inf")

    def look(self) -> None:
        """Say what is being done when it takes long."""
        begun, computed = self.since
        if self.doing and (time.monotonic() > begun + VERY_LONG or self.computed() > computed + LONG):
            _say(f"streamproof: {self.doing} ...\n")
            self.doing = ""

    def computed(self) -> float:
        """Seconds of processor time that the worker has used; 0 where the system does not say."""
        with suppress(OSError):
            return time.clock_gettime((~self.worker << 3) | 2)
        return 0.0

    def kill(self) -> None:
        """End the worker, and what is in its session."""
        with suppress(ProcessLookupError):
            os.killpg(self.worker, signal.SIGKILL)
        self.killed, self.kill_at = True, float("inf")
        message, code = self.why
        undecided = code == INCONCLUSIVE and self.answered is None
        remedy = "  nothing was decided; raise the limit\n" if undecided else ""
        _say(f"streamproof: {'' if self.answered is not None else 'error: '}{message}\n{remedy}")

    def code(self, code: int) -> int:
        """The exit code of a worker that ended with `code`, negative for the number of a signal."""
        if self.answered is not None:  # whatever a model has asked to be called at the end
            return self.answered
        if self.killed:
            return self.why[1]
        if code == INTERRUPTED:
            return code
        if code >= 0:
            _say(
                f"streamproof: error: the program was ended from within, with exit code {code}, before it had an answer\n"
            )
            if short := little_memory():
                _say(f"  {short}\n")
                return TOO_LARGE
            _say(
                "  a model, or a library that it loads, calls os._exit or the like, or closes files that are not its own\n"
            )
            return MODEL
        name = signal.Signals(-code).name
        if code == -signal.SIGKILL:
            _say(f"streamproof: error: killed ({name}), probably by the system, for lack of memory\n")
            _say("  choose smaller parameters, or limit the memory with --memory\n")
            return TOO_LARGE
        _say(f"streamproof: error: the process crashed ({name})\n")
        if short := little_memory():
            _say(f"  {short}\n")
            return TOO_LARGE
        _say("  this is a defect of streamproof, or of a library the model loads; please report it\n")
        return SYSTEM


def _end_children() -> None:
    """Wait for what the worker has left behind, and kill what does not end by itself."""
    end = time.monotonic() + GRACE
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
    """What probably happened where a library fails, and the user has limited the memory; empty where nobody has."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return ""
    return (
        f"probably a library found no memory: the limit of {limit / 10**9:.3g} GB on the address space (ulimit -v) is too"
        " low; raise it, or choose smaller parameters"
    )


def _say(text: str) -> None:
    """Write to standard error, unless it is a pipe that nobody reads."""
    with suppress(OSError):
        if select.select([], [2], [], LOOK)[1]:
            os.write(2, text.encode())
