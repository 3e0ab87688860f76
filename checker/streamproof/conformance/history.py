"""What a recorded job did, for drawings: its job graph with regions, and its execution attempts with their states over time.

A history restates the log; no verdict depends on it. `JobHistory.record` writes the field `history` of the verdict's JSON,
from which ``streamproof report`` draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from streamproof.base.records import dataclass
from streamproof.conformance.event import Event

MOST_HAPPENINGS: Final = 2_000
"""Maximum number of happenings in a record; `total_happenings` counts all of them."""
MOST_ATTEMPTS: Final = 10_000
"""Maximum number of attempts in a record; `total_attempts` counts all of them."""

Since: TypeAlias = tuple[str, str | None]
"""A state, and the time of the line that says so."""


@dataclass(frozen=True, slots=True)
class DrawnVertex:
    """A job vertex. `regions` has the number of the pipelined region of each subtask; empty if the regions are unknown."""

    name: str
    parallelism: int
    regions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge between two vertices, given by their positions. None: unknown."""

    source: int
    target: int
    exchange: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class DrawnAttempt:
    """An execution attempt, and its states in the order of the log.

    `id` is the argument `attempt` of its events, `vertex` a position, `place` the TaskManager to which it was deployed.
    """

    id: str
    vertex: int
    subtask: int
    number: int
    states: tuple[Since, ...]
    place: str | None = None


@dataclass(frozen=True, slots=True)
class DrawnCheckpoint:
    """A checkpoint: the times of the lines about its beginning and its end, and `outcome`: pending, completed or failed."""

    number: int
    begun: str | None
    ended: str | None = None
    outcome: str = "pending"

    def record(self) -> dict[str, Any]:
        """As plain data for verdict records."""
        return {"number": self.number, "begun": self.begun, "ended": self.ended, "outcome": self.outcome}


@dataclass(frozen=True, slots=True)
class Designed:
    """Behaviour by design that one might not expect: a sentence, and the page of the documentation about it."""

    text: str
    page: str

    def record(self) -> dict[str, Any]:
        """As plain data for verdict records."""
        return {"text": self.text, "page": self.page}


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a job, as a line of its logs says.

    `kind`: `job` (the job changes its state), `failure`, `decision` (what restarts is decided), `lost` and `returned` (a
    process), `after` (a process is lost after the job has ended), `restored` (state is restored), `checkpoint` (one fails),
    `discarded` (finished work is lost), `resources` (some are missing). `facts` are further sentences; `file` and `line` the
    place; `process` is the one that is lost or returns; `checkpoint` is the restored one, 0 for none.
    """

    kind: str
    at: str | None
    text: str
    facts: tuple[str, ...] = ()
    file: str | None = None
    line: int | None = None
    designed: Designed | None = None
    process: str | None = None
    checkpoint: int | None = None

    def record(self) -> dict[str, Any]:
        """As plain data for verdict records."""
        return {
            "kind": self.kind,
            "at": self.at,
            "text": self.text,
            "facts": list(self.facts),
            "file": self.file,
            "line": self.line,
            "designed": None if self.designed is None else self.designed.record(),
            "process": self.process,
            "checkpoint": self.checkpoint,
        }


@dataclass(frozen=True, slots=True)
class JobHistory:
    """The graph, the states and the attempts of one job, and what happened to it, in order. `missing`: unknown parts of the
    graph, in sentences. `ends`: the time of the last line of its JobManagers."""

    vertices: tuple[DrawnVertex, ...]
    edges: tuple[DrawnEdge, ...]
    states: tuple[Since, ...]
    attempts: tuple[DrawnAttempt, ...]
    missing: tuple[str, ...] = ()
    happenings: tuple[Happening, ...] = ()
    checkpoints: tuple[DrawnCheckpoint, ...] = ()
    ends: str | None = None

    def record(self, rejected: Sequence[tuple[Event | None, str]] = ()) -> dict[str, Any]:
        """As plain data for verdict records, with the rejected events and their messages; None is the end of the log."""
        kept = self.attempts[:MOST_ATTEMPTS]
        place = {attempt.id: at for at, attempt in enumerate(kept)}
        return {
            "vertices": [
                {"name": v.name, "parallelism": v.parallelism, "regions": list(v.regions)} for v in self.vertices
            ],
            "edges": [
                {"source": e.source, "target": e.target, "exchange": e.exchange, "pattern": e.pattern}
                for e in self.edges
            ],
            "missing": list(self.missing),
            "states": [list(since) for since in self.states],
            "attempts": [
                {
                    "vertex": a.vertex,
                    "subtask": a.subtask,
                    "number": a.number,
                    "place": a.place,
                    "states": [list(since) for since in a.states],
                }
                for a in kept
            ],
            "total_attempts": len(self.attempts),
            "happenings": [happening.record() for happening in self.happenings[:MOST_HAPPENINGS]],
            "total_happenings": len(self.happenings),
            "checkpoints": [checkpoint.record() for checkpoint in self.checkpoints[:MOST_HAPPENINGS]],
            "ends": self.ends,
            "rejected": [_rejected(event, message, place) for event, message in rejected],
        }


def seconds_of(text: str | None) -> float | None:
    """A time in seconds, for differences within one log; one without a zone is read as UTC. None if it has no date."""
    try:
        found = None if text is None else datetime.fromisoformat(text)
        return None if found is None else (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _rejected(event: Event | None, message: str, place: Mapping[str, int]) -> dict[str, Any]:
    attempt = event.args.get("attempt") if event else None
    return {
        "at": event.ts if event else None,
        "attempt": place.get(attempt) if isinstance(attempt, str) else None,
        "file": event.file if event else None,
        "line": event.line if event else None,
        "message": message,
    }
