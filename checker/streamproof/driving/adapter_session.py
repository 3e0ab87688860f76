"""What the scripts that run on one adapter share: its connection, what it declared, the trackers, and remembered turns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from streamproof.base.errors import InputError, UsageError, did_you_mean
from streamproof.conformance.event_log import OBSERVE, EventLog
from streamproof.driving.connection import AdapterSource, Answered, Connection
from streamproof.driving.drive_subject import Subject
from streamproof.driving.following import DriveRules, Following
from streamproof.driving.messages import Message
from streamproof.driving.turns import Tally, TurnMemory
from streamproof.interrupts import requested
from streamproof.system.model import System

PATIENCE = 100
"""Number of observations without any value after which the state is observed at the end of scripts only."""


class AdapterSession:
    """An adapter, which is started when it is needed, and again after a failure; and what is known of it.

    Raises `UsageError` for a model with an action that has the name of observations.
    """

    def __init__(self, subject: Subject, source: AdapterSource, seed: int = 0, deadline: float | None = None) -> None:
        self.subject, self.source, self.seed, self.deadline = subject, source, seed, deadline
        self.own: frozenset[str] = frozenset()
        self.absent: frozenset[str] = frozenset()
        self.hidden: frozenset[str] = frozenset()
        self.declared: tuple[frozenset[str], ...] = ()
        """The names that the adapter gave with its last answer to a reset."""
        self.actions = frozenset(a.name for a in subject.system.actions)
        if OBSERVE in self.actions:
            raise UsageError(
                f"{subject.system.name} has an action {OBSERVE!r}, which in a drive is the event of observed values",
                remedy="give the action another name",
            )
        self.tally = Tally(self.actions)
        self.memory = TurnMemory()
        self._connection: Connection | None = None
        self._rules: dict[frozenset[str], DriveRules] = {}
        self._empty = 0
        """Number of observations before the first one with a value."""
        self.is_observing = True
        """Whether the state is observed after each call, not only at the end of scripts: unless there never is any."""
        self.has_observed = False
        """Whether an observation has had a value."""
        self._larger: list[System] | None = None
        self.has_answered = False
        """Whether the adapter has answered any call."""
        self.bounded: set[tuple[str, frozenset[str]]] = set()
        """Calls that the implementation accepts and a larger instance of the model permits: each an action with the
        conditions of its guard that were false."""

    def close(self) -> None:
        """Ends the adapter."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def declare(self, answer: Message) -> None:
        """Takes over the names of actions in an answer to a reset. Raises `InputError` for others than the model's."""
        hidden = self._known(answer.names("hidden"), "hidden")
        own = self._known(answer.names("own"), "own")
        absent = hidden | self._known(answer.names("unsupported"), "unsupported")
        if (own, absent, hidden) != self.declared:
            self.declared = self.own, self.absent, self.hidden = own, absent, hidden
            self.memory.forget()
        self.tally.counts.absent |= absent

    def _known(self, names: Sequence[str], what: str) -> frozenset[str]:
        for name in names:
            if name not in self.actions:
                raise InputError(
                    f"the adapter lists {name!r} as {what}, and {self.subject.system.name} has no such action",
                    remedy=did_you_mean(name, self.actions),
                )
        return frozenset(names)

    def observed(self, something: bool) -> None:
        """Counts observations until there is one with a value."""
        self.has_observed = self.has_observed or something
        self._empty += not self.has_observed
        self.is_observing = self.has_observed or self._empty < PATIENCE

    def is_over(self) -> bool:
        """Whether the time is over, or the user has interrupted the program."""
        return requested() or (self.deadline is not None and time.monotonic() >= self.deadline)

    def call(self, call: Mapping[str, Any]) -> Answered:
        """One call of the adapter. Raises `AdapterFailure`."""
        found = self.connection.call(call)
        self.has_answered = True
        return found

    @property
    def connection(self) -> Connection:
        """The connection to the adapter, which is started if it does not run. Raises `AdapterFailure`."""
        if self._connection is None:
            self._connection = self.source.connect()
        return self._connection

    def following(self, name: str, hidden: frozenset[str]) -> Following:
        """A new behaviour; caches are those of earlier ones."""
        if hidden not in self._rules:
            self._rules[hidden] = DriveRules(EventLog(self.subject.system, hidden=hidden))
        return Following(self._rules[hidden], name)

    def larger(self) -> Sequence[System]:
        """Larger instances of the model, which are made once."""
        if self._larger is None:
            self._larger = list(self.subject.larger())
        return self._larger
