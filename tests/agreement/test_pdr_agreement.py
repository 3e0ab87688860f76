"""Property-directed reachability, discovery and the interpreter give the same verdicts on random systems."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest

from random_systems import random_system
from streamproof.symbolic.discovery.laws import Books
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import ENDLESS, goals
from streamproof.symbolic.pdr import Pdr
from streamproof.symbolic.portfolio import Engine
from streamproof.symbolic.proof import prove
from streamproof.symbolic.solver import SolverBudget
from streamproof.system import Interpreter, Kind, State, System, Verdict
from streamproof.system.reference import reference
from streamproof.transform.scalarise import scalarise


def decidable(system: System) -> System:
    """The system with the properties that are not about endless behaviours."""
    return replace(system, properties=tuple(p for p in system.properties if p.kind not in ENDLESS))


def reachable(system: System) -> list[State]:
    """Every reachable state, up to a mistake of the model."""
    return [state for level in reference(system).levels for state in level]


@pytest.mark.parametrize(
    ("integers", "systems", "counts"),
    [
        pytest.param(
            False,
            120,
            {"found": 129, "found after two steps or more": 21, "mistake": 58, "proved": 157, "proved by clauses": 45},
            marks=pytest.mark.long,
        ),
        (
            True,
            40,
            {"found": 48, "found after two steps or more": 8, "mistake": 15, "proved": 49, "proved by clauses": 16},
        ),
    ],
    ids=["bit-vectors", "integers"],
)
def test_pdr_decides_everything_as_the_interpreter_does(
    expect: Any, integers: bool, systems: int, counts: dict[str, int]
) -> None:
    """Verdicts and the lengths of behaviours agree; for all other properties an invariant is offered."""
    seen: Counter[str] = Counter()
    for seed in range(systems):
        system = decidable(random_system(Random(seed)))
        answers = expect(system)
        encoding = Encoding(scalarise(system), integers=integers)
        reached = Pdr(encoding, goals(encoding, system.properties), (), SolverBudget(20.0))
        reached.run()
        for prop in system.properties:
            expected = answers[prop.name]
            if prop in reached.findings:
                finding = reached.findings[prop]
                assert finding.verdict in expected.verdicts, seed
                assert finding.trace is not None
                assert len(finding.trace) == expected.length, seed
                seen["found"] += 1
                seen["found after two steps or more"] += len(finding.trace) > 2
            elif reached.mistake is not None:
                assert Verdict.ERROR in expected.verdicts, seed
                seen["mistake"] += 1
            else:
                assert reached.invariant is not None, seed
                assert (Verdict.VIOLATED if prop.kind is Kind.REACHABLE else Verdict.HOLDS) in expected.verdicts, seed
                seen["proved"] += 1
                seen["proved by clauses"] += bool(reached.invariant)
    assert seen == counts


@pytest.mark.parametrize(
    ("engine", "systems", "counts"),
    [
        (
            Engine.AUTO,
            24,
            {"holds": 23, "violated": 23, "error": 19, "by search": 52, "by induction": 11, "by discovery": 2}
            | {"confirmed": 8, "lemmas": 2},
        ),
        pytest.param(
            Engine.PDR,
            80,
            {"holds": 101, "violated": 77, "error": 48, "by pdr": 207, "by search": 19, "confirmed": 41, "lemmas": 11},
            marks=pytest.mark.long,
        ),
        pytest.param(
            Engine.AUTO,
            80,
            {
                "holds": 101,
                "violated": 77,
                "error": 48,
                "by search": 141,
                "by induction": 78,
                "by discovery": 5,
                "by pdr": 2,
            }
            | {"confirmed": 40, "lemmas": 7},
            marks=pytest.mark.long,
        ),
        pytest.param(
            Engine.DISCOVERY,
            80,
            {"holds": 101, "violated": 77, "error": 48, "by search": 143, "by induction": 78, "by discovery": 5}
            | {"confirmed": 40, "lemmas": 7},
            marks=pytest.mark.long,
        ),
    ],
    ids=["auto", "pdr", "auto-more", "discovery"],
)
def test_proofs_agree_with_the_interpreter(expect: Any, engine: Engine, systems: int, counts: dict[str, int]) -> None:
    """No engine, with explored states to look at, contradicts the search of all states, nor leaves anything open.

    The time limit is in steps of the solver, so a slow machine leaves no more open than a fast one.
    """
    seen: Counter[str] = Counter()
    for seed in range(systems):
        system = decidable(random_system(Random(seed)))
        answers = expect(system)
        proof = prove(
            system, engine=engine, max_k=2, depth=2, seconds=20, reproducible=True, explored=partial(reachable, system)
        )
        for finding in proof.findings:
            seen[finding.verdict.value] += 1
            if finding.verdict is not Verdict.INCONCLUSIVE:
                assert finding.verdict in answers[finding.property].verdicts, seed
            assert (finding.verdict is Verdict.INCONCLUSIVE) != (finding.property in proof.engines) or (
                finding.verdict is Verdict.ERROR
            ), seed
        assert proof.confirmed in (True, None), seed
        assert len(proof.discovered) == len(proof.invariant), seed
        seen["confirmed"] += proof.confirmed is True
        seen["lemmas"] += len(proof.discovered)
        seen.update(f"by {by.value}" for by in proof.engines.values())
    assert seen == counts


@pytest.mark.long
def test_laws_hold_in_every_reachable_state() -> None:
    """The sum of a conservation law stays what it was, over every step from a reachable state."""
    seen: Counter[str] = Counter()
    for seed in range(1_200):
        system = random_system(Random(seed))
        found = reference(system)
        if found.mistake is not None:
            continue
        scalar = scalarise(system)
        laws_found = Books(scalar.system).kept()
        seen["laws"] += len(laws_found)
        below, above = Interpreter(scalar.system), Interpreter(system)
        for state in (state for level in found.levels for state in level) if laws_found else ():
            now = scalar.encode(state)
            sums = below.values([law.sum for law in laws_found], now)
            for law, value in zip(laws_found, sums, strict=True):
                assert law.total is None or below.value(law.total, now) == value, seed
                seen["totals"] += law.total is not None
            for step in above.steps(state):
                then = scalar.encode(step.state)
                assert below.values([law.sum for law in laws_found], then) == sums, seed
                for law in laws_found:
                    leaves = tuple(law.coefficients)
                    seen["steps"] += 1
                    seen["steps that change a summand"] += below.values(leaves, now) != below.values(leaves, then)
    assert seen == {"laws": 227, "totals": 1_163, "steps": 5_871, "steps that change a summand": 11}
