"""Validate many recorded runs at once: one Spark task per run, the validation itself given by the caller."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamproof.pipeline.session import LOCAL, Progress, reporting, require_pyspark, spark_failures, spark_session
from streamproof.system.errors import UsageError

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
    Raises `UsageError` when it says that what it was given is wrong, or cannot be sent to workers, and `SystemFailure`
    when a worker process dies.
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
            remedy="Give a function of a module, and let it open files, solvers and sessions itself.",
        ) from failure

    def task(paths: Iterable[str]) -> Iterator[list[str]]:
        for path in paths:
            yield _records(job_function, Path(path))

    doing = f"validating {len(run_paths)} runs on {master}"
    with spark_session(master) as spark, reporting(spark, progress, doing), spark_failures(doing):
        # One task per run: runs differ widely in length, so fixed groups of them would leave cores idle.
        runs = spark.sparkContext.parallelize([str(path) for path in run_paths], len(run_paths))
        answers = runs.mapPartitions(task).collect()
    records = [json.loads(text) for answer in answers for text in answer]
    refused = next((r[_REFUSED] for r in records if _REFUSED in r), None)
    if refused is not None:
        raise UsageError(refused["message"], remedy=refused["remedy"])
    return records


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
