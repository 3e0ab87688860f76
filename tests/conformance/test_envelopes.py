"""What stands around the lines of a log is taken off: the events must be those of the original, at their lines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from nonempty import nonempty
from shares import share
from streamproof.conformance.flink import FlinkRun, find_runs, read_run
from streamproof.conformance.flink.archives import open_bounded
from wrapping import IN_ONE_LINE, WRAPPINGS

RUN = "ckpt-expo"


def _content(run: FlinkRun) -> list[tuple[str, str]]:
    return sorted((e.event, str({k: v for k, v in e.args.items() if k != "by"})) for e in run.events)


def _wrapped(source: Path, folder: Path, name: str, *, together: bool = False) -> Path:
    write, ending = WRAPPINGS[name]
    folder.mkdir()
    texts = {log.stem: write(log.read_text().splitlines(), log.stem) for log in sorted(source.glob("*.log"))}
    for process, text in ({"all": "".join(texts.values())} if together else texts).items():
        (folder / f"{process}{ending}").write_bytes(text.encode("utf-16" if name == "UTF-16" else "utf-8"))
    return folder


@pytest.fixture(scope="module")
def recorded(flink_live: Path) -> FlinkRun:
    """The run as it was recorded."""
    return read_run(flink_live / RUN)


@pytest.mark.parametrize("name", share(WRAPPINGS, 8))
def test_wrapped_logs(name: str, flink_live: Path, tmp_path: Path, recorded: FlinkRun) -> None:
    """Nothing is lost or added, stack traces are whole, and an event has the line that shows it."""
    folder = _wrapped(flink_live / RUN, tmp_path / "run", name)
    run = read_run(folder)
    assert [p.text for p in run.problems] == []
    assert _content(run) == _content(recorded)
    assert len(run.processes) == len(recorded.processes)
    for event in nonempty([e for e in run.events if e.event == "job.transition"]):
        assert event.file is not None
        assert event.line is not None
        data = Path(event.file).read_bytes()
        lines = data.decode("utf-16" if name == "UTF-16" else "utf-8").split("\n")
        place = event.line - 1
        near = lines[place : place + 20]
        assert any(str(event.args["new"]) in line for line in near), (event, near[:3])


@pytest.mark.parametrize("name", share(IN_ONE_LINE, 2))
def test_documents(name: str, flink_live: Path, tmp_path: Path, recorded: FlinkRun) -> None:
    """The answer of a store is one document, often in one line; in some the newest record is the first."""
    for log in (flink_live / RUN).glob("*.log"):
        (tmp_path / f"{log.stem}.json").write_text(IN_ONE_LINE[name](log.read_text().splitlines(), log.stem))
    run = read_run(tmp_path)
    assert [p.text for p in run.problems] == []
    assert _content(run) == _content(recorded)


@pytest.mark.parametrize(
    "record",
    [
        {"event": "put", "args": {"v": [{"a": 1}, {"a": 2}]}},
        {"instant": {"epochSecond": 1}, "message": "failed", "thrown": {"extendedStackTrace": [{"class": "A"}]}},
        {"event": "put"},
    ],
    ids=["an event with records", "a line with a stack trace", "an event"],
)
def test_a_single_record_is_no_answer(record: dict[str, Any], tmp_path: Path) -> None:
    """A log of one line is a JSON document, too: what is inside its record stays there."""
    log = tmp_path / "log.ndjson"
    log.write_text(json.dumps(record) + "\n")
    with open_bounded(log) as stream:
        assert json.loads(stream.read()) == record


def test_a_folder_for_each_process(flink_live: Path, tmp_path: Path, recorded: FlinkRun) -> None:
    """Collectors give each container or pod its folder; answers of the REST API may be in the one above."""
    for n, log in enumerate(sorted((flink_live / RUN).glob("*.log"))):
        folder = tmp_path / f"container_{n}"
        folder.mkdir()
        shutil.copy(log, folder / f"{log.stem.partition('-')[0]}.log")
    for answer in (flink_live / RUN).glob("rest-*.json"):
        shutil.copy(answer, tmp_path)
    run = read_run(tmp_path)
    assert _content(run) == _content(recorded)
    assert (len(run.processes), len(run.rest)) == (len(recorded.processes), len(recorded.rest))
    # Runs that have both kinds of processes stay apart.
    shutil.copytree(flink_live / RUN, tmp_path / "other")
    assert len(find_runs(tmp_path)) == 4


@pytest.mark.parametrize("name", ["stern", "grep -rn", *(pytest.param(n, marks=pytest.mark.long) for n in
                                  ("google by line", "fluent-bit", "loki", "aws tail", "managed by aws tail"))])  # fmt: skip
def test_several_processes_in_one_file(name: str, flink_live: Path, tmp_path: Path, recorded: FlinkRun) -> None:
    """What stands around the lines names the process."""
    run = read_run(_wrapped(flink_live / RUN, tmp_path / "run", name, together=True))
    assert len(run.processes) == len(recorded.processes)
    assert _content(run) == _content(recorded)


def test_a_cut_object_does_not_hide_the_next_ones(flink_live: Path, tmp_path: Path, recorded: FlinkRun) -> None:
    """Of a document, one object has lost its end: the others are read."""
    folder = _wrapped(flink_live / RUN, tmp_path / "run", "google")
    log = folder / "jobmanager.json"
    lines = log.read_text().split("\n")
    place = next(n for n, line in enumerate(lines) if "switched from SCHEDULED" in line)
    log.write_text("\n".join(lines[:place] + lines[place + 2 :]))
    found = _content(read_run(folder))
    assert len(found) == len(_content(recorded)) - 1


@pytest.mark.parametrize("inner", ["plain", "managed"])
def test_several_lines_in_one_object(inner: str, flink_live: Path, tmp_path: Path, recorded: FlinkRun) -> None:
    """A collector puts records together, of three lines each: none of them is lost."""
    for log in sorted((flink_live / RUN).glob("*.log")):
        lines = log.read_text().splitlines()
        lines = lines if inner == "plain" else WRAPPINGS["managed"][0](lines, log.stem).splitlines()
        objects = (json.dumps({"line": "\n".join(lines[at : at + 3])}) for at in range(0, len(lines), 3))
        (tmp_path / f"{log.stem}.log").write_text("\n".join(objects) + "\n")
    assert _content(read_run(tmp_path)) == _content(recorded)
