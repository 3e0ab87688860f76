"""Running the command line in this process, in a folder of its own, and the small models that the tests check."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from streamproof.cli.verbs import run

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True, slots=True)
class Done:
    """What one command did."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]

COUNTER = '''
from streamproof import Model, Range, State, action, invariant, reachable, require, step


class Counter(Model):
    """A counter that one rule increments."""

    limit: int = 3
    """Where it stops."""
    check_deadlock = False
    sizes = {"small": {"limit": 1}, "medium": {"limit": 5}}

    def setup(self):
        if self.limit > 100:
            raise ValueError("the limit is at most 100")

    def state(self):
        return State(n=Range(0, self.limit))

    @action
    def increment(self, s):
        """One more."""
        require(s.n < self.limit)
        s.n += 1

    @invariant
    def low(self, s):
        """The counter stays below three."""
        return s.n < 3

    @step
    def grows(self, s, t):
        """No step makes it smaller."""
        return t.n >= s.n

    @reachable
    def full(self, s):
        """The limit is reached."""
        return s.n == self.limit


class Jumping(Counter, variant="jumping"):
    """Goes to the limit at once."""

    @action
    def increment(self, s):
        """All at once."""
        require(s.n < self.limit)
        s.n = self.limit
'''

TWO = '''
from streamproof import Model, Range, State, action, require


class Stops(Model):
    """Nothing happens after the first step."""

    def state(self):
        return State(n=Range(0, 1))

    @action
    def increment(self, s):
        require(s.n == 0)
        s.n = 1


class Overflows(Model):
    """Increments without looking."""

    def state(self):
        return State(n=Range(0, 2))

    @action
    def increment(self, s):
        s.n += 1


def helper():
    """No model."""
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh working folder with the files ``counter.py`` and ``two.py``."""
    (tmp_path / "counter.py").write_text(COUNTER, encoding="utf-8")
    (tmp_path / "two.py").write_text(TWO, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    # Models named as module:Class are imported like any module; the next test has another file of that name.
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "counter", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return tmp_path


@pytest.fixture
def streamproof(folder: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs one command line in `folder`."""

    def command(*arguments: str) -> Done:
        capsys.readouterr()
        code = run(arguments)
        written = capsys.readouterr()
        return Done(code, written.out, written.err)

    return command


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compares text with a file of `golden/`, times, rates and memory masked; writes it when STREAMPROOF_GOLDEN is set."""

    def compare(name: str, text: str) -> None:
        text = re.sub(
            r"\d+\.\d\d s \(prepare \d+\.\d\d s, explore \d+\.\d\d s\)", "T s (prepare T s, explore T s)", text
        )
        text = re.sub(r"peak memory [\d.]+ [kMG]B", "peak memory M", text)
        text = re.sub(r"\d+ s/s, \d+ ds/s", "R s/s, R ds/s", text)
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("STREAMPROOF_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
