"""SMT-LIB texts and Horn clauses, read by a solver as anyone would write them, give the verdicts of the explicit engine."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from random_systems import random_system
from shares import share
from streamproof.exchange.smt.chc import MISTAKE, chc
from streamproof.exchange.smt.chc import read as read_clauses
from streamproof.exchange.smt.smtlib import read, smtlib
from streamproof.explicit.exploration import explore
from streamproof.model_registry import bundled, find
from streamproof.system import Kind, System, UsageError, Verdict
from streamproof.system.reference import reference


def printed(text: str) -> str:
    """What z3 prints when it runs the text."""
    import z3

    context = z3.Context()
    return str(z3.Z3_eval_smtlib2_string(context.ref(), text))


def horn(text: str, milliseconds: int = 5_000) -> str:
    """The answer of z3's solver for Horn clauses."""
    import z3

    context = z3.Context()
    solver: Any = z3.SolverFor("HORN", ctx=context)
    solver.set("timeout", milliseconds)
    solver.from_string(text)
    return str(solver.check())


def test_random_systems() -> None:
    """Bounded questions find the shortest behaviour, or the mistake before it; what induction proves, holds."""
    seen: Counter[str] = Counter()
    for seed in range(40):
        system = random_system(Random(seed))
        expected = reference(system)
        if not expected.levels:
            continue
        smt = smtlib(system, 4)
        for name, answer in read(smt, printed(smt.text)).items():
            decision = expected.decisions[name]
            if answer.verdict is Verdict.INCONCLUSIVE or (answer.verdict, answer.length) == (Verdict.HOLDS, None):
                assert answer.verdict is Verdict.INCONCLUSIVE or decision.verdict is Verdict.HOLDS
            else:
                # What is decided on the level of a mistake, or by a step out of it, may be reported as either.
                near = expected.mistake is not None and answer.length in (expected.mistake, expected.mistake + 1)
                assert (answer.verdict, answer.length) == (decision.verdict, decision.length) or near
            seen[answer.verdict.value] += 1
            if decision.length is not None and decision.length <= 5 and decision.verdict is not Verdict.ERROR:
                assert answer.verdict is not Verdict.INCONCLUSIVE
    assert min(seen["holds"], seen["violated"], seen["error"]) > 10


def test_random_horn_clauses() -> None:
    """Where the solver finds an invariant, or shows that there is none, the referee agrees; mostly it does one of them."""
    seen: Counter[str] = Counter()
    for seed in range(12):
        system = random_system(Random(seed))
        expected = reference(system)
        if not expected.levels:
            continue
        clauses = chc(system)
        answers = {name: horn(text, 1_000) for name, text in clauses.texts.items()}
        if answers[MISTAKE] != "unknown":
            assert (answers[MISTAKE] == "sat") == (expected.mistake is None)
        for name, verdict in read_clauses(clauses, answers).items():
            decision = expected.decisions[name].verdict
            if verdict is not Verdict.INCONCLUSIVE and decision is not Verdict.ERROR:
                assert verdict is decision
            seen[verdict.value] += 1
    assert min(seen["holds"], seen["violated"]) > 5


BUNDLED = [
    ("reference.die_hard", {}),
    ("reference.transaction_commit", {"resource_managers": 2}),
    ("reference.two_phase_commit", {"resource_managers": 2}),
    ("reference.ewd840", {"n": 2}),
    ("reference.token_ring", {"n": 3, "values": 3}),
]


@pytest.mark.parametrize(("name", "parameters"), share(BUNDLED, 2))
def test_bundled_models(name: str, parameters: dict[str, Any]) -> None:
    """Every answer on a bundled model is that of the explicit engine, at a depth that reaches its witnesses."""
    system = find(name).system(None, parameters)
    ours = {f.property: f for f in explore(system).findings}
    smt = smtlib(system, 6)
    for prop, answer in read(smt, printed(smt.text)).items():
        assert answer.verdict in (ours[prop].verdict, Verdict.INCONCLUSIVE)
        trace = ours[prop].trace
        if trace is not None and len(trace) <= 7:
            assert (answer.verdict, answer.length) == (ours[prop].verdict, len(trace))
    clauses = chc(system)
    found = read_clauses(clauses, {prop: horn(text, 10_000) for prop, text in clauses.texts.items()})
    for prop, verdict in found.items():
        assert verdict in (ours[prop].verdict, Verdict.INCONCLUSIVE)
    assert any(verdict is not Verdict.INCONCLUSIVE for verdict in found.values())


@pytest.mark.parametrize("name", share(bundled(), 16, first=1))
def test_every_bundled_model_is_exported(name: str) -> None:
    """At the small size each is written, and what is asked for are the properties of states and steps."""
    target = find(name)
    system: System = target.system(None, dict(target.spec.model.sizes.get("small", {})))
    wanted = {p.name for p in system.properties if p.kind not in (Kind.TEMPORAL, Kind.TERMINATION)}
    smt, clauses = smtlib(system, 1), chc(system)
    assert set(smt.queries) == set(clauses.kinds) == wanted
    assert smt.text.count("(check-sat)") == smt.text.count("(echo")
    assert all(text.count("(check-sat)") == 1 for text in clauses.texts.values())


def test_what_is_not_answered_is_inconclusive() -> None:
    """A solver that stops early, or does not know, proves nothing; a negative depth is refused."""
    smt = smtlib(find("reference.ewd840").system(None, {"n": 2}), 2)
    every = printed(smt.text).splitlines()
    assert {a.verdict for a in read(smt, "\n".join(every)).values()} == {Verdict.HOLDS}
    assert {a.verdict for a in read(smt, "\n".join(every[:-8])).values()} == {Verdict.INCONCLUSIVE}
    unknown = ["unknown" if line == "unsat" else line for line in every]
    assert {a.verdict for a in read(smt, "\n".join(unknown)).values()} == {Verdict.INCONCLUSIVE}
    with pytest.raises(UsageError, match="a depth of -1 steps"):
        smtlib(find("reference.die_hard").system(None, {}), -1)


def test_a_second_solver() -> None:
    """cvc5, where it is installed, gives the same answers to the same text: two solvers, one text."""
    cvc5 = pytest.importorskip("cvc5", reason="needs cvc5: pip install cvc5")
    system = find("reference.ewd840").system(None, {"n": 2})
    smt = smtlib(system, 3)
    solver = cvc5.Solver()
    solver.setOption("incremental", "true")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, smt.text, "model.smt2")
    symbols, said = parser.getSymbolManager(), []
    while not (command := parser.nextCommand()).isNull():
        said.append(str(command.invoke(solver, symbols)))
    assert read(smt, "".join(said)) == read(smt, printed(smt.text))
