"""Variants of the stop of unbounded sources, to be switched on for demonstration; they change nothing of other jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streamproof_runtime.jobmaster.jobmaster import JobMaster
from streamproof_runtime.jobmaster.region_runs import Run
from streamproof_runtime.subtasks.subtask import Log, TaskPlan
from streamproof_runtime.subtasks.termination import BatonSubtask

FEW = 3
"""Records after which a source ends that nobody has stopped."""


class EndsUnasked(BatonSubtask):
    """An unbounded source ends before it is stopped."""

    def __init__(
        self, plan: TaskPlan, log: Log, choose: Callable[[int], int], records: int = 1, timeout: float | None = None
    ) -> None:
        super().__init__(plan, log, choose, records, timeout)
        if plan.operator.is_unbounded:
            self.stop(FEW)


class StopPositionForgotten(JobMaster):
    """A new attempt of a source that has been stopped ends where it is when it is stopped again."""

    def stops(self, run: Run) -> Mapping[str, int]:
        """Nowhere."""
        return {}


class StopForgotten(JobMaster):
    """A new attempt of a source is not stopped."""

    def stops(self, run: Run) -> Mapping[str, int]:
        """Nowhere."""
        self.is_stopping = False
        return {}


SUBTASKS: dict[str, type[BatonSubtask]] = {"ends-unasked": EndsUnasked}
MASTERS: dict[str, type[JobMaster]] = {
    "stop-position-forgotten": StopPositionForgotten,
    "stop-forgotten": StopForgotten,
}
"""Variants of subtasks, and of the JobMaster, by name."""
