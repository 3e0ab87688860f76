"""`streamproof check --view`: what is proved and what is not; what has no view refuses it; the export for TLC."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

LAMP = """
from streamproof import WEAK, Bool, Model, Range, State, action, always, derived, eventually, invariant, temporal


class Lamp(Model):
    def state(self):
        return State(on=Bool(), times=Range(0, 9))

    @action(fairness=WEAK)
    def switch(self, s):
        s.on = not s.on
        s.times = min(s.times + int(s.on), 9)

    @derived
    def few(self, s):
        return s.times < 2

    @derived
    def turns(self, s):
        return 9 // s.times

    @invariant
    def lit(self, s):
        return s.on or not s.on

    @temporal
    def rests(self, s):
        return eventually(always(s.on))
"""


@pytest.fixture
def lamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model, in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lamp.py").write_text(LAMP)
    return tmp_path


def test_what_is_proved_and_what_is_not(streamproof: Any, lamp: Path) -> None:
    """A lasso is followed until a state repeats; two states that differ are named."""
    done = streamproof("check", "lamp.py", "-q", "--view", "on")
    assert done.code == 13
    assert "fair lasso: stem of 18 steps, cycle of 2" in done.out
    assert re.search(r"deadlock +deadlock +holds", done.out)
    assert "view reduction: of the states with equal on, one is searched and counted; it is proved" in done.out
    done = streamproof("check", "lamp.py", "-q", "--view", "few,on", "--property", "lit")
    assert done.code == 160
    reason = (
        "two states with equal few, on differ in the view after switch(): on=False, times=0; and the same with times=1"
    )
    assert reason in " ".join(done.out.split())


COUNTED = """
    @reachable
    def many(self, s):
        return s.times > 5

    @temporal
    def counted(self, s):
        return eventually(s.times > 3)
"""


def test_what_is_inconclusive_is_said_of_its_kind(streamproof: Any, lamp: Path) -> None:
    """What is to be reached was not reached, and no lasso was searched for; a name that is given twice is one."""
    (lamp / "lamp.py").write_text(LAMP.replace("import WEAK,", "import WEAK, reachable,") + COUNTED)
    done = streamproof("check", "lamp.py", "-q", "--view", "on,on", "--property", "many", "--property", "counted")
    because = "it is not shown that the value of {}, which depends on times, is a function of on; "
    found = " ".join(done.out.split())
    assert f"inconclusive not reached in 2 reachable states up to the view, but {because.format('many')}" in found
    assert f"counted temporal inconclusive {because.format('counted')}" in found


@pytest.mark.parametrize(
    ("words", "message", "remedy"),
    [
        (["--view", "time"], "lamp has no variable or derived value 'time'", "did you mean times"),
        (["--view", "turns"], "turns has no value in some states (", "a view has one in every state"),
        (["--view", "on", "--por"], "a view is a reduction of its own", "leave out --view, or --por"),
        (
            ["--view", "on", "--tier", "compiled"],
            "only the Python tier searches by views",
            "leave out --view, or --tier",
        ),
        (["--view", "on", "--workers", "2"], "only the compiled tier has workers", "leave out --workers, or --view"),
        (["--view", "on", "--spill", "d"], "only the compiled tier spills to disk", "leave out --view, or --spill"),
        (
            ["--view", "on", "--resume", "d"],
            "only the compiled tier writes checkpoints",
            "leave out --view, or --resume",
        ),
        (["--view", "on", "--engine", "spark"], "spark has no --view", "leave it out"),
        (["--view", "on", "--engine", "bmc"], "bmc has no --view", "leave it out"),
        (["--view", "on", "--coverage"], "a reduced search does not visit all", "leave out --coverage, or --view"),
        (["--view", "on", "--agree"], "--agree does not support --view", "leave out --view, or --agree"),
    ],
)
def test_what_has_no_view_refuses_it(streamproof: Any, lamp: Path, words: list[str], message: str, remedy: str) -> None:
    """With one message and a remedy, and nothing written."""
    done = streamproof("check", "lamp.py", "-q", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert remedy in done.err
    assert not any((lamp / name).exists() for name in ("d", "streamproof-out"))


def test_the_export_has_the_view(streamproof: Any, lamp: Path) -> None:
    """In the configurations without endless behaviours; other formats refuse it."""
    assert streamproof("export", "lamp.py", "--format", "tla", "--view", "on,few", "--out", "t").code == 0
    assert "\nVIEW View\n" in (lamp / "t" / "lamp_states.cfg").read_text()
    assert "VIEW" not in (lamp / "t" / "lamp.cfg").read_text()
    assert "View ==\n    <<on, times < 2>>\n" in (lamp / "t" / "lamp.tla").read_text()
    done = streamproof("export", "lamp.py", "--format", "promela", "--view", "on", "--out", "p.pml")
    assert (done.code, "--format promela has no view" in done.err) == (2, True)
