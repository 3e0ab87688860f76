"""Random systems and the referee that engines are compared with."""

from __future__ import annotations

import builtins
from math import prod
from random import Random

import pytest

from random_systems import LARGEST, random_system, systems
from streamproof.system import (
    Action,
    Check,
    Conjunct,
    Counts,
    Fairness,
    Instance,
    Kind,
    Property,
    RangeSort,
    System,
    SystemFailure,
    Variable,
    Verdict,
)
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.reference import Decision, reference
from streamproof.system.sorts import cardinality, contains


def test_the_same_seed_gives_the_same_system() -> None:
    """A failure can be repeated from its seed."""
    assert random_system(Random(7)) == random_system(Random(7))
    assert random_system(Random(7)) != random_system(Random(8))


def test_systems_are_small_and_their_states_are_in_the_domain() -> None:
    """Every reachable state of a hundred systems has values of the declared sorts only."""
    for seed in range(100):
        system = random_system(Random(seed))
        assert prod(cardinality(v.sort) for v in system.variables) <= 6 * LARGEST
        for level in reference(system).levels:
            for state in level:
                assert all(contains(v.sort, value) for v, value in system.named(state)), (seed, state)


def test_every_kind_of_term_occurs() -> None:
    """Five hundred systems leave no operation out."""
    kinds: set[type[e.Node]] = set()
    for seed in range(500):
        system = random_system(Random(seed))
        instances = system.instances
        guards = [c.expr for i in instances for c in i.guard]
        updates = [term for i in instances for _, term in i.updates]
        kinds |= {type(t) for t in e.subterms(*guards, *updates, *(p.expr for p in system.properties))}
    assert kinds == set(e.Expr.__args__)  # type: ignore[attr-defined]


def test_without_hypothesis_the_strategy_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing development dependency is one sentence, not a traceback."""
    usual = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> object:
        if name.startswith("hypothesis"):
            raise ImportError(name)
        return usual(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SystemFailure, match="random systems as a strategy need Hypothesis\n  pip install hypothesis"):
        systems()


def test_the_referee_decides_by_hand_checked_rules() -> None:
    """A counter from 0 to 3 that starts again: counts, levels, shortest ways, the cycle, an evaluation error."""
    x, after = b.var("x", RangeSort(0, 3)), b.next_("x", RangeSort(0, 3))

    def step(name: str, guard: e.Expr, term: e.Expr, *checks: Check) -> Action:
        instance = Instance(name, (), (), (Conjunct(guard, "", None),), (("x", term),), (), checks)
        return Action(name, (), Fairness.NONE, (instance,))

    up = step("up", b.less(x, b.num(3)), b.add(x, b.num(1)))
    again = step("again", b.eq(x, b.num(3)), b.num(1))
    properties = (
        Property("low", Kind.INVARIANT, b.less(x, b.num(2))),
        Property("grows", Kind.STEP, b.less(x, after)),
        Property("two", Kind.REACHABLE, b.eq(x, b.num(2))),
        Property("free", Kind.DEADLOCK, b.TRUE),
        Property("ends", Kind.TERMINATION, b.TRUE),
    )
    system = System("counter", (Variable("x", RangeSort(0, 3), (0,)),), (up, again), properties)
    found = reference(system)
    assert found.counts == Counts(distinct=4, generated=5, depth=4, levels=(1, 1, 1, 1))
    assert found.levels == (((0,),), ((1,),), ((2,),), ((3,),))
    assert found.mistake is None
    assert found.decisions == {
        "low": Decision(Verdict.VIOLATED, 3),
        "two": Decision(Verdict.HOLDS, 3),
        "grows": Decision(Verdict.VIOLATED, 5),
        "free": Decision(Verdict.HOLDS),
        "ends": Decision(Verdict.VIOLATED, 4, 1),
    }
    over = step("over", b.eq(x, b.num(2)), b.num(3), Check(b.TRUE, "too far", None))
    wrong = reference(System("counter", (Variable("x", RangeSort(0, 3), (0,)),), (over, up), properties))
    assert wrong.mistake == 3
    assert wrong.decisions["free"] == Decision(Verdict.ERROR, 3)
    stuck = reference(System("counter", (Variable("x", RangeSort(0, 3), (0,)),), (up,), properties))
    assert stuck.decisions["free"] == Decision(Verdict.VIOLATED, 4)
    assert stuck.decisions["ends"] == Decision(Verdict.HOLDS)
