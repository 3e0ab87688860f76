"""The slot of each subtask of a region.

A slot takes at most one subtask of an operator, and subtasks of any number of operators. Writers are beside their producers
and readers beside their partitions; they need no slot, as they only move records between a subtask and the disk. Subtasks of
operators that are joined one to one by a feedback edge, the tail and the head of a loop, share a slot; one that reads a
partition one to one has a slot of the same TaskExecutor, if there is one; others are spread over all slots in turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamproof_runtime.jobmaster.regions import Region
from streamproof_runtime.jobs.api import Exchange, Operator, subtask_names


def in_slots(region: Region) -> list[Operator]:
    """The operators whose subtasks need a slot."""
    return [o for o in region.graph.job.operators.values() if not o.reads and not o.writes]


def wanted(region: Region) -> int:
    """The slots with which each subtask has one of its own."""
    return sum(operator.parallelism for operator in in_slots(region))


def needed(region: Region) -> int:
    """The slots without which a region cannot run."""
    return max(operator.parallelism for operator in in_slots(region))


def placed(
    region: Region, slots: Sequence[tuple[str, str]], locations: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, str], dict[str, str]]:
    """The TaskExecutor of each subtask, and the slot of each that needs one. `slots` are pairs of slot and TaskExecutor, at
    least as many as `needed`; readers are beside the partitions in `locations`."""
    operators = region.graph.job.operators
    executor: dict[str, str] = {}
    slot: dict[str, str] = {}
    at = 0
    for operator in operators.values():
        if operator.reads:
            executor.update(zip(subtask_names(operator), locations[operator.reads], strict=True))
    for operator in in_slots(region):
        tasks = subtask_names(operator)
        beside = _beside(region, operator)
        free = [slots[(at + i) % len(slots)] for i in range(len(slots))]
        at += len(tasks)
        for i, task in enumerate(tasks):
            other = subtask_names(operators[beside])[i] if beside else ""
            found = next((s for s in free if s[0] == slot.get(other)), None)
            found = found or next((s for s in free if other and s[1] == executor.get(other)), free[0])
            free.remove(found)
            slot[task], executor[task] = found
    for operator in operators.values():
        if operator.writes:
            producers = subtask_names(operators[operator.writes.partition(">")[0]])
            executor.update(zip(subtask_names(operator), (executor[p] for p in producers), strict=True))
    return {task: executor[task] for task in region.graph.tasks}, slot


def _beside(region: Region, operator: Operator) -> str:
    """The operator with which this one shares its slots, or beside which it is; or nothing."""
    operators = region.graph.job.operators
    for edge in region.graph.job.edges:
        if edge.exchange is Exchange.FORWARD:
            if edge.feedback and edge.source == operator.name != edge.target:
                return edge.target
            if edge.target == operator.name and operators[edge.source].reads:
                return edge.source
    return ""
