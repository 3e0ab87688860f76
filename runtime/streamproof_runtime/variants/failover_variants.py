"""Variants of failover and of region scheduling that omit or change one rule, to be switched on for demonstration, by the
names of the models."""

from __future__ import annotations

from collections.abc import Iterable

from streamproof_runtime.jobmaster.failure_budgets import FailureCounts
from streamproof_runtime.jobmaster.jobmaster import JobMaster
from streamproof_runtime.jobmaster.region_runs import Decision, Run


class RestartAll(JobMaster):
    """A failure restarts every region."""

    def to_restart(self, failed: Run, missing: str) -> list[Run]:
        """All."""
        return self.runs


class RestartsSiblings(JobMaster):
    """A failure restarts all pipelines of the operators of a region."""

    def to_restart(self, failed: Run, missing: str) -> list[Run]:
        """Those of the same operators, too."""
        found = super().to_restart(failed, missing)
        again = {o.part_of for run in found for o in run.region.graph.job.operators.values() if o.part_of}
        return [
            r for r in self.runs if r in found or any(o.part_of in again for o in r.region.graph.job.operators.values())
        ]


class RegionWithoutBacktracking(JobMaster):
    """The producer of a lost partition is not restarted: the reader misses it again."""

    def produced_again(self, name: str, missing: str) -> bool:
        """Never."""
        return False


class NoDownstreamRestart(JobMaster):
    """The readers of what is made again are not restarted."""

    restarts_readers = False


class NoVersioning(JobMaster):
    """A decision restarts also what a newer one has taken over."""

    def own(self, number: int, decision: Decision) -> list[Run]:
        """All."""
        return decision.runs


class NoTopologicalOrder(JobMaster):
    """Regions are scheduled before their inputs are there."""

    def is_ready(self, run: Run) -> bool:
        """Always."""
        return True


class AttemptReuse(JobMaster):
    """A new attempt has the number of the old one."""

    def next_attempt(self, run: Run) -> int:
        """The same."""
        return run.attempt


class CounterNotReset(JobMaster):
    """The partitions of a region that restarts still count as finished."""

    def count_again(self, run: Run) -> None:
        """They do not."""


class StaleCache(JobMaster):
    """The descriptor of a dataset that is made again is kept, and sent to its readers."""

    keeps_stale_descriptors = True


class MissingInputsCounted(FailureCounts):
    """An operator that misses an input is charged for it."""

    def counts(self, missing: str) -> bool:
        """Every failure."""
        return True


class RestartsCounted(FailureCounts):
    """An operator is charged for each new attempt, whoever failed."""

    def failed(self, task: str, missing: str) -> None:
        """Nothing: the new attempt counts."""

    def restarted(self, tasks: Iterable[str]) -> None:
        """Each."""
        self.charge(tasks)


class CountsForgotten(FailureCounts):
    """A new attempt of an operator has not failed."""

    def restarted(self, tasks: Iterable[str]) -> None:
        """Forgets each."""
        self.forget(tasks)


class MissingInputsCount(JobMaster):
    """A missing input is a failure of its reader."""

    counts = MissingInputsCounted


class RestartsCount(JobMaster):
    """The budget is one of attempts."""

    counts = RestartsCounted


class ForgottenByRestart(JobMaster):
    """The budget is one of each attempt."""

    counts = CountsForgotten


def _name(variant: type[JobMaster]) -> str:
    return "".join("-" + c.lower() if c.isupper() else c for c in variant.__name__).removeprefix("-")


MASTERS: dict[str, type[JobMaster]] = {
    _name(v): v
    for v in (
        *(RestartAll, RegionWithoutBacktracking, NoDownstreamRestart, NoVersioning, NoTopologicalOrder),
        *(AttemptReuse, CounterNotReset, StaleCache),
    )
}
"""All variants by name."""
BUDGETS: dict[str, type[JobMaster]] = {_name(v): v for v in (MissingInputsCount, RestartsCount, ForgottenByRestart)}
"""Variants of failure budgets: they change nothing of a job that has none."""
PIPELINES: dict[str, type[JobMaster]] = {_name(RestartsSiblings): RestartsSiblings}
"""Variants of regions of subtasks: they change nothing of a job whose regions consist of operators."""
