"""Validation of recorded runs: every behaviour found under the given paths gets a verdict record."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from streamproof.conformance.binding import Binding, Plan, Task
from streamproof.conformance.events import write_ndjson, write_parquet
from streamproof.conformance.tracker import Tracked, Tracker, as_record
from streamproof.system import StreamproofError, SystemFailure, UsageError

SCHEMA = "streamproof.verdict/1"
GROUP = "streamproof.bindings"


def binding_for(model: str) -> Binding:
    """The binding registered for a model. Raises `UsageError` where there is none."""
    found = {e.name: e for e in entry_points(group=GROUP)}
    if model not in found:
        known = ", ".join(sorted(found)) or "none"
        raise UsageError(
            f"no logs are known that speak about the model {model!r}", remedy=f"models with a binding: {known}"
        )
    binding: Binding = found[model].load()
    return binding


def validate_paths(
    paths: Sequence[Path],
    *,
    model: str = "failover",
    job_graph: Path | None = None,
    events_dir: Path | None = None,
    events_format: str = "ndjson",
    on_progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """One verdict record per behaviour, run after run.

    Raises:
        InputError: a path holds no run, or the job graph is not one of the runs'.
        SystemFailure: the events cannot be written.
    """
    binding = binding_for(model)
    runs = [run for path in paths for run in binding.runs(Path(path))]
    if events_dir is not None:
        _prepare(events_dir)
    records: list[dict[str, Any]] = []
    for run in runs:
        plan = binding.plan(run, job_graph)
        if on_progress is not None:
            on_progress(plan.name)
        records += judge(plan, model)
        if events_dir is not None:
            _write_events(plan, events_dir, events_format)
    return records


def judge(plan: Plan, model: str) -> list[dict[str, Any]]:
    """The verdict records of one run."""
    records = [follow(plan, task, model) for task in plan.tasks]
    for settled in plan.settled:
        records.append(_base(plan, model, settled["trace"]) | settled)
    if not records:
        reason = "the run's logs name no behaviour to follow"
        records.append(_base(plan, model, "") | {"verdict": "inconclusive", "reason": reason})
    return records


def follow(plan: Plan, task: Task, model: str) -> dict[str, Any]:
    """Tracks one behaviour and says what came of it."""
    base = _base(plan, model, task.trace)
    try:
        tracked = Tracker(task).run()
    except StreamproofError as error:
        return base | {"verdict": "error", "reason": str(error), "title": task.title}
    verdict, reason = _verdict(tracked, task)
    record = base | {
        "variant": task.system.variant,
        "parameters": {k: v for k, v in task.system.parameters.items() if isinstance(v, str | int | bool)},
        "verdict": verdict,
        "reason": reason,
        "title": task.title,
        "actions": dict(tracked.actions),
        "model_actions": [a.name for a in task.system.actions if a.instances],
        "recoveries": task.recoveries(),
        "rejection": as_record(tracked.rejection),
        "belief": tracked.largest_belief,
    }
    matched = tracked.matched
    record["events"] = base["events"] | {"matched": matched, "ignored": max(base["events"]["read"] - matched, 0)}
    return record


def _verdict(tracked: Tracked, task: Task) -> tuple[str, str | None]:
    if tracked.rejection is not None:
        return "rejected", tracked.rejection.message
    if tracked.exhausted is not None:
        return "inconclusive", f"{tracked.exhausted}; follow a shorter log, or one that says more"
    if task.unjudged:
        return "inconclusive", "; ".join(task.unjudged)
    return "accepted", None


def _base(plan: Plan, model: str, trace: str) -> dict[str, Any]:
    read = sum(1 for e in plan.events if e.trace == trace)
    return {
        "schema": SCHEMA,
        "run": plan.name,
        "trace": trace,
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


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemFailure(f"cannot write to {folder}: {error.strerror}", remedy="choose another folder") from None


def _write_events(plan: Plan, folder: Path, form: str) -> None:
    stem = re.sub(r"[^\w.-]", "_", plan.name)
    if form == "parquet":
        write_parquet(plan.events, folder / f"{stem}.parquet")
    else:
        write_ndjson(plan.events, folder / f"{stem}.ndjson")
