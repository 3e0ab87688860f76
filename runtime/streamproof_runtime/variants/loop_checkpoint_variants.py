"""Variants of checkpoints in loops, to be switched on for demonstration, by the names of the model `loop_checkpoints`."""

from __future__ import annotations

from collections.abc import Sequence

from streamproof_runtime.subtasks.feedback_logs import FeedbackLog, Logged
from streamproof_runtime.subtasks.termination import BatonSubtask


class _NotReplayed(FeedbackLog):
    """The log is not replayed."""

    def replayed(self, logged: Logged) -> Logged:
        """Nothing."""
        return {}


class NotReplayed(BatonSubtask):
    """A restart begins with empty feedback channels."""

    feedback_log_type = _NotReplayed


class _ReplayedTwice(FeedbackLog):
    """The log is replayed twice."""

    def replayed(self, logged: Logged) -> Logged:
        """Twice."""
        return {channel: [*found, *found] for channel, found in logged.items()}


class ReplayedTwice(BatonSubtask):
    """A restart puts the log into the feedback channels twice."""

    feedback_log_type = _ReplayedTwice


class _NotStored(FeedbackLog):
    """The log is empty when the barrier departs, and nobody waits for more."""

    def depart(self, channels: Sequence[str]) -> None:
        """The snapshot is complete at once."""
        super().depart(channels)
        self.away = set()


class LogNotStored(BatonSubtask):
    """The head acknowledges when the barrier departs; the log is in no checkpoint."""

    feedback_log_type = _NotStored

    def take_barrier(self, channel: str, checkpoint: int) -> None:
        """A barrier that returns has no meaning."""
        super().take_barrier(channel, checkpoint)
        self.feedback_log.kept.clear()


class _ReplayUnlogged(FeedbackLog):
    """What was replayed is not logged again."""

    def __init__(self) -> None:
        super().__init__()
        self._replayed: dict[str, int] = {}

    def note(self, channel: str, side: int, records: list[object]) -> None:
        """Only what is new."""
        if self._replayed.get(channel, 0):
            self._replayed[channel] -= 1
        else:
            super().note(channel, side, records)

    def replayed(self, logged: Logged) -> Logged:
        """The log."""
        self._replayed = {channel: len(found) for channel, found in logged.items()}
        return logged


class ReplayUnlogged(BatonSubtask):
    """A log has nothing of the log before it."""

    feedback_log_type = _ReplayUnlogged


class Aligned(BatonSubtask):
    """The head waits for the barrier on the feedback channels, too."""

    def is_aligned(self) -> bool:
        """Never, in a loop: the barrier has not been sent into it."""
        return super().is_aligned() and not self.plan.feedback_inputs


SUBTASKS: dict[str, type[BatonSubtask]] = {
    "not-replayed": NotReplayed,
    "replayed-twice": ReplayedTwice,
    "log-not-stored": LogNotStored,
    "replay-unlogged": ReplayUnlogged,
    "aligned": Aligned,
}
"""Variants by name. `aligned` does nothing that is forbidden, but no checkpoint completes, and the loop stops."""
