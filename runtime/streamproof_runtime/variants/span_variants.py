"""Variants of records that span buffers, and of the pools of buffers at senders, to be switched on for demonstration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from streamproof_runtime.subtasks.flow import FlowRules, Leaving, Outputs
from streamproof_runtime.subtasks.items import BARRIER, Item
from streamproof_runtime.subtasks.sender_pools import LARGEST_SHARE, SenderPool
from streamproof_runtime.subtasks.spanning import Deserialisers
from streamproof_runtime.subtasks.subtask import SNAPSHOT, Action
from streamproof_runtime.subtasks.termination import BatonSubtask


class _Shared(Deserialisers):
    """All channels of a subtask have one place."""

    def place(self, channel: str) -> str:
        """The same."""
        return ""


class SharedDeserialiser(BatonSubtask):
    """The parts of one channel are put together with those that come between them by others."""

    deserialisers_type = _Shared


class BegunForgotten(BatonSubtask):
    """A loop head does not log a record of whose parts it has taken some before its snapshot."""

    _begun: frozenset[str] = frozenset()

    def take_snapshot(self) -> None:
        """Remembers what has begun."""
        super().take_snapshot()
        self._begun = frozenset(self.deserialisers.begun)

    def take_records(self, channel: str, side: int, values: list[Any] | bytes) -> None:
        """The rest of such a record is not logged."""
        logged = self.feedback_log.away
        if channel in self._begun:
            self.feedback_log.away = logged - {channel}
        super().take_records(channel, side, values)
        self.feedback_log.away, self._begun = logged, self._begun - {channel}


class BarrierBetweenParts(BatonSubtask):
    """A snapshot is taken, and its barrier leaves, while parts of a record wait for a buffer or for credit."""

    def enabled_without_credit(self) -> list[Action]:
        """A snapshot whose barrier overtakes the parts."""
        return (
            [(SNAPSHOT, "")] if not self.is_unaligned and self.may_take_snapshot() else super().enabled_without_credit()
        )


class _BarriersFirst(Outputs):
    """A barrier is in front of all that waits."""

    def offer(self, items: Iterable[tuple[str, Item]]) -> tuple[list[Leaving], dict[str, int]]:
        """Barriers are put there."""
        items = [*items]
        leaving, written = super().offer([(c, item) for c, item in items if item[0] != BARRIER or c not in self.credit])
        for channel, item in items:
            if item[0] == BARRIER and channel in self.credit:
                self.waiting[channel].appendleft(item)
                written[channel] = written.get(channel, 0) + 1
        return leaving, written


class _CutForgotten(Outputs):
    """A record whose first part has left is in no snapshot."""

    def overtaken(self, channel: str) -> list[tuple[int, list[Any]]]:
        """What begins behind the barrier."""
        found = super().overtaken(channel)
        return found[1:] if channel in self.cut else found


class _ExcessKept(SenderPool):
    """A channel uses as many buffers as it can, whatever its share is."""

    def permits(self, channel: str, held: int) -> bool:
        """Whether a channel can use another buffer."""
        return held < LARGEST_SHARE


class _RoundedDown(SenderPool):
    """Each channel gets the whole part of its share; the rest belongs to none."""

    def shares(self, channels: Sequence[str], buffers: int) -> dict[str, int]:
        """All the same."""
        return dict.fromkeys(channels, min(LARGEST_SHARE, buffers // len(channels)))


class _NoReserve(SenderPool):
    """The first channels get what they can use, and no buffer is kept for the last ones."""

    def shares(self, channels: Sequence[str], buffers: int) -> dict[str, int]:
        """In their order."""
        return {c: max(0, min(LARGEST_SHARE, buffers - LARGEST_SHARE * at)) for at, c in enumerate(channels)}


SUBTASKS: dict[str, type[BatonSubtask]] = {
    "shared-deserialiser": SharedDeserialiser,
    "begun-forgotten": BegunForgotten,
    "barrier-between-parts": BarrierBetweenParts,
}
"""Variants of subtasks by name."""
FLOWS: dict[str, FlowRules] = {
    "barrier-between-parts": FlowRules(outputs=_BarriersFirst),
    "cut-forgotten": FlowRules(outputs=_CutForgotten),
}
"""What variants of records that span buffers do at a sender."""
POOLS: dict[str, FlowRules] = {
    "excess-kept": FlowRules(pool=_ExcessKept),
    "shares-rounded-down": FlowRules(pool=_RoundedDown),
    "no-reserve": FlowRules(pool=_NoReserve),
}
"""Variants of pools by name."""
