"""Checking points on Spark, one task per point."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from streamproof.pipeline.session import LOCAL, reporting, spark_failures, spark_session
from streamproof.pipeline.sweeps.deciding import Job, Record, decide

TASKS_PER_CORE = 4
"""Number of points per core in one batch, whose records are stored together."""


def decide_on_spark(
    jobs: Sequence[Job], master: str = LOCAL, progress: Callable[[str], None] | None = None
) -> Iterator[Record]:
    """The records of the jobs, in order. On a cluster, every worker must have the model.

    Raises `SystemFailure` if Spark is missing or fails.
    """
    with spark_session(master, app="streamproof sweep") as spark, spark_failures(f"exploring points on {master}"):
        context = spark.sparkContext
        size = TASKS_PER_CORE * max(1, context.defaultParallelism)
        for first in range(0, len(jobs), size):
            wave = jobs[first : first + size]
            doing = f"points {first + 1} to {first + len(wave)} of {len(jobs)} on {master}"
            with reporting(spark, progress, doing):
                # Jobs and records travel as JSON text, so what JSON does not support fails here as in a local process.
                texts = context.parallelize([json.dumps(job) for job in wave], len(wave)).map(_decided).collect()
            yield from map(json.loads, texts)


def _decided(text: str) -> str:
    return json.dumps(decide(json.loads(text)))
