"""Formulas of the symbolic engine: arithmetic, well-formed states, steps and frames, deep terms."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import pytest
import z3

from nonempty import nonempty
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.theory import Bits, Integers
from streamproof.system import (
    BOOL,
    Action,
    ArraySort,
    Conjunct,
    EnumSort,
    Expr,
    Fairness,
    Instance,
    Interpreter,
    ModelError,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    System,
    Variable,
)
from streamproof.system import build as b
from streamproof.system.sorts import cardinality, values
from streamproof.transform.scalarise import scalarise

OPERATORS = {
    "add": (b.add, lambda x, y: x + y),
    "sub": (b.sub, lambda x, y: x - y),
    "mul": (b.mul, lambda x, y: x * y),
    "floor_div": (b.floor_div, lambda x, y: x // y if y else 0),
    "mod": (b.mod, lambda x, y: x % y if y else 0),
    "less": (b.less, lambda x, y: x < y),
    "less_eq": (b.less_eq, lambda x, y: x <= y),
    "eq": (b.eq, lambda x, y: x == y),
}


def declared(*variables: Variable, instances: tuple[Instance, ...] = (), initially: Expr = b.TRUE) -> System:
    """A system without properties."""
    return System("toy", variables, (Action("act", (), Fairness.NONE, instances),), initially=initially)


def is_state(encoding: Encoding, state: tuple[object, ...]) -> z3.BoolRef:
    """That the current state is this one, of the scalar system."""
    pairs = zip(encoding.system.variables, state, strict=True)
    return encoding.all_of([encoding.term(b.eq(b.var(v.name, v.sort), b.const(v.sort, value))) for v, value in pairs])


def states(encoding: Encoding, formula: z3.BoolRef, position: int) -> set[tuple[object, ...]]:
    """The states of the original system at a position of the paths that satisfy `formula`; each is met once."""
    solver = z3.Solver(ctx=encoding.ctx)
    solver.add(formula)
    found: set[tuple[object, ...]] = set()
    while solver.check() == z3.sat:
        scalar = encoding.state(solver.model(), position)
        state = encoding.scalarised.decode(scalar)
        assert state not in found
        found.add(state)
        solver.add(encoding.at(encoding.no(is_state(encoding, scalar)), position))
    return found


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("operator", OPERATORS)
def test_arithmetic_is_that_of_python(operator: str, integers: bool) -> None:
    """Every operator gives Python's result (0 for a zero divisor) for all operands of two ranges across zero."""
    x, y = b.var("x", RangeSort(-5, 4)), b.var("y", RangeSort(-3, 6))
    encoding = Encoding(
        scalarise(declared(Variable("x", x.sort, (0,)), Variable("y", y.sort, (0,)))), integers=integers
    )
    build, python = OPERATORS[operator]
    wrong = []
    for p, q in product(values(x.sort), values(y.sort)):
        result = python(p, q)
        right = b.eq(build(x, y), b.truth(result) if isinstance(result, bool) else b.num(result))
        wrong.append(b.and_((b.eq(x, b.num(p)), b.eq(y, b.num(q)), b.not_(right))))
    solver = z3.Solver(ctx=encoding.ctx)
    solver.add(encoding.at(encoding.wellformed, 0), encoding.at(encoding.term(b.or_(wrong)), 0))
    assert solver.check() == z3.unsat


@pytest.mark.parametrize("theory", [Bits, Integers])
def test_literals_keep_their_value(theory: type[Bits] | type[Integers]) -> None:
    """A number read back from a literal is that number, whatever its width and sign."""
    numbers = theory(z3.Context())
    wide = RangeSort(-(2**40), 2**40)
    for n in (0, 1, -1, 2, -2, 127, 128, -128, -129, 2**33, -(2**33)):
        assert numbers.number(z3.simplify(numbers.literal(n)), wide) == n


def test_terms_are_wide_enough_for_every_result() -> None:
    """A product of sums that exceeds the variables' ranges many times over does not wrap."""
    x = b.var("x", RangeSort(0, 7))
    square = b.mul(b.add(x, x), b.sub(b.mul(x, b.num(100)), b.num(1)))
    encoding = Encoding(scalarise(declared(Variable("x", x.sort, (0,)))))
    assert states(encoding, encoding.at(encoding.term(b.eq(square, b.num(14 * 699))), 0), 0) == {(7,)}


@pytest.mark.parametrize(
    "sort",
    [
        BOOL,
        RangeSort(-2, 2),
        RangeSort(3, 3),
        EnumSort(("A", "B", "C")),
        OptionSort(RangeSort(1, 3)),
        QueueSort(EnumSort(("A", "B", "C")), 2),
        QueueSort(OptionSort(BOOL), 2),
        ArraySort(BOOL, OptionSort(EnumSort(("A", "B")))),
        RecordSort((("f", QueueSort(RangeSort(1, 2), 1)), ("g", BOOL))),
        SetSort(RangeSort(0, 2)),
    ],
    ids=str,
)
def test_wellformed_states_are_the_values_of_the_sort(sort: Sort) -> None:
    """Each value has exactly one well-formed representation, and nothing else is well-formed."""
    encoding = Encoding(scalarise(declared(Variable("v", sort, (next(values(sort)),)))))
    met = states(encoding, encoding.at(encoding.wellformed, 0), 0)
    assert met == {(value,) for value in values(sort)}
    assert len(met) == cardinality(sort)


def test_initial_states_are_those_of_the_interpreter() -> None:
    """Listed values that belong together stay together, and `initially` cuts."""
    pair = RecordSort((("f", RangeSort(0, 2)), ("g", RangeSort(0, 2))))
    x = b.var("x", RangeSort(0, 3))
    system = declared(
        Variable("p", pair, ((0, 1), (1, 2), (2, 0))),
        Variable("x", x.sort, (1, 2, 3)),
        initially=b.less_eq(x, b.field(b.var("p", pair), "g")),
    )
    encoding = Encoding(scalarise(system))
    met = states(encoding, encoding.at(encoding.initial, 0), 0)
    assert met == {((0, 1), 1), ((1, 2), 1), ((1, 2), 2)} == set(Interpreter(system).initial_states())


@pytest.mark.parametrize("integers", [False, True])
def test_steps_are_those_of_the_interpreter_frames_included(integers: bool) -> None:
    """From every state, reachable or not, the transition leads exactly where the interpreter's instances lead."""
    queue, mode = QueueSort(RangeSort(0, 1), 2), EnumSort(("IDLE", "BUSY"))
    line, m, k = b.var("line", queue), b.var("mode", mode), b.var("k", RangeSort(-1, 1))
    busy = b.eq(m, b.const(mode, "BUSY"))
    head = b.peek(line, b.num(0))
    instances = (
        Instance("pop", (), (), (Conjunct(busy, "", None),), (("line", b.pop(line)), ("k", head))),
        Instance(
            "push", (), (), (Conjunct(b.less(b.length(line), b.num(2)), "", None),), (("line", b.push(line, b.num(1))),)
        ),
        Instance(
            "flip",
            (),
            (),
            (Conjunct(b.less(k, b.num(1)), "", None),),
            (("mode", b.const(mode, "BUSY")), ("k", b.add(k, b.num(1)))),
        ),
        Instance("stay", (), (), (), ()),
    )
    system = declared(
        Variable("line", queue, ((),)),
        Variable("mode", mode, ("IDLE",)),
        Variable("k", k.sort, (0,)),
        instances=instances,
    )
    interpreter = Interpreter(system)
    encoding = Encoding(scalarise(system), integers=integers)
    step = encoding.at(encoding.all_of([encoding.wellformed, encoding.transition]), 0)
    for state in nonempty(product(values(queue), values(mode), values(k.sort))):
        scalar = encoding.scalarised.encode(state)
        here = encoding.at(is_state(encoding, scalar), 0)
        assert states(encoding, encoding.all_of([here, step]), 1) == {s.state for s in interpreter.steps(state)}


def test_without_actions_there_is_no_step() -> None:
    """The transition of a system without instances is impossible."""
    encoding = Encoding(scalarise(declared(Variable("x", BOOL, (True,)))))
    assert states(encoding, encoding.at(encoding.transition, 0), 0) == set()


@pytest.mark.long
def test_deep_terms_are_translated() -> None:
    """A term nested deeper than Python's limit of recursion keeps its meaning: x negated an even number of times."""
    x, y = b.var("x", RangeSort(0, 1)), b.var("y", RangeSort(0, 1))
    term = x
    for _ in range(3_000):
        term = b.ite(b.eq(term, b.num(0)), b.num(1), b.mod(b.add(term, y), b.num(1)))
    encoding = Encoding(scalarise(declared(Variable("x", x.sort, (0,)), Variable("y", y.sort, (0,)))))
    formula = encoding.all_of([encoding.wellformed, encoding.term(b.eq(term, b.num(1)))])
    assert states(encoding, encoding.at(formula, 0), 0) == {(1, 0), (1, 1)}


def test_an_initial_value_outside_its_sort_is_refused() -> None:
    """The message names the variable, the value and the sort."""
    system = declared(Variable("n", RangeSort(0, 3), (0, 4)))
    with pytest.raises(ModelError, match=r"^n starts as 4, which is not a value of Range\(0, 3\)$"):
        Encoding(scalarise(system))


def test_the_solver_is_loaded_only_when_it_is_used() -> None:
    """Importing the engine does not import the solver, so other commands start without it."""
    code = "import sys, streamproof.symbolic; print('z3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
