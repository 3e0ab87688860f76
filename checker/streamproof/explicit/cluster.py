"""The processes of a search over many processes, and its folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from streamproof.base.errors import SystemFailure
from streamproof.base.options import memory_of_machine
from streamproof.base.processes import Ended, can_fork, in_processes
from streamproof.base.records import dataclass

T = TypeVar("T")
J = TypeVar("J")

SHARES = 2
"""Number of partitions for each processor of the cluster, so that an uneven one delays the others less."""
SHARE = 0.4
"""Share of this machine's memory that its tasks have together."""


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


class LocalExecutor:
    """Processes of this machine, or this process itself if there is one job or it has threads."""

    def __init__(self, purpose: str, processes: int | None = None, memory: int | None = None) -> None:
        """`processes`: their number; None: one for each processor. `memory`: bytes of all of them."""
        self._purpose = purpose
        self.processors = processes or len(os.sched_getaffinity(0))
        self.partitions = SHARES * max(2, self.processors)
        self.room = room_of(self.processors, memory)
        self._done = 0

    @contextmanager
    def reporting(self, progress: Callable[[str], None] | None, doing: str, jobs: int) -> Iterator[Callable[[], None]]:
        """Reports `doing`, and then the number of finished jobs when the given function is called."""
        shown = self._done = 0

        def pulse() -> None:
            nonlocal shown
            if progress is not None and jobs > 1 and self._done > shown:
                shown = self._done
                progress(f"{doing}: {shown} of {jobs} tasks")

        if progress is not None:
            progress(doing)
        yield pulse

    def run(self, work: Callable[[J], T], jobs: Sequence[J], pulse: Callable[[], None]) -> list[T]:
        """The results of a function for all jobs, in their order. Calls `pulse` repeatedly; what it raises ends the jobs."""
        processes = min(self.processors, len(jobs))
        if processes <= 1 or not can_fork():
            found = []
            for job in jobs:
                pulse()
                found.append(work(job))
                self._done += 1
            return found
        results: dict[int, T] = {}
        numbers = range(len(jobs))
        each = in_processes(lambda number: (work(jobs[number]),), numbers, processes, self._purpose, pulse)
        for number, result in each:
            if isinstance(result, Ended):
                raise SystemFailure(
                    f"a process for the {self._purpose} ended ({result.code}); it may have been out of memory",
                    remedy="use a machine with more memory, or a cluster with --master URL",
                )
            results[number] = work(jobs[number]) if result is None else result[0]
            self._done += 1
        return [results[number] for number in numbers]


def room_of(processes: int, memory: int | None) -> int:
    """Memory of a task, in bytes, of the memory of all."""
    return (memory or int((memory_of_machine() or 4 << 30) * SHARE)) // max(1, processes)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The processes of a search, its folder, and whether it continues the search that is there."""

    executor: Executor
    place: str
    resume: bool = False
