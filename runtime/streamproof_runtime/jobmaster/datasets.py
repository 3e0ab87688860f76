"""The datasets of a job at the JobMaster: what each blocking exchange stores, where, by which attempt, and its descriptor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from streamproof_runtime.jobmaster.region_runs import Run

NONE, PRODUCING, STORED, GONE, RELEASED = "NONE", "PRODUCING", "STORED", "GONE", "RELEASED"
"""States of a dataset; GONE: part of it is lost, and no reader has missed it yet."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """What a reader needs to find a dataset: the attempt that makes it, and the TaskExecutor of each partition."""

    attempt: int
    locations: tuple[str, ...]


@dataclass(slots=True)
class Dataset:
    """What a blocking exchange stores."""

    producer: Run
    consumer: Run | None
    """None: it becomes a cluster partition."""
    unfinished: int
    """Partitions that are not finished: the reader is scheduled lazily when there is none."""
    state: str = NONE
    attempt: int = 0
    locations: tuple[str, ...] = ()
    descriptor: Descriptor | None = None
    """Made at its first use, and dropped when the dataset is released or made again."""


class Datasets:
    """The datasets of a job by name."""

    def __init__(self, runs: Iterable[Run]) -> None:
        all_runs = [*runs]
        writers = {name: run for run in all_runs for name in run.region.writes}
        self.by_name = {
            name: Dataset(writers[name], run, len(writers[name].writers(name)))
            for run in all_runs
            for name in run.region.reads
        }
        for name, run in writers.items():
            self.by_name.setdefault(name, Dataset(run, None, len(run.writers(name))))

    def __getitem__(self, name: str) -> Dataset:
        return self.by_name[name]

    def read_by(self, run: Run) -> Iterator[tuple[str, Dataset]]:
        """What a region reads."""
        return ((name, self.by_name[name]) for name in run.region.reads)

    def is_finished(self, name: str) -> bool:
        """Whether all partitions of a dataset are finished, and none is to be made again."""
        return self.by_name[name].unfinished == 0

    def written_by(self, run: Run) -> Iterator[tuple[str, Dataset]]:
        """What a region stores."""
        return ((name, self.by_name[name]) for name in run.region.writes)

    def begin(self, run: Run) -> None:
        """A region with a placement is deployed: its partitions will be beside its writers."""
        for name, found in self.written_by(run):
            found.state, found.attempt = PRODUCING, run.attempt
            found.locations = tuple(run.placement[task] for task in run.writers(name))

    def store(self, run: Run) -> None:
        """A region has finished, and with it the partitions that it stores."""
        for _, found in self.written_by(run):
            found.state, found.unfinished = STORED, max(0, found.unfinished - len(found.locations))

    def count_again(self, run: Run) -> None:
        """The partitions of a region that restarts are not finished any more."""
        for name, found in self.written_by(run):
            found.unfinished = len(run.writers(name))

    def descriptor(self, name: str) -> Descriptor:
        """The descriptor of a dataset that is stored, or will be."""
        found = self.by_name[name]
        if found.descriptor is None:
            found.descriptor = Descriptor(found.attempt, found.locations)
        return found.descriptor

    def drop(self, name: str, state: str, executors: Iterable[str]) -> list[str]:
        """A dataset is not needed, or void: those of these TaskExecutors that store a part of it."""
        found = self.by_name[name]
        peers = sorted(set(found.locations) & {*executors}) if found.state in (STORED, GONE) else []
        found.state, found.locations = state, ()
        return peers

    def stored_on(self, executor: str) -> list[str]:
        """The datasets of which a TaskExecutor stores a part."""
        return [name for name, found in self.by_name.items() if found.state == STORED and executor in found.locations]
