"""The history in a verdict restates the log: job graph, regions, each attempt with its states, rejected lines."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import networkx
import pytest

from streamproof.conformance import DrawnAttempt, Event, JobHistory
from streamproof.conformance.history import MOST_ATTEMPTS
from streamproof.conformance.validation import validate_paths

SWITCHED = re.compile(
    r"^(\S+) (\S+),(\d+) .* - (?P<task>.*) \((?P<n>\d+)/\d+\) \([0-9a-f]+_(?P<v>[0-9a-f]+)_\d+_(?P<number>\d+)\)"
    r" switched from \w+ to (?P<new>\w+)"
)
JOB = re.compile(r"Job .* \([0-9a-f]{32}\) switched from state \w+ to (\w+)")


def record(run: Path) -> dict[str, Any]:
    """The verdict on a run with one job."""
    (verdict,) = validate_paths([run])
    return verdict.record()


@pytest.mark.parametrize("name", ["b-lostpart-1", "hybrid-full2", "adaptive-taskfail"])
def test_it_has_every_line_of_the_jobmanager(name: str, flink_logs: Path, flink_live: Path) -> None:
    """The same states at the same times as a plain search of the log finds, also where no machine follows the job."""
    run = flink_logs / name if (flink_logs / name).exists() else flink_live / name
    history = record(run)["history"]
    text = (run / "jobmanager.log").read_text()
    lines = sorted(
        (m["task"], int(m["n"]), int(m["number"]), m["new"], f"{m[1]}T{m[2]}.{m[3]}")
        for m in map(SWITCHED.match, text.splitlines())
        if m
    )
    names = [vertex["name"] for vertex in history["vertices"]]
    attempts = history["attempts"]
    assert lines
    assert lines == sorted(
        (names[a["vertex"]], a["subtask"] + 1, a["number"], state, at) for a in attempts for state, at in a["states"]
    )
    assert [state for state, _ in history["states"]] == JOB.findall(text)
    assert history["total_attempts"] == len(attempts)
    assert {a["place"] for a in attempts} - {None} == set(re.findall(r" Deploying .* to (\S+) @ ", text))


def test_regions_are_joined_by_pipelined_exchanges(flink_live: Path) -> None:
    """As the connected components of the tasks over them."""
    history = record(flink_live / "region-cycle")["history"]
    size = [vertex["parallelism"] for vertex in history["vertices"]]
    graph = networkx.Graph()
    graph.add_nodes_from((v, n) for v, count in enumerate(size) for n in range(count))
    for edge in history["edges"]:
        if edge["exchange"].startswith("PIPELINED"):
            a, b = edge["source"], edge["target"]
            assert edge["pattern"] == "ALL_TO_ALL" or size[a] == size[b]
            pairs = (
                [(n, n) for n in range(size[a])]
                if edge["pattern"] == "POINTWISE"
                else [(m, n) for m in range(size[a]) for n in range(size[b])]
            )
            graph.add_edges_from(((a, m), (b, n)) for m, n in pairs)
    found: dict[int, set[tuple[int, int]]] = {}
    for v, vertex in enumerate(history["vertices"]):
        for n, region in enumerate(vertex["regions"]):
            found.setdefault(region, set()).add((v, n))
    assert len(found) == 5
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, networkx.connected_components(graph)))


def test_rejected_lines_are_at_their_attempts(flink_logs: Path, tmp_path: Path) -> None:
    """Each with the time of its line and the attempt that it names."""
    run = Path(shutil.copytree(flink_logs / "b-lostpart-1", tmp_path / "run"))
    log = run / "jobmanager.log"
    changed, count = re.subn(
        r"(B \(2/4\) .*) from INITIALIZING to RUNNING", r"\1 from RUNNING to RUNNING", log.read_text()
    )
    assert count
    log.write_text(changed)
    found = record(run)
    first, marked = found["rejection"], found["history"]["rejected"]
    assert [(mark["line"], mark["message"]) for mark in marked[:1]] == [(first["line"], first["message"])]
    attempts = found["history"]["attempts"]
    blamed = set()
    for mark in marked:
        line = Path(mark["file"]).read_text().splitlines()[mark["line"] - 1]
        assert line.startswith(mark["at"].replace("T", " ").replace(".", ","))
        if "RUNNING to RUNNING" in line:
            blamed.add((attempts[mark["attempt"]]["subtask"], attempts[mark["attempt"]]["number"]))
    assert blamed == {(1, number) for number in range(count)}


def test_very_many_attempts_are_counted() -> None:
    """The record has the first of them, and the number of all."""
    attempts = tuple(DrawnAttempt(f"a{n}", 0, 0, n, ()) for n in range(MOST_ATTEMPTS + 3))
    event = Event("job", "jm", 1, "x", {"attempt": f"a{MOST_ATTEMPTS + 1}"})
    found = JobHistory((), (), (), attempts).record([(event, "no"), (None, "end")])
    assert (len(found["attempts"]), found["total_attempts"]) == (MOST_ATTEMPTS, MOST_ATTEMPTS + 3)
    assert [(r["attempt"], r["message"]) for r in found["rejected"]] == [(None, "no"), (None, "end")]
