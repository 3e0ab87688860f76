"""The part of a verdict record from which the page draws a run: its history, its restarts, and the states before a rejection.

The page's code relies on the types and positions that are checked here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from streamproof.pipeline.fields import BadRecord, as_count, as_list, as_mapping, as_optional_text, as_text, as_time


def history_row(record: Mapping[str, Any]) -> str | None:
    """JSON text of the drawn parts of a verdict, with times in seconds since 1970; None if there are none.

    Raises `BadRecord`.
    """
    history, rejection = record.get("history"), record.get("rejection")
    if history is None and rejection is None:
        return None
    recoveries = as_list(record.get("recoveries"), "recoveries")
    return json.dumps(
        {
            "history": None if history is None else _history(as_mapping(history, "history")),
            "restarts": [_restart(item, f"recoveries[{at}]") for at, item in enumerate(recoveries)],
            "rejection": None if rejection is None else _rejection(as_mapping(rejection, "rejection")),
        }
    )


def _history(data: Mapping[str, Any]) -> dict[str, Any]:
    vertices = [_vertex(item, f"vertices[{at}]") for at, item in enumerate(as_list(data.get("vertices"), "vertices"))]
    attempts = [
        _attempt(item, len(vertices), f"attempts[{at}]")
        for at, item in enumerate(as_list(data.get("attempts"), "attempts"))
    ]
    return {
        "vertices": vertices,
        "edges": [_edge(item, len(vertices)) for item in as_list(data.get("edges"), "edges")],
        "missing": [as_text(item, "missing") for item in as_list(data.get("missing"), "missing")],
        "states": _states(data.get("states"), "history.states"),
        "attempts": attempts,
        "total_attempts": as_count(data.get("total_attempts", len(attempts)), "history.total_attempts"),
        "rejected": [_mark(item, len(attempts)) for item in as_list(data.get("rejected"), "history.rejected")],
    }


def _vertex(item: object, place: str) -> dict[str, Any]:
    data = as_mapping(item, place)
    regions = [as_count(region, f"{place}.regions") for region in as_list(data.get("regions"), f"{place}.regions")]
    return {
        "name": as_text(data.get("name"), f"{place}.name"),
        "parallelism": as_count(data.get("parallelism"), f"{place}.parallelism"),
        "regions": regions,
    }


def _edge(item: object, vertices: int) -> dict[str, Any]:
    data = as_mapping(item, "edges[]")
    return {
        "source": _position(data.get("source"), vertices, "edges[].source"),
        "target": _position(data.get("target"), vertices, "edges[].target"),
        "exchange": as_optional_text(data.get("exchange"), "edges[].exchange"),
        "pattern": as_optional_text(data.get("pattern"), "edges[].pattern"),
    }


def _attempt(item: object, vertices: int, place: str) -> dict[str, Any]:
    data = as_mapping(item, place)
    return {
        "vertex": _position(data.get("vertex"), vertices, f"{place}.vertex"),
        "subtask": as_count(data.get("subtask"), f"{place}.subtask"),
        "number": as_count(data.get("number"), f"{place}.number"),
        "place": as_optional_text(data.get("place"), f"{place}.place"),
        "states": _states(data.get("states"), f"{place}.states"),
    }


def _mark(item: object, attempts: int) -> dict[str, Any]:
    data = as_mapping(item, "rejected[]")
    attempt, line = data.get("attempt"), data.get("line")
    return {
        "at": _seconds(data.get("at"), "rejected[].at"),
        "attempt": None if attempt is None else _position(attempt, attempts, "rejected[].attempt"),
        "file": as_optional_text(data.get("file"), "rejected[].file"),
        "line": None if line is None else as_count(line, "rejected[].line"),
        "message": as_text(data.get("message"), "rejected[].message"),
    }


def _restart(item: object, place: str) -> dict[str, Any]:
    data = as_mapping(item, place)
    announced = data.get("announced")
    return {
        "decided": _seconds(data.get("decided"), f"{place}.decided"),
        "failed": as_optional_text(data.get("failed"), f"{place}.failed") or "",
        "cause": as_optional_text(data.get("cause"), f"{place}.cause"),
        "announced": None if announced is None else as_count(announced, f"{place}.announced"),
        "tasks": [as_text(task, f"{place}.tasks") for task in as_list(data.get("tasks"), f"{place}.tasks")],
        "why": [_reason(reason, f"{place}.why") for reason in as_list(data.get("why"), f"{place}.why")],
    }


def _reason(item: object, place: str) -> dict[str, Any]:
    data = as_mapping(item, place)
    return {
        "tasks": [as_text(task, f"{place}.tasks") for task in as_list(data.get("tasks"), f"{place}.tasks")],
        "reason": as_text(data.get("reason"), f"{place}.reason"),
        "partition": as_optional_text(data.get("partition"), f"{place}.partition"),
    }


def _rejection(data: Mapping[str, Any]) -> dict[str, Any]:
    frontier = data.get("frontier")
    before = as_list(data.get("states_before"), "rejection.states_before")
    named = [as_mapping(state, "rejection.states_before[]") for state in before]
    return {
        "index": as_count(data.get("index") or 0, "rejection.index"),
        "at": as_optional_text(data.get("at"), "rejection.at"),
        "states": as_count(data.get("states") or 0, "rejection.states"),
        "nearest": as_optional_text(data.get("nearest"), "rejection.nearest"),
        "before": [
            {str(name): as_text(value, "rejection.states_before[]") for name, value in s.items()} for s in named
        ],
        "frontier": None if frontier is None else _frontier(as_mapping(frontier, "rejection.frontier")),
    }


def _frontier(data: Mapping[str, Any]) -> dict[str, Any]:
    states = [
        [as_text(value, "frontier.states[][]") for value in as_list(state, "frontier.states[]")]
        for state in as_list(data.get("states"), "frontier.states")
    ]
    matches = []
    for item in as_list(data.get("matches"), "frontier.matches"):
        match = as_mapping(item, "frontier.matches[]")
        matches.append(
            {
                "state": _position(match.get("state"), len(states), "frontier.matches[].state"),
                "taken": [
                    as_text(action, "frontier.matches[].taken")
                    for action in as_list(match.get("taken"), "frontier.matches[].taken")
                ],
                "then": as_text(match.get("then") or "", "frontier.matches[].then"),
                "because": as_text(match.get("because") or "", "frontier.matches[].because"),
            }
        )
    return {"states": states, "matches": matches}


def _states(value: object, place: str) -> list[list[Any]]:
    found = []
    for item in as_list(value, place):
        pair = as_list(item, place)
        if len(pair) != 2:
            raise BadRecord(f"`{place}` must be pairs of a state and a time")
        found.append([as_text(pair[0], place), _seconds(pair[1], place)])
    return found


def _seconds(value: object, place: str) -> float | None:
    found = as_time(value, place)
    return None if found is None else found.timestamp()


def _position(value: object, size: int, place: str) -> int:
    if (found := as_count(value, place)) >= size:
        raise BadRecord(f"`{place}` is {found}, but there are {size}")
    return found
