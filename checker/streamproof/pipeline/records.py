"""Schemas of events and verdicts, and the row of the Spark table for each.

Every form of input (NDJSON, one JSON document, Parquet) uses these two functions, so that all of them have the same
meaning and the same errors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from streamproof.conformance.run_verdict import ANSWERS, SCHEMA

_TIME = pa.timestamp("us", tz="UTC")

_RECOVERY = pa.struct(
    {
        "number": pa.int64(),
        "decided": _TIME,
        "recovered": _TIME,
        "failed": pa.string(),
        "cause": pa.string(),
        "announced": pa.int64(),
        "size": pa.int64(),
        "tasks": pa.list_(pa.string()),
    }
)
_REJECTION = pa.struct(
    {
        "index": pa.int64(),
        "event": pa.string(),
        "kind": pa.string(),
        "file": pa.string(),
        "line": pa.int64(),
        "message": pa.string(),
    }
)

VERDICT_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("run", "trace", "model", "variant", "parameters", "verdict", "reason"), pa.string()),
    **dict.fromkeys(("read", "matched", "ignored", "unknown"), pa.int64()),
    "actions": pa.list_(pa.struct({"action": pa.string(), "count": pa.int64()})),
    "model_actions": pa.list_(pa.string()),
    "recoveries": pa.list_(_RECOVERY),
    "rejection": _REJECTION,
    "digest": pa.string(),
}
"""One verdict record; `digest` is independent of the order of keys."""

_LARGEST = 2**63 - 1
_NESTED = ("parameters", "events", "actions", "model_actions", "recoveries", "rejection")
_COUNTS = ("read", "matched", "ignored", "unknown")


class BadRecord(ValueError):
    """Why a record is invalid; the caller adds its position."""


EventKey = tuple[str, bool, str, str, str]
"""Run, whether the event names it, trace, process, kind of event: the grouping key of counts."""


def event_row(data: object, run: str) -> tuple[EventKey, datetime | None]:
    """The key and time of one event; `run` is the default from the file's name. Raises `BadRecord`."""
    if not isinstance(data, dict):
        raise BadRecord("this is not a JSON object")
    for name in ("trace", "process", "seq", "event"):
        if data.get(name) is None:
            raise BadRecord(f"the event has no `{name}`")
    seq = data["seq"]
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise BadRecord(f"`seq` must be a whole number, got {_short(seq)}")
    named = data.get("run") is not None
    key = (
        _text(data["run"], "run") if named else run,
        named,
        _text(data["trace"], "trace"),
        _text(data["process"], "process"),
        _text(data["event"], "event"),
    )
    return key, _time(data.get("ts"), "ts")


def verdict_row(data: object) -> tuple[Any, ...]:
    """The values of `VERDICT_TYPES` for one `streamproof.verdict/1` record. Raises `BadRecord`."""
    if not isinstance(data, dict):
        raise BadRecord("the verdict is not a JSON object")
    schema = data.get("schema") or SCHEMA
    if schema != SCHEMA:
        raise BadRecord(f"the verdict is of schema {_short(schema)}, this version reads {SCHEMA}")
    record = {name: _decoded(value, name) if name in _NESTED else value for name, value in data.items()}
    for name in ("run", "model", "verdict"):
        if record.get(name) is None:
            raise BadRecord(f"the verdict has no `{name}`")
    verdict = record["verdict"]
    if verdict not in ANSWERS:
        raise BadRecord(f"`verdict` must be one of {', '.join(ANSWERS)}, got {_short(verdict)}")
    if verdict != "error" and not isinstance(record.get("events"), Mapping):
        raise BadRecord("the verdict has no `events` counts")
    events = _mapping(record.get("events"), "events")
    actions = {
        _text(name, "actions"): _count(count, f"actions.{name}")
        for name, count in _mapping(record.get("actions"), "actions").items()
    }
    rejection = record.get("rejection")
    if rejection is not None and verdict == "accepted":
        raise BadRecord("the verdict is `accepted` and yet names a rejected event")
    return (
        _text(record["run"], "run"),
        _text(record.get("trace") or "", "trace"),
        _text(record["model"], "model"),
        _optional(record.get("variant"), "variant"),
        _json(_mapping(record.get("parameters"), "parameters")),
        verdict,
        _optional(record.get("reason"), "reason"),
        *(_count(events.get(name, 0), f"events.{name}") for name in _COUNTS),
        [{"action": name, "count": count} for name, count in sorted(actions.items())],
        sorted({_text(name, "model_actions") for name in _sequence(record.get("model_actions"), "model_actions")}),
        [_recovery(item, number) for number, item in enumerate(_sequence(record.get("recoveries"), "recoveries"), 1)],
        None if rejection is None else _rejection(_mapping(rejection, "rejection")),
        hashlib.sha256(_json(record).encode()).hexdigest(),
    )


def _recovery(item: object, number: int) -> dict[str, Any]:
    place = f"recoveries[{number - 1}]"
    data = _mapping(item, place)
    tasks = [_text(task, f"{place}.tasks") for task in _sequence(data.get("tasks"), f"{place}.tasks")]
    announced = data.get("announced")
    return {
        "number": number,
        "decided": _time(data.get("decided"), f"{place}.decided"),
        "recovered": _time(data.get("recovered"), f"{place}.recovered"),
        "failed": _optional(data.get("failed"), f"{place}.failed"),
        "cause": _optional(data.get("cause"), f"{place}.cause"),
        "announced": None if announced is None else _count(announced, f"{place}.announced"),
        "size": _count(data.get("size", len(tasks)), f"{place}.size"),
        "tasks": tasks,
    }


def _rejection(data: Mapping[str, Any]) -> dict[str, Any]:
    line, index = data.get("line"), data.get("index")
    return {
        "index": None if index is None else _count(index, "rejection.index"),
        "event": _optional(data.get("event"), "rejection.event"),
        "kind": _optional(data.get("kind"), "rejection.kind"),
        "file": _optional(data.get("file"), "rejection.file"),
        "line": None if line is None else _count(line, "rejection.line"),
        "message": _optional(data.get("message"), "rejection.message"),
    }


def _decoded(value: object, name: str) -> object:
    """A nested field of Parquet: JSON text, a struct (nulls for missing keys) or a map (a list of pairs)."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as failure:
            raise BadRecord(f"`{name}` does not hold JSON: {failure}") from failure
    if name in {"actions", "parameters", "events"}:
        if isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
            value = dict(value)
        if isinstance(value, dict):
            value = {key: item for key, item in value.items() if item is not None}
    return value


def _mapping(value: object, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadRecord(f"`{name}` must be a JSON object, got {_short(value)}")
    return value


def _sequence(value: object, name: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRecord(f"`{name}` must be a list, got {_short(value)}")
    return value


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise BadRecord(f"`{name}` must be text, got {_short(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as failure:  # an unpaired surrogate, which JSON escapes can express
            raise BadRecord(f"`{name}` is not valid Unicode text") from failure
    return value


def _optional(value: object, name: str) -> str | None:
    return None if value is None else _text(value, name)


def _count(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise BadRecord(f"`{name}` must be a whole number from 0, got {_short(value)}")
    return value


def _time(value: object, name: str) -> datetime | None:
    """A time as UTC; one without a zone is read as UTC, which is right for differences within one log."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as failure:
            raise BadRecord(
                f"`{name}` must be a time such as 2026-11-21T03:17:55.749Z, got {_short(value)}"
            ) from failure
    if not isinstance(value, datetime):
        raise BadRecord(f"`{name}` must be a time as ISO 8601 text, got {_short(value)}")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
