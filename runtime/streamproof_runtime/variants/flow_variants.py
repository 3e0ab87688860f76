"""Variants of flow control that omit or change one rule, to be switched on for demonstration, by the names of the model."""

from __future__ import annotations

from collections.abc import Iterable

from streamproof_runtime.subtasks.flow import BUFFERS, FLOATING, FlowRules, Gate, Outputs


class NoCredit(Outputs):
    """A buffer leaves without a credit."""

    def has_credit(self, channel: str) -> bool:
        """Always."""
        return True


class CreditBeforeFree(Gate):
    """A buffer is a credit again when it arrives, not when it has been consumed."""

    def receive(self, channel: str, backlog: int) -> None:
        """A new credit at once."""
        super().receive(channel, backlog)
        self.unannounced[channel] += 1

    def recycle(self, channel: str) -> None:
        """The buffer is a credit already."""
        self.free[channel] += 1


class FloatingLeak(Gate):
    """A channel that has ended keeps its buffers, that of END among them."""

    def release(self, channel: str) -> None:
        """Nothing is free again."""
        self.released.add(channel)


class UncountedLending(Gate):
    """The pool grants its buffers to every channel, without accounting."""

    def lend(self, channel: str) -> int:
        """The pool stays as it is."""
        before, lent = self.pool, super().lend(channel)
        self.pool = before
        return lent


class LostAnnouncement(Gate):
    """Every third announcement of credits is lost, and not repeated."""

    def __init__(self, channels: Iterable[str], exclusive: int = BUFFERS, floating: int = FLOATING) -> None:
        super().__init__(channels, exclusive, floating)
        self._sent = 0

    def is_sent(self) -> bool:
        """Two of three times."""
        self._sent += 1
        return self._sent % 3 != 0


FLOWS: dict[str, FlowRules] = {
    "no-credit": FlowRules(outputs=NoCredit),
    "blocked-connection": FlowRules(outputs=NoCredit, stops_reading=True),
    "credit-before-free": FlowRules(gate=CreditBeforeFree),
    "floating-leak": FlowRules(gate=FloatingLeak),
    "uncounted-lending": FlowRules(gate=UncountedLending),
    "lost-announcement": FlowRules(gate=LostAnnouncement),
    "zero-exclusive-silent": FlowRules(has_exclusive=False, announces_backlog=False),
    "no-fence": FlowRules(fenced=False),
}
"""All variants by name."""
BY_RESULT = frozenset({"lost-announcement", "zero-exclusive-silent"})
"""Variants that do what the rules allow, but get stuck."""
