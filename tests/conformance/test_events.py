"""The event log: what is written is read back, and what breaks the schema is refused with file and line."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.base.errors import InputError, SystemFailure
from streamproof.base.records import replace
from streamproof.conformance.event import Event
from streamproof.conformance.event_table import SCHEMA, VERSION, write_parquet
from streamproof.conformance.events import read_events, write_ndjson

EVENTS = [
    Event("job-1", "tm-0", 0, "send", {"c": 1, "kind": "DATA"}, "2026-11-21T03:17:55.749", {"tm-0": 1}),
    Event(
        "job-1",
        "tm-1",
        0,
        "recv",
        {"c": 1, "parts": ["a", 2, True]},
        None,
        {"tm-0": 1, "tm-1": 1},
        {"queue": {"0": []}},
    ),
    Event("job-1", "tm-0", 3, "größe → ok", {}, file="taskmanager-0.log", line=12),
]
Writer = Callable[[Iterable[Event], Path], int]


@pytest.mark.parametrize(
    ("name", "write"),
    [("log.ndjson", write_ndjson), ("log.jsonl.gz", write_ndjson), ("log.parquet", write_parquet)],
)
def test_round_trip(tmp_path: Path, name: str, write: Writer) -> None:
    """Every form gives back the same events, with the place where each was first recorded."""
    path = tmp_path / name
    assert write(EVENTS, path) == 3
    events = read_events(path)
    assert events == EVENTS
    assert (events[2].file, events[2].line) == ("taskmanager-0.log", 12)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_ndjson_text(tmp_path: Path) -> None:
    """A line holds the fields that are known, in a fixed order and without blanks."""
    path = tmp_path / "log.ndjson"
    write_ndjson(EVENTS[:1], path)
    assert path.read_text() == (
        '{"trace":"job-1","process":"tm-0","seq":0,"event":"send","args":{"c":1,"kind":"DATA"},'
        '"ts":"2026-11-21T03:17:55.749","clock":{"tm-0":1}}\n'
    )


def test_an_event_knows_its_line(tmp_path: Path) -> None:
    """An event that names no origin stands where the log has it; blank lines count as lines."""
    path = tmp_path / "log.ndjson"
    path.write_text('\n{"trace":"t","process":"p","seq":1,"event":"e"}\n')
    (event,) = read_events(path)
    assert str(event.loc) == f"{path}:2"
    assert event.args == {}


def test_same_events_same_bytes(tmp_path: Path) -> None:
    """Compressed logs do not depend on the time of writing."""
    write_ndjson(EVENTS, tmp_path / "a.ndjson.gz")
    write_ndjson(EVENTS, tmp_path / "b.ndjson.gz")
    assert (tmp_path / "a.ndjson.gz").read_bytes() == (tmp_path / "b.ndjson.gz").read_bytes()


GOOD = '{"trace":"t","process":"p","seq":1,"event":"e","args":{}}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "the line is not one JSON value: Expecting property name enclosed in double quotes at column 1"),
        ("[1]", "an event must be a JSON object"),
        ('{"process":"p","seq":1,"event":"e"}', "the event lacks the field 'trace'"),
        ('{"trace":"t","seq":1,"event":"e"}', "the event lacks the field 'process'"),
        ('{"trace":"t","process":"p","event":"e"}', "the event lacks the field 'seq'"),
        ('{"trace":"t","process":"p","seq":2}', "the event lacks the field 'event'"),
        ('{"trace":"t","process":"p","seq":2,"event":"e","stat":{}}', "the event has the unknown field 'stat'"),
        ('{"trace":"t","process":"p","seq":true,"event":"e"}', "'seq' must be a whole number from 0, got True"),
        ('{"trace":"t","process":"p","seq":-1,"event":"e"}', "'seq' must be a whole number from 0, got -1"),
        ('{"trace":"t","process":"p","seq":1.0,"event":"e"}', "'seq' must be a whole number from 0, got 1.0"),
        ('{"trace":"t","process":"p","seq":2,"event":""}', "'event' is empty"),
        ('{"trace":7,"process":"p","seq":2,"event":"e"}', "'trace' must be text, got 7"),
        ('{"trace":"t","process":"p","seq":2,"event":"e","ts":3}', "'ts' must be text, got 3"),
        ('{"trace":"t","process":"p","seq":2,"event":"e","args":[1]}', "'args' must be a JSON object, got [1]"),
        ('{"trace":"t","process":"p","seq":2,"event":"e","args":{"x":[1,2.5]}}', "args.x[1] is a fractional number"),
        ('{"trace":"t","process":"p","seq":2,"event":"e","state":{"q":{"a":0.5}}}', "state.q.a is a fractional number"),
        ('{"trace":"t","process":"p","seq":2,"event":"e","args":{"x":NaN}}', "the line is not JSON: NaN is not JSON"),
        (
            '{"trace":"t","process":"p","seq":2,"event":"e","state":{"x":2},"state":{"x":1}}',
            "the line is not accepted: the key 'state' occurs twice in one object",
        ),
        (
            '{"trace":"t","process":"p","seq":2,"event":"e","args":{"x":2,"y":0,"x":1}}',
            "the line is not accepted: the key 'x' occurs twice in one object",
        ),
        (
            '{"trace":"t","process":"p","seq":2,"event":"e","clock":{"p":"1"}}',
            "'clock' must give a whole number for each process, got {'p': '1'}",
        ),
        ('{"trace":"t","process":"p","seq":2,"event":"e","line":"3"}', "'file' must be text and 'line' a whole number"),
        (GOOD, "process 'p' uses seq 1 twice in trace 't'"),
    ],
)
def test_a_broken_line_is_refused(tmp_path: Path, line: str, message: str) -> None:
    """Each departure from the schema is refused at its own line, in one sentence."""
    path = tmp_path / "log.ndjson"
    path.write_text(f"{GOOD}\n{line}\n{GOOD.replace('1', '9')}\n")
    with pytest.raises(InputError) as caught:
        read_events(path)
    assert caught.value.message == message
    assert str(caught.value).startswith(f"{path}:2: ")


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    """A binary file is no event log."""
    path = tmp_path / "log.ndjson"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"log\.ndjson:1: the line is not"):
        read_events(path)


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_log_without_events_is_refused(tmp_path: Path, text: str) -> None:
    """Nothing recorded means nothing checked, which must not pass for a log that was accepted."""
    path = tmp_path / "log.ndjson"
    path.write_text(text)
    with pytest.raises(InputError, match=r"log\.ndjson: the file has no events"):
        read_events(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """The message names the file and the reason."""
    with pytest.raises(InputError, match=r"none\.ndjson: cannot be read: No such file or directory"):
        read_events(tmp_path / "none.ndjson")


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    """Half a compressed log is refused whole."""
    path = tmp_path / "log.ndjson.gz"
    path.write_bytes(gzip.compress(GOOD.encode() * 100)[:-20])
    with pytest.raises(InputError, match=r"log\.ndjson\.gz: the compressed file is damaged"):
        read_events(path)


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    """Half a Parquet file is refused."""
    path = tmp_path / "log.parquet"
    write_parquet(EVENTS, path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"log\.parquet: the Parquet file is damaged"):
        read_events(path)


def test_parquet_of_another_shape_is_refused(tmp_path: Path) -> None:
    """A table without the columns of an event log is refused by the first one missing."""
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"trace": ["t"], "process": ["p"], "event": ["e"]}), path)
    with pytest.raises(InputError, match=r"other\.parquet: the Parquet file lacks the column 'seq'"):
        read_events(path)


def test_parquet_with_bad_json_is_refused(tmp_path: Path) -> None:
    """A cell that should hold JSON is refused at its row."""
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"trace": ["t"], "process": ["p"], "seq": [0], "event": ["e"], "args": ["{"]}), path)
    with pytest.raises(InputError, match=r"log\.parquet:1: column 'args' does not hold JSON"):
        read_events(path)


def test_parquet_of_a_later_version_is_refused(tmp_path: Path) -> None:
    """A log whose schema this program does not know is not guessed at."""
    path = tmp_path / "log.parquet"
    table = pa.table({"trace": ["t"], "process": ["p"], "seq": [0], "event": ["e"]})
    pq.write_table(table.replace_schema_metadata({"schema": SCHEMA, "version": str(VERSION + 1)}), path)
    with pytest.raises(InputError, match=r"has version 2 of streamproof\.events, this program reads version 1"):
        read_events(path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """If the events break off, the file that was there stays and no other appears."""
    path = tmp_path / "log.ndjson"
    write_ndjson([replace(EVENTS[0], file="a.log", line=1)], path)
    before = path.read_text()

    def broken() -> Iterable[Event]:
        yield EVENTS[0]
        raise RuntimeError("the source broke off")

    with pytest.raises(RuntimeError, match="the source broke off"):
        write_ndjson(broken(), path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["log.ndjson"]


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    """Writing into a folder that cannot be is the system's failure, not the log's."""
    (tmp_path / "none").write_text("a file")
    with pytest.raises(SystemFailure, match=r"none cannot be written: File exists"):
        write_ndjson(EVENTS, tmp_path / "none" / "log.ndjson")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(st.tuples(st.text(), st.text(), st.text(min_size=1), st.dictionaries(st.text(), VALUES, max_size=3))))
def test_any_events_survive(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, str, str, dict[str, object]]]
) -> None:
    """Whatever text and values events hold, both forms give them back."""
    events = [Event(trace, process, seq, name, args) for seq, (trace, process, name, args) in enumerate(drawn)]
    folder = tmp_path_factory.mktemp("any")
    write_ndjson(events, folder / "log.ndjson")
    write_parquet(events, folder / "log.parquet")
    if events:
        assert read_events(folder / "log.ndjson") == events
        assert read_events(folder / "log.parquet") == events
