"""The explicit engine, in both tiers, and the scalarised system agree with the interpreter on random systems.

Compared are: counts, the states of each level in their order, every verdict, the length of every shortest trace, the
lasso's stem and loop, and the level of a model's mistake.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from random_systems import KINDS, random_system, systems
from shares import share
from streamproof.base.options import SearchOptions, Tuning
from streamproof.base.records import replace
from streamproof.explicit.exploration import explore
from streamproof.explicit.level_search import Budget
from streamproof.explicit.successors import Judge, StepClaim
from streamproof.system import Kind, ModelError, Property, System, Verdict
from streamproof.system import build as b
from streamproof.system.formula import Always, Atom
from streamproof.system.reference import Reference, reference
from streamproof.transform.scalarise import scalarise


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


def _agree(panel: Any, system: System, tier: str) -> tuple[str, Any]:
    """How the search of the system ends, and the explicit engine's result."""
    referee = panel.interpreter_result(system)
    _same_as_scalarised(system, referee.ordered)
    if not referee.ordered.levels:
        with pytest.raises(ModelError, match="has no initial state"):
            explore(system, SearchOptions(tier=tier))
        return "no initial state", None
    result = panel.explored(system, tier)
    referee.compare(result)
    return "complete" if result.mistake is None else "mistake", result


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(systems())
def test_random_systems(panel: Any, system: System) -> None:
    """Systems that Hypothesis draws, and shrinks when something differs."""
    _agree(panel, system, "python")


@pytest.mark.parametrize("systems", share([70, 100, 400], 3))
def test_hundreds_of_systems(panel: Any, systems: int) -> None:
    """Always the same ones, with enough of every outcome among them."""
    outcomes: Counter[str] = Counter()
    verdicts: Counter[tuple[Kind, Verdict]] = Counter()
    for seed in range(systems):
        system = random_system(Random(seed))
        outcome, result = _agree(panel, system, "python")
        outcomes[outcome] += 1
        if outcome == "complete":
            verdicts.update((p.kind, result.answers[p.name].verdict) for p in system.properties)
    assert outcomes["complete"] > 0.6 * systems
    assert outcomes["mistake"] > systems / 10
    assert outcomes["no initial state"] > systems / 100
    assert all(
        verdicts[kind, verdict] > systems / 20 for kind in KINDS for verdict in (Verdict.HOLDS, Verdict.VIOLATED)
    )
    assert all(verdicts[kind, Verdict.ERROR] > systems / 100 for kind in (Kind.INVARIANT, Kind.STEP, Kind.REACHABLE))


@pytest.mark.parametrize(("systems", "complete", "judged_least"), share([(60, 36, 20), (150, 90, 50)], 2))
def test_systems_with_all_that_pays_for_larger_ones(
    systems: int, complete: int, judged_least: int, panel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written for large properties, wide states and many broken steps only, written always."""
    monkeypatch.setattr(Budget, "tuning", Tuning(large_property=-1, copied_variables=1, many_hits=0))
    seen: Counter[str] = Counter()
    judged = StepClaim.judge

    def judge(claim: StepClaim) -> Judge:
        seen["judged"] += 1
        return judged(claim)

    monkeypatch.setattr(StepClaim, "judge", judge)
    for seed in range(480, 480 + systems):
        seen[_agree(panel, random_system(Random(seed)), "python")[0]] += 1
    assert seen["complete"] > complete
    assert seen["judged"] > judged_least


@pytest.mark.parametrize(("systems", "least"), share([(60, 12), (150, 30)], 2))
def test_a_temporal_property_changes_no_other_verdict(systems: int, least: int) -> None:
    """Steps are written down for it, on the way or afterwards; what else is asked of them is asked as before."""
    more = Property("more", Kind.TEMPORAL, b.TRUE, formula=Always(Atom(b.TRUE)))
    broken = 0
    for seed in range(630, 630 + systems):
        system = random_system(Random(seed))
        if not reference(system).levels:
            continue
        alone = explore(system, SearchOptions(tier="python"))
        beside = explore(replace(system, properties=(more, *system.properties)), SearchOptions(tier="python"))
        assert alone.counts == beside.counts
        assert alone.findings == tuple(f for f in beside.findings if f.property != "more")
        broken += any(f.kind is Kind.STEP and f.verdict is Verdict.VIOLATED for f in alone.findings)
    assert broken > least


@pytest.mark.parametrize(("systems", "complete"), share([(20, 12), (40, 25), (80, 50)], 3))
def test_systems_compiled(panel: Any, systems: int, complete: int) -> None:
    """The compiled tier takes the same states in the same order."""
    outcomes = Counter(_agree(panel, random_system(Random(seed)), "compiled")[0] for seed in range(400, 400 + systems))
    assert outcomes["complete"] > complete
