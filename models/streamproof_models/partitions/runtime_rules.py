"""The variant `runtime` of `partition_lifecycle`: what the runtime does that the proposal does not say, or says otherwise.

A region that fails makes what it was producing void, and a message cancels it; a dataset counts as gone when a part of it is;
opening a partition and reading it to its end are two steps, which the JobMaster learns of later; a TaskExecutor's process is
replaced by another one; the environment may delete partitions; reports are not lost by themselves, but with their connection.
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Array, Bool, Case, Enum, Queue, Range, State, Union, action, require
from streamproof_models.partitions.machine import Deploy, PartitionLifecycle, Release


class CancelProducer(Case):
    """The JobMaster stops the producer of a partition, which is void: `TaskExecutorGateway.cancelTask`."""

    partition: int
    attempt: int


class ReplacedProcesses(PartitionLifecycle, variant="runtime"):
    """The life cycle of the partitions of one dataset, read by one region, in the runtime."""

    consumers: int = 1
    """One region reads the dataset."""
    readings: int = 1
    """Number of times that the consumer is deployed."""
    room: int = 8
    """Maximum number of messages on their way to a TaskExecutor."""
    orders: ClassVar[tuple[type[Case], ...]] = (Deploy, Release, CancelProducer)
    on_disk: ClassVar[tuple[str, ...]] = ("PRODUCING", "VANISHED", "STORED")
    limits = {"jobs": (1, 1), "consumers": (1, 1), "readings": (1, None), "room": (1, None)}

    def state(self):
        """Also: reports of producers, and which deployment of the consumer has done what."""
        declared = dict(super().state().items())
        partition, attempt = Range(0, self.partitions - 1), Range(0, self.attempts - 1)
        orders = [case(partition=partition, attempt=attempt) for case in self.orders]
        everything = Union(*orders, *[case() for case in self.empty_orders])
        declared["to_executor"] = Array(self.links, Queue(everything, capacity=self.room))
        # VANISHED: deleted by the environment while the producer was at work
        declared["copy"] = Array(self.ids, Enum("NONE", "PRODUCING", "VANISHED", "STORED", "DELETED", "LOST"))
        deployments = Array(self.partitions, Range(0, self.readings))
        return State(
            **declared,
            report=Array(
                self.ids, Enum("NONE", "SENT", "KNOWN", "VOID")
            ),  # of a producer; VOID: its attempt has failed
            reader=deployments,  # the present deployment of the consumer
            opened=deployments,  # the last one that has opened the partition
            read=deployments,  # that has read it to its end
            missed=deployments,  # that has not found it
            given_up=Array(self.partitions, Bool()),  # the job has failed
        )

    # --- the JobMaster

    def begin(self, s, p, c):
        """The consumer is deployed with the descriptor of the dataset, or gets it."""
        super().begin(s, p, c)
        require(s.reader[p] < self.readings)
        s.reader[p] += 1

    def consume(self, s, p, c, a):
        """The consumer has finished; it has read the partition to its end."""
        require(s.consumer[p, c] == "READING" and s.attempt[p] == a + 1 and s.read[p] == s.reader[p])
        s.consumer[p, c] = "FINISHED"

    def miss(self, s, p, c, a):
        """The consumer has failed because it has not found the partition."""
        require(s.consumer[p, c] == "READING" and s.attempt[p] == a + 1 and s.missed[p] == s.reader[p])
        s.tracked[p] = "GONE"
        self.restart_consumers(s, p, "READING")

    @action(p="partitions")
    def write_off(self, s, p):
        """A dataset is gone if one of its partitions is."""
        require(s.tracked[p] == "STORED" and any(s.tracked[q] == "GONE" for q in range(self.partitions)))
        s.tracked[p] = "GONE"

    def fail(self, s, p, c):
        """The region of the consumer restarts, even if it has finished: a released partition is needed again."""
        require(s.consumer[p, c] != "CREATED")
        s.consumer[p, c] = "CREATED"
        if s.tracked[p] == "RELEASED":
            s.tracked[p] = "NONE"

    @action(p="partitions", a="attempts")
    def cancel_producer(self, s, p, a):
        """The region of the producer restarts while it is at work."""
        require(s.tracked[p] == "PRODUCING" and s.attempt[p] == a + 1)
        s.tracked[p] = "NONE"
        self.order(s, p, a, CancelProducer(partition=p, attempt=a))

    def is_needed(self, s, p, a):
        """A job that has failed needs nothing."""
        return super().is_needed(s, p, a) and not s.given_up[p]

    def order(self, s, p, a, message):
        """A message to the TaskExecutor of a partition, if there is a connection."""
        e = s.location[p, a]
        if s.registered[0, e]:
            self.send(s, 0, e, message)

    @action(p="partitions", a="attempts")
    def abandon(self, s, p, a):
        """The job has failed, and needs nothing any longer."""
        require(s.attempt[p] == a + 1 and not s.given_up[p])
        s.given_up[p] = True
        self.order(s, p, a, CancelProducer(partition=p, attempt=a))

    @action(p="partitions", a="attempts", fairness=WEAK)
    def receive_report(self, s, p, a):
        """A producer has finished: its partition can be consumed."""
        require(s.report[p, a] == "SENT" and s.attempt[p] == a + 1 and s.tracked[p] == "PRODUCING")
        s.tracked[p] = "STORED"
        s.report[p, a] = "KNOWN"

    def release(self, s, p, a):
        """The consumer has finished, and no region needs the partition for recovery."""
        require(self.is_consumed(s, p) and s.attempt[p] == a + 1 and s.tracked[p] in ("STORED", "GONE"))
        self.order(s, p, a, Release(partition=p, attempt=a))
        s.tracked[p] = "RELEASED"

    @action(p="partitions", a="attempts")
    def discard(self, s, p, a):
        """The partition is produced again, and nobody reads it: what is stored of it is void."""
        require(s.attempt[p] == a + 1 and s.tracked[p] in ("STORED", "GONE") and s.consumer[p, 0] == "CREATED")
        self.order(s, p, a, Release(partition=p, attempt=a))
        s.tracked[p] = "NONE"

    # --- the TaskExecutor

    @action(j="jobs", e="executors")
    def refuse_order(self, s, j, e):
        """A TaskExecutor cannot start a producer, and reports a failure."""
        require(s.connected[j, e] and len(s.to_executor[j, e]) > 0)
        require(isinstance(s.to_executor[j, e].head, Deploy))
        s.to_executor[j, e].pop()

    def execute(self, s, j, e, order):
        """Also stops a producer."""
        match order:
            case CancelProducer(partition=p, attempt=a):
                if s.copy[p, a] in self.on_disk:
                    s.copy[p, a] = "DELETED"
            case _:
                super().execute(s, j, e, order)

    def finish(self, s, p, a):
        """A producer finishes; the JobMaster gets a report."""
        require(s.copy[p, a] in ("PRODUCING", "VANISHED") and s.report[p, a] == "NONE")
        s.copy[p, a] = "STORED" if s.copy[p, a] == "PRODUCING" else "LOST"
        s.report[p, a] = "SENT"

    @action(p="partitions", a="attempts")
    def abort(self, s, p, a):
        """An attempt that has not finished fails at its TaskExecutor, which deletes what it has stored."""
        require(s.copy[p, a] not in ("NONE", "DELETED") and s.report[p, a] in ("NONE", "SENT"))
        require(s.connected[0, s.location[p, a]])
        s.copy[p, a], s.report[p, a] = "LOST", "VOID"

    @action(p="partitions", a="attempts")
    def fill_disk(self, s, p, a):  # type: ignore[override]
        """The disk is full when a producer writes: its attempt ends, and not the TaskExecutor."""
        require(s.copy[p, a] in ("PRODUCING", "VANISHED") and s.connected[0, s.location[p, a]])
        s.copy[p, a], s.report[p, a] = "LOST", "VOID"

    def stop_executor(self, s, e, how):
        """Another process of the TaskExecutor follows."""
        super().stop_executor(s, e, how)
        s.executor[e] = "UP"

    def is_idle(self, s, e):
        """Whether no producer is at work. A deployment on its way finds no slot."""
        return not any(s.location[i] == e and s.copy[i] == "PRODUCING" for i in self.ids)

    @action(p="partitions", a="attempts")
    def vanish(self, s, p, a):
        """The environment deletes a partition unnoticed."""
        require(s.copy[p, a] in ("PRODUCING", "STORED"))
        s.copy[p, a] = "VANISHED" if s.copy[p, a] == "PRODUCING" else "LOST"

    @action(p="partitions", a="attempts", r="deployments")
    def open(self, s, p, a, r):
        """Deployment `r` of the consumer opens the partition, once."""
        require(s.copy[p, a] == "STORED" and s.connected[0, s.location[p, a]])
        require(s.opened[p] < r and s.missed[p] < r and r <= s.reader[p])
        s.opened[p] = r

    @action(p="partitions", r="deployments")
    def read_to_end(self, s, p, r):
        """Deployment `r` of the consumer has read the partition to its end."""
        require(s.opened[p] == r and s.read[p] < r)
        s.read[p] = r

    @action(p="partitions", a="attempts", r="deployments")
    def find_missing(self, s, p, a, r):
        """Deployment `r` of the consumer does not find the partition."""
        require(s.copy[p, a] in ("DELETED", "LOST") and s.connected[0, s.location[p, a]])
        require(s.opened[p] < r and s.missed[p] < r and r <= s.reader[p])
        s.missed[p] = r

    def setup(self):
        """The deployments are counted from 1."""
        super().setup()
        self.deployments = range(1, self.readings + 1)
