"""The TaskExecutors of a job at its JobMaster: slots, heartbeats without answer, and the wait for all of them."""

from __future__ import annotations


class ExecutorRegistry:
    """Registered TaskExecutors by name."""

    def __init__(self, needed: int, expected: int) -> None:
        """`needed`: the slots that the job needs; `expected`: the TaskExecutors that a deployment waits for at first."""
        self._needed, self._expected = needed, expected
        self.slots: dict[str, int] = {}
        """Slots of each TaskExecutor."""
        self.silent: dict[str, int] = {}
        """Heartbeats without answer."""
        self.waits = False
        """Whether the deployment waits for all that are expected."""

    def add(self, executor: str, slots: int) -> None:
        """A TaskExecutor has registered."""
        self.slots[executor], self.silent[executor] = slots, 0

    def remove(self, executor: str) -> bool:
        """A TaskExecutor is lost. Whether it was registered."""
        return self.slots.pop(executor, None) is not None

    def offered(self) -> list[str]:
        """The TaskExecutor of each slot, in turn over all of them; none if there are too few yet."""
        most = max(self.slots.values(), default=0)
        found = [peer for level in range(most) for peer in sorted(self.slots) if self.slots[peer] > level]
        if len(found) < self._needed or (self.waits and len(self.slots) < self._expected):
            return []
        return found
