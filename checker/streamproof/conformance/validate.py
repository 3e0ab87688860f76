"""Validation of recorded runs: every behaviour found under the given paths gets a verdict record."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from streamproof.conformance.binding import Binding, Case, Plan, Task
from streamproof.conformance.events import Event, write_ndjson, write_parquet
from streamproof.conformance.overlapping import OverlapTracker
from streamproof.conformance.packed import expect_recorded
from streamproof.conformance.tracker import Steps, Tracked, Tracker
from streamproof.system import StreamproofError, UsageError
from streamproof.system.errors import Loc
from streamproof.system.files import plain_name
from streamproof.system.foreign import visible
from streamproof.system.nearest import did_you_mean

SCHEMA = "streamproof.verdict/1"
GROUP = "streamproof.bindings"

DEFAULT = "failover"
"""The model that logs are held against where nothing else is said of them."""

DAMAGE_SHOWN = 20
"""Unreadable lines that are shown for one run."""


def binding_for(model: str) -> Binding:
    """The binding registered for a model. Raises `UsageError` where there is none."""
    found = {e.name: e for e in entry_points(group=GROUP)}
    if model not in found:
        hints = (did_you_mean(model, found), f"models with a binding: {', '.join(sorted(found)) or 'none'}")
        raise UsageError(
            f"no logs are known that speak about the model {model!r}", remedy="\n  ".join(filter(None, hints))
        )
    binding: Binding = found[model].load()
    return binding


def models_for(path: Path) -> list[str]:
    """The models that what is recorded under a path speaks about, `DEFAULT` where no binding knows its files."""
    found = [e.name for e in sorted(entry_points(group=GROUP), key=lambda e: e.name) if e.load().recognises(path)]
    return sorted(found, key=lambda name: name != DEFAULT) or [DEFAULT]


def validate_paths(
    paths: Sequence[Path],
    *,
    model: str | None = None,
    job_graph: Path | None = None,
    events_dir: Path | None = None,
    events_format: str = "ndjson",
    on_progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """One verdict record per behaviour, run after run. Without a `model`, of every model that the runs speak about.

    Raises:
        InputError: a path holds no run, or the job graph is not one of the runs'.
        SystemFailure: the events cannot be written.
    """
    found: list[tuple[str, Binding, Any]] = []
    for path in map(Path, paths):
        expect_recorded(path)
        for name in [model] if model is not None else models_for(path) if job_graph is None else [DEFAULT]:
            binding = binding_for(name)
            found += [(name, binding, run) for run in binding.runs(path)]
    several = len({name for name, *_ in found}) > 1
    records: list[dict[str, Any]] = []
    for name, binding, run in found:
        plan = binding.plan(run, job_graph)
        if on_progress is not None:
            on_progress(plan.name)
        for problem in plan.problems[:DAMAGE_SHOWN]:
            print(f"streamproof: warning: {visible(str(problem))}", file=sys.stderr)
        records += judge(plan, name)
        if events_dir is not None:
            _write_events(plan, events_dir, events_format, f".{name}" if several and name != DEFAULT else "")
    return records


def judge(plan: Plan, model: str) -> list[dict[str, Any]]:
    """The verdict records of one run."""
    order = {(e.process, e.seq): at for at, e in enumerate(plan.events)}
    read = Counter(e.trace for e in plan.events)
    records = [_Judge(plan, case, model, order, read[case.trace]).record() for case in plan.cases]
    if not records:
        records.append(_base(plan, model, "", 0) | {"verdict": "inconclusive", "reason": plan.nothing})
    return records


class _Judge:
    """Follows the behaviours of one case and folds what came of them into one record."""

    def __init__(self, plan: Plan, case: Case, model: str, order: dict[tuple[str, int], int], read: int) -> None:
        self.case, self.order = case, order
        self.base = _base(plan, model, case.trace, read) | {"title": case.title}

    def place(self, event: Event) -> int:
        """Where an event stands in the run."""
        return self.order.get((event.process, event.seq), len(self.order))

    def record(self) -> dict[str, Any]:
        """The verdict and its reasons. A rejection anywhere beats what was left open anywhere."""
        case, shared = self.case, dict[int, Steps]()
        followed: list[tuple[Task, Tracked]] = []
        for task in case.tasks:
            steps = shared.setdefault(id(task.system), Steps(task.system, task.grounding))
            follow = OverlapTracker if task.spans else Tracker
            try:
                followed.append((task, follow(task, rank=self.place, steps=steps).run()))
            except StreamproofError as error:
                return self.base | {"verdict": "error", "reason": str(error)}
        main = followed[0] if followed and case.followed else None
        matched = {(e.process, e.seq) for _, tracked in followed for e in tracked.events}
        verdict, reason, rejection = self._verdict([tracked for _, tracked in followed])
        events = self.base["events"]
        result = self.base | {
            "verdict": verdict,
            "reason": reason,
            "rejection": rejection,
            "recoveries": case.recoveries(),
            "behaviours": len(followed),
            "events": events | {"matched": len(matched), "ignored": max(events["read"] - len(matched), 0)},
        }
        if main is not None:
            system, tracked = main[0].system, main[1]
            result |= {
                "variant": system.variant,
                "parameters": {k: v for k, v in system.parameters.items() if isinstance(v, str | int | bool)},
                "actions": dict(tracked.actions),
                "model_actions": [a.name for a in system.actions if a.instances],
                "belief": tracked.largest_belief,
            }
        return result

    def _damage_before(self, event: Event | None) -> Loc | None:
        """A line that may have been an event, above the one that was rejected."""
        if event is None:
            return next(iter(self.case.damage), None)
        return next((d for d in self.case.damage if d.file == event.file and d.line < (event.line or 0)), None)

    def _verdict(self, outcomes: list[Tracked]) -> tuple[str, str | None, dict[str, Any] | None]:
        rejections = [t.rejection for t in outcomes if t.rejection is not None]
        if rejections:
            # What the log contradicts of itself is plainer than what the machine makes of it, at the same line.
            ends = len(self.order) + 1
            first = min(
                rejections,
                key=lambda r: (self.place(r.event) if r.event else ends, r.kind != "contradiction"),
            )
            damaged = self._damage_before(first.event)
            if damaged is not None:
                where = f"{damaged.file}:{damaged.line}"
                return "inconclusive", f"{where} could not be read, and then {first.message}", None
            if self.case.partial is not None:
                return "inconclusive", f"{self.case.partial}, and then {first.message}", None
            until = self.place(first.event) if first.event else ends
            prefix = len({self.place(e) for t in outcomes for e in t.events if self.place(e) < until})
            return "rejected", first.message, first.record(prefix)
        exhausted = [t.exhausted for t in outcomes if t.exhausted is not None]
        if exhausted:
            return "inconclusive", f"{exhausted[0]}; follow a shorter log, or one that says more", None
        if self.case.unjudged:
            return "inconclusive", "; ".join(self.case.unjudged), None
        return "accepted", "; ".join(self.case.notes()) or None, None


def _base(plan: Plan, model: str, trace: str, read: int) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": plan.name,
        "trace": trace,
        "unit": plan.unit,
        "model": model,
        "variant": None,
        "parameters": {},
        "verdict": "inconclusive",
        "reason": None,
        "title": "",
        "events": {"read": read, "matched": 0, "ignored": read, "unknown": plan.unknown},
        "actions": {},
        "model_actions": [],
        "recoveries": [],
        "rejection": None,
    }


def _write_events(plan: Plan, folder: Path, form: str, kind: str) -> None:
    # The file is called as the run: those who read it take one for the other.
    stem = plain_name(re.sub(r"[/\\]|^\.", "_", visible(plan.name)) + kind)
    if form == "parquet":
        write_parquet(plan.events, folder / f"{stem}.parquet")
    else:
        write_ndjson(plan.events, folder / f"{stem}.ndjson")
