"""What following a run ends with: the outcome of each behaviour, and the verdict of each case, with its serialised form.

`Tracked` is what the tracker found of one behaviour, `RunVerdict` what its case gets for it. `RunVerdict.record` writes the
JSON of ``streamproof validate --json``, which ``streamproof report`` reads; nothing else builds such records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Literal

from streamproof.conformance.events import Event
from streamproof.system import State, System
from streamproof.system.records import dataclass

SCHEMA: Final = "streamproof.verdict/1"

Answer = Literal["accepted", "rejected", "inconclusive", "error"]

ANSWERS: Final[tuple[Answer, ...]] = ("accepted", "rejected", "inconclusive", "error")
"""The verdicts that a case can get, best first."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An action the event could have meant, and why it is not possible. `distance` counts the moves that were missing.

    `demand`: the action is possible, but what the event says of the state is not so.
    """

    action: str
    because: str
    distance: int = 0
    demand: bool = False


@dataclass(frozen=True, slots=True)
class Rejection:
    """The first event that no behaviour of the machine explains, after `index` accepted ones.

    `states` counts the states of the machine that fitted those, `before` has some of them, as text by variable. Where the log
    contradicts itself there are no `candidates`: no action would make both true.

    `kind`: `contradiction` (the log contradicts itself), `action` (nothing that the event can mean is possible), `state`
    (it is, but not with what the event says of the state), `property` (the log's end breaks an invariant).
    """

    index: int
    event: Event | None
    kind: str
    message: str
    candidates: tuple[Candidate, ...] = ()
    nearest: str | None = None
    expected: tuple[str, ...] = ()
    states: int = 0
    before: tuple[Mapping[str, str], ...] = ()

    def record(self) -> dict[str, Any]:
        """As plain data for verdict records."""
        event = self.event
        return {
            "index": self.index,
            "prefix": self.index,
            "event": event.event if event else None,
            "kind": self.kind,
            "file": event.file if event else None,
            "line": event.line if event else None,
            "at": str(event) if event else None,
            "message": self.message,
            "candidates": [{"action": c.action, "because": c.because} for c in self.candidates],
            "expected": list(self.expected),
            "nearest": self.nearest,
            "states": self.states,
            "states_before": [dict(state) for state in self.before],
        }


@dataclass(frozen=True, slots=True)
class Tracked:
    """The outcome of following one behaviour. `actions` counts them along one explanation of the accepted prefix.

    `events` are the accepted ones. `readings` has, by position among them, what those whose observation `reads` something
    read: the distinct values in the states that are possible after the event.
    """

    accepted: bool
    events: tuple[Event, ...]
    actions: Counter[str]
    largest_belief: int
    rejection: Rejection | None = None
    exhausted: str | None = None
    final: tuple[State, ...] = ()
    readings: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def matched(self) -> int:
        """How many events were accepted."""
        return len(self.events)


@dataclass(frozen=True, slots=True)
class Recovery:
    """One recovery from a failure: when it was decided and when it was complete, and what was restarted.

    `announced` is the number of restarted tasks by the log; `tasks` is None where the machine allows several sets.
    """

    decided: str | None
    failed: str
    cause: str | None
    announced: int
    tasks: tuple[str, ...] | None = None
    recovered: str | None = None

    def record(self) -> dict[str, Any]:
        """As plain data for verdict records."""
        return {
            "decided": self.decided,
            "recovered": self.recovered,
            "failed": self.failed,
            "cause": self.cause,
            "announced": self.announced,
            "size": self.announced if self.tasks is None else len(self.tasks),
            "tasks": list(self.tasks or ()),
        }


@dataclass(frozen=True, slots=True)
class Followed:
    """The model that a case was followed through, the actions along one explanation, and the largest belief."""

    variant: str | None
    parameters: Mapping[str, str | int | bool]
    actions: Mapping[str, int]
    model_actions: tuple[str, ...]
    belief: int

    @classmethod
    def of(cls, system: System, tracked: Tracked) -> Followed:
        """What followed a behaviour, and how far."""
        return cls(
            system.variant,
            {k: v for k, v in system.parameters.items() if isinstance(v, str | int | bool)},
            dict(tracked.actions),
            tuple(a.name for a in system.actions if a.instances),
            tracked.largest_belief,
        )


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The verdict of one case of a run. `unit` names what a case is about.

    `read` counts its events, `matched` those that were accepted, `unknown` the records of the run that were not read.
    `behaviours` counts what was followed; None where nothing was.
    """

    run: str
    trace: str
    model: str
    answer: Answer
    reason: str | None = None
    unit: str = "job"
    title: str = ""
    read: int = 0
    matched: int = 0
    unknown: int = 0
    followed: Followed | None = None
    recoveries: tuple[Recovery, ...] = ()
    rejection: Rejection | None = None
    behaviours: int | None = None

    def record(self) -> dict[str, Any]:
        """As plain data that JSON can carry, schema `streamproof.verdict/1`."""
        ignored = max(self.read - self.matched, 0)
        followed = self.followed
        record: dict[str, Any] = {
            "schema": SCHEMA,
            "run": self.run,
            "trace": self.trace,
            "unit": self.unit,
            "model": self.model,
            "variant": followed.variant if followed else None,
            "parameters": dict(followed.parameters) if followed else {},
            "verdict": self.answer,
            "reason": self.reason,
            "title": self.title,
            "events": {"read": self.read, "matched": self.matched, "ignored": ignored, "unknown": self.unknown},
            "actions": dict(followed.actions) if followed else {},
            "model_actions": list(followed.model_actions) if followed else [],
            "recoveries": [recovery.record() for recovery in self.recoveries],
            "rejection": self.rejection.record() if self.rejection else None,
        }
        if self.behaviours is not None:
            record["behaviours"] = self.behaviours
        if followed is not None:
            record["belief"] = followed.belief
        return record
