"""Small inputs of the pipeline, written by hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Write = Callable[[Path, Sequence[Mapping[str, Any]]], Path]


@pytest.fixture(scope="session")
def event() -> Callable[..., dict[str, Any]]:
    """An event with the fields that a test leaves unsaid."""
    count = 0

    def make(kind: str, process: str = "jm", trace: str = "job-1", **more: Any) -> dict[str, Any]:
        nonlocal count
        count += 1
        return {"trace": trace, "process": process, "seq": count, "event": kind, "args": {"task": "A (1/2)"}, **more}

    return make


@pytest.fixture(scope="session")
def verdict() -> Callable[..., dict[str, Any]]:
    """A verdict record with the fields that a test leaves unsaid."""

    def make(run: str, verdict: str = "accepted", trace: str = "job-1", **more: Any) -> dict[str, Any]:
        record: dict[str, Any] = {
            "schema": "streamproof.verdict/1",
            "run": run,
            "trace": trace,
            "model": "failover",
            "variant": None,
            "parameters": {"workers": 2},
            "verdict": verdict,
            "reason": None,
            "events": {"read": 4, "matched": 3, "ignored": 1, "unknown": 0},
            "actions": {"start": 2, "finish": 1},
            "model_actions": ["start", "finish", "give_up"],
            "recoveries": [],
            "rejection": None,
        }
        return record | more

    return make


@pytest.fixture(scope="session")
def write() -> Write:
    """Write records as the file's name says: `.json` one document, `.parquet`, or NDJSON, with `.gz` compressed."""

    def to(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            # As in real logs: nested values are JSON text, and null where a record has none.
            rows = [
                {key: json.dumps(value) if isinstance(value, dict | list) else value for key, value in record.items()}
                for record in records
            ]
            pq.write_table(pa.Table.from_pylist(rows), path)
        elif path.suffix == ".json":
            path.write_text(json.dumps({"schema": "streamproof.validate/1", "verdicts": list(records)}, indent=2))
        else:
            text = "".join(json.dumps(record) + "\n" for record in records)
            path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
        return path

    return to
