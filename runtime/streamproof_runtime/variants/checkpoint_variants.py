"""Variants of checkpoints that omit or change one rule, to be switched on for demonstration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streamproof_runtime.jobmaster.checkpoints import CheckpointCoordinator
from streamproof_runtime.jobmaster.jobmaster import JobMaster
from streamproof_runtime.subtasks.barriers import Alignment, Snapshot
from streamproof_runtime.subtasks.items import BARRIER
from streamproof_runtime.subtasks.termination import BatonSubtask
from streamproof_runtime.subtasks.unaligned import Buffers, InFlight


class _Open(Alignment):
    """No input waits for the others."""

    def blocks(self, channel: str) -> bool:
        """Never."""
        return False


class Unaligned(BatonSubtask):
    """What follows a barrier is processed before the snapshot, if other barriers are late."""

    alignment_type = _Open


class HeldForgotten(BatonSubtask):
    """A snapshot is taken while buffers are held that are in no snapshot."""

    def may_take_snapshot(self) -> bool:
        """As soon as the barriers are there."""
        return self.alignment.is_complete(self.ended)


class BarrierForwardedEarly(BatonSubtask):
    """The first barrier is sent on before the snapshot, ahead of what the subtask still makes of earlier records."""

    _forwarded = 0

    def take_barrier(self, channel: str, checkpoint: int) -> None:
        """It leaves at once."""
        super().take_barrier(channel, checkpoint)
        if checkpoint != self._forwarded:
            self._forwarded = checkpoint
            self.sent += [(output, (BARRIER, {}, checkpoint)) for output in self.plan.outputs]

    def take_snapshot(self) -> None:
        """The barrier has left already, unless there was none."""
        checkpoint = self.alignment.next
        super().take_snapshot()
        if checkpoint == self._forwarded:
            self.sent = [(channel, item) for channel, item in self.sent if item[0] != BARRIER]


class _Partial(CheckpointCoordinator):
    """Half of the tasks are enough."""

    def is_acknowledged(self) -> bool:
        """Not all of them."""
        return 2 * len(self._acknowledged) >= len(self._run.region.graph.tasks)


class CompletesPartly(JobMaster):
    """A checkpoint completes when half of the tasks have acknowledged."""

    coordinator = _Partial


class _First(CheckpointCoordinator):
    """The first completed checkpoint is never replaced."""

    _first: Mapping[str, Snapshot] | None = None

    def restored(self) -> Mapping[str, Snapshot]:
        """Those of the first checkpoint."""
        if self.latest and self._first is None:
            self._first, self._id = self.stored, self.latest
        if self._first is not None:
            self.stored, self.latest = self._first, self._id
        return super().restored()

    _id = 0


class RestoresOlder(JobMaster):
    """Every restart begins from the checkpoint of the first restart."""

    coordinator = _First


class _Kept(CheckpointCoordinator):
    """A failure does not abort the pending checkpoint."""

    def abort(self, reason: str) -> None:
        """Only if it takes too long."""
        if "long" in reason:
            super().abort(reason)


class CompletesAfterFailure(JobMaster):
    """A checkpoint stays pending when the tasks fail."""

    coordinator = _Kept


class _Forgetful(CheckpointCoordinator):
    """What an earlier JobMaster has stored is not read."""

    def found(self) -> tuple[int, Mapping[str, Snapshot]]:
        """Nothing."""
        return 0, {}


class ForgetsCheckpoints(JobMaster):
    """A JobMaster that replaces a lost one begins the job anew."""

    coordinator = _Forgetful


class _Late(CheckpointCoordinator):
    """A checkpoint is stored when a restart needs it."""

    def store(self) -> None:
        """Not yet."""
        self.complete()

    def restored(self) -> Mapping[str, Snapshot]:
        """It is stored now."""
        if self.latest:
            self._host.checkpoint_store.save(self.latest, self.stored)
        return super().restored()


class CompletesBeforeStored(JobMaster):
    """A checkpoint counts as completed before it is stored."""

    coordinator = _Late


class _NotLogged(InFlight):
    """Nothing of what is taken or waits is logged."""

    def depart(self, inputs: Iterable[str], ended: Iterable[str], held: Iterable[tuple[int, list[Any], str]]) -> None:
        """Only what the subtask holds is in the snapshot."""
        super().depart(inputs, ended, held)
        self.open = set()


class InFlightForgotten(BatonSubtask):
    """A barrier overtakes buffers at its receiver that are in no snapshot."""

    in_flight_type = _NotLogged


class _Overtaken(InFlight):
    """What waits for credit is not in the snapshot."""

    def overtaken(self, channel: str, waiting: Buffers) -> None:
        """It is forgotten."""


class OvertakenForgotten(BatonSubtask):
    """A barrier overtakes buffers at its sender that are in no snapshot."""

    in_flight_type = _Overtaken


UNALIGNED: dict[str, type[BatonSubtask]] = {
    "in-flight-forgotten": InFlightForgotten,
    "overtaken-forgotten": OvertakenForgotten,
}
"""Variants of subtasks whose barriers overtake buffers."""
SUBTASKS: dict[str, type[BatonSubtask]] = {
    "unaligned": Unaligned,
    "held-forgotten": HeldForgotten,
    "barrier-forwarded-early": BarrierForwardedEarly,
}
"""Variants of subtasks by name."""
MASTERS: dict[str, type[JobMaster]] = {
    "completes-partly": CompletesPartly,
    "restores-older": RestoresOlder,
    "completes-after-failure": CompletesAfterFailure,
    "forgets-checkpoints": ForgetsCheckpoints,
    "completes-before-stored": CompletesBeforeStored,
}
"""Variants of the coordinator by name."""
