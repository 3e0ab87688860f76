"""The life cycle of partitions for proofs about any number of TaskExecutors, partitions and consumers.

What `partition_lifecycle` has and proofs for every size do not support is abstracted: a partition has at most one message
on its way instead of a queue, consumers are counted, and a partition that is gone may be produced again without a number
of attempts. A rule for all partitions of a TaskExecutor is a step for each of them; the next registration waits for all.
There is one job. A JobMaster that crashes is one that loses every TaskExecutor. A partition is never produced again beside an
old copy: the JobMaster here sees every disk.
"""

from __future__ import annotations

from streamproof import Array, Bool, Enum, Model, Range, State, action, require


class PartitionCounts(Model):
    """Life cycle of blocking result partitions of one job, without queues and attempts."""

    name = "partition_counts"

    executors: int = 2
    """Number of TaskExecutors."""
    partitions: int = 1
    """Number of result partitions."""
    consumers: int = 2
    """Number of consumers of each partition."""
    instance_bounds = ("executors", "partitions")
    check_deadlock = False  # nothing has to happen
    limits = {"executors": (1, None), "partitions": (1, None), "consumers": (1, None)}
    sizes = {"small": {}, "medium": {"partitions": 2}}

    def state(self):
        """Nothing is connected, nothing produced."""
        return State(
            # the JobMaster
            registered=Array(self.executors, Bool()),
            tracked=Array(self.partitions, Enum("NONE", "PRODUCING", "STORED")),
            unfinished=Array(self.partitions, Range(0, self.consumers, init=self.consumers)),  # consumers
            # the TaskExecutors
            executor=Array(self.executors, Enum("UP", "CRASHED", "RELEASED")),
            link=Array(self.executors, Enum("DOWN", "UP", "CLOSED")),  # lost; established; closed by the JobMaster
            location=Array(self.partitions, Range(0, self.executors - 1)),
            copy=Array(self.partitions, Enum("NONE", "PRODUCING", "STORED", "DELETED", "LOST")),
            # the ResourceManager: the TaskExecutor has answered that it stores nothing, and had no slot in use since
            empty=Array(self.executors, Bool()),
            closing=Array(self.executors, Bool()),  # messages: Close to a TaskExecutor, and one for each partition
            order=Array(self.partitions, Enum("NONE", "DEPLOY", "RELEASE")),
        )

    # --- the JobMaster

    @action(p="partitions", e="executors")
    def deploy(self, s, p, e):
        """A partition that consumers need is produced, in a slot of a TaskExecutor, which is therefore not idle."""
        require(s.registered[e] and s.tracked[p] == "NONE" and s.unfinished[p] > 0)
        require(not self.on_disk(s, p) and s.order[p] == "NONE")
        s.location[p] = e
        s.copy[p] = "NONE"
        s.tracked[p] = "PRODUCING"
        s.order[p] = "DEPLOY"
        s.empty[e] = False

    def on_disk(self, s, p):
        """Whether a TaskExecutor has the partition."""
        return s.copy[p] in ("PRODUCING", "STORED")

    @action(p="partitions")
    def receive_report(self, s, p):
        """The producer has finished: the partition can be consumed."""
        require(s.copy[p] == "STORED" and s.tracked[p] == "PRODUCING")
        s.tracked[p] = "STORED"

    @action(p="partitions")
    def release(self, s, p):
        """All consumers have finished."""
        require(s.tracked[p] == "STORED" and self.is_consumed(s, p) and s.order[p] == "NONE")
        s.tracked[p] = "NONE"
        s.order[p] = "RELEASE"

    def is_consumed(self, s, p):
        """Whether all consumers have finished."""
        return s.unfinished[p] == 0

    @action(e="executors")
    def close(self, s, e):
        """The JobMaster closes a connection: it has neither slots nor partitions there."""
        require(s.registered[e] and not s.closing[e])
        require(not any(s.location[p] == e and self.holds(s, p) for p in range(self.partitions)))
        s.registered[e] = False
        s.closing[e] = True

    def holds(self, s, p):
        """Whether the connection is needed for a partition."""
        return s.tracked[p] != "NONE"

    @action(e="executors")
    def lose_executor(self, s, e):
        """The heartbeat of a TaskExecutor times out."""
        require(s.registered[e])
        s.registered[e] = False

    @action(p="partitions")
    def forget(self, s, p):
        """A partition of a TaskExecutor that the JobMaster does not know is gone."""
        require(s.tracked[p] != "NONE" and not s.registered[s.location[p]])
        s.tracked[p] = "NONE"

    # --- consumers

    @action(p="partitions")
    def consume(self, s, p):
        """A consumer has read the partition to its end."""
        require(s.tracked[p] == "STORED" and s.copy[p] == "STORED" and s.unfinished[p] > 0)
        s.unfinished[p] -= 1

    @action(p="partitions")
    def miss(self, s, p):
        """A consumer gets PartitionNotFoundException: the partition is produced again."""
        require(s.tracked[p] == "STORED" and s.copy[p] in ("DELETED", "LOST") and s.unfinished[p] > 0)
        s.tracked[p] = "NONE"

    @action(p="partitions")
    def fail(self, s, p):
        """The region of a finished consumer restarts."""
        require(s.unfinished[p] < self.consumers)
        s.unfinished[p] += 1

    # --- the TaskExecutor

    @action(e="executors")
    def register(self, s, e):
        """A TaskExecutor registers when neither side has anything of the earlier connection."""
        require(s.executor[e] == "UP" and s.link[e] != "UP" and not s.registered[e])
        require(not any(s.location[p] == e and self.on_disk(s, p) for p in range(self.partitions)))
        require(not any(s.location[p] == e and s.order[p] != "NONE" for p in range(self.partitions)))
        require(not any(s.location[p] == e and s.tracked[p] != "NONE" for p in range(self.partitions)))
        s.registered[e], s.link[e] = True, "UP"
        s.closing[e] = False

    @action(p="partitions")
    def execute(self, s, p):
        """A TaskExecutor starts a producer or deletes a partition."""
        require(s.order[p] != "NONE" and s.link[s.location[p]] == "UP" and s.executor[s.location[p]] == "UP")
        if s.order[p] == "DEPLOY":
            s.copy[p] = "PRODUCING"
        elif self.on_disk(s, p):
            s.copy[p] = "DELETED"
        s.order[p] = "NONE"

    @action(p="partitions")
    def lose_order(self, s, p):
        """A message is lost, or dropped without connection."""
        require(s.order[p] != "NONE")
        s.order[p] = "NONE"

    @action(p="partitions")
    def finish(self, s, p):
        """A producer finishes and frees its slot."""
        require(s.copy[p] == "PRODUCING")
        s.copy[p] = "STORED"

    @action(e="executors")
    def lose_master(self, s, e):
        """The heartbeat of the JobMaster times out."""
        require(s.link[e] == "UP")
        s.link[e] = "DOWN"

    @action(e="executors")
    def receive_close(self, s, e):
        """The connection is closed."""
        require(s.closing[e] and s.link[e] == "UP")
        s.link[e] = "CLOSED"
        s.closing[e] = False

    @action(p="partitions")
    def clean_up(self, s, p):
        """Without connection, a TaskExecutor deletes a partition of the job."""
        require(self.on_disk(s, p) and s.link[s.location[p]] != "UP")
        s.copy[p] = "DELETED" if s.link[s.location[p]] == "CLOSED" else "LOST"

    @action(p="partitions")
    def synchronise(self, s, p):
        """A heartbeat of the JobMaster does not list the partition."""
        require(s.registered[s.location[p]] and s.link[s.location[p]] == "UP")
        require(self.on_disk(s, p) and s.tracked[p] == "NONE")
        s.copy[p] = "DELETED"

    @action(e="executors")
    def crash_executor(self, s, e):
        """A TaskExecutor is gone, and its connections with it."""
        require(s.executor[e] == "UP")
        self.stop(s, e, "CRASHED")

    def stop(self, s, e, how):
        """Its partitions are lost."""
        s.executor[e] = how
        s.link[e] = "DOWN"
        s.empty[e] = False

    # --- the ResourceManager

    @action(e="executors")
    def report_empty(self, s, e):
        """An idle TaskExecutor answers that it stores no partition."""
        require(s.executor[e] == "UP")
        require(not any(s.location[p] == e and self.is_stored(s, p) for p in range(self.partitions)))
        s.empty[e] = True

    def is_stored(self, s, p):
        """Whether there is a partition, or a slot in use for it."""
        return self.on_disk(s, p) or s.order[p] == "DEPLOY"

    @action(e="executors")
    def release_executor(self, s, e):
        """The ResourceManager releases a TaskExecutor that had no slot in use since it answered."""
        require(s.executor[e] == "UP" and s.empty[e])
        self.stop(s, e, "RELEASED")


class CloseEarlyCounts(PartitionCounts, variant="close-connection-early"):
    """The JobMaster closes a connection as soon as it has no slot there."""

    def holds(self, s, p):
        """Whether a slot is in use."""
        return s.tracked[p] == "PRODUCING"


class ReleasedAfterOne(PartitionCounts, variant="release-on-consumption"):
    """A partition is deleted when it has been read once."""

    def consume(self, s, p):
        """The first consumer is the last."""
        super().consume(s, p)
        s.copy[p] = "DELETED"


class IgnoredByManager(PartitionCounts, variant="rm-ignores-partitions"):
    """The ResourceManager releases every idle TaskExecutor."""

    def is_stored(self, s, p):
        """Whether a slot is in use."""
        return s.copy[p] == "PRODUCING" or s.order[p] == "DEPLOY"


class StaleReportCounts(PartitionCounts, variant="stale-report"):
    """The ResourceManager goes by the last report, even if a slot of the TaskExecutor has been in use since."""

    def deploy(self, s, p, e):
        """The use of a slot does not make the report void."""
        before = s.empty[e]
        super().deploy(s, p, e)
        s.empty[e] = before


class UnnoticedLossCounts(PartitionCounts, variant="unnoticed-loss"):
    """A consumer takes a missing partition for an empty one."""

    def consume(self, s, p):
        """A consumer has read what is there, perhaps nothing."""
        require(s.tracked[p] == "STORED" and s.unfinished[p] > 0)
        s.unfinished[p] -= 1


class CleanupOfAllJobsCounts(PartitionCounts, variant="cleanup-of-all-jobs"):
    """The loss of another job's JobMaster costs this job its partitions, too."""

    def clean_up(self, s, p):
        """Whatever the connection of this job is."""
        require(self.on_disk(s, p))
        s.copy[p] = "DELETED" if s.link[s.location[p]] == "CLOSED" else "LOST"
