"""Which places a value depends on: examples, and the promise that nothing else can change it."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.system import (
    BOOL,
    ArraySort,
    Expr,
    Interpreter,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    State,
    System,
    Value,
    Variable,
)
from streamproof.system import build as b
from streamproof.system.sorts import default, values
from streamproof.traces.places import Place, Read, leaves, look, reads

SMALL = RangeSort(0, 2)
CELL = RecordSort((("left", SMALL), ("held", OptionSort(SMALL))))
SORTS: dict[str, Sort] = {
    "n": SMALL,
    "m": SMALL,
    "on": BOOL,
    "cells": ArraySort(SMALL, CELL),
    "job": OptionSort(CELL),
    "wire": QueueSort(SMALL, 2),
    "seen": SetSort(SMALL),
}
VARS = {name: b.var(name, sort) for name, sort in SORTS.items()}
SYSTEM = System("m", tuple(Variable(name, sort, (default(sort),)) for name, sort in SORTS.items()), ())
INTERPRETER = Interpreter(SYSTEM)


def _state(**given_values: Value) -> State:
    return tuple(given_values.get(name, default(sort)) for name, sort in SORTS.items())


def _reads(term: Expr, state: State, keys: tuple[Value, ...] = ()) -> list[Place]:
    return [r.place for r in reads(INTERPRETER, term, state, keys=keys)]


def test_index_is_read_before_the_element() -> None:
    """An element at a variable index depends on the index and on that element alone."""
    term = b.field(b.select(VARS["cells"], VARS["n"]), "left")
    assert _reads(term, _state(n=2)) == [Place("n"), Place("cells", (2, "left"))]


def test_conjunction_stops_at_the_first_false_part() -> None:
    """A false conjunction depends on the part that makes it false, a true one on all parts."""
    term = b.and_((VARS["on"], b.less(VARS["n"], b.num(2)), b.less(VARS["m"], b.num(2))))
    assert _reads(term, _state(on=True, n=2, m=2)) == [Place("n")]
    assert _reads(term, _state(on=True)) == [Place("on"), Place("n"), Place("m")]


def test_disjunction_stops_at_the_first_true_part() -> None:
    """A true disjunction depends on the part that makes it true, a false one on all parts."""
    term = b.or_((VARS["on"], b.less(VARS["n"], b.num(2))))
    assert _reads(term, _state()) == [Place("n")]
    assert _reads(term, _state(n=2)) == [Place("on"), Place("n")]


def test_conditional_reads_the_branch_taken() -> None:
    """The branch that is not taken does not matter."""
    term = b.ite(VARS["on"], VARS["n"], VARS["m"])
    assert _reads(term, _state()) == [Place("on"), Place("m")]


def test_part_of_an_update() -> None:
    """Asked for one element of an updated array, the walk finds what that element comes from."""
    cell = b.with_field(b.select(VARS["cells"], b.num(1)), "left", VARS["n"])
    term = b.store(VARS["cells"], VARS["m"], cell)
    state = _state(m=1)
    assert _reads(term, state, (1, "left")) == [Place("m"), Place("n")]
    assert _reads(term, state, (1, "held")) == [Place("m"), Place("cells", (1, "held"))]
    assert _reads(term, state, (0, "left")) == [Place("m"), Place("cells", (0, "left"))]


def test_next_state_is_distinguished() -> None:
    """A step property reads the same place before and after the step."""
    term = b.less_eq(VARS["n"], b.next_("n", SMALL))
    found = reads(INTERPRETER, term, _state(), _state(n=1))
    assert found == (Read(Place("n")), Read(Place("n"), after=True))


def test_absent_option_is_shown_as_such() -> None:
    """A field of an option that is not there is shown as the option."""
    term = b.field(b.unwrap(VARS["job"]), "left")
    (place,) = _reads(term, _state())
    assert place == Place("job", ("left",))
    assert (look(SYSTEM, place, _state()).text, look(SYSTEM, place, _state()).shown) == ("job", "None")
    there = look(SYSTEM, place, _state(job=(2, None)), "s.")
    assert (there.text, there.shown) == ("s.job.left", "2")


def test_leaves_look_into_present_options() -> None:
    """The leaves of a state, options of records taken apart where they are present."""
    found = {seen.text: seen.shown for _, seen in leaves(SYSTEM, _state(job=(1, 2), wire=(0, 1)))}
    assert found == {
        "n": "0",
        "m": "0",
        "on": "False",
        "cells[0].left": "0",
        "cells[0].held": "None",
        "cells[1].left": "0",
        "cells[1].held": "None",
        "cells[2].left": "0",
        "cells[2].held": "None",
        "job.left": "1",
        "job.held": "2",
        "wire": "<0, 1>",
        "seen": "{}",
    }


def _value(rng: random.Random, sort: Sort) -> Value:
    return (
        rng.choice(list(values(sort)))
        if not isinstance(sort, ArraySort)
        else tuple(_value(rng, CELL) for _ in range(3))
    )


def _nudged(rng: random.Random, sort: Sort, value: Value) -> Value:
    """`value` with one part of it drawn anew."""
    match sort:
        case ArraySort(_, element):
            at = rng.randrange(len(value))
            return (*value[:at], _nudged(rng, element, value[at]), *value[at + 1 :])
        case RecordSort(fields):
            at = rng.randrange(len(value))
            return (*value[:at], _nudged(rng, fields[at][1], value[at]), *value[at + 1 :])
        case OptionSort(RecordSort() as element) if value is not None and rng.random() < 0.7:
            return _nudged(rng, element, value)
        case _:
            return _value(rng, sort)


def _number(rng: random.Random, depth: int) -> Expr:
    if depth == 0:
        return rng.choice([VARS["n"], VARS["m"], b.num(rng.randrange(3))])
    less = depth - 1
    match rng.randrange(8):
        case 0:
            return b.field(_cell(rng, less), "left")
        case 1:
            return b.unwrap(b.field(_cell(rng, less), "held"))
        case 2:
            return b.peek(_queue(rng, less), _number(rng, less))
        case 3:
            return b.length(_queue(rng, less))
        case 4:
            return b.ite(_truth(rng, less), _number(rng, less), _number(rng, less))
        case 5:
            return b.size(_set(rng, less))
        case 6:
            return b.mod(b.add(_number(rng, less), _number(rng, less)), b.num(3))
        case _:
            return _number(rng, 0)


def _truth(rng: random.Random, depth: int) -> Expr:
    if depth == 0:
        return VARS["on"]
    less = depth - 1
    match rng.randrange(8):
        case 0:
            return b.and_(_truth(rng, less) for _ in range(3))
        case 1:
            return b.or_(_truth(rng, less) for _ in range(3))
        case 2:
            return b.not_(_truth(rng, less))
        case 3:
            return b.less(_number(rng, less), _number(rng, less))
        case 4:
            return b.eq(_cell(rng, less), _cell(rng, less))
        case 5:
            return b.is_none(b.field(_cell(rng, less), "held"))
        case 6:
            return b.member(_set(rng, less), _number(rng, less))
        case _:
            return b.eq(_cells(rng, less), _cells(rng, less))


def _cell(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.3:
        return b.unwrap(VARS["job"])
    less = depth - 1
    if rng.random() < 0.5:
        return b.select(_cells(rng, less), _number(rng, less))
    return b.with_field(_cell(rng, less), "left", b.mod(_number(rng, less), b.num(3)))


def _cells(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.3:
        return VARS["cells"]
    less = depth - 1
    return b.store(_cells(rng, less), _number(rng, less), _cell(rng, less))


def _queue(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.3:
        return VARS["wire"]
    less = depth - 1
    inner = _queue(rng, less)
    return b.pop(inner) if rng.random() < 0.5 else b.push(inner, b.mod(_number(rng, less), b.num(3)))


def _set(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.3:
        return VARS["seen"]
    less = depth - 1
    change = b.insert if rng.random() < 0.5 else b.remove
    return change(_set(rng, less), b.mod(_number(rng, less), b.num(3)))


def test_nothing_else_can_change_the_value() -> None:
    """In any state that agrees on the places found, the term has the same value; often such a state is another one."""
    others = 0

    @settings(max_examples=400)
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        nonlocal others
        rng = random.Random(seed)
        term = _truth(rng, 4)
        state = tuple(_value(rng, sort) for sort in SORTS.values())
        found = [(p, look(SYSTEM, p, state)) for p in _reads(term, state)]
        value = INTERPRETER.value(term, state)
        for _ in range(10):
            at = rng.randrange(len(state))
            sort = SYSTEM.variables[at].sort
            other = (*state[:at], _nudged(rng, sort, state[at]), *state[at + 1 :])
            if all(look(SYSTEM, place, other) == seen for place, seen in found):
                assert INTERPRETER.value(term, other) == value, (term, state, other)
                others += other != state and bool(found)

    check()
    assert others >= 1000
