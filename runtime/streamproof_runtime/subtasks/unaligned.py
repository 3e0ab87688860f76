"""Unaligned checkpoints at one subtask: barriers overtake buffers, and the buffers under way are part of the snapshots.

With the first barrier of a checkpoint, or when the JobMaster asks a source, a subtask finishes the buffer that it processes,
and takes its snapshot. Its barriers overtake the buffers that wait for credit at its outputs: those are in its snapshot. A
barrier that arrives overtakes the buffers in the queue of its input. What the subtask holds, what waits in front of a
barrier, and what it takes from an input between its snapshot and the barrier of that input, or END, is in its snapshot, too.
A restart sends all of these again, from the beginning of each channel: those at the receiver first.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from streamproof_runtime.jobs.graph import ExecutionGraph
from streamproof_runtime.jobs.records import FORM
from streamproof_runtime.subtasks.barriers import Snapshot
from streamproof_runtime.subtasks.feedback_logs import Logged

Buffers: TypeAlias = Iterable[tuple[int, list[Any]]]
"""Inputs of the receiver, and records."""


class InFlight:
    """The buffers under way to and from one subtask that are in its snapshot."""

    def __init__(self, waiting: Callable[[str], Buffers]) -> None:
        """`waiting`: what is in the queue of an input, before END."""
        self._waiting = waiting
        self._early: dict[str, list[tuple[int, bytes]]] = {}
        """What was in front of barriers that have come before the snapshot."""
        self.open: set[str] = set()
        """Inputs whose barrier has not come since the snapshot: what is taken from them is logged."""
        self._logged: dict[str, list[tuple[int, bytes]]] = {}

    def arrives(self, channel: str, *, is_first: bool) -> None:
        """The barrier of the next checkpoint has come; with the first one those of an aborted one before are forgotten."""
        if is_first:
            self._early = {}
        self._early[channel] = _packed(self._waiting(channel))

    def depart(self, inputs: Iterable[str], ended: Iterable[str], held: Iterable[tuple[int, list[Any], str]]) -> None:
        """The snapshot is taken; `ended`: inputs on which END has come."""
        ended = {*ended}
        self._logged = {channel: [] for channel in inputs}
        for side, records, channel in held:
            self._logged[channel] += _packed([(side, records)])
        self.open = self._logged.keys() - self._early.keys() - ended
        for channel in ended - self._early.keys():
            self._logged[channel] += _packed(self._waiting(channel))
        for channel, found in self._early.items():
            self._logged[channel] += found
        self._early = {}

    def note(self, channel: str, side: int, records: list[Any]) -> None:
        """A buffer is taken."""
        if channel in self.open:
            self._logged[channel] += _packed([(side, records)])

    def close(self, channel: str) -> None:
        """The barrier of the snapshot, or END, has come."""
        if channel in self.open:
            self.open.discard(channel)
            self._logged[channel] += _packed(self._waiting(channel))

    def overtaken(self, channel: str, waiting: Buffers) -> None:
        """The barrier has overtaken these buffers of an output."""
        self._logged[channel] = _packed(waiting)

    def complete(self) -> Logged:
        """All buffers of the snapshot."""
        found, self._logged = self._logged, {}
        return found


def _packed(buffers: Buffers) -> list[tuple[int, bytes]]:
    return [(side, marshal.dumps(records, FORM)) for side, records in buffers]


def redistributed(snapshots: Mapping[str, Snapshot], graph: ExecutionGraph) -> dict[str, Snapshot]:
    """The snapshots with the buffers of each channel at the subtask that begins with them: the sender, or the head of a loop.
    Those that had arrived are in front of those that had not. A subtask without a snapshot begins anew, with none."""
    owner = {name: c.target if c.edge.feedback else c.source for name, c in graph.channels.items()}
    found: dict[str, dict[str, list[tuple[int, bytes]]]] = {task: {} for task in graph.tasks}
    for is_receiver in (True, False):
        for task, snapshot in snapshots.items():
            for channel, buffers in snapshot[3].items():
                if (graph.channels[channel].target == task) is is_receiver:
                    found[owner[channel]].setdefault(channel, []).extend(buffers)
    return {task: (*snapshot[:3], found[task]) for task, snapshot in snapshots.items()}
