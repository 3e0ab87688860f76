"""What the readers and writers of one attempt of a region read and store on a TaskExecutor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from streamproof_runtime.errors import CannotStore
from streamproof_runtime.jobs.functions import Context, Operation
from streamproof_runtime.subtasks.subtask import Subtask
from streamproof_runtime.taskexecutor.ledger import Ledger
from streamproof_runtime.taskexecutor.partitions import Key


class _Storing(Operation):
    """The operation of a writer."""

    def __init__(self, context: Context, append: Callable[[list[Any]], None]) -> None:
        super().__init__((), context)
        self._append = append

    def outputs(self, side: int, records: list[Any]) -> Iterator[Any]:
        """None: records are stored together. Raises `CannotStore`."""
        try:
            self._append(records)
        except OSError as error:
            raise CannotStore(f"cannot store partitions: {error}") from error
        return iter(())


class AttemptPartitions:
    """The partitions of one attempt."""

    def __init__(self, ledger: Ledger, attempt: int) -> None:
        self._ledger, self._attempt = ledger, attempt
        self._read: dict[str, Key] = {}
        self._written: dict[str, Key] = {}
        """The partition of each reader, and of each writer."""
        self.waiting: dict[str, str] = {}
        """Readers whose dataset is not stored yet."""

    def attach(self, subtask: Subtask, reads: Mapping[str, int]) -> None:
        """A reader gets its partition, or waits for it; a writer gets a new one. Raises `Missing`, and `OSError`."""
        operator, number = subtask.plan.operator, subtask.plan.number
        if operator.reads and operator.reads not in reads:
            self.waiting[subtask.name] = operator.reads
        elif operator.reads:
            self.waiting.pop(subtask.name, None)
            key = self._read[subtask.name] = operator.reads, reads[operator.reads], number
            subtask.items, subtask.left = self._ledger.open(key, self._attempt)
        elif operator.writes:
            key = operator.writes, self._attempt, number
            self._ledger.store.create(key)
            self._written[subtask.name] = key
            subtask.operation = _Storing(subtask.operation.context, partial(self._ledger.append, key))

    def written(self) -> list[Key]:
        """The partitions of the writers."""
        return [*self._written.values()]

    def written_by(self, subtask: Subtask) -> Key | None:
        """The partition of a writer."""
        return self._written.get(subtask.name)

    def release(self, *, keeps_promoted: bool = False) -> list[Key]:
        """Deletes what the writers have stored, perhaps without cluster partitions; returns it."""
        kept = {key[:2] for key in self._ledger.cluster} if keeps_promoted else set()
        return [
            key
            for dataset, of in {key[:2] for key in self._written.values()} - kept
            for key in self._ledger.store.release(dataset, of)
        ]

    def finish(self, subtask: Subtask) -> None:
        """The partition of a writer is complete before the writer terminates. Raises `CannotStore`."""
        if subtask.plan.operator.writes:
            try:
                self._ledger.finished(self._written[subtask.name])
            except OSError as error:
                raise CannotStore(f"cannot store partitions: {error}") from error

    def consumed(self, subtask: Subtask) -> None:
        """A reader has terminated: its partition is consumed."""
        if subtask.plan.operator.reads:
            self._ledger.consumed(self._read[subtask.name], self._attempt)
