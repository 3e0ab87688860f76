"""`streamproof check --symmetry --por`: told on the console and in the JSON, refused where there is nothing to reduce."""

from __future__ import annotations

import json
from typing import Any

import pytest


def test_reductions_are_told(streamproof: Any) -> None:
    """The console has a line for each, under counts that are those of the reduced search, and the command to repeat it."""
    done = streamproof("check", "reference.two_phase_commit", "-q", "--symmetry", "--por")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert any(line.startswith("115 states generated, 51 distinct states found") for line in lines)
    assert any(line.startswith("symmetry reduction: any two of {rm1, rm2, rm3} can be exchanged") for line in lines)
    assert "partial order reduction: in 31 of 51 states some enabled steps were left out" in lines
    assert "every one of 51 states of the reduced search, up to symmetry, has a step" in done.out
    assert lines[-1] == "reproduce: streamproof check reference.two_phase_commit --symmetry --por"


def test_a_reduction_that_does_not_apply_says_so(streamproof: Any) -> None:
    """The console says why, and the outcome is the full search's."""
    done = streamproof("check", "reference.dining_philosophers", "-q", "--symmetry", "--por")
    assert done.code == 0
    assert "67 distinct states found" in done.out
    assert "symmetry reduction does not apply: nobody_starves is about endless behaviours" in done.out
    assert "partial order reduction does not apply: nobody_starves depends on the order of steps" in done.out
    done = streamproof("check", "reference.die_hard", "-q", "--symmetry", "--property", "measured")
    assert "symmetry reduction does not apply: no variable has a symmetric sort" in done.out


def test_the_json_has_the_reductions(streamproof: Any) -> None:
    """`reductions` lists those asked for, applied or not; nobody asked, it is empty."""
    done = streamproof("check", "reference.die_hard", "-q", "--symmetry", "--por", "--json", "-")
    told = json.loads(done.out)["reductions"]
    assert [(r["name"], r["applied"]) for r in told] == [("symmetry", False), ("partial order", True)]
    assert told[0]["because"].startswith("no variable has a symmetric sort")
    assert json.loads(streamproof("check", "reference.die_hard", "-q", "--json", "-").out)["reductions"] == []


@pytest.mark.parametrize(
    ("options", "message", "remedy"),
    [
        (["--engine", "bmc", "--por"], "bmc does not reduce: it visits no states", "leave out --symmetry and --por"),
        (
            ["--symmetry", "--dot", "states.dot"],
            "a reduced search does not have all states and steps to show",
            "leave out --dot, or --symmetry and --por",
        ),
        (
            ["--por", "--coverage"],
            "a reduced search does not have all states and steps to show",
            "leave out --coverage, or --symmetry and --por",
        ),
    ],
)
def test_what_reductions_do_not_go_with(streamproof: Any, options: list[str], message: str, remedy: str) -> None:
    """Options that need the whole state space, or visit none, are refused before anything is done."""
    done = streamproof("check", "counter.py", *options)
    assert done.code == 2
    assert f"error: {message}" in done.err
    assert remedy in done.err
