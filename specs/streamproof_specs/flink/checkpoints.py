"""The binding of the checkpoint lines of Flink's JobManager, at INFO, to what they show of `checkpoints`.

Each JobManager's lines about a job are one behaviour. The first one is followed from the beginning of the job, if the log
has it; a later one may continue from what an earlier one stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from streamproof.conformance import (
    Constraint,
    Event,
    Instance,
    Move,
    Observation,
    Plan,
    Rules,
    StateReader,
    Stream,
    Task,
    Unit,
)
from streamproof.conformance.flink import FlinkRun, problem_lines, read_run
from streamproof_specs.flink.checkpoint_machine import RecordedCheckpoints
from streamproof_specs.flink.scope import damage, doubted, outside
from streamproof_specs.flink.with_runtime import FlinkOrRuntimeLogs
from streamproof_specs.runtime import checkpoints as runtime

LINES = frozenset({"ckpt.trigger", "ckpt.complete", "ckpt.failed", "ckpt.expired", "ckpt.declined", "ckpt.none",
                   "ckpt.restore", "ckpt.savepoint", "job.transition", "job.terminal"})  # fmt: skip
_OF_CHECKPOINTS = LINES - {"ckpt.none", "job.transition", "job.terminal"}
"""Lines that only jobs with checkpoints have."""
MOST_PENDING = 32
"""Largest number of checkpoints of a job that are pending at a time."""


class FlinkCheckpoints(FlinkOrRuntimeLogs):
    """Follows the checkpoints of every job of a recorded Flink run.

    Event logs of the reference runtime are followed by a binding of their own.
    """

    on_request = True

    def reads(self, path: Path) -> bool:
        """Whether a log of the runtime is of a job with checkpoints."""
        return runtime.recognises(path)

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """One case for each job with checkpoints. Raises `InputError` for unreadable logs."""
        if self.is_of_runtime(run, job_graph):
            return runtime.plan(run)
        logged = read_run(run)
        cases = tuple(doubted(case, logged) for job in logged.jobs for case in _cases(logged, job))
        return Plan(
            logged.name,
            cases,
            logged.merged(),
            sum(logged.unknown.values()),
            problem_lines(logged.problems),
            nothing="no line of the run speaks of a checkpoint",
        )


def _cases(run: FlinkRun, job: str) -> Iterable[Unit]:
    events = run.of_job(job)
    lines: dict[str, list[Event]] = {}
    begun: dict[str, bool] = {}
    for event in events:
        if event.event in LINES:
            # The first line of a job is about its execution graph, before anything is restored.
            begun.setdefault(event.process, False)
            lines.setdefault(event.process, []).append(event)
        elif event.event == "job.graph":
            begun.setdefault(event.process, True)
    if not any(e.event in _OF_CHECKPOINTS for own in lines.values() for e in own):
        return
    reasons = outside(run, job, [e for e in events if not e.event.startswith("ckpt.")])
    several = len(lines) > 1
    places = max(map(_most_pending, lines.values()))
    if places > MOST_PENDING:
        why = f"{places} checkpoints are pending at a time: more than {MOST_PENDING} are not followed"
        yield Unit(job, run.jobs[job], (), False, (why,))
        return
    tasks = tuple(
        followed(job, own, places, late=several or reasons.beginning or not begun[process], shared=several)
        for process, own in lines.items()
    )
    partial = reasons.texts[0] if reasons.beginning and reasons.texts else None
    yield Unit(job, run.jobs[job], tasks, damage=damage(run), partial=partial)


def followed(job: str, events: Sequence[Event], places: int, *, late: bool, shared: bool) -> Task:
    """The checkpoint lines of one JobMaster as a behaviour. `places`: the largest number of checkpoints that are pending."""
    largest = max((e.args.get("checkpoint", 0) for e in events), default=0)
    rules = _rules(largest, places, late, shared)
    observations = tuple(_observation(event, places, late) for event in events)
    return Task(job, rules.system, (Stream(observations),), explainer=_CheckpointExplainer(), grounding=rules.instances)


def _most_pending(events: Iterable[Event]) -> int:
    """The largest number of checkpoints that may be pending at a time: one whose end has no line stays pending."""
    pending: set[int] = set()
    most = 1
    for event in events:
        checkpoint = event.args.get("checkpoint", 0)
        if event.event == "ckpt.trigger":
            pending.add(checkpoint)
        elif event.event in ("ckpt.complete", "ckpt.failed"):
            pending.discard(checkpoint)
        most = max(most, len(pending))
    return most


@lru_cache(maxsize=64)
def _rules(ids: int, places: int, late: bool, shared: bool) -> Rules:
    return Rules(RecordedCheckpoints(ids=max(1, ids), places=places, late=late, shared=shared))


def _observation(event: Event, places: int, late: bool) -> Observation:
    """The meaning of one line."""
    c = event.args.get("checkpoint", 0)

    def at(action: str, **args: Any) -> list[tuple[Move, ...]]:
        return [(Move(action, {"c": c, "p": p, **args}),) for p in range(places)]

    earlier: list[tuple[Move, ...]] = []
    match event.event:
        case "ckpt.trigger":
            moves = [
                *at("trigger", savepoint=event.args["kind"].startswith("Savepoint")),
                (Move("announce", {"c": c}),),
            ]
        case "ckpt.complete":
            earlier = [(Move("end_earlier", {"c": c, "stored": stored}),) for stored in (True, False)]
            moves = at("complete")
        case "ckpt.failed":
            unseen = [(*create, *abort) for create, abort in zip(at("create"), at("abort"), strict=True)]
            earlier = [(Move("end_earlier", {"c": c, "stored": False}),)]
            moves = [*at("abort"), *unseen]
        case "ckpt.restore" | "ckpt.none":
            moves = [(Move("restore", {"c": c}),), *([(Move("load", {"c": c}),)] if c else [])]
        case "ckpt.savepoint":
            moves = [(Move("start_from_savepoint"),)]
        case "job.transition":
            moves = [(Move("change_job"),)]
        case "job.terminal":
            moves = [(Move("end"),)]
        case _:
            return Observation(event, before=(_is_pending(c, late),))
    return Observation(event, (*moves, *earlier))


def _is_pending(c: int, late: bool) -> Constraint:
    """Of the line before the end of a checkpoint, which states the cause."""

    def test(look: StateReader) -> bool:
        return c in _open(look) or c > look("last") or (late and (look("first") == 0 or c < look("first")))

    return Constraint(f"checkpoint {c} is not pending", test)


def _open(look: StateReader) -> dict[int, str]:
    """The pending checkpoints."""
    return {
        c: status for c, status in zip(look("pending"), look("status"), strict=True) if status not in ("FREE", "STRAY")
    }


class _CheckpointExplainer:
    """Explanations in terms of the coordinator."""

    def why_not(self, move: Move, look: StateReader) -> str | None:
        """Why a line about a checkpoint is wrong."""
        c = move.args.get("c", 0)
        pending = _open(look)
        match move.action:
            case "trigger" | "create" if c <= look("last"):
                return f"checkpoint {c} is triggered after checkpoint {look('last')}: ids rise"
            case "complete" if pending.get(c) == "SUBSUMED":
                return f"checkpoint {c} completes after a later one, {look('latest')}, which subsumed it"
            case "complete" | "abort" if c not in pending:
                how = "completes" if move.action == "complete" else "fails"
                return f"checkpoint {c} {how}, but it is not pending"
            case "restore" | "load" | "end" if pending:
                what = "the job has ended" if move.action == "end" else "tasks are restored"
                return f"{what} while checkpoint {min(pending)} is pending: a line about its end is missing"
            case "restore" | "load":
                latest = f"checkpoint {look('latest')}" if look("latest") else "none"
                return f"the job is restored from {f'checkpoint {c}' if c else 'no checkpoint'}; the latest one is {latest}"
        return None

    def expected(self, enabled: Sequence[Instance], look: StateReader, event: Event) -> Iterable[tuple[int, str]]:
        """Lines about the pending checkpoints, and the restore of the latest one."""
        pending = _open(look)
        for c, status in pending.items():
            yield 1, f"Failed to trigger or complete checkpoint {c}"
            if status == "PENDING":
                yield 1, f"Completed checkpoint {c}"
        if not pending:
            latest = look("latest")
            yield 2, f"Restoring job from Checkpoint {latest}" if latest else "No checkpoint found during restore."
        yield 3, f"Triggering checkpoint {look('last') + 1}"


BINDING = FlinkCheckpoints()
