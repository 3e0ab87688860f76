"""Written models with bags: lists and bags that are assigned and compared whole mean the same everywhere."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from loading import load
from random_bags import THEMES, BagAuthor
from streamproof import Array, Bag, Enum, Model, Native, Range, State, action, explore, invariant
from streamproof.agree import panel_engines
from streamproof.symbolic.portfolio import Engine
from streamproof.symbolic.proof import prove
from streamproof.system import Interpreter, ModelError, Verdict
from streamproof.system.sorts import contains

from .test_random_rules import anything, outcome, same


def read_both_ways(model: type[Model], seed: int, states: int) -> Counter[str]:
    """Compare lowering with Python in random states: steps, errors and properties; no step leaves the sorts."""
    system, seen = model.system(), Counter[str]()
    interpreter, native, rng = Interpreter(system), Native(model()), random.Random(seed)
    for _ in range(states):
        state = tuple(anything(v.sort, rng) for v in system.variables)
        for instance in system.instances:
            lowered = outcome(interpreter.take, instance, state)
            if native.picks(state, instance, system) is None:
                assert lowered[0] == "error" or lowered[1] is None, (instance.label, state)
                continue
            assert same(lowered, outcome(native.take, state, instance, system)), (instance.label, state)
            after = lowered[1] if lowered[0] == "value" else None
            assert after is None or all(contains(v.sort, x) for v, x in zip(system.variables, after, strict=True))
            seen["error" if lowered[0] == "error" else "disabled" if lowered[1] is None else "taken"] += 1
        for name in ("holds", "found"):
            said = outcome(interpreter.holds, system.property(name), state)
            assert same(said, outcome(native.holds, name, state)), (name, state)
            seen[f"property {said[1]}"] += 1
    return seen


def engines_agree(panel: Any, expect: Any, model: type[Model]) -> Counter[str]:
    """Both tiers, bounded search, induction and PDR, with the interpreter as referee."""
    system = model.system()
    referee = panel.interpreter_result(system)
    if not referee.ordered.levels:
        return Counter()
    for opinion in (panel.explored(system, "python"), panel.explored(system, "compiled"), panel.bounded(system, 3)):
        referee.compare(opinion)
    allowed, seen = expect(system), Counter[str]()
    names = [p.name for p in system.properties if p.kind in panel_engines.PROVABLE]
    for engine in (Engine.INDUCTION, Engine.PDR):
        for finding in prove(system, names, engine=engine, depth=2, seconds=20).findings:
            assert finding.verdict in {Verdict.INCONCLUSIVE, *allowed[finding.property].verdicts}, (engine, finding)
            seen[f"{engine.value} {finding.verdict.value}"] += 1
    return seen


@pytest.mark.long
@pytest.mark.parametrize(("seeds", "step"), [(range(40), 10), (range(1000, 3000), 8)], ids=["few", "many"])
def test_random_models_with_bags(panel: Any, expect: Any, tmp_path: Path, seeds: range, step: int) -> None:
    """Each in two readings, some in all engines."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        author = BagAuthor(seed)
        try:
            model = load(author.write(), tmp_path, f"bags_{seed}").Random
            model.system()
        except ModelError as error:
            seen["refused"] += 1
            seen["without a remedy"] += error.loc is None or not error.remedy
            continue
        try:
            seen += read_both_ways(model, seed, 10)
            if seed % step == 0:
                seen += engines_agree(panel, expect, model)
        except Exception as error:
            error.add_note(f"BagAuthor({seed})")
            raise
    assert seen["refused"] < len(seeds) // 2
    assert seen["without a remedy"] == 0
    assert min(seen["taken"], seen["error"], seen["disabled"], seen["property True"], seen["property False"]) > len(
        seeds
    )


@pytest.mark.parametrize("name", THEMES)
def test_every_theme_is_written(name: str) -> None:
    """In many of the first models."""
    assert sum(BagAuthor(seed).theme is THEMES[name] for seed in range(100)) >= 4


LISTS = ([5], [1, 1, 0])


class Compared(Model):
    """A list as alternative of a bag, and beside one, with values that the bag does not hold."""

    check_deadlock = False

    def state(self) -> State:
        """A larger and a smaller bag."""
        return State(net=Bag(Range(0, 2), capacity=3), low=Bag(Range(0, 2), capacity=1), n=Range(0, 6), p=Range(0, 1))

    @action
    def fill(self, s: Any) -> None:
        """Any number for comparisons."""
        s.n = (s.n + 1) % 7

    @action
    def switch(self, s: Any) -> None:
        """The other alternative."""
        s.p = 1 - s.p

    @invariant
    def below(self, s: Any) -> bool:
        """The empty bag is part of every list."""
        return s.net <= [s.n] and s.low < [s.n] and [0, s.n] > s.net

    @invariant
    def above(self, s: Any) -> bool:
        """No list with an element is part of the empty bag."""
        return not (s.net >= [s.n] or s.net > [s.n] or [s.n] <= s.low or [s.n] == s.net)


def test_lists_are_compared_by_all_their_values() -> None:
    """Also those that are no items of the bag: nothing but the empty list is below the empty bag."""
    for name in ("below", "above"):
        assert explore(Compared.system()).finding(name).verdict is Verdict.HOLDS
    read_both_ways_of = Native(Compared())
    for state in Interpreter(Compared.system()).initial_states():
        for n in range(7):
            changed = (*state[:2], n, state[3])
            assert read_both_ways_of.holds("below", changed)
            assert read_both_ways_of.holds("above", changed)


class Alternative(Compared, variant="alternative"):
    """Assigns a list on one path, a smaller bag on the other."""

    @action
    def assign(self, s: Any) -> None:
        """5 is no item: a mistake of the model."""
        s.net = s.low if s.p == 0 else LISTS[0]


def test_a_list_as_alternative_of_a_smaller_bag_is_an_error() -> None:
    """It is never another value of the larger bag."""
    mistake = explore(Alternative.system()).mistake
    assert mistake is not None
    assert "a value of the bag leaves Range(0, 2) in assign() (value = 5)" in mistake.error.message


def test_an_array_is_no_bag() -> None:
    """Numbers by name are not the counts of a bag of names: they would pass its capacity."""

    class Counted(Model):
        """An array with the index of a bag."""

        def state(self) -> State:
            """Two counts of at most 2, and a bag of at most 2."""
            return State(net=Bag(Enum("a", "b"), capacity=2), by=Array(Enum("a", "b"), Range(0, 2)))

        @action
        def assign(self, s: Any) -> None:
            """Mistaken."""
            s.net = s.by

    with pytest.raises(ModelError, match=r"an Array\(Enum\('a', 'b'\), Range\(0, 2\)\) is not a value of Bag"):
        Counted.system()
