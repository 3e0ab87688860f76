"""Variants of `partition_lifecycle` with the rules of Flink 2.3.

Classes and methods are those of `flink-runtime/src/main/java/org/apache/flink/runtime/`: `TaskExecutor` is
`taskexecutor/TaskExecutor.java`, `JobMaster` is `jobmaster/JobMaster.java`, `JobMasterPartitionTrackerImpl` is in
`io/network/partition/`. `JobMasterPartitionTrackerImpl.internalReleasePartitionsOnTaskExecutor` sends a release once.
A message of an earlier connection arrives before the answer to the next registration, and finds no connection. What is
omitted: slots that time out, and messages of a crashed JobMaster that arrive after the registration at its successor.
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Array, Bool, Case, State, action, choose, require
from streamproof_models.partitions.machine import Close, Deploy, PartitionLifecycle
from streamproof_models.partitions.variants import Grace


class Retain(Case):
    """A JobMaster that recovers asks for partitions: `TaskExecutor.getAndRetainPartitionWithMetrics`."""


class Flink(Grace, variant="flink"):
    """Flink 2.3 with `execution.batch.job-recovery.enabled`: a lost JobMaster may come back for the partitions."""

    retains: ClassVar[bool] = True
    """`TaskExecutor.shouldRetainPartitionsOnJobManagerConnectionLost`."""
    empty_orders: ClassVar[tuple[type[Case], ...]] = (Close, Retain)
    timers: ClassVar[int] = 2

    def state(self):
        """Also: what the TaskExecutor knows of a job without connection, and whether a JobMaster recovers."""
        return State(
            **dict(super().state().items()),
            in_cleanup_set=Array(self.links, Bool()),  # TaskExecutor.jobPartitionToCleanupSet
            cleaning=Array(self.links, Bool()),  # TaskExecutor.scheduleResultPartitionCleanup waits for tasks to end
            recovering=Array(self.jobs, Bool()),  # JobMaster.fetchAndRetainPartitions
        )

    # --- the JobMaster

    def deploy(self, s, p, e):
        """Scheduling begins when the recovery has ended."""
        require(not s.recovering[self.job_of[p]])
        super().deploy(s, p, e)

    def close(self, s, j, e):
        """`TaskExecutor.closeJobManagerConnectionIfNoAllocatedResources`: not while it has what a recovery asks for."""
        require(not s.recovering[j])
        super().close(s, j, e)

    def recover(self, s, j):
        """`JobMaster.startFetchAndRetainPartitionWithMetricsOnTaskManager`."""
        super().recover(s, j)
        s.recovering[j] = self.retains

    @action(j="jobs", fairness=WEAK)
    def stop_recovering(self, s, j):
        """Enough reports, or a time-out, which comes in the end: `JobMaster.getPartitionWithMetrics`."""
        require(s.recovering[j] and s.master[j] == "RUNNING")
        s.recovering[j] = False
        for p in range(self.partitions):
            if self.job_of[p] == j and s.tracked[p] == "GONE":
                s.tracked[p] = "NONE"

    def stop_master(self, s, j, how):
        """Without job recovery the job starts anew. A late `submitTask` is rejected by its JobMasterId."""
        if self.retains:
            super().stop_master(s, j, how)
        else:
            PartitionLifecycle.stop_master(self, s, j, how)
        s.recovering[j] = False
        for e in range(self.executors):
            s.to_executor[j, e] = [m for m in s.to_executor[j, e] if not isinstance(m, Deploy)]

    def lose_executor(self, s, j, e):
        """`JobMaster.disconnectTaskManager` also sends `disconnectJobManager`."""
        super().lose_executor(s, j, e)
        self.send_close(s, j, e)

    def forget(self, s, j, e):
        """`stopTrackingPartitionsFor`: what was stored is not taken back later."""
        super().forget(s, j, e)
        for p, a in self.ids:
            if self.job_of[p] == j and s.location[p, a] == e and s.attempt[p] == a + 1 and s.tracked[p] == "GONE":
                s.tracked[p] = "NONE"

    def send_close(self, s, j, e):
        """A message that is lost if there are too many."""
        if not s.to_executor[j, e].full:
            s.to_executor[j, e].push(Close())

    # --- the TaskExecutor

    def register(self, s, j, e):
        """`JobMaster.registerTaskManager` ignores the TaskExecutor if it knows it; a recovering JobMaster asks it."""
        require(s.executor[e] == "UP" and not s.connected[j, e] and s.master[j] == "RUNNING")
        self.fence(s, j, e)
        self.meet_again(s, j, e)
        s.registered[j, e], s.connected[j, e] = True, True
        self.cancel_timer(s, j, e)
        if s.recovering[j]:
            s.to_executor[j, e].push(Retain())

    def meet_again(self, s, j, e):
        """The JobMaster believes that a TaskExecutor that it knows has what it had."""

    def cancel_timer(self, s, j, e):
        """Nothing stops the timer."""

    def synchronise(self, s, j, e):
        """`DefaultExecutionDeploymentReconciler`: heartbeats list running tasks, not partitions."""
        require(s.registered[j, e] and s.connected[j, e] and len(s.to_executor[j, e]) == 0)
        for p, a in self.ids:
            here = self.job_of[p] == j and s.location[p, a] == e and s.copy[p, a] == "PRODUCING"
            if here and not self.is_tracked(s, p, a):
                s.copy[p, a] = "DELETED"

    def execute(self, s, j, e, order):
        """Also: the partitions are retained; `disconnectJobManager` deletes all."""
        match order:
            case Retain():
                self.retain(s, j, e)
            case Close():
                self.disconnect(s, j, e, "DELETED")
            case _:
                super().execute(s, j, e, order)

    def retain(self, s, j, e):
        """The job is off the clean-up set; if the recovery has ended, the JobMaster releases what is reported."""
        s.in_cleanup_set[j, e] = False
        for p, a in self.ids:
            if self.job_of[p] == j and s.location[p, a] == e and s.copy[p, a] == "STORED":
                if not s.recovering[j]:
                    s.copy[p, a] = "DELETED"
                elif s.attempt[p] == a + 1 and s.tracked[p] == "GONE":
                    s.tracked[p] = "STORED"

    def lose_master(self, s, j, e):
        """The TaskExecutor disconnects and tells the JobMaster, which answers with `disconnectJobManager`."""
        require(s.connected[j, e] and s.timer[j, e] < self.timers)
        self.disconnect(s, j, e, None if self.retains else "LOST")
        told = choose([True, False])
        if told and s.registered[j, e]:
            self.forget(s, j, e)
            s.registered[j, e] = False
            self.send_close(s, j, e)

    def disconnect(self, s, j, e, how):
        """`TaskExecutor.disconnectJobManagerConnection`: tasks fail; partitions are deleted, or retained for a while."""
        s.connected[j, e] = False
        s.in_cleanup_set[j, e] = True
        busy = self.has_producer(s, j, e)
        self.delete_some(s, j, e, "LOST", "PRODUCING")
        if how is not None:
            self.schedule_cleanup(s, j, e, busy, how)
        else:  # for the time of `taskmanager.registration.timeout`
            s.timer[j, e] += 1

    def has_producer(self, s, j, e):
        """Whether a task of the job runs there."""
        return any(self.job_of[p] == j and s.location[p, a] == e and s.copy[p, a] == "PRODUCING" for p, a in self.ids)

    def schedule_cleanup(self, s, j, e, busy, how):
        """`TaskExecutor.scheduleResultPartitionCleanup`: when the tasks have ended, all partitions of the job go."""
        if busy:
            s.cleaning[j, e] = True
        else:
            self.clean_up(s, j, e, how)

    def clean_up(self, s, j, e, how):
        """All partitions of the job are deleted, whoever produced them."""
        self.delete_some(s, j, e, how, "STORED")
        s.in_cleanup_set[j, e], s.cleaning[j, e] = False, False

    @action(j="jobs", e="executors", fairness=WEAK)
    def finish_cleanup(self, s, j, e):
        """The tasks have ended."""
        require(s.cleaning[j, e] and not self.has_producer(s, j, e))
        self.clean_up(s, j, e, "DELETED" if s.connected[j, e] else "LOST")

    def expire(self, s, j, e):
        """A timer fires, the oldest first; without connection, it is the one of this disconnection if it is the last."""
        require(s.timer[j, e] > 0)
        s.timer[j, e] -= 1
        if not s.connected[j, e] or s.in_cleanup_set[j, e]:
            how = "DELETED" if s.connected[j, e] or s.timer[j, e] > 0 else "LOST"
            self.schedule_cleanup(s, j, e, self.has_producer(s, j, e), how)

    def is_needed(self, s, p, a):
        """A JobMaster that recovers, or may come back, needs what it will ask for."""
        j = self.job_of[p]
        returns = s.recovering[j] or (s.master[j] == "CRASHED" and s.recoveries[j] > 0)
        wanted = s.attempt[p] == a + 1 and s.tracked[p] == "GONE" and not self.is_consumed(s, p)
        return super().is_needed(s, p, a) or (self.retains and returns and wanted)

    def stop_executor(self, s, e, how):
        """Nothing is left."""
        PartitionLifecycle.stop_executor(self, s, e, how)
        for j in range(self.jobs):
            s.timer[j, e] = 0
            s.in_cleanup_set[j, e], s.cleaning[j, e] = False, False


class FlinkDefault(Flink, variant="flink-default"):
    """Flink 2.3 as it is configured: partitions are deleted when the JobMaster is lost."""

    retains: ClassVar[bool] = False


class FlinkWithoutTimer(Flink, variant="flink-no-timer", without="expire"):
    """Flink 2.3 with job recovery, if `TaskManagerConfiguration.getMaxRegistrationDuration` is null."""
