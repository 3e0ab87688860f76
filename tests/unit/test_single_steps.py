"""Generated functions of instances: in every state they do what the interpreter does."""

from __future__ import annotations

from collections import Counter
from itertools import islice, product
from random import Random

import pytest

from random_systems import random_system
from streamproof.base.errors import EvaluationError
from streamproof.explicit.single_steps import FAULT, step_of
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Conjunct, Instance, State, System, Variable
from streamproof.system.sorts import BOOL, ArraySort, RangeSort, values


def outcome(interpreter: Interpreter, instance: Instance, state: State) -> object:
    """What the interpreter finds: a state, None, or `FAULT` for an error."""
    try:
        return interpreter.take(instance, state)
    except EvaluationError:
        return FAULT


def compared(seeds: range, states: int) -> tuple[Counter[str], Counter[type]]:
    """Every instance of random systems in some states: how often a step was taken, disabled or an error, and the kinds of
    the terms in functions."""
    ends, kinds = Counter[str](), Counter[type]()
    for seed in seeds:
        draw = Random(seed)
        system = random_system(draw, bags=seed % 2 == 1)
        interpreter = Interpreter(system)
        sampled = [tuple(draw.choice(v) for v in every(system)) for _ in range(states)]
        for instance in system.instances:
            step = step_of(system, instance)
            if step is None:
                ends["unwritten"] += 1
                continue
            terms = e.subterms(*(c.expr for c in instance.guard), *(term for _, term in instance.updates))
            kinds.update(map(type, terms))
            for state in sampled:
                after = step(state)
                assert after == outcome(interpreter, instance, state), (seed, instance.label, state)
                ends["fault" if after is FAULT else "disabled" if after is None else "taken"] += 1
    return ends, kinds


def every(system: System) -> list[list[object]]:
    """Values of each variable."""
    return [list(islice(values(v.sort), 5_000)) for v in system.variables]


def test_functions_and_interpreter_agree() -> None:
    """On random systems with every sort, mistakes of the model included; nearly every instance has a function."""
    ends, kinds = compared(range(30), 12)
    assert min(ends["fault"], ends["disabled"], ends["taken"]) > 100
    assert ends["unwritten"] < ends.total() / 500
    written = {kind.__name__ for kind in kinds}
    assert {"Select", "Store", "Push", "Pop", "Peek", "WithField", "Payload", "Unwrap", "Insert", "Ite"} <= written


@pytest.mark.long
def test_functions_and_interpreter_agree_on_hundreds_of_systems() -> None:
    """More of them."""
    ends, _ = compared(range(1_000, 1_600), 60)
    assert ends["taken"] > 100_000


def test_an_index_outside_reads_the_default_and_writes_nothing() -> None:
    """As everywhere: below, inside and above."""
    array, at = b.var("a", ArraySort(RangeSort(2, 4), RangeSort(5, 9))), b.var("i", RangeSort(0, 6))
    updates = (("a", b.store(array, at, b.num(9))), ("r", b.select(array, at)))
    sorts = (("a", array.sort), ("i", at.sort), ("r", RangeSort(0, 9)))
    system = System("m", tuple(Variable(n, s, (next(values(s)),)) for n, s in sorts), ())
    instance = Instance("act", (), (), (), updates)
    step, interpreter = step_of(system, instance), Interpreter(system)
    assert step is not None
    for a, i in product(values(array.sort), range(7)):
        assert step((a, i, 0)) == interpreter.take(instance, (a, i, 0))


def test_a_large_instance_has_no_function() -> None:
    """The interpreter does it; a deep one has a function, without deep recursion."""
    n = b.var("n", RangeSort(0, 1))
    system = System("m", (Variable("n", n.sort, (0,)), Variable("b", BOOL, (False,))), ())
    for depth, has_one in ((300, True), (4_000, False)):
        term = n
        for k in range(depth):
            term = b.mod(b.add(b.mul(term, term), b.num(k)), b.num(1_009))
        instance = Instance(
            "act", (), (), (Conjunct(b.less(b.num(5), term), "", None),), (("b", b.not_(b.var("b", BOOL))),)
        )
        step = step_of(system, instance)
        assert (step is not None) is has_one
        if step is not None:
            assert step((1, False)) == Interpreter(system).take(instance, (1, False))
