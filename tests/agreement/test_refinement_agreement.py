"""Refinement on random systems: the engines, the referee, and what fairness of the abstract system means, agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from random import Random

import pytest

from random_systems import temporal_system
from shares import share
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.symbolic.bmc import bmc
from streamproof.system import EvaluationError, Fairness, Interpreter, Kind, State, System, Verdict
from streamproof.system import build as b
from streamproof.system.formula import claims, recurring
from streamproof.system.reference import reference
from streamproof.system.reference_temporal import can_be_violated
from streamproof.system.temporal import fairness_of
from streamproof.transform.constraint import by_states
from streamproof.transform.refinement import Refinement


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(11), range(11, 20)], ids=["few", "more"])
def test_bits_that_are_turned_over_change_no_behaviour(seeds: range) -> None:
    """The referee gives the same verdict on a formula about steps and on its translation to states."""
    seen: Counter[bool] = Counter()
    for seed in seeds:
        system = temporal_system(Random(seed), recurring=True)
        expected = reference(system)
        if not expected.levels or expected.mistake is not None:
            continue
        for prop in system.properties:
            if prop.formula is not None and len(set(recurring(prop.formula))) == 1:
                counted = by_states(system, prop.formula)
                below = reference(replace(counted.system, properties=())).levels
                broken = can_be_violated(counted.system, counted.formula, below[0], tuple(chain(*below)))
                above = expected.levels
                assert broken == can_be_violated(system, prop.formula, above[0], tuple(chain(*above)))
                seen[broken] += 1
    assert min(seen[True], seen[False]) > 1


def _other(system: System, random: Random) -> System:
    """The same with another fairness, a rule that may be missing, and, now and then, a state in which all may begin."""
    kept = [
        replace(
            action,
            fairness=random.choice((Fairness.NONE, Fairness.WEAK, Fairness.STRONG)),
            instances=tuple(i for i in action.instances if random.randrange(8)),
        )
        for action in system.actions
    ]
    begin = system.initially if random.randrange(4) else b.TRUE
    return replace(system, actions=tuple(kept), properties=(), initially=begin, terminal=None)


@pytest.mark.push
@pytest.mark.parametrize("seeds", share([range(40), range(80), range(80, 160), range(160, 260)], 4))
def test_random_refinements(seeds: range) -> None:
    """A system and one that was changed: initial states and steps as the interpreter sees them, fairness as it is owed."""
    seen: Counter[tuple[str, str]] = Counter()
    for seed in seeds:
        random = Random(seed)
        base = replace(temporal_system(random), properties=(), terminal=None)
        concrete, abstract = (_other(base, random) for _ in range(2))
        mapping = {v.name: b.var(v.name, v.sort) for v in abstract.variables}
        claim = Refinement("refined", concrete.variables, concrete.initially, abstract, mapping)
        system = replace(concrete, properties=claim.properties())
        expected = reference(replace(system, properties=system.properties[:2]))
        if not expected.levels or expected.mistake is not None:
            continue
        found = {f.property: f for f in explore(system, SearchOptions(tier="python")).findings}
        for name, decision in expected.decisions.items():
            assert found[name].verdict is decision.verdict
        if "refined_fairness" in found:
            formula = system.property("refined_fairness").formula
            assert formula is not None
            every = tuple(chain(*expected.levels))
            broken = any(can_be_violated(system, claim, expected.levels[0], every) for claim in claims(formula))
            assert found["refined_fairness"].verdict is (Verdict.VIOLATED if broken else Verdict.HOLDS)
        assert found["refined_start"].verdict is _starts(expected.levels[0], abstract)
        try:
            assert found["refined"].verdict is _steps(chain(*expected.levels), concrete, abstract)
        except EvaluationError:
            continue
        fair = found.get("refined_fairness")
        if fair is not None and fair.verdict is Verdict.VIOLATED:
            assert fair.trace is not None
            assert all(evidence.satisfied for evidence in fairness_of(system, fair.trace))
            assert not all(evidence.satisfied for evidence in fairness_of(abstract, fair.trace))
        if seed < 60:
            bounded = {f.property: f.verdict for f in bmc(system, 3, ["refined", "refined_start"]).findings}
            for name, verdict in bounded.items():
                assert verdict in (found[name].verdict, Verdict.INCONCLUSIVE)
        for name, finding in found.items():
            seen[name, finding.verdict.value] += 1
    assert min(seen[name, v] for name in ("refined", "refined_fairness") for v in ("holds", "violated")) > 6
    assert seen["refined_start", "violated"] > 0


def _starts(initial: Iterable[State], abstract: System) -> Verdict:
    first = set(Interpreter(abstract).initial_states())
    return Verdict.HOLDS if all(state in first for state in initial) else Verdict.VIOLATED


def _steps(states: Iterable[State], concrete: System, abstract: System) -> Verdict:
    below, above = Interpreter(concrete), Interpreter(abstract)
    for state in states:
        allowed = {state, *(step.state for step in above.steps(state))}
        if any(step.state not in allowed for step in below.steps(state)):
            return Verdict.VIOLATED
    return Verdict.HOLDS


def test_every_kind_of_property_has_its_place() -> None:
    """A refinement is an invariant, a property of steps and, where fairness is demanded, a temporal property."""
    system = temporal_system(Random(3))
    idle = replace(system, actions=tuple(replace(a, fairness=Fairness.NONE) for a in system.actions))
    mapping = {v.name: b.var(v.name, v.sort) for v in system.variables}
    kinds = [Kind.INVARIANT, Kind.STEP]
    assert [p.kind for p in Refinement("r", idle.variables, b.TRUE, idle, mapping).properties()] == kinds
    weak = replace(system, actions=tuple(replace(a, fairness=Fairness.WEAK) for a in system.actions))
    assert [p.kind for p in Refinement("r", weak.variables, b.TRUE, weak, mapping).properties()] == [
        *kinds,
        Kind.TEMPORAL,
    ]
