"""The life cycle of blocking result partitions: JobMasters, TaskExecutors and a ResourceManager that exchange messages.

Follows FLIP-1, phase 2, "Partition life-cycle management". The JobMaster decides when a partition is released; a
TaskExecutor that loses its JobMaster deletes the partitions of that job; the ResourceManager releases idle TaskExecutors
without partitions only; a full disk ends the TaskExecutor and its directory. Where the text is open, this is the
sound reading; the variants are the others.

Abstractions:

* **Time-outs** have no clock: a heartbeat may time out at any moment, and does so eventually if the other side is silent.
* **Registration** is one step. The answer is the first message of the connection; a lost answer is a time-out after it.
  Messages of an earlier connection are dropped: the registration fences them.
* **Reading** is one step at the end of a consumer (two in `read-then-finish`). No failure reaches consumers except `fail`.
* **Slots**: the ResourceManager knows at once whether a TaskExecutor has a slot in use: one producer, one slot.
* **Disks** of crashed TaskExecutors disappear with their container.
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import (
    WEAK,
    Array,
    Bool,
    Case,
    Enum,
    Model,
    Option,
    Queue,
    Range,
    Record,
    State,
    Union,
    action,
    require,
)


class Deploy(Case):
    """The JobMaster submits the producer of a partition: `TaskExecutorGateway.submitTask`."""

    partition: int
    attempt: int


class Release(Case):
    """The JobMaster releases a partition: `TaskExecutorGateway.releasePartitions`."""

    partition: int
    attempt: int


class Close(Case):
    """The JobMaster closes the connection: `TaskExecutorGateway.disconnectJobManager`."""


class PartitionLifecycle(Model):
    """Life cycle of blocking result partitions (FLIP-1, phase 2)."""

    name = "partition_lifecycle"

    jobs: int = 1
    """Number of jobs, each with its JobMaster."""
    executors: int = 1
    """Number of TaskExecutors."""
    partitions: int = 1
    """Number of result partitions; the jobs have them in turn."""
    consumers: int = 1
    """Number of consumers of each partition."""
    attempts: int = 2
    """Number of times that a partition may be produced."""
    failures: int = 1
    """Number of consumers that may fail of themselves, also after they have finished: their region restarts."""
    crashes: int = 1
    """Number of times that a JobMaster comes back after a crash."""
    instance_bounds = ("jobs", "executors", "partitions", "attempts", "failures", "crashes")
    check_deadlock = False
    """A job may end at any time and nothing has to follow; liveness is stated by temporal properties."""
    limits = {
        "jobs": (1, None), "executors": (1, None), "partitions": (1, None), "consumers": (1, None), "attempts": (1, None),
        "failures": (0, None), "crashes": (0, None),
    }  # fmt: skip
    on_disk: ClassVar[tuple[str, ...]] = ("PRODUCING", "STORED")
    """States of a partition of a job that a TaskExecutor stores."""
    readable: ClassVar[tuple[str, ...]] = ("STORED",)
    """When a consumer may start."""
    has_read: ClassVar[tuple[str, ...]] = ("FINISHED",)
    """States of a consumer that has read the partition to its end."""
    orders: ClassVar[tuple[type[Case], ...]] = (Deploy, Release)
    """What a JobMaster may order to be done with a partition."""
    empty_orders: ClassVar[tuple[type[Case], ...]] = (Close,)
    """What else it may order."""
    sizes = {
        "small": {},
        "medium": {"executors": 2, "consumers": 2, "failures": 2, "crashes": 2},
        "large": {"executors": 3},
    }

    def setup(self):
        """Connections, consumers, and one result partition id for each attempt."""
        self.links = [(j, e) for j in range(self.jobs) for e in range(self.executors)]
        self.readers = [(p, c) for p in range(self.partitions) for c in range(self.consumers)]
        self.ids = [(p, a) for p in range(self.partitions) for a in range(self.attempts)]
        self.job_of = [p % self.jobs for p in range(self.partitions)]

    def state(self):
        """Nothing is connected, nothing produced."""
        partition, attempt = Range(0, self.partitions - 1), Range(0, self.attempts - 1)
        orders = [case(partition=partition, attempt=attempt) for case in self.orders]
        return State(
            # the JobMasters
            master=Array(self.jobs, Enum("RUNNING", "CRASHED", "ENDED")),
            recoveries=Array(self.jobs, Range(0, self.crashes, init=self.crashes)),  # that are left
            registered=Array(self.links, Bool()),  # JobMaster.registeredTaskManagers
            attempt=Array(self.partitions, Range(0, self.attempts)),  # number of attempts that were deployed
            tracked=Array(
                self.partitions, Enum("NONE", "PRODUCING", "STORED", "GONE", "RELEASED")
            ),  # the newest attempt
            consumer=Array(self.readers, Enum("CREATED", "READING", "FINISHED")),
            failures_left=Range(0, self.failures, init=self.failures),
            # the TaskExecutors
            executor=Array(self.executors, Enum("UP", "CRASHED", "RELEASED")),
            connected=Array(self.links, Bool()),  # JobTable.Connection
            location=Array(self.ids, Range(0, self.executors - 1)),
            copy=Array(self.ids, Enum("NONE", "PRODUCING", "STORED", "DELETED", "LOST")),
            # the ResourceManager: the TaskExecutor has answered that it stores nothing, and had no slot in use since
            empty=Array(self.executors, Bool()),
            # messages
            to_executor=Array(self.links, Queue(Union(*orders, *[case() for case in self.empty_orders]), capacity=2)),
            to_master=Array(self.links, Option(Record(partition=partition, attempt=attempt))),
        )

    # --- the JobMaster

    @action(p="partitions", e="executors")
    def deploy(self, s, p, e):
        """A partition that consumers need is produced, in a slot of a TaskExecutor, which is therefore not idle."""
        j = self.job_of[p]
        require(s.master[j] == "RUNNING" and s.registered[j, e])
        require(s.tracked[p] in ("NONE", "GONE") and s.attempt[p] < self.attempts and not self.is_consumed(s, p))
        self.send(s, j, e, Deploy(partition=p, attempt=s.attempt[p]))
        s.location[p, s.attempt[p]] = e
        s.attempt[p] += 1
        s.tracked[p] = "PRODUCING"
        s.empty[e] = False

    def send(self, s, j, e, order):
        """A message to a TaskExecutor."""
        require(not s.to_executor[j, e].full)
        s.to_executor[j, e].push(order)

    def is_consumed(self, s, p):
        """Whether all consumers of partition `p` have finished."""
        return all(s.consumer[p, c] == "FINISHED" for c in range(self.consumers))

    @action(j="jobs", e="executors", fairness=WEAK)
    def receive_report(self, s, j, e):
        """A producer has finished: its partition can be consumed."""
        require(s.master[j] == "RUNNING" and s.to_master[j, e] is not None)
        p, a = s.to_master[j, e].partition, s.to_master[j, e].attempt
        if s.registered[j, e] and s.attempt[p] == a + 1 and s.tracked[p] == "PRODUCING":
            s.tracked[p] = "STORED"
        s.to_master[j, e] = None

    @action(p="partitions", a="attempts")
    def release(self, s, p, a):
        """All consumers have finished, and no region needs the partition for recovery."""
        require(s.master[self.job_of[p]] == "RUNNING" and self.is_consumed(s, p) and self.stores(s, p, a))
        self.send(s, self.job_of[p], s.location[p, a], Release(partition=p, attempt=a))
        s.tracked[p] = "RELEASED"

    def stores(self, s, p, a):
        """Whether the JobMaster takes attempt `a` of partition `p` for stored."""
        return s.attempt[p] == a + 1 and s.tracked[p] == "STORED"

    @action(j="jobs", e="executors")
    def close(self, s, j, e):
        """The JobMaster closes a connection: it has neither slots nor partitions there."""
        require(s.master[j] == "RUNNING" and s.registered[j, e] and not self.has_resources(s, j, e))
        self.send(s, j, e, Close())
        s.registered[j, e] = False

    def has_resources(self, s, j, e):
        """Whether a slot or a partition of job `j` is at TaskExecutor `e`, as its JobMaster knows."""
        return any(self.is_tracked(s, p, a) and s.location[p, a] == e for p, a in self.ids if self.job_of[p] == j)

    def is_tracked(self, s, p, a):
        """Whether the JobMaster counts on attempt `a` of partition `p`."""
        return s.attempt[p] == a + 1 and s.tracked[p] in ("PRODUCING", "STORED")

    def is_needed(self, s, p, a):
        """Whether the JobMaster counts on attempt `a` of partition `p`, for a consumer that has not finished."""
        return s.master[self.job_of[p]] == "RUNNING" and self.is_tracked(s, p, a) and not self.is_consumed(s, p)

    @action(j="jobs", e="executors")
    def lose_executor(self, s, j, e):
        """The heartbeat of a TaskExecutor times out, with or without a reason: `JobMaster.disconnectTaskManager`."""
        require(s.master[j] == "RUNNING" and s.registered[j, e])
        self.forget(s, j, e)
        s.registered[j, e] = False

    def forget(self, s, j, e):
        """The partitions of a lost TaskExecutor are gone; consumers that were reading them have failed."""
        for p, a in self.ids:
            if self.job_of[p] == j and s.location[p, a] == e and self.is_tracked(s, p, a):
                s.tracked[p] = "GONE" if s.tracked[p] == "STORED" else "NONE"
                self.restart_consumers(s, p, "READING")

    def restart_consumers(self, s, p, *states):
        """The consumers in one of the states start anew."""
        for c in range(self.consumers):
            if s.consumer[p, c] in states:
                s.consumer[p, c] = "CREATED"

    @action(j="jobs")
    def end(self, s, j):
        """The job has finished, failed or was cancelled: the JobMaster closes its connections and ends."""
        require(s.master[j] == "RUNNING")
        self.stop_master(s, j, "ENDED")

    def stop_master(self, s, j, how):
        """What a JobMaster knows is gone with it."""
        s.master[j] = how
        for e in range(self.executors):
            if how == "ENDED" and s.registered[j, e] and not s.to_executor[j, e].full:
                s.to_executor[j, e].push(Close())
            s.registered[j, e] = False
        for p in range(self.partitions):
            if self.job_of[p] == j:
                s.tracked[p] = "NONE"
                self.restart_consumers(s, p, "READING", "FINISHED")

    @action(j="jobs")
    def crash(self, s, j):
        """The JobMaster crashes, perhaps forever; the job starts from its beginning if it comes back."""
        require(s.master[j] == "RUNNING")
        self.stop_master(s, j, "CRASHED")

    @action(j="jobs")
    def recover(self, s, j):
        """The JobMaster comes back with another JobMasterId: no TaskExecutor is registered."""
        require(s.master[j] == "CRASHED" and s.recoveries[j] > 0)
        s.recoveries[j] -= 1
        s.master[j] = "RUNNING"

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
