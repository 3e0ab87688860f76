"""Logs as public reports have them, rebuilt: of Flink 1.9 to 2.1, excerpts, in JSON. Each has its right verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamproof.cli.verbs import run
from streamproof.conformance import RunVerdict
from streamproof.conformance.flink import read_run
from streamproof.conformance.validation import validate_paths

ACCEPTED = {
    "standalone-1.14": "slot_pool",
    "excerpt-1.12": "",
    "json-1.11": "checkpoints",
    "single-vertex": "failover regions slot_pool",
    "excerpt-1.20": "",
    "checkpoints-1.9": "",
    "checkpoints-1.12": "",
    "event-lost-2.1": "",
}
"""The models that accept it; the others say what is missing."""
WARNED = {"checkpoints-1.9": 4, "excerpt-1.20": 1}
"""The number of warnings of those that have any."""


def judged(folder: Path) -> dict[str, list[RunVerdict]]:
    """The verdicts of all models."""
    found: dict[str, list[RunVerdict]] = {}
    for verdict in validate_paths([folder], model="all"):
        found.setdefault(verdict.model, []).append(verdict)
    return found


@pytest.mark.parametrize("name", ACCEPTED)
def test_verdicts(name: str, flink_public: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """None is rejected; a warning is printed once, for all models."""
    found = judged(flink_public / name)
    accepted = {model for model, own in found.items() if {v.answer for v in own} == {"accepted"}}
    assert accepted == set(ACCEPTED[name].split())
    assert {v.answer for own in found.values() for v in own} <= {"accepted", "inconclusive"}
    assert capsys.readouterr().err.count("warning:") == WARNED.get(name, 0)


def test_attempts_of_older_versions_are_followed(flink_public: Path) -> None:
    """Their identifiers are plain; vertex, subtask and number are in other places of the lines."""
    (verdict,) = judged(flink_public / "standalone-1.14")["failover"]
    assert (verdict.matched, verdict.read) == (26, 41)
    run = read_run(flink_public / "standalone-1.14")
    assert run.problems == ()
    attempts = {e.args["attempt"] for e in run.events if "attempt" in e.args}
    assert {(text[-4:], len(text)) for text in attempts} == {("_0_0", 69)}


def test_an_excerpt_says_what_is_cut_out(flink_public: Path) -> None:
    """Rows of dots stand for lines: what contradicts the others proves nothing. The attempts are counted."""
    run = read_run(flink_public / "excerpt-1.12")
    (why,) = run.excused.values()
    assert why == "line 3 of flink-root-taskexecutor-0-host-1.log stands for lines that were cut out"
    reasons = {v.reason or "" for v in judged(flink_public / "excerpt-1.12")["failover"]}
    assert len([r for r in reasons if "15 attempts are of jobs that no line names" in r]) == len(reasons) > 0


@pytest.mark.parametrize("file", ["taskmanager.log", "issue.txt"])
def test_attempts_of_a_job_that_no_line_names_are_judged(file: str, flink_public: Path, tmp_path: Path) -> None:
    """By their execution graph; a text with a margin and a lost bracket is the same."""
    (verdict,) = validate_paths([flink_public / "excerpt-1.20" / file])
    assert (verdict.answer, verdict.matched) == ("inconclusive", 5)
    assert "18 events and 5 attempts of it were read" in (verdict.reason or "")
    lines = (flink_public / "excerpt-1.20" / file).read_text().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if "Received task" in line)
    again = lines[place].replace(":32,", ":33,", 1)
    (tmp_path / "taskmanager.log").write_text("".join([*lines[: place + 2], again, *lines[place + 2 :]]))
    (tampered,) = validate_paths([tmp_path])
    assert tampered.answer == "rejected"


def test_a_log_in_json_of_an_older_version_is_read(flink_public: Path) -> None:
    """A message outside of the known forms does not decide the layout."""
    assert len(read_run(flink_public / "json-1.11").events) == 4


def test_checkpoint_lines_of_another_format_leave_the_verdict_open(flink_public: Path) -> None:
    """More lines are unread than read."""
    (verdict,) = judged(flink_public / "checkpoints-1.9")["checkpoints"]
    assert "4 of 5 lines of the kind that is followed are not in the format of Flink 1.16 to 2.3" in (
        verdict.reason or ""
    )


def test_a_checkpoint_whose_end_has_no_line_is_right_before_1_16(flink_public: Path) -> None:
    """The log does not show its version: open."""
    (verdict,) = judged(flink_public / "checkpoints-1.12")["checkpoints"]
    assert "Flink writes one from 1.16 on, and the log does not show its version" in (verdict.reason or "")


def test_what_is_no_log_of_flinks_is_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The records that were recognised, and what to try."""
    (tmp_path / "app.log").write_text("2026-11-21 03:17:55,749 INFO  com.acme.Shop [] - sold\n" * 3 + "bye\n")
    assert run(["validate", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "3 records of other programs, the first logger is Shop" in said
    (tmp_path / "app.log").write_text("hello\nworld\n")
    assert run(["validate", str(tmp_path)]) == 2
    assert "none of its 2 lines begins like a record" in capsys.readouterr().err
