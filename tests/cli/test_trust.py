"""The command line of certificates and of agreement: options, messages, exit codes, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def test_a_certificate_is_written_and_accepted(streamproof: Any, folder: Any) -> None:
    """Of a model in a file, with a violation: the check ends as without, the verifier with 0; JSON says the same."""
    done = streamproof("check", "counter.py", "--size", "medium", "-q", "--certificate", "c", "--json", "-")
    assert done.code == 12
    certificate = json.loads(done.out)["certificate"]
    assert certificate["claims"] == {"low": "violated", "grows": "holds", "full": "holds"}
    assert certificate["bytes"] == (folder / "c").stat().st_size
    assert streamproof("verify-certificate", "c", "--model", "counter.py").code == 0
    answer = json.loads(streamproof("verify-certificate", "c", "--model", "counter.py", "--json", "-").out)
    assert (answer["accepted"], answer["claims"], answer["options"]) == (
        True,
        certificate["claims"],
        ["--size", "medium"],
    )


def test_a_changed_model_is_refused(streamproof: Any, folder: Any) -> None:
    """The file of the model is edited after the certificate was written, moved, and lost."""
    assert streamproof("check", "counter.py", "-q", "--certificate", "c").code == 12
    source = (folder / "counter.py").read_text(encoding="utf-8")
    (folder / "moved.py").write_text(source, encoding="utf-8")
    assert streamproof("verify-certificate", "c", "--model", "moved.py").code == 0
    (folder / "counter.py").write_text(source.replace("s.n < 3", "s.n < 2"), encoding="utf-8")
    done = streamproof("verify-certificate", "c", "--model", "counter.py", "--json", "a.json")
    assert done.code == 161
    assert "the model or its parameters have changed" in done.err
    assert json.loads((folder / "a.json").read_text())["accepted"] is False
    (folder / "counter.py").unlink()
    assert streamproof("verify-certificate", "c", "--model", "counter.py").code == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("verify-certificate", "nothing"), 2, "nothing does not exist"),
        (("verify-certificate", "counter.py"), 161, "it does not begin as a certificate of this version does"),
        (
            ("check", "counter.py", "--certificate", "counter.py"),
            153,
            "counter.py exists and was not written by streamproof as a certificate",
        ),
        (("check", "counter.py", "--agree", "--symmetry"), 2, "--agree does not support --symmetry"),
        (("check", "counter.py", "--agree", "--agree-limit", "bmc=3"), 2, "not a number of states for an engine"),
        (("check", "counter.py", "--agree-limit", "python=3"), 2, "--agree-limit requires --agree"),
    ],
)
def test_bad_input(streamproof: Any, words: tuple[str, ...], code: int, said: str) -> None:
    """One message, the right exit code."""
    done = streamproof(*words)
    assert (done.code, said in done.err) == (code, True), done


def test_what_has_no_certificate_is_told(streamproof: Any, folder: Any) -> None:
    """A search cut short, and bounded model checking: claims for behaviours only, a line for each other property."""
    done = streamproof("check", "counter.py", "--size", "medium", "--max-states", "2", "-q", "--certificate", "c")
    assert done.code == 160
    assert "no certificate for low: stopped after" in done.out
    assert "no certificate was written: no verdict has evidence" in done.out
    assert not (folder / "c").exists()
    done = streamproof("check", "counter.py", "--size", "small", "--engine", "bmc", "-q", "--certificate", "b")
    assert "no certificate for low: bmc produces no evidence for it" in done.out
    assert streamproof("verify-certificate", "b", "--model", "counter.py").out.splitlines()[0].split() == [
        "full",
        "holds",
    ]


@pytest.mark.long
def test_a_reduced_search_has_certificates_for_behaviours_only(streamproof: Any) -> None:
    """What holds of a search by partial-order reduction has none, and a line says so; the proof for every size has one."""
    arguments = ("check", "reference.dining_philosophers", "-p", "philosophers=3", "--por", "-q", "--certificate", "c")
    done = streamproof(*arguments, "--property", "neighbours_never_eat_together", "--property", "deadlock")
    assert done.code == 0
    why = "a search reduced by partial order does not have all states: leave that out"
    assert f"no certificate for neighbours_never_eat_together: {why}" in done.out
    assert "no certificate was written: no verdict has evidence" in done.out
    done = streamproof("prove", "reference.ewd840", "--any", "n", "-q", "--certificate", "a")
    assert (done.code, "certificate of 2 of 2 verdicts" in done.out) == (0, True)
    assert streamproof("verify-certificate", "a").code == 0


def test_engines_agree_and_the_exit_code_is_the_verdict(streamproof: Any) -> None:
    """All that are installed are asked; a limit leaves one out and says so."""
    done = streamproof("check", "counter.py", "--agree", "--agree-limit", "spin=1", "--json", "-")
    assert done.code == 12
    report = json.loads(done.out)
    assert report["agree"] is True
    assert report["differences"] == []
    engines = {e["name"]: e for e in report["engines"]}
    assert engines["interpreter"]["hash"] == engines["compiled"]["hash"] == engines["python"]["hash"] is not None
    assert engines["Spin"]["missing"] == {"all": "not run: 4 states, its limit is 1"}
    assert {a["verdict"] for p in report["properties"] if p["name"] == "low" for a in p["answers"]} == {"violated"}


MISTAKEN = """
from streamproof import Model, Range, State, action, invariant, reachable, require


class Mistaken(Model):
    check_deadlock = False

    def state(self):
        return State(x=Range(0, 1), y=Range(0, 2))

    @action
    def first(self, s):
        s.y = 1

    @action
    def mistaken(self, s):
        s.x += s.y + 2 if s.y == 0 else 0

    @action
    def last(self, s):
        s.y = 2

    @invariant
    def low(self, s):
        return s.y != 1

    @invariant
    def lower(self, s):
        return s.y != 2

    @reachable
    def reached(self, s):
        return s.y == 1
"""


def test_what_is_found_beside_a_mistake_is_no_difference(streamproof: Any, folder: Path) -> None:
    """A rule makes a mistake in the first state, and others decide properties from there: some engines finish that level."""
    (folder / "mistaken.py").write_text(MISTAKEN, encoding="utf-8")
    done = streamproof("check", "mistaken.py", "--agree", "--agree-limit", "spin=1", "--json", "-")
    report = json.loads(done.out)
    assert (report["differences"], done.code) == ([], 75)
    answers = {p["name"]: {(a["verdict"], a.get("length")) for a in p["answers"]} for p in report["properties"]}
    assert {len(a) for a in answers.values()} != {1}  # there was something to tolerate


def test_a_row_is_printed_when_an_engine_has_answered(streamproof: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first engines have said is there while another one still thinks, and stays when the user ends that."""

    def endless(*given: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("streamproof.agree.panel.interpreter_result", endless)
    done = streamproof("check", "counter.py", "--agree")
    assert done.code == 130
    rows = [line.split()[0] for line in done.out.splitlines()[4:]]
    assert rows == ["compiled", "compiled,", "python"]


def test_a_difference_is_reported_with_a_state(streamproof: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One engine forgets a condition: exit code 162, which engines, on which level, and a state that one has."""
    from streamproof.explicit import writer
    from streamproof.system import expr as e

    sound = writer.Writer._format

    def faulty(self: Any, term: Any, texts: Any) -> tuple[str, int]:
        text, height = sound(self, term, texts)
        return (text.replace(" + 1", " + 2") if isinstance(term, e.Add) else text), height

    monkeypatch.setattr(writer.Writer, "_format", faulty)
    done = streamproof("check", "counter.py", "--agree", "--agree-limit", "spin=1", "--property", "full")
    assert done.code == 162
    assert "they differ in states on level" in done.out or "they differ in the set of states on level 2" in done.out
    assert "has there: n = " in done.out


def test_a_proof_for_every_size_is_verified_by_two_solvers(streamproof: Any, folder: Any) -> None:
    """The lemma graph and the answers are in the JSON, the scripts in a folder; a changed file is rejected."""
    assert streamproof("prove", "reference.ewd840", "--any", "n", "-q", "--certificate", "a").code == 0
    done = streamproof("verify-certificate", "a", "--smt", "scripts", "--json", "-", "--query-timeout", "inf")
    assert done.code == 0
    graph = json.loads(done.out)["lemma_graph"]
    assert (graph["schema"], graph["any"]) == ("streamproof.lemma-graph/1", {"n": [None, None]})
    assert {*graph["solvers"]} == {"z3", "cvc5"}
    assert {"detection_is_right": ["dijkstra"]} in [{o["claim"]: o["needs"]} for o in graph["obligations"]]
    assert all(o["answers"] == {"z3": "unsat", "cvc5": "unsat"} for o in graph["obligations"])
    assert len([*(folder / "scripts").glob("*.smt2")]) == len(graph["obligations"]) == 24
    (folder / "a").write_bytes((folder / "a").read_bytes()[:-1])
    assert streamproof("verify-certificate", "a").code == 161
    assert streamproof("check", "counter.py", "--size", "small", "-q", "--certificate", "c").code in (0, 12)
    assert streamproof("verify-certificate", "c", "--smt", "scripts").code == 2
