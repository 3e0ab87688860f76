"""Temporal properties as invariants of a larger system: engines that know invariants agree with the search of cycles."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from random_systems import temporal_system
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.symbolic.bmc import bmc
from streamproof.symbolic.liveness import prove_temporal
from streamproof.symbolic.portfolio import Engine
from streamproof.system import Interpreter, Kind, Verdict
from streamproof.system.reference import reference
from streamproof.system.temporal import fairness_of, true_of
from streamproof.transform.liveness_to_safety import to_safety


@pytest.mark.push
@pytest.mark.parametrize(
    ("seeds", "verdicts", "repeats", "stutters"),
    [
        (range(13, 26), {"holds": 9, "violated": 15, "nothing to violate": 0, "too large": 3}, 6, 1),
        pytest.param(
            range(26),
            {"holds": 18, "violated": 25, "nothing to violate": 1, "too large": 3},
            15,
            4,
            marks=pytest.mark.long,
        ),
    ],
)
def test_random_systems(seeds: range, verdicts: dict[str, int], repeats: int, stutters: int) -> None:
    """The explicit engine on the larger system gives the referee's verdict; a violation is a lasso when read back."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        system = temporal_system(Random(seed), recurring=seed % 2 == 0)
        expected = reference(system)
        if not expected.levels or expected.mistake is not None or expected.counts.distinct > 12:
            continue
        for prop in system.properties:
            verdict = expected.decisions[prop.name].verdict
            if verdict is Verdict.ERROR or prop.formula is None:
                continue
            safety = to_safety(system, prop.name)
            assert [(p.name, p.kind) for p in safety.system.properties] == [(prop.name, Kind.INVARIANT)]
            if not any(Interpreter(safety.system).initial_states()):
                assert verdict is Verdict.HOLDS
                seen["nothing to violate"] += 1
                continue
            result = explore(safety.system, SearchOptions(max_states=20_000, tier="python", stop_when_decided=True))
            finding = result.findings[0]
            if finding.verdict is Verdict.INCONCLUSIVE:
                seen["too large"] += 1
                continue
            assert finding.verdict is verdict
            seen[verdict.value] += 1
            if finding.trace is not None:
                lasso = safety.lasso(finding.trace)
                assert not true_of(system, prop.formula, lasso)
                assert all(evidence.satisfied for evidence in fairness_of(system, lasso))
                seen["stutters" if lasso.stutters else "repeats"] += 1
    assert {kind: seen[kind] for kind in ("holds", "violated", "nothing to violate", "too large")} == verdicts
    assert seen["repeats"] >= repeats
    assert seen["stutters"] >= stutters


@pytest.mark.long
def test_bounded_model_checking_finds_lassos() -> None:
    """What the solver finds within a bound is violated, by a lasso that the referee judges."""
    seen: Counter[str] = Counter()
    for seed in range(20):
        system = temporal_system(Random(seed))
        expected = reference(system)
        if not expected.levels or expected.mistake is not None:
            continue
        prop = system.properties[0]
        if expected.decisions[prop.name].verdict is Verdict.ERROR or prop.checks:
            continue
        safety = to_safety(system, prop.name)
        finding = bmc(safety.system, 8).findings[0]
        seen[finding.verdict.value] += 1
        if finding.verdict is Verdict.INCONCLUSIVE:
            continue
        assert finding.verdict is expected.decisions[prop.name].verdict
        if finding.trace is not None:
            lasso = safety.lasso(finding.trace)
            assert prop.formula is not None
            assert not true_of(system, prop.formula, lasso)
            assert all(evidence.satisfied for evidence in fairness_of(system, lasso))
    assert seen == {"holds": 5, "violated": 4, "inconclusive": 2}


@pytest.mark.parametrize(
    ("engine", "counts"),
    [
        (Engine.INDUCTION, {"holds": 4, "violated": 3, "inconclusive": 6}),
        (Engine.PDR, {"holds": 5, "violated": 4, "inconclusive": 4}),
    ],
    ids=["induction", "pdr"],
)
@pytest.mark.long
def test_proofs_of_temporal_properties(engine: Engine, counts: dict[str, int]) -> None:
    """Whatever induction or PDR decides is what the referee says; how much each decides is fixed.

    The time limit is in steps of the solver, so a slow machine leaves no more open than a fast one.
    """
    seen: Counter[str] = Counter()
    for seed in range(32):
        system = temporal_system(Random(seed))
        expected = reference(system)
        if not expected.levels or expected.mistake is not None or expected.counts.distinct > 8:
            continue
        prop = system.properties[seed % 3]
        if expected.decisions[prop.name].verdict is Verdict.ERROR or prop.checks:
            continue
        finding = prove_temporal(system, prop.name, engine=engine, depth=6, seconds=2, reproducible=True).findings[0]
        assert finding.kind is Kind.TEMPORAL
        seen[finding.verdict.value] += 1
        if finding.verdict is not Verdict.INCONCLUSIVE:
            assert finding.verdict is expected.decisions[prop.name].verdict, seed
        if finding.trace is not None:
            assert prop.formula is not None
            assert not true_of(system, prop.formula, finding.trace), seed
            assert finding.fair == fairness_of(system, finding.trace), seed
    assert seen == counts
