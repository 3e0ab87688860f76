"""Recorded calls on a channel, and their effects on its machine.

A call takes effect after the calls that it made before and before those that it made after its effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamproof.conformance import Constraint, Move
from streamproof_specs.credit_channel.flink.records import Recorded

Way = tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a call between two moments: `alternatives` with constraints `before` and `afterwards`."""

    opens: int
    closes: int
    alternatives: tuple[Way, ...] = ((),)
    before: tuple[Constraint, ...] = ()
    afterwards: tuple[Constraint, ...] = ()
    requires_before: Constraint | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A recorded call on a channel with the calls it made, its caller, and the end of the preceding call."""

    record: Recorded
    inner: Sequence[Recorded]
    outer: Recorded | None
    before: int
    thread: int
    emptying: bool = False
    """Whether it was made while the buffers of its own channel were released one by one."""

    @property
    def begun(self) -> int:
        """The moment of its beginning."""
        return self.record.begun

    @property
    def acted(self) -> int:
        """The latest moment of its own effect, if it takes effect before its calls."""
        return self.inner[0].begun if self.inner else self.record.done

    @property
    def read(self) -> int:
        """The moment after which its counters were read."""
        return self.inner[-1].done if self.inner else self.record.begun

    def called(self, *names: str) -> Recorded | None:
        """The first call of these names that it made."""
        return next((i for i in self.inner if i.name in names), None)

    def effect(
        self,
        *alternatives: Way,
        before: tuple[Constraint, ...] = (),
        afterwards: tuple[Constraint, ...] = (),
        requires_before: Constraint | None = None,
    ) -> list[Effect]:
        """Its effect, if it takes effect before its calls."""
        return [Effect(self.begun, self.acted, alternatives or ((),), before, afterwards, requires_before)]


@dataclass(frozen=True, slots=True)
class Reading:
    """The interpretation of the calls of one channel."""

    exclusive: int
    pipelined: bool
    release_recorded: bool
    """Whether the consumer's record contains the release of the channel."""
    last_use: int = -1
    """The moment of the last record with an active producer queue; after that it may be gone."""
