"""Promela text of small systems: names, types, initial states, simultaneous updates, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from streamproof.exchange.promela.model import export, promela
from streamproof.exchange.promela.spin_run import SpinOptions, SpinReport, installed, run
from streamproof.exchange.promela.terms import PromelaTerms, declared_type
from streamproof.system import (
    Action,
    BoolSort,
    Check,
    Conjunct,
    EnumSort,
    Expr,
    Fairness,
    Instance,
    Kind,
    ModelError,
    Property,
    RangeSort,
    System,
    SystemFailure,
    TooLarge,
    Variable,
)
from streamproof.system import build as b
from streamproof.system.formula import Atom, Eventually

SMALL = RangeSort(0, 3)


def system(*variables: Variable, updates: dict[str, Expr] | None = None, guard: Expr = b.TRUE, **rest: Any) -> System:
    """One action with one instance."""
    instance = Instance("go", (), (), (Conjunct(guard, "", None),), tuple((updates or {}).items()))
    return System("small", variables, (Action("go", (), Fairness.NONE, (instance,)),), **rest)


def step(text: str) -> list[str]:
    """The statements of the only step, without its guard."""
    lines = [line.strip() for line in text.splitlines()]
    return lines[lines.index("1 ->") + 1 : lines.index("}")]


@pytest.mark.parametrize(
    ("sort", "narrowest"),
    [
        (BoolSort(), "bit"),
        (RangeSort(0, 1), "bit"),
        (RangeSort(1, 1), "bit"),
        (RangeSort(0, 2), "byte"),
        (RangeSort(0, 255), "byte"),
        (RangeSort(0, 256), "short"),
        (RangeSort(-1, 1), "short"),
        (RangeSort(-32_768, 32_767), "short"),
        (RangeSort(0, 32_768), "int"),
        (RangeSort(1 - 2**31, 2**31 - 1), "int"),
        (EnumSort(("A", "B")), "bit"),
        (EnumSort(("A", "B", "C")), "byte"),
    ],
    ids=str,
)
def test_the_narrowest_type_is_declared(sort: Any, narrowest: str) -> None:
    """A state of Spin's is not wider than it must be."""
    assert declared_type(sort) == narrowest


def test_a_single_initial_state_is_declared() -> None:
    """Its values stand in the declarations, and no step comes before it."""
    model = export(system(Variable("n", SMALL, (2,)), Variable("e", EnumSort(("A", "B", "C")), ("C",))))
    assert "byte  s_n = 2;  /* n: 0..3 */" in model.text
    assert "byte  s_e = 2;  /* e: 0 A, 1 B, 2 C */" in model.text
    assert (model.opening, model.candidates, "atomic" in model.text) == (0, 1, False)


def test_several_initial_states_are_chosen() -> None:
    """One choice for each variable that varies, then the condition on them; the opening has one step more."""
    n, m = b.var("n", SMALL), b.var("m", SMALL)
    model = export(system(Variable("n", SMALL, (0, 1)), Variable("m", SMALL, (0, 2, 3)), initially=b.less_eq(n, m)))
    chosen = re.sub(r"\s+", " ", model.text[model.text.index("atomic") : model.text.index("do\n")])
    assert chosen == (
        "atomic { if :: s_n = 0 :: s_n = 1 fi; if :: s_m = 0 :: s_m = 2 :: s_m = 3 fi; end_start: (s_n <= s_m) }; "
    )
    assert (model.opening, model.candidates) == (4, 6)


def test_no_initial_state_is_refused() -> None:
    """A system that cannot begin has nothing to export."""
    with pytest.raises(ModelError, match="small has no initial state"):
        promela(system(Variable("n", SMALL, (0,)), initially=b.eq(b.var("n", SMALL), b.num(1))))


def test_updates_are_put_in_an_order_in_which_no_old_value_is_lost() -> None:
    """What reads a variable comes before what overwrites it."""
    a, c, d = (Variable(name, SMALL, (0,)) for name in "acd")
    text = promela(system(a, c, d, updates={"a": b.num(1), "c": b.var("a", SMALL), "d": b.var("c", SMALL)}))
    assert step(text) == ["s_d = s_c;", "s_c = s_a;", "s_a = 1;"]


def test_values_that_change_places_need_one_auxiliary_variable() -> None:
    """It is set back, so that it does not tell states apart."""
    a, c, d = (Variable(name, SMALL, (0,)) for name in "acd")
    text = promela(system(a, c, d, updates={"a": b.var("c", SMALL), "c": b.var("d", SMALL), "d": b.var("a", SMALL)}))
    assert step(text) == ["t_byte_0 = s_c;", "s_c = s_d;", "s_d = s_a;", "s_a = t_byte_0;", "t_byte_0 = 0;"]
    assert "TEMPORARY byte t_byte_0;" in text


def test_a_question_that_updates_share_is_asked_once() -> None:
    """Then no auxiliary variable is needed though each new value depends on the other old one."""
    a, c = b.var("a", SMALL), b.var("c", SMALL)
    room = b.and_((b.less(a, b.num(3)), b.less(c, b.num(3))))
    text = promela(
        system(
            Variable("a", SMALL, (0,)),
            Variable("c", SMALL, (0,)),
            updates={"a": b.ite(room, b.add(a, b.num(1)), a), "c": b.ite(room, b.add(c, b.num(1)), c)},
        )
    )
    lines = step(text)
    assert lines[0] == "if"
    assert lines[2:] == ["s_a = (s_a + 1);", "s_c = (s_c + 1);", ":: else ->", "skip;", "fi;"]


def test_names_that_differ_only_in_signs_stay_apart() -> None:
    """``a[0]`` and ``a_0`` are two variables of the text."""
    text = promela(system(Variable("a[0]", SMALL, (0,)), Variable("a_0", SMALL, (1,))))
    assert "s_a_0 = 0" in text
    assert "s_a_0_2 = 1" in text


def test_integers_beyond_32_bits_are_refused() -> None:
    """A product that may overflow would be counted wrongly by Spin."""
    n = b.var("n", RangeSort(0, 100_000))
    with pytest.raises(TooLarge, match=r"from 0 to 10000000000 does not fit Promela's 32 bits"):
        promela(system(Variable("n", n.sort, (0,)), guard=b.less(b.mul(n, n), b.num(7))))


def test_terms_that_grow_too_long_are_refused() -> None:
    """Parts that occur again are written again: a limit comes before memory runs out."""
    n = b.var("n", RangeSort(-1, 1))
    term: Expr = n
    for _ in range(60):
        term = b.mod(term, b.add(term, n))
    with pytest.raises(TooLarge, match="operators and operands in Promela"):
        PromelaTerms({n: "n"}).text(term)


needs_spin = pytest.mark.skipif(installed() is not None, reason=f"needs Spin: {installed()}")
QUICK = SpinOptions(hash_bits=12, depth=10_000, optimise="-O0")


@needs_spin
def test_division_rounds_down_and_by_zero_is_zero() -> None:
    """Spin itself finds Python's quotient and remainder for every pair of numbers from -4 to 4."""
    number = RangeSort(-4, 4)
    x, y, q, r = (b.var(name, number) for name in "xyqr")
    table = b.or_(
        b.and_((b.eq(x, b.num(i)), b.eq(y, b.num(j)), b.eq(q, b.num(quotient)), b.eq(r, b.num(remainder))))
        for i in range(-4, 5)
        for j in range(-4, 5)
        for quotient, remainder in [divmod(i, j) if j else (0, 0)]
    )
    ready = b.var("ready", BoolSort())
    model = export(
        system(
            Variable("x", number, tuple(range(-4, 5))),
            Variable("y", number, tuple(range(-4, 5))),
            Variable("q", number, (0,)),
            Variable("r", number, (0,)),
            Variable("ready", BoolSort(), (False,)),
            updates={"q": b.floor_div(x, y), "r": b.mod(x, y), "ready": b.TRUE},
            guard=b.not_(ready),
            properties=(
                Property("right", Kind.INVARIANT, b.or_((b.not_(ready), table))),
                Property("never_ready", Kind.INVARIANT, b.not_(ready)),
            ),
        )
    )
    assert run(model, QUICK, ["CHECK_ALL"]).found.keys() == {"assertion violated found_never_ready"}


@needs_spin
def test_steps_that_are_never_possible_are_left_out() -> None:
    """A model in which nothing can happen is still one."""
    report = run(export(system(Variable("n", SMALL, (0,)), guard=b.FALSE)), QUICK)
    assert (report.stored, report.matched, report.depth, dict(report.found)) == (1, 0, 0, {})


@needs_spin
def test_the_head_says_what_is_left_out() -> None:
    """Fairness and temporal properties; the documentation of an action stands before its steps."""
    one = system(Variable("n", SMALL, (0,)), updates={"n": b.num(1)})
    live = Property("live", Kind.TEMPORAL, b.TRUE, formula=Eventually(Atom(b.eq(b.var("n", SMALL), b.num(1)))))
    action = replace(one.actions[0], fairness=Fairness.WEAK, doc="Counts */\n on.")
    text = promela(replace(one, actions=(action,), properties=(live,)))
    assert " *   temporal properties, which have texts of their own: live\n" in text
    assert " *   fairness, which those texts have as a part of the claim: go\n" in text
    assert "  /* Counts * / on. */\n  :: d_step {  /* go() */" in text
    assert "Left out" not in promela(one)


def test_what_spin_or_the_compiler_refuses_is_said() -> None:
    """The first error is shown with the command."""
    model = export(system(Variable("n", SMALL, (0,))))
    with pytest.raises(
        SystemFailure, match=r"spin failed: spin: model\.pml:\d+, Error: .*\n  the command was: spin -a"
    ):
        run(replace(model, text=model.text + "}"), QUICK)
    with pytest.raises(SystemFailure, match=r"cc failed: .*error.*\n  the command was: cc"):
        run(model, replace(QUICK, optimise="--no-such-option"))


@needs_spin
def test_a_mistake_of_the_model_is_asserted() -> None:
    """Where a check of the model fires, the step is not taken, and Spin says so."""
    n = b.var("n", SMALL)
    instance = Instance(
        "go",
        (),
        (),
        (),
        (("n", b.add(n, b.num(1))),),
        effect_checks=(Check(b.less_eq(b.num(3), n), "too large", None),),
    )
    model = export(System("small", (Variable("n", SMALL, (0,)),), (Action("go", (), Fairness.NONE, (instance,)),)))
    report = run(model, QUICK)
    assert report.found == {"assertion violated mistake_of_the_model": 3}
    assert report.stored == 4


def test_without_spin_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing program is one sentence and a remedy."""
    monkeypatch.setattr("streamproof.exchange.promela.spin_run.shutil.which", lambda program: None)
    with pytest.raises(SystemFailure, match="program not found: 'spin'\n  install Spin and a C compiler"):
        run(export(system(Variable("n", SMALL, (0,)))), SpinOptions())


@needs_spin
def test_a_search_that_takes_too_long_is_ended() -> None:
    """The limit on time is an error, never an answer."""
    with pytest.raises(SystemFailure, match=r"did not finish within 0\.001 s"):
        run(export(system(Variable("n", SMALL, (0,)))), SpinOptions(seconds=0.001))


@needs_spin
def test_where_the_time_went_is_told() -> None:
    """Translation, compilation and search are measured one by one."""
    report: SpinReport = run(export(system(Variable("n", SMALL, (0,)))), QUICK)
    assert 0 < report.seconds.spin < report.seconds.cc < report.seconds.total
    assert [command.split()[0] for command in report.commands] == ["spin", "cc", "./pan"]
    assert report.megabytes > 0
