"""What a recorded job did, for drawings: its job graph with regions, and its execution attempts with their states over time.

A history restates the log; no verdict depends on it. `JobHistory.record` writes the field `history` of the verdict's JSON,
from which ``streamproof report`` draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from streamproof.base.records import dataclass
from streamproof.conformance.event import Event

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
class JobHistory:
    """The graph, the states and the attempts of one job. `missing`: unknown parts of the graph, in sentences."""

    vertices: tuple[DrawnVertex, ...]
    edges: tuple[DrawnEdge, ...]
    states: tuple[Since, ...]
    attempts: tuple[DrawnAttempt, ...]
    missing: tuple[str, ...] = ()

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
            "rejected": [_rejected(event, message, place) for event, message in rejected],
        }


def _rejected(event: Event | None, message: str, place: Mapping[str, int]) -> dict[str, Any]:
    attempt = event.args.get("attempt") if event else None
    return {
        "at": event.ts if event else None,
        "attempt": place.get(attempt) if isinstance(attempt, str) else None,
        "file": event.file if event else None,
        "line": event.line if event else None,
        "message": message,
    }
