"""A model written with enumerations, through the command line: labels, traces, exports and parameters have plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MODEL = """
import enum
from streamproof import Enum, Model, Range, State, action, choose, invariant, require

class Side(str, enum.Enum):
    LEFT = "L"
    RIGHT = "R"

class Level(enum.IntEnum):
    LOW = 0
    HIGH = 1

class Sided(Model):
    top: int = Level.HIGH
    start: str = Side.RIGHT
    sizes = {"small": {"top": Level.LOW}}

    def state(self):
        return State(side=Enum(Side, init=self.start), level=Range(0, self.top))

    @action(p=Side, l=Level)
    def go(self, s, p, l):
        require(s.side != p and l <= self.top)
        s.side, s.level = p, l

    @action
    def pick(self, s):
        s.side = choose(Side)

    @invariant
    def ok(self, s):
        return s.side == Side.RIGHT or s.level == Level.HIGH
"""


def test_members_are_shown_and_exported_as_their_values(streamproof: Any, folder: Path) -> None:
    """Traces replay, action labels are accepted, and TLA+ quantifies over texts and numbers."""
    (folder / "sided.py").write_text(MODEL)
    done = streamproof("check", "sided.py", "--size", "small")
    assert (done.code, "go(p=L, l=0)" in done.out, "top=0, start=R" in done.out) == (12, True, True)
    assert streamproof("replay", "streamproof-out/sided/ok.itf.json", "--model", "sided.py").code == 0
    export = ("export", "sided.py", "--format")
    assert streamproof(*export, "itf", "--action", "go(p=L, l=0)", "--out", "t.itf.json").code == 0
    assert streamproof(*export, "tla", "--out", "out").code == 0
    assert '\\E p \\in {"L", "R"}, l \\in 0..1 : go(p, l)' in (folder / "out" / "sided.tla").read_text()
    assert streamproof(*export, "promela", "--out", "sided.pml").code == 0
    assert "Side." not in (folder / "sided.pml").read_text()
    assert streamproof("check", "sided.py", "-p", "start=L", "-p", "top=0", "-q").code == 12
    assert streamproof("prove", "sided.py", "--property", "deadlock", "-q").code == 0
