"""Judging runs in several processes of one machine, the largest run first, so that none remains alone at the end.

The processes are forks: what was found and loaded is there already, archives are unpacked once. Results are ordered by run,
whichever ends first, so that they are those of one process.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import NoReturn, cast

from streamproof import interrupts
from streamproof.conformance.found_runs import FoundRun, JudgedRun, RunReading, ValidationRequest, judge_readings
from streamproof.conformance.run_verdict import RunVerdict
from streamproof.system import StreamproofError
from streamproof.system.errors import SystemFailure

PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux: this process gets a signal when the thread that forked it ends."""

Found = tuple[FoundRun, Sequence[RunReading]]


class _JudgingProcess:
    """A process that judges one run at a time, of those that were found."""

    def __init__(self, found: Sequence[Found], request: ValidationRequest) -> None:
        parent = os.getpid()
        numbers, to_it = os.pipe()
        from_it, answers = os.pipe()
        try:
            self._pid = os.fork()
        except OSError as failure:
            raise SystemFailure(
                f"a process for the validation cannot be started: {failure}", remedy="use --workers 1"
            ) from failure
        if not self._pid:
            os.close(to_it)
            os.close(from_it)
            _serve(found, request, numbers, answers, parent)
        os.close(numbers)
        os.close(answers)
        self._to_it, self.answers = os.fdopen(to_it, "wb"), os.fdopen(from_it, "rb")
        self.number = -1
        self.ended = False

    def send(self, number: int) -> None:
        """Has it judge the run with this number."""
        self.number = number
        with suppress(BrokenPipeError):  # it has died, which shows when its answer is read
            pickle.dump(number, self._to_it)
            self._to_it.flush()

    def receive(self, run: FoundRun) -> JudgedRun | StreamproofError | None:
        """Waits for what it has judged of the run, or could not read; None for what this process is to judge."""
        try:
            return cast("JudgedRun | StreamproofError | None", pickle.load(self.answers))
        except (EOFError, pickle.UnpicklingError):
            self.ended = True
            code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            reason = f"the process that validated it ended ({code}); it may have been out of memory"
            return JudgedRun([RunVerdict(run.name, "", "", "error", reason)])

    def stop(self) -> None:
        """Kills it."""
        if not self.ended:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        with suppress(BrokenPipeError):
            self._to_it.close()
        self.answers.close()


def judge_in_processes(
    found: Sequence[Found], request: ValidationRequest, processes: int, on_progress: Callable[[str], None] | None = None
) -> Iterator[JudgedRun]:
    """What was judged of each run, in their order. A process that dies gives its own run the verdict `error`.

    Raises what the first run that cannot be judged raises, whatever it is, after what was judged before it, and
    `SystemFailure` if no process can be started.
    """
    waiting = deque(sorted(range(len(found)), key=lambda number: -found[number][0].size))
    results: dict[int, JudgedRun | StreamproofError | None] = {}
    busy: dict[int, _JudgingProcess] = {}
    idle: list[_JudgingProcess] = []
    due = 0
    try:
        while due < len(found):
            while waiting and len(busy) < processes:
                process = idle.pop() if idle else _JudgingProcess(found, request)
                busy[process.answers.fileno()] = process
                process.send(waiting.popleft())
            for answers in wait(list(busy)):
                process = busy.pop(cast(int, answers))
                results[process.number] = process.receive(found[process.number][0])
                if process.ended:
                    process.stop()
                else:
                    idle.append(process)
            if on_progress is not None:
                on_progress(f"{due + len(results)} of {len(found)} runs")
            while due in results:
                judged = results.pop(due)
                if judged is None:
                    judged = judge_readings(found[due][1], request, again=found[due][0].again)
                if isinstance(judged, StreamproofError):
                    raise judged
                yield judged
                due += 1
    finally:
        for process in (*busy.values(), *idle):
            process.stop()


def _serve(found: Sequence[Found], request: ValidationRequest, numbers: int, answers: int, parent: int) -> NoReturn:
    """The main loop of a process, which never returns to what its parent does."""
    code = 1
    try:
        interrupts.detach()
        _end_with(parent)
        # Output of a user's model must not mix with that of the parent.
        sys.stdout = sys.stderr
        with os.fdopen(numbers, "rb") as asked, os.fdopen(answers, "wb") as told:
            while True:
                number = pickle.load(asked)
                told.write(_answer(found[number], request))
                told.flush()
    except (EOFError, BrokenPipeError):
        code = 0  # no run is left, or nobody waits for answers
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def _answer(found: Found, request: ValidationRequest) -> bytes:
    """What is judged of a run, pickled: None if it cannot be, or if judging it fails unexpectedly."""
    try:
        judged: JudgedRun | StreamproofError = judge_readings(found[1], request, again=found[0].again)
    except StreamproofError as error:
        judged = error
    except BaseException:  # of a user's binding: the parent meets it, too, and reports it
        return pickle.dumps(None)
    try:
        return pickle.dumps(judged)
    except Exception:
        return pickle.dumps(None)


def _end_with(parent: int) -> None:
    """End this process with the one that forked it, also where that is killed."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
