"""A run whose tasks are divided among processes has the verdicts of the undivided one, damaged copies included."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from streamproof.base.errors import InputError
from streamproof.conformance.found_runs import ALL, ValidationRequest, readings_under
from streamproof.conformance.judging import judge


def compare(run: Path) -> list[str]:
    """The answers for a run, by all models, which are the same for one process and for two."""
    answers = []
    try:
        found = readings_under(run, ValidationRequest(model=ALL))
    except InputError:
        return []
    for reading in (one for readings in found for one in readings):
        try:
            plan = reading.binding.plan(reading.run, None)
        except InputError:
            continue
        whole, divided = (judge(plan, reading.model, processes=processes) for processes in (1, 2))
        one, two = (json.dumps([v.record() for v in verdicts]) for verdicts in (whole, divided))
        assert one == two, f"{run}, {reading.model}"
        answers += [verdict.answer for verdict in whole]
    return answers


def damaged(run: Path, into: Path, seed: int) -> Path:
    """A copy of a run without some of its lines, or with two of them exchanged."""
    chance = random.Random(seed)
    shutil.copytree(run, into)
    files = sorted(file for file in into.rglob("*") if file.is_file() and file.suffix in (".log", ".ndjson"))
    file = chance.choice(files)
    lines = file.read_text(errors="replace").splitlines(keepends=True)
    for _ in range(chance.choice((1, 3, 10))):
        at, to = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[at], lines[to] = ("", lines[to]) if chance.random() < 0.5 else (lines[to], lines[at])
    file.write_text("".join(lines))
    return into


def test_a_divided_run_has_the_same_verdicts(flink_logs: Path, tmp_path: Path) -> None:
    """An accepted run of many tasks, and a damaged copy."""
    run = flink_logs / "a-taskfail-1"
    assert set(compare(run)) <= {"accepted", "inconclusive"}
    compare(damaged(run, tmp_path / run.name, 1))


@pytest.mark.long
def test_hundreds_of_divided_runs_have_the_same_verdicts(flink_logs: Path, flink_more: Path, tmp_path: Path) -> None:
    """All recorded runs, each with damaged copies; some are rejected."""
    answers: list[str] = []
    for number, run in enumerate(sorted(path for folder in (flink_logs, flink_more) for path in folder.iterdir())):
        for seed in range(5):
            copy = damaged(run, tmp_path / f"{number}-{seed}", seed)
            answers += compare(copy)
            shutil.rmtree(copy)
    assert len(answers) > 300
    assert {"accepted", "rejected"} <= set(answers)
