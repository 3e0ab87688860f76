"""Inputs are found wherever they lie, and recognised by what they hold."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamproof.base.errors import InputError
from streamproof.pipeline.inputs import Skipped, discover


def test_each_form_is_recognised_by_content_whatever_its_name(
    tmp_path: Path, event: Any, verdict: Any, write: Any
) -> None:
    """Plain and compressed NDJSON, Parquet and the JSON document are distinguished without looking at names."""
    for number, name in enumerate(("a.ndjson", "b.ndjson.gz", "c.parquet")):
        write(tmp_path / name, [event("start")]).rename(tmp_path / f"e{number}")
    for number, name in enumerate(("a.ndjson", "b.ndjson.gz", "c.parquet", "d.json")):
        write(tmp_path / name, [verdict("r")]).rename(tmp_path / f"v{number}")
    found = discover([tmp_path])
    assert [(Path(s.path).name, s.kind, s.form, s.gzip) for s in found.sources] == [
        ("e0", "events", "ndjson", False),
        ("e1", "events", "ndjson", True),
        ("e2", "events", "parquet", False),
        ("v0", "verdicts", "ndjson", False),
        ("v1", "verdicts", "ndjson", True),
        ("v2", "verdicts", "parquet", False),
        ("v3", "verdicts", "document", False),
    ]
    assert found.skipped == ()


@pytest.mark.parametrize(
    ("path", "run"),
    [
        ("b-lostpart-1.ndjson", "b-lostpart-1"),
        ("b.lost.1.ndjson.gz", "b.lost.1"),
        ("night/x.ndjson/part-0003.ndjson", "x"),
        ("all/run=b%20lost/part-0.ndjson", "b lost"),
    ],
)
def test_the_run_is_the_stem_or_the_data_set(tmp_path: Path, event: Any, write: Any, path: str, run: str) -> None:
    """A log without a run of its own is named after its file, or after the data set that it is a part of."""
    write(tmp_path / path, [event("start")])
    assert discover([tmp_path]).sources[0].run == run


def test_a_file_named_twice_is_read_once(tmp_path: Path, event: Any, write: Any) -> None:
    """A folder, a pattern and a link that all lead to one file give one source."""
    log = write(tmp_path / "logs" / "a.ndjson", [event("start")])
    (tmp_path / "logs" / "again.ndjson").symlink_to(log)
    found = discover([tmp_path / "logs", log, tmp_path / "logs" / "*.ndjson"])
    assert [source.path for source in found.sources] == [str(log)]


def test_other_files_of_a_folder_are_skipped_with_the_reason(tmp_path: Path, event: Any, write: Any) -> None:
    """What lies beside the logs is named, with what it is instead."""
    write(tmp_path / "a.ndjson", [event("start")])
    (tmp_path / "jobmanager.log").write_text("2026-11-21 INFO started\n")
    (tmp_path / "rest.json").write_text('{\n "jobs": []\n}\n')
    (tmp_path / "check.json").write_text('{"schema": "streamproof.check/1"}')
    (tmp_path / "nothing.ndjson").write_text("")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    pq.write_table(pa.table({"run": ["a"], "verdict": ["accepted"]}), tmp_path / "runs.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    assert discover([tmp_path]).skipped == tuple(
        Skipped(str(tmp_path / name), reason)
        for name, reason in (
            ("check.json", "JSON of another kind (streamproof.check/1)"),
            ("jobmanager.log", "neither JSON lines nor Parquet"),
            ("nothing.ndjson", "empty"),
            ("rest.json", "JSON that is neither an event log nor verdicts"),
            ("runs.parquet", "Parquet of something else (its columns: run, verdict)"),
            ("x.parquet", "Parquet of something else (its columns: x)"),
        )
    )


def test_the_folder_of_the_report_is_no_input(tmp_path: Path, event: Any, write: Any) -> None:
    """A report made among its inputs does not read itself the next time."""
    write(tmp_path / "a.ndjson", [event("start")])
    write(tmp_path / "out" / "b.ndjson", [event("start")])
    assert [Path(s.path).name for s in discover([tmp_path], without=tmp_path / "out").sources] == ["a.ndjson"]


def test_what_is_missing_empty_or_unusable_is_refused(tmp_path: Path) -> None:
    """No input, no such path, no match, an empty folder and a folder without logs each get their own sentence."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "n.txt").write_text("hello")
    for inputs, message in (
        ([], "no inputs given"),
        ([tmp_path / "gone"], f"{tmp_path}/gone: no such file or folder"),
        ([tmp_path / "*.ndjson"], f"{tmp_path}/*.ndjson: no file matches this pattern"),
        ([tmp_path / "empty"], f"{tmp_path}/empty: no file in this folder"),
        ([tmp_path / "notes" / "n.txt"], f"{tmp_path}/notes/n.txt: neither JSON lines nor Parquet"),
        (
            [tmp_path / "notes"],
            f"nothing to report on in {tmp_path}/notes ({tmp_path}/notes/n.txt: neither JSON lines nor Parquet)",
        ),
    ):
        with pytest.raises(InputError) as refused:
            discover(inputs)
        assert refused.value.message == message


def test_a_log_that_begins_with_rubbish_is_refused_not_skipped(tmp_path: Path) -> None:
    """A name that promises a log is taken at its word: leaving the file out would hide a run."""
    (tmp_path / "a.ndjson").write_text("\n\nnot json\n")
    with pytest.raises(InputError, match=r"a\.ndjson:3: this line is not a JSON object"):
        discover([tmp_path])


def test_damaged_files_are_refused_by_name(tmp_path: Path) -> None:
    """A cut Parquet file and a cut gzip file are errors, also inside a folder."""
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"a\.parquet: cannot be read as Parquet"):
        discover([tmp_path])
    (tmp_path / "a.parquet").unlink()
    (tmp_path / "b.ndjson.gz").write_bytes(gzip.compress(b'{"event": "start"}\n' * 9)[:20])
    with pytest.raises(InputError, match=r"b\.ndjson\.gz: cannot be read"):
        discover([tmp_path])


@pytest.mark.parametrize(
    ("verdicts", "why"),
    [("null", "the document has no list"), ("[3]", "not a JSON object"), ('[{"a": 1}]', "no `run`")],
)
def test_verdicts_that_are_none_are_refused(verdicts: str, why: str, tmp_path: Path) -> None:
    """Before Spark starts: a named file without one verdict is no report of nothing."""
    (tmp_path / "v.json").write_text(f'{{"schema": "streamproof.validate/1",\n "verdicts": {verdicts}}}\n')
    with pytest.raises(InputError, match=why):
        discover([tmp_path / "v.json"])


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    """Verdicts of a version unknown here are never half understood."""
    (tmp_path / "v.json").write_text('{"schema": "streamproof.verdict/2", "run": "a"}\n')
    with pytest.raises(
        InputError, match=r"v\.json: written in streamproof\.verdict/2, which this version does not read"
    ):
        discover([tmp_path])


def test_a_name_that_no_table_can_hold_is_refused(tmp_path: Path) -> None:
    """File names are bytes; tables and pages are UTF-8."""
    (tmp_path / os.fsdecode(b"a\xff.ndjson")).write_text("{}")
    with pytest.raises(InputError, match=r"a\\udcff\.ndjson': this file name is not valid UTF-8"):
        discover([tmp_path])
