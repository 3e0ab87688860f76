"""Failover by regions at the JobMaster: what a failure restarts, and when it starts again.

The failure of a region is a *decision* to restart it, together with the producers of lost partitions that are needed and all
consumers of what is made again. When the regions of a decision have stopped they start again as new attempts, except those
that a newer decision has taken over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamproof_runtime import messages as m
from streamproof_runtime.jobmaster import failure_budgets
from streamproof_runtime.jobmaster.datasets import GONE, NONE, RELEASED, STORED, Dataset
from streamproof_runtime.jobmaster.failure_budgets import FailureCounts
from streamproof_runtime.jobmaster.master_host import Host, Timing
from streamproof_runtime.jobmaster.region_runs import CREATED, STOPPED, STOPPING, Decision, Run
from streamproof_runtime.jobmaster.region_scheduler import FAILED, RegionScheduler
from streamproof_runtime.jobmaster.regions import Region

USER_ERRORS = 3
"""Failures by an error of a user function until the job fails."""


class RegionFailover(RegionScheduler):
    """Restarts the regions of one job."""

    counts = FailureCounts
    restarts_readers = True
    """Whether the readers of what is made again restart."""

    def __init__(self, regions: Sequence[Region], host: Host, timing: Timing, first_attempt: int = 0) -> None:
        super().__init__(regions, host, timing, first_attempt)
        self.errors: list[str] = []
        self.failures = self.counts(timing.budget)

    def fail(self, run: Run, reason: str, missing: str = "", task: str = "") -> None:
        """An active region has failed, by one of its operators: decides what to restart, unless the restart strategy allows
        no more. Without a budget a job survives only some errors of user functions."""
        self.host.event("failed", {"reason": reason}, run.trace)
        is_taken = missing in run.region.takes
        if is_taken:  # nobody makes it again
            name, task, missing = missing.partition(">")[0], run.region.takes[missing], ""
            self.errors.append(f"cluster partition {name} is lost: {reason}; run the whole session again")
        if missing and self.datasets[missing].state == STORED:
            self.datasets[missing].state = GONE
            self.host.event("partition_lost", {"partition": missing})
        run.failed = run.region.reads[missing] if missing else task or run.region.operators[0]
        about = {"task": run.failed, **({"missing": missing} if missing else {})}
        limit, is_budgeted = self.timing.restarts, bool(self.timing.budget.record())
        exceeded = self.failures.exceeded(run.failed, missing)
        is_hopeless = is_taken or (len(self.errors) >= USER_ERRORS and not is_budgeted)
        if exceeded or is_hopeless or (limit is not None and self.decided >= limit):
            if exceeded:
                self.errors.append(f"{failure_budgets.about(run.failed, exceeded)}: {reason}")
            elif not is_hopeless:
                self.errors.append(f"no restart is left after {self.decided}: {reason}")
            self.status = FAILED
            for each in self.runs:
                self.blobs.release(each)
            self.host.event("job_failed", {**about, **exceeded})
            for each in self.runs:
                self.tell(each, (m.CANCEL, each.region.number, each.attempt))
                self.pool.unreserve(each.region.number)
            self.require_slots()
            return
        self.failures.failed(run.failed, missing)
        self._void(name for name, maker in run.region.writes.items() if maker == run.failed)
        chosen = [r for r in self.to_restart(run, missing) if r.status != CREATED]
        decision = self.decided
        self.decided += 1
        self.host.event("region_failed", {**about, "restarts": [t for r in chosen for t in r.region.operators]})
        self.pending[decision] = Decision(chosen, [r for r in chosen if r.is_active or r.status == STOPPING])
        for each in chosen:
            each.version = decision
            self.count_again(each)
        self.await_executors()
        self.host.call_later(self.timing.restart_delay, "restart", decision)
        for each in chosen:
            if each.is_active:
                self._stop(each)

    def to_restart(self, failed: Run, missing: str) -> list[Run]:
        """The region that has failed; producers of lost inputs of restarting regions; all consumers of restarting ones."""
        found = {failed.region.number}
        while True:
            more = {
                number
                for name, each in self.datasets.by_name.items()
                for number in self._caused(each, found, self.produced_again(name, missing))
            }
            if more <= found:
                return [run for run in self.runs if run.region.number in found]
            found |= more

    def produced_again(self, name: str, missing: str) -> bool:
        """Whether a dataset is made again if its reader restarts: it is void, released, or missing."""
        return name == missing or self.datasets[name].state in (NONE, RELEASED)

    def next_attempt(self, run: Run) -> int:
        """The number of the attempt after the current one."""
        return run.attempt + 1

    def count_again(self, run: Run) -> None:
        """What a region has stored is not finished any more."""
        self.datasets.count_again(run)

    def _caused(self, each: Dataset, found: set[int], is_lost: bool) -> Iterable[int]:
        if each.consumer is None:
            return
        producer, consumer = each.producer.region.number, each.consumer.region.number
        if consumer in found and is_lost:
            yield producer
        if producer in found and self.restarts_readers:
            yield consumer

    def _stop(self, run: Run) -> None:
        run.status, run.stopping = STOPPING, set(run.placement.values()) & self.executors.slots.keys()
        self.tell(run, (m.CANCEL, run.region.number, run.attempt))
        if not run.stopping:
            self._stopped(run)

    def stopped(self, run: Run, peer: str) -> None:
        """A TaskExecutor has stopped the subtasks of a region, or is lost."""
        run.stopping.discard(peer)
        if not run.stopping:
            self._stopped(run)

    def _stopped(self, run: Run) -> None:
        run.status = STOPPED
        self.host.event("region_canceled", {"tasks": [t for t in run.region.operators if t != run.failed]})
        self._void(run.region.writes)
        self.blobs.release(run)
        self.pool.unreserve(run.region.number)
        self.require_slots()
        for decision in self.pending.values():
            decision.awaiting = [each for each in decision.awaiting if each is not run]
        for number in list(self.pending):
            self.restart(number)

    def _void(self, names: Iterable[str]) -> None:
        for name in names:
            self.drop(name, NONE)

    def restart(self, number: int) -> None:
        """After its delay, and when all regions of a decision have stopped, those that are still its own start again."""
        decision = self.pending.get(number)
        if decision is None or not decision.is_due or decision.awaiting:
            return
        own = self.own(number, decision)
        del self.pending[number]
        self.host.event("restarted", {"decision": number, "tasks": [t for r in own for t in r.region.operators]})
        self.failures.restarted(t for r in own for t in r.region.operators)
        for run in own:
            run.status, run.attempt, run.finished, run.placement = CREATED, self.next_attempt(run), {}, {}
            self.count_again(run)
            self._void(run.region.writes)
        self.complete()
        self.require_slots()
        self.schedule()

    def own(self, number: int, decision: Decision) -> list[Run]:
        """The regions that no newer decision has taken over."""
        return [run for run in decision.runs if run.version == number]
