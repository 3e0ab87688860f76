"""Variants of `regions` that omit or change one rule."""

from __future__ import annotations

from streamproof import WEAK, action, require
from streamproof_models.failover.regions import Merging
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
