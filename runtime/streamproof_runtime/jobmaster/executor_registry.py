"""The TaskExecutors of a job at its JobMaster: slots, heartbeats without answer, and the wait for enough slots."""

from __future__ import annotations


class ExecutorRegistry:
    """Registered TaskExecutors by name."""

    def __init__(self) -> None:
        self.slots: dict[str, int] = {}
        """Slots of each TaskExecutor, whether allocated or not."""
        self.silent: dict[str, int] = {}
        """Heartbeats without answer."""
        self.waits = False
        """Whether the deployment waits for all slots that can be expected."""

    def add(self, executor: str, slots: int) -> None:
        """A TaskExecutor has registered."""
        self.slots[executor], self.silent[executor] = slots, 0

    def remove(self, executor: str) -> bool:
        """A TaskExecutor is lost. Whether it was registered."""
        return self.slots.pop(executor, None) is not None
