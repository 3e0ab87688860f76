"""Deciding points on this machine: in this process, or in several, each sent one job after the other."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from streamproof.pipeline.sweeps.deciding import SCHEMA, Record, decide
from streamproof.pipeline.sweeps.points import Job
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
    """The records of the jobs as they are done by so many processes, which are begun in the order of the jobs.

    A process that dies costs its own point, which is then inconclusive. Raises `SystemFailure` when none can be started.
    """
    if processes == 1 or len(jobs) < 2:
        yield from decide_here(jobs)
        return
    waiting = deque(jobs)
    with selectors.DefaultSelector() as listening:
        busy: dict[int, _Worker] = {}
        idle: list[_Worker] = []
        try:
            while waiting or busy:
                while waiting and len(busy) < processes:
                    worker = idle.pop() if idle else _Worker()
                    worker.send(waiting.popleft())
                    busy[worker.answers] = worker
                    listening.register(worker.answers, selectors.EVENT_READ)
                for ready, _ in listening.select():
                    worker = busy[ready.fd]
                    record = worker.receive()
                    if record is None:
                        continue
                    listening.unregister(worker.answers)
                    del busy[ready.fd]
                    if worker.alive:
                        idle.append(worker)
                    yield record
        finally:
            for worker in (*busy.values(), *idle):
                worker.stop()


class _Worker:
    """A process that decides one job at a time."""

    def __init__(self) -> None:
        try:
            # A session of its own: Ctrl-C is for the process that knows what to keep.
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
        self._stdin = self._process.stdin
        self.answers = self._process.stdout.fileno()
        self._received = b""
        self._job: Job = {}

    @property
    def alive(self) -> bool:
        """Whether it can take another job."""
        return self._process.poll() is None

    def send(self, job: Job) -> None:
        """Have it decide a point."""
        self._job = job
        with suppress(BrokenPipeError):  # it has died, which shows when its answer is read
            self._stdin.write(json.dumps(job).encode() + b"\n")
            self._stdin.flush()

    def receive(self) -> Record | None:
        """The record, once it is there as a whole."""
        part = os.read(self.answers, 1 << 16)
        self._received += part
        if not part:
            code = self._process.wait()
            return _lost(self._job, f"the process that searched it ended ({code}); it may have been out of memory")
        if not self._received.endswith(b"\n"):
            return None
        record: Record = json.loads(self._received)
        self._received = b""
        return record

    def stop(self) -> None:
        """End it, whatever it is doing."""
        self._process.kill()
        with suppress(BrokenPipeError):
            self._stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _lost(job: Job, because: str) -> Record:
    """The record of a point whose search ended without an answer."""
    return {
        "schema": SCHEMA,
        "key": job["key"],
        "outcome": "lost",
        "because": because,
        "fingerprint": None,
        "limits": job["limits"],
        "asked": job["properties"],
        "states": None,
        "properties": {},
        "seconds": 0.0,
    }


def serve() -> None:
    """What a worker process runs: jobs come as lines of standard input, records leave as lines of standard output."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What a user's model prints must not come between the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with suppress(BrokenPipeError):  # nobody waits for an answer any more
        for text in sys.stdin.buffer:
            answers.write(json.dumps(decide(json.loads(text))).encode() + b"\n")
            answers.flush()
