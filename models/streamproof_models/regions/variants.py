"""Variants of `regions`, and of its core, that omit or change one rule."""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Range, State, action, require, terminal
from streamproof_models.failover.regions import Merging
from streamproof_models.regions.core import SchedulingCore
from streamproof_models.regions.machine import RegionScheduling


class NoMerging(RegionScheduling, variant="no-merging"):
    """Regions that wait for each other are not merged."""

    merging = Merging.NONE


class LogicalRegionOnly(RegionScheduling, variant="merge-within-logical-region-only"):
    """Regions are merged only if the cycle is inside one logical region, as Flink 2.3 does."""

    merging = Merging.LOGICAL_REGION


class StaleCache(RegionScheduling, variant="stale-cache"):
    """A restart of the producers does not invalidate the cached descriptors."""

    def invalidate_restarted(self, s, g):
        """The JobMaster keeps the descriptors of the earlier partitions."""


class CachedByGroup(RegionScheduling, variant="cached-by-group"):
    """A TaskExecutor knows a blob by its group and not by its own key."""

    def read_blob(self, s, t, g):
        """A blob of an earlier epoch is taken for the new one."""
        for k in reversed(range(self.cache)):
            blob = s.blobs[s.place[t]][k]
            if blob is not None and blob.group == g:
                s.descriptor[t, g] = blob.epoch
        super().read_blob(s, t, g)


class DeletedWhenFetched(RegionScheduling, variant="deleted-when-fetched"):
    """The blob server deletes a blob when a TaskExecutor has fetched it."""

    def after_fetch(self, s, g):
        """The TaskExecutor has the only copy."""
        s.server[g] = None


class EvictedEverywhere(RegionScheduling, variant="evicted-everywhere"):
    """The eviction of a blob also deletes it from the blob server."""

    def evict(self, s, x):
        """Nobody has the blob."""
        evicted = s.blobs[x][self.cache]
        for g in self.groups:
            if evicted is not None and evicted.group == g and evicted.epoch == s.server[g]:
                s.server[g] = None
        super().evict(s, x)


class Unlimited(RegionScheduling, variant="no-eviction"):
    """The cache has no limit."""

    def evict(self, s, x):
        """Nothing is evicted as long as the model has room."""


class ReadWithoutLock(RegionScheduling, variant="read-without-lock"):
    """A blob is fetched in one step and read in another; in between it may be evicted."""

    @action(t="tasks", g=lambda m, t: m.groups_of(t), fairness=WEAK)
    def fetch_blob(self, s, t, g):
        """The blob is fetched, again if it was evicted."""
        require(self.is_waiting(s, t, g) and not self.is_cached(s, t, g))
        self.fetch(s, t, g)

    def read_blob(self, s, t, g):
        """The blob is read if it is still in the cache."""
        require(self.is_cached(s, t, g))
        self.fetch(s, t, g)
        s.gate[t, g] = "LOADED"


class NeverDeleted(RegionScheduling, variant="never-deleted"):
    """The JobMaster drops its cached descriptors but not their blobs."""

    def invalidate(self, s, g):
        """The blob stays on the server."""
        s.cached[g] = None


class ClearedTogether(RegionScheduling, variant="cleared-together"):
    """The blob server of a session cluster deletes the blobs of all jobs when one of them needs its own no longer."""

    def invalidate(self, s, g):
        """Also those of other jobs."""
        s.cached[g] = None
        for other in self.groups:
            s.server[other] = None


class CounterNotReset(RegionScheduling, variant="counter-not-reset"):
    """A restart does not count the partitions of a group as unfinished again."""

    def count_unfinished(self, s, g):
        """The group counts the earlier partition."""

    def count_finished(self, s, g):
        """The counter is 0 at least."""
        s.unfinished[g] = max(s.unfinished[g] - 1, 0)


class ReleasedAfterOne(RegionScheduling, variant="released-after-one"):
    """A group is released when the first of its consumers has finished."""

    def is_consumed(self, s, g):
        """Whether a consumer has finished."""
        return any(s.status[c] == "FINISHED" for c in self.consumers[g])


class ReleasableKept(RegionScheduling, variant="releasable-kept"):
    """A group that all its consumers have read stays releasable when one of them restarts, as in Flink 2.3."""

    def consume_again(self, s, g):
        """Only a restart of a producer makes a group unreleasable."""


class TaskByTask(RegionScheduling, variant="task-by-task"):
    """A task is scheduled when its own inputs are finished, pipelined ones included, without its region."""

    @action(t="tasks", fairness=WEAK)
    def schedule_task(self, s, t):
        """The task does not wait for its region, nor its region for it."""
        require(s.status[t] == "CREATED" and all(s.unfinished[g] == 0 for g in self.groups_of(t)))
        s.status[t] = "SCHEDULED"

    @action(r="regions", fairness=WEAK)
    def schedule(self, s, r):
        """Regions are not scheduled."""
        require(False)


# --- of the core


class Unmerged(SchedulingCore, variant="unmerged"):
    """Regions that wait for each other are not merged."""

    merging = Merging.NONE


class StepwiseRestart(SchedulingCore, variant="flink"):
    """Restarts as the log of Flink's JobManager shows them: tasks end one by one, and are reset one by one; any task may be.

    Also, Flink merges regions inside one logical region only, and schedules the readers of a hybrid exchange when its
    producers are scheduled. Which tasks restart is the matter of `failover`.
    """

    restarts: int = 2
    """Number of tasks that restart."""
    limits: ClassVar = {"restarts": (0, None)}
    merging = Merging.LOGICAL_REGION
    reads_early = True
    statuses = (*SchedulingCore.statuses, "ENDED")

    def state(self):
        """Nothing has ended."""
        return State(
            **dict(super().state().items()),
            restarts_left=Range(0, self.restarts, init=self.restarts),
        )

    @action(t="tasks")
    def stop(self, s, t):
        """A task is FAILED or CANCELED."""
        require(s.status[t] in ("SCHEDULED", "DEPLOYING", "RUNNING"))
        s.status[t] = "ENDED"

    @action(t="tasks", fairness=WEAK)
    def renew(self, s, t):
        """A task has ended, and a new attempt of it begins."""
        require(s.status[t] in ("FINISHED", "ENDED"))
        require(s.restarts_left > 0)
        s.restarts_left -= 1
        self.reset(s, t)

    @terminal
    def over(self, s):
        """All tasks have finished, or no task may restart."""
        return super().over(s) or s.restarts_left == 0


class NotCountedAgain(StepwiseRestart, variant="flink-counter-not-reset"):
    """A restart does not count the partitions of a group as unfinished again."""

    def count_unfinished(self, s, g):
        """The group counts the earlier partition."""

    def count_finished(self, s, g):
        """The counter is 0 at least."""
        s.unfinished[g] = max(s.unfinished[g] - 1, 0)


class AnyTask(StepwiseRestart, variant="flink-task-by-task"):
    """A task is scheduled when the inputs of its region are there, without its region."""

    @action(t="tasks", fairness=WEAK)
    def schedule_task(self, s, t):
        """The task does not wait for its region."""
        require(s.status[t] == "CREATED")
        require(all(s.unfinished[g] == inside for g, inside in self.awaited[self.region_of[t]]))
        s.status[t] = "SCHEDULED"


class NotWaiting(StepwiseRestart, variant="flink-without-inputs"):
    """A region is scheduled when one of its inputs is there."""

    @action(r="regions", fairness=WEAK)
    def schedule(self, s, r):
        """The scheduler does not wait for the other inputs."""
        require(all(s.status[t] == "CREATED" for t in self.regions[r]))
        require(not self.awaited[r] or any(s.unfinished[g] == inside for g, inside in self.awaited[r]))
        for t in self.regions[r]:
            s.status[t] = "SCHEDULED"
