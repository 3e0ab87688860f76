"""`streamproof prove`: proofs, counterexamples to induction, real counterexamples."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import streamproof as sp
from shares import share
from streamproof.base.options import SearchOptions, Tuning

PAIR = '''
from streamproof import Model, Range, State, action, invariant, lemma, reachable, require, step


class Pair(Model):
    """Two counters that move together."""

    def state(self):
        return State(a=Range(0, 30), b=Range(0, 30), c=Range(0, 30))

    @action
    def move(self, s):
        require(s.a < 30)
        s.a += 1
        s.b = s.a
        s.c = s.b

    @action
    def stay(self, s):
        """Nothing."""
        s.a = s.a

    @invariant
    def equal(self, s):
        """The second is the first."""
        return s.a == s.b

    @step
    def grows(self, s, t):
        return t.a >= s.a

    @reachable
    def top(self, s):
        return s.a == 30


class Even(Model):
    """Goes up in steps of two."""

    check_deadlock = False

    def state(self):
        return State(n=Range(0, 60))

    @action
    def up(self, s):
        require(s.n < 59)
        s.n += 2

    @invariant
    def never_odd(self, s):
        return s.n != 51


class Helped(Even):
    """The same with the lemma that the proof lacks."""

    @lemma
    def even(self, s):
        return s.n % 2 == 0


class OnlyReached(Even):
    """Has nothing that induction is for."""

    never_odd = None

    @reachable
    def high(self, s):
        return s.n > 50
'''


@pytest.fixture
def pair(folder: Path) -> Path:
    """The file ``pair.py`` in the working folder."""
    (folder / "pair.py").write_text(PAIR)
    return folder


def test_everything_provable_is_proved(streamproof: Any, pair: Path, golden: Callable[[str, str], None]) -> None:
    """Invariants, step properties and deadlock are proved for all behaviours; the rest is said to be for `check`."""
    done = streamproof("prove", "pair.py:Pair")
    assert (done.code, done.err) == (0, "")
    golden("prove_pair", done.out)


def test_what_is_not_inductive_is_shown(streamproof: Any, pair: Path) -> None:
    """The counterexample to induction has as many steps as the strength, and the exit code is 160."""
    done = streamproof("prove", "pair.py:Even", "--k", "2", "--engine", "induction")
    assert done.code == 160
    lines = done.out.splitlines()
    assert lines[:4] == [
        "Not inductive: never_odd (k=2)",
        "  From this state, which satisfies all assumptions and may be unreachable:",
        "      n = 47",
        "   1  up()",
    ]
    assert "inconclusive: never_odd (exit code 160)" in lines


def test_a_lemma_completes_the_proof(streamproof: Any, pair: Path) -> None:
    """With its lemma the property is proved; the JSON says by which strength and with which lemma."""
    done = streamproof("prove", "pair.py:Helped", "--json", "-")
    document = json.loads(done.out)
    assert (done.code, document["schema"], document["verdict"]) == (0, "streamproof.prove/1", "holds")
    assert document["k"] == {"never_odd": 1}
    assert [(entry["name"], entry["verdict"], entry["used"]) for entry in document["lemmas"]] == [
        ("even", "holds", True)
    ]
    assert (document["confirmed"], document["counterexamples_to_induction"]) == (True, [])
    assert "with lemma even" in document["properties"][0]["because"]


def test_a_false_property_is_refuted(streamproof: Any, folder: Path) -> None:
    """A violated invariant ends with 12 and a counterexample that replays."""
    done = streamproof("prove", "counter.py", "--property", "low")
    assert done.code == 12
    assert done.out.startswith("Counterexample: low is violated after step 3\n")
    assert "not inductive" not in done.out.lower()
    assert streamproof("replay", "streamproof-out/counter/low.itf.json", "--model", "counter.py", "-q").code == 0


def test_a_mistake_of_the_model_is_reported(streamproof: Any) -> None:
    """A model that leaves its domain ends with 75 and the way there."""
    done = streamproof("prove", "two.py:Overflows")
    assert done.code == 75
    assert done.out.startswith("Error of the model: s.n leaves Range(0, 2) in increment() (new s.n = 3)\n")


def test_reachability_is_for_another_engine_unless_asked_for(streamproof: Any, pair: Path) -> None:
    """By default it is left out; asked for by name and not found within the depth, the answer is 160."""
    assert streamproof("prove", "pair.py:Pair", "-q").code == 0
    assert streamproof("prove", "pair.py:Pair", "--property", "top", "-q", "--engine", "induction").code == 160


def test_nothing_to_prove_is_wrong_usage(streamproof: Any, pair: Path) -> None:
    """A model with nothing but reachability is sent to `check`."""
    done = streamproof("prove", "pair.py:OnlyReached")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "streamproof: error: onlyreached has no invariant, step property or deadlock to prove\n"
        "  streamproof check decides the others: high\n"
    )


IMPLIED = '''
from streamproof import WEAK, Model, Range, State, action, constraint, invariant, leads_to, require, temporal


class Implied(Model):
    """Counts to five."""

    top: int = 9
    limits = {"top": (5, None)}
    check_deadlock = False

    def state(self):
        return State(x=Range(0, self.top))

    @action(fairness=WEAK)
    def up(self, s):
        require(s.x < 5)
        s.x += 1

    @invariant
    def never(self, s):
        return not s.x > 7 or s.x == 8

    @invariant
    def once(self, s):
        return not s.x > 4 or s.x == 5

    @invariant
    def plain(self, s):
        return s.x <= 5

    @temporal
    def untriggered(self, s):
        return leads_to(s.x > 7, s.x == 0)

    @temporal
    def triggered(self, s):
        return leads_to(s.x == 1, s.x == 5)


class Left(Implied):
    @constraint
    def low(self, s):
        return s.x <= 2

    @temporal
    def triggered(self, s):
        return leads_to(s.x == 1, s.x == 9)
'''
VACUOUS = {"never": True, "once": False, "plain": False, "untriggered": True, "triggered": False}


def _verdicts(streamproof: Any, *words: str) -> dict[str, tuple[str, bool | None]]:
    report = json.loads(streamproof(*words, "-q", "--json", "-").out)
    return {p["name"]: (p["verdict"], p["vacuous"]) for p in report["properties"]}


@pytest.mark.parametrize(
    "words",
    [
        ("check",),
        *(("prove", "--engine", engine) for engine in ("auto", "induction", "discovery", "pdr")),
        ("prove", "--rank", "5 - x"),
        ("check", "--engine", "bmc"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("kind", share(["invariant", "temporal"], 2))
def test_every_engine_examines_whether_a_property_is_vacuous(
    streamproof: Any, folder: Path, words: tuple[str, ...], kind: str
) -> None:
    """As `check` does: an antecedent that is never true, a `leads_to` that is never triggered."""
    (folder / "implied.py").write_text(IMPLIED, encoding="utf-8")
    names = list(VACUOUS)[:3] if kind == "invariant" else list(VACUOUS)[3:]
    if ("--rank" in words and kind == "invariant") or ("bmc" in words and kind == "temporal"):
        return
    verb, *more = words
    chosen = [word for name in names for word in ("--property", name)]
    found = _verdicts(streamproof, verb, "implied.py:Implied", *more, *chosen)
    assert found == {name: ("holds", VACUOUS[name]) for name in names}


def test_a_proof_for_every_size_says_what_is_not_known_of_vacuity(streamproof: Any, folder: Path) -> None:
    """An instance in which the antecedent is true is enough; that it is false in those searched proves nothing."""
    (folder / "implied.py").write_text(IMPLIED, encoding="utf-8")
    done = streamproof("prove", "implied.py:Implied", "--any", "top", "-q", "--json", "answer.json")
    report = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    assert {p["name"]: (p["verdict"], p["vacuous"]) for p in report["properties"]} == {
        "never": ("holds", None),
        "once": ("holds", False),
        "plain": ("holds", False),
    }
    assert "not known whether it is vacuous: vacuous at" in " ".join(done.out.split())


@pytest.mark.parametrize("words", [("check",), ("prove",)], ids=" ".join)
def test_a_constraint_that_every_fair_behaviour_leaves(streamproof: Any, folder: Path, words: tuple[str, ...]) -> None:
    """What is promised of the behaviours inside is promised of none."""
    (folder / "implied.py").write_text(IMPLIED, encoding="utf-8")
    done = streamproof(*words, "implied.py:Left", "-q", "--property", "triggered", "--json", "answer.json")
    claim = json.loads((folder / "answer.json").read_text(encoding="utf-8"))["properties"][0]
    assert (claim["verdict"], claim["within"], claim["vacuous"]) == ("holds", "low", True)
    assert "holds within the constraint, vacuously" in done.out


def test_an_antecedent_that_is_far_away_is_not_said_to_be_false(folder: Path) -> None:
    """Beyond the states that are explored, a query decides; without time for it, it is not known."""
    (folder / "implied.py").write_text(IMPLIED, encoding="utf-8")

    def proved(**tuned: Any) -> dict[str, tuple[sp.Verdict, bool | None, bool]]:
        options = SearchOptions(tuning=Tuning(examined_states=(1, 2), **tuned))
        findings = sp.prove("implied.py:Implied", ["never", "once"], options=options).findings
        unknown = "; not known whether it is vacuous"
        return {f.property: (f.verdict, f.is_vacuous(), unknown in f.because) for f in findings}

    holds = sp.Verdict.HOLDS
    assert proved() == {"never": (holds, True, False), "once": (holds, False, False)}
    assert proved(examining=0.0) == {"never": (holds, None, True), "once": (holds, None, True)}
