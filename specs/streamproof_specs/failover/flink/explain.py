"""Explanations of the failover machine in the terms of Flink's logs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamproof.conformance import Event, Instance, Move, StateReader
from streamproof_specs.failover.flink.recorded_machine import RecordedFailover, RecordedGraph

_STEP = {
    "deploy": ("SCHEDULED", "DEPLOYING"),
    "initialize": ("DEPLOYING", "INITIALIZING"),
    "run": ("INITIALIZING", "RUNNING"),
    "finish": ("RUNNING", "FINISHED"),
    "cancel": ("CANCELING", "CANCELED"),
}


def listed(names: Collection[str], most: int = 6) -> str:
    """A list of names for a sentence, abridged."""
    ordered = list(names)
    more = len(ordered) - most
    return ", ".join(ordered[:most]) + (f" and {more} more" if more > 0 else "") if ordered else "none"


def switch(task: str, number: Any, old: str, new: str) -> str:
    """A line about an attempt."""
    return f"{task} attempt {number} switches from {old} to {new}"


@dataclass(slots=True)
class Shown:
    """The state of each attempt in the log, after any of its lines. An attempt starts as CREATED."""

    _lines: dict[tuple[str, int], int] = field(default_factory=dict)
    """Number of each line, by process and position."""
    _changes: dict[tuple[str, int], list[tuple[int, str]]] = field(default_factory=dict)
    """By task and number of the attempt: the lines that changed its state, and the new states."""

    def read(self, event: Event) -> None:
        """Adds the next line."""
        self._lines[event.process, event.seq] = len(self._lines)

    def change(self, task: str, number: int, state: str) -> None:
        """Records a new state of an attempt in the last line read."""
        self._changes.setdefault((task, number), []).append((len(self._lines) - 1, state))

    def last(self) -> dict[tuple[str, int], str]:
        """The current states of the attempts in the log."""
        return {attempt: changes[-1][1] for attempt, changes in self._changes.items()}

    def now(self, task: str, number: int) -> str | None:
        """The current state of an attempt; None if the log has none."""
        changes = self._changes.get((task, number))
        return changes[-1][1] if changes else None

    def after(self, event: Event, task: str, number: int) -> str:
        """The state of an attempt after a line."""
        line = self._lines[event.process, event.seq]
        changes = self._changes.get((task, number), ())
        return next((state for at, state in reversed(changes) if at <= line), "CREATED")


@dataclass(frozen=True, slots=True)
class FailoverExplainer:
    """Explanations for one job, whose log has `shown` the states of its attempts."""

    recorded: RecordedGraph
    model: RecordedFailover
    shown: Shown

    def why_not(self, move: Move, look: StateReader) -> str | None:
        """Why an action is disabled, from the states of its tasks."""
        args = move.args
        match move.action:
            case "schedule":
                return self._why_not_scheduled(args["r"], look)
            case "deploy" | "initialize" | "run" | "cancel":
                return self._present(args["t"], look)
            case "finish":
                return self._why_not_finished(args["t"], look)
            case "complete":
                unfinished = [t for t in self.model.tasks if look("status", t) != "FINISHED"]
                return f"the job cannot be FINISHED: {listed([self._present(t, look) for t in unfinished])}"
            case "fail" | "give_up":
                if look("decided") >= self.model.decisions and move.action == "fail":
                    return "more failures than decisions to restart"
                return self._present(args["t"], look)
            case "miss":
                producer = self.model.partitions[args["p"]]
                return f"{self._present(args['t'], look)}, and its input from {producer} is not missing"
            case _:
                return None

    def _present(self, task: str, look: StateReader) -> str:
        return f"{task} attempt {look('attempt', task)} is {look('status', task)}"

    def _why_not_scheduled(self, name: str, look: StateReader) -> str:
        tasks = self.model.regions[name]
        busy = [t for t in tasks if look("status", t) != "CREATED"]
        if busy:
            return f"{listed([self._present(t, look) for t in busy])}: nothing schedules it anew"
        waiting = {p: t for t in tasks for p in self.model.upstream[t] if look("status", p) != "FINISHED"}
        begun = {p: t for t in tasks for p in self.model.begun_before[t] if look("status", p) == "CREATED"}
        late = [self._present(p, look) for p in {**waiting, **begun}]
        first = next(iter({**waiting, **begun}.values()), tasks[0])
        return f"{first} is scheduled before its input is there: {listed(late)}"

    def _why_not_finished(self, task: str, look: StateReader) -> str:
        if look("status", task) != "RUNNING":
            return self._present(task, look)
        producers = dict.fromkeys(self.model.channels[c][0] for c in self.model.inputs[task])
        late = [self._present(p, look) for p in producers if look("status", p) != "FINISHED"]
        return f"{task} finishes before its input is complete: {listed(late)}"

    # --- acceptable lines

    def expected(self, enabled: Sequence[Instance], look: StateReader, event: Event) -> Iterable[tuple[int, str]]:
        """Acceptable lines here: transitions that the machine allows, and transitions it has made that the log has not
        shown yet."""
        about = self.recorded.task_of(event) if "vertex" in event.args and "subtask" in event.args else None
        new = event.args.get("new")
        for instance in enabled:
            args = dict(instance.args)
            match instance.action:
                case "schedule":
                    for task in self.model.regions[args["r"]]:
                        yield self._line(task, look, "CREATED", "SCHEDULED", about, new)
                case "deploy" | "initialize" | "run" | "finish" | "cancel":
                    old, then = _STEP[instance.action]
                    if self._shown(event, args["t"], look, old):
                        yield self._line(args["t"], look, old, then, about, new)
                case "fail":
                    status = look("status", args["t"])
                    if self._shown(event, args["t"], look, status):
                        yield self._line(args["t"], look, status, "FAILED", about, new)
                case "complete":
                    yield (0 if event.event == "job.transition" else 3), "the job switches from RUNNING to FINISHED"
        for task in self.model.tasks:
            number, status = look("attempt", task), look("status", task)
            shown = self.shown.after(event, task, number)
            if shown != status and status in ("SCHEDULED", "CANCELING"):
                yield self._line(task, look, shown, status, about, new)

    def _shown(self, event: Event, task: str, look: StateReader, status: str) -> bool:
        return self.shown.after(event, task, look("attempt", task)) == status

    def _line(
        self, task: str, look: StateReader, old: str, then: str, about: str | None, new: str | None
    ) -> tuple[int, str]:
        distance = 2 * (task != about) + (then != new)
        return distance, switch(task, look("attempt", task), old, then)
