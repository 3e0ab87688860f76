"""Checking points on this machine: in this process, or in several, each with one job at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait

from streamproof.pipeline.sweeps.deciding import Job, Record, decide, record_of
from streamproof.system.errors import SystemFailure

_PROGRAM = "from streamproof.pipeline.sweeps.local import serve; serve()"


def decide_here(jobs: Sequence[Job]) -> Iterator[Record]:
    """The records of the jobs, one after the other."""
    for job in jobs:
        record = decide(job)
        if record["outcome"] == "interrupted":
            raise KeyboardInterrupt
        yield record


def decide_locally(jobs: Sequence[Job], processes: int) -> Iterator[Record]:
    """The records of the jobs in the order of completion, by several worker processes that take the jobs in order.

    A process that dies makes its own point inconclusive. Raises `SystemFailure` if none can be started.
    """
    if processes == 1 or len(jobs) < 2:
        yield from decide_here(jobs)
        return
    waiting = deque(jobs)
    busy: dict[int, _Worker] = {}
    idle: list[_Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < processes:
                worker = idle.pop() if idle else _Worker()
                busy[worker.answers.fileno()] = worker
                worker.send(waiting.popleft())
            ready = wait(list(busy))
            for worker in [worker for answers, worker in busy.items() if answers in ready]:
                record = worker.receive()
                del busy[worker.answers.fileno()]
                if worker.ended:
                    worker.stop()
                else:
                    idle.append(worker)
                yield record
    finally:
        for worker in (*busy.values(), *idle):
            worker.stop()


class _Worker:
    """A worker process for one job at a time."""

    def __init__(self) -> None:
        try:
            # Its own process group: Ctrl-C is for the process that stores the records.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as failure:
            raise SystemFailure(
                f"a process for the sweep cannot be started: {failure}", remedy="use --workers 1"
            ) from failure
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._jobs, self.answers = self._process.stdin, self._process.stdout
        self._job: Job = {}

    def send(self, job: Job) -> None:
        """Sends it a point."""
        self._job = job
        with suppress(BrokenPipeError):  # it has died, which shows when its answer is read
            self._jobs.write(json.dumps(job).encode() + b"\n")
            self._jobs.flush()

    def receive(self) -> Record:
        """Waits for the record of the point."""
        answer = self.answers.readline()
        if answer.endswith(b"\n"):
            record: Record = json.loads(answer)
            return record
        code = self._process.wait()
        return record_of(
            self._job, "lost", f"the process that searched it ended ({code}); it may have been out of memory"
        )

    @property
    def ended(self) -> bool:
        """Whether it accepts no more jobs."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Kills it."""
        self._process.kill()
        with suppress(BrokenPipeError):
            self._jobs.close()
        self._process.wait()
        self.answers.close()


def serve() -> None:
    """The main loop of a worker process: jobs on standard input, records on standard output, one per line."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Output of a user's model must not mix with the records.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with suppress(BrokenPipeError):  # nobody reads the records any longer
        for text in sys.stdin.buffer:
            answers.write(json.dumps(decide(json.loads(text))).encode() + b"\n")
            answers.flush()
