"""Replays the claims of docs/flink-classes.md for one version of Flink.

    FLINK_DIST=flink-dist-VERSION.jar python adapters/flink-classes/claims.py families|rules|faults [NAME ...]

`families` drives each family of classes by its model: no difference. `rules` drives the rules that Flink does not have
(`other_rules.py`): each ends with the difference that the page explains. `faults` puts each fault between the
adapter and Flink's classes, and prints in how many scripts it is found. Ends with 161 if one of them is otherwise.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamproof.driving.choosing import Choices, Walking
from streamproof.driving.connection import adapter_source
from streamproof.driving.drive_coverage import DriveCoverage
from streamproof.driving.driver import Driver
from streamproof.driving.suite import MOST_STATES, suite_or_none
from streamproof.driving.testing import subject_of
from streamproof.selection import select

HERE = Path(__file__).parent
GRAPH = json.dumps(
    {
        "vertices": [["A", 2], ["B", 2], ["C", 2], ["D", 1]],
        "edges": [
            ["A", "B", "POINTWISE", "PIPELINED", "ab"],
            ["A", "C", "POINTWISE", "BLOCKING", "ac"],
            ["B", "D", "ALL_TO_ALL", "BLOCKING", "bd"],
            ["C", "D", "ALL_TO_ALL", "HYBRID_FULL", "cd"],
        ],
    },
    separators=(",", ":"),
)
READ_ONCE_BY_C = GRAPH.replace("BLOCKING", "HYBRID_SELECTIVE", 1)
READ_ONCE_BY_D = GRAPH.replace("HYBRID_FULL", "HYBRID_SELECTIVE")
FAMILIES: dict[str, list[str]] = {
    "failover": ["failover", "--variant", "flink", "-p", f"topology={GRAPH}", "-p", "failures=3", "-p", "losses=3",
                 "-p", "restarts=4"],
    "regions": ["region_core", "--variant", "flink", "-p", f"topology={GRAPH}", "-p", "parallelism=1", "-p", "restarts=4"],
    "failover-read-once": ["failover", "--variant", "flink", "-p", f"topology={READ_ONCE_BY_C}", "-p", "failures=3",
                           "-p", "losses=3", "-p", "restarts=4"],
    "regions-read-once": ["region_core", "--variant", "flink", "-p", f"topology={READ_ONCE_BY_D}", "-p", "parallelism=1",
                          "-p", "restarts=4"],
    "buffers": ["buffer_shares", "--variant", "divided"],
    "credit": ["credit_channel", "-p", "produced=12", "-p", "floating=2", "-p", "threads=2"],
    "credit-rare": ["credit_channel", "--variant", "flink", "-p", "produced=10", "-p", "threads=2"],
    "credit-floating": ["credit_channel", "-p", "exclusive=0", "-p", "produced=12", "-p", "floating=3", "-p", "threads=2"],
    "slots": ["slot_pool", "-p", "allocations=2", "-p", "slots=2", "-p", "demand=2", "-p", "failures=3"],
    "checkpoints": ["checkpoints", "--variant", "stale-plan"],
    "partitions": ["partition_lifecycle"],
    "cluster-partitions": ["partition_lifecycle", "--variant", "persistent", "-p", "attempts=1"],
}  # fmt: skip
"""The models and parameters that drive each family."""
LARGE = {"failover", "slot_pool", "credit_channel"}
"""Models that have too many states for a suite, with these parameters."""
LONG = {"credit_channel"}
"""Models of which much happens only on long walks that rarely end a channel."""
FLOATING = {"release_floating_buffers", "on_empty_buffer", "receive_backlog_announcement", "announce_backlog"}
ELSEWHERE = {
    "credit": {*FLOATING, "poll_priority"},
    "credit-rare": FLOATING,
    "credit-floating": {"poll_priority", "request_buffer_after_release"},
}
"""Actions that happen only with the parameters of another family."""
MODELS = f"{HERE / 'other_rules.py'}:"
RULES: dict[str, list[str]] = {
    "StoredAgain": [*FAMILIES["failover"][3:]],
    "WithdrawnUnsent": [*FAMILIES["failover"][3:]],
    "ReportOvertaken": [*FAMILIES["slots"][1:]],
    "TicketVoided": [*FAMILIES["slots"][1:]],
    "FailureAborts": [*FAMILIES["checkpoints"][3:]],
    "CreatesWhileRunning": [*FAMILIES["checkpoints"][3:]],
    "ComparesAttempts": [*FAMILIES["checkpoints"][3:]],
    "NotifiesAlways": [*FAMILIES["slots"][1:]],
    "PriorityWhileBlocked": [*FAMILIES["credit-rare"][3:]],
    "SkipsWithoutCredit": [*FAMILIES["credit"][1:]],
    "RegisteredAfterRelease": [*FAMILIES["credit"][1:]],
    "CancelsBeforeDiscarded": [*FAMILIES["credit"][1:]],
    "ForgottenWhenReleased": ["-p", "failures=0"],
}
"""Rules that Flink does not have, with parameters."""
FAULTS: list[tuple[str, str]] = [
    ("stale:FailoverStrategy.getTasksNeedingRestart", "failover"),
    ("off-by-one:FailoverStrategy.getTasksNeedingRestart:-1", "failover"),
    ("negated:JobMasterPartitionTracker.isPartitionTracked", "failover"),
    ("lost:JobMasterPartitionTracker.startTrackingPartition", "failover"),
    ("lost:JobMasterPartitionTracker.stopTrackingAndReleasePartitions", "failover"),
    ("swapped:JobMasterPartitionTracker.stopTrackingPartitions", "failover"),
    ("lost:SchedulingStrategy.onExecutionStateChange", "regions"),
    ("lost:SchedulingStrategy.restartTasks", "regions"),
    ("swapped:SchedulingStrategy.restartTasks", "regions"),
    ("off-by-one:SchedulerOperations.allocateSlotsAndDeploy:0", "regions"),
    ("off-by-one:BufferPoolFactory.createBufferPool:0", "buffers"),
    ("lost:BufferPool.lazyDestroy", "buffers"),
    ("doubled:BufferPool.requestBuffer", "buffers"),
    ("lost:PartitionRequestClient.notifyCreditAvailable", "credit"),
    ("lost:PartitionRequestClient.resumeConsumption", "credit"),
    ("swapped:PartitionRequestClient.notifyCreditAvailable", "credit"),
    ("doubled:NetworkSequenceViewReader.addCredit", "credit"),
    ("lost:NetworkSequenceViewReader.addCredit", "credit"),
    ("off-by-one:NetworkSequenceViewReader.addCredit:0", "credit"),
    ("lost:BufferAvailabilityListener.notifyDataAvailable", "credit"),
    ("doubled:ResultSubpartitionView.getNextBuffer", "credit"),
    ("stale:ResultSubpartitionView.getAvailabilityAndBacklog", "credit"),
    ("lost:BufferListener.notifyBufferAvailable", "credit"),
    ("stale:BufferListener.notifyBufferAvailable", "credit"),
    ("off-by-one:MemorySegmentProvider.requestUnpooledMemorySegments:0", "credit"),
    ("lost:NetworkSequenceViewReader.resumeConsumption", "credit-floating"),
    ("lost:TimerService.unregisterTimeout", "slots"),
    ("negated:TaskSlotTable.isValidTimeout", "slots"),
    ("doubled:TaskSlotTable.allocateSlot", "slots"),
    ("lost:TaskSlotTable.markSlotActive", "slots"),
    ("swapped:SlotStatusSyncer.reportSlotStatus", "slots"),
    ("stale:DeclarativeSlotPool.offerSlots", "slots"),
    ("doubled:DeclarativeSlotPool.increaseResourceRequirementsBy", "slots"),
    ("off-by-one:CheckpointIDCounter.getAndIncrement:-1", "checkpoints"),
    ("lost:JobStatusListener.jobStatusChanges", "checkpoints"),
    ("swapped:JobStatusListener.jobStatusChanges", "checkpoints"),
    ("lost:CompletedCheckpointStore.addCheckpointAndSubsumeOldestOne", "checkpoints"),
    ("stale:CheckpointPlanCalculator.calculateCheckpointPlan", "checkpoints"),
    ("lost:TaskExecutorPartitionTracker.startTrackingPartition", "partitions"),
    ("lost:TaskExecutorPartitionTracker.stopTrackingAndReleaseJobPartitions", "partitions"),
    ("off-by-one:TaskExecutorPartitionTracker.stopTrackingAndReleaseJobPartitions:0", "partitions"),
    ("swapped:TaskExecutorPartitionTracker.stopTrackingAndReleaseJobPartitionsFor", "partitions"),
    ("lost:JobMasterPartitionTracker.stopTrackingPartitionsFor", "partitions"),
    ("lost:TaskExecutorPartitionTracker.promoteJobPartitions", "cluster-partitions"),
    ("stale:TaskExecutorPartitionTracker.createClusterPartitionReport", "cluster-partitions"),
    ("lost:ResourceManagerPartitionTracker.processTaskExecutorShutdown", "cluster-partitions"),
]
"""Each fault (`Fault.java`), and the family whose classes it concerns."""
UNOBSERVABLE = {"doubled:TaskSlotTable.allocateSlot"}
"""Calls that Flink makes idempotent."""


WALKS, STEPS = 200, 60


@dataclass
class Found:
    """What a drive has found: the difference in a sentence, or None; the actions that never happened."""

    difference: str | None
    coverage: DriveCoverage
    never: Sequence[str]

    def __str__(self) -> str:
        c = self.coverage
        compared = f"{c.values:,} values, {c.refusals:,} refusals"
        return f"{c.scripts} scripts, {c.calls:,} calls, {len(c.states):,} states, {compared}"


class EvenWalking(Walking):
    """Each possible call is as likely as the others, so that failures are not all spent at the beginning."""

    def _drawn(self, names: Sequence[str], asked: Sequence[int], after: Mapping[str, int]) -> int:
        return self.random.randrange(len(names))


class LongWalking(EvenWalking):
    """Each call that changes something is as likely as the others, but what ends a channel is rare, and the task is slow."""

    weights = dict.fromkeys(("release_channel", "release_subpartition", "release_reader", "time_out"), 0.005) | {
        "add": 0.05
    }

    def _possible(self, following: Any, state: Any) -> Choices:
        if state not in self._choices:
            numbers, names, stays, asked = super()._possible(following, state)
            steps, instances = following.log.steps, self._instances
            kept = [k for k, at in enumerate(numbers) if steps.take(instances[at], state) != state]
            parts = (numbers, names, asked)
            numbers, names, asked = ([part[k] for k in kept] for part in parts)  # type: ignore[misc]
            self._choices[state] = numbers, names, stays, asked
        return self._choices[state]

    def _drawn(self, names: Sequence[str], asked: Sequence[int], after: Mapping[str, int]) -> int:
        weights = [self.weights.get(name, 1) for name in names]
        return self.random.choices(range(len(names)), weights)[0]


def drive(words: list[str], fault: str = "") -> Found:
    """Drives by a suite, if the state space is small, and random walks, until a difference, which is not shortened."""
    model, *options = words
    variant = None
    if options[:1] == ["--variant"]:
        variant, options = options[1], options[2:]
    subject = subject_of(select(model, variant, parameters=options[1::2]))
    source = adapter_source(f"{HERE / 'run.sh'} {fault}".strip(), 120)
    scripts = [] if subject.system.name in LARGE else suite_or_none(subject, MOST_STATES)
    with Driver(subject, source, 1) as driver:
        walks: list[Walking] = [Walking(driver, STEPS), EvenWalking(driver, STEPS)]
        if subject.system.name in LONG:
            walks = [*[LongWalking(driver, 2 * STEPS)] * 7, walks[0]]
        every: Iterable[tuple[Any, Any]] = [
            *((s, None) for s in scripts),
            *((f"walk-{n}", walks[n % len(walks)]) for n in range(WALKS)),
        ]
        for script, chooser in every:
            ran = driver.run(script, chooser)
            if ran.message.startswith("reset failed"):
                sys.exit(ran.message)
            if ran.is_difference or ran.ended in ("undecided", "hang"):
                return Found(ran.message or ran.ended, driver.coverage, ())
        accepted = driver.coverage.accepted
        never = [a.name for a in subject.system.actions if not accepted[a.name] and a.name not in driver.absent]
        return Found(None, driver.coverage, never)


def families(names: Iterable[str]) -> bool:
    """Drives families; whether none differs, and each action happened."""
    good = True
    for name in names:
        found = drive(FAMILIES[name])
        missing = [action for action in found.never if action not in ELSEWHERE.get(name, ())]
        good &= found.difference is None and not missing
        never = f"; never happened: {', '.join(missing)}" if missing else ""
        print(f"{name}: {found.difference or 'no difference'}, {found}{never}", flush=True)
    return good


def rules(names: Iterable[str]) -> bool:
    """Drives rules that Flink does not have; whether each differs."""
    good = True
    for name in names:
        found = drive([MODELS + name, *RULES[name]])
        good &= found.difference is not None
        print(f"{name}, in script {found.coverage.scripts}: {found.difference}", flush=True)
    return good


def faults(names: Iterable[str]) -> bool:
    """Drives with faults; whether each is found that can be observed."""
    good = True
    for fault, family in FAULTS:
        if fault in names:
            found = drive(FAMILIES[family], fault)
            good &= (found.difference is None) == (fault in UNOBSERVABLE)
            print(f"| `{fault}` | {family} | {found.coverage.scripts} | {found.difference} |", flush=True)
    return good


if __name__ == "__main__":
    known = {"families": (families, FAMILIES), "rules": (rules, RULES), "faults": (faults, dict(FAULTS))}
    if len(sys.argv) < 2 or sys.argv[1] not in known:
        sys.exit(__doc__)
    check, everything = known[sys.argv[1]]
    sys.exit(0 if check(sys.argv[2:] or list(everything)) else 161)
