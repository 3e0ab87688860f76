"""The slot of each subtask of a region.

A slot takes at most one subtask of an operator, and subtasks of any number of operators of one slot sharing group. Writers
are beside their producers and readers beside their partitions; they need no slot, as they only move records between a
subtask and the disk. Subtasks that are co-located share a slot, as those of the tail and the head of a loop; one that reads
a partition one to one has a slot of the same TaskExecutor, if there is one; others are spread in turn over all slots of
their group.

The slots of a job of one group are all that there are. In a job of several ones a group has as many as its largest
parallelism; those that another region of it uses are taken before free ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from streamproof_runtime.errors import JobError
from streamproof_runtime.jobmaster.regions import Region
from streamproof_runtime.jobs.operators import Exchange, Operator, subtask_names
from streamproof_runtime.slots.resources import Resources, fits, text

Place: TypeAlias = tuple[str, str, str]
"""A slot, its TaskExecutor, and the slot sharing group that uses it, if any."""


def in_slots(region: Region) -> list[Operator]:
    """The operators whose subtasks need a slot."""
    return [o for o in region.graph.job.operators.values() if not o.reads and not o.writes]


def needed(regions: Sequence[Region]) -> dict[str, int]:
    """The slots that each slot sharing group of these regions needs: as many as its largest parallelism."""
    found: dict[str, int] = {}
    for region in regions:
        for operator in in_slots(region):
            group = region.sharing.groups[operator.name]
            found[group] = max(found.get(group, 0), operator.parallelism)
    return found


def required(regions: Sequence[Region]) -> int:
    """The slots that a job requires for these regions: what its groups need; or, if it has only one group, a slot for each
    subtask of the largest region, so that subtasks are spread as far as there are slots, and of an operator in several."""
    if regions and not regions[0].sharing.is_single:
        return sum(needed(regions).values())
    largest = max((sum(operator.parallelism for operator in in_slots(region)) for region in regions), default=0)
    return max([largest, *(operator.of for region in regions for operator in in_slots(region))])


def demands(regions: Sequence[Region]) -> list[tuple[Resources, int]]:
    """What the slots for these regions must have, and how many of them."""
    needs = regions[0].sharing.resources if regions else {}
    return [(needs[group], number) for group, number in needed(regions).items() if group in needs]


def expect_slots(
    regions: Sequence[Region], slots: int, places: Sequence[Place], profiles: Mapping[str, Resources]
) -> None:
    """Raises `JobError` if a region can never run with so many slots, `places`, of these profiles."""
    for region in regions:
        if offered(region, places, profiles) is None and sum(needed([region]).values()) <= slots:
            for resources, number in demands([region]):
                there = sum(fits(profiles.get(place[1], {}), resources) for place in places)
                if there < number:
                    shown = text(resources)
                    raise JobError(
                        f"the job needs {number} slot{'s' * (number > 1)} with {shown}; there are {there}; give more "
                        f"TaskExecutors these resources, as in --resources tm-1:{shown.replace(', ', ',')}"
                    )
            raise JobError("no slots have all resources of the job at once; give more TaskExecutors resources")
        groups = needed([region])
        if sum(groups.values()) > slots:
            whole = f"the job needs {sum(groups.values())} slots; there are {slots}"
            parts = ", ".join(f"{n} for slot sharing group {group}" for group, n in groups.items())
            raise JobError(
                f"{whole}{'' if len(groups) == 1 else f' ({parts})'}; raise --taskmanagers or --slots, or lower the "
                f"parallelism{'' if len(groups) == 1 else ' or the number of groups'}"
            )


def offered(
    region: Region, places: Sequence[Place], profiles: Mapping[str, Resources] | None = None
) -> dict[str, list[Place]] | None:
    """The slots for each slot sharing group of a region, or nothing if there are too few.

    A pipeline beside others has as few as it needs, and those that nobody uses first. `profiles` has what the slots of
    TaskExecutors have: a group gets what it needs, and leaves the rest to others; without it groups get any slots.
    """
    groups = needed([region])
    if region.sharing.is_single and any(operator.part_of for operator in in_slots(region)):
        places = sorted(places, key=lambda place: bool(place[2]))[: max(groups.values())]
    if region.sharing.is_single:
        return {group: [*places] for group in groups} if max(groups.values()) <= len(places) else None
    has = profiles or {}
    free = sorted((place for place in places if not place[2]), key=lambda place: len(has.get(place[1], ())))
    found = {}
    needs = region.sharing.resources
    for group, number in sorted(groups.items(), key=lambda needed: -len(needs.get(needed[0], ()))):
        own = [place for place in places if place[2] == group][:number]
        usable = [p for p in free if profiles is None or fits(has.get(p[1], {}), needs.get(group, {}))]
        lacking = number - len(own)
        if lacking > len(usable):
            return None
        found[group] = [*own, *usable[:lacking]]
        free = [place for place in free if place not in found[group]]
    return found


def placed(
    region: Region, slots: Mapping[str, Sequence[Place]], locations: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, str], dict[str, str]]:
    """The TaskExecutor of each subtask, and the slot of each that needs one. `slots` are those that `offered` has found for
    each group; readers are beside the partitions in `locations`."""
    operators, sharing = region.graph.job.operators, region.sharing
    executor: dict[str, str] = {}
    slot: dict[str, str] = {}
    at = dict.fromkeys(slots, 0)
    for operator in operators.values():
        if operator.reads:
            executor.update(zip(subtask_names(operator), locations[operator.reads], strict=True))
    for operator in in_slots(region):
        tasks, group = subtask_names(operator), sharing.groups[operator.name]
        beside = sharing.beside.get(operator.name) or _read_one_to_one(region, operator)
        own = slots[group]
        free = [own[(at[group] + i) % len(own)] for i in range(len(own))]
        at[group] += len(tasks)
        for i, task in enumerate(tasks):
            other = subtask_names(operators[beside])[i] if beside else ""
            found = next((s for s in free if s[0] == slot.get(other)), None)
            found = found or next((s for s in free if other and s[1] == executor.get(other)), free[0])
            free.remove(found)
            slot[task], executor[task] = found[:2]
    for operator in operators.values():
        if operator.writes:
            producers = subtask_names(operators[operator.writes.partition(">")[0]])
            executor.update(zip(subtask_names(operator), (executor[p] for p in producers), strict=True))
    return {task: executor[task] for task in region.graph.tasks}, slot


def _read_one_to_one(region: Region, operator: Operator) -> str:
    """The reader of a partition that an operator reads one to one, or nothing."""
    operators = region.graph.job.operators
    for edge in region.graph.job.edges:
        if edge.exchange is Exchange.FORWARD and edge.target == operator.name and operators[edge.source].reads:
            return edge.source
    return ""
