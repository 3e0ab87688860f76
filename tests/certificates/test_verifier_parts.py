"""The verifier piece by piece, on systems of a few states: its arithmetic, behaviours with loops, inductions, ranks."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import z3

from streamproof.base.errors import Rejected
from streamproof.certify.verifier import Endless, Verifier
from streamproof.certify.verifier_induction import MEANING, CheckedInduction, literal, within
from streamproof.system import (
    BOOL,
    Action,
    Conjunct,
    EnumSort,
    Expr,
    Fairness,
    Instance,
    Kind,
    Property,
    RangeSort,
    System,
    Variable,
)
from streamproof.system import build as b
from streamproof.system.formula import Atom, Eventually

NUMBERS = range(-4, 5)
PLAIN: dict[str, Any] = {
    "Less": lambda x, y: x < y,
    "LessEq": lambda x, y: x <= y,
    "Eq": lambda x, y: x == y,
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "FloorDiv": lambda x, y: x // y if y else 0,
    "Mod": lambda x, y: x % y if y else 0,
}


@pytest.mark.parametrize("name", PLAIN)
def test_arithmetic_is_python_s(name: str) -> None:
    """Each operator of the verifier has Python's value for all small numbers, and 0 for a division by 0."""
    x, y = z3.Ints("x y")
    term = MEANING[name](x, y)
    for one, other in product(NUMBERS, NUMBERS):
        value = z3.simplify(z3.substitute(term, (x, z3.IntVal(one)), (y, z3.IntVal(other))))
        expected = PLAIN[name](one, other)
        assert value.eq(z3.BoolVal(expected) if isinstance(expected, bool) else z3.IntVal(expected)), (one, other)


def test_domains() -> None:
    """A number is in its range with both ends included; a member of an Enum is its position."""
    term = z3.Int("n")

    def inside(sort: Any) -> list[int]:
        return [n for n in NUMBERS if z3.is_true(z3.simplify(z3.substitute(within(sort, term), (term, z3.IntVal(n)))))]

    assert inside(RangeSort(-1, 2)) == [-1, 0, 1, 2]
    assert inside(EnumSort(("A", "B", "C"))) == [0, 1, 2]
    assert literal(EnumSort(("A", "B", "C")), "C").eq(z3.IntVal(2))
    assert literal(BOOL, True).eq(z3.BoolVal(True))


N = b.var("n", RangeSort(0, 3))


def _instance(name: str, guard: Expr, after: Expr) -> Instance:
    return Instance(name, (), (), (Conjunct(guard, "", None),), (("n", after),))


def _system(*actions: tuple[Instance, Fairness], properties: tuple[Property, ...] = ()) -> System:
    made = tuple(Action(i.action, (), fairness, (i,)) for i, fairness in actions)
    return System("n", (Variable("n", RangeSort(0, 3), (0,)),), made, properties)


UP = _instance("up", b.less(N, b.num(2)), b.add(N, b.num(1)))
BACK = _instance("back", b.eq(N, b.num(2)), b.num(0))
RING = _system((UP, Fairness.NONE), (BACK, Fairness.NONE))


@pytest.mark.parametrize(
    ("states", "steps", "loop", "accepted"),
    [
        ([0, 1, 2], ["up()", "up()"], None, True),
        ([0, 1, 2], ["up()", "up()", "back()"], 0, True),
        ([0, 1, 2], ["up()", "up()"], 2, True),
        ([0, 1, 2, 0], ["up()", "up()", "back()"], 3, True),
        ([0], [], None, True),
        ([1, 2], ["up()"], None, False),
        ([0, 2], ["up()"], None, False),
        ([0, 1, 2], ["up()", "back()"], None, False),
        ([0, 1, 2], ["up()", "up()", "back()"], 1, False),
        ([0, 1, 2], ["up()", "up()", "back()"], -3, False),
        ([0, 1, 2], ["up()", "up()"], 0, False),
        ([0, 1, 2], ["up()", "up()"], 1, False),
        ([0, 1, 2], ["up()", "up()"], -1, False),
        ([0, 1, 2], ["up()", "up()", "back()"], None, False),
        ([0, 1, 2], ["up()"], None, False),
    ],
)
def test_behaviours_are_replayed(states: list[int], steps: list[str], loop: int | None, accepted: bool) -> None:
    """A behaviour begins initially and takes steps of the system; its last step leads to its loop, or it stays in its end."""
    verifier = Verifier(RING, None, None, lambda _: None)
    data = {"states": [[[n]] for n in states], "steps": steps, "loop": loop}
    if accepted:
        trace = verifier.replayed("p", data)
        assert (trace.states, [i.label for i in trace.steps], trace.loop) == (tuple((n,) for n in states), steps, loop)
    else:
        with pytest.raises((Rejected, ValueError)):
            verifier.replayed("p", data)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(
    ("claim", "accepted"),
    [
        (b.less_eq(N, b.num(2)), True),
        (b.less_eq(N, b.num(1)), False),
        (b.less_eq(N, b.num(0)), False),
        (b.not_(b.eq(N, b.num(2))), False),
    ],
    ids=["at most 2", "at most 1", "at most 0", "not 2"],
)
def test_inductions(claim: Expr, accepted: bool, k: int) -> None:
    """What is true of all reachable states by counting to two is accepted with every strength, and nothing that is false."""
    system = replace(_system((UP, Fairness.NONE)), properties=(Property("p", Kind.INVARIANT, claim),))
    proof = {"claims": ["p"], "k": k, "distinct": False, "lemmas": [], "formulas": []}
    if accepted:
        CheckedInduction(system, proof).run()
    else:
        with pytest.raises(Rejected):
            CheckedInduction(system, proof).run()


def test_an_induction_that_needs_two_states() -> None:
    """From 3, which is not reachable, a step leads to 4: with one state the claim is not inductive, with two it is."""
    n = b.var("n", RangeSort(0, 5))
    steps = (
        _instance("back", b.eq(n, b.num(1)), b.num(0)),
        _instance("up", b.eq(n, b.num(0)), b.num(1)),
        _instance("over", b.eq(n, b.num(3)), b.num(4)),
    )
    system = replace(
        _system(*((step, Fairness.NONE) for step in steps)),
        variables=(Variable("n", RangeSort(0, 5), (0,)),),
        properties=(Property("p", Kind.INVARIANT, b.not_(b.eq(n, b.num(4)))),),
    )
    proof = {"claims": ["p"], "k": 2, "distinct": False, "lemmas": [], "formulas": []}
    CheckedInduction(system, proof).run()
    with pytest.raises(Rejected):
        CheckedInduction(system, {**proof, "k": 1}).run()


FLIP = _instance("flip", b.less(N, b.num(2)), b.sub(b.num(1), N))
LEAVE = _instance("leave", b.eq(N, b.num(1)), b.num(2))
NEVER = _instance("leave", b.eq(N, b.num(3)), b.num(2))
LEFT = Eventually(Atom(b.eq(N, b.num(2)), "n == 2", None))


def _ranked(leave: Instance, fairness: Fairness) -> None:
    """Checks that `leave` is taken in the end, with one rank for the states 0 and 1, and a lower one for 2."""
    system = _system((FLIP, Fairness.WEAK), (leave, fairness))
    verifier = Verifier(system, None, None, lambda _: None)
    verifier.states, verifier.initial = [(0,), (1,), (2,)], 1
    verifier.follow = [{1: 1}, {0: 1} | ({2: 2} if leave is LEAVE and fairness is not Fairness.NONE else {}), {}]
    endless = Endless(verifier, "left", LEFT)
    table = {str(number): [1, 1, 0] for number in range(len(endless.tableau.guesses))}
    endless.end(endless.reachable(), [table] * 3)


def test_fair_behaviours_among_nodes_of_one_rank() -> None:
    """Strong fairness of a step that is enabled again and again leads away; weak fairness does not, nor one never enabled."""
    _ranked(LEAVE, Fairness.STRONG)
    for leave, fairness in ((LEAVE, Fairness.WEAK), (LEAVE, Fairness.NONE), (NEVER, Fairness.STRONG)):
        with pytest.raises(Rejected, match=r"a fair behaviour may make left false that stays at n = [01]"):
            _ranked(leave, fairness)


COUNTED = {"distinct": 3, "generated": 4, "depth": 3, "levels": [1, 1, 1]}


def _closed(system: System, states: list[int], counts: dict[str, Any]) -> None:
    """Has these states verified as the closed set, in this order."""
    evidence = {"values": [[[[n] for n in states], [*range(len(states))]]]}
    Verifier(system, None, evidence, lambda _: None).closed_set(counts)


def test_closed_sets() -> None:
    """The reachable states in their levels are accepted, also those of a system that takes no step."""
    _closed(RING, [0, 1, 2], COUNTED)
    _closed(_system(), [0], {"distinct": 1, "generated": 1, "depth": 1, "levels": [1]})


@pytest.mark.parametrize(
    ("states", "changes"),
    [
        ([0, 1, 2], {"more": 1}),
        ([0, 1, 2], {"generated": None}),
        ([0, 1, 2], {"generated": 5}),
        ([0, 1, 2], {"distinct": 4}),
        ([0, 1, 2], {"depth": 2}),
        ([0, 1, 2], {"levels": [1, 2], "depth": 2}),
        ([0, 1, 2], {"levels": [True, 1, 1]}),
        ([0, 1, 2], {"levels": [1, 1, 1, 0], "depth": 4}),
        ([0, 2, 1], {}),
        ([1, 2, 0], {}),
        ([0, 1], {"distinct": 2, "generated": 3, "depth": 2, "levels": [1, 1]}),
        ([0, 1, 2, 3], {"distinct": 4, "depth": 4, "levels": [1, 1, 1, 1]}),
        ([0, 1, 1], {}),
    ],
)
def test_other_sets(states: list[int], changes: dict[str, Any]) -> None:
    """States that are missing, too many, twice or on other levels are rejected, and so are counts that are not theirs."""
    counts = {name: value for name, value in {**COUNTED, **changes}.items() if value is not None}
    with pytest.raises((Rejected, KeyError)):
        _closed(RING, states, counts)
