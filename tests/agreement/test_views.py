"""Searches by views compared with the full search, and with a plain search that keeps the first state of each view.

A view changes no verdict: what is not proved is inconclusive. Where all obligations are met, nothing is, and every finite
counterexample is as short as that of the full search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quick_tlc import QUICK
from random_systems import random_system, temporal_system
from streamproof.base.errors import StreamproofError
from streamproof.base.options import SearchOptions
from streamproof.exchange.tla import module as tla
from streamproof.exchange.tla import tlc_run
from streamproof.explicit.exploration import Exploration, explore
from streamproof.explicit.reductions.view_obligations import Obligations
from streamproof.system import Interpreter, Kind, ModelError, System, Variable, Verdict
from streamproof.system import build as b
from streamproof.system.model import Derived, Instance, Property
from streamproof.system.sorts import RangeSort

ENDLESS = (Kind.TERMINATION, Kind.TEMPORAL)
MEMORY = RangeSort(0, 2)


def remembering(system: System, random: Random) -> System:
    """The system with a variable that some steps change, as a history does, and a value derived from two variables. Often
    the variable changes only in steps that change others, too."""
    memory = b.var("memory", MEMORY)
    more = b.ite(b.less(memory, b.num(2)), b.add(memory, b.num(1)), memory)
    then = random.choice([more, more, b.num(0), b.sub(b.num(2), memory), b.ite(b.eq(memory, b.num(2)), b.num(0), more)])
    read = b.less(memory, b.num(random.choice([1, 2])))
    properties = (*system.properties, Property("remembered", Kind.INVARIANT, read))
    numbers = [v for v in system.variables if isinstance(v.sort, RangeSort)]
    whole = b.var(numbers[0].name, numbers[0].sort) if numbers else memory
    half = Derived("half", b.floor_div(b.add(whole, memory), b.num(2)))
    changing = {id(i) for i in system.instances if random.randrange(4)}
    alone = random.randrange(2)

    def instance(one: Instance) -> Instance:
        changes = b.or_(
            b.not_(b.eq(term, b.var(v.name, v.sort)))
            for v in system.variables
            for name, term in one.updates
            if name == v.name
        )
        now = then if alone else b.ite(changes, then, memory)
        return replace(one, updates=(*one.updates, ("memory", now))) if id(one) in changing else one

    return system.with_instances(
        instance,
        variables=(*system.variables, Variable("memory", MEMORY, (0,))),
        properties=properties if random.randrange(3) == 0 else system.properties,
        derived=(half,),
    )


def drawn(draw: Callable[[Random], System], seed: int) -> tuple[System, tuple[str, ...]]:
    """A random system and the names of a view: often all variables but one, or but two."""
    random = Random(seed)
    system = remembering(draw(random), random)
    names = [v.name for v in system.variables]
    if random.randrange(3):
        names.remove("memory")
    if random.randrange(5) == 0 and len(names) > 1:
        names.remove(random.choice(names))
    return system, (*names, *(["half"] if random.randrange(4) == 0 else []))


def first_of_each_view(system: System, names: tuple[str, ...]) -> tuple[list[int], int]:
    """The number of views on each level, and of all initial states and steps, of a search by the interpreter."""
    interpreter, terms = Interpreter(system), system.values_of(names).values()
    seen: set[object] = set()

    def new(states: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
        found = []
        for state in states:
            key = tuple(interpreter.value(term, state) for term in terms)
            if key not in seen:
                seen.add(key)
                found.append(state)
        return found

    level = new(list(interpreter.initial_states()))
    levels, generated = [len(level)], len(level)
    while level:
        after = [step.state for state in level for step in interpreter.steps(state)]
        generated += len(after)
        level = new(after)
        levels += [len(level)] if level else []
    return levels, generated


def compare(system: System, names: tuple[str, ...], full: Exploration) -> Counter[str]:
    """Compares the search by a view with the full search; counts what was compared."""
    found = explore(system, SearchOptions(tier="python", view=names))
    if found.mistake is not None:
        assert full.mistake is not None
        return Counter(["mistake"])
    seen: Counter[str] = Counter()
    for one, other in zip(found.findings, full.findings, strict=True):
        if one.verdict is Verdict.INCONCLUSIVE:
            seen["inconclusive"] += 1
            seen["undetected"] += other.verdict is Verdict.VIOLATED
            continue
        if one.verdict is Verdict.ERROR or full.mistake is not None:
            assert one.trace is not None, (names, one)
            continue
        assert one.verdict is other.verdict, (names, one, other, repr(system))
        seen[one.verdict.value] += 1
        if found.shortest and one.kind not in ENDLESS:
            assert (one.trace and len(one.trace)) == (other.trace and len(other.trace)), (names, one, other)
    assert (list(found.counts.levels), found.counts.generated) == first_of_each_view(system, names)
    seen["smaller"] += found.counts.distinct < full.counts.distinct and found.verdict is not Verdict.INCONCLUSIVE
    if found.shortest:
        interpreter, terms = Interpreter(system), system.values_of(names).values()
        views = {tuple(interpreter.value(term, state) for term in terms) for state in full.states()}
        assert found.counts.distinct == len(views)
        seen["proved"] += 1
    return seen


def outcomes(draw: Callable[[Random], System], seeds: range) -> Counter[str]:
    """What was compared for all seeds."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        system, names = drawn(draw, seed)
        try:
            full = explore(system, SearchOptions(tier="python"))
        except ModelError:
            continue
        seen += compare(system, names, full)
    return seen


@pytest.mark.parametrize(
    ("draw", "seeds"),
    [
        (random_system, range(6)),
        (temporal_system, range(6)),
        pytest.param(random_system, range(6, 2000), marks=pytest.mark.long),
        pytest.param(temporal_system, range(6, 1000), marks=pytest.mark.long),
    ],
    ids=["safety", "temporal", "many-safety", "many-temporal"],
)
def test_a_view_changes_no_verdict(draw: Callable[[Random], System], seeds: range) -> None:
    """On random systems with random views, of which some are proved and some hide what matters."""
    seen = outcomes(draw, seeds)
    assert seen["holds"] + seen["violated"]
    if len(seeds) > 100:
        assert seen["smaller"] >= len(seeds) // 40
        assert seen["undetected"] >= len(seeds) // 20


FAULTS: dict[str, tuple[str, Any, Callable[[Random], System]]] = {
    "no obligations of steps": ("_of", lambda self, instance: iter(()), random_system),
    "no obligations of properties": ("_about", lambda self, prop: iter(()), random_system),
    "every term is a function of the view": ("_tabulated", lambda self, term, guard: True, random_system),
    "no obligations of fairness": ("_fair", lambda self: iter(()), temporal_system),
}
"""Faults of the proof: a method, what it does instead, and the systems that show it."""


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_no_obligation_is_superfluous(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one, some verdict is wrong, or a counterexample is no behaviour."""
    method, instead, draw = FAULTS[fault]
    monkeypatch.setattr(Obligations, method, instead)
    with pytest.raises((AssertionError, StreamproofError)):
        outcomes(draw, range(250))


@pytest.mark.long
def test_tlc_counts_the_same_views(jar: Path) -> None:
    """TLC with `VIEW` and one worker finds as many states, where the order of steps does not matter."""
    compared = 0
    for seed in range(40):
        system, names = drawn(random_system, seed)
        system = replace(system, properties=tuple(p for p in system.properties if p.kind is Kind.INVARIANT))
        try:
            found = explore(system, SearchOptions(tier="python", view=names))
        except ModelError:
            continue
        if found.mistake is not None or not found.shortest:
            continue
        exported = tla.export(system, names)
        report = tlc_run.run(exported, exported.runs[1], QUICK)
        assert report.error is None, report.error
        assert (report.distinct, report.generated) == (found.counts.distinct, found.counts.generated), seed
        compared += 1
    assert compared >= 8
