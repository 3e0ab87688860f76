"""Variants of `partition_lifecycle`: rules of the proposal left out or read otherwise, and the grace period."""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Array, Enum, Range, State, action, require, step
from streamproof_models.partitions.machine import Close, PartitionLifecycle, Release


class ReleaseOnConsumption(PartitionLifecycle, variant="release-on-consumption"):
    """The behaviour that is replaced: the TaskExecutor deletes a partition when it has been read once."""

    def consume(self, s, p, c, a):
        """The first consumer is the last."""
        super().consume(s, p, c, a)
        s.copy[p, a] = "DELETED"


class ReadThenFinish(PartitionLifecycle, variant="read-then-finish"):
    """Reading a partition to its end and finishing are two steps; a consumer that fails in between reads again."""

    has_read: ClassVar[tuple[str, ...]] = ("READ", "FINISHED")

    def state(self):
        """A consumer may have read all, and not finished."""
        declared = dict(super().state().items())
        declared["consumer"] = Array(self.readers, Enum("CREATED", "READING", "READ", "FINISHED"))
        return State(**declared)

    def consume(self, s, p, c, a):
        """A consumer has read the partition to its end, and goes on to process it."""
        super().consume(s, p, c, a)
        s.consumer[p, c] = "READ"

    @action(p="partitions", c="consumers")
    def finish_consumer(self, s, p, c):
        """The consumer finishes."""
        require(s.consumer[p, c] == "READ")
        s.consumer[p, c] = "FINISHED"

    def restart_consumers(self, s, p, *states):
        """A consumer that has read all does not miss the partition; it starts anew with those that have finished."""
        super().restart_consumers(s, p, *states, *(("READ",) if "FINISHED" in states else ()))


class ReleaseWhenRead(ReadThenFinish, variant="release-when-read"):
    """The behaviour that is replaced, with reading apart from finishing: what was read once is deleted."""

    def consume(self, s, p, c, a):
        """The first consumer is the last, and has not finished."""
        super().consume(s, p, c, a)
        s.copy[p, a] = "DELETED"


class CloseConnectionEarly(PartitionLifecycle, variant="close-connection-early"):
    """The JobMaster closes a connection as soon as it has no slot there."""

    def has_resources(self, s, j, e):
        """Whether a slot of job `j` is at TaskExecutor `e`."""
        here = [i for i in self.ids if self.job_of[i[0]] == j]
        return any(self.is_tracked(s, *i) and not self.stores(s, *i) and s.location[i] == e for i in here)


class IgnoredPartitions(PartitionLifecycle, variant="rm-ignores-partitions"):
    """The ResourceManager releases every idle TaskExecutor."""

    def stores_nothing(self, s, e):
        """Nobody asks."""
        return True


class StaleReport(PartitionLifecycle, variant="stale-report"):
    """The ResourceManager goes by the last report, even if a slot of the TaskExecutor has been in use since."""

    def deploy(self, s, p, e):
        """The use of a slot does not make the report void."""
        before = s.empty[e]
        super().deploy(s, p, e)
        s.empty[e] = before


class NoHeartbeatCleanup(PartitionLifecycle, variant="no-heartbeat-cleanup"):
    """A TaskExecutor that loses its JobMaster keeps the partitions."""

    def lose_master(self, s, j, e):
        """The heartbeat of the JobMaster times out, and that is all."""
        require(s.connected[j, e])
        s.connected[j, e] = False


class NoShutdownHook(PartitionLifecycle, variant="no-shutdown-hook"):
    """A TaskExecutor that ends because its disk is full leaves its directory behind."""

    def delete_directory(self, s, e):
        """Nothing is deleted."""


class FireAndForget(PartitionLifecycle, variant="fire-and-forget", without="synchronise"):
    """A release is sent once; heartbeats list no partitions."""


class UnfencedRegistration(PartitionLifecycle, variant="unfenced-registration"):
    """Messages of an earlier connection arrive after the next registration."""

    def fence(self, s, j, e):
        """Nothing is dropped."""


class UnfencedDeployment(PartitionLifecycle, variant="unfenced-deployment"):
    """A TaskExecutor executes messages without asking whether it is connected to the sender."""

    def is_accepted(self, s, j, e):
        """Every message is welcome."""
        return True


class UnnoticedLoss(PartitionLifecycle, variant="unnoticed-loss"):
    """A consumer takes a missing partition for an empty one."""

    def consume(self, s, p, c, a):
        """A consumer has read what is there, perhaps nothing."""
        require(s.consumer[p, c] == "READING" and s.attempt[p] == a + 1)
        s.consumer[p, c] = "FINISHED"


class ReadersKept(PartitionLifecycle, variant="readers-kept"):
    """Consumers of a lost partition do not restart: when it is produced again, they read on in another attempt."""

    def forget(self, s, j, e):
        """The JobMaster forgets the partitions, and not the consumers that read them."""
        reading = {i: s.consumer[i] == "READING" for i in self.readers}
        super().forget(s, j, e)
        for i in self.readers:
            if reading[i]:
                s.consumer[i] = "READING"


class CleanupOfAllJobs(PartitionLifecycle, variant="cleanup-of-all-jobs"):
    """A TaskExecutor that loses one JobMaster deletes the partitions of all jobs."""

    jobs: int = 2
    partitions: int = 2

    def lose_master(self, s, j, e):
        """All partitions are deleted."""
        super().lose_master(s, j, e)
        self.delete(s, e, "LOST")


class Discarding(PartitionLifecycle, variant="discarding"):
    """As in Flink, an attempt may fail, be cancelled, or have to run again: the JobMaster discards what it has produced."""

    @action(p="partitions", a="attempts")
    def discard(self, s, p, a):
        """The JobMaster does not count on the attempt any longer, and releases its partition."""
        require(s.master[self.job_of[p]] == "RUNNING" and self.is_tracked(s, p, a))
        self.send(s, self.job_of[p], s.location[p, a], Release(partition=p, attempt=a))
        s.tracked[p] = "NONE"
        self.restart_consumers(s, p, "READING")


class Grace(PartitionLifecycle, variant="grace"):
    """With a grace period: the TaskExecutor keeps stored partitions for a while; a JobMaster that comes back gets them."""

    timers: ClassVar[int] = 1
    """Maximum number of timers of one connection that run."""

    def state(self):
        """Also: the timers of the grace periods that have begun."""
        return State(**dict(super().state().items()), timer=Array(self.links, Range(0, self.timers)))

    def lose_master(self, s, j, e):
        """The heartbeat of the JobMaster times out: producers fail, stored partitions are kept until the timer fires."""
        require(s.connected[j, e] and s.timer[j, e] < self.timers)
        s.connected[j, e] = False
        s.timer[j, e] += 1
        self.delete_some(s, j, e, "LOST", "PRODUCING")

    def delete_some(self, s, j, e, how, state):
        """The partitions of a job that are in one state are gone."""
        for p, a in self.ids:
            if self.job_of[p] == j and s.location[p, a] == e and s.copy[p, a] == state:
                s.copy[p, a] = how

    @action(j="jobs", e="executors", fairness=WEAK)
    def expire(self, s, j, e):
        """A timer fires, the oldest first: its grace period is over."""
        require(s.timer[j, e] > 0)
        s.timer[j, e] -= 1
        self.delete_some(s, j, e, "DELETED" if s.connected[j, e] else "LOST", "STORED")

    def register(self, s, j, e):
        """The registration lists the stored partitions and ends the grace period; the answer says which to keep."""
        super().register(s, j, e)
        self.cancel_timer(s, j, e)
        for p, a in self.ids:
            if self.job_of[p] == j and s.location[p, a] == e and s.copy[p, a] == "STORED":
                if s.attempt[p] == a + 1 and self.is_wanted(s, p):
                    s.tracked[p] = "STORED"
                else:
                    s.copy[p, a] = "DELETED"

    def cancel_timer(self, s, j, e):
        """The TaskExecutor is connected again."""
        s.timer[j, e] = 0

    def is_wanted(self, s, p):
        """Whether the JobMaster takes the newest attempt of a partition back: it was lost, not released."""
        return s.tracked[p] == "GONE"

    def stop_master(self, s, j, how):
        """A JobMaster that comes back knows which partitions were stored and which consumers have finished."""
        before, read = list(s.tracked), {i: s.consumer[i] for i in self.readers}
        super().stop_master(s, j, how)
        for p in range(self.partitions):
            if how == "CRASHED" and self.job_of[p] == j:
                s.tracked[p] = "GONE" if before[p] == "STORED" else "NONE" if before[p] == "PRODUCING" else before[p]
                for c in range(self.consumers):
                    s.consumer[p, c] = "FINISHED" if read[p, c] == "FINISHED" else "CREATED"

    def stop_executor(self, s, e, how):
        """Timers are gone, too."""
        super().stop_executor(s, e, how)
        for j in range(self.jobs):
            s.timer[j, e] = 0

    @step
    def grace_kept(self, s, t):
        """Without connection, no stored partition is deleted before the last timer, that of this disconnection, has fired."""
        return not any(
            s.copy[p, a] == "STORED"
            and t.copy[p, a] in ("DELETED", "LOST")
            and s.location[p, a] == e
            and t.executor[e] == "UP"
            and not s.connected[self.job_of[p], e]
            and not t.connected[self.job_of[p], e]
            and t.timer[self.job_of[p], e] > 0
            for e in range(self.executors)
            for p, a in self.ids
        )


class GraceWithoutFencing(Grace, variant="grace-without-fencing"):
    """The timer of a grace period is not cancelled when the TaskExecutor is connected again."""

    timers: ClassVar[int] = 2

    def cancel_timer(self, s, j, e):
        """The timer goes on."""


class UnfencedGrace(Grace, variant="unfenced-grace"):
    """The JobMaster informs a TaskExecutor that it has given it up; messages may arrive after the next registration."""

    def lose_executor(self, s, j, e):
        """As Flink does, the JobMaster also sends `disconnectJobManager`."""
        super().lose_executor(s, j, e)
        self.send(s, j, e, Close())

    def fence(self, s, j, e):
        """Nothing is dropped."""


class ReleasedTakenBack(Grace, variant="released-taken-back"):
    """The JobMaster takes back whatever is reported, even what it has released; a release may cross the registration."""

    def fence(self, s, j, e):
        """Releases of an earlier connection arrive."""
        s.to_executor[j, e] = [m for m in s.to_executor[j, e] if isinstance(m, Release)]

    def is_wanted(self, s, p):
        """Whatever consumers need."""
        return not self.is_consumed(s, p)


class LateRelease(Grace, variant="late-release"):
    """A release may cross the registration, but what was released is not taken back."""

    def fence(self, s, j, e):
        """Releases of an earlier connection arrive."""
        s.to_executor[j, e] = [m for m in s.to_executor[j, e] if isinstance(m, Release)]
