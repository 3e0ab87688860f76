"""Failover with one rule changed, by name: what FLIP-1 argues against, what its text leaves open, what Flink does."""

from __future__ import annotations

from streamproof import WEAK, action, require
from streamproof_models.failover.machine import Failover
from streamproof_models.failover.regions import Merging


class RestartAll(Failover, variant="restart-all"):
    """Every task restarts, related to the failed one or not."""

    topology: str = "disjoint"

    def regions_to_restart(self, s, failed, missing):
        """Every region."""
        return dict.fromkeys(self.regions, True)


class Individual(Failover, variant="individual"):
    """Only the failed task restarts, on a pipelined exchange."""

    topology: str = "pipelined-pair"

    @action(t="tasks", fairness=WEAK)
    def schedule(self, s, t):
        """The scheduler schedules every task by itself."""
        require(s.job == "RUNNING" and self.is_ready(s, (t,)))
        self.take_up(s, (t,))

    def fail_over(self, s, t, missing=None):
        """The failed task restarts."""
        self.end(s, t, "FAILED")
        self.begin_restart(s, {u: u == t for u in self.tasks})


class RegionWithoutBacktracking(Failover, variant="region-without-backtracking"):
    """Only the failed region restarts (Flink 1.3 to 1.8), though its input may be lost."""

    topology: str = "pair"

    def regions_to_restart(self, s, failed, missing):
        """The region of the failed task."""
        return {r: r == self.region_of[failed] for r in self.regions}


class NoDownstreamRestart(Failover, variant="no-downstream-restart"):
    """Lost inputs are recomputed, but their other consumers go on with what they have read."""

    def regions_to_restart(self, s, failed, missing):
        """The region of the failed task, and the producers of lost inputs of restarting regions."""
        marked = {r: r == self.region_of[failed] for r in self.regions}
        for _ in range(len(self.regions) - 1):
            for p, producer in self.producing_region.items():
                needed = any(marked[consumer] for consumer in self.consuming_regions[p])
                marked[producer] = marked[producer] or (needed and self.is_lost(s, p, missing))
        return marked


class ReadersKeep(NoDownstreamRestart, variant="no-downstream-restart-kept"):
    """As `no-downstream-restart`, with what the proposal asks of it: outputs do not differ the next time, and a result that a
    task still reads is neither removed nor overwritten."""

    deterministic: bool = True

    def mark_output(self, s, t, state):
        """The partitions that `t` produces change their state, except stored ones that a task at work reads."""
        for p in self.outputs[t]:
            readers = [u for u in self.tasks if p in self.reads[u]]
            if s.partition[p] != "STORED" or not any(s.status[u] in self.active for u in readers):
                s.partition[p] = state


class NoVersioning(Failover, variant="no-versioning"):
    """Every decision resets all its tasks, also those that a newer one has taken over and restarted."""

    def restarts_task(self, s, k, t):
        """Whether decision `k` is pending and restarts `t`."""
        return self.includes(s, k, t)


class NoFence(Failover, variant="no-fence"):
    """Tasks may be scheduled onto output that a decision already taken is about to discard.

    The decision leaves tasks in state CREATED out, and waits for cancellations before it is carried out. In between, such a
    task can be scheduled, read the old output and finish.
    """

    def is_ready(self, s, tasks):
        """Whether tasks are to be scheduled, and the producers of their inputs are FINISHED."""
        producers = [producer for t in tasks for producer in self.upstream[t]]
        return all(s.status[t] == "CREATED" for t in tasks) and all(s.status[t] == "FINISHED" for t in producers)


class EarlyRelease(Failover, variant="early-release"):
    """A partition is released when its consumers have finished, though one of them is about to be restarted.

    The restarted consumer misses it, and a failover of its own brings the producer back.
    """

    topology: str = "tee"

    def is_consumed(self, s, consumers):
        """Whether the regions that read a partition are FINISHED."""
        return all(s.status[t] == "FINISHED" for r in consumers for t in self.regions[r])


class NoMerging(Failover, variant="no-merging"):
    """Regions that wait for each other are not merged."""

    topology: str = "cyclic-region"
    parallelism: int = 2
    merging = Merging.NONE


class MergeWithinLogicalRegionOnly(Failover, variant="merge-within-logical-region-only"):
    """Cycles are merged only inside one logical region, as in Flink 2.3."""

    topology: str = "cyclic-detour"
    merging = Merging.LOGICAL_REGION


class StopAtCreated(Failover, variant="stop-at-created"):
    """The search does not pass through regions none of whose tasks was scheduled (`hasRegionBeenScheduled`)."""

    def regions_to_restart(self, s, failed, missing):
        """As in the machine, but beside that of the failed task only scheduled regions."""
        scheduled = {r: any(s.status[t] != "CREATED" for t in tasks) for r, tasks in self.regions.items()}
        marked = {r: r == self.region_of[failed] for r in self.regions}
        for _ in range(len(self.regions) - 1):
            for p, producer in self.producing_region.items():
                for consumer in self.consuming_regions[p]:
                    lost = marked[consumer] and self.is_lost(s, p, missing)
                    marked[producer] = marked[producer] or (scheduled[producer] and lost)
                    marked[consumer] = marked[consumer] or (scheduled[consumer] and marked[producer])
        return marked


class AttemptReuse(Failover, variant="attempt-reuse"):
    """A restarted task keeps its attempt number, so old and new output are indistinguishable."""

    def reset(self, s, t):
        """As in the machine, under the same number."""
        attempt = s.attempt[t]
        super().reset(s, t)
        s.attempt[t] = attempt


class NoTopologicalOrder(Failover, variant="no-topological-order"):
    """Restarted tasks are scheduled at once instead of when their inputs have been produced again."""

    def reset(self, s, t):
        """As in the machine, then scheduled."""
        super().reset(s, t)
        self.take_up(s, (t,))


class UnnoticedLoss(Failover, variant="unnoticed-loss"):
    """A task does not notice that an input is missing and finishes with what there is of it.

    What FLIP-1 fears of earlier region restarts of batch jobs: a consumer that cannot reset its input processes part of it.
    """

    topology: str = "pair"

    def is_delivered(self, s, c):
        """A missing partition passes for an empty one."""
        return c in self.partition_of or super().is_delivered(s, c)


class EagerScheduling(Failover, variant="eager-scheduling"):
    """Whatever can be scheduled is scheduled in the step that makes it possible, as by Flink's scheduler."""

    def finish(self, s, t):
        """As in the machine; then the consumers are scheduled."""
        super().finish(s, t)
        self.schedule_ready(s)

    def restart(self, s, k):
        """As in the machine; then the first of the reset regions are scheduled."""
        super().restart(s, k)
        self.schedule_ready(s)

    def schedule_ready(self, s):
        """Schedules every region that is ready."""
        for tasks in self.regions.values():
            if self.is_ready(s, tasks):
                self.take_up(s, tasks)


class NoFenceEager(NoFence, EagerScheduling, variant="no-fence-eager"):
    """With eager scheduling, the missing fence shows on a task that waits for a second input."""

    topology: str = "join"


class EagerDeployment(Failover, variant="eager-deployment"):
    """A region is scheduled with the producers of its inputs, and awaits them."""

    def is_ready(self, s, tasks):
        """Whether tasks are to be scheduled, and the producers of their inputs are at work or have finished for good."""
        created = all(s.status[t] == "CREATED" for t in tasks)
        return created and all(
            s.status[p] in self.active or self.has_finished(s, p) for t in tasks for p in self.upstream[t]
        )

    def notices(self, s, t, p):
        """As in the machine, unless the producer is at work."""
        return super().notices(s, t, p) and s.status[self.partitions[p]] not in self.active


class KeptResults(Failover, variant="kept-results"):
    """Results are kept until the job is over, whoever has read them."""

    def releasable(self, p):
        """In no state."""
        return ()
