"""A folder with logs of which some cannot be read: each has a verdict of its own, and the others are judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamproof_runtime.command import Simulated

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def logs(folder: Path) -> None:
    """Two whole logs, and three that are broken in their own way; the first by name is one of them."""
    runs = Simulated(EXAMPLES / "word_count.py", level="none", variant=None, executors=2, slots=3)
    lines = [*runs.seed(0)["lines"]()]
    (folder / "b.ndjson").write_text("".join(lines))
    (folder / "d.ndjson").write_text("".join(runs.seed(1)["lines"]()))
    (folder / "a.ndjson").write_text("".join(lines)[:5000])
    (folder / "c.ndjson").write_text("".join([*lines[:9], lines[9].replace('"seq"', '"sq"'), *lines[10:]]))
    (folder / "e.ndjson").write_text("no log\n")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_others_of_a_folder_are_judged(streamproof: Any, tmp_path: Path, workers: str) -> None:
    """In any number of processes; the exit code is that of unreadable input."""
    logs(tmp_path)
    done = streamproof("validate", str(tmp_path), "--model", "baton", "--workers", workers, "--json", "-")
    assert done.code == 2
    found = {v["run"]: (v["verdict"], v["reason"] or "") for v in json.loads(done.out)["verdicts"]}
    assert {run: verdict for run, (verdict, _) in found.items()} == {
        **dict.fromkeys("ace", "error"),
        **dict.fromkeys("bd", "accepted"),
    }
    for run, words in (
        ("a", "a.ndjson:"),
        ("c", "c.ndjson:10: the event lacks the field 'seq'"),
        ("e", "e.ndjson:1: "),
    ):
        assert words in found[run][1]


def test_a_rejected_log_comes_first(streamproof: Any, tmp_path: Path) -> None:
    """Its exit code is that of the command."""
    logs(tmp_path)
    whole = (tmp_path / "b.ndjson").read_text()
    (tmp_path / "f.ndjson").write_text(whole.replace('"phase":"RUNNING"', '"phase":"TERMINATED"', 1))
    assert streamproof("validate", str(tmp_path), "--model", "baton").code == 161


def test_a_log_that_is_named_must_be_read(streamproof: Any, tmp_path: Path) -> None:
    """It ends the command, with the line."""
    logs(tmp_path)
    done = streamproof("validate", str(tmp_path / "b.ndjson"), str(tmp_path / "c.ndjson"), "--model", "baton")
    assert done.code == 2
    assert "c.ndjson:10: the event lacks the field 'seq'" in done.err
    assert done.out == ""
