"""Variants of `lifecycle_failover`: rules of either part, and of what they tell each other."""

from __future__ import annotations

from streamproof_models.compositions.lifecycle_failover import LifecycleFailover
from streamproof_models.partitions import variants  # noqa: F401  (declaring a variant registers it)


class ReleasedWhenRead(LifecycleFailover, variant="released-when-read"):
    """A partition is released when its own consumers have finished: FLIP-1's words, and Flink's rule."""

    def is_over(self, s, p):
        """Whether the region that reads a partition has finished for good."""
        job = self.job
        return all(job.has_finished(s.job, t) for r in job.consuming_regions[p] for t in job.regions[r])


class DeletedWhenRead(LifecycleFailover, variant="release-on-consumption"):
    """The TaskExecutor deletes a partition when it has been read once."""

    storage_variant = "release-on-consumption"


class ClosedEarly(LifecycleFailover, variant="close-connection-early"):
    """The JobMaster closes a connection as soon as it has no slot there."""

    storage_variant = "close-connection-early"


class PartitionsIgnored(LifecycleFailover, variant="rm-ignores-partitions"):
    """The ResourceManager releases every idle TaskExecutor."""

    storage_variant = "rm-ignores-partitions"


class LossTakenForEmpty(LifecycleFailover, variant="unnoticed-loss"):
    """A task takes a missing partition for an empty one."""

    storage_variant = "unnoticed-loss"


class KeptForever(LifecycleFailover, variant="no-heartbeat-cleanup"):
    """A TaskExecutor that loses its JobMaster keeps the partitions."""

    storage_variant = "no-heartbeat-cleanup"


class WithoutBacktracking(LifecycleFailover, variant="region-without-backtracking"):
    """Only the failed region restarts, though its input is gone with a TaskExecutor."""

    scheduler_variant = "region-without-backtracking"


class UnreportedLoss(LifecycleFailover, variant="unreported-loss"):
    """The JobMaster forgets the partitions of a lost TaskExecutor; its scheduler takes them for available."""

    def report_loss(self, s, here):
        """The scheduler learns nothing."""
