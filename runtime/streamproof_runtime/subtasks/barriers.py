"""Aligned checkpoint barriers at one subtask.

The JobMaster asks for a checkpoint. A source takes its snapshot and sends a *barrier* on its outputs. Another subtask takes
no further item of an input whose barrier it has; when every input has delivered the barrier or END, and no buffer is held,
it takes its snapshot and sends the barrier on. A subtask that has terminated keeps its last state. So the snapshots are a
consistent cut: what was received before a snapshot was sent before one, and all of that was received. Feedback is not
aligned, but logged (`feedback_logs`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

from streamproof_runtime.jobs.functions import Operation
from streamproof_runtime.jobs.records import DEEPEST, own
from streamproof_runtime.subtasks.feedback_logs import Logged

Snapshot: TypeAlias = tuple[int, dict[Any, dict[str, Any]], dict[int, int], Logged]
"""Records that a source has left, the states of the keys, whose turn it is on each edge, and the log of a loop head."""


class Alignment:
    """The checkpoint that a subtask is about to take part in."""

    def __init__(self, inputs: Sequence[str]) -> None:
        self._inputs = inputs
        self._asked: list[int] = []
        self.current = 0
        """The checkpoint whose barriers come, 0 if none has come."""
        self._last = 0
        self.is_asked = False
        """Whether a snapshot is to be taken."""
        self.arrived: set[str] = set()
        """Inputs whose barrier of the current checkpoint has been taken: no further item of them is."""
        self.taken: list[tuple[int, Snapshot]] = []
        """Snapshots that have not been reported yet."""

    def blocks(self, channel: str) -> bool:
        """Whether an input waits for the others."""
        return channel in self.arrived

    @property
    def next(self) -> int:
        """The checkpoint that a snapshot is taken for next."""
        return self.current or self._asked[0]

    def ask(self, checkpoint: int) -> None:
        """The JobMaster triggers a checkpoint; a barrier may have come before."""
        if checkpoint > self._last:
            self._asked.append(checkpoint)
            self.is_asked = True

    def arrive(self, channel: str, checkpoint: int) -> None:
        """The barrier of a checkpoint has been taken."""
        self.current, self.is_asked = checkpoint, True
        self.arrived.add(channel)

    def is_complete(self, ended: Collection[str]) -> bool:
        """Whether every input has delivered the barrier of a checkpoint, or END."""
        return self.is_asked and all(c in self.arrived or c in ended for c in self._inputs)

    def complete(self) -> int:
        """The checkpoint whose snapshot is taken now; all inputs are open again."""
        checkpoint = self.next
        self._asked = [c for c in self._asked if c > checkpoint]
        self.current, self._last, self.arrived = 0, checkpoint, set()
        self.is_asked = bool(self._asked)
        return checkpoint


def state_of(
    left: int, operation: Operation, turn: dict[int, int]
) -> tuple[int, dict[Any, dict[str, Any]], dict[int, int]]:
    """A snapshot without a log: no later step changes it. A state is what a record may be; that of a sink has records inside.

    Raises `Unsendable` for another state.
    """
    return left, own(operation.states, DEEPEST + 3), dict(turn)
