"""Parts of properties: the changed properties are stronger and weaker, and each answer is true, by plain searches."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import streamproof as sp
from random_systems import random_system, temporal_system
from streamproof import (
    WEAK,
    Array,
    Bool,
    Model,
    Range,
    State,
    action,
    always,
    constraint,
    eventually,
    invariant,
    leads_to,
    require,
    step,
    temporal,
    terminal,
)
from streamproof.base.options import SearchOptions
from streamproof.base.records import replace
from streamproof.cli.verbs import cli
from streamproof.mutation.judging import NEEDED, NO_EFFECT, NOT_NEEDED, OPEN, Mutation, mutate
from streamproof.mutation.mutants import mutants
from streamproof.mutation.property_parts import property_parts
from streamproof.system import Kind, System, Verdict
from streamproof.system.reference import reference


class Tank(Model):
    """A tank is filled; a bell may ring when it is full; it never breaks."""

    size: int = 3

    def state(self) -> State:
        """The level, the bell, and two valves."""
        return State(level=Range(0, self.size), rung=Bool(), broken=Bool(), open=Array(2, Bool()))

    @action(fairness=WEAK)
    def fill(self, s: Any) -> None:
        """One more."""
        require(s.level < self.size)
        s.level += 1
        s.open[0] = True

    @action
    def ring(self, s: Any) -> None:
        """Once, when it is full."""
        require(s.level == self.size and not s.rung)
        s.rung = True

    @terminal
    def full(self, s: Any) -> bool:
        """The end."""
        return bool(s.level == self.size)

    @invariant
    def rung_when_full(self, s: Any) -> bool:
        """The last part has no effect."""
        return bool(not s.rung or s.level == self.size or s.broken)

    @invariant
    def valves(self, s: Any) -> bool:
        """No change of the rules opens the second valve, and none raises the level beyond the range."""
        return all(not s.open[i] or s.level > 0 for i in range(2)) and bool(s.level < 9)

    @step
    def up(self, s: Any, t: Any) -> bool:
        """Never down."""
        return bool(t.level >= s.level)

    @temporal
    def fills(self, s: Any) -> Any:
        """The second part is vacuous, the third one waits for nothing."""
        return leads_to(s.level > 0, s.level == self.size) and leads_to(s.broken, s.rung) and eventually(s.level == 0)


def answers(found: Mutation) -> dict[str, str]:
    """The answers by property and part."""
    return {f"{one.part.property}: {one.part.what}": one.answer for one in found.parts}


def test_parts_of_a_model() -> None:
    """Each kind of answer, in the words of the source."""
    found = answers(mutate(Tank.system(), SearchOptions(), parts=True))
    assert found == {
        "rung_when_full: not rung": NEEDED,
        "rung_when_full: level == 3": NEEDED,
        "rung_when_full: broken": NO_EFFECT,
        "valves: not open[0] (and 1 alike)": NEEDED,
        "valves: 0 < level (and 1 alike)": NEEDED,
        "fills: 0 < level": NO_EFFECT,
        "fills: level == 3": NEEDED,
        "fills: broken": NEEDED,
        "fills: rung": NO_EFFECT,
        "fills: level == 0": NEEDED,
        "fills: 'later' in leads_to(s.level > 0, s.level == self.size)": NEEDED,
        "fills: 'later' in leads_to(s.broken, s.rung)": NO_EFFECT,
        "fills: 'later' in eventually(s.level == 0)": NO_EFFECT,
    }


@pytest.mark.parametrize(
    ("seeds", "least"),
    [(range(8), 10), pytest.param(range(8, 300), 1_000, marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_changed_properties_are_ordered(seeds: range, least: int) -> None:
    """What is stronger implies the property, and that implies what is weaker, in the verdicts of the referee."""
    order = {Verdict.HOLDS: 1, Verdict.VIOLATED: 0}
    seen: Counter[str] = Counter()
    for seed in seeds:
        for system in (random_system(Random(seed)), temporal_system(Random(seed))):
            system = replace(system, properties=tuple(replace(p, checks=()) for p in system.properties))
            for prop in system.properties:
                parts = list(property_parts(system, prop))[:4]
                changed = [p for part in parts for p in (part.stronger, part.weaker) if p is not None]
                told = reference(replace(system, properties=(prop, *changed)))
                if told.mistake is not None or not told.levels:
                    continue
                verdicts = {name: order.get(decision.verdict) for name, decision in told.decisions.items()}
                for part in parts:
                    stronger, weaker = part.stronger and part.stronger.name, part.weaker and part.weaker.name
                    for one, other in ((stronger, prop.name), (prop.name, weaker)):
                        low, high = (None if name is None else verdicts[name] for name in (one, other))
                        if low is not None and high is not None:
                            assert low <= high, (seed, part.what)
                            seen["pairs"] += 1
                            seen["differ"] += low != high
    assert seen["pairs"] >= least
    assert seen["differ"] >= least // 20


@pytest.mark.parametrize(
    ("seeds", "least"), [(range(6), 4), pytest.param(range(6, 380), 100, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_answers_are_those_of_plain_searches(seeds: range, least: int) -> None:
    """Of random systems, each answer about a part by the interpreter, mutant by mutant."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        system = random_system(Random(seed))
        kept = tuple(replace(p, checks=()) for p in system.properties if p.kind in (Kind.INVARIANT, Kind.STEP))
        system = replace(system, properties=kept)
        told = reference(system)
        holding = [n for n, d in told.decisions.items() if d.verdict is Verdict.HOLDS]
        if told.mistake is not None or not holding or not 0 < sum(map(len, told.levels)) <= 60:
            continue
        found = mutate(system, SearchOptions(tier="python"), parts=True)
        changed = [m.system for m in mutants(system)]
        for one in found.parts:
            assert one.answer == _by_definition(system, changed, one.part), (seed, one.part.what)
            seen[one.answer] += 1
    assert sum(seen.values()) >= least, seen
    assert not seen[OPEN]


def _by_definition(system: System, changed: list[System], part: Any) -> str:
    def verdict(one: System, prop: Any) -> Verdict | None:
        told = reference(replace(one, properties=(prop,)))
        known = told.decisions[prop.name].verdict
        return known if told.mistake is None or known is Verdict.VIOLATED else None

    if part.stronger is not None and verdict(system, part.stronger) is Verdict.HOLDS:
        return NO_EFFECT
    if part.weaker is None:
        return NEEDED
    own = system.property(part.property)
    for one in changed:
        if verdict(one, own) is Verdict.VIOLATED and verdict(one, part.weaker) is Verdict.HOLDS:
            return NEEDED
    return NOT_NEEDED


def test_json_and_text(tmp_path: Path) -> None:
    """The command prints hints, on which the exit code does not depend."""
    file = tmp_path / "answer.json"
    given = ["mutate", "reference.die_hard", "-q", "--properties", "--least", "1", "--json", str(file)]
    ran = CliRunner().invoke(cli, given)
    assert ran.exit_code == 0, ran.output
    told = json.loads(file.read_text(encoding="utf-8"))
    assert {p["answer"] for p in told["parts"]} <= {NEEDED, NO_EFFECT, NOT_NEEDED, OPEN}
    without = CliRunner().invoke(cli, [*given[:3], *given[4:]])
    assert without.exit_code == 0
    assert json.loads(file.read_text(encoding="utf-8"))["parts"] == []


class Bounded(Tank):
    """Within a constraint."""

    @constraint
    def low(self, s: Any) -> bool:
        """A limit."""
        return bool(s.level < 2)


def test_temporal_properties_within_a_constraint_have_no_parts() -> None:
    """Their formula is another one there."""
    found = sp.mutate(Bounded, parts=True)
    assert {one.part.property for one in found.parts} == {"rung_when_full", "valves"}


def test_a_recurrence_is_a_part() -> None:
    """`always(eventually(...))` of a condition, in a disjunction."""

    class Dial(Model):
        """Turns."""

        def state(self) -> State:
            """A number."""
            return State(n=Range(0, 2))

        @action(fairness=WEAK)
        def turn(self, s: Any) -> None:
            """On."""
            s.n = (s.n + 1) % 3

        @temporal
        def again(self, s: Any) -> Any:
            """By the first part."""
            return always(eventually(s.n == 1)) or always(eventually(sp.happened(self.turn))) or always(s.n == 0)

    assert answers(mutate(Dial.system(), SearchOptions(), parts=True))["again: n == 0"] == NO_EFFECT
