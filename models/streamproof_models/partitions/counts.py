"""The life cycle of partitions for proofs about any number of TaskExecutors, partitions, consumers, attempts and failures.

The rules are those of `partition_lifecycle` for one job. What proofs for every size do not support is abstracted:

* **Attempts**: a partition has two copies, that of its newest attempt and that of one earlier attempt, whichever it is. When
  a partition is produced again, the former newest copy takes the place of the earlier one or is not looked at any longer.
* **Messages** to a TaskExecutor are not queued: each copy has at most one on its way, in any order with the others. A
  registration drops those of the earlier connection. A JobMaster that has ended may close its connections at any time.
* **Consumers** are counted by their state.
* **Other jobs** use slots: an answer to the ResourceManager may become void at any time.

Each step of `partition_lifecycle` is a step of this machine, or none, whichever earlier attempt is looked at.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Range, State, action, choose, require

ON_DISK = ("PRODUCING", "STORED")


class PartitionCounts(Model):
    """Life cycle of the blocking result partitions of one job, without queues: two copies of each partition."""

    name = "partition_counts"

    executors: int = 1
    """Number of TaskExecutors."""
    partitions: int = 1
    """Number of result partitions."""
    consumers: int = 1
    """Number of consumers of each partition."""
    attempts: int = 2
    """Number of times that a partition may be produced."""
    failures: int = 1
    """Number of consumers that may fail of themselves, also after they have finished: their region restarts."""
    crashes: int = 1
    """Number of times that the JobMaster comes back after a crash."""
    instance_bounds = ("executors", "partitions", "attempts", "failures", "crashes")
    check_deadlock = False  # nothing has to happen
    limits = {
        "executors": (1, None), "partitions": (1, None), "consumers": (1, None), "attempts": (1, None),
        "failures": (0, None), "crashes": (0, None),
    }  # fmt: skip
    sizes = {"small": {}, "medium": {"executors": 2, "consumers": 2}}

    def state(self):
        """Nothing is connected, nothing produced."""
        p, e, count = range(self.partitions), range(self.executors), Range(0, self.consumers)
        at = Range(0, self.executors - 1)
        copy, order = Enum("NONE", "PRODUCING", "STORED", "DELETED", "LOST"), Enum("NONE", "DEPLOY", "RELEASE")
        return State(
            # the JobMaster
            master=Enum("RUNNING", "CRASHED", "ENDED"),
            recoveries=Range(0, self.crashes, init=self.crashes),  # that are left
            registered=Array(e, Bool()),
            attempt=Array(p, Range(0, self.attempts)),  # number of attempts that were deployed
            tracked=Array(p, Enum("NONE", "PRODUCING", "STORED", "GONE", "RELEASED")),  # the newest attempt
            reading=Array(p, count),  # number of its consumers
            finished=Array(p, count),
            failures_left=Range(0, self.failures, init=self.failures),
            # the TaskExecutors
            executor=Array(e, Enum("UP", "CRASHED", "RELEASED")),
            connected=Array(e, Bool()),
            location=Array(p, at),  # of the newest attempt
            copy=Array(p, copy),
            old_location=Array(p, at),  # of the earlier attempt
            old_copy=Array(p, copy),
            # the ResourceManager: the TaskExecutor has answered that it stores nothing, and had no slot in use since
            empty=Array(e, Bool()),
            # messages
            order=Array(p, order),  # about the newest attempt
            old_order=Array(p, order),
            closing=Array(e, Bool()),
            reporting=Array(p, Bool()),  # that the producer of the newest attempt has finished
        )

    # --- the JobMaster

    @action(p="partitions", e="executors")
    def deploy(self, s, p, e):
        """A partition that consumers need is produced, in a slot of a TaskExecutor, which is therefore not idle."""
        require(s.master == "RUNNING" and s.registered[e])
        require(s.tracked[p] in ("NONE", "GONE") and s.attempt[p] < self.attempts and not self.is_consumed(s, p))
        if choose(watched=True, unwatched=False):
            s.old_location[p], s.old_copy[p], s.old_order[p] = s.location[p], s.copy[p], s.order[p]
        s.location[p], s.copy[p], s.order[p], s.reporting[p] = e, "NONE", "DEPLOY", False
        s.attempt[p] += 1
        s.tracked[p] = "PRODUCING"
        s.empty[e] = False

    def is_consumed(self, s, p):
        """Whether all consumers of partition `p` have finished."""
        return s.finished[p] == self.consumers

    @action(p="partitions")
    def receive_report(self, s, p):
        """The producer has finished: the partition can be consumed."""
        require(s.master == "RUNNING" and s.reporting[p])
        if s.registered[s.location[p]] and s.tracked[p] == "PRODUCING":
            s.tracked[p] = "STORED"
        s.reporting[p] = False

    @action(p="partitions")
    def release(self, s, p):
        """All consumers have finished."""
        require(s.master == "RUNNING" and self.is_consumed(s, p) and s.tracked[p] == "STORED")
        s.order[p] = "RELEASE"
        s.tracked[p] = "RELEASED"

    @action(e="executors")
    def close(self, s, e):
        """The JobMaster closes a connection: it has neither slots nor partitions there."""
        require(s.master == "RUNNING" and s.registered[e])
        require(not any(s.location[p] == e and self.is_resource(s, p) for p in range(self.partitions)))
        self.send_close(s, e)
        s.registered[e] = False

    def send_close(self, s, e):
        """A message closes the connection."""
        s.closing[e] = True

    def is_resource(self, s, p):
        """Whether the JobMaster keeps a connection for partition `p`."""
        return self.is_tracked(s, p)

    def is_tracked(self, s, p):
        """Whether the JobMaster counts on the newest attempt of partition `p`."""
        return s.tracked[p] in ON_DISK

    def is_needed(self, s, p):
        """Whether the JobMaster counts on the newest attempt of partition `p`, for a consumer that has not finished."""
        return s.master == "RUNNING" and self.is_tracked(s, p) and not self.is_consumed(s, p)

    @action(e="executors")
    def lose_executor(self, s, e):
        """The heartbeat of a TaskExecutor times out."""
        require(s.master == "RUNNING" and s.registered[e])
        self.forget(s, e)
        s.registered[e] = False

    def forget(self, s, e):
        """The partitions of a lost TaskExecutor are gone; consumers that were reading them have failed."""
        self.fail_readers(s, e)
        s.tracked = [
            s.tracked[p]
            if s.location[p] != e or not self.is_tracked(s, p)
            else "GONE"
            if s.tracked[p] == "STORED"
            else "NONE"
            for p in range(self.partitions)
        ]

    def fail_readers(self, s, e):
        """The consumers that read from a lost TaskExecutor start anew."""
        s.reading = [
            0 if s.location[p] == e and self.is_tracked(s, p) else s.reading[p] for p in range(self.partitions)
        ]

    @action
    def end(self, s):
        """The job has finished, failed or was cancelled."""
        require(s.master == "RUNNING")
        self.stop_master(s, "ENDED")
        s.closing = [False for e in range(self.executors)]

    def stop_master(self, s, how):
        """What a JobMaster knows is gone with it."""
        s.master = how
        s.registered = [False for e in range(self.executors)]
        s.tracked = ["NONE" for p in range(self.partitions)]
        s.reading = [0 for p in range(self.partitions)]
        s.finished = [0 for p in range(self.partitions)]

    @action
    def crash(self, s):
        """The JobMaster crashes, perhaps forever; the job starts from its beginning if it comes back."""
        require(s.master == "RUNNING")
        self.stop_master(s, "CRASHED")

    @action
    def recover(self, s):
        """The JobMaster comes back: no TaskExecutor is registered."""
        require(s.master == "CRASHED" and s.recoveries > 0)
        s.recoveries -= 1
        s.master = "RUNNING"

    # --- consumers

    def has_read(self, s, p):
        """Number of consumers that have read the partition to its end."""
        return s.finished[p]

    @action(p="partitions")
    def begin(self, s, p):
        """A consumer of a stored partition starts."""
        require(
            s.master == "RUNNING" and s.reading[p] + self.has_read(s, p) < self.consumers and s.tracked[p] == "STORED"
        )
        s.reading[p] += 1

    @action(p="partitions")
    def consume(self, s, p):
        """A consumer has read the partition to its end, and finishes."""
        require(s.reading[p] > 0 and s.copy[p] == "STORED")
        s.reading[p] -= 1
        s.finished[p] += 1

    @action(p="partitions")
    def miss(self, s, p):
        """A consumer gets PartitionNotFoundException and fails; the partition is produced again."""
        require(s.reading[p] > 0 and s.copy[p] in ("DELETED", "LOST"))
        s.tracked[p] = "NONE"
        s.reading[p] = 0

    @action(p="partitions")
    def fail(self, s, p):
        """The region of a consumer restarts, even if the consumer has finished: a released partition is needed again."""
        require(s.master == "RUNNING" and s.failures_left > 0)
        s.failures_left -= 1
        self.restart_one(s, p)
        if s.tracked[p] == "RELEASED":
            s.tracked[p] = "NONE"

    def restart_one(self, s, p):
        """One consumer starts anew."""
        if choose(finished=True, reading=False):
            require(s.finished[p] > 0)
            s.finished[p] -= 1
        else:
            require(s.reading[p] > 0)
            s.reading[p] -= 1

    # --- the TaskExecutor

    @action(e="executors")
    def register(self, s, e):
        """A TaskExecutor without connection registers: what the JobMaster knew of it and sent to it before is void."""
        require(s.executor[e] == "UP" and not s.connected[e] and s.master == "RUNNING")
        self.forget(s, e)
        s.registered[e], s.connected[e] = True, True
        self.fence(s, e)

    def fence(self, s, e):
        """Messages of an earlier connection are dropped."""
        self.drop(s, e)

    def drop(self, s, e, orders=("DEPLOY", "RELEASE")):
        """Messages to a TaskExecutor are lost: that which closes the connection, and these orders."""
        s.order = [
            "NONE" if s.location[p] == e and s.order[p] in orders else s.order[p] for p in range(self.partitions)
        ]
        s.old_order = [
            "NONE" if s.old_location[p] == e and s.old_order[p] in orders else s.old_order[p]
            for p in range(self.partitions)
        ]
        s.closing[e] = False

    @action(p="partitions")
    def receive_order(self, s, p):
        """A TaskExecutor starts a producer or deletes a partition, or drops the message without connection."""
        require(s.order[p] != "NONE" and s.executor[s.location[p]] == "UP")
        s.copy[p] = self.executed(s, s.location[p], s.copy[p], s.order[p])
        s.order[p] = "NONE"

    @action(p="partitions")
    def receive_old_order(self, s, p):
        """The same for the earlier attempt."""
        require(s.old_order[p] != "NONE" and s.executor[s.old_location[p]] == "UP")
        s.old_copy[p] = self.executed(s, s.old_location[p], s.old_copy[p], s.old_order[p])
        s.old_order[p] = "NONE"

    def executed(self, s, e, copy, order):
        """The copy after TaskExecutor `e` has received an order."""
        if not self.is_accepted(s, e):
            return copy
        if order == "DEPLOY":
            return "PRODUCING"
        return "DELETED" if copy in ON_DISK else copy

    def is_accepted(self, s, e):
        """Whether the TaskExecutor executes messages of the JobMaster."""
        return s.connected[e]

    @action(e="executors")
    def receive_close(self, s, e):
        """The TaskExecutor deletes all partitions of the job and disconnects, if it is connected."""
        require((s.closing[e] or s.master == "ENDED") and s.executor[e] == "UP")
        s.closing[e] = False
        if self.is_accepted(s, e):
            self.delete(s, e, "DELETED")
            s.connected[e] = False

    def delete(self, s, e, how, states=ON_DISK):
        """TaskExecutor `e` loses, or deletes, the partitions of the job in some states."""
        s.copy = [how if s.location[p] == e and s.copy[p] in states else s.copy[p] for p in range(self.partitions)]
        s.old_copy = [
            how if s.old_location[p] == e and s.old_copy[p] in states else s.old_copy[p] for p in range(self.partitions)
        ]

    def stores(self, s, e):
        """Whether TaskExecutor `e` has a partition of the job on its disk."""
        return any(
            (s.location[p] == e and s.copy[p] in ON_DISK) or (s.old_location[p] == e and s.old_copy[p] in ON_DISK)
            for p in range(self.partitions)
        )

    def may_store(self, s, e):
        """Whether the rules let TaskExecutor `e` have a partition of the job."""
        return s.connected[e]

    @action(p="partitions")
    def lose_order(self, s, p):
        """A message about the newest attempt is lost."""
        require(s.order[p] != "NONE")
        s.order[p] = "NONE"

    @action(p="partitions")
    def lose_old_order(self, s, p):
        """A message about the earlier attempt is lost."""
        require(s.old_order[p] != "NONE")
        s.old_order[p] = "NONE"

    @action(e="executors")
    def lose_close(self, s, e):
        """The message that closes a connection is lost."""
        require(s.closing[e])
        s.closing[e] = False

    @action(p="partitions")
    def lose_report(self, s, p):
        """A report is lost."""
        require(s.reporting[p])
        s.reporting[p] = False

    @action(p="partitions")
    def finish(self, s, p):
        """A producer finishes and frees its slot; the JobMaster gets a report."""
        require(s.copy[p] == "PRODUCING")
        s.copy[p] = "STORED"
        s.reporting[p] = True

    @action(p="partitions")
    def finish_old(self, s, p):
        """The producer of the earlier attempt finishes; nobody waits for its report."""
        require(s.old_copy[p] == "PRODUCING")
        s.old_copy[p] = "STORED"

    @action(e="executors", fairness=WEAK.where("silent"))
    def lose_master(self, s, e):
        """The heartbeat of the JobMaster times out, with or without a reason: all partitions of the job are deleted."""
        require(s.connected[e])
        self.delete(s, e, "LOST")
        s.connected[e] = False

    def silent(self, s, e):
        """The JobMaster does not answer the heartbeats of the TaskExecutor."""
        return not s.registered[e]

    @action(e="executors")
    def synchronise(self, s, e):
        """A heartbeat of the JobMaster lists the partitions that it tracks: the TaskExecutor deletes the others."""
        require(s.registered[e] and s.connected[e])
        s.copy = [
            "DELETED" if s.location[p] == e and s.copy[p] in ON_DISK and not self.is_tracked(s, p) else s.copy[p]
            for p in range(self.partitions)
        ]
        s.old_copy = [
            "DELETED" if s.old_location[p] == e and s.old_copy[p] in ON_DISK else s.old_copy[p]
            for p in range(self.partitions)
        ]

    @action(e="executors")
    def crash_executor(self, s, e):
        """A TaskExecutor crashes."""
        self.stop_executor(s, e, "CRASHED")
        self.delete(s, e, "LOST")

    def stop_executor(self, s, e, how):
        """A TaskExecutor is gone with its connection."""
        require(s.executor[e] == "UP")
        s.executor[e] = how
        s.empty[e], s.connected[e] = False, False
        self.drop(s, e)
        s.reporting = [s.reporting[p] and s.location[p] != e for p in range(self.partitions)]

    @action(e="executors")
    def fill_disk(self, s, e):
        """The disk is full: fatal for the TaskExecutor, whose shutdown hook deletes the directory."""
        self.stop_executor(s, e, "CRASHED")
        self.delete_directory(s, e)

    def delete_directory(self, s, e):
        """The shutdown hook."""
        self.delete(s, e, "LOST")

    # --- the ResourceManager

    @action(e="executors")
    def report_empty(self, s, e):
        """An idle TaskExecutor answers that it stores no partition."""
        require(s.executor[e] == "UP" and self.is_idle(s, e) and self.stores_nothing(s, e))
        s.empty[e] = True

    def is_idle(self, s, e):
        """Whether no slot of the TaskExecutor is in use."""
        return not any(
            (s.location[p] == e and (s.copy[p] == "PRODUCING" or s.order[p] == "DEPLOY"))
            or (s.old_location[p] == e and (s.old_copy[p] == "PRODUCING" or s.old_order[p] == "DEPLOY"))
            for p in range(self.partitions)
        )

    def stores_nothing(self, s, e):
        """Whether the TaskExecutor has no partition."""
        return not any(
            (s.location[p] == e and s.copy[p] == "STORED") or (s.old_location[p] == e and s.old_copy[p] == "STORED")
            for p in range(self.partitions)
        )

    @action(e="executors")
    def release_executor(self, s, e):
        """The ResourceManager releases a TaskExecutor that had no slot in use since it answered."""
        require(s.empty[e] and self.is_idle(s, e))
        self.stop_executor(s, e, "RELEASED")
        self.delete(s, e, "LOST")

    @action
    def crash_manager(self, s):
        """The ResourceManager crashes: another one asks again."""
        s.empty = [False for e in range(self.executors)]

    @action(e="executors")
    def occupy(self, s, e):
        """Another job uses a slot of a TaskExecutor, which is therefore not idle."""
        require(s.empty[e])
        s.empty[e] = False
