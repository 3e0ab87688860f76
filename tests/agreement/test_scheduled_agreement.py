"""Fairness and stuttering spelt out in the system itself: the same verdicts, and lassos that are fair when read back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from random_systems import temporal_system
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Fairness, System, Verdict
from streamproof.system.model import fresh
from streamproof.system.reference import reference
from streamproof.system.temporal import fairness_of, true_of
from streamproof.transform.fair_scheduler import scheduled


def twinned(system: System, random: Random) -> System:
    """The system with a second action that makes the same steps as one of its own, and is fair or not by itself."""
    one = random.choice(system.actions)
    name = fresh(f"{one.name}_too", [a.name for a in system.actions])
    instances = tuple(replace(i, action=name) for i in one.instances)
    other = replace(one, name=name, instances=instances, fairness=random.choice([*Fairness]))
    actions = [*system.actions, other]
    random.shuffle(actions)
    return replace(system, actions=tuple(actions))


@pytest.mark.long
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("twins", [False, True])
@pytest.mark.parametrize("start", range(0, 300, 60))
def test_random_systems_need_no_scheduler(start: int, twins: bool, apart: bool) -> None:
    """The system with rounds and bits has no fairness, and its formula the same truth; lassos lose the steps put in.

    `twins`: some steps are made by instances of two actions. `apart`: constraints are passed by steps of their own.
    """
    seen: Counter[str] = Counter()
    for seed in range(start, start + 60):
        system = temporal_system(Random(seed))
        if twins:
            system = twinned(system, Random(seed))
        expected = reference(system)
        if not expected.levels or expected.mistake is not None:
            continue
        for prop in system.properties:
            decision = expected.decisions[prop.name].verdict
            if decision is Verdict.ERROR or prop.formula is None or prop.checks:
                continue
            seen["strong"] += any(a.fairness is Fairness.STRONG for a in system.actions)
            form = scheduled(system, prop.formula, prop.name, apart=apart)
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
