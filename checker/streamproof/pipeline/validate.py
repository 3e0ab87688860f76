"""Validation of many recorded runs at once: one Spark task per run, with the validation function given by the caller."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from streamproof.system.errors import UsageError

if TYPE_CHECKING:
    from pyspark import SparkContext

JobFunction = Callable[[Path], Sequence[RunVerdict]]
"""Validates the run at a path. A run may contain several jobs, hence several verdicts."""


@dataclass(frozen=True, slots=True)
class _Refused:
    """The result of a worker for an input error, in place of verdicts."""

    message: str
    remedy: str


def validate_many(
    run_paths: Sequence[Path],
    job_function: JobFunction,
    master: str = LOCAL,
    progress: Progress | None = None,
) -> list[RunVerdict]:
    """Map `job_function` over `run_paths` on Spark; the verdicts come back in the order of the paths.

    `job_function` must be picklable, and on a cluster the paths must name the same files on every worker. A run on which
    it raises gets the verdict `error` and the exception as reason: one broken run never costs the others.
    So does a run on which worker processes die. Raises `UsageError` when it says that what it was given is wrong, or
    cannot be sent to workers, and `SystemFailure` when Spark fails.
    """
    if not run_paths:
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

    doing = f"validating {len(run_paths)} runs on {master}"
    with spark_session(master) as spark, reporting(spark, progress, doing), spark_failures(doing):
        answers = _answers(spark.sparkContext, job_function, [str(path) for path in run_paths])
    verdicts: list[RunVerdict] = []
    for answer in answers:
        if isinstance(answer, _Refused):
            raise UsageError(answer.message, remedy=answer.remedy)
        verdicts += answer
    return verdicts


_Answer = list[RunVerdict] | _Refused


def _answers(context: SparkContext, job_function: JobFunction, paths: Sequence[str]) -> list[_Answer]:
    """The verdicts of every path. A path on which worker processes die repeatedly gets an error verdict; the other
    paths are not repeated."""
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
    while waiting := [number for number in range(len(paths)) if number not in answers]:
        done = context.accumulator({}, Done())

        def task(numbers: Iterable[int], done: Any = done) -> Iterator[int]:
            for number in numbers:
                done.add({number: _verdicts(job_function, Path(paths[number]))})
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
            answers[lost] = [RunVerdict(Path(paths[lost]).name, "", "", "error", reason)]
        answers |= done.value
    return [answers[number] for number in range(len(paths))]


_WORKER_DIED = re.compile(r"Task (?P<task>\d+) in stage .*(?:Python worker (?:exited|failed)|crashed)", re.S)
"""What Spark says of a task that it has given up, whose number is that of its partition."""


def _verdicts(job_function: JobFunction, path: Path) -> _Answer:
    """Runs on a worker. What cannot be written as JSON fails here, beside its run."""
    try:
        verdicts = list(job_function(path))
        json.dumps([verdict.record() for verdict in verdicts], allow_nan=False)
        return verdicts
    except UsageError as failure:
        return _Refused(failure.message, failure.remedy)
    except Exception as failure:
        return [RunVerdict(path.name, "", "", "error", f"{type(failure).__name__}: {failure}")]
