"""Schemas of events and verdicts, and the row of the Spark table for each.

Every form of input (NDJSON, one JSON document, Parquet) uses these two functions, so that all of them have the same
meaning and the same errors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from streamproof.conformance.run_verdict import ANSWERS, SCHEMA
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
    shortened,
)
from streamproof.pipeline.run_history import history_row

_TEXT, _COUNT, _TIME, _TEXTS = pa.string(), pa.int64(), pa.timestamp("us", tz="UTC"), pa.list_(pa.string())
_READERS = {_TEXT: optional(as_text), _COUNT: optional(as_count), _TIME: as_time, _TEXTS: each(as_text)}
_RECOVERY = {
    "tasks": _TEXTS,
    "decided": _TIME,
    "recovered": _TIME,
    "failed": _TEXT,
    "cause": _TEXT,
    "announced": _COUNT,
}
_REJECTION = {"index": _COUNT, "event": _TEXT, "kind": _TEXT, "file": _TEXT, "line": _COUNT, "message": _TEXT}

VERDICT_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("run", "trace", "model", "variant", "parameters", "verdict", "reason"), _TEXT),
    **dict.fromkeys(("read", "matched", "ignored", "unknown"), _COUNT),
    "actions": pa.list_(pa.struct({"action": _TEXT, "count": _COUNT})),
    "model_actions": _TEXTS,
    "recoveries": pa.list_(pa.struct({**_RECOVERY, "number": _COUNT, "size": _COUNT})),
    "rejection": pa.struct(_REJECTION),
    **dict.fromkeys(("findings", "history", "machine", "relation", "digest"), _TEXT),
}
"""One verdict record. `findings` are their kinds, `history` is JSON text (see `history_row`), and `digest` is independent of
the order of keys."""

_NESTED = ("parameters", "events", "actions", "model_actions", "recoveries", "rejection", "findings", "history")
_COUNTS = ("read", "matched", "ignored", "unknown")


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
        raise BadRecord(f"`seq` must be a whole number, got {shortened(seq)}")
    named = data.get("run") is not None
    key = (
        as_text(data["run"], "run") if named else run,
        named,
        as_text(data["trace"], "trace"),
        as_text(data["process"], "process"),
        as_text(data["event"], "event"),
    )
    return key, as_time(data.get("ts"), "ts")


def verdict_row(data: object) -> tuple[Any, ...]:
    """The values of `VERDICT_TYPES` for one `streamproof.verdict/1` record. Raises `BadRecord`."""
    if not isinstance(data, dict):
        raise BadRecord("the verdict is not a JSON object")
    schema = data.get("schema") or SCHEMA
    if schema != SCHEMA:
        raise BadRecord(f"the verdict is of schema {shortened(schema)}, this version reads {SCHEMA}")
    given = {name: _decoded(value, name) if name in _NESTED else value for name, value in data.items()}
    for name in ("run", "model", "verdict"):
        if given.get(name) is None:
            raise BadRecord(f"the verdict has no `{name}`")
    verdict = given["verdict"]
    if verdict not in ANSWERS:
        raise BadRecord(f"`verdict` must be one of {', '.join(ANSWERS)}, got {shortened(verdict)}")
    if verdict != "error" and not isinstance(given.get("events"), Mapping):
        raise BadRecord("the verdict has no `events` counts")
    events = as_mapping(given.get("events"), "events")
    actions = {
        as_text(name, "actions"): as_count(count, f"actions.{name}")
        for name, count in as_mapping(given.get("actions"), "actions").items()
    }
    rejection = given.get("rejection")
    if rejection is not None and verdict == "accepted":
        raise BadRecord("the verdict is `accepted` and yet names a rejected event")
    return (
        as_text(given["run"], "run"),
        as_text(given.get("trace") or "", "trace"),
        as_text(given["model"], "model"),
        optional(as_text)(given.get("variant"), "variant"),
        _json(as_mapping(given.get("parameters"), "parameters")),
        verdict,
        optional(as_text)(given.get("reason"), "reason"),
        *(as_count(events.get(name, 0), f"events.{name}") for name in _COUNTS),
        [{"action": name, "count": count} for name, count in sorted(actions.items())],
        sorted({as_text(name, "model_actions") for name in as_list(given.get("model_actions"), "model_actions")}),
        [_recovery(item, number) for number, item in enumerate(as_list(given.get("recoveries"), "recoveries"), 1)],
        optional(_REJECTED)(rejection, "rejection"),
        ", ".join(_kind(item) for item in as_list(given.get("findings"), "findings")) or None,
        history_row(given),
        optional(as_text)(given.get("machine"), "machine"),
        optional(as_text)(given.get("relation"), "relation"),
        hashlib.sha256(_json(given).encode()).hexdigest(),
    )


def _kind(finding: object) -> str:
    return as_text(as_mapping(finding, "findings[]").get("kind"), "findings[].kind")


def _recovery(item: object, number: int) -> dict[str, Any]:
    place = f"recoveries[{number - 1}]"
    found: dict[str, Any] = _RECOVERED(item, place)
    size = as_mapping(item, place).get("size", len(found["tasks"]))
    return {"number": number, **found, "size": as_count(size, f"{place}.size")}


def _reader(types: Mapping[str, pa.DataType]) -> Reader:
    return record(**{name: _READERS[kind] for name, kind in types.items()})


_RECOVERED, _REJECTED = _reader(_RECOVERY), _reader(_REJECTION)


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


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
