"""The life of the partitions on one TaskExecutor: each step of it is an event in the log.

A partition on a TaskExecutor is a *copy*: ``DATASET/SUBTASK@ATTEMPT`` names the attempt of the region that makes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from streamproof_runtime.taskexecutor.memory_cache import CachedPartitions
from streamproof_runtime.taskexecutor.partitions import Key, Missing


def copy_name(key: Key) -> str:
    """The name of a copy in the log."""
    return f"{key[0]}/{key[2]}@{key[1]}"


def copy_names(keys: Iterable[Key]) -> list[str]:
    """The names of copies in the log, in their order."""
    return [copy_name(key) for key in sorted(keys)]


class Ledger:
    """Creates, finishes, reads and deletes the partitions of a store, and records that."""

    cleans_up = True
    """Whether partitions are deleted when the JobMaster is lost."""

    def __init__(self, store: CachedPartitions, record: Callable[[str, Mapping[str, Any]], None]) -> None:
        self.store, self._record = store, record
        self.consumptions: Counter[Key] = Counter()
        self.cluster: set[Key] = set()
        """What has been promoted: it outlives its job."""

    def created(self, datasets: Iterable[str], attempt: int, made: Sequence[Key], deleted: Sequence[Key]) -> None:
        """A region that stores datasets is deployed: what was made, and what an earlier attempt had left."""
        if names := sorted(datasets):
            args = {"datasets": names, "attempt": attempt, "created": copy_names(made), "deleted": copy_names(deleted)}
            self._record("partitions_created", args)

    def finished(self, key: Key) -> None:
        """A writer is about to terminate. Raises `OSError` if the disk is full."""
        self.store.finish(key)
        self._record("partition_finished", {"partition": copy_name(key)})

    def open(self, key: Key, reader: int) -> tuple[Iterator[Any], int]:
        """The records for an attempt of a reading region, and their number. Raises `Missing`."""
        try:
            found = self.store.open(key)
        except Missing:
            self._record("partition_missing", {"partition": copy_name(key), "reader": reader})
            raise
        self.opened(key, reader)
        return found

    def opened(self, key: Key, reader: int) -> None:
        """A reader begins."""
        self._record("partition_opened", {"partition": copy_name(key), "reader": reader})

    def consumed(self, key: Key, reader: int) -> None:
        """A reader has read a partition to its end."""
        self.consumptions[key] += 1
        about = {"partition": copy_name(key), "reader": reader, "consumptions": self.consumptions[key]}
        self._record("partition_consumed", about)
        self.store.consumed(key)
        self._settle()

    def append(self, key: Key, records: list[Any]) -> None:
        """A writer stores more records. Raises `OSError` and `MemoryFull`."""
        self.store.append(key, records)
        if self.store.is_full:
            self._settle()
            self.store.expect_room(key)

    def _settle(self) -> None:
        """Memory may be full: what has been read is discarded."""
        about = {"stored": self.store.size, "room": self.store.store.room}
        if discarded := self.store.settle():
            self._record("partitions_discarded", {"discarded": copy_names(discarded), **about})

    def release(self, dataset: str, attempt: int) -> None:
        """The JobMaster has released a dataset."""
        deleted = self.store.release(dataset, attempt)
        self._record("release_received", {"dataset": dataset, "attempt": attempt, "deleted": copy_names(deleted)})

    def canceled(
        self, datasets: Iterable[str], attempt: int, deleted: Sequence[Key], *, ordered: bool, full: Key | None = None
    ) -> None:
        """An attempt is canceled by the JobMaster, or has failed here: what it has stored is void. `full`: what could not be
        written."""
        self.cluster.difference_update(deleted)
        if names := sorted(datasets):
            event = "partitions_canceled" if ordered else "partitions_abandoned"
            about: dict[str, Any] = {"datasets": names, "attempt": attempt, "deleted": copy_names(deleted)}
            self._record(event, {**about, **({"full": copy_name(full)} if full else {})})

    def registering(self, connection: int) -> None:
        """The TaskExecutor begins a connection to the JobMaster."""
        self._record("registering", {"connection": connection})

    def master_lost(self, connection: int, deleted: Sequence[Key]) -> None:
        """A connection to the JobMaster is lost: all partitions are deleted."""
        self.lost(connection, [*deleted, *self.cleared()])

    def cleared(self) -> list[Key]:
        """Deletes all but cluster partitions."""
        if not self.cluster:
            return self.store.clear()
        found = [*{*self.store.keys()} - self.cluster]
        for key in found:
            self.store.remove(key)
        return found

    # --- cluster partitions

    def promote(self, keys: Sequence[Key]) -> None:
        """Partitions of a job become the cluster's, all or none. Raises `Missing` if one is lost."""
        present = {*self.store.keys()}
        if lost := [key for key in keys if key not in present]:
            self._record("promotion_failed", {"refused": copy_names(keys), "missing": copy_names(lost)})
            raise Missing(lost[0])
        self.cluster.update(keys)
        if keys:
            self.promoted(keys)

    def promoted(self, keys: Sequence[Key]) -> None:
        """These partitions were promoted."""
        self._record("partitions_promoted", {"promoted": copy_names(keys)})

    def manager_lost(self) -> None:
        """The connection to the ResourceManager is lost: nobody knows of cluster partitions any more."""
        if self.cluster:
            deleted = [*self.cluster.intersection(self.store.keys())]
            for key in deleted:
                self.store.remove(key)
            self.cluster = set()
            self.manager_is_lost(deleted)

    def manager_is_lost(self, deleted: Sequence[Key]) -> None:
        """The connection to the ResourceManager is lost, and with it these partitions."""
        self._record("manager_lost", {"deleted": copy_names(deleted)})

    def discarded(self, dataset: str, attempt: int) -> None:
        """The ResourceManager releases a cluster partition."""
        deleted = self.store.release(dataset, attempt)
        self.cluster = {key for key in self.cluster if key[:2] != (dataset, attempt)}
        about = {"dataset": dataset, "attempt": attempt, "deleted": copy_names(deleted)}
        self._record("cluster_partition_released", about)

    def dismissed(self) -> None:
        """The ResourceManager has released the TaskExecutor: what it stores is deleted."""
        self._record("executor_released", {"deleted": copy_names(self.store.clear())})

    def lost(self, connection: int, deleted: Sequence[Key]) -> None:
        """A connection to the JobMaster is lost, and with it these partitions."""
        self._record("master_lost", {"connection": connection, "deleted": copy_names(deleted)})
