"""Failure budgets of failover by tasks: when a job is given up.

FLIP-1, phase 1: if a failure restarts only some tasks, the number of restarts "needs to be interpreted differently", as
*maximum-per-task-failures* or *maximum-total-task-failures*. The proposal does not say which failures count. Here each
task may fail of itself `per_task` times, and neither a lost input nor the restart of another task counts. Each of the
other readings is a variant. In `failover` the number of restarts is a total (`restarts`).
"""

from __future__ import annotations

from streamproof import WEAK, Array, Range, State, action, require
from streamproof_models.failover.machine import Failover


class FailureBudgets(Failover):
    """Failover of one job that is given up when a task has failed too often."""

    name = "failure_budgets"

    failures: int = 2
    per_task: int = 1
    """Number of failures of one task that the job survives."""

    limits = {"per_task": (0, None)}
    sizes = {"small": {}, "medium": {"failures": 3, "losses": 2}, "large": {"failures": 3, "losses": 3, "per_task": 2}}

    def state(self):
        """No task has failed."""
        return State(
            **dict(super().state().items()),
            charged=Array(self.tasks, Range(0, self.most)),  # what counts against the budget
            failed=Array(self.tasks, Range(0, self.failures)),  # for properties: how often it failed of itself
        )

    @property
    def most(self):
        """Bound of what is charged to a task."""
        return self.per_task + 1

    @action(t="tasks")
    def fail(self, s, t):
        """A task fails of itself, within its budget."""
        require(self.permits(s, t))
        super().fail(s, t)
        s.failed[t] += 1
        self.charge(s, t)

    def miss(self, s, t, p):
        """As in `failover`."""
        require(self.permits_miss(s, t))
        super().miss(s, t, p)

    @action(t="tasks")
    def give_up(self, s, t):
        """A task fails of itself once more than its budget permits: the job fails."""
        require(s.job == "RUNNING" and s.status[t] in self.active and not self.permits(s, t))
        self.spend_failure(s)
        s.failed[t] += 1
        s.status[t] = "FAILED"
        s.job = "FAILED"

    def permits(self, s, t):
        """Whether the budget permits another failure of `t`."""
        return s.charged[t] < self.per_task

    def permits_miss(self, s, t):
        """Whether the budget permits that `t` fails because an input is missing: that is no failure of its own."""
        return True

    def charge(self, s, t):
        """A failure of `t` is charged to it."""
        s.charged[t] += 1


class MissingInputsUnhandled(FailureBudgets, variant="missing-inputs-unhandled"):
    """A task that finds an input missing is charged for it; when its budget is spent, nobody decides anything."""

    def miss(self, s, t, p):
        """As in the machine, charged."""
        super().miss(s, t, p)
        self.charge(s, t)

    def permits_miss(self, s, t):
        """As for any failure."""
        return self.permits(s, t)


class MissingInputsCount(MissingInputsUnhandled, variant="missing-inputs-count"):
    """A task that finds an input missing has failed, and is charged for it."""

    @action(t="missable", p=lambda m, t: m.missable[t], fairness=WEAK)
    def miss_last(self, s, t, p):
        """A task finds an input missing once more than its budget permits: the job fails."""
        require(s.job == "RUNNING" and self.notices(s, t, p) and not self.permits(s, t))
        s.status[t] = "FAILED"
        s.job = "FAILED"


class RestartsCount(FailureBudgets, variant="restarts-count"):
    """Attempts are counted: a task is charged for each restart, whoever failed."""

    @property
    def most(self):
        """Each decision may restart the task."""
        return self.decisions

    def charge(self, s, t):
        """Nothing: the new attempt counts."""

    def reset(self, s, t):
        """As in the machine, charged."""
        super().reset(s, t)
        s.charged[t] += 1


class TotalFailures(FailureBudgets, variant="total-failures"):
    """The job survives a number of failures of its tasks together (`maximum-total-task-failures`)."""

    total: int = 1
    """Number of failures that the job survives."""

    limits = {"total": (0, None)}

    @property
    def most(self):
        """The total."""
        return self.total

    def permits(self, s, t):
        """Whether the total is not reached."""
        return sum(s.charged[u] for u in self.tasks) < self.total


class ForgottenByRestart(FailureBudgets, variant="forgotten-by-restart"):
    """The count of a task is a field of its attempt, and a new attempt begins with none."""

    def reset(self, s, t):
        """As in the machine; the new attempt has not failed."""
        super().reset(s, t)
        s.charged[t] = 0
