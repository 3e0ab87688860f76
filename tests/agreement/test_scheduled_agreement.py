"""Fairness and stuttering spelt out in the system itself: the same verdicts, and lassos that are fair when read back."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from random_systems import temporal_system
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Fairness, Verdict
from streamproof.system.reference import reference
from streamproof.system.temporal import fairness_of, true_of
from streamproof.transform.fair_scheduler import scheduled


@pytest.mark.long
def test_random_systems_need_no_scheduler() -> None:
    """The system with rounds and bits has no fairness, and its formula the same truth; lassos lose the steps put in."""
    seen: Counter[str] = Counter()
    for seed in range(60):
        system = temporal_system(Random(seed))
        expected = reference(system)
        if not expected.levels or expected.mistake is not None:
            continue
        for prop in system.properties:
            decision = expected.decisions[prop.name].verdict
            if decision is Verdict.ERROR or prop.formula is None or prop.checks:
                continue
            seen["strong"] += any(a.fairness is Fairness.STRONG for a in system.actions)
            form = scheduled(system, prop.formula, prop.name)
            assert {a.fairness for a in form.system.actions} == {Fairness.NONE}
            finding = explore(form.system, SearchOptions(tier="python")).finding(prop.name)
            assert finding.verdict is decision
            seen[decision.value] += 1
            seen["rounds"] += form.round_ends is not None
            if finding.trace is not None:
                trace = form.trace(finding.trace)
                assert not true_of(system, prop.formula, trace)
                assert all(evidence.satisfied for evidence in fairness_of(system, trace))
                seen["stutters" if trace.stutters else "repeats"] += 1
    assert min(seen["holds"], seen["violated"], seen["rounds"], seen["strong"]) > 20
    assert min(seen["stutters"], seen["repeats"]) > 5
