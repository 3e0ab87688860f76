"""The binding of the runtime's event logs to checkpoints: a JobMaster's checkpoints of a job are one behaviour.

A later JobMaster goes on from the checkpoint that the earlier ones have completed last, with the numbers after it: the
machine counts from there. If the log of a lost JobMaster ends with the last acknowledgement, it may have stored the
checkpoint or not.

The tasks of the machine are the subtasks. The JobMaster records when it triggers a checkpoint, what it receives, how the
checkpoint ends, and from which one a restart begins; a subtask, when it takes its snapshot. A snapshot is read directly after
its trigger: nothing but the trigger must come before it.

The machine knows no records. So each completed checkpoint is compared with the records of its attempt, too: on each channel
what the sender had sent before its snapshot must be what the receiver had received before its own, and no subtask held any.
On a feedback channel, and if barriers overtake buffers, the rest must be in the snapshots, with the records that were sent,
and a restart must begin with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from streamproof.conformance import (
    INTEGER,
    NUMBER,
    TEXT,
    TRUTH,
    Constraint,
    Event,
    EventForm,
    InputError,
    LogForm,
    Move,
    Observation,
    Plan,
    Rules,
    StateReader,
    Stream,
    Task,
    Unit,
    by_name,
)
from streamproof_models.checkpoints.machine import Checkpoints
from streamproof_specs.baton.runtime import EMITS, REPLAYED
from streamproof_specs.checkpoints.runtime.snapshots import (
    LOGGED,
    Buffers,
    Snapshot,
    buffers,
    by_subtask,
    contradiction,
    ends,
    number,
    snapshots,
)
from streamproof_specs.failover.runtime import first_attempt
from streamproof_specs.runtime.logs import JOBMASTER, JobMasterLogs, attempts, first_event, jobs
from streamproof_specs.runtime.sessions import session
from streamproof_specs.runtime.vocabulary import (
    ATTEMPT,
    BY_NUMBER,
    CHANNEL,
    CHANNELS,
    CHECKPOINT,
    CONTENT,
    CONTENTS,
    LACKING,
    NO_CONTENT,
    OF_ATTEMPT,
    OF_JOB,
    SUBTASK,
    TITLE,
)

MOST = 200
"""Largest number of checkpoints of a JobMaster, and of subtasks, that are followed."""
CHECKPOINTS = tuple(f"checkpoint_{what}" for what in ("triggered", "acknowledged", "completed", "aborted", "restored"))
_OF_JOB = ("region_scheduled", "region_running", "region_failed", "region_finished", "job_failed", "job_finished")
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
        self._job, self._of_attempts = job, of_attempts
        self._unaligned = started.args.get("unaligned") is True
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
        self._snapshots = {n: snapshots(own, unaligned=self._unaligned) for n, own in records.items()}
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
                taken = [s for s in mine if s.checkpoint == event.args["checkpoint"]]
                left[self._attempt] = [s for s in mine if s not in taken]
                yield from (self._taken(snapshot) for snapshot in taken)
        for n, own in left.items():
            for snapshot in own:
                wrong = f"checkpoint {snapshot.checkpoint} was not triggered for attempt {n}"
                yield Observation(self._mine(snapshot.event), impossible=wrong)

    def _mine(self, event: Event) -> Event:
        return replace(event, trace=self.trace)

    def _taken(self, snapshot: Snapshot) -> Observation:
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
                wrong = wrong or self._replayed(checkpoint)
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
        taken = {s.event.process: s for s in self._snapshots.get(self._attempt, ()) if s.checkpoint == checkpoint}
        return contradiction(taken, unaligned=self._unaligned)

    def _replayed(self, checkpoint: int) -> str | None:
        """What the attempt begins with that is not in a checkpoint, if anything."""
        replayed: Buffers = {}
        begun: set[str] = set()
        for task, own in by_subtask(self._of_attempts.get(f"{self._job}#{self._attempt}", ())).items():
            for event in (e for e in own if e.event == REPLAYED):
                begun.add(task)
                replayed |= buffers(event)
        logged = self._logged(checkpoint)
        for channel in {**replayed, **logged}:
            source, target = ends(channel)[:2]
            if (target if "~" in channel else source) not in begun:
                continue
            found, was = replayed.get(channel, []), logged.get(channel, [])
            if found != was:
                about = f"{channel} begins with {len(found)} buffers"
                return f"{about}; checkpoint {checkpoint} has {len(was) if len(found) != len(was) else 'others'}"
        return None

    def _logged(self, checkpoint: int) -> Buffers:
        """The buffers of a checkpoint, of an attempt before this one: those at the receiver first."""
        for n in range(self._attempt - 1, -1, -1):
            own = self._of_attempts.get(f"{self._job}#{n}", ())
            logged = [e for e in own if e.event == LOGGED and e.args.get("checkpoint") == checkpoint]
            if not logged:
                continue
            found: Buffers = {}
            for is_receiver in (True, False):
                for event in logged:
                    for channel, contents in buffers(event).items():
                        if (ends(channel)[1:2] == [event.process]) is is_receiver:
                            found.setdefault(channel, []).extend(contents)
            return found
        return {}


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


_OF_CHECKPOINT = {"checkpoint": CHECKPOINT}
_SENT = {"channels": CHANNELS, "contents": CONTENTS}
_FORM = LogForm(
    TITLE,
    {
        "job_started": EventForm(
            None,
            OF_JOB,
            args={
                INTERVAL: NUMBER("nanoseconds between two checkpoints").or_none("the job takes no checkpoints"),
                "unaligned": TRUTH("whether barriers overtake buffers").or_none("false"),
                "first_attempt": INTEGER("the number of the first attempts").or_none("0"),
            },
            meaning="The job begins at this JobMaster.",
        ),
        "region_scheduled": EventForm(
            None, OF_JOB, args={"attempt": ATTEMPT}, meaning="The region, which is the whole job, begins an attempt."
        ),
        "deployed": EventForm(
            None,
            OF_ATTEMPT,
            args={"placement": by_name(TEXT, "of the subtasks of the job")("the TaskExecutor of each subtask")},
            meaning="The subtasks are deployed.",
        ),
        "region_running": EventForm(None, OF_JOB, ("run",), meaning="All subtasks run."),
        "region_failed": EventForm(
            None, OF_JOB, ("run", "fail", "stop_scheduler"), meaning="A task has failed: checkpoints stop."
        ),
        "region_finished": EventForm(None, OF_JOB, meaning="All subtasks have finished: no checkpoint is pending."),
        "job_finished": EventForm(None, OF_JOB, meaning="The job is over: no checkpoint is pending."),
        "job_failed": EventForm(None, OF_JOB, meaning="The job is over: no checkpoint is pending."),
        "checkpoint_triggered": EventForm(
            None,
            OF_JOB,
            ("start_triggering", "make_plan", "create", "trigger_tasks"),
            _OF_CHECKPOINT,
            meaning="A checkpoint begins.",
        ),
        "checkpoint_acknowledged": EventForm(
            None,
            OF_JOB,
            ("receive_answer",),
            {**_OF_CHECKPOINT, "task": TEXT("the subtask")},
            meaning="The snapshot of a subtask has arrived.",
        ),
        "checkpoint_completed": EventForm(
            None, OF_JOB, args=_OF_CHECKPOINT, meaning="All snapshots have arrived, and are stored."
        ),
        "checkpoint_aborted": EventForm(None, OF_JOB, ("expire",), _OF_CHECKPOINT, meaning="A checkpoint is given up."),
        "checkpoint_restored": EventForm(
            None,
            OF_JOB,
            ("restore",),
            {"checkpoint": NUMBER("the number of the checkpoint, or 0")},
            meaning="An attempt goes on from the latest checkpoint.",
        ),
        "snapshot_taken": EventForm(
            None, SUBTASK, ("take_snapshot",), _OF_CHECKPOINT, meaning="A subtask has taken its snapshot."
        ),
        "record_produced": EventForm(
            None, SUBTASK, args={"channel": CHANNEL, "content": CONTENT}, meaning="A source has made a buffer."
        ),
        "record_received": EventForm(None, SUBTASK, args={"channel": CHANNEL}, meaning="A subtask takes a buffer."),
        **dict.fromkeys(
            EMITS,
            EventForm(
                None,
                SUBTASK,
                args={**_SENT, "contents": CONTENTS.or_none(NO_CONTENT)},
                meaning="Buffers leave; a record has been processed, or held buffers are flushed.",
            ),
        ),
        LOGGED: EventForm(
            None,
            SUBTASK,
            args={**_OF_CHECKPOINT, **_SENT},
            meaning="The buffers that are part of a snapshot are complete.",
        ),
        REPLAYED: EventForm(
            None, SUBTASK, args=_SENT, meaning="A subtask goes on from a checkpoint, and sends these buffers again."
        ),
    },
    (BY_NUMBER,),
    LACKING,
)

BINDING = RuntimeCheckpoints(_FORM)
