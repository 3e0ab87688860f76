"""``export`` for Spin and SMT solvers, and ``prove`` of temporal properties, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

DRAIN = '''
from streamproof import WEAK, Model, Range, State, action, leads_to, require, temporal


class Drain(Model):
    """Counts down."""

    depth: int = 3
    limits = {"depth": (0, None)}

    def state(self):
        return State(left=Range(0, self.depth, init=self.depth))

    @action(fairness=WEAK)
    def down(self, s):
        """One less."""
        require(s.left > 0)
        s.left -= 1

    @temporal
    def drained(self, s):
        """It ends."""
        return leads_to(s.left > 0, s.left == 0)


class Idle(Drain, variant="idle"):
    """Nobody has to."""

    @action
    def down(self, s):
        """As before."""
        super().down(s)
'''


@pytest.fixture
def drain(tmp_path: Path) -> str:
    """A file with a model that is live under fairness only."""
    path = tmp_path / "drain.py"
    path.write_text(DRAIN, encoding="utf-8")
    return str(path)


def test_every_text_has_its_file(streamproof: Any, tmp_path: Path) -> None:
    """The model and each temporal property for Spin; one text of questions; clauses for each property and for mistakes."""
    words = ("export", "reference.ewd840", "-p", "n=2", "--json", "-")
    written = {}
    for form in ("promela", "smtlib", "chc"):
        done = streamproof(*words, "--format", form, "--out", str(tmp_path / form))
        written[form] = [Path(file).name for file in json.loads(done.out)["files"]]
    assert written == {
        "promela": ["reference.ewd840.pml", "reference.ewd840.end_is_detected.pml"],
        "smtlib": ["reference.ewd840.smt2"],
        "chc": ["detection_is_right.smt2", "dijkstra.smt2", "mistake_of_the_model.smt2"],
    }
    assert "ltl claim {" in (tmp_path / "promela" / "reference.ewd840.end_is_detected.pml").read_text(encoding="utf-8")


def test_one_file_holds_one_text(streamproof: Any, tmp_path: Path) -> None:
    """The model alone where a file is named; a property's text where it is chosen, and no other kind of property."""
    words = ("export", "reference.ewd840", "-p", "n=2", "--format", "promela")
    assert streamproof(*words, "--out", str(tmp_path / "a.pml")).code == 0
    assert "ltl" not in (tmp_path / "a.pml").read_text(encoding="utf-8")
    assert streamproof(*words, "--property", "end_is_detected", "--out", str(tmp_path / "b.pml")).code == 0
    assert "ltl claim" in (tmp_path / "b.pml").read_text(encoding="utf-8")
    refused = streamproof(*words, "--property", "dijkstra", "--out", str(tmp_path / "c.pml"))
    assert (refused.code, "dijkstra is part of the text of the model" in refused.err) == (2, True)
    assert not (tmp_path / "c.pml").exists()


def test_liveness_is_proved_at_one_size(streamproof: Any, drain: str, tmp_path: Path) -> None:
    """With fairness it holds; without, the lasso is shown and kept; a certificate of that is not to be had."""
    words = ("prove", drain, "--property", "drained", "-p", "depth=2", "-q")
    assert streamproof(*words, "--out", str(tmp_path)).code == 0
    done = streamproof(*words, "--variant", "idle", "--out", str(tmp_path), "--json", "-")
    assert (done.code, json.loads(done.out)["properties"][0]["verdict"]) == (13, "violated")
    assert streamproof("replay", str(tmp_path / "drained.itf.json"), "--model", drain, "-q").code == 0
    refused = streamproof(*words, "--certificate", str(tmp_path / "c.json"))
    assert (refused.code, "has no certificate" in refused.err) == (2, True)


def test_liveness_is_proved_for_every_size(streamproof: Any, drain: str) -> None:
    """By a rank that is given or found; without fairness there is none, and a property of states has none."""
    words = ("prove", drain, "--property", "drained", "--any", "depth", "-q", "--json", "-")
    for rank in ("left", ""):
        document = json.loads(streamproof(*words, "--rank", rank).out)
        assert document["ranks"] == [{"property": "drained", "rank": "left", "helpful": ["down()"], "invariants": []}]
    idle = streamproof(*words, "--variant", "idle", "--rank", "left")
    assert (idle.code, json.loads(idle.out)["ranks"]) == (160, [])
    refused = streamproof("prove", drain, "--property", "deadlock", "--any", "depth", "--rank", "left")
    assert (refused.code, "which has no rank" in refused.err) == (2, True)
