"""The variant `runtime-cluster` of `partition_lifecycle`: cluster partitions in the runtime, and later jobs that read them.

A partition is promoted when its job is over but for that; the job has finished when all answers are there. Then JobMasters of
later jobs, which are not in the state, deploy consumers. The ResourceManager hears of a promotion, and releases what a user
does not need any more. A TaskExecutor without ResourceManager deletes its cluster partitions.
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Array, Bool, Case, Enum, State, action, invariant, leads_to, require, step, temporal
from streamproof_models.partitions.machine import Deploy, Release
from streamproof_models.partitions.runtime_rules import CancelProducer, ReplacedProcesses
from streamproof_models.partitions.types import Promote


class ClusterPartitions(
    ReplacedProcesses, variant="runtime-cluster", without=("release", "discard", "write_off", "crash_manager")
):
    """The life cycle of the cluster partitions of one name in the runtime."""

    orders: ClassVar[tuple[type[Case], ...]] = (Deploy, Release, CancelProducer, Promote)

    def state(self):
        """Also: answers to promotions, and what the ResourceManager has heard of."""
        declared = dict(super().state().items())
        declared["tracked"] = Array(
            self.partitions, Enum("NONE", "PRODUCING", "STORED", "GONE", "RELEASED", "PROMOTED")
        )
        # CLUSTER: it is the cluster's; REMOVED: it was, and is deleted or lost
        states = Enum("NONE", "PRODUCING", "VANISHED", "STORED", "DELETED", "LOST", "CLUSTER", "REMOVED")
        declared["copy"] = Array(self.ids, states)
        return State(
            **declared,
            promoting=Array(self.partitions, Bool()),  # the TaskExecutor was asked to promote the newest attempt
            answered=Array(self.ids, Bool()),  # it has done so
            heard=Array(self.ids, Bool()),  # the ResourceManager has learned of it, and may have forgotten it
        )

    # --- the job that makes it

    @action(p="partitions", a="attempts")
    def promote(self, s, p, a):
        """Nothing but the promotion is left of the job: the TaskExecutor is asked for it."""
        require(
            s.tracked[p] == "PRODUCING" and s.attempt[p] == a + 1 and s.report[p, a] == "SENT" and not s.promoting[p]
        )
        self.order(s, p, a, Promote(partition=p, attempt=a))
        s.promoting[p] = True

    def deploy(self, s, p, e):
        """The next attempt is to be promoted itself."""
        super().deploy(s, p, e)
        s.promoting[p] = False

    def execute(self, s, j, e, order):
        """Also promotes partitions, and answers; a producer that is stopped has no cluster partition, either."""
        match order:
            case Promote(partition=p, attempt=a):
                if s.copy[p, a] == "STORED":
                    s.copy[p, a], s.answered[p, a] = "CLUSTER", True
            case CancelProducer(partition=p, attempt=a):
                if s.copy[p, a] in (*self.on_disk, "CLUSTER"):
                    s.copy[p, a] = "DELETED"
            case _:
                super().execute(s, j, e, order)

    def refuse_order(self, s, j, e):
        """Also a promotion, if a partition is lost: the attempt fails then."""
        require(s.connected[j, e] and len(s.to_executor[j, e]) > 0)
        require(isinstance(s.to_executor[j, e].head, Deploy | Promote))
        s.to_executor[j, e].pop()

    def receive_report(self, s, p, a):
        """The answer to the promotion."""
        require(s.promoting[p] and s.attempt[p] == a + 1 and s.tracked[p] == "PRODUCING" and self.is_answered(s, p, a))
        s.tracked[p] = "PROMOTED"
        s.report[p, a] = "KNOWN"

    def is_answered(self, s, p, a):
        """Whether the TaskExecutor has promoted the partition, and said so."""
        return s.answered[p, a]

    def end(self, s, j):
        """The job has finished when all its partitions were promoted, or has failed before."""
        before = list(s.tracked)
        super().end(s, j)
        if all(before[p] == "PROMOTED" and not s.given_up[p] for p in range(self.partitions)):
            for p in range(self.partitions):
                s.tracked[p] = "PROMOTED"

    def abort(self, s, p, a):
        """An attempt fails at its TaskExecutor, which deletes what it has stored; not one that was promoted."""
        require(s.copy[p, a] not in ("CLUSTER", "REMOVED"))
        super().abort(s, p, a)

    def stop_executor(self, s, e, how):
        """Its cluster partitions are gone with it."""
        super().stop_executor(s, e, how)
        self.remove_all(s, e)

    def remove_all(self, s, e):
        """A TaskExecutor has no cluster partition any more."""
        for p, a in self.ids:
            if s.location[p, a] == e and s.copy[p, a] == "CLUSTER":
                s.copy[p, a] = "REMOVED"

    def stores_nothing(self, s, e):
        """Cluster partitions count."""
        return not any(s.location[i] == e and s.copy[i] in ("STORED", "CLUSTER") for i in self.ids)

    def vanish(self, s, p, a):
        """The environment deletes a partition unnoticed."""
        require(s.copy[p, a] in ("PRODUCING", "STORED", "CLUSTER"))
        was = s.copy[p, a]
        s.copy[p, a] = "VANISHED" if was == "PRODUCING" else "LOST" if was == "STORED" else "REMOVED"

    # --- the ResourceManager

    @action(p="partitions", a="attempts", fairness=WEAK)
    def report_cluster_partition(self, s, p, a):
        """The ResourceManager learns of a cluster partition."""
        require(s.copy[p, a] == "CLUSTER")
        s.heard[p, a] = True

    @action(p="partitions", a="attempts")
    def release_cluster_partition(self, s, p, a):
        """A user has the ResourceManager release a partition that it knows, or it is one of an earlier attempt."""
        require(s.heard[p, a])
        if s.copy[p, a] == "CLUSTER":
            s.copy[p, a] = "REMOVED"

    @action(e="executors")
    def lose_manager(self, s, e):
        """A TaskExecutor loses its connection to the ResourceManager: nobody knows any longer what it has."""
        require(s.executor[e] == "UP")
        self.remove_all(s, e)

    # --- later jobs

    def begin(self, s, p, c):
        """A consumer of a later job is deployed with the descriptor that its JobMaster has of the ResourceManager."""
        require(s.master[0] == "ENDED" and s.tracked[p] == "PROMOTED" and s.consumer[p, c] != "READING")
        require(any(s.heard[p, a] and s.attempt[p] == a + 1 for a in range(self.attempts)))
        require(s.reader[p] < self.readings)
        s.consumer[p, c] = "READING"
        s.reader[p] += 1

    def fail(self, s, p, c):
        """The region of the consumer restarts, or its job has failed."""
        require(s.consumer[p, c] != "CREATED")
        s.consumer[p, c] = "CREATED"

    def miss(self, s, p, c, a):
        """The consumer has not found the partition: its job fails, and nobody makes it again."""
        require(s.consumer[p, c] == "READING" and s.attempt[p] == a + 1 and s.missed[p] == s.reader[p])
        s.consumer[p, c] = "CREATED"

    def open(self, s, p, a, r):
        """Deployment `r` of the consumer opens the partition, once."""
        require(s.attempt[p] == a + 1 and self.is_open_to_later_jobs(s, p, a))
        require(s.opened[p] < r and s.missed[p] < r and r <= s.reader[p])
        s.opened[p] = r

    def is_open_to_later_jobs(self, s, p, a):
        """Whether a later job may read a partition."""
        return s.copy[p, a] == "CLUSTER"

    def find_missing(self, s, p, a, r):
        """Deployment `r` of the consumer does not find the partition."""
        require(s.attempt[p] == a + 1 and s.copy[p, a] in ("DELETED", "LOST", "REMOVED"))
        require(s.opened[p] < r and s.missed[p] < r and r <= s.reader[p])
        s.missed[p] = r

    # --- properties

    @invariant
    def promoted_kept(self, s):
        """When a job has finished, its partitions are the cluster's, or were."""
        return not any(
            s.master[0] == "ENDED"
            and s.tracked[p] == "PROMOTED"
            and s.attempt[p] == a + 1
            and s.copy[p, a] not in ("CLUSTER", "REMOVED")
            for p, a in self.ids
        )

    @step
    def cluster_partitions_only(self, s, t):
        """A later job opens no partition that is not the cluster's."""
        return not any(
            s.opened[p] < t.opened[p] and s.attempt[p] == a + 1 and s.copy[p, a] != "CLUSTER" for p, a in self.ids
        )

    @temporal
    def cluster_known(self, s):
        """The ResourceManager eventually knows every partition of the cluster."""
        return all(leads_to(s.copy[i] == "CLUSTER", s.heard[i] or s.copy[i] != "CLUSTER") for i in self.ids)


class ReleasedWithJob(ClusterPartitions, variant="released-with-job"):
    """A TaskExecutor that loses its JobMaster deletes cluster partitions, too."""

    def lose_master(self, s, j, e):
        """What was promoted is deleted with the rest."""
        super().lose_master(s, j, e)
        for p, a in self.ids:
            if s.location[p, a] == e and s.copy[p, a] == "CLUSTER":
                s.copy[p, a] = "DELETED"


class UnansweredClusterPromotion(ClusterPartitions, variant="runtime-unanswered-promotion"):
    """The job ends without waiting for the answers."""

    def is_answered(self, s, p, a):
        """A promotion is done when it is sent."""
        return True


class UnpromotedRead(UnansweredClusterPromotion, variant="unpromoted-read"):
    """The ResourceManager hears of what is stored, and a later job reads it, promoted or not."""

    def report_cluster_partition(self, s, p, a):
        """The ResourceManager learns of a partition when it is stored."""
        require(s.copy[p, a] in ("STORED", "CLUSTER"))
        s.heard[p, a] = True

    def is_open_to_later_jobs(self, s, p, a):
        """Whatever is stored."""
        return s.copy[p, a] in ("STORED", "CLUSTER")
