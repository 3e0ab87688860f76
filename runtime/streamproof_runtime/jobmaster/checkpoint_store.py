"""Where the completed checkpoints of a job are kept: they outlive the JobMaster, and the next one goes on from the latest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from streamproof_runtime.subtasks.barriers import Snapshot


class CheckpointStore(Protocol):
    """Keeps the latest completed checkpoint of a job."""

    def save(self, checkpoint: int, snapshots: Mapping[str, Snapshot]) -> None:
        """Keeps a checkpoint with the snapshot of each subtask; the one before stays if that fails. Raises `OSError`."""

    def latest(self) -> tuple[int, Mapping[str, Snapshot]]:
        """The latest checkpoint and its snapshots; 0 and none if there is none."""


class MemoryCheckpoints:
    """The store of a simulated run, which is no part of a simulated process."""

    def __init__(self) -> None:
        self._kept: tuple[int, Mapping[str, Snapshot]] = (0, {})

    def save(self, checkpoint: int, snapshots: Mapping[str, Snapshot]) -> None:
        """Keeps it; snapshots are not changed later."""
        self._kept = checkpoint, dict(snapshots)

    def latest(self) -> tuple[int, Mapping[str, Snapshot]]:
        """What was saved last."""
        return self._kept
