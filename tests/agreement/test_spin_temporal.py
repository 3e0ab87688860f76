"""Spin decides temporal properties as the explicit engine does, and what it finds is read back as behaviours of ours."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from random_systems import random_system, temporal_system
from shares import share
from small_models import small_system
from streamproof import Array, Model, Range, State, action, always, constraint, require, temporal
from streamproof.exchange.itf.reading import read_itf
from streamproof.exchange.itf.writing import write_itf
from streamproof.exchange.promela import bits as promela_bits
from streamproof.exchange.promela import spin
from streamproof.exchange.promela.model import promela
from streamproof.explicit.exploration import Exploration, explore
from streamproof.model_registry import bundled, find
from streamproof.system import BOOL, Action, Fairness, Instance, Kind, Property, System, UsageError, Variable, Verdict
from streamproof.system import build as b
from streamproof.system.formula import Always, AndF, Atom, Formula, LeadsTo, NotF, OrF, parts
from streamproof.system.model import fairness_constraints
from streamproof.system.reference import reference
from streamproof.traces.replay import verify
from streamproof_models.reference.async_termination_detection import AsyncTerminationDetection
from streamproof_models.reference.coffee_can import CoffeeCan
from streamproof_models.reference.dining_philosophers import DiningPhilosophers
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.ewd998 import Ewd998
from streamproof_models.reference.token_ring import TokenRing

pytestmark = pytest.mark.skipif(spin.installed() is not None, reason=f"needs Spin: {spin.installed()}")
QUICK = spin.SpinOptions(hash_bits=16, depth=2_000_000, optimise="-O0", seconds=100)
MOST_STRONG = 12
"""Maximum number of constraints of strong fairness, each of which doubles the states that Spin visits."""
MOST_TEXT = 10_000_000
"""Maximum length of the texts of one property together: the C compiler needs some ten seconds for a million characters."""
AT_LENGTH = replace(QUICK, hash_bits=22, seconds=3_600)
"""The C compiler takes minutes for the automaton of a formula with many fairness constraints."""

LIVE: list[tuple[type[Model], dict[str, Any], str]] = [
    (AsyncTerminationDetection, {"n": 2}, "end_is_detected"),
    (CoffeeCan, {"beans": 20}, "one_bean_is_left"),
    (DiningPhilosophers, {}, "nobody_starves"),
    (Ewd840, {"n": 3}, "end_is_detected"),
    (Ewd998, {"n": 2}, "end_is_detected"),
    (TokenRing, {"n": 3, "values": 3}, "stabilises"),
]


@pytest.mark.parametrize(("model", "parameters", "name"), share(LIVE, 3), ids=[m.title() for m, _, _ in LIVE])
def test_bundled_temporal_properties(model: type[Model], parameters: dict[str, Any], name: str) -> None:
    """What holds under the published fairness holds for Spin, to which fairness was spelt out."""
    decided = spin.decide(model.system(**parameters), [name], QUICK)
    assert [(d.property, d.kind, d.verdict) for d in decided] == [(name, Kind.TEMPORAL, Verdict.HOLDS)]


def _operators(formula: Formula) -> int:
    """Temporal operators; Spin's translation of a formula grows with them beyond what a test can wait for."""
    own = 2 if isinstance(formula, LeadsTo) else not isinstance(formula, Atom | NotF | AndF | OrF)
    return own + sum(map(_operators, parts(formula)))


def compare(system: System, seen: Counter[str]) -> None:
    """Spin's verdicts on temporal properties are the referee's, and its cycles are fair lassos that violate them."""
    expected = reference(system)
    if not expected.levels or expected.mistake is not None:
        return
    for prop in system.properties:
        verdict = expected.decisions[prop.name].verdict
        assert prop.formula is not None
        if verdict is Verdict.ERROR or _operators(prop.formula) > 2:
            continue
        assert spin.decide(system, [prop.name], QUICK)[0].verdict is verdict
        seen[verdict.value] += 1
        trace = spin.counterexample(system, prop.name, QUICK)
        assert (trace is None) == (verdict is Verdict.HOLDS)
        if trace is not None:
            verify(system, prop.name, trace)
            seen["stutters" if trace.stutters else "repeats"] += 1


@pytest.mark.parametrize("systems", share([3, 5], 2))
def test_random_temporal_systems(systems: int) -> None:
    """Formulas of all operators, weak and strong fairness, several initial states."""
    seen: Counter[str] = Counter()
    for seed in range(systems):
        compare(temporal_system(Random(seed)), seen)
    assert min(seen["holds"], seen["violated"]) > 0


@pytest.mark.long
def test_a_claim_that_a_state_breaks() -> None:
    """Without fairness, what is always so is broken in a state: Spin tells of an assertion then, and of no cycle."""
    x = b.var("x", BOOL)
    moves = Action("move", (), Fairness.NONE, (Instance("move", (), (), (), (("x", b.not_(x)),)),))
    prop = Property("always_x", Kind.TEMPORAL, b.TRUE, formula=Always(Atom(x, "x")))
    for first in ((True,), (False,), (True, False)):
        seen: Counter[str] = Counter()
        compare(System("flips", (Variable("x", BOOL, first),), (moves,), (prop,)), seen)
        assert seen["violated"] == 1


@pytest.mark.long
def test_conditions_as_bits_of_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every condition a bit, as where the formula would be too long for Spin: the same verdicts, and cycles as fair."""
    monkeypatch.setattr(spin, "LONGEST", 0)
    monkeypatch.setattr(promela_bits, "LONG", 1)
    seen: Counter[str] = Counter()
    for seed in (5, 6, 7, 17):  # in the last, what is initially true of a bit hangs on other variables
        system = temporal_system(Random(seed))
        compare(system, seen)
        assert any("said_1" in text.text for p in system.properties for text in spin.claimed(system, p.name))
    assert min(seen["holds"], seen["violated"]) > 0


@pytest.mark.long
def test_more_random_temporal_systems() -> None:
    """The same on more of them, cycles and stuttering among what is found."""
    seen: Counter[str] = Counter()
    for seed in range(5, 120):
        compare(temporal_system(Random(seed)), seen)
    assert min(seen["holds"], seen["violated"], seen["repeats"]) > 10
    assert seen["stutters"] > 5


class Mistaken(Model):
    """An index outside an array in the last two states, of which a constraint may exclude one or both."""

    most: int = 4
    check_deadlock = False

    def state(self) -> State:
        """A position in a table."""
        return State(n=Range(0, 4), table=Array(3, Range(0, 1)))

    @action
    def up(self, s: Any) -> None:
        """The next position."""
        require(s.n < 4)
        s.n += 1

    @constraint
    def short(self, s: Any) -> bool:
        """No position beyond the last one of interest."""
        return s.n <= self.most

    @temporal
    def empty(self, s: Any) -> Any:
        """No entry is written."""
        return always(s.table[s.n] == 0)

    @temporal
    def first(self, s: Any) -> Any:
        """Violated before the position leaves the table."""
        return always(s.table[s.n] == 0 and s.n < 1)


@pytest.mark.parametrize(
    ("most", "name", "verdict"),
    [(4, "empty", Verdict.ERROR), (2, "empty", Verdict.HOLDS), (4, "first", Verdict.INCONCLUSIVE)],
)
def test_an_evaluation_error_of_a_temporal_property(most: int, name: str, verdict: Verdict) -> None:
    """It is found without the claim; with a violation, Spin does not tell which one comes first."""
    assert spin.decide(Mistaken.system(most=most), [name], QUICK)[0].verdict is verdict


def test_safety_counterexamples_are_read_back(tmp_path: Path) -> None:
    """The trail of a violation is a shortest behaviour that shows it, and goes to ITF and back."""
    seen: Counter[Kind] = Counter()
    for seed in range(24):
        system = random_system(Random(seed))
        expected = reference(system)
        if not expected.levels or expected.mistake is not None:
            continue
        for prop in system.properties:
            shown = Verdict.HOLDS if prop.kind is Kind.REACHABLE else Verdict.VIOLATED
            if expected.decisions[prop.name].verdict is not shown or prop.checks or seen[prop.kind] > 1:
                continue
            trace = spin.counterexample(system, prop.name, QUICK)
            assert trace is not None
            verify(system, prop.name, trace)
            if prop.kind is not Kind.TERMINATION:
                assert len(trace) == expected.decisions[prop.name].length
            write_itf(tmp_path / "spin.itf.json", system, trace, prop)
            assert read_itf(tmp_path / "spin.itf.json", system) == trace
            seen[prop.kind] += 1
    assert {Kind.INVARIANT, Kind.REACHABLE, Kind.STEP, Kind.DEADLOCK} <= set(seen)


def test_only_temporal_properties_have_texts_of_their_own() -> None:
    """Another kind of property is in the text of the model."""
    with pytest.raises(UsageError, match="dijkstra is not a temporal property"):
        spin.claimed(Ewd840.system(), "dijkstra")


VARIANTS = [(name, variant) for name in bundled() for variant in (None, *find(name).spec.model.variants)]


@pytest.mark.parametrize("name", share(bundled(), 16, first=3))
def test_every_bundled_model_is_exported(name: str) -> None:
    """Each is written, with a text for each temporal property."""
    _written(small_system(name))


@pytest.mark.long
@pytest.mark.parametrize(("name", "variant"), VARIANTS, ids=[f"{n}-{v}" if v else n for n, v in VARIANTS])
def test_every_bundled_model_and_variant_is_exported(name: str, variant: str | None) -> None:
    """The same at the size `small`, which of some models gives texts of megabytes."""
    _written(_small(name, variant))


def _written(system: System) -> None:
    assert "active proctype model()" in promela(system)
    for prop in system.properties:
        if prop.kind is Kind.TEMPORAL:
            assert all("ltl claim {" in part.text for part in spin.claimed(system, prop.name))


@pytest.mark.long
@pytest.mark.parametrize(
    "name", share(["baton_channels", "checkpoints", "lifecycle_failover", "region_slots", "regions", "slot_pool"], 3)
)
def test_models_with_counts_of_spin_on_their_pages_agree(name: str) -> None:
    """A smaller instance has the same counts and safety verdicts; the long test below has all of the size `small`."""
    system = small_system(name)
    counted = _counted_alike(system)
    names = [p.name for p in system.properties if p.kind is not Kind.TEMPORAL]
    decided = {answer.property: answer.verdict for answer in spin.decide(system, names, QUICK)}
    assert decided == {name: counted.finding(name).verdict for name in names}


@pytest.mark.long
@pytest.mark.parametrize(("name", "variant"), VARIANTS, ids=[f"{n}-{v}" if v else n for n, v in VARIANTS])
def test_every_bundled_model_and_variant_agrees(name: str, variant: str | None) -> None:
    """At its small size each has the same counts and verdicts for Spin, temporal properties included, but where strong
    fairness multiplies the states too often, or the automata are too large to be compiled."""
    system = _small(name, variant)
    ours = _counted_alike(system)
    strong = sum(constraint.fairness is Fairness.STRONG for constraint in fairness_constraints(system))
    asked = [
        prop.name
        for prop in system.properties
        if prop.kind is not Kind.TEMPORAL
        or (strong <= MOST_STRONG and sum(len(part.text) for part in spin.claimed(system, prop.name)) <= MOST_TEXT)
    ]
    decided = {answer.property: answer.verdict for answer in spin.decide(system, asked, AT_LENGTH)}
    assert decided == {name: ours.finding(name).verdict for name in decided}


def _counted_alike(system: System) -> Exploration:
    """Our search of all states, of which Spin finds as many."""
    ours = explore(system)
    counted = spin.count(system, QUICK)
    counts = (ours.counts.distinct, ours.counts.generated, ours.counts.depth)
    assert (counted.truncated, counted.distinct, counted.generated, counted.depth) == (None, *counts)
    return ours


def _small(name: str, variant: str | None) -> System:
    target = find(name)
    parameters = dict(target.variant(variant).sizes.get("small", {}))
    return target.system(variant, {**parameters, **target.spec.variant_parameters.get(variant or "", {})})
