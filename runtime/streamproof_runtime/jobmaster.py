"""The JobMaster as a state machine without input and output: slots, deployment, failures, restarts, results.

All edges are pipelined, so that a job is one region: a failure restarts it as a new attempt. Messages carry their attempt;
those of another attempt than the current one are ignored. Results count when every subtask of one attempt has finished.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from streamproof_runtime import messages as m
from streamproof_runtime.graph import ExecutionGraph
from streamproof_runtime.loop import MILLISECOND

NAME = "jobmaster"
USER_ERRORS = 3
"""Attempts that may end by an error of a user function before the job fails."""

WAITING, DEPLOYING, RUNNING, DONE, FAILED = "WAITING", "DEPLOYING", "RUNNING", "DONE", "FAILED"


@dataclass(frozen=True, slots=True)
class Timing:
    """Heartbeats, and the restart strategy: a fixed delay before each restart. Times are in nanoseconds."""

    heartbeat_interval: int = 5 * MILLISECOND
    heartbeat_timeout: int = 20 * MILLISECOND
    restart_delay: int = 2 * MILLISECOND
    restarts: int | None = None
    """Largest number of restarts; None: no limit."""
    executors: int = 0
    """TaskExecutors that an attempt waits for, so that subtasks are spread over all of them."""
    patience: int = 0
    """How long it waits for them; after that, enough slots are enough."""


class Host(Protocol):
    """What a machine may do to the world."""

    def send(self, target: str, message: m.Message) -> None:
        """Sends a message."""

    def close(self, target: str) -> None:
        """Closes a connection; both ends learn of it."""

    def call_later(self, delay: int, timer: str, attempt: int) -> None:
        """Calls `on_timer` after a delay in nanoseconds."""

    def event(self, event: str, args: Mapping[str, Any], attempt: int | None = None) -> None:
        """Records an event: of an attempt, or of the whole job."""


class JobMaster:
    """Coordinates one job."""

    def __init__(self, graph: ExecutionGraph, host: Host, timing: Timing) -> None:
        self.graph, self.host, self.timing = graph, host, timing
        self.status = WAITING
        self.attempt = 0
        self.slots: dict[str, int] = {}
        """Slots of each registered TaskExecutor."""
        self.silent: dict[str, int] = {}
        """Heartbeats without answer, by TaskExecutor."""
        self.placement: dict[str, str] = {}
        self.deployed: set[str] = set()
        self.finished: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        self.errors: list[str] = []
        self._waits = False
        self.needed = max(o.parallelism for o in graph.job.operators.values())

    def start(self) -> None:
        """Starts the heartbeats."""
        self.host.call_later(self.timing.heartbeat_interval, "heartbeat", 0)
        self._await_executors()

    def _await_executors(self) -> None:
        self._waits = bool(self.timing.executors)
        if self._waits:
            self.host.call_later(self.timing.patience, "patience", self.attempt)

    @property
    def is_over(self) -> bool:
        """Whether the job has finished or failed for good."""
        return self.status in (DONE, FAILED)

    def on_message(self, peer: str, message: m.Message) -> None:
        """A message of a TaskExecutor."""
        kind = message[0]
        if kind == m.REGISTER:
            self.fail_if_uses(peer, "registered again")
            self.slots[peer], self.silent[peer] = message[2], 0
            self.host.event("registered", {"executor": peer, "incarnation": message[1], "slots": message[2]})
            self.schedule()
        elif peer in self.slots:
            self.silent[peer] = 0
            if kind != m.ALIVE and message[1] == self.attempt and not self.is_over:
                self._of_attempt(peer, message)

    def _of_attempt(self, peer: str, message: m.Message) -> None:
        kind = message[0]
        if kind == m.DEPLOYED and self.status == DEPLOYING:
            self.deployed.add(peer)
            if self.deployed == set(self.placement.values()):
                self.status = RUNNING
                self.host.event("started", {}, self.attempt)
                self._tell((m.START, self.attempt))
        elif kind == m.FAILED:
            if message[3]:
                self.errors.append(message[2])
            self.fail(message[2])
        elif kind == m.FINISHED and self.status == RUNNING:
            self.finished[message[2]] = message[3]
            if len(self.finished) == len(self.graph.tasks):
                self.status = DONE
                self.results = {t: r for t, r in sorted(self.finished.items()) if self.graph.operator_of[t].is_sink}
                self.host.event("finished", {}, self.attempt)

    def on_lost(self, peer: str) -> None:
        """The connection to a TaskExecutor is lost: so are its slots, until it registers again."""
        if self.slots.pop(peer, None) is not None:
            self.host.event("executor_lost", {"executor": peer})
            self.fail_if_uses(peer, f"connection to {peer} lost")

    def on_timer(self, timer: str, attempt: int) -> None:
        """Heartbeats, and the end of the delay before a restart."""
        if self.is_over:
            return
        if timer == "restart":
            self.schedule()
            return
        if timer == "patience":
            if attempt == self.attempt:
                self._waits = False
                self.schedule()
            return
        for peer in sorted(self.slots):
            self.silent[peer] += 1
            if self.silent[peer] * self.timing.heartbeat_interval > self.timing.heartbeat_timeout:
                self.host.close(peer)
                self.on_lost(peer)
            else:
                self.host.send(peer, (m.HEARTBEAT,))
        self.host.call_later(self.timing.heartbeat_interval, "heartbeat", 0)

    def fail_if_uses(self, peer: str, reason: str) -> None:
        """Ends the attempt if it has subtasks on a TaskExecutor."""
        if self.status in (DEPLOYING, RUNNING) and peer in self.placement.values():
            self.fail(reason)

    def fail(self, reason: str) -> None:
        """Ends the attempt; another one follows, unless user functions have failed too often or no restart is left."""
        self.host.event("failed", {"reason": reason}, self.attempt)
        self._tell((m.CANCEL, self.attempt))
        if self.timing.restarts is not None and self.attempt >= self.timing.restarts and len(self.errors) < USER_ERRORS:
            self.errors.append(f"no restart is left after {self.attempt}: {reason}")
            self.status = FAILED
        else:
            self.status = FAILED if len(self.errors) >= USER_ERRORS else WAITING
        if self.status == WAITING:
            self.attempt += 1  # what still arrives of the old attempt is ignored
            self.placement = {}
            self._await_executors()
            self.host.call_later(self.timing.restart_delay, "restart", self.attempt)

    def schedule(self) -> None:
        """Deploys an attempt if none is under way and there are enough slots.

        A slot takes one subtask of each operator; subtasks are spread over all TaskExecutors.
        """
        most = max(self.slots.values(), default=0)
        slots = [peer for level in range(most) for peer in sorted(self.slots) if self.slots[peer] > level]
        if self.status != WAITING or len(slots) < self.needed:
            return
        if self._waits and len(self.slots) < self.timing.executors:
            return
        self.status, self.deployed, self.finished = DEPLOYING, set(), {}
        placed = 0
        for operator in self.graph.job.operators.values():
            tasks = [t for t, o in self.graph.operator_of.items() if o is operator]
            for i, task in enumerate(tasks):
                self.placement[task] = slots[(placed + i) % len(slots)]
            placed += len(tasks)
        self.host.event("deployed", {"graph": str(self.graph), "placement": dict(self.placement)}, self.attempt)
        self._tell((m.DEPLOY, self.attempt, dict(self.placement)))

    def _tell(self, message: m.Message) -> None:
        for peer in sorted(set(self.placement.values())):
            if peer in self.slots:
                self.host.send(peer, message)
