"""Cluster partitions at the JobMaster: what outlives its job, and what it reads of the jobs before it.

A region that stores a cluster partition ends with the job: when nothing else is left, its TaskExecutors are asked to promote
what it has stored, and their answers finish it. Until then it fails and restarts as any other. A cluster partition of an
earlier job is found by the ResourceManager; one that is lost is not made again, so that the job fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamproof_runtime import messages as m
from streamproof_runtime.jobmaster.datasets import Descriptor
from streamproof_runtime.jobmaster.master_host import Host, Timing
from streamproof_runtime.jobmaster.region_failover import RegionFailover
from streamproof_runtime.jobmaster.region_runs import CREATED, FINISHED, RUNNING, Run
from streamproof_runtime.jobmaster.regions import Region
from streamproof_runtime.slots.slot_events import RM

LOCATE_BEATS = 20
"""Heartbeats after which a cluster partition that the ResourceManager does not know is lost."""


class PromotingMaster(RegionFailover):
    """Promotes and reads cluster partitions."""

    def __init__(self, regions: Sequence[Region], host: Host, timing: Timing, first_attempt: int = 0) -> None:
        super().__init__(regions, host, timing, first_attempt)
        self._unlocated = 0
        """Heartbeats for which a cluster partition has been looked for."""

    @property
    def promoted(self) -> Mapping[str, int]:
        """The attempt of each cluster partition that a finished job has made."""
        return {name: run.attempt for run in self.runs for name in run.region.promotes}

    def settle(self, run: Run) -> None:
        """All subtasks of a region have terminated: it has finished, unless it waits for the end of the job."""
        if run.region.promotes:
            run.is_settled = True
            self.host.event("region_settled", {"tasks": [*run.region.operators]})
            self.pool.unreserve(run.region.number)
            self.complete()
        else:
            self.finish(run)

    def promote(self, settled: Sequence[Run]) -> None:
        """Nothing else is left of the job."""
        for run in settled:
            if run.promoting is None:
                run.promoting = {*run.placement.values()}
                datasets = sorted(run.region.promotes)
                self.host.event("promotion_requested", {"datasets": datasets, "attempt": run.attempt})
                self.tell(run, (m.PROMOTE, run.region.number, run.attempt))

    def on_promoted(self, run: Run, peer: str) -> None:
        """A TaskExecutor has promoted what it has of a region; with the last one all regions have finished."""
        if run.promoting is not None:
            run.promoting.discard(peer)
        waiting = [each for each in self.runs if each.status != FINISHED]
        if all(each.promoting == set() for each in waiting) and not self.pending:
            for each in waiting:
                self.finish(each)

    # --- those of earlier jobs

    def locate(self) -> None:
        """Asks the ResourceManager for the cluster partitions that regions wait for; after a while they count as lost."""
        ready = [run for run in self.runs if run.status == CREATED and self.status == RUNNING]
        lacking = [(run, name) for run in ready for name in run.region.takes if name not in self.located]
        self._unlocated = self._unlocated + 1 if lacking else 0
        for _, name in lacking:
            self.host.send(RM, (m.LOCATE, name, self.timing.cluster[name]))
        if self._unlocated > LOCATE_BEATS:
            run, name = lacking[0]
            run.begin()
            self.host.event("region_scheduled", {"tasks": [*run.region.operators], "attempt": run.attempt})
            self.fail(run, "no TaskExecutor has it any more", name)

    def on_located(self, name: str, attempt: int, executors: Sequence[str]) -> None:
        """The ResourceManager knows where a cluster partition is."""
        if name not in self.located and {*executors} <= self.executors.slots.keys():
            self.located[name] = Descriptor(attempt, tuple(executors))
            about = {"dataset": name, "attempt": attempt, "executors": [*executors]}
            self.host.event("cluster_partition_located", about)
            self.schedule()

    def unlocate(self, peer: str) -> None:
        """What a lost TaskExecutor has is to be looked for again."""
        self.located = {name: found for name, found in self.located.items() if peer not in found.locations}
