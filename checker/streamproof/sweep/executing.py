"""Checking many points: in this process, in several ones, or on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from streamproof.base.processes import Ended, can_fork, in_processes
from streamproof.pipeline.executors import Lost, SparkExecutor
from streamproof.pipeline.session import ATTEMPTS
from streamproof.sweep.deciding import Job, Record, decide, record_of


def decide_locally(jobs: Sequence[Job], processes: int) -> Iterator[Record]:
    """The records of the jobs, in the order of completion; with several processes, each takes the next job.

    A process that dies makes its own point inconclusive. Raises `SystemFailure` if none can be started.
    """
    if processes == 1 or len(jobs) < 2 or not can_fork():
        for job in jobs:
            record = decide(job)
            if record["outcome"] == "interrupted":
                raise KeyboardInterrupt
            yield record
        return
    for job, result in in_processes(decide, jobs, processes, "sweep"):
        if isinstance(result, Ended):
            why = f"the process that searched it ended ({result.code}); it may have been out of memory"
            result = record_of(job, "lost", why)
        yield decide(job) if result is None else result


def decide_on_spark(jobs: Sequence[Job], master: str, progress: Callable[[str], None]) -> Iterator[Record]:
    """The records of the jobs, in the order of completion, by one task per point. On a cluster, every worker must have the
    model.

    A point on which workers die is inconclusive. Raises `SystemFailure` if Spark is missing or fails.
    """
    with ExitStack() as stack:
        executor = SparkExecutor(master, stack, doing="exploring points")
        with executor.reporting(progress, f"{len(jobs)} points on {master}", len(jobs)):
            # Jobs and records travel as JSON text, so what JSON does not support fails here as in a stored record.
            for number, text in executor.stream(_decided, [json.dumps(job) for job in jobs]):
                if isinstance(text, Lost):
                    why = f"the process that searched it died {ATTEMPTS} times; it may have been out of memory"
                    yield record_of(jobs[number], "lost", why)
                else:
                    yield json.loads(text)


def _decided(text: str) -> str:
    return json.dumps(decide(json.loads(text)))
