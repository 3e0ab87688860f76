"""The JobMaster's part of the life cycle of partitions: state, messages, and the rules of the JobMaster."""

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


class PartitionMasters(Model):
    """The JobMasters of one or several jobs, their partitions and consumers."""

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
