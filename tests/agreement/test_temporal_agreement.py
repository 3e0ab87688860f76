"""The search of fair cycles and the referee agree on random systems, formulas and fairness; every lasso is judged."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from random_systems import temporal_system
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Fairness, Kind, System, Verdict
from streamproof.system.reference import reference
from streamproof.system.temporal import fairness_of, true_of


def _agree(system: System, tier: str, seen: Counter[str]) -> None:
    """Compare every verdict; judge every lasso by its meaning, not by what the engine says of it."""
    expected = reference(system)
    if not expected.levels or expected.mistake is not None:
        return
    result = explore(system, SearchOptions(tier=tier))
    for finding in result.findings:
        assert finding.verdict is expected.decisions[finding.property].verdict
        seen[finding.verdict.value] += 1
        if finding.verdict is not Verdict.VIOLATED:
            assert not finding.fair
            continue
        trace, formula = finding.trace, system.property(finding.property).formula
        assert trace is not None
        assert formula is not None
        assert not true_of(system, formula, trace)
        assert finding.fair == fairness_of(system, trace)
        assert all(evidence.satisfied for evidence in finding.fair)
        seen["stutters" if trace.stutters else "repeats"] += 1
        seen["strong"] += any(o.fairness is Fairness.STRONG and o.enabled is not None for o in finding.fair)


@pytest.mark.push
@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 420), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_random_systems(seeds: range) -> None:
    """Always the same ones, with enough of every outcome among them."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        _agree(temporal_system(Random(seed)), "python", seen)
    assert seen["holds"] > len(seeds) * 2 // 3
    assert seen["violated"] > len(seeds) * 2 // 3
    assert seen["stutters"] > len(seeds) // 3
    assert seen["repeats"] > len(seeds) // 5
    assert seen["strong"] > len(seeds) // 15
    assert seen["error"] > len(seeds) // 60


def test_compiled_tier() -> None:
    """The graph that compiled code stores gives the same verdicts."""
    seen: Counter[str] = Counter()
    for seed in range(40):
        _agree(temporal_system(Random(seed)), "compiled", seen)
    assert seen["holds"] > 20
    assert seen["violated"] > 20


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(30))
def test_three_thousand_systems(hundred: int) -> None:
    """A hundred at a time, none of those above."""
    for seed in range(1000 + 100 * hundred, 1100 + 100 * hundred):
        _agree(temporal_system(Random(seed)), "python", Counter())


def test_all_are_temporal() -> None:
    """The random systems have temporal properties only, of every fairness."""
    systems = [temporal_system(Random(seed)) for seed in range(50)]
    assert {p.kind for s in systems for p in s.properties} == {Kind.TEMPORAL}
    assert {a.fairness for s in systems for a in s.actions} == set(Fairness)
    assert any(i.picks for s in systems for i in s.instances)
