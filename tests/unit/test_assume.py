"""Simplification under assumptions: the common form of comparisons, what guards settle, and that no value changes."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from random_systems import random_system
from streamproof.system import (
    BOOL,
    Action,
    Check,
    Conjunct,
    EnumSort,
    Expr,
    Fairness,
    Instance,
    Interpreter,
    QueueSort,
    RangeSort,
    System,
    Variable,
)
from streamproof.system import build as b
from streamproof.system.reference import reference
from streamproof.transform.assume import Assuming, CellSubstitution, Substitution, simplify
from streamproof.transform.scalarise import scalarise

x, y = b.var("x", RangeSort(0, 9)), b.var("y", RangeSort(0, 9))
p, q = b.var("p", BOOL), b.var("q", BOOL)
lamp = b.var("lamp", EnumSort(("RED", "GREEN")))
red = b.eq(lamp, b.const(lamp.sort, "RED"))


def n(value: int) -> Expr:
    """An integer literal."""
    return b.num(value)


@pytest.mark.parametrize(
    ("term", "form"),
    [
        (b.less(x, n(4)), b.less_eq(x, n(3))),
        (b.less(n(4), x), b.not_(b.less_eq(x, n(4)))),
        (b.less_eq(n(4), x), b.not_(b.less_eq(x, n(3)))),
        (b.less_eq(b.add(x, n(2)), n(5)), b.less_eq(x, n(3))),
        (b.less(n(5), b.sub(b.add(n(2), x), n(1))), b.not_(b.less_eq(x, n(4)))),
        (b.less(x, y), b.not_(b.less_eq(y, x))),
        (b.less_eq(b.add(x, n(1)), y), b.not_(b.less_eq(y, x))),
        (b.less_eq(b.add(x, n(1)), b.add(x, n(2))), b.TRUE),
        (b.less_eq(b.add(x, n(3)), b.add(y, n(5))), b.less_eq(x, b.add(y, n(2)))),
        (b.eq(b.add(x, n(2)), n(5)), b.eq(x, n(3))),
        (b.eq(b.add(x, n(2)), b.sub(y, n(1))), b.eq(x, b.add(y, n(-3)))),
        (b.eq(b.add(x, n(2)), b.add(x, n(1))), b.FALSE),
        (b.and_((b.less(x, n(4)), b.less_eq(n(4), x))), b.FALSE),
    ],
    ids=str,
)
def test_comparisons_have_one_form(term: Expr, form: Expr) -> None:
    """Constants move to the right, strictness and direction are told by a negation."""
    assert Assuming()(term) is form


@pytest.mark.parametrize(
    ("conditions", "term", "comes_to"),
    [
        ([b.eq(x, n(2))], b.add(x, y), b.add(n(2), y)),
        ([red], b.ite(red, x, y), x),
        ([b.not_(red)], b.ite(red, x, y), y),
        ([b.not_(b.or_((p, q)))], b.or_((p, b.not_(q))), b.TRUE),
        ([b.and_((p, b.not_(q)))], b.ite(q, x, b.ite(p, y, x)), y),
        ([b.less(n(3), x)], b.less_eq(b.sub(x, n(1)), n(2)), b.FALSE),
        ([b.less(n(3), x)], b.less(n(1), x), b.TRUE),
        ([b.less(n(3), x), b.less(x, n(6))], b.in_domain(b.add(x, n(4)), RangeSort(8, 9)), b.TRUE),
        ([b.less(n(3), x)], b.eq(x, n(3)), b.FALSE),
        ([b.less_eq(x, n(3)), b.less_eq(n(3), x)], b.eq(x, n(3)), b.TRUE),
        ([b.less(x, y)], b.less_eq(y, x), b.FALSE),
        ([b.eq(b.add(x, y), n(4))], b.mul(b.add(x, y), x), b.mul(n(4), x)),
        ([b.or_((p, q))], b.or_((p, q)), b.TRUE),
        ([b.or_((p, q))], p, p),
    ],
    ids=str,
)
def test_assumptions_settle_what_follows(conditions: list[Expr], term: Expr, comes_to: Expr) -> None:
    """Pinned values are put in; bounds decide comparisons; what does not follow stays."""
    assert Assuming(conditions)(term) is comes_to


@pytest.mark.parametrize("seed", range(30))
def test_what_was_simplified_without_assumptions_is_taken_over(seed: int) -> None:
    """Every term of a random system under every two conditions of it: the same with and without what was remembered."""
    system = scalarise(random_system(Random(seed))).system
    guards = [c.expr for i in system.instances for c in i.guard]
    terms = [t for i in system.instances for t in (*(t for _, t in i.updates), *(c.condition for c in i.effect_checks))]
    plain = Assuming()
    for first, second in product(guards[:6], repeat=2):
        alone, helped = Assuming((first, second)), Assuming((first, second), plain)
        for term in (*guards, *terms):
            assert helped(term) is alone(term)
            assert helped.fork().assume(term) is alone.fork().assume(term)
    assert all(plain(term) is Assuming()(term) for term in (*guards, *terms))


def test_every_pair_of_comparisons_with_every_value() -> None:
    """What one comparison says of another is right for each number: no bound is off by one, on either side."""
    small = b.var("x", RangeSort(0, 5))
    comparisons = [
        make(*sides)
        for k in range(-1, 7)
        for make in (b.less, b.less_eq, b.eq)
        for sides in ((small, n(k)), (n(k), small), (b.add(small, n(1)), n(k)), (n(k), b.sub(small, n(1))))
    ]
    terms = list(dict.fromkeys(t for c in comparisons for t in (c, b.not_(c)) if t not in (b.TRUE, b.FALSE)))
    interpreter = Interpreter(System("one", (Variable("x", small.sort, (0,)),), ()))
    truth = {t: [interpreter.value(t, (value,)) for value in range(6)] for t in terms}
    assert len(terms) > 40
    for assumed in terms:
        settle = Assuming([assumed])
        for term in terms:
            simple = settle(term)
            values = [interpreter.value(simple, (value,)) for value in range(6)]
            pairs = zip(truth[assumed], truth[term], values, strict=True)
            assert all(one == other for known, one, other in pairs if known), (assumed, term, simple)


def test_a_careful_model_loses_its_checks_and_conditionals() -> None:
    """A push behind the guard that makes room for it: no check, no conditional on the length."""
    queue = b.var("queue", QueueSort(RangeSort(0, 3), 2))
    full = b.less_eq(n(2), b.length(queue))
    over = b.and_((p, b.not_(b.in_domain(b.add(x, n(1)), RangeSort(0, 9)))))
    push = Instance(
        "push",
        (),
        (),
        (Conjunct(b.not_(full), "room", None), Conjunct(b.less(x, n(9)), "low", None)),
        (("queue", b.push(queue, n(1))), ("x", b.add(x, n(1))), ("p", b.or_((p, full)))),
        (Check(b.less(x, n(0)), "never", None),),
        (Check(full, "full", None), Check(over, "over", None), Check(b.not_(p), "kept", None)),
    )
    start = (
        Variable("queue", queue.sort, ((),)),
        Variable("x", x.sort, (0,)),
        Variable("p", BOOL, (True,)),
    )
    system = simplify(scalarise(System("one", start, (Action("push", (), Fairness.NONE, (push,)),))).system)
    (instance,) = system.instances
    length = b.var("queue.len", RangeSort(0, 2))
    assert [c.expr for c in instance.guard] == [b.less_eq(length, n(1)), b.less_eq(x, n(8))]
    assert dict(instance.updates)["queue.len"] is b.add(length, n(1))
    assert "p" not in dict(instance.updates)
    assert instance.guard_checks == ()
    assert [check.message for check in instance.effect_checks] == ["kept"]


def test_no_value_changes() -> None:
    """In every reachable state of three hundred random systems the simplified terms have the values of the originals."""
    compared = 0
    for seed in range(300):
        system = scalarise(random_system(Random(seed))).system
        simple = simplify(system)
        found = reference(system)
        interpreter = Interpreter(system)
        for state in (state for level in found.levels for state in level):
            for one, other in zip(system.instances, simple.instances, strict=True):
                compared += _same_in(interpreter, one, other, state)
            for before, after in zip(system.properties, simple.properties, strict=True):
                if before.kind.name != "STEP":
                    assert interpreter.value(before.expr, state) == interpreter.value(after.expr, state)
    assert compared > 5000


def _same_in(interpreter: Interpreter, one: Instance, other: Instance, state: tuple[object, ...]) -> int:
    def fault(checks: tuple[Check, ...]) -> bool:
        return any(interpreter.value(check.condition, state) for check in checks)

    assert fault(one.guard_checks) == fault(other.guard_checks)
    guards = [[bool(interpreter.value(c.expr, state)) for c in instance.guard] for instance in (one, other)]
    assert guards[0] == guards[1]
    if not all(guards[0]):
        return 0
    assert fault(one.effect_checks) == fault(other.effect_checks)
    if not fault(one.effect_checks):
        after = [dict(zip(interpreter.system.index, state, strict=True)) for _ in range(2)]
        for values, instance in zip(after, (one, other), strict=True):
            values.update({name: interpreter.value(term, state) for name, term in instance.updates})
        assert after[0] == after[1]
    return 1


def test_terms_of_changed_elements_are_those_of_the_whole_substitution() -> None:
    """Of random systems: the rules after a step of another rule, which writes elements of arrays or whole variables."""
    changed = 0
    for seed in range(60):
        system = random_system(Random(seed))
        roots = [t for i in system.instances for t in (*(c.expr for c in i.guard), *(t for _, t in i.updates))]
        again = CellSubstitution(roots)
        for instance in system.instances:
            sorts = {v.name: v.sort for v in system.variables}
            mapping = {b.var(name, sorts[name]): term for name, term in instance.updates}
            found, whole = again.changed(mapping), Substitution(mapping)
            for root in roots:
                assert found.get(root, root) is whole(root), (seed, instance.label, root)
                changed += whole(root) is not root
    assert changed > 500
