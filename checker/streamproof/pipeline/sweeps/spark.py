"""Deciding points on Spark, one task a point."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from streamproof.pipeline.session import LOCAL, reporting, spark_failures, spark_session
from streamproof.pipeline.sweeps.deciding import Job, Record, decide

TASKS_PER_CORE = 4
"""Points that are sent together, for each core: they are kept when all of them are done."""


def decide_on_spark(
    jobs: Sequence[Job], master: str = LOCAL, progress: Callable[[str], None] | None = None
) -> Iterator[Record]:
    """The records of the jobs, in their order. On a cluster, every worker must have the model.

    Raises `SystemFailure` when Spark is missing or fails.
    """
    with spark_session(master, app="streamproof sweep") as spark, spark_failures(f"exploring points on {master}"):
        context = spark.sparkContext
        size = TASKS_PER_CORE * max(1, context.defaultParallelism)
        for first in range(0, len(jobs), size):
            wave = jobs[first : first + size]
            doing = f"points {first + 1} to {first + len(wave)} of {len(jobs)} on {master}"
            with reporting(spark, progress, doing):
                # JSON text, not objects, travels: what cannot be JSON fails here as it does in a process of its own.
                texts = context.parallelize([json.dumps(job) for job in wave], len(wave)).map(_decided).collect()
            yield from map(json.loads, texts)


def _decided(text: str) -> str:
    return json.dumps(decide(json.loads(text)))
