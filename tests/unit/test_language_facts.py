"""Checks are dropped only where the guards really rule them out."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.system import BOOL, Expr, Interpreter, RangeSort, System, Variable
from streamproof.system import build as b
from streamproof.system.model import Conjunct
from streamproof.transform.assume import GuardFacts

X, Y, P = b.var("x", RangeSort(-2, 3)), b.var("y", RangeSort(0, 2)), b.var("p", BOOL)
SYSTEM = System(
    "facts",
    (Variable("x", X.sort, (0,)), Variable("y", Y.sort, (0,)), Variable("p", BOOL, (False,))),
    (),
)
STATES = list(product(range(-2, 4), range(3), (False, True)))


@st.composite
def numbers(draw: Any, depth: int = 2) -> Expr:
    """A random integer term."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([X, Y, *map(b.num, range(-2, 4))]))
    make = draw(st.sampled_from([b.add, b.sub, b.mul]))
    if draw(st.integers(0, 4)) == 0:
        return b.ite(draw(conditions(depth - 1)), draw(numbers(depth - 1)), draw(numbers(depth - 1)))
    return make(draw(numbers(depth - 1)), draw(numbers(depth - 1)))


@st.composite
def conditions(draw: Any, depth: int = 2) -> Expr:
    """A random condition."""
    if depth == 0:
        return P
    kind = draw(st.sampled_from(["less", "less", "less_eq", "eq", "and", "or", "not", "p"]))
    if kind in ("and", "or"):
        parts = (draw(conditions(depth - 1)), draw(conditions(depth - 1)))
        return b.and_(parts) if kind == "and" else b.or_(parts)
    if kind == "not":
        return b.not_(draw(conditions(depth - 1)))
    if kind == "p":
        return P
    left, right = draw(numbers(depth - 1)), draw(numbers(depth - 1))
    return {"less": b.less, "less_eq": b.less_eq, "eq": b.eq}[kind](left, right)


@pytest.mark.push
def test_what_is_refuted_is_false() -> None:
    """No state satisfies the guards, the path and a condition that is refuted under them; often a condition is refuted."""
    value = Interpreter(SYSTEM).value
    refuted = 0
    needed = 0

    @settings(max_examples=300)
    @given(st.lists(conditions(), max_size=3), conditions(), conditions())
    def check(guards: list[Expr], path: Expr, condition: Expr) -> None:
        nonlocal refuted, needed
        facts = GuardFacts()
        facts.learn([Conjunct(g, "", None) for g in guards], path)
        if facts.refute(condition):
            assert not any(all(value(t, s) for t in (*guards, path, condition)) for s in STATES)
            refuted += 1
            needed += any(value(condition, s) for s in STATES)

    check()
    assert refuted >= 25
    assert needed >= 4, "some of these conditions are true in some state"


def test_the_usual_guards_refute_the_usual_checks() -> None:
    """A bound tested before a step over it, a value compared with a constant, a known disjunct."""
    facts = GuardFacts()
    facts.learn([Conjunct(b.less(b.num(0), X), "", None), Conjunct(b.eq(Y, b.num(1)), "", None)], b.not_(P))
    assert facts.refute(b.less(b.sub(X, b.num(1)), b.num(0)))
    assert facts.refute(b.less(b.num(2), b.add(Y, b.num(1))))
    assert facts.refute(b.and_((P, b.less(X, b.num(3)))))
    assert not facts.refute(b.less(b.num(2), X))


def test_facts_are_forgotten() -> None:
    """What was learnt of one path says nothing about the next."""
    facts = GuardFacts()
    facts.learn([], b.less(b.num(0), X))
    assert facts.refute(b.less(X, b.num(1)))
    facts.learn([], b.TRUE)
    assert not facts.refute(b.less(X, b.num(1)))
