"""The part of a verdict record from which the page draws a run: its history, its restarts, and the states before a rejection.

The page's code relies on the types and positions that are checked here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from streamproof.pipeline.fields import (
    BadRecord,
    Reader,
    as_count,
    as_list,
    as_mapping,
    as_text,
    as_time,
    each,
    optional,
    record,
)


def history_row(verdict: Mapping[str, Any]) -> str | None:
    """JSON text of the drawn parts of a verdict, with times in seconds since 1970; None if there are none.

    Raises `BadRecord`.
    """
    history, rejection = verdict.get("history"), verdict.get("rejection")
    if history is None and rejection is None:
        return None
    recoveries = as_list(verdict.get("recoveries"), "recoveries")
    return json.dumps(
        {
            "history": None if history is None else _history(as_mapping(history, "history")),
            "hangs": any(
                _FINDING(f, "findings[]")["kind"] == "hang" for f in as_list(verdict.get("findings"), "findings")
            ),
            "restarts": [_RESTART(item, f"recoveries[{at}]") for at, item in enumerate(recoveries)],
            "rejection": None if rejection is None else _rejection(as_mapping(rejection, "rejection")),
        }
    )


def _history(data: Mapping[str, Any]) -> dict[str, Any]:
    vertices = [_VERTEX(item, f"vertices[{at}]") for at, item in enumerate(as_list(data.get("vertices"), "vertices"))]
    vertex = _position(len(vertices))
    attempt = record(vertex=vertex, subtask=as_count, number=as_count, place=optional(as_text), states=each(_state))
    listed = as_list(data.get("attempts"), "attempts")
    attempts = [attempt(item, f"attempts[{at}]") for at, item in enumerate(listed)]
    edge = record(source=vertex, target=vertex, exchange=optional(as_text), pattern=optional(as_text))
    mark = record(
        at=_seconds,
        attempt=optional(_position(len(attempts))),
        file=optional(as_text),
        line=optional(as_count),
        message=as_text,
    )
    return {
        "vertices": vertices,
        "edges": [edge(item, "edges[]") for item in as_list(data.get("edges"), "edges")],
        "missing": each(as_text)(data.get("missing"), "missing"),
        "states": each(_state)(data.get("states"), "history.states"),
        "attempts": attempts,
        "total_attempts": as_count(data.get("total_attempts", len(attempts)), "history.total_attempts"),
        "happenings": each(_HAPPENING)(data.get("happenings"), "history.happenings"),
        "checkpoints": each(_CHECKPOINT)(data.get("checkpoints"), "history.checkpoints"),
        "ends": _seconds(data.get("ends"), "history.ends"),
        "rejected": [mark(item, "rejected[]") for item in as_list(data.get("rejected"), "history.rejected")],
    }


def _rejection(data: Mapping[str, Any]) -> dict[str, Any]:
    before = as_list(data.get("states_before"), "rejection.states_before")
    named = [as_mapping(state, "rejection.states_before[]") for state in before]
    return {
        "index": as_count(data.get("index") or 0, "rejection.index"),
        "at": optional(as_text)(data.get("at"), "rejection.at"),
        "states": as_count(data.get("states") or 0, "rejection.states"),
        "nearest": optional(as_text)(data.get("nearest"), "rejection.nearest"),
        "expected": each(as_text)(data.get("expected"), "rejection.expected"),
        "before": [
            {str(name): as_text(value, "rejection.states_before[]") for name, value in s.items()} for s in named
        ],
        "frontier": optional(_frontier)(data.get("frontier"), "rejection.frontier"),
    }


def _frontier(value: object, name: str) -> dict[str, Any]:
    data = as_mapping(value, name)
    listed = as_list(data.get("states"), "frontier.states")
    states = [each(as_text)(state, "frontier.states[]") for state in listed]
    match = record(state=_position(len(states)), taken=each(as_text), then=_text_if_any, because=_text_if_any)
    matches = as_list(data.get("matches"), "frontier.matches")
    return {"states": states, "matches": [match(item, "frontier.matches[]") for item in matches]}


def _state(value: object, name: str) -> list[Any]:
    pair = as_list(value, name)
    if len(pair) != 2:
        raise BadRecord(f"`{name}` must be pairs of a state and a time")
    return [as_text(pair[0], name), _seconds(pair[1], name)]


def _seconds(value: object, name: str) -> float | None:
    found = as_time(value, name)
    return None if found is None else found.timestamp()


def _text_if_any(value: object, name: str) -> str:
    return as_text(value or "", name)


def _position(size: int) -> Reader:
    """Reads a position in a list of this size."""

    def read(value: object, name: str) -> int:
        if (found := as_count(value, name)) >= size:
            raise BadRecord(f"`{name}` is {found}, but there are {size}")
        return found

    return read


_HAPPENING = record(
    kind=as_text,
    at=_seconds,
    text=as_text,
    facts=each(as_text),
    file=optional(as_text),
    line=optional(as_count),
    process=optional(as_text),
)
_CHECKPOINT = record(number=as_count, begun=_seconds, ended=_seconds, outcome=as_text)
_FINDING = record(kind=as_text)
_VERTEX = record(name=as_text, parallelism=as_count, regions=each(as_count))
_REASON = record(tasks=each(as_text), reason=as_text, partition=optional(as_text))
_RESTART = record(
    decided=_seconds,
    failed=lambda value, name: optional(as_text)(value, name) or "",
    cause=optional(as_text),
    announced=optional(as_count),
    tasks=each(as_text),
    why=each(_REASON),
)
