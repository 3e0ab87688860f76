"""Jobs in several processes of this machine, each process with one job at a time.

The processes are forks: what was found and loaded is there already, and only jobs and results are sent. They end with the
process that began them.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

from streamproof import interrupts
from streamproof.base.errors import SystemFailure

Job = TypeVar("Job")
Result = TypeVar("Result")

PULSE_SECONDS = 0.1
PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux: this process gets a signal when the thread that forked it ends."""


class Ended(NamedTuple):
    """In place of a result: the process ended with this exit code, negative for the number of a signal."""

    code: int


def can_fork() -> bool:
    """Whether this process can be forked safely: it has no other threads."""
    return threading.active_count() == 1


def in_processes(
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    processes: int,
    purpose: str,
    pulse: Callable[[], None] | None = None,
) -> Iterator[tuple[Job, Result | Ended | None]]:
    """The result of `work` for each job, in the order of completion; the processes take the jobs in order. `pulse` is called
    repeatedly; what it raises ends the processes.

    None: `work` raised an exception, or its result cannot be pickled. Raises `SystemFailure`, which names the purpose, if no
    process can be started.
    """
    waiting = deque(jobs)
    busy: dict[int, ForkedProcess] = {}
    idle: list[ForkedProcess] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < processes:
                process = idle.pop() if idle else ForkedProcess(work, purpose)
                busy[process.results.fileno()] = process
                process.send(waiting.popleft())
            if pulse is not None:
                pulse()
            for results in wait(list(busy), None if pulse is None else PULSE_SECONDS):
                process = busy.pop(cast(int, results))
                result = process.receive()
                if isinstance(result, Ended):
                    process.stop()
                else:
                    idle.append(process)
                yield process.job, result
    finally:
        for process in (*busy.values(), *idle):
            process.stop()


class ForkedProcess:
    """A process for one job at a time. Requires `can_fork`; raises `SystemFailure`, which names the purpose."""

    def __init__(self, work: Callable[[Any], object], purpose: str) -> None:
        parent = os.getpid()
        jobs, to_it = os.pipe()
        from_it, results = os.pipe()
        try:
            self._pid = os.fork()
        except OSError as failure:
            raise SystemFailure(
                f"a process for the {purpose} cannot be started: {failure}", remedy="use --workers 1"
            ) from failure
        if not self._pid:
            os.close(to_it)
            os.close(from_it)
            _serve(work, jobs, results, parent)
        os.close(jobs)
        os.close(results)
        self._jobs, self.results = os.fdopen(to_it, "wb"), os.fdopen(from_it, "rb")
        self._ended = False
        self.job: Any = None
        """The last job that it was given."""

    def send(self, job: Any) -> None:
        """Gives it a job."""
        self.job = job
        with suppress(BrokenPipeError):  # it has died, which shows when its result is read
            pickle.dump(job, self._jobs)
            self._jobs.flush()

    def receive(self) -> Any:
        """Waits for the result of its job."""
        try:
            return pickle.load(self.results)
        except (EOFError, pickle.UnpicklingError):
            self._ended = True
            return Ended(os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1]))

    def stop(self) -> None:
        """Kills it, unless that has been done."""
        if not self._ended:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._ended = True
        with suppress(BrokenPipeError):
            self._jobs.close()
        self.results.close()


def _serve(work: Callable[[Any], object], jobs: int, results: int, parent: int) -> NoReturn:
    """The main loop of a process, which never returns to what its parent does."""
    code = 1
    try:
        interrupts.detach()
        _end_with(parent)
        # Output of a user's model must not mix with that of the parent.
        sys.stdout = sys.stderr
        with suppress(OSError):  # standard error is closed
            os.dup2(2, 1)
        with os.fdopen(jobs, "rb") as receiving, os.fdopen(results, "wb") as sending:
            while True:
                job = pickle.load(receiving)
                sending.write(_pickled(work, job))
                sending.flush()
    except (EOFError, BrokenPipeError):
        code = 0  # no job is left, or nobody waits for results
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def _pickled(work: Callable[[Any], object], job: Any) -> bytes:
    """The result of a job; None if there is none that can be sent: the parent does the job itself, and reports the error."""
    try:
        return pickle.dumps(work(job))
    except BaseException:
        return pickle.dumps(None)


def _end_with(parent: int) -> None:
    """End this process with the one that forked it, also where that is killed."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
