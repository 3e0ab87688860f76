"""Failure budgets of a job (FLIP-1, phase 1): how often each operator may fail, and all of them together.

An operator is charged for a failure of its own: of one of its subtasks, or of the TaskExecutor or the slot of one. It is
charged neither for an input that is missing nor for the restart of another operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

PER_TASK, IN_ALL = "max_failures_per_task", "max_failures"


@dataclass(frozen=True, slots=True)
class FailureBudget:
    """Failures that a job survives; None: no limit."""

    per_task: int | None = None
    in_all: int | None = None

    def record(self) -> dict[str, int]:
        """The limits, for the log."""
        return {name: n for name, n in ((PER_TASK, self.per_task), (IN_ALL, self.in_all)) if n is not None}


class FailureCounts:
    """What has been charged since a JobMaster began the job."""

    def __init__(self, budget: FailureBudget) -> None:
        self.budget = budget
        self._charged = Counter[str]()

    def exceeded(self, task: str, missing: str) -> dict[str, Any]:
        """Which limit the failure of an operator exceeds, its count and the limit, for the log; nothing if none."""
        if not self.counts(missing):
            return {}
        for name, limit in self.budget.record().items():
            count = 1 + (self._charged[task] if name == PER_TASK else self._charged.total())
            if count > limit:
                return {"budget": name, "count": count, "limit": limit}
        return {}

    def failed(self, task: str, missing: str) -> None:
        """A failure within the budget."""
        self._charged[task] += self.counts(missing)

    def counts(self, missing: str) -> bool:
        """Whether a failure is one of the operator's own."""
        return not missing

    def restarted(self, tasks: Iterable[str]) -> None:
        """New attempts of operators: they are charged for nothing."""

    def charge(self, tasks: Iterable[str]) -> None:
        """A failure is charged to each of these."""
        self._charged.update(tasks)

    def forget(self, tasks: Iterable[str]) -> None:
        """Nothing has been charged to these."""
        for task in tasks:
            del self._charged[task]


def about(task: str, exceeded: dict[str, Any]) -> str:
    """The reason for the failure of a job."""
    count, limit = exceeded["count"], exceeded["limit"]
    if exceeded["budget"] == PER_TASK:
        return f"{task} has failed {_times(count)}; its budget is {_times(limit)} ({PER_TASK})"
    return f"{task} has failed, and tasks have failed {_times(count)} in all; the budget is {_times(limit)} ({IN_ALL})"


def _times(number: int) -> str:
    return f"{number} time{'' if number == 1 else 's'}"
