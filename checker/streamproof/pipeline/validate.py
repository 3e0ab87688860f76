"""Validate many recorded runs at once: one Spark task per run, the validation itself given by the caller."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

Record = Mapping[str, Any]
"""One verdict record, `streamproof.verdict/1`: plain data that JSON can carry."""

_REFUSED = "refused"
"""Key of what a worker sends back in place of a record when the input itself is wrong."""

JobFunction = Callable[[Path], Record | Sequence[Record]]
"""Validates the run stored at a path. A run may hold several jobs, hence several records."""


def validate_many(
    run_paths: Sequence[Path],
    job_function: JobFunction,
    master: str = LOCAL,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Map `job_function` over `run_paths` on Spark; the records come back in the order of the paths.

    `job_function` must be picklable, and on a cluster the paths must name the same files on every worker. A run on which
    it raises gets a record with verdict `error` and the exception as reason: one broken run never costs the others.
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
    records = [json.loads(text) for answer in answers for text in answer]
    refused = next((r[_REFUSED] for r in records if _REFUSED in r), None)
    if refused is not None:
        raise UsageError(refused["message"], remedy=refused["remedy"])
    return records


def _answers(context: SparkContext, job_function: JobFunction, paths: Sequence[str]) -> list[list[str]]:
    """The records of every path. A path on which worker processes die, however often, has an error for a record; the
    others are not done again."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.accumulators import AccumulatorParam
    from pyspark.errors import PySparkException

    class Done(AccumulatorParam[dict[int, list[str]]]):
        """What is done, which the driver hears of whatever becomes of the others."""

        def zero(self, value: dict[int, list[str]]) -> dict[int, list[str]]:
            return {}

        def addInPlace(self, some: dict[int, list[str]], more: dict[int, list[str]]) -> dict[int, list[str]]:
            return {**some, **more}

    answers: dict[int, list[str]] = {}
    while waiting := [number for number in range(len(paths)) if number not in answers]:
        done = context.accumulator({}, Done())

        def task(numbers: Iterable[int], done: Any = done) -> Iterator[int]:
            for number in numbers:
                done.add({number: _records(job_function, Path(paths[number]))})
                yield number

        try:
            # One task per run: runs differ widely in length, so fixed groups of them would leave cores idle.
            context.parallelize(waiting, len(waiting)).mapPartitions(task).collect()
        except (PySparkException, Py4JError) as failure:
            died = _WORKER_DIED.search(str(failure))
            if died is None:
                raise
            lost = waiting[int(died["task"])]
            reason = f"the process that validated it died {ATTEMPTS} times; it may have run out of memory"
            answers[lost] = [json.dumps(error_record(Path(paths[lost]).name, reason))]
        answers |= done.value
    return [answers[number] for number in range(len(paths))]


_WORKER_DIED = re.compile(r"Task (?P<task>\d+) in stage .*(?:Python worker (?:exited|failed)|crashed)", re.S)
"""What Spark says of a task that it has given up, whose number is that of its partition."""


def error_record(run: str, reason: str) -> dict[str, Any]:
    """The verdict record of a run that could not be validated: no events, no actions, only the reason."""
    return {
        "schema": "streamproof.verdict/1",
        "run": run,
        "trace": "",
        "model": "",
        "variant": None,
        "parameters": {},
        "verdict": "error",
        "reason": reason,
        "events": {"read": 0, "matched": 0, "ignored": 0, "unknown": 0},
        "actions": {},
        "model_actions": [],
        "recoveries": [],
        "rejection": None,
    }


def _records(job_function: JobFunction, path: Path) -> list[str]:
    """Runs on a worker. JSON text, not objects, goes back: what cannot be JSON fails here, beside its run."""
    try:
        answer = job_function(path)
        records = [answer] if isinstance(answer, Mapping) else list(answer)
        return [json.dumps(dict(record), allow_nan=False) for record in records]
    except UsageError as failure:
        return [json.dumps({_REFUSED: {"message": failure.message, "remedy": failure.remedy}})]
    except Exception as failure:
        return [json.dumps(error_record(path.name, f"{type(failure).__name__}: {failure}"))]
