"""The outcome of each behaviour, and the verdict of each case, with its serialised form.

`Tracked` is the tracker's result for one behaviour, `RunVerdict` the verdict of its case. `RunVerdict.record` writes
the JSON of ``streamproof validate --json``, which ``streamproof report`` reads; no other code builds such records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal

from streamproof.base.errors import Exit
from streamproof.base.records import dataclass, replace
from streamproof.conformance.event import Event
from streamproof.conformance.history import Designed, JobHistory
from streamproof.conformance.relation import Relation, weakest
from streamproof.system import State, System

SCHEMA: Final = "streamproof.verdict/1"

MOST_ACCEPTED: Final = 100
"""Maximum number of accepted events that are kept before a rejected one."""

Answer = Literal["accepted", "rejected", "inconclusive", "error"]

ANSWERS: Final[tuple[Answer, ...]] = ("accepted", "rejected", "inconclusive", "error")
"""The possible verdicts of a case, best first."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible action of the event, and why it is not enabled. `distance` counts the missing moves.

    `demand`: the action is enabled, but a constraint of the event on the state is false.
    """

    action: str
    because: str
    distance: int = 0
    demand: bool = False


@dataclass(frozen=True, slots=True)
class PartialMatch:
    """How far one possible meaning of the rejected event gets from a state: the actions `taken`, and why not `then`.

    `state` is the position among the states of the frontier.
    """

    state: int
    taken: tuple[str, ...]
    then: str
    because: str


@dataclass(frozen=True, slots=True)
class Frontier:
    """States consistent with the accepted events, as lines of text about the variables in which they differ, and how far
    the rejected event gets from each."""

    states: tuple[tuple[str, ...], ...]
    matches: tuple[PartialMatch, ...]

    def record(self) -> dict[str, Any]:
        """As plain data for verdict records."""
        return {
            "states": [list(state) for state in self.states],
            "matches": [
                {"state": m.state, "taken": list(m.taken), "then": m.then, "because": m.because} for m in self.matches
            ],
        }


@dataclass(frozen=True, slots=True)
class Rejection:
    """The first event that no behaviour of the machine explains, after `index` accepted ones.

    `states` counts the states of the machine consistent with those, `before` has some of them, as text by variable. If
    the log contradicts itself there are no `candidates`.

    `kind`: `contradiction` (the log contradicts itself), `action` (no possible action of the event is enabled), `state`
    (one is, but the event's constraints on the state are false), `property` (the log's end violates an invariant).
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
    frontier: Frontier | None = None
    accepted: tuple[Event, ...] = ()
    """The last accepted events, at most `MOST_ACCEPTED`; not in records."""

    def after(self, index: int, events: Sequence[Event]) -> Rejection:
        """The rejection after `index` accepted events, of which `events` are the last, in the order of the log."""
        return replace(self, index=index, accepted=tuple(events[-MOST_ACCEPTED:]))

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
            "frontier": self.frontier.record() if self.frontier else None,
        }


@dataclass(frozen=True, slots=True)
class Tracked:
    """The outcome of following one behaviour. `actions` counts them along one explanation of the accepted prefix.

    `events` are the accepted ones. `readings` has, by position among them, the values read by observations with
    `reads`: the distinct values in the states that are possible after the event.
    """

    events: tuple[Event, ...]
    actions: Counter[str]
    largest_belief: int
    rejection: Rejection | None = None
    exhausted: str | None = None
    final: tuple[State, ...] = ()
    readings: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        """Whether all events were explained."""
        return self.rejection is None and self.exhausted is None

    @property
    def matched(self) -> int:
        """The number of accepted events."""
        return len(self.events)


@dataclass(frozen=True, slots=True)
class RestartReason:
    """Why some tasks of a restart set are in it. `because` is the position of the reason that it follows from; `partition`
    the one that links them. Without `tasks` they were never scheduled, but lead to others."""

    tasks: tuple[str, ...]
    reason: str
    partition: str | None = None
    because: int | None = None

    def record(self) -> dict[str, Any]:
        """As plain data for verdict records."""
        return {
            "tasks": list(self.tasks),
            "reason": self.reason,
            "partition": self.partition,
            "because": self.because,
        }


@dataclass(frozen=True, slots=True)
class Recovery:
    """One recovery from a failure: the times of its decision and completion, and the restarted tasks.

    `announced` is the number of restarted tasks in the log; `tasks` is None if the machine allows several sets.
    """

    decided: str | None
    failed: str
    cause: str | None
    announced: int
    tasks: tuple[str, ...] | None = None
    recovered: str | None = None
    why: tuple[RestartReason, ...] = ()
    designed: tuple[Designed, ...] = ()
    """What the implementation does by design although one might not expect it."""

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
            "why": [reason.record() for reason in self.why],
            "designed": [note.record() for note in self.designed],
        }


@dataclass(frozen=True, slots=True)
class RunFinding:
    """What a user should know of a run although the model allows it. `kind`: `hang`, the job can never finish."""

    kind: str
    message: str
    designed: Designed | None = None


@dataclass(frozen=True, slots=True)
class Followed:
    """The model of a case, the actions along one explanation, and the largest belief."""

    variant: str | None
    parameters: Mapping[str, str | int | bool]
    actions: Mapping[str, int]
    model_actions: tuple[str, ...]
    belief: int

    @classmethod
    def of(cls, system: System, tracked: Tracked) -> Followed:
        """The followed behaviour, and the length of its accepted prefix."""
        return cls(
            system.variant,
            {k: v for k, v in system.parameters.items() if isinstance(v, str | int | bool)},
            dict(tracked.actions),
            tuple(a.name for a in system.actions if a.instances),
            tracked.largest_belief,
        )


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The verdict of one case of a run. `unit` is the kind of a case.

    `read` counts its events, `matched` the accepted ones, `unknown` the records of the run that were not read.
    `behaviours` counts the followed behaviours; None if there were none. `rejected` are the rejected events of all of them
    with their messages, in the order of the log; `rejection` is the first.
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
    rejected: tuple[tuple[Event | None, str], ...] = ()
    findings: tuple[RunFinding, ...] = ()
    opened: tuple[tuple[Event, str], ...] = ()
    """Accepted events of which something is not judged, with what it is."""
    history: JobHistory | None = None
    behaviours: int | None = None
    machines: tuple[Relation, ...] = ()
    """The machines that followed the case, with their relations to the model; none if no machine did."""
    unrecorded: bool = False
    """Whether the run has records of another model, and none of this one: the verdict says nothing about the run."""
    exit_code: Exit = Exit.SYSTEM
    """Of an `error`: the kind of failure."""

    def record(self) -> dict[str, Any]:
        """As JSON data, schema `streamproof.verdict/1`."""
        ignored = max(self.read - self.matched, 0)
        followed = self.followed
        record: dict[str, Any] = {
            "schema": SCHEMA,
            "run": self.run,
            "trace": self.trace,
            "unit": self.unit,
            "model": self.model,
            "machine": ", ".join(machine.machine for machine in self.machines) or None,
            "relation": weakest(self.machines),
            "machines": [machine.record() for machine in self.machines],
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
            "findings": [
                {
                    "kind": f.kind,
                    "message": f.message,
                    "designed": None if f.designed is None else f.designed.record(),
                }
                for f in self.findings
            ],
            "open": [{"file": e.file, "line": e.line, "message": text} for e, text in self.opened],
            "history": self.history.record(self.rejected) if self.history else None,
        }
        if self.behaviours is not None:
            record["behaviours"] = self.behaviours
        if followed is not None:
            record["belief"] = followed.belief
        return record
