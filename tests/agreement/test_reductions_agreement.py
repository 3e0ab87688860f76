"""Reduced searches and the full one agree: on random systems, on systems of interchangeable processes, on bundled models.

Verdicts are the same, and so is the length of every counterexample and witness but those of endless behaviours. Up to
symmetry, a search meets exactly one state of every reachable orbit, on the level where the full search first meets one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, permutations
from random import Random
from typing import Any

import pytest

from random_symmetric_systems import symmetric_system
from random_systems import random_system
from shares import share
from streamproof.base.errors import StreamproofError
from streamproof.base.options import SearchOptions, Tuning
from streamproof.explicit.exploration import Exploration, explore
from streamproof.explicit.reductions import automorphism, plan, stubborn
from streamproof.explicit.reductions.renaming import renamed, symmetric_sorts
from streamproof.system import Kind, ModelError, System, Verdict
from streamproof.system import build as b
from streamproof.system.model import Property, State
from streamproof_models.reference.async_termination_detection import AsyncTerminationDetection
from streamproof_models.reference.coffee_can import CoffeeCan
from streamproof_models.reference.die_hard import DieHard
from streamproof_models.reference.dining_philosophers import DiningPhilosophers
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.hanoi import Hanoi
from streamproof_models.reference.token_ring import TokenRing
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit
from streamproof_specs.failover.properties import SPEC

Draw = Callable[[Random], System]


def drawn(draw: Draw, seeds: range) -> Iterator[tuple[System, Exploration]]:
    """Random systems that have an initial state, with the full search."""
    for seed in seeds:
        system = draw(Random(seed))
        try:
            yield system, explore(system, SearchOptions(tier="python"))
        except ModelError:
            continue


def agree(full: Exploration, reduced: Exploration) -> str:
    """Compares the outcomes; gives ``mistake``, ``smaller`` or ``same``."""
    if full.mistake is not None or reduced.mistake is not None:
        # Which properties were decided on the very level of the mistake depends on the order of states.
        assert full.mistake is not None
        assert reduced.mistake is not None
        assert len(full.mistake.trace) == len(reduced.mistake.trace)
        for one, other in zip(full.findings, reduced.findings, strict=True):
            assert one.verdict is other.verdict or Verdict.ERROR in (one.verdict, other.verdict)
        return "mistake"
    for one, other in zip(full.findings, reduced.findings, strict=True):
        assert (one.property, one.verdict) == (other.property, other.verdict)
        if one.kind is not Kind.TERMINATION:
            assert (one.trace and len(one.trace)) == (other.trace and len(other.trace))
    return "smaller" if reduced.counts.distinct < full.counts.distinct else "same"


def outcomes(draw: Draw, seeds: range, **options: Any) -> Counter[str]:
    """How often reduced searches were smaller, the same, or ended with a mistake."""
    only = {"tier": "python", **options}  # without turns of the full search
    return Counter(agree(full, explore(system, SearchOptions(**only))) for system, full in drawn(draw, seeds))


def disagrees(draw: Draw, seeds: range, **options: Any) -> bool:
    """Whether some comparison fails."""
    for system, full in drawn(draw, seeds):
        try:
            agree(full, explore(system, SearchOptions(tier="python", **options)))
        except (AssertionError, StreamproofError):
            return True
    return False


def places(draw: Draw, seeds: range, count: int = 3) -> Iterator[tuple[System, int]]:
    """Systems that are asked whether one of their reachable states is reachable, with the steps of a shortest way there."""
    for seed in seeds:
        system = replace(draw(Random(seed)), properties=())
        try:
            full = explore(system, SearchOptions(tier="python"))
        except ModelError:
            continue
        if full.mistake is not None:
            continue
        levels = [level for level, states in enumerate(full.counts.levels) for _ in range(states)]
        reached = list(full.states())
        for at in Random(seed).choices(range(len(reached)), k=count):
            here = zip(system.variables, reached[at], strict=True)
            expr = b.and_(b.eq(b.var(v.name, v.sort), b.const(v.sort, value)) for v, value in here)
            yield replace(system, properties=(Property("there", Kind.REACHABLE, expr),)), levels[at]


def reaches(system: System, steps: int) -> bool:
    """Whether the search with partial-order reduction reaches the place in so many steps."""
    (finding,) = explore(system, SearchOptions(por=True)).findings
    return finding.verdict is Verdict.HOLDS and finding.trace is not None and len(finding.trace) == steps + 1


# --- partial order


@pytest.mark.parametrize(("systems", "smaller", "mistakes"), share([(70, 12, 6), (140, 25, 12)], 2))
def test_partial_order_on_random_systems(systems: int, smaller: int, mistakes: int) -> None:
    """Partial-order reduction changes no verdict and no length on random systems, and makes many of them smaller."""
    found = outcomes(random_system, range(systems), por=True)
    assert found["smaller"] >= smaller
    assert found["mistake"] >= mistakes


@pytest.mark.long
def test_partial_order_on_processes() -> None:
    """Nor on systems of processes, with and without symmetry."""
    assert outcomes(symmetric_system, range(25), por=True)["smaller"] >= 4
    assert outcomes(symmetric_system, range(25), por=True, symmetry=True)["smaller"] >= 7


@pytest.mark.long
@pytest.mark.parametrize("draw", [random_system, symmetric_system])
def test_every_place_is_reached_in_as_many_steps(draw: Draw) -> None:
    """Asked about any one reachable state, the reduced search finds it, by a shortest way."""
    chosen = list(places(draw, range(30)))
    assert len(chosen) >= 60
    assert [system for system, steps in chosen if not reaches(system, steps)] == []


@pytest.mark.long
@pytest.mark.parametrize("draw", [random_system, symmetric_system])
def test_partial_order_on_many_random_systems(draw: Draw) -> None:
    """The same on many more, with reachability of single states."""
    outcomes(draw, range(1000, 5000), por=True)
    assert [system for system, steps in places(draw, range(1000, 2500)) if not reaches(system, steps)] == []


def test_a_missing_dependency_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where instances that get in each other's way are taken for independent, some place is missed."""
    monkeypatch.setattr(stubborn.Independence, "dependent", lambda self: (0,) * len(self.rules))
    assert not all(reaches(system, steps) for system, steps in places(random_system, range(60)))


def test_a_missing_enabler_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is known to make a condition true, some place is missed."""
    monkeypatch.setattr(stubborn.Independence, "enablers", lambda self, term, positive: 0)
    assert not all(reaches(system, steps) for system, steps in places(random_system, range(10)))


def test_a_missing_goal_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sets need not serve the properties, some verdict is another."""
    monkeypatch.setattr(stubborn, "_decisions", lambda *given: [])
    assert disagrees(random_system, range(40), por=True)


def test_a_missing_mistake_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sets need not serve the model's mistakes, some mistake is missed."""
    monkeypatch.setattr(stubborn, "_mistakes", lambda *given: [])
    assert disagrees(symmetric_system, range(180, 200), por=True)


def test_missing_progress_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sets may be empty although deadlocks or endless behaviours are asked about, some verdict is another."""
    right = stubborn.stubborn_sets
    monkeypatch.setattr(plan, "stubborn_sets", lambda *given: replaced(right(*given)))
    assert disagrees(random_system, range(40), por=True)


def replaced(sets: stubborn.StubbornSets) -> stubborn.StubbornSets:
    """Sets that may be empty."""
    sets.progress = False
    return sets


# --- symmetry


def orbit(system: System, state: State) -> frozenset[State]:
    """The states that a state can be renamed to, one renaming after the other."""
    (sort,) = symmetric_sorts(system)
    found = set()
    for order in permutations(sort.members):
        renaming = {sort: dict(zip(sort.members, order, strict=True))}
        found.add(tuple(renamed(v.sort, value, renaming) for v, value in zip(system.variables, state, strict=True)))
    return frozenset(found)


def orbits(system: System, full: Exploration) -> tuple[int, ...]:
    """The orbits first met on each level of the full search."""
    states, met, levels = full.states(), set[frozenset[State]](), []
    for size in full.counts.levels:
        before = len(met)
        met.update(orbit(system, state) for state in islice(states, size))
        levels.append(len(met) - before)
    return tuple(levels)


def same_orbits(draw: Draw, seeds: range) -> Counter[str]:
    """Compares searches up to symmetry with full ones; gives how often the reduction was made, and not."""
    found: Counter[str] = Counter()
    for system, full in drawn(draw, seeds):
        reduced = explore(system, SearchOptions(symmetry=True))
        (reduction,) = reduced.reductions
        found[str(reduction.applied)] += 1
        found[agree(full, reduced)] += 1
        if reduction.applied and full.mistake is None:
            assert reduced.counts.levels == orbits(system, full)
            assert {orbit(system, state) for state in reduced.states()} == {orbit(system, s) for s in full.states()}
    return found


@pytest.mark.long
def test_symmetry_on_processes() -> None:
    """One state of each reachable orbit is met, on the right level, with the same verdicts and lengths."""
    found = same_orbits(symmetric_system, range(100))
    assert found["False"] == 0
    assert found["smaller"] >= 40


def picking(random: Random) -> System:
    """A symmetric system with a rule that picks something for each process."""
    return symmetric_system(random, picking=True)


def partial(random: Random) -> System:
    """The same where one process is special."""
    return symmetric_system(random, picking=True, favourite=True)


@pytest.mark.long
def test_symmetry_of_picks() -> None:
    """Where a rule makes one pick for each process, exchanging processes exchanges the picks: the reduction is made."""
    found = same_orbits(picking, range(30))
    assert found["False"] == 0
    assert found["smaller"] >= 15
    assert outcomes(picking, range(15), por=True, symmetry=True)["smaller"] >= 5
    assert same_orbits(partial, range(20))["False"] >= 12


def test_symmetry_is_not_believed() -> None:
    """Systems that favour one process keep their full search, unless it makes no difference."""
    found = same_orbits(lambda random: symmetric_system(random, favourite=True), range(60))
    assert found["False"] >= 30


@pytest.mark.long
def test_symmetry_on_many_processes() -> None:
    """The same on many more."""
    assert same_orbits(symmetric_system, range(1000, 5000))["False"] == 0
    same_orbits(lambda random: symmetric_system(random, favourite=True), range(1000, 2000))
    assert same_orbits(picking, range(1000, 4000))["False"] == 0
    same_orbits(partial, range(1000, 3000))


def test_a_wrong_symmetry_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where systems that favour one process are taken for symmetric, some comparison fails."""

    def believe(scalarised: Any, *given: Any) -> Any:
        return symmetric_sorts(scalarised.original)

    monkeypatch.setattr(plan, "verify", believe)
    with pytest.raises((AssertionError, StreamproofError)):
        same_orbits(lambda random: symmetric_system(random, favourite=True), range(60))


def test_a_rule_taken_for_another_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where any instance with the same picks in some order is taken for the renamed one, some comparison fails."""
    monkeypatch.setattr(automorphism._OrderComparison, "_any_rule", lambda *given: None)
    with pytest.raises((AssertionError, StreamproofError)):
        same_orbits(partial, range(40))


# --- bundled models

MODELS = [
    AsyncTerminationDetection.system(n=3),
    CoffeeCan.system(beans=60),
    DieHard.system(),
    DiningPhilosophers.system(philosophers=4),
    Ewd840.system(),
    Hanoi.system(discs=3),
    TokenRing.system(n=4, values=4),
    TwoPhaseCommit.system(resource_managers=4),
    SPEC.system(topology="pair"),
    SPEC.system("no-fence", topology="pair"),
]


@pytest.mark.parametrize("system", MODELS, ids=lambda system: f"{system.name} {system.variant or ''}".strip())
def test_bundled_models(system: System) -> None:
    """Bundled models have the same verdicts with each reduction, and with both; what does not apply says why."""
    full = explore(system)
    for options in ({"por": True}, {"symmetry": True}, {"por": True, "symmetry": True}):
        reduced = explore(system, SearchOptions(**options))
        agree(full, reduced)
        assert len(reduced.reductions) == len(options)
        for reduction in reduced.reductions:
            assert reduction.because
        if not any(reduction.applied for reduction in reduced.reductions):
            assert reduced.counts == full.counts


@pytest.mark.parametrize(
    ("managers", "full", "orbits", "stubborn", "both"),
    [(2, 56, 34, 44, 27), (3, 288, 80, 172, 51), (4, 1_568, 166, 684, 86), (5, 8_832, 314, 2_732, 134)],
)
def test_two_phase_commit(managers: int, full: int, orbits: int, stubborn: int, both: int) -> None:
    """States of two-phase commit: all of them, up to symmetry, with partial-order reduction, and with both."""
    system = TwoPhaseCommit.system(resource_managers=managers)
    assert explore(system).counts.distinct == full
    for tier in ("python", "compiled"):
        assert explore(system, SearchOptions(symmetry=True, tier=tier)).counts.distinct == orbits
    assert explore(system, SearchOptions(por=True, tier="python")).counts.distinct == stubborn
    assert explore(system, SearchOptions(symmetry=True, por=True, tier="python")).counts.distinct == both


@pytest.mark.parametrize("option", ["symmetry", "por"])
@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(30, 1000, 97))])
def test_turns(option: str, first: int) -> None:
    """Reduced and full search in turns, from different amounts of work on: verdicts and lengths of the full search."""
    seen = set()
    for seed in range(first, first + (97 if first else 30)):
        system = symmetric_system(Random(seed))
        tuning = Tuning(rival_turn=(20, 1_000, 30_000, 1_000_000)[seed % 4], small_states=seed % 5 * 10)
        try:
            full = explore(system, SearchOptions(tier="python"))
        except ModelError:
            continue
        reduced = explore(system, SearchOptions(tuning=tuning, **{option: True}))
        agree(full, reduced)
        (reduction,) = reduced.reductions
        seen.add((reduction.applied, reduction.not_needed))
        if reduction.not_needed and full.mistake is None:
            assert reduced.counts == full.counts
    assert {(True, False), (False, True)} <= seen


def test_ten_resource_managers() -> None:
    """The 61,515,776 states of two-phase commit with ten resource managers lie in 3,300 orbits."""
    found = explore(TwoPhaseCommit.system(resource_managers=10), SearchOptions(symmetry=True))
    assert (found.counts.distinct, found.counts.generated, found.counts.depth) == (3_300, 43_298, 32)
    assert {f.verdict for f in found.findings} == {Verdict.HOLDS}
