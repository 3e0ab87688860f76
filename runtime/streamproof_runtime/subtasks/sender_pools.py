"""The pool of buffers at a sender: what a subtask sends needs a buffer before it can wait for credit.

Every channel of the subtask has the same share of the pool, up to one buffer, and at least one: so each can send what it has,
whatever waits on the others. What has no buffer yet waits unwritten, and the subtask takes no step meanwhile. A buffer is
free again when it has left. Feedback channels have no credits, and need no pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamproof_runtime.errors import RuntimeFailure
from streamproof_runtime.jobs.graph import ExecutionGraph
from streamproof_runtime.subtasks.subtask import plans

LARGEST_SHARE = 10
"""Buffers that a channel uses at most, as in Flink."""


class SenderPool:
    """The buffers of one subtask for what it sends."""

    def __init__(self, channels: Sequence[str], buffers: int) -> None:
        self.sizes = self.shares(channels, buffers)
        """The share of each channel."""

    def shares(self, channels: Sequence[str], buffers: int) -> dict[str, int]:
        """One buffer for each channel; the rest is dealt out in turn."""
        sizes = dict.fromkeys(channels, 1)
        left = buffers - len(channels)
        for _ in range(LARGEST_SHARE - 1):
            for channel in channels[: max(0, left)]:
                sizes[channel] += 1
            left -= len(channels)
        return sizes

    def permits(self, channel: str, held: int) -> bool:
        """Whether a channel that holds so many buffers gets another one."""
        return held < self.sizes[channel]


def expect_enough(graphs: Iterable[ExecutionGraph], buffers: int | None) -> None:
    """Raises `RuntimeFailure` if a subtask of a region has more channels than its pool has buffers."""
    for graph in graphs:
        for plan in plans(graph).values():
            if buffers is not None and len(plan.outputs) > buffers:
                few = "1 buffer" if buffers == 1 else f"{buffers} buffers"
                raise RuntimeFailure(
                    f"{plan.name} sends on {len(plan.outputs)} channels, each of which needs a buffer, and has {few}; "
                    f"use --sender-buffers {len(plan.outputs)} or more"
                )
