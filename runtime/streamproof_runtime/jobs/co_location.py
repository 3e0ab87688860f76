"""Slot sharing and co-location of a job: which operators may share slots, and which must.

Operators are co-located by a co-location group, and as tail and head of a loop whose feedback is one to one: subtask i
of each is in the slot of subtask i of the others. So they need one slot sharing group, one parallelism, and one
pipelined region.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.operators import Exchange


@dataclass(frozen=True, slots=True)
class SlotSharing:
    """Who shares slots in a job."""

    groups: Mapping[str, str] = field(default_factory=dict)
    """The slot sharing group of each operator."""
    beside: Mapping[str, str] = field(default_factory=dict)
    """Each operator that is co-located with one before it, with the first of them."""
    parallelism: Mapping[str, int] = field(default_factory=dict)
    resources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What groups need of a slot."""

    @property
    def is_single(self) -> bool:
        """Whether all operators are in one slot sharing group, which may use any slot."""
        return len({*self.groups.values()}) < 2 and not self.resources

    def record(self) -> dict[str, object]:
        """For the log: the parallelism of each operator by group, and the operators that are co-located."""
        by_group: dict[str, dict[str, int]] = {}
        for name, group in self.groups.items():
            by_group.setdefault(group, {})[name] = self.parallelism[name]
        about: dict[str, object] = {
            "groups": by_group,
            "co_located": [[name, first] for name, first in self.beside.items()],
        }
        return {**about, "resources": self.resources} if self.resources else about


def slot_sharing(job: Job) -> SlotSharing:
    """Who shares slots. Raises `JobError`, which names both operators, for a co-location that is impossible."""
    found = job.slot_sharing_groups()
    parallelism = {name: operator.parallelism for name, operator in job.operators.items()}
    for one, other, why in _pairs(job):
        if found[one] != found[other]:
            raise JobError(
                f"{one} (slot sharing group {found[one]}) and {other} (slot sharing group {found[other]}) are co-located, "
                f"{why}: give both the same slot sharing group"
            )
        if parallelism[one] != parallelism[other]:
            raise JobError(
                f"{one} (parallelism {parallelism[one]}) and {other} (parallelism {parallelism[other]}) are co-located, "
                f"{why}: give both the same parallelism"
            )
    resources = {group: job.resources[group] for group in job.resources if group in found.values()}
    return SlotSharing(found, _beside(job), parallelism, resources)


def _pairs(job: Job) -> Iterator[tuple[str, str, str]]:
    """Operators that are co-located, a later one first, and why."""
    for edge in job.edges:
        if edge.feedback and edge.exchange is Exchange.FORWARD and edge.source != edge.target:
            yield edge.source, edge.target, f"as tail and head of loop {job.operators[edge.target].scope}"
    first: dict[str, str] = {}
    for name, operator in job.operators.items():
        if operator.co_location and first.setdefault(operator.co_location, name) != name:
            yield name, first[operator.co_location], f"by group {operator.co_location}"


def _beside(job: Job) -> dict[str, str]:
    """Each operator with the first one with which it is co-located. The tail of several loops is beside one of their heads:
    that of the loop that was closed first."""
    position = {name: at for at, name in enumerate(job.operators)}
    leader: dict[str, str] = {}

    def leading(name: str) -> str:
        while name in leader:
            name = leader[name]
        return name

    tails: set[str] = set()
    for later, earlier, why in _pairs(job):
        if why.startswith("as tail"):
            if later in tails or position[later] < position[earlier]:
                continue
            tails.add(later)
        one, other = sorted((leading(later), leading(earlier)), key=position.__getitem__)
        if one != other:
            leader[other] = one
    return {name: leading(name) for name in job.operators if name in leader}
