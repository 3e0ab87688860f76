"""Composite variables spelt out as scalar leaves: names, encodings, and the exact meaning of every operation."""

from __future__ import annotations

from itertools import product

import pytest

from streamproof.system import (
    BOOL,
    Action,
    ArraySort,
    Check,
    Conjunct,
    EnumSort,
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
    Sort,
    System,
    TooLarge,
    Variable,
)
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.leaves import decode, encode, leaves
from streamproof.system.sorts import cardinality, default, values
from streamproof.transform.flatten import Rewriter
from streamproof.transform.scalarise import scalarise

AB = EnumSort(("A", "B"))
SMALL = RangeSort(0, 2)
INDEX = RangeSort(-1, 1)
SCALAR = (
    e.Const,
    e.Var,
    e.Next,
    e.Not,
    e.And,
    e.Or,
    e.Ite,
    e.Eq,
    e.Less,
    e.LessEq,
    e.Add,
    e.Sub,
    e.Mul,
    e.FloorDiv,
    e.Mod,
)

array = b.var("array", ArraySort(INDEX, RangeSort(1, 2)))
other = b.var("other", ArraySort(INDEX, RangeSort(0, 1)))
record = b.var("record", RecordSort((("flag", BOOL), ("owner", OptionSort(SMALL)))))
option = b.var("option", OptionSort(SMALL))
high = b.var("high", OptionSort(RangeSort(1, 2)))
queue = b.var("queue", QueueSort(SMALL, 2))
short = b.var("short", QueueSort(RangeSort(1, 2), 1))
set_ = b.var("set", SetSort(SMALL))
pairs = b.var("pairs", SetSort(RecordSort((("x", BOOL), ("y", OptionSort(RangeSort(1, 1)))))))
near = b.var("near", SetSort(RangeSort(1, 3)))
queues = b.var("queues", ArraySort(BOOL, QueueSort(AB, 1)))
kind = b.var("kind", AB)
flag = b.var("flag", BOOL)
at = b.var("at", RangeSort(-2, 2))
small = b.var("small", SMALL)
pair = b.make_record(pairs.sort.element, (flag, b.some(b.num(1))))  # type: ignore[union-attr]


def n(value: int) -> Expr:
    """An integer literal."""
    return b.num(value)


TERMS: dict[str, Expr] = {
    "select": b.select(array, at),
    "select outside gives the default": b.select(array, b.add(at, n(3))),
    "select by an enum": b.select(b.var("by_kind", ArraySort(AB, SMALL)), kind),
    "select by a Bool": b.select(queues, flag),
    "store": b.store(array, at, n(2)),
    "store outside changes nothing": b.store(array, b.mul(at, n(2)), n(2)),
    "store of what was selected": b.store(array, at, b.select(array, b.add(at, n(1)))),
    "store of a queue": b.store(queues, flag, b.push(b.select(queues, flag), kind)),
    "make array": b.make_array(ArraySort(BOOL, option.sort), (option, high)),
    "arrays of different ranges are equal": b.eq(array, other),
    "either of two arrays": b.ite(flag, array, other),
    "field": b.field(record, "owner"),
    "with field": b.with_field(record, "owner", high),
    "make record": b.make_record(record.sort, (flag, high)),  # type: ignore[arg-type]
    "records are equal": b.eq(record, b.make_record(record.sort, (flag, option))),  # type: ignore[arg-type]
    "some": b.some(small),
    "is none": b.is_none(option),
    "is none of either": b.is_none(b.ite(flag, option, high)),
    "unwrap": b.unwrap(option),
    "unwrap with another default": b.unwrap(high),
    "unwrap of either": b.unwrap(b.ite(flag, high, option)),
    "options are equal": b.eq(option, high),
    "option is a constant": b.eq(option, b.const(OptionSort(RangeSort(1, 1)), 1)),
    "option is some": b.eq(high, b.some(small)),
    "length": b.length(queue),
    "peek": b.peek(queue, at),
    "peek with another default": b.peek(short, at),
    "peek of either": b.peek(b.ite(flag, short, queue), at),
    "push": b.push(queue, small),
    "push on a full queue": b.push(b.push(b.push(queue, small), n(1)), n(2)),
    "push and pop": b.pop(b.push(queue, small)),
    "pop": b.pop(queue),
    "pop of an empty queue": b.pop(b.pop(b.pop(queue))),
    "pop with another default": b.pop(b.ite(flag, short, queue)),
    "push on the shorter one": b.push(short, b.num(2)),
    "queues are equal": b.eq(queue, short),
    "queue is a constant": b.eq(queue, b.const(QueueSort(RangeSort(1, 2), 2), (1, 2))),
    "queue is longer than it can be": b.eq(short, b.const(QueueSort(SMALL, 3), (1, 2, 1))),
    "member": b.member(set_, small),
    "member outside": b.member(set_, b.add(small, n(1))),
    "member of a constant": b.member(b.const(pairs.sort, frozenset({(True, 1), (False, None)})), pair),
    "member record": b.member(pairs, pair),
    "member set": b.member(b.const(SetSort(set_.sort), frozenset({frozenset(), frozenset({1, 2})})), set_),
    "member queue": b.member(b.const(SetSort(queue.sort), frozenset({(), (2,), (1, 0)})), queue),
    "insert": b.insert(set_, small),
    "insert record": b.insert(pairs, pair),
    "remove": b.remove(set_, small),
    "remove record": b.remove(pairs, pair),
    "union": b.union(set_, near),
    "intersection": b.intersection(set_, near),
    "difference": b.difference(set_, near),
    "difference the other way": b.difference(near, set_),
    "subset": b.subset(near, set_),
    "size": b.size(b.union(set_, near)),
    "sets are equal": b.eq(set_, near),
    "quotient": b.floor_div(at, small),
    "remainder": b.mod(at, b.sub(small, n(1))),
    "arithmetic": b.less_eq(b.mul(at, at), b.add(small, n(1))),
}


def _variables(term: Expr) -> dict[str, Sort]:
    return {t.name: t.sort for t in e.subterms(term) if isinstance(t, e.Var)}


def _system(sorts: dict[str, Sort]) -> System:
    return System("of terms", tuple(Variable(name, sort, (default(sort),)) for name, sort in sorts.items()), ())


@pytest.mark.parametrize("name", TERMS)
def test_every_operation_keeps_its_value_in_every_state(name: str) -> None:
    """The leaf terms of a term give the leaves of its value, whatever the variables hold."""
    term = TERMS[name]
    sorts = _variables(term)
    system = scalarise(_system(sorts))
    flat = Rewriter().flat(term, term.sort)
    assert all(isinstance(part, SCALAR) for part in e.subterms(*flat))
    direct, scalar = Interpreter(system.original), Interpreter(system.system)
    states = list(product(*(tuple(values(s)) for s in sorts.values())))
    assert 1 < len(states) <= 1000
    for state in states:
        encoded = system.encode(state)
        expected = direct.value(term, state)
        assert tuple(scalar.value(part, encoded) for part in flat) == encode(term.sort, expected), state
        assert decode(term.sort, iter(encode(term.sort, expected))) == expected


@pytest.mark.parametrize("term", [array, record, high, short, set_, pairs, queues, kind, flag, at], ids=str)
def test_values_and_leaves_correspond_one_for_one(term: Expr) -> None:
    """Distinct values have distinct leaves, and decoding gives the value back."""
    every = list(values(term.sort))
    encoded = [encode(term.sort, value) for value in every]
    assert len(set(encoded)) == cardinality(term.sort)
    assert [decode(term.sort, iter(parts)) for parts in encoded] == every
    assert {len(parts) for parts in encoded} == {len(list(leaves(term.sort, "x")))}


def test_leaves_are_named_as_a_reader_would() -> None:
    """Indices, fields, presence, length, slots and members follow from the name of a leaf."""
    wire = ArraySort(AB, QueueSort(RecordSort((("epoch", SMALL), ("to", OptionSort(BOOL)))), 1))
    assert [leaf.name for leaf in leaves(wire, "wire")] == [
        "wire[A].len",
        "wire[A][0].epoch",
        "wire[A][0].to?",
        "wire[A][0].to",
        "wire[B].len",
        "wire[B][0].epoch",
        "wire[B][0].to?",
        "wire[B][0].to",
    ]
    assert [leaf.name for leaf in leaves(SetSort(AB), "seen")] == ["seen{A}", "seen{B}"]


def test_initial_states_that_are_not_a_product_stay_exactly_those() -> None:
    """Leaves that depend on each other at the start are tied by the initial condition."""
    system = System(
        "starts",
        (
            Variable("array", array.sort, ((1, 1, 1), (2, 2, 2), (1, 2, 1))),
            Variable("option", option.sort, (None, 2)),
            Variable("at", at.sort, (-1, 0, 1)),
        ),
        (),
        initially=b.less_eq(b.select(array, at), b.unwrap(option)),
    )
    scalar = scalarise(system)
    expected = [scalar.encode(state) for state in Interpreter(system).initial_states()]
    assert len(expected) == 9
    assert set(Interpreter(scalar.system).initial_states()) == set(expected)


def test_initial_states_that_are_a_product_need_no_condition() -> None:
    """Sixty-four starts of independent elements add nothing to the initial condition."""
    every = tuple(values(ArraySort(RangeSort(0, 5), BOOL)))
    system = scalarise(System("free", (Variable("on", ArraySort(RangeSort(0, 5), BOOL), every),), ()))
    assert system.system.initially is b.TRUE
    assert all(v.initial == (False, True) for v in system.system.variables)


def test_instances_properties_and_checks_keep_names_and_order() -> None:
    """Labels, updates and operands of the scalar system are those of the original, leaf by leaf."""
    full = b.less_eq(n(2), b.length(queue))
    prop = Property("room", Kind.INVARIANT, b.not_(full), (Conjunct(b.not_(full), "room", None),), ())
    push = Instance(
        "push",
        (("x", 1),),
        (),
        (Conjunct(b.is_none(option), "option is None", None),),
        (("queue", b.push(queue, n(1))), ("option", b.some(n(1)))),
        effect_checks=(Check(full, "full", None, (("s.queue", queue),)),),
    )
    start = (Variable("queue", queue.sort, ((),)), Variable("option", option.sort, (None,)))
    action = Action("push", ("x",), Fairness.WEAK, (push,))
    result = scalarise(System("one", start, (action,), (prop,), terminal=full, lemmas=(prop,)))
    (instance,) = result.system.instances
    assert instance.label == "push(x=1)"
    assert [name for name, _ in instance.updates] == ["queue.len", "queue[0]", "queue[1]", "option?", "option"]
    assert [text for text, _ in instance.effect_checks[0].operands] == ["s.queue.len", "s.queue[0]", "s.queue[1]"]
    assert result.leaves == {"queue": ("queue.len", "queue[0]", "queue[1]"), "option": ("option?", "option")}
    assert result.system.action("push").fairness is Fairness.WEAK
    length = b.var("queue.len", RangeSort(0, 2))
    assert result.system.properties[0].expr is b.not_(b.less_eq(n(2), length))
    assert result.system.terminal is b.less_eq(n(2), length)
    assert result.system.lemmas == result.system.properties


def test_an_update_of_one_element_leaves_the_others_out() -> None:
    """Storing at a known index touches the leaf of that index only."""
    set_one = Instance("set", (), (), (), (("array", b.store(array, n(0), n(2))),))
    start = (Variable("array", array.sort, ((1, 1, 1),)),)
    result = scalarise(System("one", start, (Action("set", (), Fairness.NONE, (set_one,)),)))
    assert result.system.instances[0].updates == (("array[0]", n(2)),)


def test_a_set_over_too_many_values_is_refused() -> None:
    """More than 4,096 possible members are not spelt out; the message says what to use instead."""
    sort = SetSort(RangeSort(0, 4096))
    with pytest.raises(TooLarge, match=r"a Set over Range\(0, 4096\) would need 4097 Booleans\n  use an element sort"):
        scalarise(System("wide", (Variable("seen", sort, (frozenset(),)),), ()))


def test_a_state_of_too_many_parts_is_refused() -> None:
    """A hundred thousand leaves are the limit."""
    sort = QueueSort(BOOL, 100_000)
    with pytest.raises(TooLarge, match="a state of long has 100001 scalar parts"):
        scalarise(System("long", (Variable("line", sort, ((),)),), ()))
