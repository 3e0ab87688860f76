"""The life cycle of blocking result partitions: JobMasters, TaskExecutors and a ResourceManager that exchange messages.

Follows FLIP-1, phase 2, "Partition life-cycle management". The JobMaster decides when a partition is released; a
TaskExecutor that loses its JobMaster deletes the partitions of that job; the ResourceManager releases idle TaskExecutors
without partitions only; a full disk ends the TaskExecutor and its directory. Where the text is open, this is the
sound reading; the variants are the others.

Abstractions:

* **Time-outs** have no clock: a heartbeat may time out at any moment, and does so eventually if the other side is silent.
* **Registration** is one step. The answer is the first message of the connection; a lost answer is a time-out after it.
  Messages of an earlier connection are dropped: the registration fences them.
* **Reading** is one step at the end of a consumer. Consumers run where no failure reaches them except `fail`.
* **Slots**: the ResourceManager knows at once whether a TaskExecutor has a slot in use: one producer, one slot.
* **Disks** of crashed TaskExecutors disappear with their container.
"""

from __future__ import annotations

from streamproof import WEAK, action, require
from streamproof_models.partition_masters import Close, Deploy, PartitionMasters, Release


class PartitionLifecycle(PartitionMasters):
    """Life cycle of blocking result partitions (FLIP-1, phase 2)."""

    name = "partition_lifecycle"

    # --- consumers

    @action(p="partitions", c="consumers")
    def begin(self, s, p, c):
        """A consumer of a stored partition starts."""
        require(s.master[self.job_of[p]] == "RUNNING" and s.consumer[p, c] == "CREATED")
        require(s.tracked[p] in self.readable)
        s.consumer[p, c] = "READING"

    @action(p="partitions", c="consumers", a="attempts")
    def consume(self, s, p, c, a):
        """A consumer has read the partition to its end, and finishes."""
        require(s.consumer[p, c] == "READING" and s.attempt[p] == a + 1 and s.copy[p, a] == "STORED")
        s.consumer[p, c] = "FINISHED"

    @action(p="partitions", c="consumers", a="attempts")
    def miss(self, s, p, c, a):
        """A consumer gets PartitionNotFoundException and fails; the partition is produced again."""
        require(s.consumer[p, c] == "READING" and s.attempt[p] == a + 1 and self.is_missing(s, p, a))
        s.tracked[p] = "NONE"
        self.restart_consumers(s, p, "READING")

    def is_missing(self, s, p, a):
        """Whether the TaskExecutor has deployed the partition, and does not have it any longer."""
        return s.copy[p, a] in ("DELETED", "LOST")

    @action(p="partitions", c="consumers")
    def fail(self, s, p, c):
        """The region of a consumer restarts, even if the consumer has finished: a released partition is needed again."""
        require(s.master[self.job_of[p]] == "RUNNING" and s.consumer[p, c] != "CREATED" and s.failures_left > 0)
        s.failures_left -= 1
        s.consumer[p, c] = "CREATED"
        if s.tracked[p] == "RELEASED":
            s.tracked[p] = "NONE"

    # --- the TaskExecutor

    @action(j="jobs", e="executors")
    def register(self, s, j, e):
        """A TaskExecutor without connection registers: what the JobMaster knew of it and sent to it before is void."""
        require(s.executor[e] == "UP" and not s.connected[j, e] and s.master[j] == "RUNNING")
        self.forget(s, j, e)
        s.registered[j, e], s.connected[j, e] = True, True
        self.fence(s, j, e)

    def fence(self, s, j, e):
        """Messages of an earlier connection are dropped."""
        s.to_executor[j, e].clear()

    @action(j="jobs", e="executors", fairness=WEAK)
    def receive_order(self, s, j, e):
        """A TaskExecutor executes a message of its JobMaster, or drops it without connection."""
        require(len(s.to_executor[j, e]) > 0 and s.executor[e] == "UP")
        order = s.to_executor[j, e].pop()
        if self.is_accepted(s, j, e):
            self.execute(s, j, e, order)

    def is_accepted(self, s, j, e):
        """Whether the TaskExecutor executes messages of a JobMaster."""
        return s.connected[j, e]

    def execute(self, s, j, e, order):
        """The TaskExecutor starts a producer, deletes a partition, or deletes all of the job and disconnects."""
        match order:
            case Deploy(partition=p, attempt=a):
                s.copy[p, a] = "PRODUCING"
            case Release(partition=p, attempt=a):
                if s.copy[p, a] in self.on_disk:
                    s.copy[p, a] = "DELETED"
            case Close():
                self.delete(s, e, "DELETED", j)
                s.connected[j, e] = False

    def delete(self, s, e, how, j=None):
        """TaskExecutor `e` loses, or deletes, all partitions of a job, or of all jobs."""
        for p, a in self.ids:
            if j in (None, self.job_of[p]) and s.location[p, a] == e and s.copy[p, a] in self.on_disk:
                s.copy[p, a] = how

    @action(p="partitions", a="attempts")
    def finish(self, s, p, a):
        """A producer finishes and frees its slot; the JobMaster gets a report."""
        link = self.job_of[p], s.location[p, a]
        require(s.copy[p, a] == "PRODUCING" and s.to_master[link] is None)
        s.copy[p, a] = "STORED"
        s.to_master[link] = {"partition": p, "attempt": a}

    @action(j="jobs", e="executors", fairness=WEAK.where("silent"))
    def lose_master(self, s, j, e):
        """The heartbeat of the JobMaster times out, with or without a reason: all partitions of the job are deleted."""
        require(s.connected[j, e])
        self.delete(s, e, "LOST", j)
        s.connected[j, e] = False

    def silent(self, s, j, e):
        """No JobMaster answers the heartbeats of the TaskExecutor."""
        return not s.registered[j, e]

    @action(j="jobs", e="executors", fairness=WEAK)
    def synchronise(self, s, j, e):
        """A heartbeat of the JobMaster lists the partitions that it tracks: the TaskExecutor deletes the others."""
        require(s.registered[j, e] and s.connected[j, e] and len(s.to_executor[j, e]) == 0)
        for p, a in self.ids:
            here = self.job_of[p] == j and s.location[p, a] == e and s.copy[p, a] in self.on_disk
            if here and not self.is_tracked(s, p, a):
                s.copy[p, a] = "DELETED"

    @action(e="executors")
    def crash_executor(self, s, e):
        """A TaskExecutor crashes."""
        self.stop_executor(s, e, "CRASHED")
        self.delete(s, e, "LOST")

    def stop_executor(self, s, e, how):
        """A TaskExecutor is gone with its connections."""
        require(s.executor[e] == "UP")
        s.executor[e] = how
        s.empty[e] = False
        for j in range(self.jobs):
            s.connected[j, e], s.to_master[j, e] = False, None
            s.to_executor[j, e].clear()

    @action(e="executors")
    def fill_disk(self, s, e):
        """The disk is full: fatal for the TaskExecutor, whose shutdown hook deletes the directory."""
        require(any(s.location[i] == e and s.copy[i] in self.on_disk for i in self.ids))
        self.stop_executor(s, e, "CRASHED")
        self.delete_directory(s, e)

    def delete_directory(self, s, e):
        """The shutdown hook."""
        self.delete(s, e, "LOST")

    @action(j="jobs", e="executors")
    def lose_message(self, s, j, e):
        """The next message to a TaskExecutor is lost."""
        require(len(s.to_executor[j, e]) > 0)
        s.to_executor[j, e].pop()

    @action(j="jobs", e="executors")
    def lose_report(self, s, j, e):
        """A report to the JobMaster is lost."""
        require(s.to_master[j, e] is not None)
        s.to_master[j, e] = None

    # --- the ResourceManager

    @action(e="executors")
    def report_empty(self, s, e):
        """An idle TaskExecutor answers that it stores no partition: `TaskExecutorGateway.canBeReleased`."""
        require(s.executor[e] == "UP" and self.is_idle(s, e) and self.stores_nothing(s, e))
        s.empty[e] = True

    def is_idle(self, s, e):
        """Whether no slot of the TaskExecutor is in use."""
        deployed = any(isinstance(m, Deploy) for j in range(self.jobs) for m in s.to_executor[j, e])
        return not deployed and not any(s.location[i] == e and s.copy[i] == "PRODUCING" for i in self.ids)

    def stores_nothing(self, s, e):
        """Whether the TaskExecutor has no partition."""
        return not any(s.location[i] == e and s.copy[i] == "STORED" for i in self.ids)

    @action(e="executors")
    def release_executor(self, s, e):
        """The ResourceManager releases a TaskExecutor that had no slot in use since it answered."""
        require(s.empty[e] and self.is_idle(s, e))
        self.stop_executor(s, e, "RELEASED")
        self.delete(s, e, "LOST")

    @action
    def crash_manager(self, s):
        """The ResourceManager crashes: another one asks again."""
        require(any(s.empty))
        s.empty = [False] * self.executors
