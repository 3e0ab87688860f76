"""The backtracking pseudo-code printed in FLIP-1 (phase 2), executed to the letter.

    failoverRegion(region):
        if not hasRegionBeenScheduled(region): return
        for partition in determineNeededResultPartitions(region):
            if not isPartitionStillAvailable(partition):
                failoverRegion(getProducerRegion(partition))
        reschedule(region)
        for consumer in getConsumersForRegion(region): failoverRegion(consumer)

Three of its helpers can be read in more than one way, and each way is a value of an enumeration below. A `Reading` is a
choice of all three. `execute` stops the recursion when a call is made in the very situation in which the same call is open:
as there are only finitely many situations, exactly if it would never end. `docs/protocols/failover.md` has the results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum
from itertools import product

from streamproof_models.failover.graph import Partition, Task
from streamproof_models.failover.regions import Regions


class Scheduled(Enum):
    """The value of `hasRegionBeenScheduled` for a region after `reschedule` was called for it."""

    STAYS = "stays-scheduled"
    """Still true: the region has been scheduled once, and rescheduling does not reset that."""
    RESETS = "is-reset"
    """False: its tasks go back to CREATED, to be scheduled when their inputs are there."""


class Availability(Enum):
    """The effect of `reschedule` on the results of `isPartitionStillAvailable`."""

    FIXED = "as-at-the-failure"
    """None: one failure is handled with the availability at its start."""
    RESTORED = "restored"
    """The region's partitions count as available: they will have been written before they are read."""
    DISCARDED = "discarded"
    """The region's partitions become unavailable: they will be written anew."""


class Inside(Enum):
    """Whether partitions that a region writes and reads itself count."""

    LEFT_OUT = "left-out"
    """Needed partitions and consumers are those across region borders."""
    COUNTED = "counted"
    """A pipelined exchange inside a region is a needed partition, and the region its own consumer."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One interpretation of the pseudo-code."""

    scheduled: Scheduled
    availability: Availability
    inside: Inside = Inside.LEFT_OUT

    def __str__(self) -> str:
        return f"{self.scheduled.value}, {self.availability.value}, inside {self.inside.value}"


READINGS = tuple(Reading(*choice) for choice in product(Scheduled, Availability, Inside))
"""All readings."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one execution."""

    rescheduled: tuple[int, ...]
    """The regions passed to `reschedule`, in order, with repetitions."""
    calls: int
    """Number of calls of `failoverRegion`."""
    cycle: tuple[int, ...] = ()
    """The regions of the repeating cycle of calls, the repeated one first; empty if the execution terminates."""

    @property
    def ends(self) -> bool:
        """Whether the execution terminates."""
        return not self.cycle

    @property
    def most_often(self) -> int:
        """Maximum number of times that a region was rescheduled."""
        return max(Counter(self.rescheduled).values(), default=0)


def execute(
    reading: Reading,
    regions: Regions,
    failed: Task,
    unavailable: Collection[Partition] = (),
    created: Collection[Task] = (),
) -> Outcome:
    """Runs `onTaskFailure(failed)`. A region has been scheduled if one of its tasks is not in state CREATED.

    The number of calls can grow exponentially with the job: see `Outcome.calls`.

    Raises:
        JobGraphError: a task or partition named is not of this job.
    """
    topology = regions.topology
    for partition in unavailable:
        topology.check_partition(partition)
    waiting = {topology.number(task) for task in created}
    run = _Run(reading, _Wiring.of(regions, reading.inside))
    run.scheduled = {r for r, members in enumerate(regions.members) if not waiting.issuperset(members)}
    run.missing = set(unavailable) | run.wiring.fleeting
    run.failover_region(regions.of(failed))
    return Outcome(tuple(run.rescheduled), run.calls, run.cycle)


@dataclass(frozen=True, slots=True)
class _Wiring:
    """The partitions between regions, pair by pair."""

    needed: list[list[Partition]]
    """Per region, the partitions that it reads, in ascending order."""
    consumers: list[list[int]]
    """Per region, the regions that read from it, in ascending order."""
    producer: dict[Partition, int]
    written: list[set[Partition]]
    fleeting: frozenset[Partition]
    """The partitions that cannot be read twice: never still available."""

    @classmethod
    def of(cls, regions: Regions, inside: Inside) -> _Wiring:
        topology = regions.topology
        count = len(regions.members)
        needed: list[set[Partition]] = [set() for _ in range(count)]
        consumers: list[set[int]] = [set() for _ in range(count)]
        written: list[set[Partition]] = [set() for _ in range(count)]
        producer: dict[Partition, int] = {}
        fleeting: set[Partition] = set()
        for connection in topology.connections:
            for writing, reading in connection.groups():
                for task in writing:
                    partition = (connection.edge.dataset, task - connection.producers.start)
                    home = producer[partition] = regions.of_task[task]
                    written[home].add(partition)
                    if not connection.edge.exchange.rereadable:
                        fleeting.add(partition)
                    for reader in {regions.of_task[other] for other in reading}:
                        if reader != home or inside is Inside.COUNTED:
                            needed[reader].add(partition)
                            consumers[home].add(reader)
        return cls([*map(sorted, needed)], [*map(sorted, consumers)], producer, written, frozenset(fleeting))


_Situation = tuple[int, frozenset[int], frozenset[Partition]]


@dataclass(slots=True)
class _Run:
    """The state of one execution; methods are named after the pseudo-code's functions."""

    reading: Reading
    wiring: _Wiring
    scheduled: set[int] = field(default_factory=set)
    missing: set[Partition] = field(default_factory=set)
    rescheduled: list[int] = field(default_factory=list)
    calls: int = 0
    cycle: tuple[int, ...] = ()
    open_calls: list[_Situation] = field(default_factory=list)

    def failover_region(self, region: int) -> None:
        self.calls += 1
        if region not in self.scheduled:
            return
        situation = (region, frozenset(self.scheduled), frozenset(self.missing))
        if situation in self.open_calls:
            self.cycle = tuple(r for r, _, _ in self.open_calls[self.open_calls.index(situation) :])
            return
        self.open_calls.append(situation)
        for partition in self.wiring.needed[region]:
            if not self.cycle and partition in self.missing:
                self.failover_region(self.wiring.producer[partition])
        if not self.cycle:
            self.reschedule(region)
        for consumer in self.wiring.consumers[region]:
            if not self.cycle:
                self.failover_region(consumer)
        self.open_calls.pop()

    def reschedule(self, region: int) -> None:
        self.rescheduled.append(region)
        if self.reading.scheduled is Scheduled.RESETS:
            self.scheduled.discard(region)
        match self.reading.availability:
            case Availability.RESTORED:
                self.missing -= self.wiring.written[region]
            case Availability.DISCARDED:
                self.missing |= self.wiring.written[region]
