"""What the scheduler of pipelined regions knows: states of tasks, and unfinished partitions by ConsumedPartitionGroup.

`RegionScheduling` adds to these rules deployments with shuffle descriptors, blob caches, releases, and failover. The variant
`flink` adds what the log of a JobManager shows, restarts in several steps; the machine that follows such logs is a subclass.
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Array, Enum, Range, State, action, require, terminal
from streamproof_models.regions.grouped_job import GroupedJob


class SchedulingCore(GroupedJob):
    """The scheduler of one batch job, without failures."""

    name = "region_core"
    statuses: ClassVar[tuple[str, ...]] = ("CREATED", "SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED")
    """States of a task."""

    def state(self):
        """Nothing is scheduled."""
        return State(
            status=Array(self.tasks, Enum(*self.statuses)),
            # Partitions of each group that its readers have to wait for.
            unfinished=Array(
                self.groups, Range(0, len(self.tasks)), init={g: len(self.producers[g]) for g in self.groups}
            ),
        )

    @action(r="regions", fairness=WEAK)
    def schedule(self, s, r):
        """The scheduler schedules a region when all partitions that it reads from other regions are finished."""
        require(all(s.status[t] == "CREATED" for t in self.regions[r]))
        require(self.eager or all(s.unfinished[g] == inside for g, inside in self.awaited[r]))
        for t in self.regions[r]:
            s.status[t] = "SCHEDULED"
            for g in self.written[t]:
                if g in self.early:
                    self.count_finished(s, g)

    @action(t="tasks", fairness=WEAK)
    def deploy(self, s, t):
        """A task is sent to a TaskExecutor."""
        require(s.status[t] == "SCHEDULED")
        s.status[t] = "DEPLOYING"

    @action(t="tasks", fairness=WEAK)
    def run(self, s, t):
        """A task runs."""
        require(s.status[t] == "DEPLOYING")
        self.before_run(s, t)
        s.status[t] = "RUNNING"

    def before_run(self, s, t):
        """What a task has to know before it runs: no matter of the scheduler."""

    @action(t="tasks", fairness=WEAK)
    def finish(self, s, t):
        """A task has finished, and its partitions."""
        require(s.status[t] == "RUNNING")
        self.before_finish(s, t)
        s.status[t] = "FINISHED"
        for g in self.written[t]:
            if g not in self.early:
                self.count_finished(s, g)

    def before_finish(self, s, t):
        """What a task has to read before it finishes: no matter of the scheduler."""

    def count_finished(self, s, g):
        """A partition of the group is finished."""
        s.unfinished[g] -= 1

    def reset(self, s, t):
        """A new attempt of a task: what the old one produced is void."""
        for g in self.written[t]:
            if self.is_there(s, t, g):
                self.count_unfinished(s, g)
        s.status[t] = "CREATED"

    def is_there(self, s, t, g):
        """Whether the partition of a task in a group can be read."""
        return s.status[t] != "CREATED" if g in self.early else s.status[t] == "FINISHED"

    def count_unfinished(self, s, g):
        """A partition of the group is no longer finished."""
        s.unfinished[g] += 1

    @terminal
    def over(self, s):
        """The job has finished."""
        return self.all_finished(s)

    def all_finished(self, s):
        """Whether all tasks have finished."""
        return all(x == "FINISHED" for x in s.status)
