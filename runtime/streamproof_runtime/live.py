"""What a live view shows of a run: plain values, gathered from the machines between two steps, and put together on a board.

Nothing here changes a run: no message of a protocol is sent, and without a view nothing is gathered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.jobmaster.region_scheduler import RegionScheduler
from streamproof_runtime.slots.resource_manager import ALLOCATED, PENDING, ResourceManager
from streamproof_runtime.slots.slot_events import RM
from streamproof_runtime.subtasks.subtask import RUNNING, Subtask
from streamproof_runtime.taskexecutor.executor import TaskExecutor
from streamproof_runtime.taskexecutor.region_executor import RegionExecutor

Watch: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Takes a snapshot of a board."""
EVENTS = 200
"""Events that a board keeps; a view shows the last ones."""
WINDOW = 1.0
"""Seconds over which a rate is measured, at least."""


def executor_sample(executor: TaskExecutor) -> list[dict[str, Any]]:
    """The subtasks of a TaskExecutor.

    `buffers` wait in the input gate, of `capacity` for channels without feedback, and `feedback` in those with; `credits`
    are those of its outputs, for which `waiting` buffers wait if there are none.
    """
    return [_row(part, subtask) for part in executor.parts for subtask in part.subtasks.values()]


def _row(part: RegionExecutor, subtask: Subtask) -> dict[str, Any]:
    plan, gate, outputs = subtask.plan, part.channels.gates.get(subtask.name), part.channels.outputs
    buffers = sum(len(subtask.queues[channel]) for channel in plan.inputs)
    waiting = sum(len(outputs.waiting.get(channel, ())) for channel in plan.outputs)
    state = subtask.phase
    if state == RUNNING:
        state = "DEPLOYED" if not part.is_running else "BLOCKED" if waiting else state
    return {
        "task": subtask.name,
        "region": part.region.number,
        "attempt": part.attempt,
        "state": state,
        "buffers": buffers,
        "capacity": buffers + sum(gate.free.values()) if gate else 0,
        "feedback": sum(len(subtask.queues[channel]) for channel in plan.feedback_inputs),
        "credits": sum(outputs.credit.get(channel, 0) for channel in plan.outputs),
        "waiting": waiting,
        "records": subtask.records,
    }


def master_sample(master: RegionScheduler) -> dict[str, Any]:
    """The job as its JobMaster knows it: the state and attempt of each region, its subtasks and where they are."""
    return {
        "status": master.status,
        "attempts": master.first_attempt + master.decided + 1,
        "executors": dict(master.executors.slots),
        "regions": [
            {
                "region": run.region.number,
                "state": run.status,
                "attempt": run.attempt,
                "tasks": {task: run.placement.get(task, "") for task in run.region.graph.tasks},
            }
            for run in master.runs
        ],
    }


def manager_sample(manager: ResourceManager) -> dict[str, Any]:
    """What the ResourceManager knows: slots of TaskExecutors, those `allocated`, `requested`, and `required` by the job."""
    states = [allocation.state for allocation in manager.allocations.values()]
    return {
        "executors": len(manager.executors),
        "slots": sum(executor.slots for executor in manager.executors.values()),
        "allocated": states.count(ALLOCATED),
        "requested": states.count(PENDING),
        "required": manager.required,
    }


class Board:
    """Puts together what the processes of a run say."""

    def __init__(self, window: float = WINDOW) -> None:
        self._window = window
        self._master: Mapping[str, Any] = {"status": "starting", "attempts": 0, "executors": {}, "regions": []}
        self._manager: Mapping[str, Any] | None = None
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._events: deque[tuple[float, str]] = deque(maxlen=EVENTS)
        self._happened = 0
        self._earlier: deque[tuple[float, dict[tuple[str, int], int]]] = deque()

    def master(self, sample: Mapping[str, Any]) -> None:
        """The JobMaster's sample."""
        self._master = sample

    def executor(self, name: str, rows: list[dict[str, Any]]) -> None:
        """The sample of a TaskExecutor."""
        self._rows[name] = rows

    def manager(self, sample: Mapping[str, Any] | None) -> None:
        """The ResourceManager's sample, or None if there is none."""
        self._manager = sample

    def lost(self, name: str) -> None:
        """A process has ended."""
        self._rows.pop(name, None)
        if name == RM:
            self._manager = None
        if name == JOBMASTER:
            self._master = {**self._master, "status": "JobMaster lost"}

    def happened(self, time: float, text: str) -> None:
        """Something worth a line."""
        self._events.append((time, text))
        self._happened += 1

    def snapshot(self, time: float, title: str) -> dict[str, Any]:
        """All of it at a time in seconds: `tasks` in the order of the job, each with its rate in records a second."""
        rows = {(row["task"], row["attempt"]): (name, row) for name, own in self._rows.items() for row in own}
        counts = {key: row["records"] for key, (_, row) in rows.items()}
        earlier = self._earlier
        earlier.append((time, counts))
        while len(earlier) > 2 and earlier[1][0] <= time - self._window:
            earlier.popleft()
        since, before = earlier[0]
        tasks = []
        for region in self._master["regions"]:
            for task, placed in region["tasks"].items():
                key = task, region["attempt"]
                name, row = rows.get(key, (placed, {"state": region["state"]}))
                new = max(0, counts.get(key, 0) - before.get(key, 0))
                rate = new / (time - since) if time > since else 0.0
                known = {"task": task, "executor": name, "region": region["region"], "attempt": region["attempt"]}
                tasks.append({**known, **row, "rate": rate})
        return {
            "title": title,
            "time": time,
            "status": self._master["status"],
            "attempts": self._master["attempts"],
            "executors": self._master["executors"],
            "manager": self._manager,
            "tasks": tasks,
            "events": [*self._events],
            "happened": self._happened,
        }
