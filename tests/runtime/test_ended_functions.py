"""User functions that end or copy their process, raise an interrupt, or return nothing: one message with its cause."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from streamproof_runtime.command import Simulated

HEAD = "import os\nfrom streamproof_runtime import Job\n"


def job(folder: Path, function: str, expected: str = "[]") -> Path:
    """A job of one function of three records."""
    made = folder / "given.py"
    made.write_text(
        f"{HEAD}def f(c, n):\n    {function}\n"
        "def job():\n    j = Job()\n    j.source('s', [1, 2, 3]).process('p', f).collect('c')\n    return j\n"
        f"def expected(): return {{'c': {expected}}}\n"
    )
    return made


@pytest.mark.parametrize(
    ("function", "words"),
    [
        pytest.param("return (bool(os.fork()),)", ("0", "as expected"), marks=pytest.mark.long),
        ("raise KeyboardInterrupt", ("12", "p: KeyboardInterrupt (given.py:4)")),
        pytest.param(
            "os._exit(9)",
            ("12", "no restart is left after 0: connection", "ended: exit code 9"),
            marks=pytest.mark.long,
        ),
    ],
    ids=["fork", "interrupt", "exit"],
)
def test_a_function_ends_its_process(function: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """The copy by a fork ends; the others fail the job, with their cause, in a few lines."""
    path = job(tmp_path, function, "[True] * 3")
    done = subprocess.run(
        [sys.executable, "-m", "streamproof", "run", path, "--restarts", "0"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    shown = " ".join((done.stdout + done.stderr).split())
    assert str(done.returncode) == words[0], shown
    assert all(word in shown for word in words[1:]), shown
    assert (done.stdout + done.stderr).count("\n") < 10


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("return None", "p: TypeError: a function (given.py:3) returned None, not an iterable of records"),
        ("raise SystemExit(3)", "p: SystemExit: 3 (given.py:4)"),
    ],
)
def test_a_function_fails_at_its_line(function: str, why: str, tmp_path: Path) -> None:
    """Also where Python would name no line of the job."""
    runs = Simulated(job(tmp_path, function), level="none", variant=None, executors=1, slots=2)
    assert why in str(runs.seed(0)["wrong"])


class Stopped(BaseException):
    """An interrupt of the program, as the end of a time limit is."""


def test_an_interrupt_of_the_program_is_no_failure_of_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come while a user function computes, whose large values take all of the time."""
    monkeypatch.setattr("builtins.stop", Stopped, raising=False)
    runs = Simulated(job(tmp_path, "raise stop"), level="none", variant=None, executors=1, slots=2)
    with pytest.raises(Stopped):
        runs.seed(0)
