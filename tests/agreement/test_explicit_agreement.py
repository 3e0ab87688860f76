"""The explicit engine, the scalarised system and the interpreter agree on random systems.

Compared are: counts, the states of each level, every verdict, the length of every shortest trace, the lasso's stem and
loop, and the level of a model's mistake.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

from streamproof.explicit import Exploration, explore
from streamproof.system import Finding, Kind, ModelError, System, Verdict
from streamproof.system.reference import Decision, Reference, reference
from streamproof.system.scalarise import scalarise
from streamproof.system.testing import KINDS, random_system, systems


def _same_as_scalarised(system: System, expected: Reference) -> None:
    """The interpreter finds the same in the scalarised system, where the order of initial states may differ."""
    scalarised = scalarise(system)
    found = reference(scalarised.system)
    if expected.mistake is not None:
        assert found.mistake == expected.mistake
        return
    assert found.counts == expected.counts
    for original, scalar in zip(expected.levels, found.levels, strict=True):
        assert {scalarised.encode(state) for state in original} == set(scalar)
        assert set(original) == {scalarised.decode(state) for state in scalar}
    for prop in system.properties:
        one, other = expected.decisions[prop.name], found.decisions[prop.name]
        if prop.kind is Kind.TERMINATION:
            assert (one.verdict, one.loop) == (other.verdict, other.loop)
        elif prop.checks:
            assert one.length == other.length
        else:
            assert one == other


def _same_as_explored(system: System, expected: Reference) -> None:
    """The explicit engine finds the same, in the same order."""
    result = explore(system)
    if expected.mistake is None:
        assert result.complete
        assert result.counts == expected.counts
        assert list(result.states()) == [state for level in expected.levels for state in level]
    else:
        assert result.mistake is not None
        assert len(result.mistake.trace) == expected.mistake
    assert [f.property for f in result.findings] == [p.name for p in system.properties]
    for finding in result.findings:
        _same_decision(result, finding, expected.decisions[finding.property])


def _same_decision(result: Exploration, finding: Finding, expected: Decision) -> None:
    trace = finding.trace
    found = Decision(finding.verdict, len(trace), trace.loop) if trace else Decision(finding.verdict)
    if result.mistake is not None and found != expected:
        # The interpreter takes some steps of the very state that makes the mistake, and they decide or shorten something.
        assert finding.verdict is Verdict.ERROR or finding.kind is Kind.TERMINATION
        assert finding.verdict is not Verdict.ERROR or trace == result.mistake.trace
        return
    assert found == expected


def _agree(system: System) -> str:
    expected = reference(system)
    _same_as_scalarised(system, expected)
    if not expected.levels:
        with pytest.raises(ModelError, match="has no initial state"):
            explore(system)
        return "no initial state"
    _same_as_explored(system, expected)
    return "complete" if expected.mistake is None else "mistake"


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(systems())
def test_random_systems(system: System) -> None:
    """Systems that Hypothesis draws, and shrinks when something differs."""
    _agree(system)


def test_four_hundred_systems() -> None:
    """Always the same ones, with enough of every outcome among them."""
    outcomes: Counter[str] = Counter()
    verdicts: Counter[tuple[Kind, Verdict]] = Counter()
    for seed in range(400):
        system = random_system(Random(seed))
        outcome = _agree(system)
        outcomes[outcome] += 1
        if outcome == "complete":
            verdicts.update((f.kind, f.verdict) for f in explore(system).findings)
    assert outcomes["complete"] > 250
    assert outcomes["mistake"] > 40
    assert outcomes["no initial state"] > 5
    assert all(verdicts[kind, verdict] > 20 for kind in KINDS for verdict in (Verdict.HOLDS, Verdict.VIOLATED))
    assert all(verdicts[kind, Verdict.ERROR] > 5 for kind in (Kind.INVARIANT, Kind.STEP, Kind.REACHABLE))


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(20))
def test_two_thousand_systems(hundred: int) -> None:
    """A hundred at a time, none of those above."""
    for seed in range(1000 + 100 * hundred, 1100 + 100 * hundred):
        _agree(random_system(Random(seed)))
