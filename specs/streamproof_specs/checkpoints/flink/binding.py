"""The binding of the checkpoint lines of Flink's JobManager, at INFO, to what they show of `checkpoints`.

Each JobManager's lines about a job are one behaviour. It begins with the job if the log has its submission; otherwise it may
continue from what was stored before. What is missing before the first line explains checkpoints from before it, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import inf
from pathlib import Path
from types import MappingProxyType
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
from streamproof.conformance.flink import (
    NO_CHECKPOINT,
    RESTORES,
    FlinkRun,
    Process,
    missing_restores,
    problem_lines,
    read_run,
)
from streamproof_models.checkpoints.views import CheckpointViews
from streamproof_specs.flink.scope import FlinkLogs, contradicted, damage, doubted, outside
from streamproof_specs.flink.versions import is_at_least

LINES = frozenset({"ckpt.trigger", "ckpt.complete", "ckpt.failed", "ckpt.expired", "ckpt.declined", "ckpt.none",
                   "ckpt.restore", "ckpt.savepoint", "job.transition", "job.terminal"})  # fmt: skip
_OF_CHECKPOINTS = LINES - {"ckpt.none", "job.transition", "job.terminal"}
"""Lines that only jobs with checkpoints have."""
_OF_GRAPH = frozenset({"job.graph", "exec.transition", "exec.deploy", "failover.restart", "failover.global.restart"})
"""Lines of the JobMaster between which it restores checkpoints."""
MOST_PENDING = 32
"""Largest number of checkpoints of a job that are pending at a time."""


class FlinkCheckpoints(FlinkLogs):
    """Follows the checkpoints of every job of a recorded Flink run."""

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """One case for each job with checkpoints. Raises `InputError` for unreadable logs."""
        logged = read_run(run)
        cases = tuple(doubted(case, logged, "ckpt.") for job in logged.jobs for case in _cases(logged, job))
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
    masters: dict[str, list[Event]] = {}
    for event in events:
        if event.event in LINES or event.event in _OF_GRAPH:
            masters.setdefault(event.process, []).append(event)
    lines = {
        name: [e for e in own if e.event in LINES]
        for name, own in masters.items()
        if any(e.event in LINES for e in own)
    }
    if not any(e.event in _OF_CHECKPOINTS for own in lines.values() for e in own):
        return
    reasons = outside(run, job, [e for e in events if not e.event.startswith("ckpt.")])
    places = max(map(_most_pending, lines.values()))
    if places > MOST_PENDING:
        why = f"{places} checkpoints are pending at a time: more than {MOST_PENDING} are not followed"
        yield Unit(job, run.jobs[job], (), False, (why,))
        return
    silent = is_at_least(run, (1, 16)) is not True
    savepoints = is_at_least(run, (1, 15)) is not True
    tasks: list[Task] = []
    opened: list[tuple[Event, str]] = []
    for name, own in lines.items():
        process = run.processes[name]
        premature = dict(_premature(process, masters[name]))
        impossible = premature | dict(_of_another_savepoint(own))
        leaders = _leaders(process, masters[name], adaptive=reasons.adaptive)
        late = process.submitted.get(job, inf) > own[0].seq and not premature
        opened += _opened([e for e in masters[name] if e.event in LINES or e.seq in leaders], leaders, late=late)
        tasks.append(
            followed(
                job,
                [e for e in masters[name] if e.event in LINES or e.seq in leaders],
                places,
                late=late,
                silent=silent,
                savepoints=savepoints,
                leaders=leaders,
                impossible=impossible,
            )
        )
    if reasons.gap is None and not reasons.announced:
        tasks += _unrestored(run, job, masters)
    unended = map(_unended, lines.values()) if is_at_least(run, (1, 16)) is None else ()
    unjudged = tuple(why for why in (*unended, *map(_unproven, lines.values())) if why is not None)
    if len(opened) == sum(e.event in _OF_CHECKPOINTS or e.event == "ckpt.none" for own in lines.values() for e in own):
        unjudged += tuple(why for _, why in opened)  # nothing else is there to judge
        opened = []
    yield Unit(
        job,
        run.jobs[job],
        tuple(tasks),
        unjudged=unjudged,
        damage=damage(run),
        partial=reasons.gap,
        opened=tuple(opened),
    )


def _premature(process: Process, events: Sequence[Event]) -> Iterator[tuple[int, str]]:
    """Lines about checkpoints of a job that is submitted, or whose execution graph is built, later in the log."""
    job = events[0].trace
    submitted = process.submitted.get(job)
    built = next((e.seq for e in events if e.event == "job.graph"), None)
    for event in events:
        if not event.event.startswith("ckpt."):
            continue
        if submitted is not None and event.seq < submitted:
            yield event.seq, f"the line is about job {job}, which is submitted later in this log"
        elif built is not None and event.seq < built and (submitted is not None or process.started):
            yield event.seq, f"the line is about job {job}, whose execution graph is built later in this log"


def _of_another_savepoint(events: Sequence[Event]) -> Iterator[tuple[int, str]]:
    """The restores of a job that starts from a savepoint, if they are of another one, by the last parts of their paths."""
    stated = None
    for event in events:
        named = re.search(r"([^/]+?)/?(?:/_metadata)?$", event.args.get("path", ""))
        if event.event == "ckpt.savepoint":
            stated = named
        elif event.event == "ckpt.restore":
            if stated and named and stated[1] != named[1]:
                yield event.seq, f"the job starts from the savepoint {stated[1]}, but is restored from {named[1]}"
            stated = None


def _leaders(process: Process, events: Sequence[Event], *, adaptive: bool) -> frozenset[int]:
    """The lines with which a JobMaster ends that is not the last one, or with which another one begins."""
    found: set[int] = set()
    built = 0
    for before, event in pairwise((None, *events)):
        if event is None:
            continue
        restarted = any(
            (-1 if before is None else before.seq) < start <= event.seq for start in process.starts if start
        )
        if event.event == "job.graph":
            built += 1
            # The adaptive scheduler builds a graph for each restart.
            restarted = restarted or (built > 1 and not adaptive)
        if restarted or event.args.get("new") == "SUSPENDED":
            found.add(event.seq)
    return frozenset(found)


def _unrestored(run: FlinkRun, job: str, masters: Mapping[str, Sequence[Event]]) -> Iterator[Task]:
    """The attempts that are scheduled although no line says from which checkpoint they are restored."""
    for name, events in masters.items():
        if not any(e.event.startswith("ckpt.") for e in events):
            continue
        unplaced = [e.seq for e in run.of_job("") if e.process == name and e.event == NO_CHECKPOINT]
        by_seq = {e.seq: e for e in events}
        whole = run.processes[name].submitted.get(job, inf) <= events[0].seq
        for since, until in missing_restores([(e.seq, e.event, e.args) for e in events], whole=whole):
            stored = any(e.event == "ckpt.complete" for e in events if e.seq < until)
            # A search for the identifier of the job omits the line that there is no checkpoint, and those about tasks.
            searched = not any(e.event.startswith("exec.") for e in events)
            if stored or not (searched or any(since < at < until for at in unplaced)):
                text = "the job goes on, but no line says which checkpoint its state is restored from"
                yield contradicted(job, by_seq[until], text)


def _opened(events: Sequence[Event], leaders: frozenset[int], *, late: bool) -> Iterator[tuple[Event, str]]:
    """The restores of which the log does not show whether they are of the latest checkpoint: it lacks what came before, or
    another JobMaster may have completed checkpoints meanwhile, and an id that may be that of a later one has no line."""
    known = not late
    begun: list[int] = []
    completed: set[int] = set()
    seen: set[int] = set()
    for at, event in enumerate(events):
        c = event.args.get("checkpoint", 0)
        if event.seq in leaders:
            known = False
            completed.clear()
        match event.event:
            case "ckpt.trigger":
                begun.append(c)
                seen.add(c)
            case "ckpt.complete":
                completed.add(c)
                seen.add(c)
            case "ckpt.failed":
                seen.add(c)
            case "ckpt.savepoint":
                known = True
            case kind if kind in RESTORES and not known and c not in completed:
                until = next((e for e in events[at + 1 :] if e.event == "ckpt.trigger" or e.seq in leaders), None)
                following = until.args.get("checkpoint") if until is not None else None
                following = min(begun, default=None) if following is None else following
                unseen = next((n for n in range(c + 1, following or 0) if n not in seen), None)
                if following is None or unseen is not None:
                    what = f"checkpoint {c} was the latest one" if c else "no checkpoint had completed"
                    lacks = "the log begins later" if unseen is None else f"no line shows how checkpoint {unseen} ended"
                    yield event, f"whether {what} when the job was restored: {lacks}"


def _unended(events: Sequence[Event]) -> str | None:
    """Why the version of Flink decides whether a line is missing."""
    pending: set[int] = set()
    for event in events:
        checkpoint = event.args.get("checkpoint", 0)
        if event.event == "ckpt.trigger":
            pending.add(checkpoint)
        elif event.event in ("ckpt.complete", "ckpt.failed"):
            pending.discard(checkpoint)
        elif event.event in (*RESTORES, "job.terminal") and pending:
            return (
                f"no line says how checkpoint {min(pending)} ends: Flink writes one from 1.16 on, and the log does not"
                " show its version"
            )
    return None


def _unproven(events: Sequence[Event]) -> str | None:
    """Why a restore may be wrong: it is of an earlier checkpoint than one that has completed, whose beginning is in no line,
    so that it may be a savepoint."""
    begun: set[int] = set()
    latest = 0
    for event in events:
        checkpoint = event.args.get("checkpoint", 0)
        if event.event == "ckpt.trigger":
            begun.add(checkpoint)
        elif event.event == "ckpt.complete" and checkpoint not in begun:
            latest = max(latest, checkpoint)
        elif event.event in RESTORES and checkpoint < latest:
            return (
                f"checkpoint {latest} completes before {checkpoint or 'none'} is restored: that is right only if it is a"
                " savepoint, and the line about its beginning is not in the log"
            )
    return None


def followed(
    job: str,
    events: Sequence[Event],
    places: int,
    *,
    late: bool = False,
    silent: bool = False,
    savepoints: bool = False,
    leaders: frozenset[int] = frozenset(),
    impossible: Mapping[int, str] = MappingProxyType({}),
) -> Task:
    """The checkpoint lines of one process as a behaviour. `places`: the largest number of checkpoints that are pending;
    `late`, `silent` and `savepoints` as in the machine. `leaders` are the positions of lines with which the JobMaster
    changes, `impossible` those of lines that no behaviour has, with the reason.
    """
    largest = max((e.args.get("checkpoint", 0) for e in events), default=0)
    rules = _rules(largest, places, late, silent, savepoints)
    observations = tuple(
        Observation(event, impossible=impossible[event.seq])
        if event.seq in impossible
        else _observation(event, places, late, event.seq in leaders)
        for event in events
    )
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
def _rules(ids: int, places: int, late: bool, silent: bool, savepoints: bool) -> Rules:
    return Rules(CheckpointViews(ids=max(1, ids), places=places, late=late, silent=silent, savepoints=savepoints))


def _observation(event: Event, places: int, late: bool, leader: bool) -> Observation:
    """The meaning of one line."""
    c = event.args.get("checkpoint", 0)

    def at(action: str, **args: Any) -> list[tuple[Move, ...]]:
        return [(Move(action, {"c": c, "p": p, **args}),) for p in range(places)]

    earlier: list[tuple[Move, ...]] = []
    begins = (Move("change_leader"),) if leader else ()
    match event.event:
        case "job.transition" | "job.terminal" | "job.graph" if leader:
            return Observation(event, (begins,))
        case "ckpt.trigger":
            moves = [
                *at("trigger", savepoint=event.args["kind"].startswith("Savepoint")),
                (Move("announce", {"c": c}),),
            ]
        case "ckpt.complete":
            earlier = [(Move("complete_earlier", {"c": c, "stored": stored}),) for stored in (True, False)]
            moves = [*at("complete", stored=True), *at("complete", stored=False)]
        case "ckpt.failed":
            unseen = [(*create, *abort) for create, abort in zip(at("create"), at("abort"), strict=True)]
            earlier = [(Move("abort_earlier", {"c": c}),)]
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
    return Observation(event, tuple((*begins, *way) for way in (*moves, *earlier)))


def _is_pending(c: int, late: bool) -> Constraint:
    """Of the line before the end of a checkpoint, which states the cause."""

    def test(look: StateReader) -> bool:
        return c in _open(look) or c > look("last") or (late and (look("first") == 0 or c < look("first")))

    return Constraint(f"checkpoint {c} is not pending", test)


def _open(look: StateReader) -> dict[int, str]:
    """The pending checkpoints."""
    places = zip(look("pending"), look("checkpoint"), look("stray"), strict=True)
    return {c: state for c, state, stray in places if state != "NONE" and not stray}


class _CheckpointExplainer:
    """Explanations in terms of the coordinator."""

    def why_not(self, move: Move, look: StateReader) -> str | None:
        """Why a line about a checkpoint is wrong."""
        c = move.args.get("c", 0)
        pending = _open(look)
        match move.action:
            case "trigger" | "create" if c <= look("last"):
                return f"checkpoint {c} is triggered after checkpoint {look('last')}: ids rise"
            case "complete" if pending.get(c) == "ABORTED":
                return f"checkpoint {c} completes after a later one, {look('latest')}, which subsumed it"
            case "complete" | "abort" if c not in pending:
                how = "completes" if move.action == "complete" else "fails"
                return f"checkpoint {c} {how}, but it is not pending"
            case "restore" | "load" if look("over"):
                return "tasks are restored, but the job has ended"
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
