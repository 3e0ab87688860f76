"""Reads of conditional terms stay small and keep their sorts."""

from __future__ import annotations

from streamproof.system import BOOL, ArraySort, Interpreter, OptionSort, RangeSort, System, Variable
from streamproof.system import build as b
from streamproof.system import expr as e


def test_an_option_of_bool_is_not_a_bool() -> None:
    """Comparing an option with a present True is a comparison, not the option itself."""
    maybe = b.var("maybe", OptionSort(BOOL))
    term = b.eq(maybe, b.const(OptionSort(BOOL), True))
    assert term.sort == BOOL
    interpreter = Interpreter(System("m", (Variable("maybe", maybe.sort, (None, False, True)),), ()))
    assert [interpreter.value(term, (value,)) for value in (None, False, True)] == [False, False, True]


def test_reads_after_conditional_updates_in_sequence_are_linear() -> None:
    """Sixty conditional updates of an array, each reading it, make a term of a few hundred nodes, not of 2**60."""
    size = 60
    array = b.var("a", ArraySort(RangeSort(0, size - 1), RangeSort(0, 3)))
    value: e.Expr = array
    for k in range(size):
        read = b.select(value, b.num(k))
        value = b.ite(b.less(b.num(0), read), b.store(value, b.num(k), b.sub(read, b.num(1))), value)
    assert b.select(value, b.num(7)) is b.ite(
        b.less(b.num(0), b.select(array, b.num(7))),
        b.sub(b.select(array, b.num(7)), b.num(1)),
        b.select(array, b.num(7)),
    )
    assert sum(1 for _ in e.subterms(value)) < 7 * size


def test_comparisons_with_nested_conditionals_are_linear() -> None:
    """Sixty nested branches that share their tails are compared with a constant in a few hundred nodes."""
    number: e.Expr = b.var("n", RangeSort(0, 9))
    for k in range(60):
        one, two, three = (b.var(f"c{k}{way}", BOOL) for way in "abc")
        number = b.ite(one, b.ite(two, number, b.num(1)), b.ite(three, number, b.num(2)))
    assert sum(1 for _ in e.subterms(b.eq(number, b.num(3)))) < 600


def test_the_interpreter_takes_terms_of_any_depth() -> None:
    """Five thousand additions, each of the one before."""
    x = b.var("x", RangeSort(0, 1))
    total: e.Expr = x
    for _ in range(5000):
        total = b.add(total, x)
    interpreter = Interpreter(System("deep", (Variable("x", x.sort, (0, 1)),), ()))
    assert [interpreter.value(total, (value,)) for value in (0, 1)] == [0, 5001]


def test_one_condition_is_asked_once() -> None:
    """Below its own condition, a conditional is the branch that is taken there."""
    asked = b.var("asked", BOOL)
    x, y, z = (b.var(name, RangeSort(0, 9)) for name in "xyz")
    assert b.ite(asked, b.ite(asked, x, y), z) is b.ite(asked, x, z)
    assert b.ite(asked, x, b.ite(asked, y, z)) is b.ite(asked, x, z)
    assert b.ite(asked, b.ite(b.not_(asked), x, y), z) is b.ite(asked, y, z)
    assert b.ite(asked, x, b.ite(asked, y, x)) is x
