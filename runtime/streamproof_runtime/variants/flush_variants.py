"""Variants of the flush rules, to be switched on for demonstration; both are wrong once there is a buffer timeout."""

from __future__ import annotations

from streamproof_runtime.subtasks.output_buffers import EVENT
from streamproof_runtime.subtasks.termination import BatonSubtask


class BatonOvertakesBuffer(BatonSubtask):
    """END and batons do not wait for what is in unfinished buffers, nor count it as held."""

    def flush(self, why: str) -> None:
        """Only after the timeout."""
        if why != EVENT:
            super().flush(why)


class FlushForgotten(BatonSubtask):
    """A buffer leaves only when it is full."""

    def flush(self, why: str) -> None:
        """Never."""


FLUSHES: dict[str, type[BatonSubtask]] = {
    "baton-overtakes-buffer": BatonOvertakesBuffer,
    "flush-forgotten": FlushForgotten,
}
"""All variants by name."""
