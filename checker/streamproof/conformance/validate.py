"""Validation of recorded runs: read, interpret as observations, track, judge; every case gets one verdict."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from streamproof.conformance.binding import Binding, Plan, Task, Unit
from streamproof.conformance.coverage import JudgedEvents
from streamproof.conformance.event_log import EventLog
from streamproof.conformance.events import Event, write_ndjson, write_parquet
from streamproof.conformance.flink.layouts import with_pattern
from streamproof.conformance.flink.reader import read_once
from streamproof.conformance.moves import SystemMoves
from streamproof.conformance.overlapping import OverlapTracker
from streamproof.conformance.packed import expect_recorded
from streamproof.conformance.run_verdict import Followed, Rejection, RunVerdict, Tracked
from streamproof.conformance.tracker import Tracker
from streamproof.entries import BINDINGS, every
from streamproof.language.model import Model
from streamproof.language.spec import Spec
from streamproof.registry import find_binding, is_registered
from streamproof.system import StreamproofError, System, UsageError
from streamproof.system.errors import Loc, did_you_mean
from streamproof.system.files import plain_name
from streamproof.system.foreign import visible

NOTHING = "no event of the run says anything about the model"
ALL = "all"
"""In place of a model's name: all models."""
DAMAGE_SHOWN = 20
"""Maximum number of unreadable lines shown for one run."""


def binding_for(model: str) -> Binding:
    """The binding registered for a model, or the one in a file, ``file.py:NAME`` or ``package.module:NAME``; for other
    models, that of event logs. Raises `UsageError` for an unknown name, and as `registry.find_binding`."""
    found = every(BINDINGS)
    if model in found:
        binding: Binding = found[model].load()
        return binding
    if not is_registered(model) and not model.partition(":")[0].endswith(".py") and ":" not in model:
        hints = (
            did_you_mean(model, found),
            f"models with a binding: {', '.join(found) or 'none'}",
            "for event logs, any bundled model, or a file.py with a model or a BINDING",
        )
        raise UsageError(f"no model or binding {model!r}", remedy="\n  ".join(filter(None, hints)))
    own = find_binding(model)
    if isinstance(own, Spec):
        return EventLog(own)
    if not callable(getattr(own, "plan", None)):
        raise UsageError(f"{model} is a {type(own).__name__}, not a binding", remedy="BINDING = EventLog(MyModel)")
    return cast(Binding, own)


def bindings_for(path: Path, *, with_graph: bool = False, requested: bool = False) -> dict[str, Binding]:
    """The bindings that recognise the files under a path, by model, defaults first; the defaults alone if none does or
    a job graph is given. `requested`: all that recognise them. Raises `UsageError` if there is none."""
    known: dict[str, Binding] = {name: entry.load() for name, entry in every(BINDINGS).items()}
    defaults = [name for name, binding in known.items() if binding.default]
    asked = {name: binding for name, binding in known.items() if requested or not (binding.on_request or with_graph)}
    found = [name for name, binding in asked.items() if binding.recognises(path)]
    if not found and not defaults:
        remedy = f"name a model with --model: {', '.join(known)}" if known else "install a package that has one"
        raise UsageError(f"no binding recognises {path}", remedy=remedy)
    return {name: known[name] for name in sorted(found or defaults, key=lambda name: name not in defaults)}


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
) -> list[RunVerdict]:
    """One verdict per case, run after run. Without a `model`, for the models that the files are usually validated
    against; with `ALL`, for every model whose binding recognises them.

    `pattern` is the layout of the logs' lines, as a pattern of log4j or logback; without it, it is recognised. The events
    are added to `coverage`.

    Raises:
        InputError: a path holds no run, or the job graph is not one of the runs'.
        SystemFailure: the events cannot be written.
    """
    with with_pattern(pattern), read_once():
        return _validated(paths, model, job_graph, events_dir, events_format, coverage, on_progress)


def _validated(
    paths: Sequence[Path],
    model: str | None,
    job_graph: Path | None,
    events_dir: Path | None,
    events_format: str,
    coverage: JudgedEvents | None,
    on_progress: Callable[[str], None] | None,
) -> list[RunVerdict]:
    found: list[tuple[int, str, Binding, Any]] = []
    places: dict[tuple[int, str], int] = {}
    for number, path in enumerate(map(Path, paths)):
        expect_recorded(path, archives=True)
        with_graph = job_graph is not None
        if model is None or model == ALL:
            bindings = bindings_for(path, with_graph=with_graph, requested=model == ALL)
        else:
            bindings = {model: binding_for(model)}
        if not any(getattr(binding, "default", False) for binding in bindings.values()):
            expect_recorded(path)
        runs = [(name, binding, run) for name, binding in bindings.items() for run in binding.runs(path)]
        for *_, run in runs:
            places.setdefault((number, _name_of(run)), len(places))
        found += sorted(
            ((places[number, _name_of(run)], name, binding, run) for name, binding, run in runs),
            key=lambda item: item[0],
        )
    several = len({name for _, name, *_ in found}) > 1
    verdicts: dict[int, list[RunVerdict]] = {}
    for place, name, binding, run in found:
        # With all models, the job graph is for those that read one.
        plan = binding.plan(run, None if model == ALL and not binding.default else job_graph)
        if on_progress is not None:
            on_progress(plan.name)
        for problem in plan.problems[:DAMAGE_SHOWN]:
            print(f"streamproof: warning: {visible(str(problem))}", file=sys.stderr)
        judged: list[Event] | None = None if coverage is None else []
        verdicts.setdefault(place, []).extend(judge(plan, name, judged))
        if coverage is not None:
            coverage.add(str(place), plan.events, judged or ())
        if events_dir is not None:
            _write_events(plan, events_dir, events_format, f".{name}" if several and not binding.default else "")
    if coverage is not None:
        coverage.finish()
    return [verdict for of_run in verdicts.values() for verdict in _marked(of_run)]


def _marked(verdicts: list[RunVerdict]) -> list[RunVerdict]:
    """The verdicts on one run, those of models without records marked if another model has some."""
    if not any(verdict.trace for verdict in verdicts):
        return verdicts
    return [verdict if verdict.trace else replace(verdict, unrecorded=True) for verdict in verdicts]


def _name_of(run: Any) -> str:
    """What several bindings call a run."""
    return str(getattr(run, "name", run))


def assert_conforms(
    log: str | os.PathLike[str], model: str | type[Model] | Spec | System | Binding
) -> list[RunVerdict]:
    """For tests: the verdicts on a log or a folder of runs, all of them accepted.

    `model` is a name as for `validate --model`, a model for event logs, or a binding. Raises `AssertionError` with the
    place and the reason of each other verdict, and `InputError` if there is no run.
    """
    place = Path(log)
    expect_recorded(place)
    binding: Any = model
    if isinstance(model, str):
        binding = binding_for(model)
    elif not callable(getattr(model, "plan", None)):
        binding = EventLog(cast(Any, model))
    name = (
        model if isinstance(model, str) else getattr(getattr(binding, "system", None), "name", type(binding).__name__)
    )
    verdicts = [v for run in binding.runs(place) for v in judge(binding.plan(run, None), name)]
    others = [v for v in verdicts if v.answer != "accepted"]
    if others:
        raise AssertionError("\n".join(f"{log}, {v.trace or v.run}: {v.answer}{_at(v)}: {v.reason}" for v in others))
    return verdicts


def _at(verdict: RunVerdict) -> str:
    event = verdict.rejection.event if verdict.rejection else None
    return f" at {event.loc}, {event}" if event is not None and event.loc is not None else ""


def judge(plan: Plan, model: str, judged: list[Event] | None = None) -> list[RunVerdict]:
    """The verdicts of one run. The events that a model accepted are added to `judged`."""
    order = {(e.process, e.seq): at for at, e in enumerate(plan.events)}
    read = Counter(e.trace for e in plan.events)
    if not plan.cases:
        nothing = RunVerdict(plan.name, "", model, "inconclusive", plan.nothing, plan.unit, unknown=plan.unknown)
        return [nothing]
    return [
        _Judge(
            case,
            order,
            RunVerdict(
                plan.name,
                case.trace,
                model,
                "inconclusive",
                unit=plan.unit,
                title=case.title,
                read=read[case.trace],
                unknown=plan.unknown,
            ),
            judged,
        ).verdict()
        for case in plan.cases
    ]


class _Judge:
    """Follows the behaviours of one case and combines the outcomes into one verdict."""

    def __init__(
        self, case: Unit, order: dict[tuple[str, int], int], open_verdict: RunVerdict, judged: list[Event] | None
    ) -> None:
        self.case, self.order, self.open, self.judged = case, order, open_verdict, judged

    def place(self, event: Event) -> int:
        """The position of an event in the run."""
        return self.order.get((event.process, event.seq), len(self.order))

    def verdict(self) -> RunVerdict:
        """The verdict and its reasons. Any rejection takes precedence over any inconclusive outcome."""
        case = self.case
        try:
            outcomes = self._outcomes()
        except StreamproofError as error:
            return replace(self.open, answer="error", reason=str(error))
        matched = {(e.process, e.seq) for tracked in outcomes for e in tracked.events}
        if self.judged is not None:
            self.judged += [e for tracked in outcomes for e in tracked.events]
        verdict = replace(self._judged(outcomes), matched=len(matched), behaviours=len(outcomes))
        if verdict.answer == "accepted" and not matched:
            verdict = replace(verdict, answer="inconclusive", reason=NOTHING)
        if not (outcomes and case.followed):
            return verdict
        return replace(
            verdict,
            followed=Followed.of(case.tasks[0].system, outcomes[0]),
            recoveries=case.recoveries.recoveries(outcomes[0]) if case.recoveries else (),
        )

    def _outcomes(self) -> list[Tracked]:
        shared: dict[int, SystemMoves] = {}

        def outcome(task: Task) -> Tracked:
            if id(task.system) not in shared:
                shared[id(task.system)] = SystemMoves(task.system, task.grounding)
            follow = OverlapTracker if task.spans else Tracker
            return follow(task, rank=self.place, steps=shared[id(task.system)]).run()

        return [outcome(task) for task in self.case.tasks]

    def _damage_before(self, event: Event | None) -> Loc | None:
        """An unreadable line, possibly an event, before the rejected one."""
        if event is None:
            return next(iter(self.case.damage), None)
        return next((d for d in self.case.damage if d.file == event.file and d.line < (event.line or 0)), None)

    def _judged(self, outcomes: list[Tracked]) -> RunVerdict:
        rejections = [t.rejection for t in outcomes if t.rejection is not None]
        if rejections:
            return self._rejected(outcomes, rejections)
        exhausted = [t.exhausted for t in outcomes if t.exhausted is not None]
        if exhausted:
            return replace(self.open, reason=f"{exhausted[0]}; follow a shorter log, or one with more detail")
        if self.case.unjudged:
            return replace(self.open, reason="; ".join(self.case.unjudged))
        return replace(self.open, answer="accepted", reason="; ".join(self.case.notes) or None)

    def _rejected(self, outcomes: list[Tracked], rejections: list[Rejection]) -> RunVerdict:
        # A contradiction within the log is reported in preference to one with the machine, at the same line.
        ends = len(self.order) + 1
        first = min(rejections, key=lambda r: (self.place(r.event) if r.event else ends, r.kind != "contradiction"))
        damaged = self._damage_before(first.event)
        missing = f"{damaged.file}:{damaged.line} could not be read" if damaged is not None else self.case.partial
        if missing is not None:
            return replace(self.open, reason=f"{missing}, and then {first.message}")
        until = self.place(first.event) if first.event else ends
        prefix = len({self.place(e) for t in outcomes for e in t.events if self.place(e) < until})
        return replace(self.open, answer="rejected", reason=first.message, rejection=replace(first, index=prefix))


def _write_events(plan: Plan, folder: Path, form: str, kind: str) -> None:
    # The file has the name of the run, which readers treat as equivalent; a second file about a run states it.
    stem = plain_name(re.sub(r"[/\\]|^\.", "_", visible(plan.name)) + kind)
    events = [replace(event, run=plan.name) for event in plan.events] if kind else plan.events
    if form == "parquet":
        write_parquet(events, folder / f"{stem}.parquet")
    else:
        write_ndjson(events, folder / f"{stem}.ndjson")
