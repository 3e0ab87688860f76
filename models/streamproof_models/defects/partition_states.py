"""A region that reads several partitions of a lost TaskExecutor: how many failovers it takes to replace them.

Source: the descriptions of FLINK-13055 and FLINK-14439 (apache/flink#9165, #10043). A consumer fails at the first partition
that it does not find, and the failure names that one only. Before the fix the JobMaster restarts the producer of the named
partition; since the fix it also restarts the producers of all partitions that it does not track any longer.

Abstraction: one consumer with its inputs, each a region; a TaskExecutor is lost with all partitions, while none is produced.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Option, Range, State, action, require, terminal


class PartitionStates(Model):
    """One consumer, the partitions that it reads, and the failovers of its job."""

    name = "partition_states"

    inputs: int = 3
    """Number of partitions that the consumer reads."""
    losses: int = 2
    """Maximum number of TaskExecutors that are lost, each with all partitions."""

    limits = {"inputs": (1, None), "losses": (0, None)}
    leverages_tracker = True
    """A failover restarts the producers of all lost partitions (`PartitionTracker`); since FLINK-13055 and FLINK-14439."""

    def state(self):
        """All partitions are stored, and the consumer is about to run."""
        return State(
            consumer=Enum("SCHEDULED", "RUNNING", "FAILED", "FINISHED"),
            partition=Array(self.inputs, Enum("STORED", "LOST", "RESTARTED")),  # RESTARTED: its producer runs again
            named=Option(Range(0, self.inputs - 1)),  # the partition of the PartitionException
            lost=Range(0, self.losses),
            failovers=Range(0, self.losses * self.inputs),
            unsuccessful=Bool(),  # a restarted consumer missed a partition that was lost before the restart
            fresh=Bool(),  # a loss since the last failover
        )

    @action
    def lose_executor(self, s):
        """A TaskExecutor is lost with all partitions."""
        require(s.lost < self.losses and s.consumer == "RUNNING")
        s.lost += 1
        s.fresh = True
        for p in range(self.inputs):
            s.partition[p] = "LOST"

    @action(p="inputs", fairness=WEAK)
    def miss(self, s, p):
        """The consumer does not find a partition, and fails with a `PartitionException`."""
        require(s.consumer == "RUNNING" and s.partition[p] == "LOST")
        s.consumer = "FAILED"
        s.named = p
        if not s.fresh:
            s.unsuccessful = True

    @action(fairness=WEAK)
    def fail_over(self, s):
        """The JobMaster restarts the consumer, and the producers of the partitions that it takes for lost."""
        require(s.consumer == "FAILED")
        for p in range(self.inputs):
            if s.partition[p] == "LOST" and (self.leverages_tracker or s.named == p):
                s.partition[p] = "RESTARTED"
        s.consumer = "SCHEDULED"
        s.named = None
        s.fresh = False
        s.failovers += 1

    @action(p="inputs", fairness=WEAK)
    def produce(self, s, p):
        """A restarted producer finishes."""
        require(s.partition[p] == "RESTARTED")
        s.partition[p] = "STORED"

    @action(fairness=WEAK)
    def start(self, s):
        """The consumer starts when no producer runs."""
        require(s.consumer == "SCHEDULED" and not any(p == "RESTARTED" for p in s.partition))
        s.consumer = "RUNNING"

    @action(fairness=WEAK)
    def finish(self, s):
        """The consumer has read all partitions."""
        require(s.consumer == "RUNNING" and all(p == "STORED" for p in s.partition))
        s.consumer = "FINISHED"

    @terminal
    def done(self, s):
        """The consumer has finished."""
        return s.consumer == "FINISHED"


class NamedOnly(PartitionStates, variant="named-only"):
    """Before FLINK-13055: a failover restarts the producer of the named partition only."""

    leverages_tracker = False


class NamedOnlyWaiting(NamedOnly, variant="named-only-waiting"):
    """The same, and the consumer starts when all its partitions are stored: those that nobody named never are."""

    def start(self, s):
        """Also: no partition is lost."""
        require(all(p == "STORED" for p in s.partition))
        super().start(s)
