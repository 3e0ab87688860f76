"""The driver against a search over all behaviours, on implementations that are random systems with choices of their own."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from driven_systems import SystemAdapter, has_behaviour
from random_systems import random_system
from streamproof.base.records import replace
from streamproof.driving import connection
from streamproof.driving.adapter import Adapter
from streamproof.driving.connection import ObjectConnection, of_class
from streamproof.driving.drive import Drive, DriveOptions, drive
from streamproof.driving.drive_subject import Subject
from streamproof.driving.script_run import Ran
from streamproof.system import Interpreter, System


def drawn(seed: int) -> tuple[Random, System]:
    """A random system with initial states, without properties."""
    random = Random(seed)
    while True:
        system = replace(random_system(random), properties=(), lemmas=())
        if next(Interpreter(system).initial_states(), None) is not None:
            return random, system


def changed(system: System, random: Random) -> System:
    """The system with another rule: a guard less, or the effect of another instance."""
    instances = list(system.instances)
    at = random.randrange(len(instances))
    other = random.choice(instances)
    one = instances[at]
    if random.random() < 0.5 and one.guard:
        mutant = replace(one, guard=one.guard[1:])
    else:
        mutant = replace(one, updates=other.updates, effect_checks=other.effect_checks)
    return system.with_instances(lambda i: mutant if i is one else i)


def driven(system: System, made: SystemAdapter, seed: int) -> Drive:
    """A drive of an adapter, without a suite."""
    every = tuple(a.name for a in system.actions)
    options = DriveOptions(walks=6, steps=12, seed=seed, without=every)
    return drive(Subject(system), of_class(lambda: made), options=options)


FEW_AND_MANY = [8, pytest.param(150, marks=pytest.mark.long)]
"""Numbers of seeds."""


@pytest.mark.parametrize("seeds", FEW_AND_MANY)
@pytest.mark.parametrize("late", [False, True])
def test_a_correct_implementation_is_never_blamed(late: bool, seeds: int) -> None:
    """Whatever it chooses, hides, does by itself, refuses of that and writes late, there is no difference."""
    answers: Counter[str] = Counter()
    for seed in range(seeds):
        random, system = drawn(seed)
        names = [a.name for a in system.actions]
        own = [name for name in names if random.random() < 0.4]
        hidden = [name for name in names if name not in own and random.random() < 0.3]
        found = driven(system, SystemAdapter(system, random, own=own, hidden=hidden, late=late), seed)
        assert found.difference is None, (seed, found.difference)
        answers[found.answer] += 1
    assert answers["no difference"] > seeds // 2


@pytest.mark.parametrize("seeds", FEW_AND_MANY)
@pytest.mark.parametrize("late", [False, True])
def test_differences_are_those_of_a_search_over_all_behaviours(late: bool, seeds: int) -> None:
    """Of an implementation with a changed rule, a script has a difference exactly if no behaviour has its events."""
    answers: Counter[str] = Counter()
    for seed in range(seeds):
        random, system = drawn(seed + 1000)
        names = [a.name for a in system.actions]
        own = [name for name in names if random.random() < 0.3]
        hidden = frozenset(name for name in names if name not in own and random.random() < 0.2)
        made = SystemAdapter(changed(system, random), random, own=own, hidden=sorted(hidden), late=late)
        found = driven(system, made, seed)
        for ran in filter(None, (found.difference, found.shortest, found.last)):
            if ran.ended in ("complete", "difference"):
                assert has_behaviour(system, ran.events, hidden) is (ran.ended == "complete"), (seed, ran)
        answers[found.answer] += 1
    assert answers["difference"] >= max(1, seeds // 10)
    assert answers["no difference"] > 0


def shown(ran: Ran) -> list[object]:
    """What is shown of the exchanges, which do not say in which script an event was."""
    return [(e.asked, e.answer, e.states, [(str(event), event.state) for event in e.events]) for e in ran.exchanges]


@pytest.mark.parametrize("seeds", FEW_AND_MANY)
def test_turns_that_are_taken_as_before_are_those_that_would_be_followed(
    seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without remembered turns: the same calls, exchanges, events, counts and difference."""
    taken = 0
    for seed in range(seeds):
        found = []
        for remembers in (True, False):
            monkeypatch.setattr(ObjectConnection, "equal_answers_are_one", remembers)
            random, system = drawn(seed + 2000)
            own = [a.name for a in system.actions if random.random() < 0.3]
            made = SystemAdapter(
                changed(system, random) if seed % 2 else system, random, own=own, hidden=(), late=False
            )
            found.append(driven(system, made, seed))
        one, other = found
        assert (one.coverage, one.answer, one.ends) == (other.coverage, other.answer, other.ends), seed
        for a, b in ((one.last, other.last), (one.shortest, other.shortest)):
            assert (a is None) == (b is None)
            if a is not None and b is not None:
                assert (a.script, shown(a), a.message, [*a.events]) == (b.script, shown(b), b.message, [*b.events])
                taken += len(a.exchanges) - len({id(exchange) for exchange in a.exchanges})
    assert taken > 0


def with_methods(system: System) -> type[SystemAdapter]:
    """The adapter with a method for each action, as a user writes it."""

    def method(action: str) -> Any:
        return lambda self, **args: SystemAdapter.do(self, action, args)

    methods = {"".join("_" if c in "[." else c for c in a.name if c != "]"): method(a.name) for a in system.actions}
    return type("WithMethods", (SystemAdapter,), {**methods, "do": Adapter.do})


@pytest.mark.parametrize("seeds", FEW_AND_MANY)
def test_methods_that_are_called_directly_answer_as_the_adapter_does(
    seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through `answer` and without it: the same calls, exchanges, events, counts and difference."""
    answers: Counter[str] = Counter()
    for seed in range(seeds):
        found = []
        for direct in (True, False):
            monkeypatch.setattr(connection, "answers_plainly", lambda _, direct=direct: direct)
            random, system = drawn(seed + 4000)
            own = [a.name for a in system.actions if random.random() < 0.3]
            implementation = changed(system, random) if seed % 2 else system
            found.append(driven(system, with_methods(system)(implementation, random, own=own), seed))
        one, other = found
        assert (one.coverage, one.answer, one.ends) == (other.coverage, other.answer, other.ends), seed
        for a, b in ((one.last, other.last), (one.shortest, other.shortest)):
            assert (a is None) == (b is None)
            if a is not None and b is not None:
                assert (a.script, shown(a), a.message, [*a.events]) == (b.script, shown(b), b.message, [*b.events])
        answers[one.answer] += 1
    assert answers["no difference"] > 0 < answers["difference"]
