"""Upstream logging of the feedback channels of a loop head (FLIP-15, part II; Carbone et al., section 4.3).

A head takes its snapshot when the barrier of a checkpoint has come on all its inputs but feedback, and sends the barrier into
the loop. From then on it logs the records that it takes from each feedback channel, until the barrier has returned on that
channel: they were sent before the snapshot of their sender, and received after that of the head. The log completes the
snapshot of the head. A restart puts it in front of the feedback channels, where it is taken, and logged, like everything
else. Attempts to end the loop are in no snapshot: they begin anew with the END that the sources send again.

A barrier that comes back on a feedback channel before the head has taken its snapshot keeps the channel until then: nothing
of that channel is logged.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from streamproof_runtime.jobs.records import FORM

Logged: TypeAlias = Mapping[str, Sequence[tuple[int, bytes]]]
"""Buffers by feedback channel, the oldest first: the input of the head, and the records as `marshal` writes them."""


class FeedbackLog:
    """What a subtask logs of its feedback channels, if it has any."""

    def __init__(self) -> None:
        self.away: set[str] = set()
        """Channels on which the barrier of the head's snapshot has not returned: their records are logged."""
        self.kept: set[str] = set()
        """Channels on which a barrier has come before the head's snapshot: nothing of them is taken."""
        self._logged: dict[str, list[tuple[int, bytes]]] = {}

    def depart(self, channels: Sequence[str]) -> None:
        """The head has taken its snapshot, and the barrier departs; `channels`: those of feedback."""
        self.away = {*channels} - self.kept
        self.kept, self._logged = set(), {channel: [] for channel in channels}

    def note(self, channel: str, side: int, records: list[Any]) -> None:
        """A buffer has been taken from a channel. What happens to its records later does not change the log."""
        if channel in self.away:
            self._logged[channel].append((side, marshal.dumps(records, FORM)))

    def returned(self, channel: str) -> None:
        """A barrier has been taken from a feedback channel."""
        (self.away.discard if channel in self.away else self.kept.add)(channel)

    def complete(self) -> Logged:
        """The log; nothing more is logged."""
        self.away, found = set(), self._logged
        self._logged = {}
        return found

    def replayed(self, logged: Logged) -> Logged:
        """What a restart puts in front of the feedback channels: the log."""
        return logged


def buffers(logged: Logged) -> list[tuple[str, int, list[Any]]]:
    """The buffers of a log, with their channels, in order."""
    return [(channel, side, marshal.loads(data)) for channel, found in logged.items() for side, data in found]
