"""Type checkers read a program that uses the public door: no error in it, and what it gets has the documented types."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from mypy import api

PROGRAM = '''
"""Checks, proves and exports a model, and validates a log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamproof as sp
from streamproof import WEAK, Model, Range, State, action, always, eventually, invariant, require, temporal
from streamproof.comparison import Block, Claim, Column, Comparison, Judgement, Table


class Clock(Model):
    """Counts, and begins again."""

    limit: int = 3
    check_deadlock = False

    def state(self) -> State:
        return State(n=Range(0, self.limit))

    @action(fairness=WEAK)
    def tick(self, s: Any) -> None:
        require(s.n <= self.limit)
        s.n = 0 if s.n == self.limit else s.n + 1

    @invariant
    def low(self, s: Any) -> Any:
        return s.n <= self.limit

    @temporal
    def ends(self, s: Any) -> Any:
        return always(eventually(s.n == 0))


def main(folder: Path) -> bool:
    options = sp.SearchOptions(max_states=1_000, time_limit=10.0)
    checked: sp.Exploration = sp.check(Clock, ["low"], parameters={"limit": 4}, options=options)
    bounded: sp.Bounded = sp.check(Clock.system(), engine="bmc", options=sp.SearchOptions(max_depth=5))
    proof = sp.prove(Clock(limit=5), ["ends"], engine="auto")
    every: sp.AnyProof = sp.prove_any(Clock, ["limit"], options=sp.SearchOptions(query_limit=5.0))
    ranked: sp.RankedProof = sp.prove_rank(Clock, ["ends"])
    walks: sp.Simulation = sp.simulate("counter.py", options=sp.SearchOptions(walks=10, seed=1))
    runs: sp.Validation = sp.validate(folder, Clock)
    named = sp.validate([folder], "failover", options=sp.ValidationOptions(pattern="%m%n"))
    written: tuple[Path, ...] = sp.export(Clock, "itf", ["low"]).write(folder)
    replayed: sp.Replayed = sp.replay(written[0], Clock, "low")
    distinct: int = checked.counts.distinct
    finding: sp.Finding = proof.finding("ends")
    trace: sp.Trace | None = finding.trace
    results: list[sp.CheckResult] = [checked, bounded, proof, every, ranked, walks]
    answers = [run.answer for run in (*runs.verdicts, *named.verdicts)]
    good = all(result.verdict is sp.Verdict.HOLDS for result in results)
    return good and distinct > 0 and trace is None and replayed.property is not None and "rejected" not in answers


def judge(table: Table) -> tuple[Judgement, str]:
    return Judgement.OPEN, table.text("design", "column")


COMPARISON = Comparison("design", ("a",), (Block("title", (Column("c", "C", "low", {}),)),), (Claim("a", "c", judge),))
'''
WRONG = """
wrong = sp.SearchOptions(time_limit="10")
sp.check(Clock, engine="spin")
sp.check(Clock, timeout=1_000)
number: str = sp.check(Clock).counts.distinct
"""
"""Each line has one mistake."""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program without a mistake."""
    (tmp_path / "right.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(PROGRAM + WRONG, encoding="utf-8")
    return tmp_path


def lines_of(text: str) -> set[int]:
    """The lines of the mistakes."""
    first = text.count("\n") + 1 - len(WRONG.strip().splitlines())
    return {*range(first, first + len(WRONG.strip().splitlines()))}


@pytest.mark.long
def test_mypy_reads_a_program(program: Path) -> None:
    """No error in the program, one in each wrong line."""
    options = ["--config-file=", "--strict", "--no-error-summary", "--cache-dir", str(program / "cache")]
    out, err, code = api.run([*options, str(program / "right.py")])
    assert (out, err, code) == ("", "", 0)
    out, _, _ = api.run([*options, str(program / "wrong.py")])
    errors = [row for row in out.splitlines() if ": error: " in row]
    assert {int(row.split(":")[1]) for row in errors} == lines_of(PROGRAM + WRONG), out


@pytest.mark.long
@pytest.mark.skipif(find_spec("pyright") is None, reason="pyright is not installed: make venv")
@pytest.mark.skipif(shutil.which("node") is None, reason="pyright needs node, which is not installed")
def test_pyright_reads_a_program(program: Path) -> None:
    """The same for pyright, which editors use."""
    found = {name: pyright(program / name) for name in ("right.py", "wrong.py")}
    assert found == {"right.py": set(), "wrong.py": lines_of(PROGRAM + WRONG)}


def pyright(file: Path) -> set[int]:
    """The lines with errors. The installed package is read as a user's editor reads it."""
    roots = [str(Path(__file__).resolve().parents[2] / "checker")]
    settings = {"include": [file.name], "extraPaths": roots, "typeCheckingMode": "standard", "pythonVersion": "3.11"}
    (file.parent / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--project", str(file.parent)],
        cwd=file.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["summary"]["filesAnalyzed"] > 0
    errors = [row for row in answer["generalDiagnostics"] if row["severity"] == "error"]
    return {row["range"]["start"]["line"] + 1 for row in errors}
