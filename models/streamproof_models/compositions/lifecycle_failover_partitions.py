"""The partitions of a job and what ends them: the part of `lifecycle_failover` without the steps of tasks."""

from __future__ import annotations

from typing import Any, ClassVar

from streamproof import WEAK, Model, Parts, Range, State, action, require
from streamproof_models.failover.machine import Failover
from streamproof_models.partitions.machine import PartitionLifecycle


class Scheduler(Failover):
    """`failover`, but the partition tracker releases partitions and knows which are lost."""

    name = "scheduler"

    losses: int = 0

    def is_consumed(self, s, consumers):
        """The scheduler releases nothing by itself."""
        return False


class UnbackedScheduler(Scheduler, variant="region-without-backtracking"):
    """Only the failed region restarts."""

    def regions_to_restart(self, s, failed, missing):
        """The region of the failed task."""
        return {r: r == self.region_of[failed] for r in self.regions}


class StoredPartitions(Model):
    """A job and its stored partitions: releases, lost connections, registrations. The rules of its tasks are elsewhere."""

    name = "stored_partitions"
    job: ClassVar[Scheduler]
    """Tasks, regions, decisions to restart."""
    store: ClassVar[PartitionLifecycle]
    """Partitions: the tracker of the JobMaster, TaskExecutors, ResourceManager, messages."""

    topology: str = "chain"
    """Job graph, by name: a task writes at most one blocking partition, each with one reader."""
    executors: int = 2
    """Number of TaskExecutors."""
    failures: int = 0
    """Number of tasks that may fail of themselves."""
    losses: int = 1
    """Number of connections that may end without a reason at the other end, and of TaskExecutors that may be gone."""

    limits = {"executors": (1, None), "failures": (0, None), "losses": (0, None)}
    sizes = {
        "small": {},
        "medium": {"failures": 1},
        "large": {"topology": "pair", "failures": 2, "losses": 2},
    }
    check_deadlock = False
    """TaskExecutors exchange heartbeats without end; `job_ends` states that the job goes on."""
    instance_bounds = ("failures", "losses")
    scheduler_variant: ClassVar[str | None] = None
    """The rules of the scheduler."""
    storage_variant: ClassVar[str | None] = None
    """The rules of the life cycle."""

    def setup(self):
        """The partitions by number, and what depends on each."""
        job = self.scheduler()
        self.tasks, self.regions, self.decisions = job.tasks, job.regions, job.decisions
        self.reads, self.outputs = job.reads, job.outputs
        self.partitions = tuple(job.partitions)
        self.number = {p: i for i, p in enumerate(self.partitions)}
        self.producer = dict(job.partitions)
        readers = {p: [t for t in self.tasks if p in self.reads[t]] for p in self.partitions}
        if any(len(r) != 1 for r in readers.values()) or any(len(ps) > 1 for ps in self.outputs.values()):
            raise ValueError(f"{self.topology}: a task with several partitions, or a partition with several readers")
        self.reader = {p: r[0] for p, r in readers.items()}
        self.dependent = {p: self.after(job, p) for p in self.partitions}
        self.attempts = self.decisions + 1

    def after(self, job, p):
        """All tasks that read a partition, directly or through others, with their regions."""
        found = list(job.regions[job.region_of[self.reader[p]]])
        for t in found:
            for q in job.outputs[t]:
                found += [u for u in job.regions[job.region_of[self.reader[q]]] if u not in found]
        return tuple(found)

    def scheduler(self) -> Scheduler:
        """The scheduler, with enough decisions: a TaskExecutor that is gone may be noticed partition by partition."""
        settings: dict[str, Any] = {"topology": self.topology, "failures": self.failures}
        levels = len(Scheduler(**settings).partitions) + 1
        return Scheduler.build(self.scheduler_variant, restarts=self.failures + levels * self.losses, **settings)

    def parts(self):
        """The scheduler and the partitions. What changes both is a rule below."""
        store = PartitionLifecycle.build(
            self.storage_variant,
            executors=self.executors,
            partitions=len(self.partitions),
            attempts=self.attempts,
            failures=0,
            crashes=0,
        )
        here = ("schedule", "run", "finish", "complete", "fail", "lose", "miss", "give_up", "cancel", "restart")
        there = (
            "begin", "consume", "miss", "fail", "register", "finish", "lose_master", "crash_executor", "fill_disk",
            "lose_message", "lose_report", "release_executor", "crash_manager", "deploy", "receive_report", "release",
            "close", "lose_executor", "end", "crash", "recover",
        )  # fmt: skip
        return Parts(job=self.scheduler(), store=store).block(
            *[f"job.{rule}" for rule in here], *[f"store.{rule}" for rule in there]
        )

    def state(self):
        """How many connections may still be lost."""
        return State(losses_left=Range(0, self.losses, init=self.losses))

    def follow(self, s):
        """The tracker forgets what the scheduler has given up; a producer that has stopped deletes its partial output."""
        for p, i in self.number.items():
            if s.job.partition[p] == "NONE":
                for a in range(self.attempts):
                    if self.store.is_tracked(s.store, i, a) and s.store.copy[i, a] == "PRODUCING":
                        s.store.copy[i, a] = "DELETED"
                if s.store.tracked[i] != "GONE":
                    s.store.tracked[i] = "NONE"
            if s.job.status[self.reader[p]] not in ("RUNNING", "FINISHED"):
                s.store.consumer[i, 0] = "CREATED"

    # --- partitions

    @action(p="partitions", a="attempts", fairness=WEAK)
    def release(self, s, p, a):
        """No region needs a partition for recovery: the JobMaster releases it."""
        require(s.job.partition[p] == "STORED" and self.is_over(s, p))
        self.store.release(s.store, self.number[p], a)
        s.job.partition[p] = "RELEASED"

    def is_over(self, s, p):
        """Whether all tasks that depend on a partition have finished for good."""
        return all(self.job.has_finished(s.job, t) for t in self.dependent[p])

    @action(e="executors", fairness=WEAK.where("is_gone"))
    def lose_executor(self, s, e):
        """The JobMaster loses a TaskExecutor: it forgets the partitions there, and fails the tasks there."""
        self.pay_unless(s, self.is_gone(s, e))
        here = self.partitions_at(s, e)
        self.store.lose_executor(s.store, 0, e)
        self.fail_over(s, here)

    def partitions_at(self, s, e):
        """Which partitions the JobMaster tracks at a TaskExecutor."""
        return {
            p: any(self.store.is_tracked(s.store, i, a) and s.store.location[i, a] == e for a in range(self.attempts))
            for p, i in self.number.items()
        }

    def fail_over(self, s, here):
        """The scheduler forgets the lost partitions, and fails the tasks that were producing there."""
        self.report_loss(s, here)
        for p, t in self.producer.items():
            if here[p] and s.job.status[t] in self.job.active:
                require(s.job.decided < self.decisions)
                self.job.fail_over(s.job, t)
        self.follow(s)

    def report_loss(self, s, here):
        """The scheduler learns which partitions are gone."""
        for p in self.partitions:
            if here[p] and s.job.partition[p] == "STORED":
                s.job.partition[p] = "NONE"

    def pay_unless(self, s, caused):
        """An event has a cause, or is one of those that may happen without."""
        if not caused:
            require(s.losses_left > 0)
            s.losses_left -= 1

    def is_gone(self, s, e):
        """Whether a TaskExecutor that the JobMaster knows does not answer its heartbeats."""
        return s.store.registered[0, e] and not s.store.connected[0, e]

    @action(e="executors", fairness=WEAK.where("is_silent"))
    def lose_master(self, s, e):
        """A TaskExecutor loses the JobMaster, and deletes the partitions of the job."""
        self.pay_unless(s, self.is_silent(s, e))
        self.store.lose_master(s.store, 0, e)

    def is_silent(self, s, e):
        """Whether the JobMaster does not answer the heartbeats of a TaskExecutor."""
        return s.store.connected[0, e] and not s.store.registered[0, e]

    @action(e="executors")
    def close(self, s, e):
        """The JobMaster closes a connection: it has neither slots nor partitions there."""
        self.pay_unless(s, False)
        self.store.close(s.store, 0, e)

    @action(e="executors")
    def crash_executor(self, s, e):
        """A TaskExecutor crashes with its partitions."""
        self.pay_unless(s, False)
        self.store.crash_executor(s.store, e)

    @action(e="executors")
    def release_executor(self, s, e):
        """The ResourceManager releases a TaskExecutor that stores nothing."""
        self.pay_unless(s, False)
        self.store.release_executor(s.store, e)

    @action(e="executors", fairness=WEAK)
    def register(self, s, e):
        """A TaskExecutor registers, or another one in its place; the JobMaster has given up the earlier one."""
        require(not s.store.registered[0, e] and s.store.master[0] == "RUNNING")
        s.store.executor[e] = "UP"
        here = self.partitions_at(s, e)
        self.store.register(s.store, 0, e)
        self.fail_over(s, here)
