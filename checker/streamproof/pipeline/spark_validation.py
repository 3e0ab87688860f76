"""Validation of many recorded runs at once: one Spark task per run, largest first, with the function given by the caller."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from streamproof.base.errors import UsageError
from streamproof.base.files import VERDICTS, write
from streamproof.conformance.run_verdict import RunVerdict
from streamproof.conformance.verdict_counts import VerdictCounts
from streamproof.pipeline.executors import Lost, SparkExecutor
from streamproof.pipeline.session import ATTEMPTS, LOCAL, Progress, require_pyspark

T = TypeVar("T")
J = TypeVar("J")
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
    _expect_portable(job_function)
    answers: dict[int, _Answer] = {}
    # The largest first, so that none remains alone at the end; one task per run, as runs differ widely in length.
    order = sorted(range(len(runs)), key=lambda number: -getattr(runs[number], "size", 0))
    for place, answer in _streamed(
        partial(_verdicts, job_function), [runs[number] for number in order], len(runs), master, progress
    ):
        number = order[place]
        answers[number] = [_lost(runs[number])] if isinstance(answer, Lost) else answer
    verdicts: list[RunVerdict] = []
    for number in range(len(runs)):
        answer = answers[number]
        if isinstance(answer, _Refused):
            raise UsageError(answer.message, remedy=answer.remedy)
        verdicts += answer
    return verdicts


def validate_into(
    folder: Path,
    runs: Sequence[NamedRun],
    job_function: JobFunction,
    master: str = LOCAL,
    progress: Progress | None = None,
) -> VerdictCounts:
    """As `validate_many`, but the workers write the verdicts as NDJSON into files ``part-*.ndjson`` of a folder, which all
    processes share, and only their numbers come back."""
    _expect_portable(job_function)
    place = folder.absolute()
    place.mkdir(parents=True, exist_ok=True)
    total = VerdictCounts()
    groups = _groups(runs)
    first = 0
    while groups:
        again: list[list[NamedRun]] = []
        jobs = [(place / f"part-{first + number:06}.ndjson", group) for number, group in enumerate(groups)]
        for number, counts in _streamed(
            partial(_write_verdicts, job_function), jobs, sum(map(len, groups)), master, progress
        ):
            if isinstance(counts, _Refused):
                raise UsageError(counts.message, remedy=counts.remedy)
            path, group = jobs[number]
            if not isinstance(counts, Lost):
                total += counts
            elif len(group) > 1:  # which of them it was shows one by one
                again += [[run] for run in group]
            else:
                total += _write(path, [_lost(group[0])])
        first += len(groups)
        groups = again
    return total


GROUP_RUNS, GROUP_BYTES = 100, 1 << 20
"""Limits of one task: a task and a file for each of many small runs would cost more than the runs."""


def _groups(runs: Sequence[NamedRun]) -> list[list[NamedRun]]:
    """Runs of one task each, the largest first."""
    groups: list[list[NamedRun]] = []
    room = 0
    for run in sorted(runs, key=lambda run: -getattr(run, "size", 0)):
        size = getattr(run, "size", 0)
        if not groups or size > room or len(groups[-1]) == GROUP_RUNS:
            groups.append([])
            room = GROUP_BYTES
        groups[-1].append(run)
        room -= size
    return groups


def _streamed(
    work: Callable[[J], T], jobs: Sequence[J], runs: int, master: str, progress: Progress | None
) -> Iterator[tuple[int, T | Lost]]:
    with ExitStack() as stack:
        executor = SparkExecutor(master, stack, doing="validating runs")
        with executor.reporting(progress, f"validating {runs} runs on {master}", len(jobs)):
            yield from executor.stream(work, jobs)


def _expect_portable(job_function: JobFunction) -> None:
    """Raises `UsageError` if a function cannot be sent to workers, and `SystemFailure` without Spark."""
    require_pyspark()
    from pyspark.serializers import CloudPickleSerializer

    try:
        CloudPickleSerializer().dumps(job_function)  # type: ignore[no-untyped-call]
    except Exception as failure:
        raise UsageError(
            f"{getattr(job_function, '__qualname__', job_function)!s} cannot be sent to Spark workers: {failure}",
            remedy="give a function of a module, and let it open files, solvers and sessions itself",
        ) from failure


_Answer = list[RunVerdict] | _Refused


def _lost(run: NamedRun) -> RunVerdict:
    reason = f"the process that validated it died {ATTEMPTS} times; it may have run out of memory"
    return RunVerdict(run.name, "", "", "error", reason)


def _write_verdicts(job_function: JobFunction, job: tuple[Path, Sequence[NamedRun]]) -> VerdictCounts | _Refused:
    """Runs on a worker."""
    path, runs = job
    verdicts: list[RunVerdict] = []
    for run in runs:
        answer = _verdicts(job_function, run)
        if isinstance(answer, _Refused):
            return answer
        verdicts += answer
    return _write(path, verdicts)


def _write(path: Path, verdicts: Sequence[RunVerdict]) -> VerdictCounts:
    if verdicts:
        write(path, "".join(json.dumps(verdict.record()) + "\n" for verdict in verdicts), VERDICTS)
    return VerdictCounts.of(verdicts)


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
