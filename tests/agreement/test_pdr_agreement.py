"""Property-directed reachability, discovery and the interpreter give the same verdicts on random systems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from random_systems import systems
from streamproof.symbolic import Engine, prove
from streamproof.symbolic.discovery import laws
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import ENDLESS, goals
from streamproof.symbolic.pdr import Pdr
from streamproof.symbolic.solver import SolverBudget
from streamproof.system import Interpreter, Kind, State, System, Verdict
from streamproof.system.reference import reference
from streamproof.system.scalarise import scalarise


def decidable(system: System) -> System:
    """The system with the properties that are not about endless behaviours."""
    return replace(system, properties=tuple(p for p in system.properties if p.kind not in ENDLESS))


def reachable(system: System) -> list[State]:
    """Every reachable state, up to a mistake of the model."""
    return [state for level in reference(system).levels for state in level]


@pytest.mark.parametrize(("integers", "examples"), [(False, 80), (True, 30)])
def test_pdr_decides_everything_as_the_interpreter_does(expect: Any, integers: bool, examples: int) -> None:
    """Verdicts and the lengths of behaviours agree; where nothing is seen to happen, an invariant is offered."""

    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(systems())
    def agree(system: System) -> None:
        asked = decidable(system)
        answers = expect(asked)
        encoding = Encoding(scalarise(asked), integers=integers)
        reached = Pdr(encoding, goals(encoding, asked.properties), (), SolverBudget(20_000)).run()
        for prop in asked.properties:
            expected = answers[prop.name]
            if prop in reached.findings:
                finding = reached.findings[prop]
                assert finding.verdict in expected.verdicts
                assert finding.trace is not None
                assert len(finding.trace) == expected.length
            elif reached.mistake is not None:
                assert Verdict.ERROR in expected.verdicts
            else:
                assert reached.invariant is not None
                assert (Verdict.VIOLATED if prop.kind is Kind.REACHABLE else Verdict.HOLDS) in expected.verdicts

    agree()


@pytest.mark.parametrize("engine", [Engine.PDR, Engine.AUTO, Engine.DISCOVERY])
def test_what_is_told_is_what_holds(expect: Any, engine: Engine) -> None:
    """No engine, with explored states to look at, contradicts the search of all states, nor does PDR leave much open."""

    @settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(systems())
    def agree(system: System) -> None:
        asked = decidable(system)
        answers = expect(asked)
        proof = prove(asked, engine=engine, max_k=2, depth=2, seconds=20, explored=lambda: reachable(asked))
        for finding in proof.findings:
            if finding.verdict is not Verdict.INCONCLUSIVE:
                assert finding.verdict in answers[finding.property].verdicts
            assert (finding.verdict is Verdict.INCONCLUSIVE) != (finding.property in proof.engines) or (
                finding.verdict is Verdict.ERROR
            )
        assert proof.confirmed in (True, None)
        assert len(proof.discovered) == len(proof.invariant)

    agree()


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(systems())
def test_laws_hold_in_every_reachable_state(system: System) -> None:
    """The sum of a conservation law is what it was, after every step from a reachable state."""
    scalar = scalarise(system)
    found = laws(scalar.system)
    below, above = Interpreter(scalar.system), Interpreter(system)
    states = reachable(system)
    if reference(system).mistake is not None:
        return
    for state in states:
        now = scalar.encode(state)
        sums = below.values([law.sum for law in found], now)
        for law, value in zip(found, sums, strict=True):
            assert law.total is None or below.value(law.total, now) == value
        for step in above.steps(state):
            assert below.values([law.sum for law in found], scalar.encode(step.state)) == sums
