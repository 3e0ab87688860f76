"""Validation of many recorded runs at once: one Spark task per run, largest first, with the function given by the caller."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from streamproof.base.errors import UsageError
from streamproof.conformance.run_verdict import RunVerdict
from streamproof.pipeline.session import (
    ATTEMPTS,
    LOCAL,
    Progress,
    reporting,
    require_pyspark,
    spark_failures,
    spark_session,
)

if TYPE_CHECKING:
    from pyspark import SparkContext

JobFunction = Callable[[Any], Sequence[RunVerdict]]
"""Validates one of the runs. A run may contain several jobs, hence several verdicts."""


class NamedRun(Protocol):
    """A run: a path, or any object with a name and, if known, a `size`."""

    @property
    def name(self) -> str:
        """The name in messages."""


@dataclass(frozen=True, slots=True)
class _Refused:
    """The result of a worker for an input error, in place of verdicts."""

    message: str
    remedy: str


def validate_many(
    runs: Sequence[NamedRun],
    job_function: JobFunction,
    master: str = LOCAL,
    progress: Progress | None = None,
) -> list[RunVerdict]:
    """Map `job_function` over `runs` on Spark; the verdicts come back in their order.

    `job_function` and the runs must be picklable, and on a cluster their paths must name the same files on every worker. A
    run on which it raises gets the verdict `error` and the exception as reason: one broken run never costs the others.
    So does a run on which worker processes die. Raises `UsageError` when it says that what it was given is wrong, or
    cannot be sent to workers, and `SystemFailure` when Spark fails.
    """
    if not runs:
        return []
    require_pyspark()
    from pyspark.serializers import CloudPickleSerializer

    try:
        CloudPickleSerializer().dumps(job_function)  # type: ignore[no-untyped-call]
    except Exception as failure:
        raise UsageError(
            f"{getattr(job_function, '__qualname__', job_function)!s} cannot be sent to Spark workers: {failure}",
            remedy="give a function of a module, and let it open files, solvers and sessions itself",
        ) from failure

    doing = f"validating {len(runs)} runs on {master}"
    with spark_session(master) as spark, reporting(spark, progress, doing), spark_failures(doing):
        answers = _answers(spark.sparkContext, job_function, runs)
    verdicts: list[RunVerdict] = []
    for answer in answers:
        if isinstance(answer, _Refused):
            raise UsageError(answer.message, remedy=answer.remedy)
        verdicts += answer
    return verdicts


_Answer = list[RunVerdict] | _Refused


def _answers(context: SparkContext, job_function: JobFunction, runs: Sequence[NamedRun]) -> list[_Answer]:
    """The verdicts of every run. A run on which worker processes die repeatedly gets an error verdict; the other
    runs are not repeated."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.accumulators import AccumulatorParam
    from pyspark.errors import PySparkException

    class Done(AccumulatorParam[dict[int, _Answer]]):
        """What is done, which the driver hears of whatever becomes of the others."""

        def zero(self, value: dict[int, _Answer]) -> dict[int, _Answer]:
            return {}

        def addInPlace(self, some: dict[int, _Answer], more: dict[int, _Answer]) -> dict[int, _Answer]:
            return {**some, **more}

    answers: dict[int, _Answer] = {}
    # The largest first, so that none remains alone at the end.
    by_size = sorted(range(len(runs)), key=lambda number: -getattr(runs[number], "size", 0))
    while waiting := [number for number in by_size if number not in answers]:
        done = context.accumulator({}, Done())

        def task(numbers: Iterable[int], done: Any = done) -> Iterator[int]:
            for number in numbers:
                done.add({number: _verdicts(job_function, runs[number])})
                yield number

        try:
            # One task per run: runs differ widely in length, so fixed groups would leave cores idle.
            context.parallelize(waiting, len(waiting)).mapPartitions(task).collect()
        except (PySparkException, Py4JError) as failure:
            died = _WORKER_DIED.search(str(failure))
            if died is None:
                raise
            lost = waiting[int(died["task"])]
            reason = f"the process that validated it died {ATTEMPTS} times; it may have run out of memory"
            answers[lost] = [RunVerdict(runs[lost].name, "", "", "error", reason)]
        answers |= done.value
    return [answers[number] for number in range(len(runs))]


_WORKER_DIED = re.compile(r"Task (?P<task>\d+) in stage .*(?:Python worker (?:exited|failed)|crashed)", re.S)
"""What Spark says of a task that it has given up, whose number is that of its partition."""


def _verdicts(job_function: JobFunction, run: NamedRun) -> _Answer:
    """Runs on a worker. What cannot be written as JSON fails here, beside its run."""
    try:
        verdicts = list(job_function(run))
        json.dumps([verdict.record() for verdict in verdicts], allow_nan=False)
        return verdicts
    except UsageError as failure:
        return _Refused(failure.message, failure.remedy)
    except Exception as failure:
        return [RunVerdict(run.name, "", "", "error", f"{type(failure).__name__}: {failure}")]
