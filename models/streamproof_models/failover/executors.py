"""Failover of a job whose TaskExecutors can be lost, with the tasks that run and the partitions that are stored on them.

The JobMaster handles a loss in Flink's order: it fails the tasks of the TaskExecutor, and decides what to restart, before
it forgets the partitions. So the first decisions still consider those partitions available.
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Array, Enum, Range, State, action, require
from streamproof_models.failover.machine import Failover


class LostExecutors(Failover, variant="lost-executors"):
    """Whole TaskExecutors are lost instead of single partitions."""

    lost_singly: ClassVar[bool] = False
    losses: int = 0
    executors: int = 2
    """Number of TaskExecutors; tasks are placed on them round robin."""
    executor_losses: int = 1
    """Number of TaskExecutors that may be lost."""

    limits = {"executors": (1, None), "executor_losses": (0, None)}

    def setup(self):
        """Places the tasks. Each task of a lost TaskExecutor may be the cause of a restart."""
        super().setup()
        self.on = {t: at % self.executors for at, t in enumerate(self.tasks)}
        if self.restarts is None:
            self.decisions += self.executor_losses * -(-len(self.tasks) // self.executors)

    def state(self):
        """All TaskExecutors ALIVE."""
        return State(
            **dict(super().state().items()),
            executor=Array(self.executors, Enum("ALIVE", "LOST")),
            executor_losses_left=Range(0, self.executor_losses, init=self.executor_losses),
        )

    def schedule(self, s, r):
        """As in the machine, on TaskExecutors that the JobMaster has not lost."""
        require(all(s.executor[self.on[t]] == "ALIVE" for t in self.regions[r]))
        super().schedule(s, r)

    @action(e="executors")
    def lose_executor(self, s, e):
        """A TaskExecutor is lost with everything stored on it; the JobMaster has not noticed."""
        require(s.job == "RUNNING" and s.executor[e] == "ALIVE")
        require(s.executor_losses_left > 0)
        s.executor_losses_left -= 1
        s.executor[e] = "LOST"
        for p, producer in self.partitions.items():
            if self.on[producer] == e and s.partition[p] == "STORED":
                s.partition[p] = "GONE"

    @action(t="tasks", fairness=WEAK)
    def fail_with_executor(self, s, t):
        """The JobMaster notices that the TaskExecutor of a task is lost and fails the task."""
        require(s.job == "RUNNING" and s.executor[self.on[t]] == "LOST")
        require(s.status[t] in self.active)
        require(s.decided < self.decisions)
        self.fail_over(s, t)

    @action(e="executors", fairness=WEAK)
    def forget_executor(self, s, e):
        """With its tasks failed, the JobMaster forgets the partitions of the TaskExecutor; another takes its place."""
        here = [t for t in self.tasks if self.on[t] == e]
        require(s.job == "RUNNING" and s.executor[e] == "LOST")
        require(all(s.status[t] not in self.active for t in here))
        s.executor[e] = "ALIVE"
        for p, producer in self.partitions.items():
            if producer in here and s.partition[p] == "GONE":
                s.partition[p] = "NONE"
        for t in here:
            if s.status[t] == "CANCELING":
                self.end(s, t, "CANCELED")
