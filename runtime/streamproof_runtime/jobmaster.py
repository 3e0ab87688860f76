"""The JobMaster as a state machine without input and output: slots, deployment, partitions, failures, restarts, results.

A job is scheduled region by region, when the partitions that a region reads are stored. The failure of a region is a
*decision* to restart it, together with the producers of lost partitions that are needed and all consumers of what is made
again. When the regions of a decision have stopped they start again as new attempts, except those that a newer decision has
taken over. Messages carry region and attempt; those of another attempt than the current one are ignored. The results count
when all regions have finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamproof_runtime import messages as m
from streamproof_runtime.loop import MILLISECOND
from streamproof_runtime.regions import Region, job_graph, placed

NAME = "jobmaster"
USER_ERRORS = 3
"""Failures by an error of a user function until the job fails."""

CREATED, DEPLOYING, RUNNING, FINISHED = "CREATED", "DEPLOYING", "RUNNING", "FINISHED"
STOPPING, STOPPED = "STOPPING", "STOPPED"
"""States of a region."""
DONE, FAILED = "DONE", "FAILED"
"""The job is RUNNING, DONE or FAILED."""
NONE, PRODUCING, STORED, GONE, RELEASED = "NONE", "PRODUCING", "STORED", "GONE", "RELEASED"
"""States of a dataset; GONE: part of it is lost, and no reader has missed it yet."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Heartbeats, and the restart strategy: a fixed delay before each restart. Times are in nanoseconds."""

    heartbeat_interval: int = 5 * MILLISECOND
    heartbeat_timeout: int = 20 * MILLISECOND
    restart_delay: int = 2 * MILLISECOND
    restarts: int | None = None
    """Largest number of restarts; None: no limit."""
    executors: int = 0
    """TaskExecutors that a deployment waits for, so that subtasks are spread over all of them."""
    patience: int = 0
    """How long it waits for them; after that, enough slots are enough."""


class Host(Protocol):
    """What a machine may do to the world."""

    def send(self, target: str, message: m.Message) -> None:
        """Sends a message."""

    def close(self, target: str) -> None:
        """Closes a connection; both ends learn of it."""

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """Calls `on_timer` after a delay in nanoseconds."""

    def event(self, event: str, args: Mapping[str, Any], trace: str = "") -> None:
        """Records an event: of the job, or of the attempt of a region whose trace has this ending."""


@dataclass(slots=True)
class Run:
    """A region, and its current attempt."""

    region: Region
    several: bool
    status: str = CREATED
    attempt: int = 0
    version: int = -1
    """The newest decision that restarts it."""
    placement: dict[str, str] = field(default_factory=dict)
    deployed: set[str] = field(default_factory=set)
    finished: dict[str, Any] = field(default_factory=dict)
    stopping: set[str] = field(default_factory=set)
    """TaskExecutors that have not stopped its subtasks yet."""
    failed: str = ""
    """The operator that has failed."""

    @property
    def trace(self) -> str:
        """The ending of the trace of this attempt."""
        return f"/{self.region.number}#{self.attempt}" if self.several else f"#{self.attempt}"

    @property
    def is_active(self) -> bool:
        """Whether it occupies slots and is not being stopped."""
        return self.status in (DEPLOYING, RUNNING)


@dataclass(slots=True)
class Dataset:
    """What a blocking exchange stores: where, and by which attempt."""

    producer: Run
    consumer: Run
    state: str = NONE
    attempt: int = 0
    locations: tuple[str, ...] = ()


@dataclass(slots=True)
class Decision:
    """Regions to restart, and those of them that have not stopped."""

    runs: list[Run]
    awaiting: list[Run]
    is_due: bool = False


class JobMaster:
    """Coordinates one job."""

    def __init__(self, regions: Sequence[Region], host: Host, timing: Timing) -> None:
        self.host, self.timing = host, timing
        self.runs = [Run(region, len(regions) > 1) for region in regions]
        writers = {name: run for run in self.runs for name in run.region.writes}
        self.datasets = {name: Dataset(writers[name], run) for run in self.runs for name in run.region.reads}
        self.status = RUNNING
        self.decided = 0
        self.pending: dict[int, Decision] = {}
        self.slots: dict[str, int] = {}
        """Slots of each registered TaskExecutor."""
        self.silent: dict[str, int] = {}
        """Heartbeats without answer, by TaskExecutor."""
        self.results: dict[str, Any] = {}
        self.errors: list[str] = []
        self._waits = False
        self.needed = max(
            o.parallelism for r in regions for o in r.graph.job.operators.values() if o.name in r.operators
        )

    def start(self) -> None:
        """Records the job graph, and starts the heartbeats."""
        self.host.event("job_started", job_graph([run.region for run in self.runs]))
        self.host.call_later(self.timing.heartbeat_interval, "heartbeat", 0)
        self._await_executors()

    def _await_executors(self) -> None:
        self._waits = bool(self.timing.executors)
        if self._waits:
            self.host.call_later(self.timing.patience, "patience", self.decided)

    @property
    def is_over(self) -> bool:
        """Whether the job has finished or failed for good."""
        return self.status in (DONE, FAILED)

    # --- messages and timers

    def on_message(self, peer: str, message: m.Message) -> None:
        """A message of a TaskExecutor."""
        kind = message[0]
        if kind == m.REGISTER:
            self._forget(peer, "registered again")
            self.slots[peer], self.silent[peer] = message[2], 0
            self.host.event("registered", {"executor": peer, "incarnation": message[1], "slots": message[2]})
            self.schedule()
        elif peer in self.slots:
            self.silent[peer] = 0
            if kind != m.ALIVE and not self.is_over and message[2] == self.runs[message[1]].attempt:
                self._of_attempt(self.runs[message[1]], peer, message)

    def _of_attempt(self, run: Run, peer: str, message: m.Message) -> None:
        kind = message[0]
        if kind == m.DEPLOYED and run.status == DEPLOYING:
            run.deployed.add(peer)
            if run.deployed == set(run.placement.values()):
                self._running(run)
                self.host.event("started", {}, run.trace)
                self._tell(run, (m.START, run.region.number, run.attempt))
        elif kind == m.FAILED and run.is_active:
            if message[4]:
                self.errors.append(message[3])
            self.fail(run, message[3], message[5])
        elif kind == m.FINISHED and run.status == RUNNING:
            run.finished[message[3]] = message[4]
            if len(run.finished) == len(run.region.graph.tasks):
                self._finish(run)
        elif kind == m.CANCELED and run.status == STOPPING:
            self._stops(run, peer)

    def on_lost(self, peer: str) -> None:
        """The connection to a TaskExecutor is lost: so are its slots, until it registers again, and its partitions."""
        if self.slots.pop(peer, None) is not None:
            self.host.event("executor_lost", {"executor": peer})
            self._forget(peer, f"connection to {peer} lost")

    def _forget(self, peer: str, reason: str) -> None:
        """What was stored on a TaskExecutor is gone, and what ran on it has failed."""
        if self.is_over:
            return
        for name, found in self.datasets.items():
            if found.state == STORED and peer in found.locations:
                found.state = GONE
                self.host.event("partition_lost", {"partition": name})
        for run in self.runs:
            if self.status == RUNNING and peer in run.placement.values():
                if run.is_active:
                    self.fail(run, reason)
                if run.status == STOPPING:
                    self._stops(run, peer)

    def on_timer(self, timer: str, number: int) -> None:
        """Heartbeats, the end of the wait for TaskExecutors, and the end of the delay before a restart."""
        if self.is_over:
            return
        if timer == "restart":
            self.pending[number].is_due = True
            self.restart(number)
            return
        if timer == "patience":
            if number == self.decided:
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

    # --- scheduling

    def schedule(self) -> None:
        """Deploys each region whose inputs are stored, if there are enough slots.

        A slot takes one subtask of each operator; subtasks are spread over all TaskExecutors.
        """
        most = max(self.slots.values(), default=0)
        slots = [peer for level in range(most) for peer in sorted(self.slots) if self.slots[peer] > level]
        if self.status != RUNNING or len(slots) < self.needed:
            return
        if self._waits and len(self.slots) < self.timing.executors:
            return
        for run in self.runs:
            if self.status == RUNNING and run.status == CREATED and self.is_ready(run):
                self._deploy(run, slots)

    def is_ready(self, run: Run) -> bool:
        """Whether the producers of its inputs have finished for good."""
        return all(self._has_finished(self.datasets[name].producer) for name in run.region.reads)

    def _has_finished(self, run: Run) -> bool:
        return run.status == FINISHED and run.version not in self.pending

    def _deploy(self, run: Run, slots: list[str]) -> None:
        number, attempt = run.region.number, run.attempt
        run.status, run.deployed, run.finished, run.placement, run.failed = DEPLOYING, set(), {}, {}, ""
        for name in run.region.writes:
            self.datasets[name].state = PRODUCING
        self.host.event("region_scheduled", {"tasks": [*run.region.operators], "attempt": attempt})
        inputs = {name: self.datasets[name] for name in run.region.reads}
        for name, found in inputs.items():
            if found.state != STORED:
                self.fail(run, f"the partitions of {name} are lost", name)
                return
        run.placement = placed(run.region, slots, {name: found.locations for name, found in inputs.items()})
        self.host.event("deployed", {"graph": str(run.region.graph), "placement": dict(run.placement)}, run.trace)
        reads = {name: found.attempt for name, found in inputs.items()}
        self._tell(run, (m.DEPLOY, number, attempt, dict(run.placement), reads))

    def _running(self, run: Run) -> None:
        run.status = RUNNING
        inputs = {name: self.datasets[name] for name in run.region.reads}
        reads = {name: found.attempt for name, found in inputs.items() if found.state == STORED}
        self.host.event("region_running", {"tasks": [*run.region.operators], "reads": reads})

    def _finish(self, run: Run) -> None:
        """All subtasks have terminated: outputs are stored, inputs released, and sinks have their results."""
        run.status = FINISHED
        operators = run.region.graph.operator_of
        self.host.event("finished", {}, run.trace)
        for name in run.region.writes:
            found = self.datasets[name]
            writers = [task for task, operator in operators.items() if operator.writes == name]
            found.state, found.attempt = STORED, run.attempt
            found.locations = tuple(run.placement[task] for task in writers)
        released = [name for name in run.region.reads if self.datasets[name].state in (STORED, GONE)]
        self.host.event("region_finished", {"tasks": [*run.region.operators], "released": released})
        for name in released:
            self._drop(name, RELEASED)
        self._complete()
        self.schedule()

    def _complete(self) -> None:
        if all(r.status == FINISHED for r in self.runs) and not self.pending:
            self.status = DONE
            results = {t: v for r in self.runs for t, v in r.finished.items() if r.region.graph.operator_of[t].is_sink}
            self.results = dict(sorted(results.items()))
            self.host.event("job_finished", {})

    def _drop(self, name: str, state: str) -> None:
        """A dataset is not needed, or void: its files are."""
        found = self.datasets[name]
        found.state = state
        for peer in sorted(set(found.locations) & self.slots.keys()):
            self.host.send(peer, (m.RELEASE, name, found.attempt))
        found.locations = ()

    # --- failures

    def fail(self, run: Run, reason: str, missing: str = "") -> None:
        """An active region has failed: decides what to restart, unless the restart strategy allows no more."""
        self.host.event("failed", {"reason": reason}, run.trace)
        if missing:
            if self.datasets[missing].state == STORED:
                self.datasets[missing].state = GONE
                self.host.event("partition_lost", {"partition": missing})
            if run.status == DEPLOYING:
                self._running(run)
        run.failed = run.region.reads[missing] if missing else run.region.operators[0]
        about = {"task": run.failed, **({"missing": missing} if missing else {})}
        limit = self.timing.restarts
        if len(self.errors) >= USER_ERRORS or (limit is not None and self.decided >= limit):
            if len(self.errors) < USER_ERRORS:
                self.errors.append(f"no restart is left after {self.decided}: {reason}")
            self.status = FAILED
            self.host.event("job_failed", about)
            for each in self.runs:
                self._tell(each, (m.CANCEL, each.region.number, each.attempt))
            return
        self._void(name for name, task in run.region.writes.items() if task == run.failed)
        chosen = [r for r in self.to_restart(run, missing) if r.status != CREATED]
        decision = self.decided
        self.decided += 1
        self.host.event("region_failed", {**about, "restarts": [t for r in chosen for t in r.region.operators]})
        self.pending[decision] = Decision(chosen, [r for r in chosen if r.is_active or r.status == STOPPING])
        for each in chosen:
            each.version = decision
        self._await_executors()
        self.host.call_later(self.timing.restart_delay, "restart", decision)
        for each in chosen:
            if each.is_active:
                self._stop(each)

    def to_restart(self, failed: Run, missing: str) -> list[Run]:
        """The region that has failed; producers of lost inputs of restarting regions; all consumers of restarting ones."""
        found = {failed.region.number}
        while True:
            more = {
                number
                for name, each in self.datasets.items()
                for number in self._caused(each, found, self.produced_again(name, missing))
            }
            if more <= found:
                return [run for run in self.runs if run.region.number in found]
            found |= more

    def produced_again(self, name: str, missing: str) -> bool:
        """Whether a dataset is made again if its reader restarts: it is void, released, or missing."""
        return name == missing or self.datasets[name].state in (NONE, RELEASED)

    restarts_readers = True

    def next_attempt(self, run: Run) -> int:
        """The number of the attempt after the current one."""
        return run.attempt + 1

    def _caused(self, each: Dataset, found: set[int], is_lost: bool) -> Iterable[int]:
        producer, consumer = each.producer.region.number, each.consumer.region.number
        if consumer in found and is_lost:
            yield producer
        if producer in found and self.restarts_readers:
            yield consumer

    def _stop(self, run: Run) -> None:
        run.status, run.stopping = STOPPING, set(run.placement.values()) & self.slots.keys()
        self._tell(run, (m.CANCEL, run.region.number, run.attempt))
        if not run.stopping:
            self._stopped(run)

    def _stops(self, run: Run, peer: str) -> None:
        """A TaskExecutor has stopped the subtasks of a region, or is lost."""
        run.stopping.discard(peer)
        if not run.stopping:
            self._stopped(run)

    def _stopped(self, run: Run) -> None:
        run.status = STOPPED
        self.host.event("region_canceled", {"tasks": [t for t in run.region.operators if t != run.failed]})
        self._void(run.region.writes)
        for decision in self.pending.values():
            decision.awaiting = [each for each in decision.awaiting if each is not run]
        for number in list(self.pending):
            self.restart(number)

    def _void(self, names: Iterable[str]) -> None:
        for name in names:
            self._drop(name, NONE)

    def restart(self, number: int) -> None:
        """After its delay, and when all regions of a decision have stopped, those that are still its own start again."""
        decision = self.pending.get(number)
        if decision is None or not decision.is_due or decision.awaiting:
            return
        own = self.own(number, decision)
        del self.pending[number]
        self.host.event("restarted", {"decision": number, "tasks": [t for r in own for t in r.region.operators]})
        for run in own:
            run.status, run.attempt, run.finished, run.placement = CREATED, self.next_attempt(run), {}, {}
            self._void(run.region.writes)
        self._complete()
        self.schedule()

    def own(self, number: int, decision: Decision) -> list[Run]:
        """The regions that no newer decision has taken over."""
        return [run for run in decision.runs if run.version == number]

    def _tell(self, run: Run, message: m.Message) -> None:
        for peer in sorted(set(run.placement.values())):
            if peer in self.slots:
                self.host.send(peer, message)
