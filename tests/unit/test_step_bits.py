"""Conditions on steps as bits of the state: the bit flips at the steps of the kind, and behaviours are read back."""

from __future__ import annotations

from streamproof.system import (
    Action,
    Conjunct,
    Expr,
    Fairness,
    Instance,
    Interpreter,
    RangeSort,
    System,
    Trace,
    Variable,
)
from streamproof.system import build as b
from streamproof.system.formula import Always, AndF, Eventually, OrF, Recurs
from streamproof.transform.constraint import bits, by_states, changing

SORT = RangeSort(0, 2)
n, then = b.var("n", SORT), b.next_("n", SORT)


def _instance(name: str, guard: Expr, after: Expr) -> Instance:
    return Instance(name, (), (), (Conjunct(guard, "", None),), (("n", after),))


NEXT = _instance("next", b.less(n, b.num(2)), b.add(n, b.num(1)))
WRAP = _instance("wrap", b.eq(n, b.num(2)), b.num(0))
STAY = _instance("stay", b.TRUE, n)
SYSTEM = System(
    "ring",
    (Variable("n", SORT, (0,)),),
    tuple(Action(i.action, (), Fairness.NONE, (i,)) for i in (NEXT, WRAP, STAY)),
)
WRAPS = Recurs(b.eq(then, b.num(0)), "wraps")
LEAVES_ONE = Recurs(b.eq(n, b.num(1)), "leaves 1")
NEVER = Recurs(b.less(b.num(2), then), "never")


def test_a_bit_flips_at_each_step_of_its_kind() -> None:
    """Twice round the ring each bit flips twice, at its own step; a step that changes nothing is of no kind."""
    counted = by_states(SYSTEM, AndF((WRAPS, OrF((LEAVES_ONE, NEVER)))))
    interpreter = Interpreter(counted.system)
    states = list(interpreter.initial_states())
    steps = []
    for action in ("next", "stay", "next", "wrap", "stay", "next", "next", "wrap"):
        instance = counted.system.action(action).instances[0]
        after = interpreter.take(instance, states[-1])
        assert after is not None
        states.append(after)
        steps.append(instance)
    assert [state[0] for state in states] == [0, 1, 1, 2, 0, 0, 1, 2, 0]
    wraps, leaves, never = ([state[at] for state in states] for at in (1, 2, 3))
    assert wraps == [False, False, False, False, True, True, True, True, False]
    assert leaves == [False, False, False, True, True, True, True, False, False]
    assert never == [False] * 9
    back = counted.trace(Trace(tuple(states), tuple(steps), 0))
    assert back.states == tuple((state[0],) for state in states)
    assert [step.action for step in back.steps] == [step.action for step in steps]
    assert all(step in SYSTEM.instances for step in back.steps)


def test_the_formula_over_states_reads_the_bits() -> None:
    """A step recurs if its bit is true again and again, and false again and again."""
    counted = by_states(SYSTEM, WRAPS)
    (name,) = bits(SYSTEM, [WRAPS]).values()
    assert [v.name for v in counted.system.variables] == ["n", name]
    assert isinstance(counted.formula, AndF)
    assert [type(part) for part in counted.formula.args] == [Always, Always]
    assert all(isinstance(part, Always) and isinstance(part.arg, Eventually) for part in counted.formula.args)


def test_the_condition_that_a_state_changes() -> None:
    """It is false of a step that leads to the same state."""
    interpreter = Interpreter(SYSTEM)
    assert [interpreter.value(changing(SYSTEM), (1,), (after,)) for after in (0, 1, 2)] == [True, False, True]
