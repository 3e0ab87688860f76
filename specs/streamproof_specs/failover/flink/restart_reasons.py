"""Why the tasks of a restart set are in it, as a tree of regions: the rules of FLIP-1 read backwards."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from streamproof.conformance import Recovery, RecoveryReader, RestartReason, Tracked
from streamproof_specs.failover.flink.recorded_machine import RecordedFailover


@dataclass(frozen=True, slots=True)
class Explained:
    """The recoveries of a job, each with the reasons for its restart set."""

    recoveries_of: RecoveryReader
    model: RecordedFailover

    def recoveries(self, tracked: Tracked) -> tuple[Recovery, ...]:
        """See `RecoveryReader`."""
        return tuple(
            replace(found, why=restart_reasons(self.model, found.failed.rpartition("#")[0], found.tasks or ()))
            for found in self.recoveries_of.recoveries(tracked)
        )


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
        found[producer] = RestartReason((), "its partition is missing", partition, order.index(region))
        order.append(producer)
    return _listed(model, order, found, frozenset(tasks))


def _listed(
    model: RecordedFailover, order: list[str], found: dict[str, RestartReason], tasks: frozenset[str]
) -> tuple[RestartReason, ...]:
    """The reasons in the order found, without regions that lead to no restarted task."""
    kept: set[int] = set()
    for number, region in reversed(list(enumerate(order))):
        if number in kept or not tasks.isdisjoint(model.regions[region]):
            kept |= {number} | ({because} if (because := found[region].because) is not None else set())
    place = {number: at for at, number in enumerate(sorted(kept))}
    return tuple(
        replace(
            found[order[number]],
            tasks=tuple(t for t in model.regions[order[number]] if t in tasks),
            because=None if (because := found[order[number]].because) is None else place[because],
        )
        for number in sorted(kept)
    )
