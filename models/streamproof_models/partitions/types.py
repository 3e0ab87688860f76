"""Variants of `partition_lifecycle` for pipelined, caching, memory-only caching and persistent partitions."""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Array, Bool, Case, Enum, State, action, invariant, leads_to, require, temporal
from streamproof_models.partitions.machine import Deploy, PartitionLifecycle, Release


class Pipelined(PartitionLifecycle, variant="pipelined", without="release"):
    """Consumers read while the producer runs; the TaskExecutor deletes a partition that was read to its end."""

    readable: ClassVar[tuple[str, ...]] = ("PRODUCING", "STORED")

    def has_resources(self, s, j, e):
        """The JobMaster does not count pipelined partitions: only slots of producers."""
        here = [i for i in self.ids if self.job_of[i[0]] == j]
        return any(self.is_tracked(s, *i) and not self.is_over(s, *i) and s.location[i] == e for i in here)

    def is_over(self, s, p, a):
        """Whether the partition was read to its end."""
        return self.stores(s, p, a) and self.is_consumed(s, p)

    def consume(self, s, p, c, a):
        """The last consumer has read the partition to its end: the TaskExecutor deletes it."""
        super().consume(s, p, c, a)
        if self.is_consumed(s, p):
            s.copy[p, a] = "DELETED"

    def fail(self, s, p, c):
        """Producer and consumers are one region: all restart."""
        super().fail(s, p, c)
        s.tracked[p] = "NONE"
        self.restart_consumers(s, p, "READING", "FINISHED")


class Caching(PartitionLifecycle, variant="caching"):
    """Consumers read while the producer runs, and may read again."""

    readable: ClassVar[tuple[str, ...]] = ("PRODUCING", "STORED")


class MemoryOnlyCaching(Caching, variant="memory-only"):
    """As caching, but what was sent may be discarded at any time."""

    @action(p="partitions", a="attempts")
    def discard(self, s, p, a):
        """The memory is needed for something else."""
        require(s.copy[p, a] == "STORED")
        s.copy[p, a] = "NONE"

    def is_missing(self, s, p, a):
        """Whether the data are incomplete, or the partition is deleted or lost."""
        return super().is_missing(s, p, a) or (self.stores(s, p, a) and s.copy[p, a] == "NONE")


class Promote(Case):
    """The JobMaster hands a partition over to the cluster: `TaskExecutorGateway.promotePartitions`."""

    partition: int
    attempt: int


class Persistent(PartitionLifecycle, variant="persistent", without="release"):
    """Partitions outlive their job: they are handed over to the ResourceManager, which deletes them on request."""

    orders: ClassVar[tuple[type[Case], ...]] = (Deploy, Release, Promote)

    def state(self):
        """Also: what the ResourceManager knows of TaskExecutors and their cluster partitions."""
        declared = dict(super().state().items())
        declared["tracked"] = Array(
            self.partitions, Enum("NONE", "PRODUCING", "STORED", "GONE", "RELEASED", "PROMOTED")
        )
        declared["copy"] = Array(self.ids, Enum("NONE", "PRODUCING", "STORED", "DELETED", "LOST", "CLUSTER"))
        return State(
            **declared,
            managed=Array(self.executors, Bool(init=True)),  # the TaskExecutor is registered at the ResourceManager
            known=Array(self.ids, Bool()),  # ResourceManagerPartitionTracker
        )

    @action(p="partitions", a="attempts")
    def promote(self, s, p, a):
        """All consumers have finished: the partition becomes one of the cluster."""
        require(s.master[self.job_of[p]] == "RUNNING" and self.is_consumed(s, p) and self.stores(s, p, a))
        self.send(s, self.job_of[p], s.location[p, a], Promote(partition=p, attempt=a))

    def execute(self, s, j, e, order):
        """The TaskExecutor also promotes partitions, and answers."""
        match order:
            case Promote(partition=p, attempt=a):
                require(s.to_master[j, e] is None)
                if s.copy[p, a] == "STORED":
                    s.copy[p, a] = "CLUSTER"
                if s.copy[p, a] == "CLUSTER":
                    s.to_master[j, e] = {"partition": p, "attempt": a}
            case _:
                super().execute(s, j, e, order)

    def receive_report(self, s, j, e):
        """A report about a partition that is stored is the answer to `Promote`."""
        report = s.to_master[j, e]
        require(report is not None)
        p, a = report.partition, report.attempt
        promoted = self.stores(s, p, a) and self.is_consumed(s, p) and s.registered[j, e]
        super().receive_report(s, j, e)
        if promoted:
            s.tracked[p] = "PROMOTED"

    def end(self, s, j):
        """The job has finished when all its partitions were promoted, or has failed or was cancelled before."""
        before = list(s.tracked)
        mine = [p for p in range(self.partitions) if self.job_of[p] == j]
        super().end(s, j)
        if all(before[p] == "PROMOTED" for p in mine):
            for p in mine:
                s.tracked[p] = "PROMOTED"

    @action(p="partitions", a="attempts", fairness=WEAK)
    def report_cluster_partition(self, s, p, a):
        """A heartbeat tells the ResourceManager which cluster partitions a TaskExecutor has."""
        require(s.copy[p, a] == "CLUSTER" and s.managed[s.location[p, a]])
        s.known[p, a] = True

    @action(p="partitions", a="attempts")
    def release_cluster_partition(self, s, p, a):
        """A user has the ResourceManager delete a partition that it knows."""
        require(s.known[p, a])
        self.remove(s, p, a)

    def remove(self, s, p, a):
        """A cluster partition is deleted."""
        s.copy[p, a], s.known[p, a] = "NONE", False

    def crash_manager(self, s):
        """The ResourceManager crashes; the next one knows nothing."""
        s.empty = [False] * self.executors
        s.managed = [False] * self.executors
        for i in self.ids:
            s.known[i] = False

    @action(e="executors", fairness=WEAK)
    def lose_manager(self, s, e):
        """The heartbeat of the ResourceManager times out: all cluster partitions are deleted; the TaskExecutor registers."""
        require(s.executor[e] == "UP" and not s.managed[e])
        self.delete_cluster_partitions(s, e)
        s.managed[e] = True

    def delete_cluster_partitions(self, s, e):
        """Nobody knows any longer that they are there."""
        for p, a in self.ids:
            if s.location[p, a] == e and s.copy[p, a] == "CLUSTER":
                self.remove(s, p, a)

    def stop_executor(self, s, e, how):
        """Cluster partitions are gone, too."""
        super().stop_executor(s, e, how)
        self.delete_cluster_partitions(s, e)

    def stores_nothing(self, s, e):
        """Cluster partitions count."""
        return not any(s.location[i] == e and s.copy[i] in ("STORED", "CLUSTER") for i in self.ids)

    @invariant
    def promoted_kept(self, s):
        """When a job has finished, its partitions are the cluster's, or were deleted by it."""
        ended = [s.master[self.job_of[p]] == "ENDED" and s.tracked[p] == "PROMOTED" for p in range(self.partitions)]
        return not any(
            ended[p] and s.attempt[p] == a + 1 and s.copy[p, a] in (*self.on_disk, "DELETED", "LOST")
            for p, a in self.ids
        )

    @temporal
    def cluster_known(self, s):
        """The ResourceManager eventually knows every partition of the cluster."""
        return all(leads_to(s.copy[i] == "CLUSTER", s.known[i] or s.copy[i] != "CLUSTER") for i in self.ids)


class UnansweredPromotion(Persistent, variant="unanswered-promotion"):
    """The JobMaster does not wait for the answer."""

    def promote(self, s, p, a):
        """A promotion is done when it is sent."""
        super().promote(s, p, a)
        s.tracked[p] = "PROMOTED"


class ReportedOnce(Persistent, variant="reported-once"):
    """Cluster partitions survive the ResourceManager, and are reported once: when they are promoted."""

    @action(p="partitions", a="attempts")
    def report_cluster_partition(self, s, p, a):
        """The report arrives, or is lost."""
        super().report_cluster_partition(s, p, a)

    def delete_cluster_partitions(self, s, e):
        """They stay."""


class Unreleased(Pipelined, variant="pipelined-unreleased"):
    """Before FLINK-13476: a pipelined partition whose producer has finished is released only when it has been read."""

    @action(j="jobs", e="executors", fairness=WEAK)
    def synchronise(self, s, j, e):
        """A producer that still runs is cancelled, which releases its partition; that of a finished one stays."""
        require(s.registered[j, e] and s.connected[j, e] and len(s.to_executor[j, e]) == 0)
        for p, a in self.ids:
            here = self.job_of[p] == j and s.location[p, a] == e and s.copy[p, a] == "PRODUCING"
            if here and not self.is_tracked(s, p, a):
                s.copy[p, a] = "DELETED"
