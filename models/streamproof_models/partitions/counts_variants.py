"""Variants of `partition_counts`: the rules of the variants of `partition_lifecycle` with the same names."""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Array, Bool, Range, State, action, choose, lemma, require, step
from streamproof_models.partitions.counts import PartitionCounts


class ReleasedAfterOne(PartitionCounts, variant="release-on-consumption"):
    """A partition is deleted when it has been read once."""

    def consume(self, s, p):
        """The first consumer is the last."""
        super().consume(s, p)
        s.copy[p] = "DELETED"


class ReadThenFinishCounts(PartitionCounts, variant="read-then-finish"):
    """Reading a partition to its end and finishing are two steps; a consumer that fails in between reads again."""

    def state(self):
        """A consumer may have read all, and not finished."""
        read = Array(range(self.partitions), Range(0, self.consumers))
        return State(**dict(super().state().items()), read=read)

    def has_read(self, s, p):
        """Those that have finished, and those that have not."""
        return s.read[p] + s.finished[p]

    def consume(self, s, p):
        """A consumer has read the partition to its end, and goes on to process it."""
        super().consume(s, p)
        s.finished[p] -= 1
        s.read[p] += 1

    @action(p="partitions")
    def finish_consumer(self, s, p):
        """A consumer finishes."""
        require(s.read[p] > 0)
        s.read[p] -= 1
        s.finished[p] += 1

    def restart_one(self, s, p):
        """Also one that has read all, and not finished."""
        if choose(read=True, other=False):
            require(s.read[p] > 0)
            s.read[p] -= 1
        else:
            super().restart_one(s, p)

    def stop_master(self, s, how):
        """All consumers start anew."""
        super().stop_master(s, how)
        s.read = [0 for p in range(self.partitions)]


class ReleasedWhenRead(ReadThenFinishCounts, variant="release-when-read"):
    """The same, with reading apart from finishing: what was read once is deleted."""

    def consume(self, s, p):
        """The first consumer is the last, and has not finished."""
        super().consume(s, p)
        s.copy[p] = "DELETED"


class CloseEarlyCounts(PartitionCounts, variant="close-connection-early"):
    """The JobMaster closes a connection as soon as it has no slot there."""

    def is_resource(self, s, p):
        """Whether a slot is in use."""
        return s.tracked[p] == "PRODUCING"


class IgnoredByManager(PartitionCounts, variant="rm-ignores-partitions"):
    """The ResourceManager releases every idle TaskExecutor."""

    def stores_nothing(self, s, e):
        """Nobody asks."""
        return True


class StaleReportCounts(PartitionCounts, variant="stale-report"):
    """The ResourceManager goes by the last report, even if a slot of the TaskExecutor has been in use since."""

    def deploy(self, s, p, e):
        """The use of a slot does not make the report void."""
        before = s.empty[e]
        super().deploy(s, p, e)
        s.empty[e] = before


class NoCleanupCounts(PartitionCounts, variant="no-heartbeat-cleanup"):
    """A TaskExecutor that loses its JobMaster keeps the partitions."""

    def lose_master(self, s, e):
        """The heartbeat of the JobMaster times out, and that is all."""
        require(s.connected[e])
        s.connected[e] = False


class NoShutdownHookCounts(PartitionCounts, variant="no-shutdown-hook"):
    """A TaskExecutor that ends because its disk is full leaves its directory behind."""

    def delete_directory(self, s, e):
        """Nothing is deleted."""


class UnfencedDeploymentCounts(PartitionCounts, variant="unfenced-deployment"):
    """A TaskExecutor executes messages without asking whether it is connected to the sender."""

    def is_accepted(self, s, e):
        """Every message is welcome."""
        return True


class UnnoticedLossCounts(PartitionCounts, variant="unnoticed-loss"):
    """A consumer takes a missing partition for an empty one."""

    def consume(self, s, p):
        """A consumer has read what is there, perhaps nothing."""
        require(s.reading[p] > 0)
        s.reading[p] -= 1
        s.finished[p] += 1


class ReadersKeptCounts(PartitionCounts, variant="readers-kept"):
    """Consumers of a lost partition do not restart: when it is produced again, they read on in another attempt."""

    def fail_readers(self, s, e):
        """They go on."""


class CleanupOfAllJobsCounts(PartitionCounts, variant="cleanup-of-all-jobs"):
    """A TaskExecutor that loses the JobMaster of another job deletes the partitions of all jobs."""

    @action(e="executors")
    def lose_other_master(self, s, e):
        """Its heartbeat times out."""
        self.delete(s, e, "LOST")


class GraceCounts(PartitionCounts, variant="grace"):
    """With a grace period: the TaskExecutor keeps stored partitions for a while; a JobMaster that comes back gets them."""

    timers: ClassVar[int] = 1
    """Maximum number of timers of one connection that run."""

    def state(self):
        """Also: the timers of the grace periods that have begun."""
        timer = Array(range(self.executors), Range(0, self.timers))
        return State(**dict(super().state().items()), timer=timer)

    def may_store(self, s, e):
        """With a connection, or until a timer fires."""
        return s.connected[e] or s.timer[e] > 0

    def lose_master(self, s, e):
        """The heartbeat of the JobMaster times out: producers fail, stored partitions are kept until the timer fires."""
        require(s.connected[e] and s.timer[e] < self.timers)
        s.connected[e] = False
        s.timer[e] += 1
        self.delete(s, e, "LOST", ("PRODUCING",))

    @action(e="executors", fairness=WEAK)
    def expire(self, s, e):
        """A timer fires, the oldest first: its grace period is over."""
        require(s.timer[e] > 0)
        s.timer[e] -= 1
        self.delete(s, e, "DELETED" if s.connected[e] else "LOST", ("STORED",))

    def register(self, s, e):
        """The registration lists the stored partitions and ends the grace period; the answer says which to keep."""
        super().register(s, e)
        self.cancel_timer(s, e)
        s.copy = [
            "DELETED" if s.location[p] == e and s.copy[p] == "STORED" and not self.is_wanted(s, p) else s.copy[p]
            for p in range(self.partitions)
        ]
        s.old_copy = [
            "DELETED" if s.old_location[p] == e and s.old_copy[p] == "STORED" else s.old_copy[p]
            for p in range(self.partitions)
        ]
        s.tracked = [
            "STORED" if s.location[p] == e and s.copy[p] == "STORED" else s.tracked[p] for p in range(self.partitions)
        ]

    def cancel_timer(self, s, e):
        """The TaskExecutor is connected again."""
        s.timer[e] = 0

    def is_wanted(self, s, p):
        """Whether the JobMaster takes the newest attempt of a partition back: it was lost, not released."""
        return s.tracked[p] == "GONE"

    def stop_master(self, s, how):
        """A JobMaster that comes back knows which partitions were stored and which consumers have finished."""
        if how == "CRASHED":
            s.master = how
            s.registered = [False for e in range(self.executors)]
            s.tracked = [
                "GONE" if s.tracked[p] == "STORED" else "NONE" if s.tracked[p] == "PRODUCING" else s.tracked[p]
                for p in range(self.partitions)
            ]
            s.reading = [0 for p in range(self.partitions)]
        else:
            super().stop_master(s, how)

    def stop_executor(self, s, e, how):
        """Timers are gone, too."""
        super().stop_executor(s, e, how)
        s.timer[e] = 0

    @step
    def grace_kept(self, s, t):
        """Without connection, no stored partition is deleted before the last timer, that of this disconnection, has fired."""
        return not any(
            s.copy[p] == "STORED"
            and t.copy[p] in ("DELETED", "LOST")
            and t.executor[s.location[p]] == "UP"
            and not s.connected[s.location[p]]
            and not t.connected[s.location[p]]
            and t.timer[s.location[p]] > 0
            for p in range(self.partitions)
        )

    @lemma
    def timer_without_connection(self, s):
        """The timer of a grace period runs without connection only."""
        return all(not s.connected[e] or s.timer[e] == 0 for e in range(self.executors))

    @lemma
    def release_excludes(self, s):
        """What the JobMaster releases is not taken back, and what is without connection is not produced."""
        return all(
            (s.order[p] != "RELEASE" or s.tracked[p] in ("NONE", "RELEASED"))
            and (s.copy[p] != "PRODUCING" or s.connected[s.location[p]])
            for p in range(self.partitions)
        )


class UncancelledGraceCounts(GraceCounts, variant="grace-without-fencing"):
    """The timer of a grace period is not cancelled when the TaskExecutor is connected again."""

    timers: ClassVar[int] = 2

    def cancel_timer(self, s, e):
        """The timer goes on."""


class UnfencedGraceCounts(GraceCounts, variant="unfenced-grace"):
    """The JobMaster informs a TaskExecutor that it has given it up; messages may arrive after the next registration."""

    def state(self):
        """Also: a second message that closes the connection, and the orders that were sent after the first one."""
        again, behind = Array(range(self.executors), Bool()), Array(range(self.partitions), Bool())
        return State(**dict(super().state().items()), again=again, behind=behind)

    def lose_executor(self, s, e):
        """As Flink does, the JobMaster also sends `disconnectJobManager`."""
        super().lose_executor(s, e)
        self.send_close(s, e)

    def send_close(self, s, e):
        """There may be another one already."""
        s.again[e] = s.closing[e]
        super().send_close(s, e)

    def fence(self, s, e):
        """Nothing is dropped."""

    def stop_executor(self, s, e, how):
        """No message arrives."""
        super().stop_executor(s, e, how)
        self.come_next(s, e)

    def deploy(self, s, p, e):
        """Messages to a TaskExecutor arrive in order."""
        super().deploy(s, p, e)
        s.behind[p] = s.closing[e]

    def release(self, s, p):
        """Messages to a TaskExecutor arrive in order."""
        super().release(s, p)
        s.behind[p] = s.closing[s.location[p]]

    def receive_order(self, s, p):
        """Not before an earlier message."""
        require(not s.behind[p])
        super().receive_order(s, p)

    def receive_close(self, s, e):
        """The second one is the next."""
        again = s.again[e]
        super().receive_close(s, e)
        s.closing[e] = again
        self.come_next(s, e)

    def lose_close(self, s, e):
        """The second one is the next."""
        again = s.again[e]
        super().lose_close(s, e)
        s.closing[e] = again
        self.come_next(s, e)

    def end(self, s):
        """From now on such a message may arrive at any time."""
        super().end(s)
        s.again = [False for e in range(self.executors)]
        s.behind = [False for p in range(self.partitions)]

    def come_next(self, s, e):
        """Nothing is behind a first message that closes the connection."""
        s.again[e] = False
        s.behind = [s.behind[p] and s.location[p] != e for p in range(self.partitions)]


class ReleasedTakenBackCounts(GraceCounts, variant="released-taken-back"):
    """The JobMaster takes back whatever is reported, even what it has released; a release may cross the registration."""

    def fence(self, s, e):
        """Releases of an earlier connection arrive."""
        self.drop(s, e, ("DEPLOY",))

    def is_wanted(self, s, p):
        """Whatever consumers need."""
        return not self.is_consumed(s, p)

    def receive_order(self, s, p):
        """There may be another release behind it."""
        before = s.order[p]
        super().receive_order(s, p)
        if choose(last=True, other=False):
            s.order[p] = "NONE"
        else:
            s.order[p] = before


class LateReleaseCounts(GraceCounts, variant="late-release"):
    """A release may cross the registration, but what was released is not taken back."""

    def fence(self, s, e):
        """Releases of an earlier connection arrive."""
        self.drop(s, e, ("DEPLOY",))
