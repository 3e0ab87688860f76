"""The scheduling of a job at its JobMaster: which regions are ready, their deployment, and their end.

A region is scheduled lazily when the partitions that it reads are finished, eagerly when their producers are scheduled. A
deployment has the descriptor of each dataset that the region reads; one that is not finished follows later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamproof_runtime import messages as m
from streamproof_runtime.jobmaster.blob_server import BlobServer
from streamproof_runtime.jobmaster.datasets import GONE, PRODUCING, RELEASED, STORED, Datasets, Descriptor
from streamproof_runtime.jobmaster.executor_registry import ExecutorRegistry
from streamproof_runtime.jobmaster.master_host import Host, Timing
from streamproof_runtime.jobmaster.region_runs import CREATED, FINISHED, RUNNING, Decision, Run
from streamproof_runtime.jobmaster.regions import Region
from streamproof_runtime.slots.placement import Place, demands, offered, placed, required
from streamproof_runtime.slots.slot_pool import SlotPool
from streamproof_runtime.subtasks.barriers import Snapshot

DONE, FAILED = "DONE", "FAILED"
"""The job is RUNNING, DONE or FAILED."""


class RegionScheduler:
    """Schedules the regions of one job."""

    blob_server = BlobServer
    keeps_stale_descriptors = False
    """Whether the descriptor of a dataset that is made again is kept."""

    def __init__(self, regions: Sequence[Region], host: Host, timing: Timing, first_attempt: int = 0) -> None:
        """`first_attempt` is larger than the attempts of all earlier JobMasters of the job."""
        self.host, self.timing, self.first_attempt = host, timing, first_attempt
        self.runs = [Run(region, attempt=first_attempt) for region in regions]
        self.datasets = Datasets(self.runs)
        self.executors = ExecutorRegistry()
        self.pool = SlotPool(host, timing.slot_rules, regions[0].sharing, timing.resources, timing.job)
        self.blobs = self.blob_server(host, timing.offload)
        self.status = RUNNING
        self.decided = 0
        """Number of decisions to restart."""
        self.pending: dict[int, Decision] = {}
        self.located: dict[str, Descriptor] = {}
        """The cluster partitions that the job reads, as far as the ResourceManager has said where they are."""
        self.results: dict[str, Any] = {}

    def run(self, number: int) -> Run:
        """The region of this number."""
        return self.runs[number - self.runs[0].region.number]

    def await_executors(self) -> None:
        """Deployments wait for all slots from now on, until the patience ends."""
        self.executors.waits = bool(self.timing.slots)
        if self.executors.waits:
            self.host.call_later(self.timing.patience, "patience", self.decided)

    def schedule(self) -> None:
        """Deploys each region that is ready, if there are enough slots."""
        places = self.pool.places()
        profiles = self.timing.resources if self.timing.slot_rules.matches_resources else None
        if self.executors.waits and len(places) < min(self.timing.slots, self.pool.required):
            return
        for run in self.runs:
            if self.status == RUNNING and run.status == CREATED and self.is_ready(run):
                slots = offered(run.region, places, profiles)
                if slots is not None:
                    self._deploy(run, slots)
                    places = self.pool.places()

    def require_slots(self) -> None:
        """The job requires slots for the regions that have not finished."""
        unfinished = [run.region for run in self.runs if run.status != FINISHED and self.status == RUNNING]
        self.pool.require(required(unfinished), demands(unfinished))

    def is_ready(self, run: Run) -> bool:
        """Whether all partitions that it reads are finished, or, if scheduled eagerly, are being made."""
        return run.region.takes.keys() <= self.located.keys() and all(
            self.datasets.is_finished(name) or (self.timing.eager and found.producer.is_active)
            for name, found in self.datasets.read_by(run)
        )

    def _deploy(self, run: Run, slots: Mapping[str, Sequence[Place]]) -> None:
        run.begin()
        tasks = [*run.region.operators]
        self.host.event("region_scheduled", {"tasks": tasks, "attempt": run.attempt})
        for name, found in self.datasets.read_by(run):
            if found.state != STORED and not (self.timing.eager and found.state == PRODUCING):
                self.fail(run, f"the partitions of {name} are lost", name)
                return
        inputs = {name: self.datasets.descriptor(name) for name, found in self.datasets.read_by(run)}
        taken = {name: self.located[name] for name in run.region.takes}
        locations = {name: found.locations for name, found in (inputs | taken).items()}
        run.placement, run.slots = placed(run.region, slots, locations)
        groups = {
            task: run.region.sharing.groups[o.name]
            for task, o in run.region.graph.operator_of.items()
            if task in run.slots
        }
        stamp = self.pool.reserve(run.region.number, run.slots, groups)
        self.datasets.begin(run)
        if run.region.writes:
            tracked = {f"{n}/{i}": at for n, d in self.datasets.written_by(run) for i, at in enumerate(d.locations)}
            self.host.event("partitions_tracked", {"attempt": run.attempt, "partitions": tracked})
        self.host.event("deployed", {"graph": str(run.region.graph), "placement": dict(run.placement)}, run.trace)
        reads = {name: found.attempt for name, found in inputs.items() if self.datasets[name].state == STORED}
        cluster = {name: found.attempt for name, found in taken.items()}
        self.host.event(
            "region_deployed", {"tasks": tasks, "descriptors": reads, **({"cluster": cluster} if cluster else {})}
        )
        snapshots, stops = self.snapshots(), self.stops(run)
        descriptor = self.blobs.descriptor(run, {"placement": dict(run.placement), "reads": reads | cluster})
        for peer in self._executors_of(run):
            own = {task: found for task, found in snapshots.items() if run.placement[task] == peer}
            used = {task: slot for task, slot in run.slots.items() if run.placement[task] == peer}
            about = descriptor, used, stamp, own, stops
            self.host.send(peer, (m.DEPLOY, run.region.number, run.attempt, *about))

    def snapshots(self) -> Mapping[str, Snapshot]:
        """From which the subtasks of a new attempt go on."""
        return {}

    def stops(self, run: Run) -> Mapping[str, int]:
        """Where unbounded sources of a new attempt end, if they have been stopped."""
        return {}

    def begin_to_run(self, run: Run) -> None:
        """All TaskExecutors have the subtasks of a region: they start."""
        run.status = RUNNING
        reads = {
            name: self.datasets.descriptor(name).attempt
            for name, found in self.datasets.read_by(run)
            if found.state == STORED
        }
        self.host.event("region_running", {"tasks": [*run.region.operators], "reads": reads})
        self.host.event("started", {}, run.trace)
        self.tell(run, (m.START, run.region.number, run.attempt))

    def finish(self, run: Run) -> None:
        """All subtasks have terminated: outputs are stored, inputs released, and sinks have their results."""
        run.status = FINISHED
        self.host.event("finished", {}, run.trace)
        self.datasets.store(run)
        read = ((name, found.state) for name, found in self.datasets.read_by(run) if name not in run.region.kept)
        released = [name for name, state in read if state in (STORED, GONE)]
        self.host.event("region_finished", {"tasks": [*run.region.operators], "released": released})
        for name in released:
            self.drop(name, RELEASED)
        for name, found in self.datasets.written_by(run):
            if found.consumer is not None and found.consumer.is_active:
                self._update(name, found.consumer)
        self.blobs.release(run, finished=True)
        self.pool.unreserve(run.region.number)
        self.complete()
        self.require_slots()
        self.schedule()

    def _update(self, name: str, reader: Run) -> None:
        """The readers of a dataset wait for it: it is finished."""
        reads = {name: self.datasets.descriptor(name).attempt}
        self.host.event("region_updated", {"tasks": [reader.region.reads[name]], "descriptors": reads})
        self.tell(reader, (m.UPDATE, reader.region.number, reader.attempt, reads))

    def complete(self) -> None:
        """The job has finished if all regions have, and none is to start again."""
        if self.pending or not all(r.status == FINISHED or r.is_settled for r in self.runs):
            return
        if settled := [r for r in self.runs if r.status != FINISHED]:
            self.promote(settled)
        else:
            self.status = DONE
            results = {t: v for r in self.runs for t, v in r.finished.items() if r.region.graph.operator_of[t].is_sink}
            self.results = dict(sorted(results.items()))
            self.host.event("job_finished", {})

    def promote(self, settled: Sequence[Run]) -> None:
        """Only the promotion of these regions' cluster partitions is left of the job."""
        raise NotImplementedError

    def drop(self, name: str, state: str) -> None:
        """A dataset is not needed, or void: so is its descriptor."""
        attempt = self.datasets[name].attempt
        if peers := self.datasets.drop(name, state, self.executors.slots):
            about = {"dataset": name, "attempt": attempt, "executors": peers, "needed": state != RELEASED}
            self.host.event("partitions_released", about)
            for peer in peers:
                self.host.send(peer, (m.RELEASE, name, attempt))
        if state == RELEASED or not self.keeps_stale_descriptors:
            self.datasets[name].descriptor = None

    def tell(self, run: Run, message: m.Message) -> None:
        """Sends a message to the TaskExecutors of a region."""
        for peer in self._executors_of(run):
            self.host.send(peer, message)

    def _executors_of(self, run: Run) -> list[str]:
        return sorted({*run.placement.values()} & self.executors.slots.keys())

    def fail(self, run: Run, reason: str, missing: str = "", task: str = "") -> None:
        """An active region has failed, perhaps for want of a dataset."""
        raise NotImplementedError
