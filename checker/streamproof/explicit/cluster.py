"""The processes of a search over many processes, and its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from streamproof.base.records import dataclass

T = TypeVar("T")
J = TypeVar("J")


class Executor(Protocol):
    """The processes of a search."""

    @property
    def partitions(self) -> int:
        """Number of partitions of the states; the processes may be started to know it."""

    @property
    def room(self) -> int:
        """Memory of a task, in bytes."""

    def run(self, work: Callable[[J], T], jobs: Sequence[J], pulse: Callable[[], None]) -> list[T]:
        """The results of a function, which can be pickled, for all jobs, in their order. Calls `pulse` repeatedly, and ends
        the jobs when it raises."""


class InProcess:
    """An executor that is this process itself."""

    def __init__(self, partitions: int, room: int = 1 << 28) -> None:
        self.partitions = partitions
        self.room = room

    def run(self, work: Callable[[J], T], jobs: Sequence[J], pulse: Callable[[], None]) -> list[T]:
        """Does the jobs one after the other."""
        found: list[T] = []
        for job in jobs:
            pulse()
            found.append(work(job))
        return found


@dataclass(frozen=True, slots=True)
class Cluster:
    """The processes of a search, its folder, and whether it continues the search that is there."""

    executor: Executor
    place: str
    resume: bool = False
