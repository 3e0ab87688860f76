"""The JobMaster as a state machine without input and output: TaskExecutors, their messages and heartbeats, and timers.

A job is scheduled region by region (`region_scheduler`), and fails over by regions (`region_failover`). Messages carry region
and attempt; those of another attempt than the current one are ignored. The results count when all regions have finished.

A JobMaster that replaces a lost one begins the job anew: TaskExecutors that lose their JobMaster stop all subtasks and drop
what they store. Its attempts have larger numbers, so that nothing of an earlier attempt is taken for one of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamproof_runtime import messages as m
from streamproof_runtime.jobmaster.checkpoints import EXPIRE, TRIGGER, CheckpointCoordinator
from streamproof_runtime.jobmaster.cluster_partitions import PromotingMaster
from streamproof_runtime.jobmaster.datasets import GONE
from streamproof_runtime.jobmaster.master_host import Host, Timing
from streamproof_runtime.jobmaster.region_runs import CREATED, DEPLOYING, RUNNING, STOPPING, Run
from streamproof_runtime.jobmaster.region_scheduler import DONE, FAILED
from streamproof_runtime.jobmaster.regions import Region, job_graph
from streamproof_runtime.slots.resources import text
from streamproof_runtime.slots.slot_events import RM
from streamproof_runtime.subtasks.barriers import Snapshot

NAME = "jobmaster"


def job_trace(job: str, session: int) -> str:
    """The trace of a job's own events: ``job``, and ``job@n`` of the JobMaster that n others were before."""
    return f"{job}@{session}" if session else job


class JobMaster(PromotingMaster):
    """Coordinates one job."""

    coordinator = CheckpointCoordinator

    def __init__(self, regions: Sequence[Region], host: Host, timing: Timing, first_attempt: int = 0) -> None:
        super().__init__(regions, host, timing, first_attempt)
        self.checkpoints = self.coordinator(self.runs[0], host, timing)
        self.is_stopping = False
        self._stops: dict[str, int] = {}
        """Where unbounded sources end."""
        self._waiting = 0
        """Heartbeats for which a region has been ready without slots."""

    def start(self) -> None:
        """Records the job graph, and starts the heartbeats."""
        scheduling = "EAGER" if self.timing.eager else "LAZY"
        about = {"scheduling": scheduling, "first_attempt": self.first_attempt, **self.checkpoints.settings()}
        about |= self.timing.budget.record()
        if promoted := sorted(name for run in self.runs for name in run.region.promotes):
            about["promoted"] = promoted
        if unbounded := [t for r in self.runs for t, o in r.region.graph.operator_of.items() if o.is_unbounded]:
            about["unbounded"] = unbounded
        self.host.event("job_started", {**job_graph([run.region for run in self.runs]), **about})
        self.host.call_later(self.timing.heartbeat_interval, "heartbeat", 0)
        self.require_slots()
        self.await_executors()
        self.locate()

    @property
    def is_over(self) -> bool:
        """Whether the job has finished or failed for good."""
        return self.status in (DONE, FAILED)

    def on_message(self, peer: str, message: m.Message) -> None:
        """A message of a TaskExecutor."""
        kind = message[0]
        if kind == m.REGISTER:
            self.on_lost(peer)
            self.executors.add(peer, message[2])
            about = {"executor": peer, "incarnation": message[1], "slots": message[2], "connection": message[3]}
            self.host.event("registered", about)
            self.schedule()
        elif kind == m.LOCATED:
            self.on_located(*message[1:])
        elif peer in self.executors.slots:
            self.executors.silent[peer] = 0
            if kind == m.OFFER:
                if self.pool.on_offer(peer, *message[1:]):
                    self.schedule()
            elif kind == m.SLOT_FAILED:
                self._slot_failed(peer, message)
            elif kind == m.LISTED:
                self.pool.on_listed(peer)
            elif kind != m.ALIVE and not self.is_over and message[2] == self.run(message[1]).attempt:
                self._of_attempt(self.run(message[1]), peer, message)

    def on_pulse(self, peer: str) -> None:
        """A sign of life of a TaskExecutor, whose answers a user function may keep waiting; one that is to stop subtasks must
        answer."""
        if peer in self.executors.slots and not any(peer in run.stopping for run in self.runs):
            self.executors.silent[peer] = 0

    def _slot_failed(self, peer: str, message: m.Message) -> None:
        """A slot is gone, and with it what ran in it."""
        for number in sorted(self.pool.on_failed(peer, *message[1:])):
            run = self.run(number)
            if run.is_active and not self.is_over:
                self.fail(run, f"{peer} does not have slot {message[1]}", task=run.at(peer, message[1]))

    def _of_attempt(self, run: Run, peer: str, message: m.Message) -> None:
        kind = message[0]
        if kind == m.DEPLOYED and run.status == DEPLOYING:
            run.deployed.add(peer)
            if run.deployed == set(run.placement.values()):
                self.begin_to_run(run)
        elif kind == m.FETCH:
            self.host.send(peer, (m.BLOB, *message[1:], self.blobs.fetch(message[3])))
        elif kind == m.FAILED and run.is_active:
            if message[4]:
                self.errors.append(message[3])
            self.fail(run, message[3], message[5], run.operator(message[6]) if message[6] else run.at(peer))
        elif kind == m.FINISHED and run.status == RUNNING:
            run.finished[message[3]] = message[4]
            if len(run.finished) == len(run.region.graph.tasks):
                self.settle(run)
        elif kind == m.PROMOTED and run.is_active:
            self.on_promoted(run, peer)
        elif kind == m.CANCELED and run.status == STOPPING:
            self.stopped(run, peer)
        elif kind == m.SOURCE_ENDS and run.status == RUNNING:
            self._source_stopped(*message[3:])
        elif kind == m.SNAPSHOT and run.status == RUNNING:
            self.checkpoints.acknowledge(*message[3:])

    # --- the end of unbounded sources

    def stop(self) -> None:
        """The user stops all unbounded sources: they end where they are, and with them the job."""
        if not (self.is_stopping or self.is_over):
            self.is_stopping = True
            self.host.event("stop_requested", {})
            for run in self.runs:
                if run.status == RUNNING:
                    self.tell(run, (m.END_SOURCES, run.region.number, run.attempt))

    def _source_stopped(self, task: str, position: int) -> None:
        """A source has its end, also in later attempts."""
        if task not in self._stops:
            self._stops[task] = position
            self.host.event("source_stopped", {"task": task, "position": position})

    def stops(self, run: Run) -> Mapping[str, int]:
        """Where sources of a new attempt end."""
        return {task: at for task, at in self._stops.items() if task in run.region.graph.operator_of}

    # --- checkpoints

    def snapshots(self) -> Mapping[str, Snapshot]:
        """Those of the latest checkpoint."""
        return self.checkpoints.restored()

    def begin_to_run(self, run: Run) -> None:
        """The time until the next checkpoint begins. Sources that were to stop do so."""
        super().begin_to_run(run)
        if self.is_stopping:
            self.tell(run, (m.END_SOURCES, run.region.number, run.attempt))
        self.checkpoints.begin()

    def fail(self, run: Run, reason: str, missing: str = "", task: str = "") -> None:
        """The checkpoint under way is aborted first."""
        self.checkpoints.abort("a task has failed")
        super().fail(run, reason, missing, task)

    def finish(self, run: Run) -> None:
        """So is one that is under way when all tasks have terminated."""
        self.checkpoints.abort("all tasks have terminated")
        super().finish(run)

    # --- the end of connections, and timers

    def on_lost(self, peer: str, *, closed: bool = False) -> None:
        """The connection to a TaskExecutor is lost: so are its slots, until it registers again, and its partitions. The
        next ResourceManager learns of the requirement."""
        if peer == RM:
            self.pool.declare()
        elif self.executors.remove(peer):
            self.pool.drop(peer)
            self.unlocate(peer)
            self.host.event("executor_lost", {"executor": peer, **({"closed": True} if closed else {})})
            self._forget(peer, f"connection to {peer} lost")

    def _forget(self, peer: str, reason: str) -> None:
        """What was stored on a TaskExecutor is gone, and what ran on it has failed."""
        if self.is_over:
            return
        for name in self.datasets.stored_on(peer):
            self.datasets[name].state = GONE
            self.host.event("partition_lost", {"partition": name})
        for run in self.runs:
            if self.status == RUNNING and peer in run.placement.values():
                if run.is_active:
                    self.fail(run, reason, task=run.at(peer))
                if run.status == STOPPING:
                    self.stopped(run, peer)

    def on_timer(self, timer: str, number: int) -> None:
        """Heartbeats, the end of the wait for TaskExecutors, and the end of the delay before a restart."""
        if timer == "heartbeat":
            self._heartbeat()
        elif self.is_over:
            pass
        elif timer in (TRIGGER, EXPIRE):
            for message in self.checkpoints.on_timer(timer, number):
                self.tell(self.runs[0], message)
        elif timer == "restart":
            self.pending[number].is_due = True
            self.restart(number)
        elif number == self.decided:  # the patience has ended
            self.executors.waits = False
            self.schedule()

    def _heartbeat(self) -> None:
        """A TaskExecutor that has not answered for too long is lost."""
        silent = self.executors.silent
        for peer in sorted(self.executors.slots):
            silent[peer] += 1
            if silent[peer] * self.timing.heartbeat_interval > self.timing.heartbeat_timeout:
                self.host.give_up(peer)
                self.on_lost(peer)
            else:
                self.pool.list_to(peer)
                self.host.send(peer, (m.HEARTBEAT,))
        self._expect_slots()
        self.locate()
        self.host.call_later(self.timing.heartbeat_interval, "heartbeat", 0)

    def _expect_slots(self) -> None:
        """An attempt for which there have been no slots for too long has failed, if no other one occupies them."""
        ready = [run for run in self.runs if run.status == CREATED and self.is_ready(run)]
        at_work = self.pending or any(run.is_active or run.status == STOPPING for run in self.runs)
        self._waiting = self._waiting + 1 if ready and not at_work and self.status == RUNNING else 0
        if self._waiting > self.timing.slot_beats > 0:
            run, self._waiting = ready[0], 0
            run.begin()
            self.host.event("region_scheduled", {"tasks": [*run.region.operators], "attempt": run.attempt})
            special = "".join(f", {number} of them with {text(needed)}" for needed, number in self.pool.demands)
            seconds = self.timing.slot_beats * self.timing.heartbeat_interval / 1e9
            about = f"{self.pool.required} slots are required{special}, and {len(self.pool.held)} are there"
            self.fail(run, f"{about} after {seconds:g} s")
