"""Regions at work: the current attempt of each region, and the decisions to restart some of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamproof_runtime.jobmaster.regions import Region

CREATED, DEPLOYING, RUNNING, FINISHED = "CREATED", "DEPLOYING", "RUNNING", "FINISHED"
STOPPING, STOPPED = "STOPPING", "STOPPED"
"""States of a region."""


@dataclass(slots=True)
class Run:
    """A region, and its current attempt."""

    region: Region
    status: str = CREATED
    attempt: int = 0
    version: int = -1
    """The newest decision that restarts it."""
    placement: dict[str, str] = field(default_factory=dict)
    deployed: set[str] = field(default_factory=set)
    slots: dict[str, str] = field(default_factory=dict)
    """The slot of each subtask that needs one."""
    finished: dict[str, Any] = field(default_factory=dict)
    stopping: set[str] = field(default_factory=set)
    """TaskExecutors that have not stopped its subtasks yet."""
    failed: str = ""
    """The operator that has failed."""
    is_settled: bool = False
    """Whether its subtasks have terminated, and its cluster partitions wait for the end of the job."""
    promoting: set[str] | None = None
    """TaskExecutors that have not promoted its partitions yet; None: none was asked to."""

    @property
    def trace(self) -> str:
        """The ending of the trace of this attempt."""
        return f"/{self.region.number}#{self.attempt}" if self.region.several else f"#{self.attempt}"

    @property
    def is_active(self) -> bool:
        """Whether it occupies slots and is not being stopped."""
        return self.status in (DEPLOYING, RUNNING)

    def begin(self) -> None:
        """It is being deployed."""
        self.status, self.deployed, self.finished, self.placement, self.failed = DEPLOYING, set(), {}, {}, ""
        self.is_settled, self.promoting = False, None

    def operator(self, subtask: str) -> str:
        """The operator of a subtask; of a reader or writer the one beside which it is."""
        found = self.region.graph.operator_of[subtask]
        read = self.region.reads.get(found.reads) or self.region.takes.get(found.reads)
        return read or self.region.writes.get(found.writes) or found.name

    def at(self, executor: str, slot: str = "") -> str:
        """The first operator with a subtask on a TaskExecutor, or in a slot; the first one if there is none."""
        tasks = (t for t, at in self.placement.items() if at == executor and (not slot or self.slots.get(t) == slot))
        return next(map(self.operator, tasks), self.region.operators[0])

    def writers(self, dataset: str) -> list[str]:
        """The subtasks that store a dataset."""
        return self.region.graph.writers(dataset)


@dataclass(slots=True)
class Decision:
    """Regions to restart, and those of them that have not stopped."""

    runs: list[Run]
    awaiting: list[Run]
    is_due: bool = False
