"""What a drive has covered of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import field

from streamproof.base.records import dataclass
from streamproof.conformance.event import Event
from streamproof.driving.following import leaves
from streamproof.system.model import State


@dataclass(slots=True)
class DriveCoverage:
    """What was driven: counts of calls by outcome, of accepted actions, of pairs of them, and of compared values."""

    calls: int = 0
    values: int = 0
    refusals: int = 0
    """Refusals that the model was compared with."""
    scripts: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unsupported: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    states: set[State] = field(default_factory=set)
    """Possible states of the model, at most a few of those after a call."""
    instances: Counter[str] = field(default_factory=Counter)
    """Accepted actions with their arguments."""
    observed: set[str] = field(default_factory=set)
    """Variables with observed values."""
    absent: set[str] = field(default_factory=set)
    """Actions that the adapter declares to be unsupported or hidden."""

    def count(self, event: Event, actions: Collection[str], times: int = 1) -> None:
        """Counts an event, of which `actions` are those of the model."""
        if event.state:
            self.values += times * leaves(event.state)
            self.observed |= compared(event)
        if event.refused:
            self.refusals += times
        elif event.event in actions:
            self.accepted[event.event] += times
            self.instances[called(event)] += times


def called(event: Event) -> str:
    """An event with its arguments."""
    return f"{event.event}({', '.join(f'{name}={value}' for name, value in event.args.items())})"


def compared(event: Event) -> frozenset[str]:
    """The variables of which an event has a value."""
    return frozenset(name for name, value in (event.state or {}).items() if leaves(value))
