"""Pipelined regions that need slots: the scheduler of a job, and the slots of `slots`, together.

The scheduler knows the regions of a job graph, and requests a slot for each task. `slots` has the instances, their locks,
and the queue of tasks for which no slot is free. A task starts when it has a slot. The tasks of a pipelined region finish
only together, since a producer waits for a consumer that takes its data, and a consumer for the end of its input. The
consumer of a blocking partition waits until its producer has finished.

Each part alone makes progress: a queued task of `slots` gets each slot that becomes free, and a job without a limit of slots
is never stuck. Here the scheduler requests the slots of a region together, and those of the next region when all requests
before have been granted. So the requests of a region are not mixed with those of another in the queue.

Abstractions: those of `slots`; one task a slot; no failures of tasks.
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Enum, Model, Parts, Set, State, action, require, terminal
from streamproof_models.failover.batch_job import BatchJob
from streamproof_models.failover.regions import Merging
from streamproof_models.slots import Slots


class RegionScheduler(BatchJob):
    """Which tasks of a job have been requested, and which have finished."""

    name = "region_scheduler"
    topology: str = "disjoint"

    def state(self):
        """No slot has been requested."""
        return State(requested=Set(Enum(*self.tasks)), finished=Set(Enum(*self.tasks)))

    @action(t="tasks")
    def request(self, s, t):
        """The scheduler requests the slot of a task whose region can be scheduled."""
        require(t not in s.requested and self.inputs_ready(s, self.region_of[t]))
        s.requested.add(t)

    def inputs_ready(self, s, r):
        """Whether all inputs of a region from other regions have been produced."""
        return all(producer in s.finished for t in self.regions[r] for producer in self.upstream[t])

    @action(t="tasks")
    def finish(self, s, t):
        """A task finishes."""
        require(t in s.requested and t not in s.finished)
        require(all(producer in s.finished for producer in self.upstream[t]))
        s.finished.add(t)

    def begun(self, s, r):
        """Whether the scheduler has requested a slot of a region, and not all."""
        requested = [t in s.requested for t in self.regions[r]]
        return any(requested) and not all(requested)

    @terminal
    def over(self, s):
        """All tasks have finished."""
        return all(t in s.finished for t in self.tasks)


class UnmergedScheduler(RegionScheduler, variant="merge-within-logical-region-only"):
    """Regions that depend on each other are merged inside one logical region only, as in Flink 2.3."""

    merging = Merging.LOGICAL_REGION


class RegionSlots(Model):
    """Scheduling of pipelined regions with a limited number of slots."""

    name = "region_slots"
    job: ClassVar[RegionScheduler]
    """The scheduler."""
    cluster: ClassVar[Slots]
    """Instances, slots, locks and queues."""

    topology: str = "disjoint"
    """Job graph: a name of `streamproof_models.topologies.JOB_GRAPHS`."""
    parallelism: int = 1
    """Tasks per vertex of the job graph."""
    instances: int = 2
    """Number of instances; the largest region must fit."""
    slots: int = 1
    """Number of slots per instance."""

    limits = {"parallelism": (1, None), "instances": (1, None), "slots": (1, None)}
    sizes = {
        "small": {},
        "medium": {"topology": "pipelined-pair", "parallelism": 3, "instances": 4},
    }

    scheduler_variant: ClassVar[str | None] = None
    """The rules of the scheduler."""
    cluster_variant: ClassVar[str | None] = None
    """The rules of the cluster."""

    def setup(self):
        """The tasks and regions by name; the tasks are the threads of `slots`, in this order."""
        job = self.scheduler()
        self.tasks, self.regions, self.region_of = job.tasks, job.regions, job.region_of
        self.thread = {t: i for i, t in enumerate(self.tasks)}
        self.check_room()

    def check_room(self):
        """A region that has more tasks than there are slots is never scheduled."""
        most = max(len(tasks) for tasks in self.regions.values())
        if most > self.instances * self.slots:
            raise ValueError(f"a region of {most} tasks needs {most} slots; there are {self.instances * self.slots}")

    def scheduler(self) -> RegionScheduler:
        """The scheduler."""
        return RegionScheduler.build(self.scheduler_variant, topology=self.topology, parallelism=self.parallelism)

    def parts(self):
        """The scheduler and the cluster. What concerns both is a rule below."""
        return Parts(job=self.scheduler(), cluster=self.make_cluster()).block(
            "job.request", "job.finish", "cluster.schedule", "cluster.finish", "cluster.register"
        )

    def make_cluster(self) -> Slots:
        """The cluster, in which every task may be queued."""
        tasks = " ".join("Q" for _ in self.tasks)
        return Slots.build(self.cluster_variant, tasks=tasks, instances=self.instances, slots=self.slots, deaths=0)

    @action(i="instances", fairness=WEAK)
    def register(self, s, i):
        """An instance registers."""
        self.cluster.register(s.cluster, i)

    @action(t="tasks", fairness=WEAK)
    def request(self, s, t):
        """The scheduler requests a slot for a task."""
        require(self.is_admitted(s, t))
        self.job.request(s.job, t)
        self.cluster.schedule(s.cluster, self.thread[t])

    def is_admitted(self, s, t):
        """Whether all slots requested for other regions have been granted, and no other region is being requested."""
        return all(
            r == self.region_of[t] or (not self.job.begun(s.job, r) and not self.is_waiting(s, r)) for r in self.regions
        )

    def is_waiting(self, s, r):
        """Whether a task of a region waits for its slot."""
        return any(s.cluster.at[self.thread[t]] in ("FIND", "ALLOCATE", "DECIDE", "QUEUED") for t in self.regions[r])

    @action(t="tasks", fairness=WEAK)
    def finish(self, s, t):
        """A task finishes: all tasks of its region have started, and its inputs from other regions have been produced."""
        require(all(self.has_slot(s, u) for u in self.regions[self.region_of[t]]))
        self.job.finish(s.job, t)
        self.cluster.finish(s.cluster, self.thread[t])

    def has_slot(self, s, t):
        """Whether a task has had its slot."""
        return s.cluster.at[self.thread[t]] in ("RUNNING", "RETURN", "FINISHED")

    def is_partial(self, s, r):
        """Whether a region holds a slot while a task of it has none."""
        have = [self.has_slot(s, t) for t in self.regions[r]]
        return any(have) and not all(have)

    @terminal
    def over(self, s):
        """All tasks have finished and have returned their slots."""
        return self.job.over(s.job) and all(at == "FINISHED" for at in s.cluster.at)


class OneByOne(RegionSlots, variant="one-by-one"):
    """The tasks of all regions that can be scheduled are requested one by one, in any order."""

    def is_admitted(self, s, t):
        """Always."""
        return True


class LazyConsumers(OneByOne, variant="consumers-later"):
    """The slot of a consumer is requested when its producer runs: lazy scheduling from the sources."""

    def is_admitted(self, s, t):
        """Whether the producers of its inputs run."""
        producers = [a for a, z in self.job.channels.values() if z == t]
        return all(self.has_slot(s, producer) for producer in producers)


class Eager(RegionSlots, variant="eager"):
    """All slots are requested at once, also those of tasks whose blocking inputs have not been produced."""

    topology: str = "pair"
    instances: int = 1

    def request(self, s, t):
        """The inputs do not matter."""
        require(t not in s.job.requested)
        s.job.requested.add(t)
        self.cluster.schedule(s.cluster, self.thread[t])


class Unmerged(RegionSlots, variant="merge-within-logical-region-only"):
    """Regions that depend on each other are merged inside one logical region only, as in Flink 2.3."""

    topology: str = "cyclic-detour"
    instances: int = 3
    scheduler_variant = "merge-within-logical-region-only"


class AnnouncementTaken(RegionSlots, variant="literal"):
    """A call of the scheduler takes the announcements of slots although a task is queued (Flink 1.0 to 1.4)."""

    cluster_variant = "literal"


class SynchronousAnnouncement(RegionSlots, variant="synchronous-announcement"):
    """A returned slot is announced with its locks held."""

    cluster_variant = "synchronous-announcement"
