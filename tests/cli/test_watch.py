"""`check --watch` checks again after a file was saved, and ends with Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

MODEL = """
from limits import MOST

from streamproof import Model, Range, State, action, invariant, require, terminal


class Counter(Model):
    def state(self):
        return State(n=Range(0, 9))

    @action
    def up(self, s):
        require(s.n < MOST)
        s.n += 1

    @terminal
    def full(self, s):
        return s.n == MOST

    @invariant
    def low(self, s):
        return s.n < 4
"""


def wait_for(output: Path, text: str, count: int) -> None:
    """Waits until the output has a text so many times."""
    end = time.monotonic() + 60
    while output.read_text().count(text) < count:
        assert time.monotonic() < end, output.read_text()
        time.sleep(0.05)


@pytest.mark.long
def test_a_neighbour_is_saved(tmp_path: Path) -> None:
    """The model's verdict changes with the module beside it; a broken file is reported, and the watch goes on."""
    (tmp_path / "counter.py").write_text(MODEL)
    (tmp_path / "limits.py").write_text("MOST = 3\n")
    output = tmp_path / "output.txt"
    words = [sys.executable, "-m", "streamproof", "check", "counter.py", "-q", "--watch"]
    with output.open("w") as stream:
        program = subprocess.Popen(words, cwd=tmp_path, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        wait_for(output, "watching", 1)
        assert "holds: 2 of 2 properties" in output.read_text()
        (tmp_path / "limits.py").write_text("MOST = 5\n")
        wait_for(output, "watching", 2)
        assert "violated: low" in output.read_text()
        (tmp_path / "counter.py").write_text("class\n")
        wait_for(output, "watching", 3)
        assert "SyntaxError" in output.read_text()
    finally:
        os.killpg(program.pid, signal.SIGINT)
    assert program.wait(10) == 130
