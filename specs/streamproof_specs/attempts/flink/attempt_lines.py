"""Log lines about one execution attempt as observations, with explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import overload

from streamproof.conformance import Constraint, Event, Instance, Move, Observation, StateReader
from streamproof_models.attempts.machine import AT_WORK
from streamproof_specs.failover.flink.explain import switch

UNSEEN = frozenset({"ignore", "reject", "disconnect", "withdraw"})
"""Actions without a log line; a task whose peers are gone is logged at DEBUG only."""

OF_MASTER = frozenset({"schedule", "deploy", "submit", "update", "cancel", "fail", "give_up"})
OF_TASK = frozenset(
    {
        "receive",
        "start",
        "register",
        "initialize",
        "run",
        "finish",
        "crash",
        "withdraw",
        "cancel_task",
        "stop",
        "release",
    }
)

MASTER_LINES = frozenset({"exec.transition", "exec.deploy", "exec.ignored"})
TASK_LINES = frozenset({"tm.submit", "tm.transition", "tm.final", "tm.failext"})
STORE_LINES = frozenset({"part.registered", "part.released", "part.request", "part.consumed"})


def _either(*actions: str) -> tuple[tuple[Move, ...], ...]:
    return tuple((Move(action),) for action in actions)


_TASK_MOVES = {
    "DEPLOYING": _either("start"),
    "INITIALIZING": _either("initialize"),
    "RUNNING": _either("run"),
    "FINISHED": _either("finish"),
    "CANCELING": _either("cancel_task"),
    "CANCELED": _either("stop", "withdraw"),
    "FAILED": _either("crash"),
}
_MASTER_MOVES = {
    "SCHEDULED": _either("schedule"),
    "DEPLOYING": _either("deploy"),
    "CANCELING": _either("cancel"),
    "CANCELED": _either("update", "give_up"),
    "FAILED": _either("update", "fail"),
}
_SUBMIT, _RECEIVE, _UPDATE = _either("submit"), _either("receive"), _either("update")


def in_partial_order(lines: Sequence[Event], observations: Sequence[Observation]) -> list[Observation]:
    """The observations of one TaskManager's lines about one attempt, each with the line that it `follows`.

    `Task.transitionState` does a compareAndSet and then logs, without a lock; so does `registerResultPartition`. A
    change happened between the preceding line of the same thread and its own line. The task's own thread writes all of
    them but CANCELING, which the main thread writes after "Attempting to cancel", and FAILED, which another thread may
    write after "Attempting to fail". The task's thread has logged its end before the main thread un-registers the task.
    Lines that a `ResultPartitionManager` writes under its lock, and other lines of the main thread, keep their
    position.
    """
    found: list[Observation] = []
    own, cancelling, failing, failed = -1, -1, None, False
    for at, (line, observation) in enumerate(zip(lines, observations, strict=True)):
        match line.event, line.args.get("what", line.args.get("new")):
            case "tm.submit", _:
                own = cancelling = at
            case "tm.final", _:
                own = at
            case "tm.failext", "cancel":
                cancelling = at
            case "tm.failext", _:
                failing = at if failing is None else failing
            case "tm.transition", "CANCELING":
                observation = replace(observation, follows=cancelling)
            case "tm.transition", "FAILED" if failing is not None:
                observation = replace(observation, follows=min(own, failing))
            case (("tm.transition" | "part.registered"), new):
                observation = replace(observation, follows=own)
                if failed and line.event == "part.registered":
                    observation = replace(
                        observation, impossible="a partition is registered by a thread that has failed"
                    )
                own, failed = at, new == "FAILED"
        found.append(observation)
    return found


_MASTER_LINE = {"schedule": ("CREATED", "SCHEDULED"), "deploy": ("SCHEDULED", "DEPLOYING")}
_TASK_LINE = {
    "start": ("CREATED", "DEPLOYING"),
    "initialize": ("DEPLOYING", "INITIALIZING"),
    "run": ("INITIALIZING", "RUNNING"),
    "finish": ("RUNNING", "FINISHED"),
    "stop": ("CANCELING", "CANCELED"),
}


_Turn = tuple[str, str, str]
"""The states that a line of the JobManager names, after the word "master"."""


@cache
def _turn(old: str, new: str) -> _Turn:
    return "master", old, new


@dataclass(frozen=True, slots=True)
class _Deferred(Sequence[Constraint]):
    """A constraint that is made when it is asked for. Most lines never are: their step is that of an equal one."""

    make: Callable[[AttemptExplainer, _Turn], Constraint]
    wording: AttemptExplainer
    turn: _Turn

    def __len__(self) -> int:
        return 1

    @overload
    def __getitem__(self, at: int) -> Constraint: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Constraint]: ...
    def __getitem__(self, at: int | slice) -> Constraint | Sequence[Constraint]:
        return (self.make(self.wording, self.turn),)[at]


@dataclass(frozen=True, slots=True)
class AttemptExplainer:
    """The lines about one attempt as observations, with explanations."""

    name: str
    number: int
    place: str

    # --- observations

    def master(self, event: Event) -> Observation:
        """A line of the JobManager."""
        args = event.args
        if event.event == "exec.deploy":
            return Observation(event, _SUBMIT, like="submit")
        turn = _turn(args["old"], "" if event.event == "exec.ignored" else args["new"])
        held, becomes = _Deferred(AttemptExplainer._held, self, turn), _Deferred(AttemptExplainer._becomes, self, turn)
        if event.event == "exec.ignored":
            return Observation(event, before=held, like=turn)
        return Observation(event, _MASTER_MOVES.get(args["new"], _UPDATE), becomes, held, like=turn)

    def _held(self, turn: _Turn) -> Constraint:
        _, old, _ = turn
        return Constraint(
            lambda look: f"attempt {self.number} of {self.name} was {look('master')}, not {old}",
            lambda look: look("master") == old,
        )

    def _becomes(self, turn: _Turn) -> Constraint:
        _, old, new = turn
        return Constraint(
            lambda look: f"{self._line(old, new)}, but the JobManager had to hold it for {look('master')}",
            lambda look: look("master") == new,
        )

    def replayed(self, event: Event) -> Observation:
        """The line of a new JobMaster that recovers the attempt as finished."""
        return Observation(event, before=(self._is("FINISHED"),), like=("is", "FINISHED"))

    def task(self, event: Event) -> Observation:
        """A line of the TaskManager."""
        args = event.args
        match event.event:
            case "tm.submit":
                return Observation(event, _RECEIVE, like="receive")
            case "tm.final":
                return Observation(event, before=(self._is(args["new"]),), like=("is", args["new"]))
            case "tm.failext" if args["what"] == "cancel":
                cancelled = Constraint(f"{self._whole} was not cancelled", lambda look: look("cancel_sent"))
                return Observation(event, before=(cancelled,), like="cancelled")
            case "tm.transition":
                old, new = args["old"], args["new"]
                return Observation(event, _TASK_MOVES.get(new, ()), (), (self._is(old),), like=("task", old, new))
            case _:
                return Observation(event, like="nothing")

    def store(self, event: Event, partition: int) -> Observation:
        """A line about a result partition of the attempt."""
        match event.event:
            case "part.registered":
                return Observation(event, ((Move("register", {"p": partition}),),), like=("register", partition))
            case "part.released":
                return Observation(event, ((Move("release", {"p": partition}),),), like=("release", partition))
            case "part.request":
                there = Constraint(
                    lambda look: f"a partition of {self._whole} is read that is {look('partition')[partition]}",
                    lambda look: look("partition")[partition] == "REGISTERED",
                )
                if event.args.get("type") != "BLOCKING":
                    return Observation(event, before=(there,), like=("read", partition))
                return Observation(event, before=(there, self._is("FINISHED")), like=("read again", partition))
            case _:
                return Observation(event, like="nothing")

    def _is(self, state: str) -> Constraint:
        return Constraint(
            lambda look: f"{self._whole} is {look('task')} on {self.place}, not {state}",
            lambda look: look("task") == state,
        )

    @property
    def _whole(self) -> str:
        return f"{self.name}#{self.number}"

    def _line(self, old: str, new: str) -> str:
        return switch(self.name, self.number, old, new)

    # --- explanations

    def why_not(self, move: Move, look: StateReader) -> str | None:
        """Why an action is disabled."""
        task, master = look("task"), look("master")
        match move.action:
            case "receive":
                if look("deployment") == "TAKEN":
                    return f"{self._whole} is deployed a second time"
                return f"{self._whole} is received, but the JobManager has not deployed it"
            case "update":
                return f"the JobManager holds {self.name} attempt {self.number} for {master}; on its TaskManager it is {task}"
            case "submit":
                if look("deployment") != "NONE":
                    return f"{self.name} attempt {self.number} is deployed a second time"
                return f"{self.name} attempt {self.number} is {master}, not DEPLOYING"
            case "cancel_task" if task in AT_WORK:
                return f"{self._whole} was not cancelled"
            case "register" | "release":
                states = look("partition")
                return f"the partition is {states[move.args['p']]} and {self._whole} is {task}"
            case name if name in OF_TASK:
                return f"{self._whole} is {task} on {self.place}"
            case _:
                return f"{self.name} attempt {self.number} is {master}"

    def expected(self, enabled: Sequence[Instance], look: StateReader, event: Event) -> Iterator[tuple[int, str]]:
        """Acceptable lines of either process."""
        mine = event.event in MASTER_LINES
        task, master = look("task"), look("master")
        for instance in enabled:
            match instance.action:
                case "schedule" | "deploy" as name:
                    yield int(not mine), self._line(*_MASTER_LINE[name])
                case "submit":
                    yield int(not mine), f"Deploying {self.name} (attempt #{self.number})"
                case "update":
                    said = look("reports")[0]
                    yield int(not mine), self._line(master, "CANCELED" if master == "CANCELING" else said)
                case "cancel":
                    yield 1 + int(not mine), self._line(master, "CANCELING")
                case "fail":
                    yield 1 + int(not mine), self._line(master, "FAILED")
                case "give_up":
                    yield int(not mine), self._line(master, "CANCELED")
                case "receive":
                    yield int(mine), f"Received task {self._whole} on {self.place}"
                case "start" | "initialize" | "run" | "finish" | "stop" as name:
                    yield int(mine), f"{self._on(*_TASK_LINE[name])}"
                case "cancel_task":
                    yield int(mine), self._on(task, "CANCELING")
                case "crash":
                    yield 1 + int(mine), self._on(task, "FAILED")

    def _on(self, old: str, new: str) -> str:
        return f"{self._whole} switches from {old} to {new} on {self.place}"
