"""Why the tasks of a restart set are in it, as a tree of regions: the rules of FLIP-1 read backwards."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from streamproof.conformance import Designed, Recovery, RecoveryReader, RestartReason, Tracked
from streamproof_specs.failover.flink.recorded_machine import RecordedFailover


@dataclass(frozen=True, slots=True)
class Explained:
    """The recoveries of a job, each with the reasons for its restart set."""

    recoveries_of: RecoveryReader
    model: RecordedFailover

    def recoveries(self, tracked: Tracked) -> tuple[Recovery, ...]:
        """See `RecoveryReader`."""
        explained = []
        for found in self.recoveries_of.recoveries(tracked):
            why = restart_reasons(self.model, found.failed.rpartition("#")[0], found.tasks or ())
            explained.append(replace(found, why=why, designed=tuple(_designed(self.model, found, why))))
        for at, (found, after) in enumerate(pairwise(explained)):
            if _is_loss(found.cause) and any(one.reason == _MISSING for one in after.why):
                explained[at] = replace(found, designed=(*found.designed, EARLY))
        return tuple(explained)


def _is_loss(cause: str | None) -> bool:
    """Whether an exception is that of a JobMaster or ResourceManager that lost a TaskManager."""
    return cause is not None and cause.rpartition(".")[2] in (
        "JobMasterException",
        "ResourceManagerException",
        "TimeoutException",
    )


_PAGE = "flink-deviations.md#failover-flip-1-phase-2"
CYCLE = Designed(
    "Flink merges regions that wait for each other inside one logical region only; this circle remains", _PAGE
)
EARLY = Designed(
    "the JobMaster fails the tasks of a lost TaskManager and decides before it forgets the results on it, so the producers of"
    " these restart with a later decision",
    _PAGE,
)
_MISSING = "its partition is missing"
_OF_REGION = "in the region of the failed task"


def _designed(model: RecordedFailover, found: Recovery, why: Sequence[RestartReason]) -> Iterator[Designed]:
    """What a decision shows of Flink's own rules."""
    if any(one.reason == _MISSING for one in why):
        text = "a lost partition is noticed only when a reader misses it; the producers restart with that decision"
        yield Designed(text, _PAGE)
    if any(one.reason == _MISSING and one.because is not None and why[one.because].reason == _MISSING for one in why):
        yield Designed(
            "the inputs of a lost result may have been released with their last reader, so their producers run again",
            _PAGE,
        )
    restarted = set(found.tasks or ())
    regions = {model.region_of[task] for task in restarted}
    readers = {r for p, at in model.producing_region.items() if at in regions for r in model.consuming_regions[p]}
    waiting = sum(task not in restarted for r in readers - regions for task in model.regions[r])
    if waiting:
        yield Designed(f"tasks downstream that were not scheduled then ({waiting}) do not count as restarted", _PAGE)


def restart_reasons(model: RecordedFailover, failed: str, tasks: Collection[str]) -> tuple[RestartReason, ...]:
    """One reason for each region with restarted tasks, and for the regions between them whose tasks were never scheduled.

    A region is in the set because the failed task is in it; because it reads what a region of the set writes; or, if
    neither explains it, because a partition that it wrote, which a region of the set reads, is missing. `failed` is empty
    for a global failure.
    """
    if failed not in model.region_of:
        return (RestartReason(tuple(sorted(tasks)), "global failure"),) if tasks else ()
    restarted = {model.region_of[task] for task in tasks}
    first = model.region_of[failed]
    order, found = [first], {first: RestartReason((), "failed task")}
    at = 0
    while True:
        for region in order[at:]:
            reached = [(p, r) for p, producer in model.producing_region.items() if producer == region
                       for r in model.consuming_regions[p]]  # fmt: skip
            for partition, consumer in reached:
                if consumer not in found:
                    found[consumer] = RestartReason((), "reads what restarts", partition, order.index(region))
                    order.append(consumer)
            at += 1
        if at < len(order):
            continue
        if restarted <= found.keys():
            break
        missing = [
            (partition, producer, region)
            for region in order
            for task in model.regions[region]
            for partition in model.reads[task]
            if (producer := model.producing_region[partition]) not in found
        ]
        # A producer that was never scheduled restarts nothing itself, but what reads from it does.
        missing.sort(key=lambda link: link[1] not in restarted)
        if not missing:
            break
        partition, producer, region = missing[0]
        found[producer] = RestartReason((), _MISSING, partition, order.index(region))
        order.append(producer)
    return _listed(model, failed, order, found, frozenset(tasks))


def _listed(
    model: RecordedFailover, failed: str, order: list[str], found: dict[str, RestartReason], tasks: frozenset[str]
) -> tuple[RestartReason, ...]:
    """The reasons in the order found, without regions that lead to no restarted task; those of the region of the failed task
    follow from the failed task."""
    kept: set[int] = set()
    for number, region in reversed(list(enumerate(order))):
        if number in kept or not tasks.isdisjoint(model.regions[region]):
            kept |= {number} | ({because} if (because := found[region].because) is not None else set())
    place = {number: at for at, number in enumerate(sorted(kept))}
    listed = [
        replace(
            found[order[number]],
            tasks=tuple(t for t in model.regions[order[number]] if t in tasks),
            because=None if (because := found[order[number]].because) is None else place[because],
        )
        for number in sorted(kept)
    ]
    others = tuple(task for task in listed[0].tasks if task != failed) if listed else ()
    if not others:
        return tuple(listed)
    moved = [one if not one.because else replace(one, because=one.because + 1) for one in listed[1:]]
    alone = replace(listed[0], tasks=tuple(task for task in listed[0].tasks if task == failed))
    return (alone, RestartReason(others, _OF_REGION, because=0), *moved)
