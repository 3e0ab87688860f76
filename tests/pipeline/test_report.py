"""The report on many runs: exact tables, one meaning for every form of input, nothing half written."""

from __future__ import annotations

import gzip
import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamproof.base.errors import InputError, SystemFailure
from streamproof.cli import verbs
from streamproof.pipeline.inputs import Skipped
from streamproof.pipeline.reporting import ReportResult, build_report
from streamproof.pipeline.tables import SCHEMAS


def _at(second: float) -> datetime:
    return datetime(2026, 11, 21, 3, 27, int(second), round(second % 1 * 1_000_000), tzinfo=UTC)


def _ts(second: float) -> str:
    return _at(second).isoformat(timespec="milliseconds")


def _tables(out: Path) -> dict[str, pa.Table]:
    return {name: pq.read_table(out / "tables" / f"{name}.parquet") for name in SCHEMAS}


def _recovery(decided: float, recovered: float | None, size: int, **more: Any) -> dict[str, Any]:
    return {
        "decided": _ts(decided),
        "recovered": None if recovered is None else _ts(recovered),
        "failed": "B (1/2)#0",
        "cause": None,
        "announced": size,
        "size": size,
        "tasks": [f"T{number}" for number in range(size)],
    } | more


@pytest.fixture(scope="module")
def logs(event: Any) -> dict[str, list[dict[str, Any]]]:
    """Events of three runs, the last one of two jobs and of none."""
    return {
        "r1": [
            event("start", "jm", ts=_ts(1)),
            event("start", "jm", ts=_ts(2.5)),
            event("finish", "tm-0", ts=_ts(4)),
            event("heartbeat", "tm-0"),
        ],
        "r2": [event("start", "jm", ts=_ts(1)), event("start", "tm-0", ts=_ts(3))],
        "r3": [event("start", "jm", "job-1"), event("start", "jm", "job-2"), event("heartbeat", "jm", "")],
    }


@pytest.fixture(scope="module")
def verdicts(verdict: Any) -> list[dict[str, Any]]:
    """Verdicts on the three runs, one of them by two models."""
    recoveries = [_recovery(2, 2.75, 3), _recovery(5, None, 1), _recovery(9, 8, 2, announced=4)]
    rejection = {"index": 1, "event": "start", "kind": "action", "file": "jm.log", "line": 17, "message": "not enabled"}
    vertex = {"name": "<A>", "parallelism": 1, "regions": [0]}
    attempt = {
        "vertex": 0,
        "subtask": 0,
        "number": 0,
        "place": None,
        "states": [["RUNNING", _ts(1)], ["FAILED", _ts(2)]],
    }
    history = {"vertices": [vertex], "edges": [], "states": [], "attempts": [attempt], "rejected": []}
    rejection["frontier"] = {"states": [["n = 1"]], "matches": []}
    return [
        verdict("r1", recoveries=recoveries, history=history, findings=[{"kind": "hang", "message": "A waits"}]),
        verdict("r1", "inconclusive", model="slots", actions={"give": 1}, model_actions=["give"], recoveries=recoveries),
        verdict(
            "r2", "rejected", reason="not enabled", actions={"start": 1}, rejection=rejection,
            events={"read": 2, "matched": 1, "ignored": 0, "unknown": 0},
        ),
        verdict("r3", "error", reason="broken log", actions={}, events={}),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, write: Any, logs: Any, verdicts: Any) -> tuple[Path, ReportResult]:
    """The report on those runs."""
    home = tmp_path_factory.mktemp("report")
    for run, events in logs.items():
        write(home / "in" / f"{run}.ndjson", events)
    write(home / "in" / "verdicts.json", verdicts)
    (home / "in" / "notes.txt").write_text("hello")
    received: list[str] = []
    result = build_report([home / "in"], home / "out", progress=received.append)
    (home / "progress.txt").write_text("\n".join(received))
    return home, result


def test_the_result_says_what_was_made(made: tuple[Path, ReportResult]) -> None:
    """Paths, counts per verdict and the files left out."""
    home, result = made
    assert result == ReportResult(
        html=home / "out" / "report.html",
        tables={name: home / "out" / "tables" / f"{name}.parquet" for name in SCHEMAS},
        verdicts={"accepted": 1, "rejected": 1, "inconclusive": 1, "error": 1},
        runs=3,
        not_validated=1,
        events=9,
        skipped=(Skipped(str(home / "in" / "notes.txt"), "neither JSON lines nor Parquet"),),
    )
    assert sorted(str(path.relative_to(home / "out")) for path in (home / "out").rglob("*")) == [
        "report.html",
        "tables",
        *(f"tables/{name}.parquet" for name in sorted(SCHEMAS)),
    ]


def test_every_table_has_the_promised_columns(made: tuple[Path, ReportResult]) -> None:
    """Names, order and types of columns are an interface."""
    assert {name: table.schema for name, table in _tables(made[0] / "out").items()} == SCHEMAS


def test_runs_are_verdicts_joined_with_their_logs(made: tuple[Path, ReportResult]) -> None:
    """One row per run, job and model; a job without a verdict is a row of its own, events of no job are none."""
    columns = [
        "run",
        "trace",
        "model",
        "verdict",
        "events_read",
        "actions",
        "recoveries",
        "restarted_tasks",
        "log_events",
    ]
    rows = _tables(made[0] / "out")["runs"].select(columns).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("r1", "job-1", "failover", "accepted", 4, 3, 3, 6, 4),
        ("r1", "job-1", "slots", "inconclusive", 4, 1, 3, 6, 4),
        ("r2", "job-1", "failover", "rejected", 2, 1, 0, 0, 2),
        ("r3", "job-1", "failover", "error", 0, 0, 0, 0, 1),
        ("r3", "job-2", None, "not validated", None, None, None, None, 1),
    ]


def test_a_run_row_holds_span_and_rejection(made: tuple[Path, ReportResult]) -> None:
    """Where the first rejected event is, and when the log began and ended."""
    row = _tables(made[0] / "out")["runs"].to_pylist()[2]
    assert {key: row[key] for key in row if key.startswith("rejected")} == {
        "rejected_kind": "action",
        "rejected_event": "start",
        "rejected_file": "jm.log",
        "rejected_line": 17,
        "rejected_message": "not enabled",
    }
    assert (row["first_ts"], row["last_ts"], row["log_processes"]) == (_at(1), _at(3), 2)
    assert (row["variant"], row["parameters"], row["reason"]) == (None, '{"workers":2}', "not enabled")


def test_events_are_counted_by_run_process_and_kind(made: tuple[Path, ReportResult]) -> None:
    """Every event of every log, those of no job included."""
    assert [tuple(row.values()) for row in _tables(made[0] / "out")["events"].to_pylist()] == [
        ("r1", "jm", "start", 2),
        ("r1", "tm-0", "finish", 1),
        ("r1", "tm-0", "heartbeat", 1),
        ("r2", "jm", "start", 1),
        ("r2", "tm-0", "start", 1),
        ("r3", "jm", "heartbeat", 1),
        ("r3", "jm", "start", 2),
    ]


def test_actions_and_coverage(made: tuple[Path, ReportResult]) -> None:
    """Actions by run and model; an action of a model that no run took is there, marked."""
    tables = _tables(made[0] / "out")
    assert [tuple(row.values()) for row in tables["actions"].to_pylist()] == [
        ("r1", "failover", "finish", 1),
        ("r1", "failover", "start", 2),
        ("r1", "slots", "give", 1),
        ("r2", "failover", "start", 1),
    ]
    assert [tuple(row.values()) for row in tables["coverage"].to_pylist()] == [
        ("failover", "finish", 1, 1, False),
        ("failover", "give_up", 0, 0, True),
        ("failover", "start", 2, 3, False),
        ("slots", "give", 1, 1, False),
    ]


def test_recoveries_count_once_however_many_models_tell_of_them(made: tuple[Path, ReportResult]) -> None:
    """Times are exact; a recovery that never ended, or ended before it began, has no time but a reason."""
    rows = _tables(made[0] / "out")["recoveries"].to_pylist()
    assert [
        (row["run"], row["number"], row["seconds"], row["outcome"], row["announced"], row["size"]) for row in rows
    ] == [
        ("r1", 1, 0.75, "recovered", 3, 3),
        ("r1", 2, None, "not recovered", 1, 1),
        ("r1", 3, None, "clock ran backwards", 4, 2),
    ]
    assert (rows[0]["decided"], rows[0]["recovered"], rows[0]["tasks"]) == (_at(2), _at(2.75), ["T0", "T1", "T2"])


def test_rejections_by_kind_with_an_example(made: tuple[Path, ReportResult]) -> None:
    """One row per kind and event, with the place of the first."""
    assert _tables(made[0] / "out")["rejections"].to_pylist() == [
        {
            "kind": "action",
            "event": "start",
            "count": 1,
            "example_run": "r2",
            "example_file": "jm.log",
            "example_line": 17,
            "example_message": "not enabled",
        }
    ]


@pytest.mark.parametrize(
    ("logs_as", "verdicts_as"), [("parquet", "parquet"), pytest.param("ndjson.gz", "ndjson", marks=pytest.mark.long)]
)
def test_every_form_gives_the_same_tables(
    tmp_path: Path,
    write: Any,
    logs: Any,
    verdicts: Any,
    made: tuple[Path, ReportResult],
    logs_as: str,
    verdicts_as: str,
) -> None:
    """NDJSON, compressed or not, the JSON document and Parquet are one input in different clothes."""
    for run, events in logs.items():
        write(tmp_path / "in" / f"{run}.{logs_as}", events)
    write(tmp_path / "in" / f"verdicts.{verdicts_as}", verdicts)
    build_report([tmp_path / "in"], tmp_path / "out")
    assert _tables(tmp_path / "out") == _tables(made[0] / "out")
    assert _drawings(tmp_path / "out") == _drawings(made[0] / "out")


def _files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_makes_the_same_bytes(made: tuple[Path, ReportResult]) -> None:
    """The page and all tables are those of this process."""
    home, _ = made
    build_report([home / "in"], home / "spark", "local[2]")
    assert _files(home / "spark") == _files(home / "out")


def test_tables_in_parts_have_the_same_rows_and_page(made: tuple[Path, ReportResult], tmp_path: Path) -> None:
    """Large tables are folders of files, which replace files, and the other way round; a folder with other files stays."""
    home, _ = made
    build_report([home / "in"], tmp_path / "out", part_bytes=500)
    runs = tmp_path / "out" / "tables" / "runs.parquet"
    assert len(list(runs.iterdir())) > 5
    columns = [("run", "ascending"), ("model", "ascending"), ("verdict", "ascending")]
    whole = _tables(home / "out")["runs"]
    assert pq.read_table(runs).sort_by(columns) == whole.sort_by(columns)
    assert (tmp_path / "out" / "report.html").read_bytes() == (home / "out" / "report.html").read_bytes()
    build_report([home / "in"], tmp_path / "out")
    assert _files(tmp_path / "out") == _files(home / "out")
    build_report([home / "in"], tmp_path / "out", part_bytes=500)
    (runs / "mine.txt").write_text("mine")
    with pytest.raises(SystemFailure, match="is a folder"):
        build_report([home / "in"], tmp_path / "out")


def _drawings(out: Path) -> str:
    """The part of the page with the drawings."""
    return (out / "report.html").read_text().partition('<section id="drawings">')[2].partition("<section")[0]


def test_verdicts_are_drawn_worst_first(made: tuple[Path, ReportResult]) -> None:
    """Those with something to draw, with links from the table of runs; a finding is named there."""
    page, drawings = (made[0] / "out" / "report.html").read_text(), _drawings(made[0] / "out")
    assert re.findall(r'<article id="(run-\d)">\s*<h3><code>(\w+)', drawings) == [("run-1", "r2"), ("run-2", "r1")]
    assert '<a href="#run-1"><code>r2</code></a>' in page
    assert "<code>n = 1</code>" in drawings
    assert "&lt;A&gt; (1/1) attempt 0: RUNNING +0 ms, FAILED +1 s" in drawings
    assert '<span class="sub bad">hang</span>' in page


@pytest.mark.long
def test_equal_inputs_give_equal_bytes_and_leave_other_files(made: tuple[Path, ReportResult]) -> None:
    """A second report over the first one changes nothing, and keeps what others put there."""
    home, _ = made
    (home / "out" / "notes.md").write_text("mine")
    before = {path: path.read_bytes() for path in (home / "out").rglob("*") if path.is_file()}
    build_report([home / "in"], home / "out")
    assert {path: path.read_bytes() for path in (home / "out").rglob("*") if path.is_file()} == before
    (home / "out" / "notes.md").unlink()


@pytest.mark.long
def test_verdicts_alone_and_logs_alone_make_a_report(tmp_path: Path, write: Any, event: Any, verdict: Any) -> None:
    """Either kind of input will do; the tables of the other are there and empty."""
    build_report([write(tmp_path / "v.ndjson", [verdict("r")])], tmp_path / "a")
    assert {name: table.num_rows for name, table in _tables(tmp_path / "a").items()} == {
        "runs": 1, "events": 0, "actions": 2, "coverage": 3, "recoveries": 0, "rejections": 0,
    }  # fmt: skip
    result = build_report([write(tmp_path / "l.ndjson", [event("start", run="named")])], tmp_path / "b")
    assert (result.verdicts["accepted"], result.not_validated) == (0, 1)
    assert _tables(tmp_path / "b")["runs"]["run"].to_pylist() == ["named"]
    assert "No verdicts were given" in result.html.read_text()


@pytest.mark.long
def test_a_repeated_verdict_counts_once(tmp_path: Path, write: Any, verdict: Any) -> None:
    """The same record in two files, its keys in another order, is one verdict."""
    record = verdict("r")
    write(tmp_path / "in" / "a.ndjson", [record])
    write(tmp_path / "in" / "b.json", [dict(reversed(record.items()))])
    result = build_report([tmp_path / "in"], tmp_path / "out")
    assert result.verdicts == {"accepted": 1, "rejected": 0, "inconclusive": 0, "error": 0}
    assert [row["count"] for row in _tables(tmp_path / "out")["actions"].to_pylist()] == [1, 2]


def test_contradicting_verdicts_are_refused(tmp_path: Path, write: Any, verdict: Any) -> None:
    """Which of two verdicts on one run holds is not for a report to guess."""
    a = write(tmp_path / "a.ndjson", [verdict("r")])
    b = write(tmp_path / "b.ndjson", [verdict("r", "inconclusive")])
    with pytest.raises(InputError) as refused:
        build_report([a, b], tmp_path / "out")
    assert refused.value.message == (
        f"two different verdicts of model failover on run r: accepted in {a} and inconclusive in {b}"
    )


def test_two_logs_of_one_name_are_refused(tmp_path: Path, write: Any, event: Any) -> None:
    """Runs are not merged because their files share a name, nor counted twice because a log is there in two forms."""
    a = write(tmp_path / "a" / "r.ndjson", [event("start")])
    b = write(tmp_path / "b" / "r.parquet", [event("start")])
    with pytest.raises(InputError) as refused:
        build_report([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert refused.value.message == f"two event logs for run 'r': {a} and {b}"


@pytest.mark.long
def test_logs_that_name_their_run_and_parts_of_a_data_set_add_up(tmp_path: Path, write: Any, event: Any) -> None:
    """A run may be spread over files when the events say so, or when the files are parts of one data set."""
    for number in range(2):
        write(tmp_path / "in" / f"tm-{number}.ndjson", [event("start", run="r")])
        write(tmp_path / "in" / "s.parquet" / f"part-{number}.parquet", [event("start")])
    build_report([tmp_path / "in"], tmp_path / "out")
    assert [tuple(row.values()) for row in _tables(tmp_path / "out")["events"].to_pylist()] == [
        ("r", "jm", "start", 2),
        ("s", "jm", "start", 2),
    ]


@pytest.mark.long
def test_a_second_log_of_a_run_states_the_run(tmp_path: Path, write: Any, event: Any, verdict: Any) -> None:
    """The events that a second model was validated with belong to the run of its verdict, whatever the file is called."""
    write(tmp_path / "in" / "r.ndjson", [event("start")])
    write(tmp_path / "in" / "r.credit_channel.ndjson", [event("start", run="r")])
    write(tmp_path / "in" / "verdicts.json", [verdict("r")])
    result = build_report([tmp_path / "in"], tmp_path / "out")
    assert (result.runs, result.verdicts["accepted"], result.not_validated) == (1, 1, 0)


_DOCUMENT = '{\n"schema": "streamproof.validate/1",\n"verdicts": ['
_GOOD = '{"trace": "t", "process": "p", "seq": 1, "event": "e"}\n'


@pytest.mark.parametrize(
    ("events", "files"),
    [
        (
            3,
            {
                "a.ndjson": (_GOOD + "\n" + _GOOD[:-9], ":3: this line is not one JSON value: Unterminated string"),
                "b.ndjson": (_GOOD + _GOOD.strip() + _GOOD, ":2: this line is not one JSON value: Extra data"),
                "c.ndjson": (_GOOD + '{"event": "e"}\n', ":2: the event has no `trace`"),
            },
        ),
        pytest.param(
            0,
            {
                "a.json": (_DOCUMENT, ": not a JSON document: Expecting value: line 3"),
                "b.json": ('{"schema": "streamproof.validate/1"}', ": the document has no list `verdicts`"),
                "c.json": (_DOCUMENT + '{"run": "r"}]}', ", verdicts[0]: the verdict has no `model`"),
            },
            marks=pytest.mark.long,
        ),
    ],
    ids=["events", "verdicts"],
)
def test_what_is_not_understood_is_named_and_left_out(
    tmp_path: Path, events: int, files: dict[str, tuple[str, str]]
) -> None:
    """File and line, or the record's place, in one sentence; everything else is in the report."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good.ndjson").write_text(_GOOD)
    for name, (content, _) in files.items():
        (tmp_path / "in" / name).write_text(content)
    result = build_report([tmp_path / "in"], tmp_path / "out")
    page = result.html.read_text()
    said = sorted(f"{item.path}: {item.reason}" for item in result.skipped)
    for line, (name, (_, message)) in zip(said, files.items(), strict=True):
        assert line.startswith(f"{tmp_path}/in/{name}{message}")
        assert f"{name}{message.partition(': ')[0]}" in page
    assert result.events == 1 + events


@pytest.mark.long
def test_bad_lines_are_counted_behind_other_pieces_and_compression(tmp_path: Path) -> None:
    """Line numbers count from the start of the file, also when it was read in pieces or is compressed."""
    text = _GOOD * 60_000 + "no event\n" + _GOOD + "neither\n"
    (tmp_path / "large.ndjson").write_text(text)
    (tmp_path / "packed.ndjson.gz").write_bytes(gzip.compress(text.encode()))
    result = build_report([tmp_path / "large.ndjson", tmp_path / "packed.ndjson.gz"], tmp_path / "out")
    assert [item.path for item in result.skipped] == [
        f"{tmp_path}/large.ndjson:60001",
        f"{tmp_path}/packed.ndjson.gz:60001",
    ]
    assert all(item.reason.endswith(" (and 1 more)") for item in result.skipped)
    assert result.events == 2 * 60_001


@pytest.mark.long
def test_a_file_cut_off_in_the_middle_is_named(tmp_path: Path, event: Any) -> None:
    """Of a compressed log whose end is missing, what can be read is in the report."""
    text = "".join(json.dumps(event(f"e{number * 7919 % 10007}")) + "\n" for number in range(20_000))
    (tmp_path / "a.ndjson.gz").write_bytes(gzip.compress(text.encode())[:-9])
    result = build_report([tmp_path / "a.ndjson.gz"], tmp_path / "out")
    assert [item.path for item in result.skipped] == [f"{tmp_path}/a.ndjson.gz"]
    assert result.skipped[0].reason.startswith("cannot be read to its end: ")
    assert 0 < result.events <= 20_000


@pytest.mark.long
def test_relative_paths_are_shown_as_given_and_read_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any, event: Any
) -> None:
    """Workers may run in another folder than the program that gave them the path."""
    write(tmp_path / "in" / "a.ndjson", [event("start")])
    monkeypatch.chdir(tmp_path)
    result = build_report([Path("in")], Path("out"))
    assert (result.html, result.events) == (Path("out/report.html"), 1)
    assert "<code>in/a.ndjson</code>" in Path("out/report.html").read_text()


@pytest.mark.long
def test_a_bad_row_of_parquet_is_named(tmp_path: Path, write: Any, event: Any) -> None:
    """Rows count from 1, as lines do."""
    path = write(tmp_path / "x.parquet", [event("start"), event("start"), event(None)])
    result = build_report([path], tmp_path / "out")
    assert [item.path for item in result.skipped] == [f"{path}, row 3"]
    assert result.events == 2


def test_a_place_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    """A file in the way is said before any input is read by Spark."""
    (tmp_path / "a.ndjson").write_text(_GOOD)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SystemFailure, match=f"^{tmp_path}/file is a file"):
        build_report([tmp_path / "a.ndjson"], tmp_path / "file")
    with pytest.raises(SystemFailure, match=f"^{tmp_path}/file/out cannot be written: {tmp_path}/file is not a folder"):
        build_report([tmp_path / "a.ndjson"], tmp_path / "file" / "out")
    assert sorted(os.listdir(tmp_path)) == ["a.ndjson", "file"]


def test_hostile_names_reach_tables_whole_and_the_page_escaped(
    tmp_path: Path, write: Any, event: Any, verdict: Any
) -> None:
    """A script in a task name is text, in the tables as in the page."""
    evil = "<script>alert('x')</script> & \"B\" (1/2)#0"
    log = write(tmp_path / "r.ndjson", [event(evil)])
    record = verdict("r", actions={evil: 1}, recoveries=[_recovery(1, 2, 1, failed=evil, tasks=[evil])])
    build_report([log, write(tmp_path / "v.json", [record])], tmp_path / "out", title=evil)
    assert _tables(tmp_path / "out")["recoveries"]["failed"].to_pylist() == [evil]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;") >= 5


def test_progress_is_told(made: tuple[Path, ReportResult]) -> None:
    """Whoever waits hears what is being done."""
    home, _ = made
    said = [line for line in (home / "progress.txt").read_text().splitlines() if not line.endswith("tasks")]
    assert said == [
        "reading 3 event logs and 1 verdict files",
        "making the tables",
        f"writing {home / 'out'}",
    ]


@pytest.mark.long
def test_a_malformed_line_costs_a_line_and_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line: the line is named, the exit code is that of a report."""
    (tmp_path / "a.ndjson").write_text(_GOOD + '{"trace": "t", "proc\n' + _GOOD)
    assert verbs.run(["report", str(tmp_path / "a.ndjson"), "--out", str(tmp_path / "out")]) == 0
    written = capsys.readouterr()
    assert written.out.startswith("1 run, 2 events; ")
    assert f"streamproof: warning: {tmp_path}/a.ndjson:2 is left out: this line is not one JSON value" in written.err


@pytest.mark.parametrize("line", [_GOOD[:-9], _GOOD.replace("}", ', "ts": "soon"}')])
def test_nothing_but_malformed_lines_is_refused_before_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    """The first line is named without waiting for a virtual machine."""
    monkeypatch.setattr("streamproof.pipeline.reporting._Maker", None)
    (tmp_path / "a.ndjson").write_text(line)
    assert verbs.run(["report", str(tmp_path / "a.ndjson"), "--out", str(tmp_path / "out")]) == 2
    assert f"streamproof: error: {tmp_path}/a.ndjson:1: " in capsys.readouterr().err
