"""What each line of a Flink JobManager's log means to the failover machine.

The JobManager changes executions in one thread, so its own log is a total order of what the machine does, and only that log
is followed here. A failure and the decision that answers it are two lines of one step: the decision's line carries the
action. Restarting (`restart`) is not logged of itself; the tracker inserts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from streamproof.conformance.binding import Demand, Look, Move, Observation
from streamproof.conformance.events import Event
from streamproof_models.failover.machine import STARTED
from streamproof_specs.flink.recorded import RecordedFailover, RecordedGraph, task_name

HIDDEN = frozenset({"restart"})

LEGAL: Mapping[str, frozenset[str]] = {
    "CREATED": frozenset({"SCHEDULED", "CANCELED", "FAILED", "CANCELING"}),
    "SCHEDULED": frozenset({"DEPLOYING", "CANCELED", "CANCELING", "FAILED"}),
    "DEPLOYING": frozenset({"INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "FAILED"}),
    "INITIALIZING": frozenset({"RUNNING", "FINISHED", "CANCELING", "FAILED"}),
    "RUNNING": frozenset({"FINISHED", "CANCELING", "FAILED"}),
    "CANCELING": frozenset({"CANCELED", "FAILED"}),
    "FINISHED": frozenset(),
    "FAILED": frozenset(),
    "CANCELED": frozenset(),
}
"""Transitions of one execution attempt (`org.apache.flink.runtime.execution.ExecutionState`)."""

_RUN_UP = {"SCHEDULED": ("deploy", "initialize", "run"), "DEPLOYING": ("initialize", "run"), "INITIALIZING": ("run",)}
_UP_TO = {"DEPLOYING": 1, "INITIALIZING": 2, "RUNNING": 3}
_STEPS = ("deploy", "initialize", "run")
_LEVEL = {"SCHEDULED": 0, "DEPLOYING": 1, "INITIALIZING": 2, "RUNNING": 3}
_OVER = frozenset({"FAILING", "FAILED", "CANCELLING", "CANCELED", "SUSPENDED"})


@dataclass(slots=True)
class _Failure:
    """A FAILED line that no decision has answered yet."""

    event: Event
    task: str


@dataclass(slots=True)
class Translator:
    """Turns the events of one job into observations, in order. `recoveries` fills up on the way."""

    recorded: RecordedGraph
    model: RecordedFailover
    recoveries: list[dict[str, Any]] = field(default_factory=list)
    over: str | None = None
    """Why the machine stops following the job, once it does."""
    _state: dict[tuple[str, int], str] = field(default_factory=dict)
    _place: dict[str, str] = field(default_factory=dict)
    _failure: _Failure | None = None
    _untrack: tuple[Move, ...] = ()
    _open: list[dict[str, Any]] = field(default_factory=list)

    def observations(self, events: Iterable[Event]) -> Iterator[Observation]:
        """One observation for every event that speaks about the machine."""
        for event in events:
            if self.over is not None:
                return
            observation = self._read(event)
            if observation is not None:
                yield self._with_untracking(event, observation)

    def _with_untracking(self, event: Event, observation: Observation) -> Observation:
        """After an executor is lost its tasks are failed and decided on before its partitions are forgotten, whichever line
        comes first; with the first line of another kind they are."""
        if not self._untrack:
            return observation
        first = tuple((*self._untrack, *way) for way in observation.ways)
        if event.event in ("failover.restart", "jm.disconnect", "exec.deploy") or (
            event.args.get("new") in ("FAILED", "CANCELING", "CANCELED", "RESTARTING", "DEPLOYING")
        ):
            return replace(observation, ways=(*observation.ways, *first))
        self._untrack = ()
        return replace(observation, ways=first)

    def _read(self, event: Event) -> Observation | None:
        match event.event:
            case "exec.transition":
                # The slot of a failed task is handed on before the decision: a waiting task deploys in between.
                waiting = event.args["new"] == "DEPLOYING"
                return (None if waiting else self._unanswered(event)) or self._transition(event)
            case "exec.deploy":
                return self._deploy(event)
            case "failover.restart":
                return self._decision(event)
            case "job.transition":
                return self._job(event)
            case "jm.disconnect":
                return self._disconnect(event)
            case _:
                return None

    def _unanswered(self, event: Event) -> Observation | None:
        if self._failure is None:
            return None
        failed, self._failure = self._failure, None
        return Observation(
            event,
            impossible=f"the failure of {failed.task} (line {failed.event.line}) was answered by no decision to restart",
        )

    # --- executions

    def _task(self, event: Event) -> str:
        args = event.args
        label = self.recorded.label.get(args["vertex"])
        if label is None:
            return ""
        sizes = {v.name: v.parallelism for v in self.recorded.graph.vertices}
        return task_name(label, args["subtask"], sizes[label])

    def _attempt_is(self, task: str, number: int) -> Demand:
        return Demand(
            f"attempt {number} of {task} is not the present one",
            lambda look: look("attempt", task) == number,
        )

    def _transition(self, event: Event) -> Observation:
        args = event.args
        task, number, old, new = self._task(event), args["number"], args["old"], args["new"]
        if task not in self.model.region_of:
            return Observation(event, impossible=f"the job graph has no task {args['vertex']}_{args['subtask']}")
        key = (task, number)
        known = self._state.get(key, "CREATED")
        self._state[key] = new
        if known != old:
            return Observation(event, impossible=f"attempt {number} of {task} was {known}, not {old}")
        if new not in LEGAL.get(old, frozenset()):
            return Observation(event, impossible=f"an execution never goes from {old} to {new}")
        present = self._attempt_is(task, number)
        match new:
            case "SCHEDULED":
                is_scheduled = Demand(f"{task} is not SCHEDULED", lambda look: look("status", task) == "SCHEDULED")
                schedule = Move("schedule", {"r": self.model.region_name[self.model.region_of[task]]})
                return Observation(event, ((schedule,), ()), (is_scheduled, present))
            case "DEPLOYING" | "INITIALIZING" | "RUNNING":
                moves = _STEPS[_LEVEL[old] : _UP_TO[new]]
                return Observation(event, (tuple(Move(m, {"t": task}) for m in moves),), (present,))
            case "FINISHED":
                moves = (*_STEPS[_LEVEL[old] :], "finish")
                return Observation(event, (tuple(Move(m, {"t": task}) for m in moves),), (present,))
            case "CANCELING":
                waiting = Demand(
                    f"no decision to restart {task} was taken", lambda look: look("status", task) == "CANCELING"
                )
                return Observation(event, demands=(waiting, present))
            case "CANCELED":
                return Observation(event, ((Move("cancel", {"t": task}),),), (present,))
            case _:
                return self._failed(event, task, old, present)

    def _failed(self, event: Event, task: str, old: str, present: Demand) -> Observation:
        if old == "CANCELING":
            return Observation(
                event, ((Move("cancel", {"t": task}),),), (present,), note="failed while being cancelled"
            )
        self._failure = _Failure(event, task)
        alive = Demand(f"{task} has no attempt in flight", lambda look: look("status", task) in STARTED)
        return Observation(event, demands=(alive, present))

    def _deploy(self, event: Event) -> Observation:
        task = self._task(event)
        self._place[task] = event.args["tm"]
        deploying = Demand(f"{task} is not DEPLOYING", lambda look: look("status", task) == "DEPLOYING")
        return Observation(event, demands=(deploying, self._attempt_is(task, event.args["number"])))

    # --- decisions

    def _decision(self, event: Event) -> Observation:
        args, failure = event.args, self._failure
        self._failure = None
        if args.get("globally"):
            self.over = "a global failover, which the machine does not have"
            return Observation(event, note=self.over)
        task = self._task(event)
        if failure is None or failure.task != task:
            return Observation(event, impossible=f"a decision to restart for {task}, which did not fail just before")
        count = args["count"]
        self._note(event, task, failure.event, count)
        ways = self._causes(failure.event, task)
        demand = Demand(
            f"the machine restarts another number of tasks than {count}",
            lambda look: len(look("restarting")[look("decided") - 1]) == count,
        )
        return Observation(event, ways, (demand,))

    def _causes(self, failed: Event, task: str) -> tuple[tuple[Move, ...], ...]:
        """The failure of itself, or for want of the partition that its exception names; all of them if none was logged."""
        of_itself = (Move("fail", {"t": task}),)
        inputs = [self.model.partition_of[c] for c in self.model.stored_inputs[task]]
        named = self._named(failed, inputs)
        if named is not None:
            return tuple((Move("lose", {"p": p}, optional=True), Move("miss", {"c": f"{task}<{p}"})) for p in named) or (
                of_itself,
            )
        if failed.args.get("causes"):
            return (of_itself,)
        return (of_itself, *((Move("lose", {"p": p}, optional=True), Move("miss", {"c": f"{task}<{p}"})) for p in inputs))

    def _named(self, failed: Event, inputs: list[str]) -> list[str] | None:
        """The machine's partitions that the failure may name, or None when it names none."""
        dataset, at = failed.args.get("dataset"), failed.args.get("pnum")
        if dataset is None or at is None:
            return None
        name = self.recorded.dataset.get(dataset)
        if name is not None:
            full = f"{name}#{at}" if self.recorded.producers[name] > 1 else name
            return [full] if full in inputs else []
        producer = str(failed.args.get("producer", "")).split("_")
        label = self.recorded.label.get(producer[1]) if len(producer) > 2 else None
        return [p for p in inputs if label is not None and self.model.producer_of[p].startswith(f"{label} ({at + 1}/")]

    def _note(self, event: Event, task: str, failed: Event, count: int) -> None:
        cause = failed.args.get("causes") or [None]
        entry = {
            "decided": event.ts,
            "recovered": None,
            "failed": f"{task}#{failed.args['number']}",
            "cause": cause[0],
            "announced": count,
            "size": count,
            "tasks": [],
        }
        self.recoveries.append(entry)
        self._open.append(entry)

    # --- the job and the executors

    def _job(self, event: Event) -> Observation | None:
        old, new = event.args["old"], event.args["new"]
        if new in _OVER:
            return self._job_over(event, new)
        unanswered = self._unanswered(event)
        if unanswered is not None:
            return unanswered
        if new == "RESTARTING":
            pending = Demand("no decision to restart is pending", lambda look: any(look("restarting")))
            return Observation(event, demands=(pending,))
        if (old, new) == ("RESTARTING", "RUNNING"):
            for entry in self._open:
                entry["recovered"] = event.ts
            self._open.clear()
            done = Demand("tasks to restart are not reset yet", lambda look: not any(look("restarting")))
            return Observation(event, demands=(done,))
        if new == "FINISHED":
            return Observation(event, ((Move("complete"),),))
        return Observation(event)

    def _job_over(self, event: Event, new: str) -> Observation:
        failure, self._failure = self._failure, None
        self.over = f"the job is {new}"
        if failure is not None:
            return Observation(event, ((Move("give_up", {"t": failure.task}),),))
        return Observation(event, note=self.over)

    def _disconnect(self, event: Event) -> Observation | None:
        """The JobMaster forgets what was stored on a lost executor, after failing its tasks."""
        if str(event.args.get("why", "")).startswith("Stopping JobMaster"):
            return None
        lost = [t for t, tm in self._place.items() if tm == event.args["tm"]]
        gone = [p for t in lost for p in self.model.outputs[t]]
        self._untrack = (*self._untrack, *(Move("untrack", {"p": p}, optional=True) for p in gone))
        return Observation(event)


def started(look: Look, task: str) -> bool:
    """Whether a task's attempt is in flight."""
    return look("status", task) in STARTED
