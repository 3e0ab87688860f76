"""The scheduling of one recorded job, region by region, as the JobManager's log shows it.

`regions` has descriptors and blobs, which no log has. So this machine is a subclass of the variant `flink` of its core, whose
rules it takes with `super()`. It adds what a log shows: one line for each task of a region that is scheduled, lines of
deployment in one step, and restart decisions with a number of tasks. `tests/conformance/test_recorded_regions.py` compares
each of its steps with those of the variant, and shows which of its rules logs need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from streamproof import Array, Bool, Enum, Option, Range, State, action, require
from streamproof.conformance import Rules
from streamproof_models.failover.graph import JobGraph
from streamproof_models.failover.regions import pipelined_regions
from streamproof_models.failover.topology import Topology
from streamproof_models.regions.variants import StepwiseRestart
from streamproof_specs.failover.flink.recorded_machine import task_name


@dataclass(frozen=True, slots=True)
class JobRegions:
    """The regions of a job with Flink's merging, and the groups of partitions that they read from each other."""

    tasks: tuple[str, ...]
    """In topological order."""
    regions: Mapping[str, tuple[str, ...]]
    """Region -> its tasks; in the order of their first tasks, which is the order of scheduling."""
    region_of: Mapping[str, str]
    producers: Mapping[str, tuple[str, ...]]
    """Group that another region reads -> the producers of its partitions."""
    early: frozenset[str]
    """Groups that are read as soon as their producers are scheduled."""
    inputs: Mapping[str, tuple[tuple[str, int], ...]]
    """Region -> the groups that it reads from other regions, each with the number of its producers in the region."""
    readers: Mapping[str, tuple[str, ...]]
    """Group -> the regions that read it from another one."""
    outputs: Mapping[str, tuple[str, ...]]
    """Task -> the groups with a partition of it."""

    @classmethod
    def of(cls, graph: JobGraph) -> JobRegions:
        """In time linear in tasks and groups."""
        topology = Topology(graph)
        sizes = {v.name: v.parallelism for v in graph.vertices}
        tasks = tuple(task_name(v, i, sizes[v]) for v, i in topology.tasks)
        division = pipelined_regions(topology, StepwiseRestart.merging)
        names = [tasks[members[0]] for members in division.members]
        producers: dict[str, tuple[str, ...]] = {}
        readers: dict[str, tuple[str, ...]] = {}
        inputs: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
        outputs: dict[str, list[str]] = {task: [] for task in tasks}
        early = set[str]()
        for at, connection in enumerate(topology.connections):
            for number, (making, reading) in enumerate(connection.groups()):
                made_by = [division.of_task[p] for p in making]
                across = [r for r in dict.fromkeys(division.of_task[c] for c in reading) if {r} != set(made_by)]
                if not across:
                    continue
                group = f"{at}/{number}"
                producers[group] = tuple(tasks[p] for p in making)
                readers[group] = tuple(names[r] for r in across)
                for r in across:
                    inputs[names[r]].append((group, made_by.count(r)))
                for p in making:
                    outputs[tasks[p]].append(group)
                if connection.edge.exchange.hybrid:
                    early.add(group)
        return cls(
            tasks,
            {name: tuple(tasks[t] for t in members) for name, members in zip(names, division.members, strict=True)},
            {tasks[t]: names[r] for t, r in enumerate(division.of_task)},
            producers,
            frozenset(early),
            {name: tuple(read) for name, read in inputs.items()},
            readers,
            {task: tuple(groups) for task, groups in outputs.items()},
        )


class RecordedRegions(StepwiseRestart):
    """The scheduler of one job: the variant `flink` of the core of `regions`, with what only a log has.

    History: numbers of attempts, lines that are still to come, and restarts that were announced. Guards: what one step of the
    JobMaster's main thread has begun, its next lines end.
    """

    name = "regions"
    attempts: int = 0
    """Largest number of an attempt."""
    ordered: bool = False
    """Whether regions that are scheduled together, and their tasks, are in topological order."""

    def __init__(self, job: JobRegions, **given: Any) -> None:
        self._job = job
        super().__init__(**given)

    def setup(self):
        """The structure of the recorded job, in time linear in tasks and groups, and domains of actions."""
        job = self._job
        self.tasks, self.regions, self.region_of = job.tasks, dict(job.regions), dict(job.region_of)
        self.producers = dict(job.producers) or {"none": ()}
        self.groups = list(self.producers)
        self.awaited, self.written, self.early = dict(job.inputs), dict(job.outputs), set(job.early)
        self.numbers = range(self.attempts + 1)
        self.counts = range(self.restarts + 1)
        self.place = {r: at for at, r in enumerate(self.regions)}
        self.position = {t: at for tasks in self.regions.values() for at, t in enumerate(tasks)}

    def state(self):
        """Nothing is scheduled."""
        most = len(self.tasks)
        return State(
            **dict(super().state().items()),
            attempt=Array(self.tasks, Range(0, self.attempts)),
            unseen=Array(
                self.tasks, Bool()
            ),  # scheduled; the line "switched from CREATED to SCHEDULED" is still to come
            region=Option(Enum(*self.regions)),  # that is being scheduled, or deployed
            chosen=Range(0, most),  # its tasks whose line is still to come
            deploying=Range(0, most),  # its tasks that are deployed next
            after=Range(0, len(self.regions)),  # regions before this one were scheduled earlier in the same step
            decided=Bool(),  # a restart was decided
            whole=Bool(),  # a restart of the whole job was decided
            left=Range(0, self.restarts),  # tasks that decisions have announced, and that were not scheduled again
        )

    def calm(self, s):
        """No step of the scheduler is half done."""
        return s.chosen == 0 and s.deploying == 0

    # --- scheduling

    @action(r="regions")
    def schedule(self, s, r):
        """`PipelinedRegionSchedulingStrategy.scheduleRegion`: the inputs of the region are there."""
        require(self.calm(s))
        require(not self.ordered or s.decided or self.place[r] >= s.after)
        super().schedule(s, r)
        for t in self.regions[r]:
            s.unseen[t] = True
        s.region = r
        s.chosen = len(self.regions[r])
        s.after = self.place[r] + 1

    @action(t="tasks")
    def show(self, s, t):
        """The line of one task of the region."""
        require(s.unseen[t])
        require(not self.ordered or len(self.regions[self.region_of[t]]) - s.chosen == self.position[t])
        s.unseen[t] = False
        s.chosen -= 1

    @action(r="regions")
    def assign(self, s, r):
        """All slots of a region are assigned (`DefaultExecutionDeployer.waitForAllSlotsAndDeploy`)."""
        require(self.calm(s))
        s.region = r
        s.deploying = sum(int(s.status[t] == "SCHEDULED") for t in self.regions[r])

    @action(t="tasks")
    def deploy(self, s, t):
        """A task of the region is deployed, in the same step as the others."""
        require(s.chosen == 0 and s.deploying > 0 and s.region == self.region_of[t])
        super().deploy(s, t)
        s.deploying -= 1

    # --- reports

    @action(t="tasks")
    def initialize(self, s, t):
        """A task is INITIALIZING."""
        require(s.status[t] == "DEPLOYING")
        self.pause(s)

    @action(t="tasks")
    def run(self, s, t):
        """A task is RUNNING."""
        super().run(s, t)
        self.pause(s)

    @action(t="tasks")
    def finish(self, s, t):
        """A task is FINISHED, and its partitions."""
        super().finish(s, t)
        self.pause(s)

    def pause(self, s):
        """The JobMaster's main thread is in another step."""
        require(self.calm(s))
        s.after = 0

    @action(t="tasks")
    def cancel(self, s, t):
        """A task is cancelled; the region that is being deployed may be, too."""
        require(s.chosen == 0 and s.status[t] not in ("FINISHED", "ENDED"))
        s.deploying = 0
        s.after = 0

    @action(t="tasks")
    def stop(self, s, t):
        """A task is FAILED or CANCELED, perhaps before it was scheduled; its deployment may fail in its step."""
        require(s.chosen == 0)
        if s.status[t] != "CREATED":
            super().stop(s, t)
        s.deploying = 0
        s.after = 0

    # --- restarts

    @action(n="counts", whole=(False, True))
    def decide(self, s, n, whole):
        """A decision to restart so many tasks; `whole`: all tasks of the job, those that were never scheduled, too."""
        require(s.chosen == 0 and s.left + n <= self.restarts)
        s.whole = s.whole or whole
        s.left += n
        s.decided = True

    @action(t="tasks", n="numbers")
    def renew(self, s, t, n):  # type: ignore[override]
        """A new attempt of a task that has ended, or was never scheduled, by a restart decision."""
        require(n > s.attempt[t])
        require(s.left > 0)
        s.left -= 1
        s.attempt[t] = n
        if s.status[t] == "CREATED":
            require(s.whole)
        else:
            super().renew(s, t)

    # --- the end

    @action
    def complete(self, s):
        """The job is FINISHED."""
        require(self.all_finished(s))


@lru_cache(maxsize=16)
def region_rules(graph: JobGraph, attempts: int, announced: int, ordered: bool) -> tuple[JobRegions, Rules]:
    """The machine of a job. Jobs with the same graph and numbers share it."""
    job = JobRegions.of(graph)
    return job, Rules(RecordedRegions(job, attempts=attempts, restarts=announced, ordered=ordered))
