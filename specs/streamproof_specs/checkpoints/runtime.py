"""The binding of the runtime's event logs to checkpoints: a JobMaster's checkpoints of a job are one behaviour.

A later JobMaster goes on from the checkpoint that the earlier ones have completed last, with the numbers after it: the
machine counts from there. If the log of a lost JobMaster ends with the last acknowledgement, it may have stored the
checkpoint or not.

The tasks of the machine are the subtasks. The JobMaster records when it triggers a checkpoint, what it receives, how the
checkpoint ends, and from which one a restart begins; a subtask, when it takes its snapshot. A snapshot is read directly after
its trigger: nothing but the trigger must come before it.

The machine knows no records. So each completed checkpoint is compared with the records of its attempt, too: on each channel
what the sender had sent before its snapshot must be what the receiver had received before its own, and no subtask held any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from streamproof.conformance import (
    Constraint,
    Event,
    InputError,
    Move,
    Observation,
    Plan,
    Rules,
    StateReader,
    Stream,
    Task,
    Unit,
)
from streamproof_models.checkpoints.machine import Checkpoints
from streamproof_specs.failover.runtime import first_attempt
from streamproof_specs.runtime.logs import JOBMASTER, JobMasterLogs, attempts, first_event, jobs
from streamproof_specs.runtime.sessions import session

MOST = 200
"""Largest number of checkpoints of a JobMaster, and of subtasks, that are followed."""
CHECKPOINTS = tuple(f"checkpoint_{what}" for what in ("triggered", "acknowledged", "completed", "aborted", "restored"))
_OF_JOB = ("region_scheduled", "region_running", "region_failed", "region_finished", "job_failed", "job_finished")
SNAPSHOT = "snapshot_taken"
INTERVAL = "checkpoint_interval"
"""An argument of the beginning of a job with checkpoints."""
_STAGES = {
    "region_scheduled": (("CREATED",), "SCHEDULED"),
    "checkpoint_restored": (("SCHEDULED",), "DEPLOYING"),
    "region_running": (("DEPLOYING",), "RUNNING"),
    "checkpoint_triggered": (("RUNNING",), "RUNNING"),
    "region_failed": (("DEPLOYING", "RUNNING"), "CREATED"),
    "region_finished": (("RUNNING",), "FINISHED"),
    "job_finished": (("FINISHED",), "OVER"),
    "job_failed": (("DEPLOYING", "RUNNING"), "OVER"),
}
"""Before and after an event of the region, which is the whole job."""


class RuntimeCheckpoints(JobMasterLogs):
    """Follows the checkpoints of every job of the runtime."""

    def recognises(self, path: Path) -> bool:
        """Whether a path has a log of the runtime, of a job with checkpoints."""
        return INTERVAL in (first_event(path).get("args") or {})

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each JobMaster of a job with checkpoints. Raises `InputError` for a log that is no runtime's."""
        of_attempts = attempts(events)
        cases = [*_cases(jobs(events, (*CHECKPOINTS, *_OF_JOB)), of_attempts)]
        read = tuple(event for case in cases for event in case.events)
        return Plan(name, tuple(c.unit() for c in cases), read, unit="job", nothing="no job takes checkpoints")


def _cases(
    found: Iterable[tuple[Event, Sequence[Event]]], of_attempts: Mapping[str, Sequence[Event]]
) -> Iterator[_Case]:
    """The JobMasters of each job with checkpoints, one after the other."""
    by_job: dict[str, dict[int, tuple[Event, Sequence[Event]]]] = {}
    for started, own in found:
        job, number_of = session(started.trace) if first_attempt(started) else (started.trace, 0)
        by_job.setdefault(job, {})[number_of] = started, own
    for job, masters in by_job.items():
        if any(INTERVAL in s.args or any(e.event in CHECKPOINTS for e in own) for s, own in masters.values()):
            left = frozenset() if min(masters) else frozenset({0})
            for _, (started, own) in sorted(masters.items()):
                case = _Case(job, started, own, of_attempts, left)
                left = case.left
                yield case


@lru_cache(maxsize=64)
def _machine(tasks: int, ids: int, failures: int) -> Rules:
    return Rules(Checkpoints(tasks=tasks, ids=ids, failures=failures, faults=0))


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A snapshot, with the numbers of buffers that had been sent and received by then, by channel."""

    event: Event
    sent: Mapping[str, int]
    received: Mapping[str, int]
    held: int


class _Case:
    """The checkpoints of one JobMaster."""

    def __init__(
        self,
        job: str,
        started: Event,
        followed: Sequence[Event],
        of_attempts: Mapping[str, Sequence[Event]],
        inherited: frozenset[int],
    ) -> None:
        """`inherited`: the checkpoints that earlier JobMasters may have left as the latest one; none: it is not known."""
        self.trace, self._first = started.trace, first_attempt(started)
        own = [e.event for e in followed]
        self._ids, self._failures = own.count("checkpoint_triggered"), own.count("region_failed")
        self._attempt = self._first
        self._has_failed, self._over = False, ""
        self._stage = "CREATED"
        """Of the region: it is scheduled, restored, and runs."""
        self._completed: frozenset[int] = frozenset()
        """Checkpoints whose completion has been recorded."""
        restored = next((number(e, "checkpoint") for e in followed if e.event == "checkpoint_restored"), None)
        known = inherited if restored is None or (inherited and restored not in inherited) else frozenset({restored})
        self._base = max(known, default=0)
        """The machine counts checkpoints from the one after it."""
        numbers = {number(e, "attempt") for e in followed if e.event == "region_scheduled"}
        records = {n: of_attempts.get(f"{job}#{n}", ()) for n in sorted(numbers)}
        self._tasks = self._subtasks(records.values())
        self._snapshots = {n: _snapshots(own) for n, own in records.items()}
        self._acknowledged: set[str] = set()
        """Tasks that have acknowledged the pending checkpoint."""
        self._following: Event | None = None
        """The next event of the JobMaster."""
        self._observations = [*self._read(followed)]
        self.events = [observation.event for observation in self._observations]
        self.left = frozenset({max(self._completed)}) if self._completed else known
        """What the next JobMaster may go on from."""
        if self._is_acknowledged() and followed[-1].event == "checkpoint_acknowledged":
            self.left |= {number(followed[-1], "checkpoint")}

    def _subtasks(self, records: Iterable[Sequence[Event]]) -> dict[str, int]:
        """The number of each subtask. Raises `InputError` if attempts have different ones."""
        found: dict[str, int] = {}
        for event in (e for own in records for e in own if e.process == JOBMASTER and e.event == "deployed"):
            placement = event.args.get("placement")
            if not isinstance(placement, dict) or (found and placement.keys() != found.keys()):
                raise InputError(f"{event} needs the argument 'placement', of the subtasks of the job", loc=event.loc)
            found = {task: at for at, task in enumerate(sorted(placement))}
        return found

    def unit(self) -> Unit:
        """The behaviour to follow."""
        title = f"checkpoints of {self.trace}"
        if max(self._ids, len(self._tasks)) > MOST:
            much = f"{self._ids:,} checkpoints of {len(self._tasks):,} subtasks"
            return Unit(self.trace, title, (), False, (f"{much}: up to {MOST} of each are followed",))
        sizes = (1 << (n - 1).bit_length() if n else 1 for n in (self._ids, self._failures))
        rules = _machine(max(1, len(self._tasks)), *sizes)
        task = Task(self.trace, rules.system, (Stream(self._observations),), grounding=rules.instances)
        return Unit(self.trace, title, (task,))

    # --- reading

    def _read(self, followed: Sequence[Event]) -> Iterable[Observation]:
        left = {n: [*own] for n, own in self._snapshots.items()}
        for event, self._following in zip(followed, (*followed[1:], None), strict=True):
            yield self._observed(event)
            if event.event == "checkpoint_triggered":
                mine = left.get(self._attempt, [])
                taken = [s for s in mine if s.event.args.get("checkpoint") == event.args["checkpoint"]]
                left[self._attempt] = [s for s in mine if s not in taken]
                yield from (self._taken(snapshot) for snapshot in taken)
        for n, own in left.items():
            for snapshot in own:
                wrong = f"checkpoint {snapshot.event.args.get('checkpoint')} was not triggered for attempt {n}"
                yield Observation(self._mine(snapshot.event), impossible=wrong)

    def _mine(self, event: Event) -> Event:
        return replace(event, trace=self.trace)

    def _taken(self, snapshot: _Snapshot) -> Observation:
        event = self._mine(snapshot.event)
        return Observation(event, ((self._move("take_snapshot", event, event.process),),))

    def _move(self, action: str, event: Event, task: str) -> Move:
        if task not in self._tasks:
            raise InputError(f"{event}: the job has no subtask {task!r}", loc=event.loc)
        return Move(action, {"c": number(event, "checkpoint") - self._base, "t": self._tasks[task]})

    def _is_acknowledged(self) -> bool:
        """Whether all tasks have acknowledged the pending checkpoint."""
        return bool(self._tasks) and len(self._acknowledged) == len(self._tasks)

    def _observed(self, event: Event) -> Observation:
        """The meaning of an event of the JobMaster."""
        before: list[Constraint] = []
        after: list[Constraint] = []
        moves: list[Move] = []
        wrong = self._out_of_order(event)
        checkpoint = number(event, "checkpoint") if event.event in CHECKPOINTS else 0
        here = checkpoint - self._base
        if event.event in CHECKPOINTS[:-1] and not 1 <= here <= self._ids:
            return Observation(self._mine(event), impossible=wrong or f"checkpoint {checkpoint} was not triggered")
        if self._is_acknowledged() and event.event not in ("checkpoint_completed", "checkpoint_aborted"):
            wrong = wrong or "all subtasks have acknowledged the pending checkpoint: it completes, or is aborted"
        if event.event == "checkpoint_completed":
            before.append(_is("COMPLETED", here, f"checkpoint {checkpoint}: not all subtasks have acknowledged it"))
            wrong = wrong or self._cut(checkpoint)
            if checkpoint in self._completed:
                wrong = wrong or f"checkpoint {checkpoint} has been completed before"
            self._completed |= {checkpoint}
        before.append(_said(self._completed, self._base))
        match event.event:
            case "checkpoint_triggered":
                before.append(_follows(here, self._base))
                moves += [Move(a) for a in ("start_triggering", "make_plan", "create", "trigger_tasks")]
            case "checkpoint_acknowledged":
                before.append(_is("PENDING", here, f"checkpoint {checkpoint}: it has ended"))
                answer = self._move("receive_answer", event, str(event.args.get("task")))
                self._acknowledged.add(str(event.args.get("task")))
                if self._is_acknowledged() and self._following and self._following.event == "checkpoint_aborted":
                    before.append(_answered(answer))  # it cannot be stored: it is pending until it is aborted
                else:
                    moves.append(answer)
            case "checkpoint_aborted":
                moves.append(Move("expire", {"c": here}))
            case "checkpoint_restored":
                moves += [Move("restore")] if self._has_failed else []
                after.append(_restored(checkpoint, self._base))
            case "region_scheduled":
                self._attempt = number(event, "attempt")
            case "region_running" if self._has_failed:
                moves += [Move("run", {"t": t}) for t in range(len(self._tasks))]
            case "region_failed":
                before.append(_none_pending(self._base))
                moves += [Move("run", {"t": 0})] if self._has_failed and self._stage != "RUNNING" else []
                moves += [Move("fail", {"t": 0}), Move("stop_scheduler")]
                self._has_failed = True
            case "region_finished" | "job_finished" | "job_failed":
                before.append(_none_pending(self._base))
        if event.event in ("checkpoint_triggered", "checkpoint_completed", "checkpoint_aborted"):
            self._acknowledged = set()
        self._stage = _STAGES.get(event.event, ((), self._stage))[1]
        self._over = str(event) if self._stage == "OVER" else ""
        return Observation(self._mine(event), (tuple(moves),), tuple(after), tuple(before), wrong)

    def _out_of_order(self, event: Event) -> str | None:
        """Why an event of the region cannot be next, if it cannot."""
        if self._over:
            return f"the job is over since {self._over}"
        stages = _STAGES.get(event.event, ((self._stage,), ""))[0]
        return None if self._stage in stages else f"the region is {self._stage}, and not {' or '.join(stages)}"

    def _cut(self, checkpoint: int) -> str | None:
        """What of the snapshots of a checkpoint does not fit together, if anything."""
        taken = {s.event.process: s for s in self._snapshots.get(self._attempt, ()) if _of(s) == checkpoint}
        for task, snapshot in taken.items():
            if snapshot.held:
                return f"{task} took its snapshot while it held {snapshot.held} buffers, which are in none"
            for channel, sent in snapshot.sent.items():
                received = taken.get(channel.partition(">")[2])
                got = received.received.get(channel, 0) if received else sent
                if got != sent:
                    return f"{sent} buffers of {channel} were sent before a snapshot, and {got} received before one"
            for channel, got in snapshot.received.items():
                sender = taken.get(channel.partition(">")[0])
                if sender and channel not in sender.sent:
                    return f"no buffer of {channel} was sent before a snapshot, and {got} received before one"
        return None


def _of(snapshot: _Snapshot) -> Any:
    return snapshot.event.args.get("checkpoint")


def _snapshots(events: Iterable[Event]) -> list[_Snapshot]:
    """All snapshots of an attempt. Raises `InputError` for events without the arguments that they need."""
    found: list[_Snapshot] = []
    by_process: dict[str, list[Event]] = {}
    for event in events:
        if event.process != JOBMASTER:
            by_process.setdefault(event.process, []).append(event)
    for own in by_process.values():
        sent, received = Counter[str](), Counter[str]()
        held = 0
        for event in sorted(own, key=lambda e: e.seq):
            if event.event == "record_received":
                received[str(event.args.get("channel"))] += 1
            elif event.event == "record_produced":
                sent[str(event.args.get("channel"))] += 1
            elif event.event in ("record_processed", "buffers_flushed"):
                sent.update(map(str, event.args.get("channels") or ()))
            elif event.event == SNAPSHOT:
                number(event, "checkpoint")
                found.append(_Snapshot(event, dict(sent), dict(received), held))
            value = (event.state or {}).get("held", held)
            held = value if type(value) is int else held
    return found


def number(event: Event, name: str) -> int:
    """An argument that is a number. Raises `InputError` for anything else."""
    value = event.args.get(name)
    if type(value) is not int or value < 0:
        raise InputError(f"{event} needs the argument {name!r}, a number", loc=event.loc)
    return value


# --- constraints


def _is(status: str, checkpoint: int, else_: str) -> Constraint:
    return Constraint(else_, lambda look: bool(look("checkpoint", checkpoint) == status))


def _answered(answer: Move) -> Constraint:
    place = answer.args["c"], answer.args["t"]
    return Constraint("the subtask has taken no snapshot", lambda look: bool(look("answer", place) == "ACKNOWLEDGE"))


def _unsaid(look: StateReader, said: frozenset[int], base: int) -> list[int]:
    numbers = enumerate(look("checkpoint"), base + 1)
    return [c for c, status in numbers if status == "COMPLETED" and c not in said]


def _said(said: frozenset[int], base: int) -> Constraint:
    """The last acknowledgement completes a checkpoint, and that is recorded before anything else."""
    return Constraint(
        lambda look: (
            f"all subtasks have acknowledged checkpoint {_unsaid(look, said, base)[0]}, which does not complete"
        ),
        lambda look: not _unsaid(look, said, base),
    )


def _follows(checkpoint: int, base: int) -> Constraint:
    return Constraint(
        lambda look: f"checkpoint {base + checkpoint} is triggered after checkpoint {base + look('last_id')}",
        lambda look: bool(look("last_id") + 1 == checkpoint),
    )


def _restored(checkpoint: int, base: int) -> Constraint:
    def name(c: int) -> str:
        return f"checkpoint {c}" if c else "no checkpoint"

    return Constraint(
        lambda look: (
            f"the job goes on from {name(checkpoint)}; the latest completed one is {name(base + look('latest'))}"
        ),
        lambda look: bool(base + look("restored") == checkpoint),
    )


def _none_pending(base: int) -> Constraint:
    def pending(look: StateReader) -> list[int]:
        return [c for c, status in enumerate(look("checkpoint"), base + 1) if status == "PENDING"]

    return Constraint(
        lambda look: f"checkpoint {pending(look)[0]} is pending: it is aborted before", lambda look: not pending(look)
    )


BINDING = RuntimeCheckpoints()
