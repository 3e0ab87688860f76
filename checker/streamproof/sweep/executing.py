"""Checking many points: in this process, in several ones, or on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from streamproof.base.processes import Ended, can_fork, in_processes
from streamproof.pipeline.session import reporting, spark_failures, spark_session
from streamproof.sweep.deciding import Job, Record, decide, record_of

TASKS_PER_CORE = 4
"""Number of points per core of Spark in one batch, whose records are stored together."""


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
    """The records of the jobs, in order, by one task per point. On a cluster, every worker must have the model.

    Raises `SystemFailure` if Spark is missing or fails.
    """
    with spark_session(master, app="streamproof sweep") as spark, spark_failures(f"exploring points on {master}"):
        context = spark.sparkContext
        size = TASKS_PER_CORE * max(1, context.defaultParallelism)
        for first in range(0, len(jobs), size):
            wave = jobs[first : first + size]
            doing = f"points {first + 1} to {first + len(wave)} of {len(jobs)} on {master}"
            with reporting(spark, progress, doing):
                # Jobs and records travel as JSON text, so what JSON does not support fails here as in a stored record.
                texts = context.parallelize([json.dumps(job) for job in wave], len(wave)).map(_decided).collect()
            yield from map(json.loads, texts)


def _decided(text: str) -> str:
    return json.dumps(decide(json.loads(text)))
