"""Reading in pieces loses nothing, repeats nothing, and says where a record cannot be understood."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.base.errors import InputError
from streamproof.pipeline.fields import BadRecord
from streamproof.pipeline.inputs import Source, discover
from streamproof.pipeline.reading import Broken, ParsedRecord, Piece, from_json, line_of, objects, split, to_json
from streamproof.pipeline.records import event_row, verdict_row


def _source(path: Path) -> Source:
    return discover([path]).sources[0]


def _event(kind: str, seq: int = 1) -> dict[str, Any]:
    return {"trace": "t", "process": "p", "seq": seq, "event": kind}


def _values(pieces: list[Piece]) -> list[Any]:
    items = [item for piece in pieces for item in objects(piece)]
    assert all(isinstance(item, ParsedRecord) for item in items)
    return [item.data for item in items if isinstance(item, ParsedRecord)]


@settings(max_examples=200)
@given(
    texts=st.lists(st.text(max_size=12), min_size=1, max_size=12),
    ending=st.sampled_from(["", "\n", "\n\n"]),
    parts=st.integers(1, 60),
)
def test_every_line_belongs_to_exactly_one_piece(texts: list[str], ending: str, parts: int) -> None:
    """However a file is cut, also inside lines and characters, its pieces hold each line once and in order."""
    records = [_event(text, number) for number, text in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.ndjson")
        path.write_text(
            "\n".join(json.dumps(record, ensure_ascii=False) for record in records) + ending, encoding="utf-8"
        )
        size = path.stat().st_size
        source = _source(path)
        pieces = [Piece(source, size * part // parts, size * (part + 1) // parts) for part in range(parts)]
        assert _values(pieces) == records


def test_large_files_are_cut_and_small_ones_put_together(tmp_path: Path) -> None:
    """Tasks are of one size: a file of 3 MiB makes three, ten files of a few bytes make one."""
    line = json.dumps(_event("x" * 100)) + "\n"
    large = tmp_path / "large.ndjson"
    large.write_text(line * (3 * 2**20 // len(line) + 1))
    for number in range(10):
        (tmp_path / f"small-{number}.ndjson").write_text(line)
    tasks = split(discover([tmp_path]).sources, cores=1)
    assert [len(task) for task in tasks] == [1, 1, 1, 10]
    assert sum(len(_values(task)) for task in tasks) == large.stat().st_size // len(line) + 10
    assert from_json(to_json(tasks)) == tasks


def test_row_groups_of_parquet_are_read_apart(tmp_path: Path) -> None:
    """Pieces of a Parquet file are row groups; a row's position counts from the start of the file."""
    rows = [{"trace": "t", "process": "p", "seq": number, "event": "e"} for number in range(10)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=4)
    source = _source(tmp_path / "a.parquet")
    assert source.extent == 3
    assert [[item.position for item in objects(Piece(source, group, group + 1))] for group in range(3)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9],
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"event": "a"} {"event": "b"}', "this line is not one JSON value: Extra data at column 16"),
        (b'{"event": "a", "seq": 1', "this line is not one JSON value: Expecting ',' delimiter at column 24"),
        (b'{"event": "\xff"}', "this line is not UTF-8 text"),
        (b'{"event": "a", "seq": NaN}', "this line is not JSON: NaN is not a number"),
        (b"[" * 100_000, "this line is nested too deeply"),
        (
            b'{"event": "a", "event": "b"}',
            "this line is not accepted: the key 'event' occurs twice in one object",
        ),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_broken_line_is_named_with_its_place_and_the_next_is_read(
    tmp_path: Path, line: bytes, reason: str, pack: Callable[[bytes], bytes]
) -> None:
    """Two values in a line, half a value and text that is none are found, in plain and in compressed files."""
    path = tmp_path / "a.ndjson"
    one, other = (json.dumps(_event(kind)).encode() for kind in ("first", "last"))
    path.write_bytes(pack(one + b"\n\n" + line + b"\n" + other + b"\n"))
    source = _source(path)
    first, broken, last = objects(Piece(source, 0, source.extent))
    assert first == ParsedRecord(0, _event("first"))
    assert isinstance(last, ParsedRecord)
    assert last.data == _event("last")
    assert isinstance(broken, Broken)
    assert broken.reason == reason
    assert line_of(source, broken.position) == 3


def test_a_document_with_a_key_twice_is_not_read(tmp_path: Path) -> None:
    """Which of the values is meant, nobody knows."""
    path = tmp_path / "a.json"
    path.write_text('{\n"schema": "streamproof.validate/1",\n"verdicts": [{"run": "r", "run": "s"}]}')
    with pytest.raises(InputError, match="not a JSON document: the key 'run' occurs twice in one object"):
        _source(path)


_EVENT = {"trace": "t", "process": "p", "seq": 1, "event": "e"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trace": None}, "the event has no `trace`"),
        ({"seq": "1"}, "`seq` must be a whole number, got '1'"),
        ({"seq": True}, "`seq` must be a whole number, got True"),
        ({"event": 5}, "`event` must be text, got 5"),
        ({"run": ["x"]}, "`run` must be text, got ['x']"),
        ({"ts": "yesterday"}, "`ts` must be a time such as 2026-11-21T03:17:55.749Z, got 'yesterday'"),
        ({"ts": 12}, "`ts` must be a time as ISO 8601 text, got 12"),
        ({"process": "\ud800"}, "`process` is not valid Unicode text"),
    ],
)
def test_an_event_must_be_one(change: dict[str, Any], message: str) -> None:
    """Each field that the report needs is checked, and the message says which one is wrong."""
    with pytest.raises(BadRecord) as bad:
        event_row(_EVENT | change, "r")
    assert str(bad.value) == message


@pytest.mark.parametrize(
    "text", ["2026-11-21T03:27:02.141Z", "2026-11-21 03:27:02,141", "2026-11-21T04:27:02.141+01:00"]
)
def test_times_are_read_as_utc(text: str) -> None:
    """Any ISO 8601 spelling of one moment is that moment; without a zone it is UTC."""
    assert event_row(_EVENT | {"ts": text}, "r") == (
        ("r", False, "t", "p", "e"),
        datetime(2026, 11, 21, 3, 27, 2, 141000, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "ok"}, "`verdict` must be one of accepted, rejected, inconclusive, error, got 'ok'"),
        ({"model": None}, "the verdict has no `model`"),
        ({"events": None}, "the verdict has no `events` counts"),
        ({"schema": "v3"}, "the verdict is of schema 'v3', this version reads streamproof.verdict/1"),
        ({"actions": {"start": -1}}, "`actions.start` must be a whole number from 0, got -1"),
        ({"recoveries": {}}, "`recoveries` must be a list, got {}"),
        ({"recoveries": [{"decided": 12}]}, "`recoveries[0].decided` must be a time as ISO 8601 text, got 12"),
        ({"rejection": "?"}, "`rejection` does not hold JSON: Expecting value: line 1 column 1 (char 0)"),
        ({"rejection": {"index": 3}}, "the verdict is `accepted` and yet names a rejected event"),
    ],
)  # fmt: skip
def test_a_verdict_must_be_one(verdict: Any, change: dict[str, Any], message: str) -> None:
    """A verdict that contradicts its schema or itself is refused with the reason."""
    with pytest.raises(BadRecord) as bad:
        verdict_row(verdict("r", **change))
    assert str(bad.value) == message


def test_a_verdict_is_the_same_in_every_encoding(verdict: Any) -> None:
    """Nested values as objects, as JSON text, and as the pairs and padded structs of Parquet give one and the same row."""
    plain = verdict("r", rejection={"index": 1, "event": "e", "line": 7}, verdict="rejected")
    texts = {key: json.dumps(value) if isinstance(value, dict | list) else value for key, value in plain.items()}
    pairs = plain | {"actions": [("finish", 1), ("start", 2)], "parameters": {"workers": 2, "other": None}}
    assert verdict_row(texts) == verdict_row(plain) == verdict_row(pairs)
