"""Logs of runs as Parquet get the verdicts of the same logs as NDJSON, and damage is an error, never another verdict."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runtime_processes import run
from runtime_runs import EXAMPLES
from shares import share
from streamproof.conformance import read_events, validate_paths
from streamproof.conformance.run_logs import in_parquet, run_in_parquet
from streamproof.system import StreamproofError
from streamproof_runtime.command import Simulated


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on processes, one of which is killed twice."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    folder.mkdir()
    outcome = run(EXAMPLES / "components.py", folder, kills=("tm-1@8", "tm-1@2"))
    assert all(kill["happened"] for kill in outcome["kills"])
    return folder


def answer(path: Path, model: str = "all") -> str:
    """The verdicts on a run, or the error, without what differs: the name and form of the files."""
    try:
        text = json.dumps([verdict.record() for verdict in validate_paths([path], model=model)])
    except StreamproofError as error:
        text = str(error)
    return (
        text.replace(str(path.parent), "").replace(".parquet", "").replace(".ndjson", "").replace("the row", "the line")
    )


def copied(folder: Path, place: Path) -> Path:
    """A copy of a folder, of the same name."""
    shutil.copytree(folder, place / folder.name)
    return place / folder.name


def tampered(lines: list[str], choice: random.Random) -> Iterator[str]:
    """The lines of a log with one event left out, doubled, exchanged with another one, or changed."""
    at = choice.randrange(len(lines))
    event = json.loads(lines[at])
    match choice.choice(["drop", "double", "swap", "process", "clock", "number", "event"]):
        case "drop":
            yield from (line for place, line in enumerate(lines) if place != at)
            return
        case "double":
            yield lines[at]
        case "swap":
            lines = [lines[-1], *lines[1:-1], lines[0]]
        case "process":
            event["process"] = choice.choice([json.loads(line)["process"] for line in lines])
        case "clock":
            event["clock"] = {
                name: count + choice.randint(0, 2) for name, count in event.get("clock", {"x": 1}).items()
            }
        case "number":
            event["seq"] += choice.randint(1, 3)
        case "event":
            event["event"] = choice.choice([json.loads(line)["event"] for line in lines])
    yield from (json.dumps(event) + "\n" if place == at else line for place, line in enumerate(lines))


def test_a_run_on_processes_has_the_same_verdicts(recorded: Path, tmp_path: Path) -> None:
    """Every model's verdict on every attempt, gate, loop head, and on the slots, with all its details."""
    folder = copied(recorded, tmp_path)
    before = answer(folder)
    events = {log.stem: read_events(log, without_torn_line=True) for log in folder.iterdir()}
    run_in_parquet(folder)
    assert {log.suffix for log in folder.iterdir()} == {".parquet"}
    assert {log.stem: read_events(log) for log in folder.iterdir()} == events
    assert before.count('"verdict": "accepted"') > 10
    assert answer(folder) == before


def test_a_torn_last_line_and_an_empty_log(recorded: Path, tmp_path: Path) -> None:
    """What a killed process wrote last is left out of both forms; a process may have written nothing."""
    folder = copied(recorded, tmp_path)
    with (folder / "tm-1.0.ndjson").open("a") as log:
        log.write('{"trace":"components#0","pro')
    (folder / "tm-2.1.ndjson").touch()
    before = answer(folder)
    run_in_parquet(folder)
    assert (folder / "tm-2.1.parquet").exists()
    assert answer(folder) == before


@pytest.mark.parametrize("seed", share(range(60), 20))
def test_tampered_logs_have_the_same_verdicts(recorded: Path, seed: int, tmp_path: Path) -> None:
    """A lie gets the same verdict, at the same line, for the same reason."""
    folder, choice = copied(recorded, tmp_path), random.Random(seed)
    log = choice.choice(sorted(folder.iterdir()))
    log.write_text("".join(tampered(log.read_text().splitlines(keepends=True), choice)))
    before = answer(folder)
    try:
        run_in_parquet(folder)
    except StreamproofError:
        assert "verdict" not in before
    assert answer(folder) == before


JOBS = ("components", "sales", "word_count", "readings")


@pytest.mark.push
@pytest.mark.parametrize(
    ("job", "seed"),
    [
        ("sales", 3),
        *(pytest.param(job, seed, marks=pytest.mark.long) for job in JOBS for seed in range(10)),
    ],
)
def test_simulated_runs_have_the_same_verdicts(job: str, seed: int, tmp_path: Path) -> None:
    """Runs under faults of every family, and copies of them with one change."""
    settings: dict[str, Any] = {"level": "severe", "variant": None, "executors": 3, "slots": 2}
    lines = [*Simulated(EXAMPLES / f"{job}.py", **settings).seed(seed)["lines"]()]
    for name, content in (("run", lines), ("changed", [*tampered(lines, random.Random(seed))])):
        log = tmp_path / f"{name}.ndjson"
        log.write_text("".join(content))
        before = answer(log)
        try:
            in_parquet(log)
        except StreamproofError:
            assert "verdict" not in before
        else:
            assert name == "changed" or not log.exists()  # one that does not begin as ours is kept
            after, unknown = answer(log.with_suffix(".parquet")), "no record of Flink's is in it"
            assert after == before or (unknown in before and unknown in after)  # its beginning is not a JobMaster's


def test_an_interrupted_conversion_changes_nothing(recorded: Path, tmp_path: Path) -> None:
    """Logs in both forms, some already without the first, are one run."""
    folder = copied(recorded, tmp_path)
    before = answer(folder)
    kept = copied(folder, tmp_path / "kept")
    run_in_parquet(folder)
    for name in ("jobmaster", "tm-1.0"):
        shutil.copy(kept / f"{name}.ndjson", folder)
    (folder / "jobmaster.parquet").write_bytes(b"PAR1 half")  # not read: the log itself is there
    assert answer(folder) == before


def damage(recorded: Path, tmp_path: Path, name: str, content: bytes) -> str:
    """The error for a run with a damaged file, without the path."""
    folder = copied(recorded, tmp_path)
    run_in_parquet(folder)
    (folder / name).write_bytes(content)
    with pytest.raises(StreamproofError) as caught:
        validate_paths([folder])
    return str(caught.value).replace(str(folder), "")


@pytest.mark.parametrize("name", ["jobmaster.parquet", "tm-1.0.parquet", "rm.parquet"])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a table", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_a_damaged_file_is_one_clear_error(recorded: Path, tmp_path: Path, name: str, content: bytes) -> None:
    """Also an empty file: a log of no event is a whole table."""
    assert damage(recorded, tmp_path, name, content).startswith(f"/{name}: the Parquet file is damaged (")


def test_a_table_of_another_schema_is_refused(recorded: Path, tmp_path: Path) -> None:
    """It names the missing column, or the row with the wrong type."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"trace": ["t"], "process": ["p"], "event": ["e"]}), sink)
    content = sink.getvalue().to_pybytes()
    assert "lacks the column 'seq'" in damage(recorded, tmp_path / "a", "jobmaster.parquet", content)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"trace": ["t"], "process": ["p"], "event": ["e"], "seq": ["0"]}), sink)
    error = damage(recorded, tmp_path / "b", "tm-1.0.parquet", sink.getvalue().to_pybytes())
    assert error.startswith("/tm-1.0.parquet:1: 'seq' must be a whole number from 0, got '0'")


@pytest.mark.parametrize("every", [29, pytest.param(1, marks=pytest.mark.long)])
def test_no_changed_bit_changes_an_event(recorded: Path, tmp_path: Path, every: int) -> None:
    """Wherever a bit of a file is flipped, or the file is cut, it has the same events or is refused."""
    log = tmp_path / "tm-1.0.ndjson"
    shutil.copy(recorded / log.name, log)
    events = read_events(log)
    in_parquet(log)
    file = log.with_suffix(".parquet")
    content = file.read_bytes()
    refused = 0
    for at in range(0, len(content), every):
        for changed in (content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :], content[:at]):
            file.write_bytes(changed)
            try:
                assert read_events(file) == events, at
            except StreamproofError:
                refused += 1
    assert refused > len(content) // every


@pytest.mark.long
@pytest.mark.spark
def test_spark_asks_for_clocks(spark: Any, recorded: Path, tmp_path: Path) -> None:
    """Process, number and name are columns, a clock is a map, arguments are JSON: what Spark finds is what the log has."""
    folder = copied(recorded, tmp_path)
    events = [event for log in folder.iterdir() for event in read_events(log)]
    run_in_parquet(folder)
    schema = pq.read_schema(folder / "tm-1.2.parquet")
    assert schema.field("clock").type == pa.map_(pa.string(), pa.int64())
    assert not schema.field("process").nullable
    wanted = ("process", "seq", "clock[process]", "get_json_object(args, '$.channel')")
    rows = spark.read.parquet(str(folder)).where("event = 'record_received'").selectExpr(*wanted).collect()
    expected = [
        (e.process, e.seq, (e.clock or {})[e.process], e.args["channel"])
        for e in events
        if e.event == "record_received"
    ]
    assert sorted(map(tuple, rows)) == sorted(expected)
    assert expected
