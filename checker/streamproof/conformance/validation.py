"""Validation of recorded runs: found, judged by one process or several, one verdict for every case.

Of several processes each takes the largest run that is left, so that none remains alone at the end. Archives are unpacked
once, before. Results are ordered by run, whichever ends first, so that they are those of one process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from streamproof.base.processes import Ended, can_fork, in_processes
from streamproof.base.reading import with_progress
from streamproof.conformance.binding import Binding
from streamproof.conformance.coverage import JudgedEvents
from streamproof.conformance.event_log import EventLog
from streamproof.conformance.flink.layouts import with_pattern
from streamproof.conformance.found_runs import (
    FoundRun,
    JudgedRun,
    RunReading,
    ValidationRequest,
    binding_for,
    expect_recorded,
    found_runs,
    judge_readings,
)
from streamproof.conformance.judging import judge
from streamproof.conformance.run_verdict import RunVerdict
from streamproof.language.declare.model import Model
from streamproof.language.declare.spec import Spec
from streamproof.system import StreamproofError, System, UsageError

Found = tuple[FoundRun, Sequence[RunReading]]


def judge_in_processes(
    found: Sequence[Found], request: ValidationRequest, processes: int, on_progress: Callable[[str], None] | None = None
) -> Iterator[JudgedRun]:
    """What was judged of each run, in their order. A process that dies gives its own run the verdict `error`.

    Raises what the first run that cannot be judged raises, whatever it is, after what was judged before it, and
    `SystemFailure` if no process can be started.
    """

    def judged(number: int) -> JudgedRun | StreamproofError:
        run, readings = found[number]
        try:
            return judge_readings(readings, request, again=run.again, alone=run.alone)
        except StreamproofError as error:
            return error

    numbers = sorted(range(len(found)), key=lambda number: -found[number][0].size)
    results: dict[int, JudgedRun | StreamproofError | Ended | None] = {}
    due = 0
    for number, result in in_processes(judged, numbers, processes, "validation"):
        results[number] = result
        if on_progress is not None:
            on_progress(f"{due + len(results)} of {len(found)} runs")
        while due in results:
            now, (run, readings) = results.pop(due), found[due]
            if isinstance(now, StreamproofError):
                raise now
            if isinstance(now, Ended):
                reason = f"the process that validated it ended ({now.code}); it may have been out of memory"
                now = JudgedRun([RunVerdict(run.name, "", "", "error", reason)])
            yield judge_readings(readings, request, again=run.again, alone=run.alone) if now is None else now
            due += 1


LARGE = 1 << 20
"""Size of all logs but the largest, in bytes, from which several processes are faster than one."""


def validate_paths(
    paths: Sequence[Path],
    *,
    model: str | None = None,
    job_graph: Path | None = None,
    events_dir: Path | None = None,
    events_format: str = "ndjson",
    pattern: str | None = None,
    coverage: JudgedEvents | None = None,
    on_progress: Callable[[str], None] | None = None,
    workers: int | None = 1,
    parameters: Sequence[str] = (),
    variant: str | None = None,
) -> list[RunVerdict]:
    """One verdict per case, run after run. Without a `model`, for the models that the files are usually validated
    against; with `ALL`, for every model whose binding recognises them.

    `pattern` is the layout of the logs' lines, as a pattern of log4j or logback; without it, it is recognised. The events
    are added to `coverage`. `workers` is the number of processes, which changes no verdict; None: by the size of the logs. A
    program that has threads uses one process. `parameters`, as ``name=value``, and `variant` are those of the model of an
    event log.
    `on_progress` receives lines of progress, an empty one before warnings.

    Raises:
        InputError: a path holds no run, or a single one that cannot be read, or the job graph is not one of the runs'. One
            that cannot be read, of several under a path, has the verdict `error`.
        SystemFailure: the events cannot be written.
    """
    request = ValidationRequest(
        model, job_graph, events_dir, events_format, pattern, coverage is not None, tuple(parameters), variant
    )
    with with_pattern(pattern), with_progress(on_progress):
        found = found_runs(map(Path, paths), request)
    verdicts: list[RunVerdict] = []
    for judged in _judged(found, request, on_progress, workers):
        if judged.problems and on_progress is not None:
            on_progress("")
        for problem in judged.problems:
            print(f"streamproof: warning: {problem}", file=sys.stderr)
        verdicts += judged.verdicts
        if coverage is not None:
            coverage.read += judged.coverage.read
            coverage.judged += judged.coverage.judged
            coverage.reasons |= judged.coverage.reasons
    return verdicts


def _judged(
    found: Sequence[tuple[FoundRun, list[RunReading]]],
    request: ValidationRequest,
    on_progress: Callable[[str], None] | None,
    workers: int | None,
) -> Iterator[JudgedRun]:
    """What was judged of each run, in their order."""
    sizes = [run.size for run, _ in found]
    if len(found) == 1:
        sizes *= 2  # it is divided by its tasks
    processes = fitting_workers(sizes) if workers is None else workers
    if min(processes, len(found)) > 1 and can_fork():
        processes = min(processes, len(found))
        from streamproof.conformance.validation import judge_in_processes

        yield from judge_in_processes(found, request, processes, on_progress)
        return
    for run, readings in found:
        with with_progress(on_progress):
            judged = judge_readings(
                readings, request, on_progress, again=run.again, alone=run.alone, processes=processes
            )
        yield judged


def fitting_workers(sizes: Sequence[int]) -> int:
    """The number of processes for runs of these sizes, in bytes: one, or one for each processor if that is faster."""
    shared = sum(sizes) - max(sizes, default=0)
    return 1 if shared < LARGE else len(os.sched_getaffinity(0))


def verdicts_on(
    log: str | os.PathLike[str],
    model: str | type[Model] | Model | Spec | System | Binding,
    variant: str | None = None,
) -> list[RunVerdict]:
    """The verdicts on a log or a folder of runs. `model` is a name as for `validate --model`, a model for event logs, or a
    binding; `variant` that of a model for event logs. Raises `InputError` if there is no run."""
    place = Path(log)
    expect_recorded(place)
    binding: Any = model
    if isinstance(model, str):
        binding = binding_for(model, path=place, variant=variant)
    elif isinstance(model, Model):
        binding = EventLog(type(model), **model.settings())
    elif not callable(getattr(model, "plan", None)):
        binding = EventLog(cast(Any, model))
    if variant is not None and not isinstance(model, str):
        if not isinstance(binding, EventLog):
            raise UsageError(
                "a variant needs a model for event logs", remedy="give the model, or leave out the variant"
            )
        binding = binding.chosen(variant, ())
    name = (
        model if isinstance(model, str) else getattr(getattr(binding, "system", None), "name", type(binding).__name__)
    )
    return [v for run in binding.runs(place) for v in judge(binding.plan(run, None), name)]


def assert_conforms(
    log: str | os.PathLike[str], model: str | type[Model] | Spec | System | Binding, variant: str | None = None
) -> list[RunVerdict]:
    """For tests: the verdicts on a log or a folder of runs, all of them accepted.

    `model` and `variant` are as for `validate`: a name, a model for event logs, or a binding. Raises `AssertionError` with
    the place and the reason of each other verdict, and `InputError` if there is no run.
    """
    verdicts = verdicts_on(log, model, variant)
    others = [v for v in verdicts if v.answer != "accepted"]
    if others:
        raise AssertionError(
            "\n".join(f"{log}, {v.trace or v.run}: {v.answer}{_place_text(v)}: {v.reason}" for v in others)
        )
    return verdicts


def _place_text(verdict: RunVerdict) -> str:
    event = verdict.rejection.event if verdict.rejection else None
    return f" at {event.loc}, {event}" if event is not None and event.loc is not None else ""
