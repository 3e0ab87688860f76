"""The interpreter, operator by operator and function by function, against values worked out by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from streamproof.system import (
    BOOL,
    Action,
    ArraySort,
    Check,
    Conjunct,
    EnumSort,
    EvaluationError,
    Expr,
    Fairness,
    Instance,
    Interpreter,
    Kind,
    OptionSort,
    Property,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    System,
    Trace,
    Variable,
    Verdict,
)
from streamproof.system import build as b
from streamproof.system.interpreter import with_derived
from streamproof.system.model import Derived
from streamproof.system.sorts import UnionSort

NUMBER, AB = RangeSort(-9, 9), EnumSort(("A", "B", "C"))
CASES = UnionSort((("Less", RecordSort(())), ("Vote", RecordSort((("by", NUMBER), ("yes", BOOL))))))
VALUES = {
    "three": (NUMBER, 3),
    "four": (NUMBER, 4),
    "minus": (NUMBER, -7),
    "zero": (NUMBER, 0),
    "true": (BOOL, True),
    "false": (BOOL, False),
    "kind": (AB, "B"),
    "array": (ArraySort(RangeSort(2, 4), NUMBER), (5, 6, 7)),
    "record": (RecordSort((("x", NUMBER), ("y", NUMBER))), (1, 2)),
    "none": (OptionSort(NUMBER), None),
    "some": (OptionSort(NUMBER), 0),
    "queue": (QueueSort(RangeSort(2, 9), 3), (5, 6)),
    "full": (QueueSort(RangeSort(2, 9), 2), (5, 6)),
    "set": (SetSort(NUMBER), frozenset({1, 3})),
    "other": (SetSort(NUMBER), frozenset({3, 4})),
    "less": (CASES, ("Less", ())),
    "vote": (CASES, ("Vote", (4, True))),
}
SYSTEM = System("values", tuple(Variable(name, sort, (value,)) for name, (sort, value) in VALUES.items()), ())
V = {name: b.var(name, sort) for name, (sort, _) in VALUES.items()}
STATE = tuple(value for _, value in VALUES.values())
TERMS: dict[str, tuple[Expr, object]] = {
    "not": (b.not_(V["true"]), False),
    "and": (b.and_((V["true"], V["false"])), False),
    "or": (b.or_((V["false"], V["true"])), True),
    "if": (b.ite(V["false"], V["three"], V["four"]), 4),
    "equal": (b.eq(V["three"], V["four"]), False),
    "less": (b.less(V["three"], V["four"]), True),
    "not less": (b.less(V["four"], V["four"]), False),
    "at most": (b.less_eq(V["four"], V["four"]), True),
    "sum": (b.add(V["three"], V["minus"]), -4),
    "difference": (b.sub(V["three"], V["minus"]), 10),
    "product": (b.mul(V["three"], V["minus"]), -21),
    "quotient": (b.floor_div(V["minus"], V["three"]), -3),
    "quotient by zero": (b.floor_div(V["three"], V["zero"]), 0),
    "remainder": (b.mod(V["minus"], V["four"]), 1),
    "remainder by zero": (b.mod(V["three"], V["zero"]), 0),
    "element": (b.select(V["array"], V["three"]), 6),
    "element outside is the default": (b.select(V["array"], V["minus"]), -9),
    "store": (b.store(V["array"], V["three"], V["minus"]), (5, -7, 7)),
    "store outside changes nothing": (b.store(V["array"], V["zero"], V["minus"]), (5, 6, 7)),
    "field": (b.field(V["record"], "y"), 2),
    "with field": (b.with_field(V["record"], "x", V["four"]), (4, 2)),
    "none is none": (b.is_none(V["none"]), True),
    "zero is not none": (b.is_none(V["some"]), False),
    "unwrap of none is the default": (b.unwrap(V["none"]), -9),
    "unwrap": (b.unwrap(V["some"]), 0),
    "length": (b.length(V["queue"]), 2),
    "first": (b.peek(V["queue"], V["zero"]), 5),
    "beyond the end is the default": (b.peek(V["queue"], V["three"]), 2),
    "before the head is the default": (b.peek(V["queue"], b.sub(V["three"], V["four"])), 2),
    "push": (b.push(V["queue"], V["four"]), (5, 6, 4)),
    "push on a full queue": (b.push(V["full"], V["four"]), (5, 6)),
    "pop": (b.pop(V["queue"]), (6,)),
    "member": (b.member(V["set"], V["three"]), True),
    "no member": (b.member(V["set"], V["four"]), False),
    "insert": (b.insert(V["set"], V["four"]), frozenset({1, 3, 4})),
    "remove": (b.remove(V["set"], V["three"]), frozenset({1})),
    "remove what is missing": (b.remove(V["set"], V["four"]), frozenset({1, 3})),
    "union": (b.union(V["set"], V["other"]), frozenset({1, 3, 4})),
    "intersection": (b.intersection(V["set"], V["other"]), frozenset({3})),
    "set difference": (b.difference(V["set"], V["other"]), frozenset({1})),
    "subset": (b.subset(V["set"], V["other"]), False),
    "size": (b.size(V["set"]), 2),
    "of the case": (b.is_case(V["vote"], "Vote"), True),
    "of another case, later in the alphabet": (b.is_case(V["less"], "Vote"), False),
    "of another case, earlier in the alphabet": (b.is_case(V["vote"], "Less"), False),
    "fields of the case": (b.payload(V["vote"], "Vote"), (4, True)),
    "fields of another case are the default": (b.payload(V["less"], "Vote"), (-9, False)),
}


@pytest.mark.parametrize("name", TERMS)
def test_operators(name: str) -> None:
    """Each operator has the value that its definition gives, also where it falls back to a default."""
    term, expected = TERMS[name]
    assert Interpreter(SYSTEM).value(term, STATE) == expected


COUNT = RangeSort(0, 5)
n, later = b.var("n", COUNT), b.next_("n", COUNT)


def _conjunct(term: Expr, text: str) -> Conjunct:
    return Conjunct(term, text, None)


def _instance(name: str, guard: Expr, after: Expr, *checks: Check) -> Instance:
    return Instance(name, (), (), (_conjunct(guard, "guard"),), (("n", after),), guard_checks=checks)


UP = _instance("up", b.less(n, b.num(3)), b.add(n, b.num(1)))
TWICE = _instance("twice", b.less(n, b.num(3)), b.add(n, b.num(2)))
WRONG = _instance("wrong", b.TRUE, n, Check(b.TRUE, "always wrong", None))
LOW, SMALL, EVEN = b.less(n, b.num(3)), b.less(n, b.num(2)), b.eq(b.mod(n, b.num(2)), b.num(0))
PROPERTIES = {
    "low": Property("low", Kind.INVARIANT, LOW, (_conjunct(LOW, "n < 3"),)),
    "both": Property(
        "both", Kind.INVARIANT, b.and_((LOW, EVEN)), (_conjunct(LOW, "n < 3"), _conjunct(EVEN, "even(n)"))
    ),
    "unnamed": Property("unnamed", Kind.INVARIANT, b.and_((LOW, EVEN)), (_conjunct(LOW, ""), _conjunct(EVEN, ""))),
    "by one": Property("by one", Kind.STEP, b.eq(later, b.add(n, b.num(1)))),
    "high": Property("high", Kind.REACHABLE, b.not_(LOW)),
    "alive": Property("alive", Kind.DEADLOCK, b.TRUE),
}


def _system(*instances: Instance, **more: object) -> System:
    actions = tuple(Action(i.action, (), Fairness.NONE, (i,)) for i in instances)
    return replace(System("count", (Variable("n", COUNT, (0, 1)),), actions, tuple(PROPERTIES.values())), **more)


def test_the_instance_between_two_states() -> None:
    """The first instance that leads from one state to the other is found, whatever instances before it are mistakes."""
    interpreter = Interpreter(_system(WRONG, UP, TWICE))
    instances = interpreter.system.instances
    assert interpreter.leading(instances, (0,), (1,)) is UP
    assert interpreter.leading(instances, (0,), (2,)) is TWICE
    assert interpreter.leading(instances, (0,), (0,)) is None
    assert interpreter.leading(instances, (3,), (4,)) is None


def test_outcomes_of_all_instances() -> None:
    """For each instance in turn: the state after it, None if it is disabled, or its error, which ends nothing."""
    interpreter = Interpreter(_system(WRONG, UP, TWICE))
    wrong, up, twice = interpreter.outcomes(interpreter.system.instances, (2,), interpreter.evaluation((2,)))
    assert isinstance(wrong, EvaluationError)
    assert wrong.message == "always wrong in wrong()"
    assert (up, twice) == ((3,), (4,))
    assert list(interpreter.outcomes((UP, TWICE), (3,), interpreter.evaluation((3,)))) == [None, None]


def test_initial_states() -> None:
    """A state is initial if each value is an initial one of its variable and the initial condition is true."""
    interpreter = Interpreter(_system(UP, initially=b.less(b.num(0), n)))
    assert list(interpreter.initial_states()) == [(1,)]
    assert [interpreter.is_initial((value,)) for value in (0, 1, 2)] == [False, True, False]


@pytest.mark.parametrize(
    ("name", "states", "verdict", "because"),
    [
        ("low", (0, 1, 2), None, ""),
        ("low", (0, 1, 2, 3), Verdict.VIOLATED, "false after 3 steps"),
        ("both", (0, 1, 2), None, ""),
        ("both", (0, 1), Verdict.VIOLATED, "false after 1 step: not even(n)"),
        ("unnamed", (0, 1), Verdict.VIOLATED, "false after 1 step"),
        ("by one", (0, 2, 3), None, ""),
        ("by one", (0, 1, 2, 4), Verdict.VIOLATED, "broken by step 3, twice()"),
        ("high", (0, 1, 2), None, ""),
        ("high", (0, 1, 3), Verdict.HOLDS, "reached after 2 steps"),
        ("alive", (0, 1, 2), None, ""),
        ("alive", (1, 3), Verdict.VIOLATED, "nothing is enabled after 1 step"),
    ],
)
def test_what_the_end_of_a_trace_decides(
    name: str, states: tuple[int, ...], verdict: Verdict | None, because: str
) -> None:
    """The last state decides state properties, the last step step properties, and the reason names the part that is false."""
    interpreter = Interpreter(_system(UP, TWICE))
    steps = tuple(UP if after == before + 1 else TWICE for before, after in itertools.pairwise(states))
    found = interpreter.decided(PROPERTIES[name], Trace(tuple((value,) for value in states), steps))
    assert (None if found is None else found.verdict, "" if found is None else found.because) == (verdict, because)


def test_terminal_states_are_no_deadlocks() -> None:
    """A state without enabled instance is no deadlock where the terminal condition is true, and a mistake is an error."""
    done = Trace(((2,), (3,)), (UP,))
    ends = Interpreter(_system(UP, terminal=b.eq(n, b.num(3))))
    assert ends.terminal((3,))
    assert not ends.terminal((2,))
    assert ends.decided(PROPERTIES["alive"], done) is None
    mistaken = Interpreter(_system(WRONG)).decided(PROPERTIES["alive"], done)
    assert mistaken is not None
    assert mistaken.verdict is Verdict.ERROR


def test_derived_values_in_a_trace() -> None:
    """A derived value is a further variable of each state; it is None where it does not exist, and its sort says so."""
    option = Derived("always", n)
    partial = Derived("partial", b.sub(n, b.num(1)), (Check(b.eq(n, b.num(0)), "no predecessor", None),))
    maybe = Derived("maybe", b.some(n), (Check(b.FALSE, "never", None),))
    plain = _system(UP)
    trace = Trace(((0,), (1,)), (UP,))
    assert with_derived(plain, trace) == (plain, trace)
    shown, wider = with_derived(replace(plain, derived=(option, partial, maybe)), trace)
    assert wider.states == ((0, 0, None, 0), (1, 1, 0, 1))
    assert [v.name for v in shown.variables] == ["n", "always", "partial", "maybe"]
    assert [isinstance(v.sort, OptionSort) for v in shown.variables] == [False, False, True, True]
    assert not isinstance(shown.variables[3].sort.element, OptionSort)  # type: ignore[union-attr]
    assert shown.derived == ()
