"""`streamproof simulate`: outcome, exit codes, reproduction."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_a_violation_is_shown_like_that_of_a_check(streamproof: Any, golden: Callable[[str, str], None]) -> None:
    """Counterexample, outcome and the line that takes the walks again are as in the golden file; the exit code is 12."""
    done = streamproof("simulate", "counter.py", "--seed", "1", "--walks", "10")
    assert (done.code, done.err) == (12, "")
    golden("simulate_counter", done.out)


def test_nothing_found_is_inconclusive(streamproof: Any, folder: Path) -> None:
    """Walks never show that an invariant holds: 160, with what was met in the JSON."""
    done = streamproof("simulate", "counter.py", "--size", "small", "--seed", "1", "--walks", "2", "--json", "a.json")
    document = json.loads((folder / "a.json").read_text())
    assert (done.code, document["exit_code"], document["verdict"]) == (160, 160, "inconclusive")
    assert [p["verdict"] for p in document["properties"]] == ["inconclusive", "inconclusive", "holds"]
    assert document["simulation"] == {
        "seed": 1,
        "guided": True,
        "walks": 2,
        "steps_per_walk": 100,
        "steps": 2,
        "longest": 1,
        "distinct": 2,
        "estimate": None,
        "stopped": None,
    }
    assert (document["schema"], document["states"]) == ("streamproof.simulate/1", None)


def test_an_estimate_says_that_it_is_low(streamproof: Any) -> None:
    """Of uniform walks: a lower estimate without an interval; of guided walks, which are no independent samples, none."""
    words = (
        "simulate",
        "reference.die_hard",
        "--property",
        "deadlock",
        "--seed",
        "1",
        "--walks",
        "5",
        "--json",
        "a.json",
    )
    done = streamproof(*words, "--uniform", "-q")
    assert "such walks can visit more than about" in done.out.replace("\n    ", " ")
    assert "95" not in re.sub(r"peak memory [0-9.]+", "", done.out)
    found = json.loads(Path("a.json").read_text())["simulation"]
    assert found["estimate"]["low"] == found["distinct"] <= found["estimate"]["distinct"]
    assert found["estimate"]["high"] is None
    assert "can visit" not in streamproof(*words, "-q").out


def test_the_line_that_reproduces_gives_the_same_document(streamproof: Any) -> None:
    """Without a seed one is drawn; the printed line takes the same walks, and the answers differ in their seconds only."""
    first = json.loads(
        streamproof("simulate", "reference.die_hard", "--uniform", "--walks", "9", "-q", "--json", "-").out
    )
    words = shlex.split(first["reproduce"])
    assert words[:3] == ["streamproof", "simulate", "reference.die_hard"]
    again = json.loads(streamproof(*words[1:], "-q", "--json", "-").out)
    assert first.pop("seconds").keys() == again.pop("seconds").keys()
    assert first == again


def test_a_reachable_property_alone_may_hold(streamproof: Any) -> None:
    """Having met the state is a proof that it can be met: exit code 0, and the walks end there."""
    done = streamproof("simulate", "reference.die_hard", "--property", "measured", "--seed", "0", "-q", "--json", "-")
    document = json.loads(done.out)
    assert (done.code, document["verdict"], document["simulation"]["stopped"]) == (0, "holds", "every property decided")


def test_the_models_mistake_is_shown_with_its_way(streamproof: Any) -> None:
    """A value that leaves its sort ends the walks with 75."""
    done = streamproof("simulate", "two.py:Overflows", "--seed", "0", "-q")
    assert done.code == 75
    assert "error: two.py:25: s.n leaves Range(0, 2) in increment() (new s.n = 3)\n" in done.out


def test_a_model_without_anything_to_violate_is_refused(streamproof: Any, folder: Path) -> None:
    """Walks with nothing to check would answer nothing."""
    (folder / "bare.py").write_text(
        "from streamproof import Model, Range, State, action\n\n\nclass Bare(Model):\n    check_deadlock = False\n\n"
        "    def state(self):\n        return State(n=Range(0, 1))\n\n"
        "    @action\n    def flip(self, s):\n        s.n = 1 - s.n\n"
    )
    done = streamproof("simulate", "bare.py", "--seed", "0")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("streamproof: error: bare has no property that a walk can decide\n")
