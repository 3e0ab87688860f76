"""Pipelined regions that need slots: the scheduler of `regions`, and the slots of `slots`, together.

`regions` schedules a pipelined region when its inputs from other regions are finished, and deploys its tasks with shuffle
descriptors. `slots` has the instances, their locks, and the queue of tasks for which no slot is free. Here the scheduler
requests a slot for each task of a scheduled region, and a task is deployed to the instance of its slot when it has one. The
task returns the slot when it has finished.

Each part alone makes progress: a queued task of `slots` gets each slot that becomes free, and a job without a limit of slots
is never stuck. Here a region is scheduled when all slots requested before have been granted. So the requests of a region are
not mixed with those of another in the queue.

Abstractions: those of both machines; one task a slot; no failures of tasks, and no deaths of instances.
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Model, Parts, action, require, terminal
from streamproof_models.regions import variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.regions.machine import RegionScheduling
from streamproof_models.slots.machine import Slots


class RegionSlots(Model):
    """Scheduling of pipelined regions with a limited number of slots."""

    name = "region_slots"
    job: ClassVar[RegionScheduling]
    """The scheduler, its deployments, and the blob caches of the instances."""
    cluster: ClassVar[Slots]
    """Instances, slots, locks and queues."""

    topology: str = "disjoint"
    """Job graph: a name of `streamproof_models.failover.named_job_graphs.JOB_GRAPHS`."""
    parallelism: int = 1
    """Tasks per vertex of the job graph."""
    instances: int = 2
    """Number of instances; the largest region must fit."""
    slots: int = 1
    """Number of slots per instance."""
    limits = {"parallelism": (1, None), "instances": (1, None), "slots": (1, None)}
    sizes = {
        "small": {},
        "medium": {"topology": "mixed", "parallelism": 2, "instances": 3},
        "large": {"topology": "mixed", "parallelism": 2, "instances": 4},
    }
    instance_bounds = ("instances",)
    scheduler_variant: ClassVar[str | None] = None
    """The rules of the scheduler."""
    cluster_variant: ClassVar[str | None] = None
    """The rules of the cluster."""
    is_eager: ClassVar[bool] = False
    """Whether all regions are scheduled at once."""

    def setup(self):
        """The tasks and regions by name; the tasks are the threads of `slots`, in this order."""
        job = self.scheduler()
        self.tasks, self.regions, self.region_of, self.upstream = job.tasks, job.regions, job.region_of, job.upstream
        self.channels = list(job.channels.values())
        self.thread = {t: i for i, t in enumerate(self.tasks)}
        self.check_room()

    def check_room(self):
        """A region that has more tasks than there are slots is never scheduled."""
        most = max(len(tasks) for tasks in self.regions.values())
        if most > self.instances * self.slots:
            raise ValueError(f"a region of {most} tasks needs {most} slots; there are {self.instances * self.slots}")

    def scheduler(self) -> RegionScheduling:
        """The scheduler; each instance has a blob cache."""
        return RegionScheduling.build(
            self.scheduler_variant,
            topology=self.topology,
            parallelism=self.parallelism,
            executors=self.instances,
            eager=self.is_eager,
            failures=0,
        )

    def parts(self):
        """The scheduler and the cluster. What concerns both is a rule below."""
        return Parts(job=self.scheduler(), cluster=self.make_cluster()).block(
            *("job.schedule", "job.deploy", "job.finish", "job.fail", "cluster.schedule", "cluster.finish"),
            "cluster.register",
        )

    def make_cluster(self) -> Slots:
        """The cluster, in which every task may be queued."""
        tasks = " ".join(("Q",) * len(self.tasks))
        return Slots.build(self.cluster_variant, tasks=tasks, instances=self.instances, slots=self.slots, deaths=0)

    @action(i="instances", fairness=WEAK)
    def register(self, s, i):
        """An instance registers."""
        self.cluster.register(s.cluster, i)

    @action(r="regions", fairness=WEAK)
    def schedule(self, s, r):
        """The scheduler schedules a region."""
        require(self.is_admitted(s))
        self.job.schedule(s.job, r)

    def is_admitted(self, s):
        """Whether all slots of the regions scheduled before have been granted."""
        return not any(self.is_waiting(s, t) for t in self.tasks)

    def is_waiting(self, s, t):
        """Whether a task is scheduled and has no slot."""
        return s.job.status[t] == "SCHEDULED" and not self.has_slot(s, t)

    @action(t="tasks", fairness=WEAK)
    def request(self, s, t):
        """The scheduler requests a slot for a task of a scheduled region."""
        require(s.job.status[t] == "SCHEDULED" and self.is_requested(s, t))
        self.cluster.schedule(s.cluster, self.thread[t])

    def is_requested(self, s, t):
        """Whether nothing else delays the request: never."""
        return True

    @action(t="tasks", i="instances", fairness=WEAK)
    def deploy(self, s, t, i):
        """A task is deployed to the instance of its slot."""
        slot = s.cluster.slot[self.thread[t]]
        require(s.cluster.at[self.thread[t]] == "RUNNING" and any(slot == x for x in self.cluster.slots_of(i)))
        self.job.deploy(s.job, t, i)

    @action(t="tasks", fairness=WEAK)
    def finish(self, s, t):
        """A task finishes, and begins to return its slot."""
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
    """All regions whose inputs are finished are scheduled; the requests of their tasks reach the queue in any order."""

    def is_admitted(self, s):
        """Always."""
        return True


class LazyConsumers(OneByOne, variant="consumers-later"):
    """The slot of a consumer is requested when its producer has one: lazy scheduling from the sources."""

    def is_requested(self, s, t):
        """Whether the producers of its inputs have had their slots."""
        return all(self.has_slot(s, producer) for producer, consumer in self.channels if consumer == t)


class Eager(RegionSlots, variant="eager"):
    """Regions are scheduled although their blocking inputs have not been produced."""

    topology: str = "pair"
    instances: int = 1
    is_eager = True


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
