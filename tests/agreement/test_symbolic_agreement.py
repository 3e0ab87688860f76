"""The symbolic engine and the interpreter give the same verdicts, at the same depths, on random systems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from random_systems import systems
from streamproof.symbolic import prove
from streamproof.system import Kind, System, Verdict

DEPTH = 7
"""Steps that the engine is asked to cover; most random systems are exhausted before."""


@pytest.mark.parametrize(("integers", "examples"), [(False, 120), (True, 40)])
def test_bounded_search_finds_what_breadth_first_search_finds_and_as_early(
    panel: Any, integers: bool, examples: int
) -> None:
    """Verdict and length of the shortest behaviour agree for each property that is decided within the depth."""

    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow])
    @given(systems())
    def agree(system: System) -> None:
        panel.interpreter_result(system).compare(panel.bounded(system, DEPTH, integers=integers))

    agree()


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(systems())
def test_a_proof_never_contradicts_the_search_of_all_states(expect: Any, system: System) -> None:
    """What induction or the search beside it decides is what exhaustive search decides; proofs are confirmed."""
    answers = expect(system)
    proof = prove(system, depth=3, max_k=3)
    for finding in proof.findings:
        if finding.kind is not Kind.TERMINATION and finding.verdict is not Verdict.INCONCLUSIVE:
            assert finding.verdict in answers[finding.property].verdicts
    assert proof.confirmed in (True, None)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(systems())
def test_lemmas_are_never_believed(expect: Any, system: System) -> None:
    """With invariants offered as lemmas, true ones or not, no verdict on them or on the rest becomes wrong."""
    answers = expect(system)
    lemmas = tuple(p for p in system.properties if p.kind in (Kind.INVARIANT, Kind.STEP))[::2]
    rest = tuple(p for p in system.properties if p not in lemmas)
    proof = prove(replace(system, properties=rest, lemmas=lemmas), depth=2, max_k=2)
    for finding in (*proof.findings, *proof.lemmas):
        if finding.kind is not Kind.TERMINATION and finding.verdict is not Verdict.INCONCLUSIVE:
            assert finding.verdict in answers[finding.property].verdicts
    assert {*proof.used, *proof.dropped} <= {p.name for p in lemmas}
    assert not {*proof.used} & {*proof.dropped}
