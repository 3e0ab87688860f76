"""Failover by pipelined regions of a job with co-location constraints.

FLIP-1, phase 2: "jobs with colocation constraints are also not eligible" for region failover, without a reason. Tasks
with such a constraint must be on one TaskExecutor. If they are in different regions, one may restart while another
still runs, so the question is where the new attempt goes. Here it goes beside a task of its constraint that is at work,
else anywhere, as in the allocation of slots (`slots`). Flink 1.9 to 1.12 makes one region of the whole job instead
(`RestartPipelinedRegionFailoverStrategy`, `PipelinedRegionComputeUtil`).
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Range, State, action, choose, require
from streamproof_models.failover.machine import Failover
from streamproof_models.failover.regions import components_of_dependencies, pipelined_regions


class CoLocation(Failover):
    """Failover of one job of whose vertices some are co-located: subtask i of each of them in one place."""

    name = "co_location"

    topology: str = "disjoint"
    losses: int = 0
    together: str = "A,C"
    """The co-located vertices."""
    executors: int = 2
    """Number of TaskExecutors."""
    slots: int = 2
    """Slots of a TaskExecutor."""
    executor_losses: int = 1
    """Number of TaskExecutors that may be lost."""

    limits = {"executors": (1, None), "slots": (1, None), "executor_losses": (0, None)}
    sizes = {
        "small": {},
        "medium": {"failures": 2, "executors": 3},
        "large": {"topology": "diamond", "together": "C,D", "failures": 2, "losses": 2, "executors": 3},
    }

    def setup(self):
        """The tasks of each constraint. Raises `ValueError` for a vertex that the job does not have."""
        graph = self.job_graph()
        vertices = tuple(name.strip() for name in self.together.split(","))
        if missing := set(vertices) - {v.name for v in graph.vertices}:
            raise ValueError(f"together names {min(missing)!r}, which is no vertex of the job")
        names = [(v.name, i, v.parallelism) for v in graph.vertices if v.name in vertices for i in range(v.parallelism)]
        self.constraints = {i: tuple(self.task_name(v, j, p) for v, j, p in names if i == j) for _, i, _ in names}
        """Number of a subtask -> the tasks of its co-location constraint."""
        super().setup()
        self.constraint_of = {t: i for i, tasks in self.constraints.items() for t in tasks}
        self.hosts = range(self.executors)
        if self.restarts is None:
            self.decisions += self.executor_losses * self.slots

    def state(self):
        """No TaskExecutor is lost; where no task has been is said to be the first one."""
        return State(
            **dict(super().state().items()),
            host=Array(self.tasks, Range(0, self.executors - 1)),  # of the present attempt, from SCHEDULED on
            lost=Array(self.hosts, Bool()),
        )

    def is_placed(self, s, t):
        """Whether the present attempt of `t` has a slot."""
        return s.status[t] in (*self.active, "CANCELING")

    @action(r="regions", fairness=WEAK)
    def schedule(self, s, r):
        """As in `failover`, with a slot for each task."""
        super().schedule(s, r)
        for t in self.regions[r]:
            host = choose(self.hosts)
            require(self.is_offered(s, host) and self.permits(s, t, host))
            s.host[t] = host
        for e in self.hosts:
            require(sum(self.is_placed(s, t) and s.host[t] == e for t in self.tasks) <= self.slots)

    def is_offered(self, s, host):
        """Whether the slots of a TaskExecutor can be used: it is not lost."""
        return not s.lost[host]

    def permits(self, s, t, host):
        """Whether the constraint of `t` permits a place: tasks of it in other regions that are at work are there."""
        others = self.constraints[self.constraint_of[t]] if t in self.constraint_of else ()
        return all(
            s.host[u] == host or not self.is_placed(s, u) for u in others if self.region_of[u] != self.region_of[t]
        ) and all(s.host[u] == host for u in self.placed_before(t))

    def placed_before(self, t):
        """The tasks of the constraint of `t` in its region that get their places before it."""
        if t not in self.constraint_of:
            return ()
        region = self.regions[self.region_of[t]]
        others = self.constraints[self.constraint_of[t]]
        return tuple(u for u in region[: region.index(t)] if u in others)

    @action(e="hosts")
    def lose_executor(self, s, e):
        """A TaskExecutor is lost for good; another one is left."""
        require(s.job == "RUNNING" and not s.lost[e])
        require(sum(s.lost[o] for o in self.hosts) < min(self.executor_losses, self.executors - 1))
        s.lost[e] = True

    @action(t="tasks", fairness=WEAK)
    def fail_with_executor(self, s, t):
        """The JobMaster notices that the TaskExecutor of a task is lost and fails the task."""
        require(s.job == "RUNNING" and s.lost[s.host[t]] and s.status[t] in self.active)
        if s.decided < self.decisions:
            self.fail_over(s, t)
        else:
            s.status[t] = "FAILED"
            s.job = "FAILED"


class AnyPlace(CoLocation, variant="any-place"):
    """A restarted task goes anywhere: its constraint concerns the tasks that are scheduled with it."""

    def permits(self, s, t, host):
        """Only the tasks of the same region matter."""
        return all(s.host[u] == host for u in self.placed_before(t))


class LockedForever(CoLocation, variant="locked-forever"):
    """The first place of a constraint is its place until the job is over."""

    def state(self):
        """No constraint has a place."""
        return State(**dict(super().state().items()), locked=Array(list(self.constraints), Bool()))

    def schedule(self, s, r):
        """As in the machine; then the constraints have their places."""
        super().schedule(s, r)
        for t in self.regions[r]:
            if t in self.constraint_of:
                s.locked[self.constraint_of[t]] = True
                for u in self.constraints[self.constraint_of[t]]:
                    s.host[u] = s.host[t]

    def permits(self, s, t, host):
        """The place of the constraint, if it has one."""
        locked = t in self.constraint_of and s.locked[self.constraint_of[t]]
        return super().permits(s, t, host) and (not locked or s.host[t] == host)


class LockedToTheLost(LockedForever, variant="locked-to-the-lost"):
    """As `locked-forever`; whether the TaskExecutor is lost turns out when the task is deployed."""

    def is_offered(self, s, host):
        """Always."""
        return True


class OneRegion(CoLocation, variant="one-region"):
    """The job is one region: the whole job restarts (Flink 1.9 to 1.12)."""

    slots: int = 4

    def members_of_regions(self, topology):
        """All tasks."""
        return [range(len(topology.tasks))]


class ConstraintsInRegions(CoLocation, variant="constraints-in-regions"):
    """The tasks of a constraint are in one region, and regions that then wait for each other are merged."""

    slots: int = 4
    merge_cycles = True

    def members_of_regions(self, topology):
        """The pipelined regions, merged."""
        regions = pipelined_regions(topology, self.merging)
        number = {
            self.task_name(v, i, p): n for n, (v, i) in enumerate(topology.tasks) for p in (self.size(topology, v),)
        }
        region_of = list(regions.of_task)
        for tasks in self.constraints.values():
            joined = {region_of[number[t]] for t in tasks}
            region_of = [min(joined) if r in joined else r for r in region_of]
        if self.merge_cycles:
            merged = components_of_dependencies(region_of, len(regions.members), topology.connections)
            region_of = [merged[r] for r in region_of]
        return [[t for t, r in enumerate(region_of) if r == one] for one in dict.fromkeys(region_of)]

    def size(self, topology, vertex):
        """The parallelism of a vertex."""
        return next(v.parallelism for v in topology.graph.vertices if v.name == vertex)


class UnmergedConstraints(ConstraintsInRegions, variant="constraints-in-regions-unmerged"):
    """The tasks of a constraint are in one region, which may wait for itself through another one."""

    topology: str = "chain"
    merge_cycles = False
