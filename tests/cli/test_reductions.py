"""`streamproof check --symmetry --por`: reported on the console and in the JSON, refused where there is nothing to reduce."""

from __future__ import annotations

import itertools
import json
import types
from pathlib import Path
from typing import Any

import pytest

import streamproof as sp
from streamproof.base.options import SearchOptions, Tuning
from streamproof.explicit import level_search
from streamproof.explicit.exploration import BESIDE, explore
from streamproof.system import Progress
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit


def test_reductions_are_told(streamproof: Any) -> None:
    """The console has a line for each, under counts that are those of the reduced search, and the command to repeat it."""
    done = streamproof("check", "reference.two_phase_commit", "-q", "--symmetry", "--por")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert any(line.startswith("115 states generated, 51 distinct states found") for line in lines)
    assert any(line.startswith("symmetry reduction: any two of {rm1, rm2, rm3} can be exchanged") for line in lines)
    assert "partial order reduction: in 31 of 51 states some enabled steps were left out" in lines
    assert "all 51 states of the reduced search, up to symmetry, have a successor" in done.out
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
    reductions = json.loads(done.out)["reductions"]
    assert [(r["name"], r["applied"]) for r in reductions] == [("symmetry", False), ("partial order", True)]
    assert reductions[0]["because"].startswith("no variable has a symmetric sort")
    assert json.loads(streamproof("check", "reference.die_hard", "-q", "--json", "-").out)["reductions"] == []


@pytest.mark.parametrize(
    ("options", "message", "remedy"),
    [
        (["--engine", "bmc", "--por"], "bmc has no --por: it visits no states", "leave it out"),
        (
            ["--symmetry", "--dot", "states.dot"],
            "a reduced search does not visit all states and steps",
            "leave out --dot, or --symmetry\n",
        ),
        (
            ["--por", "--coverage"],
            "a reduced search does not visit all states and steps",
            "leave out --coverage, or --por\n",
        ),
        (
            ["--symmetry", "--por", "--dot", "states.dot", "--coverage"],
            "a reduced search does not visit all states and steps",
            "leave out --coverage and --dot, or --symmetry and --por\n",
        ),
        (
            ["--tier", "python", "--workers", "2"],
            "only the compiled tier has workers",
            "leave out --workers, or --tier\n",
        ),
        (["--por", "--spill", "d"], "only the compiled tier spills to disk", "leave out --por, or --spill\n"),
        (
            ["--por", "--checkpoint", "d"],
            "only the compiled tier writes checkpoints",
            "leave out --por, or --checkpoint\n",
        ),
        (
            ["--resume", "d", "--spill", "e"],
            "states on disk and their checkpoint have one folder",
            "name one folder with --spill and --resume\n",
        ),
    ],
)
def test_what_reductions_do_not_go_with(streamproof: Any, options: list[str], message: str, remedy: str) -> None:
    """Options that need the whole state space, or visit none, are refused before anything is done."""
    done = streamproof("check", "counter.py", *options)
    assert done.code == 2
    assert f"error: {message}" in done.err
    assert remedy in done.err


PICKS = '''
from streamproof import Array, Model, Range, State, Symmetric, action, choose, invariant, require


class Picks(Model):
    """Every worker rolls a die of its own, all at once."""

    check_deadlock = False

    def setup(self):
        self.workers = Symmetric(3, "w")

    def state(self):
        return State(die=Array(self.workers, Range(0, 2)), turn=Range(0, 3))

    @action
    def roll(self, s):
        require(s.turn < 3)
        for w in self.workers:
            s.die[w] = choose([0, 1, 2])
        s.turn += 1

    @invariant
    def no_triplet(self, s):
        return not all(s.die[w] == 2 for w in self.workers)


class Crooked(Picks, variant="crooked"):
    """One worker's die has no 2."""

    @action
    def roll(self, s):
        require(s.turn < 3)
        for w in self.workers:
            s.die[w] = choose([0, 1, 2])
        require(s.die[min(self.workers)] < 2)
        s.turn += 1
'''


def test_picks_are_exchanged_with_the_names(streamproof: Any, folder: Path) -> None:
    """A rule that picks something for each name in a loop is symmetric, unless one name's pick is treated otherwise."""
    (folder / "picks.py").write_text(PICKS, encoding="utf-8")
    full, reduced = (
        json.loads(streamproof("check", "picks.py", "-q", *more, "--json", "-").out) for more in ((), ("--symmetry",))
    )
    assert [r["applied"] for r in reduced["reductions"]] == [True]
    assert (full["states"]["distinct"], reduced["states"]["distinct"]) == (1 + 3 * 27, 1 + 3 * 10)
    assert [(p["verdict"], p["trace"]["length"]) for p in (*full["properties"], *reduced["properties"])] == [
        ("violated", 1),
        ("violated", 1),
    ]
    crooked = json.loads(
        streamproof("check", "picks.py", "--variant", "crooked", "-q", "--symmetry", "--json", "-").out
    )
    assert [r["applied"] for r in crooked["reductions"]] == [False]
    assert crooked["reductions"][0]["because"].startswith("exchanging w1 and w2 changes action roll()")
    assert (crooked["verdict"], crooked["states"]["distinct"]) == ("holds", 1 + 3 * 18)


@pytest.mark.parametrize("option", ["--por", "--symmetry"])
def test_a_reduction_that_loses_is_not_needed(option: str) -> None:
    """The full search has its turn after some work, and if it needs less, its result is taken, which says so."""
    model: dict[str, Any] = {
        "--por": {"model": "reference.two_phase_commit"},
        "--symmetry": {"model": "reference.two_phase_commit", "size": "medium"},
    }[option]
    reducing = {option.removeprefix("--"): True}
    full = sp.check(**model)
    assert sp.check(**model, options=SearchOptions(**reducing, tier="python")).reductions[0].applied
    soon = Tuning(rival_turn=60_000 if option == "--por" else 200_000, rival_share=10_000)
    found = sp.check(**model, options=SearchOptions(**reducing, tuning=soon))
    (reduction,) = found.reductions
    assert (reduction.applied, reduction.not_needed) == (False, True)
    assert reduction.because.startswith("when the full search finished, the reduced one had ")
    assert (found.verdict, found.counts, found.coverage) == (full.verdict, full.counts, full.coverage)


def test_a_full_search_in_turns_reports_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its stage, beside the progress of the reduced search. A clock of the test: each look takes half a second."""
    looks = itertools.count()
    monkeypatch.setattr(level_search, "time", types.SimpleNamespace(monotonic=lambda: next(looks) / 2))
    received: list[Progress] = []
    system = TwoPhaseCommit.system(resource_managers=4)
    options = SearchOptions(por=True, tuning=Tuning(rival_turn=20_000, rival_share=1, small_states=10**9))
    explore(system, options, on_progress=received.append)
    own, other = ([p.distinct for p in received if bool(p.stage) is full] for full in (False, True))
    assert {p.stage for p in received} == {"", BESIDE}
    assert own == sorted(own)
    assert other == sorted(other)


@pytest.mark.parametrize("more", [{"rival_successor": 1_000}, {"rival_states": 10}], ids=["work", "memory"])
def test_a_full_search_that_needs_more_is_given_up(more: dict[str, int]) -> None:
    """Where the full search is not done with as much work, or needs too much memory, the reduced one goes on."""
    alone, beside = (
        sp.check(
            "reference.two_phase_commit", size="medium", options=SearchOptions(symmetry=True, tuning=Tuning(**tuned))
        )
        for tuned in ({}, {"rival_turn": 1_000, **more})
    )
    assert beside.reductions == alone.reductions
    assert (beside.counts, beside.verdict) == (alone.counts, sp.Verdict.HOLDS)


LIMITED = '''
from streamproof import Model, Range, State, action, constraint, invariant, reachable, require


class Limited(Model):
    """Without the constraint, five is reached."""

    def state(self):
        return State(x=Range(0, 9), y=Range(0, 9))

    @action
    def up(self, s):
        if s.x < 9:
            s.x += 1

    @action
    def other(self, s):
        if s.y < 2:
            s.y += 1

    @action
    def late(self, s):
        require(s.x > 5)
        s.x = 0

    @constraint
    def small(self, s):
        return s.x <= 2

    @invariant
    def fine(self, s):
        return s.x <= 3

    @invariant
    def implied(self, s):
        return not s.x > 0 or s.x < 9

    @reachable
    def five(self, s):
        return s.x == 5
'''


@pytest.mark.parametrize(
    ("words", "verdicts"),
    [
        (("--property", "fine"), ["holds within the constraint"]),
        (("--property", "five"), ["violated within the constraint"]),
        (
            ("--property", "fine", "--property", "five"),
            ["holds within the constraint", "violated within the constraint"],
        ),
    ],
    ids=["invariant", "reachable", "both"],
)
def test_a_reduced_search_does_not_know_that_every_state_is_inside(
    streamproof: Any, folder: Path, words: tuple[str, ...], verdicts: list[str]
) -> None:
    """Stubborn sets leave out the steps that lead outside: verdicts name the constraint, and no number is given."""
    (folder / "limited.py").write_text(LIMITED, encoding="utf-8")
    done = streamproof("check", "limited.py", "--por", "-q", *words, "--json", "answer.json")
    rows = [row.split("  ") for row in done.out.splitlines() if row.startswith(("  fine", "  five"))]
    assert [row[-1].strip() for row in rows] == verdicts
    assert "every state is inside" not in done.out
    assert "no state outside it found, but the partial order reduction leaves states out" in " ".join(done.out.split())
    report = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    assert report["constraint"] == {"text": "small", "outside": None}
    assert report["left_out"] == "the partial order reduction leaves states out"
    assert {p["within"] for p in report["properties"]} == {"small"}
    full = json.loads(streamproof("check", "limited.py", "-q", *words, "--json", "-").out)
    assert (full["constraint"]["outside"], full["left_out"]) == (3, None)
    assert [(p["verdict"], p["within"]) for p in full["properties"]] == [
        (p["verdict"], p["within"]) for p in report["properties"]
    ]


def test_what_a_reduced_search_did_not_find_is_not_said_to_be_never(streamproof: Any, folder: Path) -> None:
    """Actions that were not taken, antecedents that were not true, counts: each is qualified."""
    (folder / "limited.py").write_text(LIMITED, encoding="utf-8")
    words = ("check", "limited.py", "-q", "--property", "implied")
    full, reduced = streamproof(*words), streamproof(*words, "--por")
    assert "never enabled within the constraint: late" in full.out
    assert "never true within the constraint in late: s.x > 5" in full.out
    assert "never" not in reduced.out
    assert "counts and coverage are those of the reduced search, which left states out" in reduced.out
    assert "reduced" not in full.out
    assert "true in the only state of the reduced search; its antecedent is false there, and the partial" in reduced.out
    report = json.loads(streamproof(*words, "--por", "--json", "-").out)
    assert report["properties"][0]["vacuous"] is None
    assert report["coverage"]["never_enabled"] == report["coverage"]["never_true"] == []


@pytest.mark.parametrize("words", [("--max-states", "3"), ("--depth", "1"), ("--first",)])
def test_a_search_that_ends_early_does_not_know_that_every_state_is_inside(
    streamproof: Any, folder: Path, words: tuple[str, ...]
) -> None:
    """A limit, as a reduction, leaves states out."""
    (folder / "limited.py").write_text(LIMITED.replace("s.x <= 3", "s.x + s.y <= 0"), encoding="utf-8")
    done = streamproof("check", "limited.py", "-q", *words, "--json", "answer.json")
    assert "every state is inside" not in done.out
    report = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    assert report["constraint"] == {"text": "small", "outside": None}
    assert report["left_out"].startswith("the search ended before it had all states (")


def test_a_limit_is_named_when_every_property_was_decided_before(streamproof: Any, folder: Path) -> None:
    """No row of a property has it; the counts are those of a part of the states."""
    (folder / "limited.py").write_text(LIMITED.replace("s.x <= 3", "s.x + s.y <= 0"), encoding="utf-8")
    words = ("check", "limited.py", "-q", "--property", "fine", "--coverage")
    done = streamproof(*words, "--depth", "1")
    assert done.code == 12
    assert "the search ended early, not all states were searched: max_depth was reached" in done.out.splitlines()
    assert "ended early" not in streamproof(*words).out
