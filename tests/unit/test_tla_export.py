"""TLA+ text of small systems: names, values, families of instances, what is asked first, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamproof.exchange.tla.layout import Bind, Text, atom, beside, bulleted, closed, listed
from streamproof.exchange.tla.module import Means, export, module_name
from streamproof.exchange.tla.names import TlaNames, field_name, identifier, string
from streamproof.exchange.tla.values import belongs, initial, literal, resting, type_text
from streamproof.model_registry import find
from streamproof.system import (
    Action,
    ArraySort,
    BoolSort,
    Check,
    Conjunct,
    EnumSort,
    Expr,
    Fairness,
    Instance,
    Kind,
    ModelError,
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
from streamproof.system.formula import Always, Atom, Eventually, Formula, LeadsTo, Recurs, Release, Until

SMALL = RangeSort(0, 3)
N = b.var("n", SMALL)
START = Variable("n", SMALL, (0,))


def conjuncts(*terms: Expr) -> tuple[Conjunct, ...]:
    """Terms as a guard."""
    return tuple(Conjunct(t, "", None) for t in terms)


def system(*instances: Instance, variables: tuple[Variable, ...] = (START,), **rest: Any) -> System:
    """One action with these instances."""
    fairness = rest.pop("fairness", Fairness.NONE)
    return System("small", variables, (Action("go", (), fairness, instances),), **rest)


def text(of: System) -> str:
    """The text of the model's own module."""
    model = export(of)
    return model.modules[model.module]


def definition(of: System, name: str) -> str:
    """The lines of one definition, with what stands on the left of `==`."""
    lines = text(of).splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(name) and line.endswith("=="))
    end = next(k for k in range(start + 1, len(lines)) if not lines[k].startswith(" "))
    return "\n".join(lines[start:end])


def go(guard: tuple[Expr, ...] = (), update: Expr | None = None, **args: Any) -> Instance:
    """An instance that changes `n`, or nothing."""
    return Instance("go", tuple(args.items()), (), conjuncts(*guard), (("n", update),) if update is not None else ())


# --- names


def test_identifiers_are_those_of_tla() -> None:
    """Other characters become underscores, and an identifier has a letter and no prefix that fairness has."""
    assert [identifier(t) for t in ("a-b", "B<A>B", "_1", "1", "WF_x", "größe")] == [
        "a_b",
        "B_A_B",
        "x_1",
        "x1",
        "x_WF_x",
        "gr_e",
    ]


@pytest.mark.parametrize("word", ["IF", "Len", "Init", "vars", "INVARIANT", "Seq", "SUBSET", "Naturals", "any"])
def test_words_that_mean_something_are_not_given(word: str) -> None:
    """A word of the language, of standard modules, of configurations or of the export itself gets a number."""
    assert TlaNames().new(word) == f"{word}_2"


def test_bound_names_are_those_of_nothing_declared() -> None:
    """A parameter that is called as a variable gets another name, the same for every operator."""
    names = TlaNames()
    assert names.new("p") == "p"
    assert (names.bound("p"), names.bound("p"), names.new("p")) == ("p_2", "p_2", "p_3")


def test_fields_may_not_be_reserved_words() -> None:
    """And stay different from each other."""
    assert field_name("IN", ("IN", "IN_")) == "IN_"
    assert field_name("IN_", ("IN", "IN_")) == "IN__"


def test_strings_are_plain_ascii_and_stay_different() -> None:
    """What TLA+ would have to escape, or may not have, is written by its number; so is the sign of such numbers."""
    assert [string(t) for t in ("a b", 'a"', "a\\", "é", "%e9;")] == [
        '"a b"',
        '"a%22;"',
        '"a%5c;"',
        '"%e9;"',
        '"%25;e9;"',
    ]


@pytest.mark.parametrize(
    ("name", "variant", "module"),
    [
        ("reference.die_hard", None, "die_hard"),
        ("failover", "no-fence", "failover_no_fence"),
        ("tlc", None, "tlc_model"),
    ],
)
def test_modules_are_called_as_their_models(name: str, variant: str | None, module: str) -> None:
    """Without the package, with the variant, and never as a standard module, whatever the case of file names."""
    assert module_name(System(name, (START,), (), variant=variant)) == module


# --- values

PAIR = RecordSort((("a", SMALL), ("b", BoolSort())))


@pytest.mark.parametrize(
    ("sort", "value", "written"),
    [
        (RangeSort(-2, 2), -2, "(-2)"),
        (PAIR, (1, True), "[a |-> 1, b |-> TRUE]"),
        (OptionSort(SMALL), 2, "Some(2)"),
        (OptionSort(SMALL), None, "None(0)"),
        (OptionSort(RangeSort(1, 3)), None, "None(0)"),
        (ArraySort(SMALL, BoolSort()), (True,) * 4, "[any \\in 0..3 |-> TRUE]"),
        (ArraySort(RangeSort(0, 1), SMALL), (1, 2), "(0 :> 1 @@ 1 :> 2)"),
        (
            ArraySort(RangeSort(0, 1), ArraySort(BoolSort(), SMALL)),
            ((1, 1), (1, 1)),
            "[any \\in 0..1 |-> [any1 \\in BOOLEAN |-> 1]]",
        ),
        (QueueSort(SMALL, 2), (1, 2), "<<1, 2>>"),
        (SetSort(SMALL), frozenset({2, 1}), "{1, 2}"),
        (RecordSort(()), (), '"unit"'),
    ],
)
def test_values_are_constants_of_tla(sort: Sort, value: Any, written: str) -> None:
    """Every sort has its literals; nested functions bind different names."""
    assert literal(sort, value).lines == (written,)


def test_options_of_comparable_sorts_are_absent_alike() -> None:
    """The value beside `None` does not depend on ranges, which may differ where options are compared."""
    one = OptionSort(RecordSort((("a", RangeSort(2, 5)), ("b", EnumSort(("X", "Y"))))))
    other = OptionSort(RecordSort((("a", RangeSort(-1, 1)), ("b", EnumSort(("X", "Y"))))))
    assert resting(one.element) == resting(other.element) == (0, "X")
    assert literal(one, None) == literal(other, None)


def test_integers_that_tlc_does_not_have_are_refused() -> None:
    """TLC's are 32 bits wide."""
    with pytest.raises(TooLarge, match="2147483648 does not fit TLC's 32-bit integers"):
        literal(RangeSort(0, 2**31), 2**31)


@pytest.mark.parametrize(
    ("sort", "first", "written"),
    [
        (SMALL, (0, 1, 2, 3), "0..3"),
        (SMALL, (2, 0), "{2, 0}"),
        (ArraySort(SMALL, BoolSort()), tuple((x,) * 4 for x in (False, True)), None),
        (ArraySort(RangeSort(0, 1), SMALL), ((1, 1), (1, 2), (2, 1), (2, 2)), "[0..1 -> 1..2]"),
        (PAIR, ((1, True), (1, False)), "[a: {1}, b: BOOLEAN]"),
    ],
)
def test_initial_values_are_products_where_they_can_be(sort: Sort, first: tuple[Any, ...], written: str | None) -> None:
    """Otherwise they are written one by one."""
    lines = "".join(initial(sort, first).lines)
    assert lines == written if written is not None else lines.startswith("{[any")


def test_the_type_of_a_value_is_the_condition_that_it_belongs_to_its_sort() -> None:
    """Sets of queues and of options are not built: their values are looked at one by one."""
    assert belongs(atom("x"), SetSort(PAIR)).lines == ("x \\in SUBSET [a: 0..3, b: BOOLEAN]",)
    assert belongs(atom("q"), QueueSort(SMALL, 2)).lines == (
        "/\\ Len(q) <= 2",
        "/\\ \\A at \\in DOMAIN q : q[at] \\in 0..3",
    )
    assert type_text(ArraySort(SMALL, ArraySort(BoolSort(), OptionSort(SMALL)))) == (
        "Int -> (Bool -> { tag: Str, value: Int })"
    )


# --- layout


def test_lists_stay_to_the_right_of_their_signs() -> None:
    """A list inside a list moves as a whole, and what is loose gets parentheses only where it stands in a line."""
    long = bulleted("\\/", [atom("x"), atom("y")])
    assert bulleted("/\\", [atom("a"), long]).lines == ("/\\ a", "/\\ \\/ x", "   \\/ y")
    assert beside("~", closed(long, Bind.ATOM)).lines == ("~(\\/ x", "  \\/ y)")
    loose = Text(("IF a THEN b ELSE c",), Bind.LOOSE)
    assert listed("/\\", [atom("a"), loose]).lines == ("a /\\ (IF a THEN b ELSE c)",)


# --- actions


def test_instances_that_differ_in_their_parameter_are_one_operator() -> None:
    """The constant that is the parameter is written as it, one beside it by its distance, in a ring by a remainder."""
    made = system(*(go((b.eq(N, b.num(p)),), b.num((p + 1) % 3), p=p) for p in range(3)))
    assert definition(made, "go") == "go(p) ==\n    /\\ n = p\n    /\\ n' = (p + 1) % 3"
    assert definition(made, "Next") == "Next ==\n    \\/ \\E p \\in 0..2 : go(p)"
    shifted = system(*(go((b.eq(N, b.num(p)),), b.num(p + 1), p=p) for p in range(3)))
    assert "n' = p + 1" in definition(shifted, "go")


def test_constants_that_follow_no_rule_stand_in_a_table() -> None:
    """A function of the parameters that they depend on."""
    made = system(*(go((), b.num(v), p=p) for p, v in enumerate((2, 0, 3, 1))))
    assert "n' = table1[p]" in definition(made, "go")
    assert definition(made, "table1") == "table1 ==\n    0 :> 2 @@ 1 :> 0 @@ 2 :> 3 @@ 3 :> 1"


def test_tables_of_two_parameters_are_functions_of_functions() -> None:
    """Defined for all combinations, those that no instance has included."""
    values = {(0, 0): 2, (0, 1): 0, (1, 0): 3}
    made = system(*(go((), b.num(v), p=p, q=q) for (p, q), v in values.items()))
    assert "n' = table1[p][q]" in definition(made, "go")
    assert definition(made, "table1") == "table1 ==\n    0 :> (0 :> 2 @@ 1 :> 0) @@ 1 :> (0 :> 3 @@ 1 :> 2)"


def test_instances_of_other_shapes_are_operators_of_their_own() -> None:
    """And so are those that no parameter tells apart, which a quantifier would take for one."""
    made = system(go((), b.num(1), p=0), go((b.eq(N, b.num(1)),), b.num(2), p=1))
    assert definition(made, "Next") == "Next ==\n    \\/ go_0\n    \\/ go_1"
    twice = system(go((), b.num(1)), go((), b.num(1)))
    assert definition(twice, "Next") == "Next ==\n    \\/ go\n    \\/ go_2"


def test_parameters_that_are_no_product_are_bound_together() -> None:
    """Only the combinations that there are."""
    made = system(*(go((b.eq(N, b.num(p)),), b.num(q), p=p, q=q) for p, q in ((0, 1), (1, 0), (1, 2))))
    assert definition(made, "Next") == "Next ==\n    \\/ \\E <<p, q>> \\in {<<0, 1>>, <<1, 0>>, <<1, 2>>} : go(p, q)"
    others = system(*(go((), b.num(q), p=p, q=q) for p in range(3) for q in range(3) if p != q))
    assert definition(others, "Next") == "Next ==\n    \\/ \\E p \\in 0..2 : \\E q \\in (0..2) \\ {p} : go(p, q)"


def test_a_guard_is_never_split() -> None:
    """A disjunction is compared with TRUE, and so is a long guard, which is an operator of its own."""
    made = system(go((b.or_((b.eq(N, b.num(0)), b.less(N, b.num(2)))),), b.num(1)))
    assert definition(made, "go").splitlines()[1] == "    /\\ (n = 0 \\/ n < 2) = TRUE"
    several = [b.not_(b.eq(N, b.mul(N, b.num(k)))) for k in (2, 4)]
    long = system(go((*several, *(b.less(N, b.mul(N, b.add(N, b.num(k)))) for k in (2, 3, 5, 7, 9))), b.num(1)))
    assert definition(long, "can_go").splitlines()[1] == "    /\\ n # n * 2"
    assert definition(long, "go").splitlines()[1] == "    /\\ can_go = TRUE"


def test_a_name_of_the_model_may_be_one_of_ours() -> None:
    """Variables, parameters and actions called as something else get a number, and are known by their own names."""
    sort = RangeSort(0, 1)
    variables = (Variable("vars", sort, (0,)), Variable("c", sort, (0,)))
    instances = tuple(Instance("Next", (("c", k),), (), (), (("c", b.num(k)),)) for k in (0, 1))
    made = System("m", variables, (Action("Next", ("c",), Fairness.NONE, instances),))
    model = export(made)
    assert model.variables == {"vars": "vars_2", "c": "c"}
    assert model.actions == {"Next_2": "Next"}
    assert "Next_2(c_2) ==\n    /\\ c' = c_2\n    /\\ UNCHANGED vars_2" in model.modules["m"]


def test_fairness_is_owed_for_each_choice_of_parameters_whatever_the_picks() -> None:
    """One formula for each argument, with the picks under a quantifier or in a disjunction."""
    each = tuple(Instance("go", (("p", p),), (("q", q),), (), (("n", b.num(p + q)),)) for p in (0, 1) for q in (0, 2))
    made = system(*each, fairness=Fairness.STRONG)
    assert definition(made, "Fairness") == (
        "Fairness ==\n    /\\ \\A p \\in 0..1 : SF_vars(\\E q \\in {0, 2} : go(p, q))"
    )
    partly = tuple(replace(i, fair=i.args != (("p", 0),) or i.picks == (("q", 2),)) for i in each)
    assert definition(system(*partly, fairness=Fairness.STRONG), "Fairness") == (
        "Fairness ==\n    /\\ SF_vars(go(0, 2))\n    /\\ SF_vars(go(1, 0) \\/ go(1, 2))"
    )
    alone = system(go((), b.num(1), p=0), go((), b.num(2), p=1), fairness=Fairness.WEAK)
    assert definition(alone, "Fairness") == "Fairness ==\n    /\\ \\A p \\in 0..1 : WF_vars(go(p))"


# --- terms

QUEUE = b.var("q", QueueSort(SMALL, 2))
OPTION = b.var("o", OptionSort(RangeSort(1, 3)))
FULL = b.not_(b.less(b.length(QUEUE), b.num(2)))
WITH_QUEUE = (START, Variable("q", QUEUE.sort, ((),)), Variable("o", OPTION.sort, (None,)))


def update(name: str, term: Expr, *guard: Expr, checks: tuple[Check, ...] = ()) -> str:
    """What an update is written as."""
    instance = Instance("go", (), (), conjuncts(*guard), ((name, term),), effect_checks=checks)
    lines = definition(system(instance, variables=WITH_QUEUE), "go").splitlines()
    return next(line for line in lines if f"{name}' = " in line).split(" = ", 1)[1]


def test_what_may_have_no_value_is_asked_for_first() -> None:
    """Queues that may be empty or full, options that may be absent, divisors that may be zero or negative."""
    assert update("q", b.push(QUEUE, N)) == "IF Len(q) < 2 THEN Append(q, n) ELSE q"
    assert update("q", b.pop(QUEUE)) == "IF q = <<>> THEN q ELSE Tail(q)"
    assert update("n", b.peek(QUEUE, b.num(0))) == "IF q # <<>> THEN Head(q) ELSE 0"
    assert update("n", b.unwrap(OPTION)) == 'IF o.tag = "Some" THEN o.value ELSE 1'
    assert update("n", b.floor_div(b.num(3), N)) == "FloorDiv(3, n)"


def test_what_the_guard_or_a_check_excludes_is_not_asked_for() -> None:
    """Under the guard that there is room, or the check that there must be, nothing else is possible."""
    assert update("q", b.push(QUEUE, N), b.not_(FULL)) == "Append(q, n)"
    assert update("q", b.push(QUEUE, N), checks=(Check(FULL, "full", None),)) == "Append(q, n)"
    assert update("q", b.pop(QUEUE), b.less(b.num(0), b.length(QUEUE))) == "Tail(q)"
    assert update("n", b.unwrap(OPTION), b.not_(b.is_none(OPTION))) == "o.value"
    assert update("n", b.floor_div(b.num(3), N), b.less(b.num(0), N)) == "3 \\div n"


def test_arithmetic_keeps_its_grouping() -> None:
    """TLA+ has no precedence between some operators, so operands are in parentheses."""
    assert update("n", b.mul(b.add(N, b.num(1)), b.sub(N, b.num(2)))) == "(n + 1) * (n - 2)"
    assert update("n", b.sub(N, b.sub(N, b.num(1)))) == "n - (n - 1)"
    assert update("n", b.add(b.add(N, N), N)) == "n + n + n"


def test_parts_that_occur_again_are_named() -> None:
    """A heavy part is written once, before the updates that use it."""
    heavy = b.mul(b.add(N, b.num(1)), b.add(b.mul(N, N), b.mul(N, b.num(300))))
    made = system(go((), b.ite(b.less(heavy, b.num(9)), heavy, b.sub(heavy, b.num(1)))))
    assert definition(made, "go").splitlines() == [
        "go ==",
        "    /\\ n' = LET t1 == (n + 1) * ((n * n) + (n * 300))",
        "            IN  IF t1 < 9 THEN t1 ELSE t1 - 1",
    ]


def test_parts_that_differ_in_an_index_are_quantified() -> None:
    """Three or more conditions of one shape, and comparisons of one term with constants as a set."""
    array = b.var("a", ArraySort(SMALL, SMALL))
    every = b.and_(b.less(b.select(array, b.num(k)), b.num(2)) for k in range(4))
    one = b.or_(b.eq(b.select(array, b.num(0)), b.num(k)) for k in (0, 2))
    variables = (Variable("a", array.sort, ((0, 0, 0, 0),)),)
    properties = (Property("p", Kind.INVARIANT, every), Property("q", Kind.INVARIANT, one))
    made = system(Instance("go", (), (), (), ()), variables=variables, properties=properties)
    assert definition(made, "p") == "p ==\n    \\A i \\in 0..3 : a[i] < 2"
    assert definition(made, "q") == "q ==\n    a[0] \\in {0, 2}"


# --- properties


def claims(of: System) -> list[tuple[str, str, Means]]:
    """What TLC is asked: configuration, name, and what it means that it is violated."""
    return [(run.name, c.name, c.means) for run in export(of).runs for c in run.claims if c.property is not None]


def test_reachability_is_an_invariant_in_a_configuration_of_its_own() -> None:
    """So that what must hold can be checked to the end."""
    made = system(go((), b.num(1)), properties=(Property("seen", Kind.REACHABLE, b.eq(N, b.num(1))),))
    assert claims(made) == [("small_seen", "unreached_seen", Means.REACHED)]
    assert definition(made, "unreached_seen") == "unreached_seen ==\n    n # 1"
    assert export(made).files["small.cfg"].splitlines()[2:] == [
        "SPECIFICATION Spec",
        "CHECK_DEADLOCK FALSE",
        "INVARIANT TypeOK",
    ]


def test_a_deadlock_is_a_state_without_an_enabled_instance_that_is_no_end() -> None:
    """One invariant, of guards and the terminal states; TLC does not look for deadlocks by itself."""
    made = system(
        go((b.less(N, b.num(2)),), b.num(1)),
        properties=(Property("deadlock", Kind.DEADLOCK, b.TRUE),),
        terminal=b.eq(N, b.num(3)),
    )
    assert definition(made, "deadlock") == "deadlock ==\n    \\/ n < 2\n    \\/ n = 3"


def test_steps_that_change_nothing_are_looked_for_in_states() -> None:
    """TLA+ takes them for none; where a property may be false of them, an invariant says so."""
    strict = Property("grows", Kind.STEP, b.less(N, b.next_("n", SMALL)))
    lax = Property("stays", Kind.STEP, b.less_eq(N, b.next_("n", SMALL)))
    idle = system(go((), b.num(1)), properties=(strict, lax))
    assert [name for _, name, _ in claims(idle)] == ["grows", "grows_idle", "stays"]
    assert definition(idle, "grows_idle") == "grows_idle ==\n    (ENABLED (Next /\\ UNCHANGED vars)) => vars # vars"
    moving = system(go((b.eq(N, b.num(0)),), b.num(1)), properties=(strict,))
    assert [name for _, name, _ in claims(moving)] == ["grows"]


def test_termination_is_asked_of_unfair_behaviours_too() -> None:
    """Fairness would hide behaviours that go on for ever, so it has a configuration without it."""
    ends = Property("ends", Kind.TERMINATION, b.TRUE)
    fair = system(go((b.eq(N, b.num(0)),), b.num(1)), properties=(ends,), fairness=Fairness.WEAK)
    assert claims(fair) == [("small_ends", "ends", Means.VIOLATED)]
    assert "SPECIFICATION UnfairSpec" in export(fair).files["small_ends.cfg"]
    unfair = system(go((b.eq(N, b.num(0)),), b.num(1)), properties=(ends,))
    assert claims(unfair) == [("small", "ends", Means.VIOLATED)]


def test_mistakes_of_the_model_are_an_invariant() -> None:
    """Checks of guards in every state, those of effects where the instance is enabled; what cannot happen is left out."""
    instance = Instance(
        "go",
        (),
        (),
        conjuncts(b.less(N, b.num(3))),
        (("n", b.add(N, b.num(1))),),
        (Check(b.eq(N, b.num(2)), "guard", None),),
        (Check(b.eq(N, b.num(1)), "effect", None), Check(b.eq(N, b.num(3)), "never", None)),
    )
    made = system(instance)
    assert definition(made, "NoMistake") == "NoMistake ==\n    /\\ ~(n = 2)\n    /\\ ~(n < 3 /\\ n = 1)"
    assert export(made).files["small_states.cfg"].endswith("INVARIANT NoMistake\n")
    assert "NoMistake" not in text(system(go((), b.num(1))))


def test_a_property_says_nothing_where_evaluating_it_is_a_mistake() -> None:
    """The mistake is an invariant of its own, before the property."""
    checks = (Check(b.eq(N, b.num(2)), "wrong", None),)
    made = system(go((), b.num(1)), properties=(Property("p", Kind.INVARIANT, b.less(N, b.num(2)), checks=checks),))
    assert claims(made) == [("small", "sane_p", Means.MISTAKE), ("small", "p", Means.VIOLATED)]
    assert definition(made, "p") == "p ==\n    sane_p => n < 2"


def test_conditions_never_look_constant() -> None:
    """TLC refuses an invariant that is equal to FALSE."""
    made = system(go((), b.num(1)), properties=(Property("p", Kind.INVARIANT, b.FALSE),))
    assert definition(made, "p") == "p ==\n    vars # vars"


def temporal(formula: Formula, fairness: Fairness = Fairness.NONE) -> System:
    """A system with one temporal property."""
    prop = Property("p", Kind.TEMPORAL, b.TRUE, formula=formula)
    return system(go((), b.num(1)), properties=(prop,), fairness=fairness)


ZERO, ONE = Atom(b.eq(N, b.num(0))), Atom(b.eq(N, b.num(1)))


@pytest.mark.parametrize(
    ("formula", "written"),
    [
        (Always(Eventually(ONE)), "[](<>(n = 1))"),
        (LeadsTo(ZERO, ONE), "(n = 0) ~> (n = 1)"),
        (Always(LeadsTo(ZERO, ONE)), "[]((n = 0) ~> (n = 1))"),
        (Recurs(b.less(N, b.next_("n", SMALL))), "[]<><<(n < n')>>_vars"),
        (Eventually(Atom(b.TRUE)), "vars = vars"),
        (LeadsTo(Atom(b.TRUE), ONE), "[](<>(n = 1))"),
        (Until(Atom(b.TRUE), ONE), "<>(n = 1)"),
        (Release(Atom(b.FALSE), ONE), "[](n = 1)"),
    ],
)
def test_formulas_have_tlas_operators_and_no_constants(formula: Formula, written: str) -> None:
    """TLC makes wrong verdicts of constants in temporal formulas, so they are folded away."""
    assert definition(temporal(formula), "p") == f"p ==\n    {written}"


def test_until_is_a_guess_in_a_module_of_its_own() -> None:
    """The model's module stays as it is; a guess agrees with its state, is handed on, and promises nothing for ever."""
    model = export(temporal(Until(ZERO, ONE), Fairness.WEAK))
    assert list(model.modules) == ["small", "small_p"]
    assert "until" not in model.modules["small"]
    module = model.modules["small_p"]
    for line in (
        "EXTENDS small",
        "    /\\ n = 1 => until",
        "    /\\ until => (n = 1 \\/ n = 0)",
        "    /\\ ((n = 0 /\\ ~(n = 1)) => until' = until) = TRUE",
        "    /\\ [][NextWatched]_<<vars, until>>",
        "    /\\ Fairness",
        "    /\\ []<>(~until \\/ n = 1)",
        "    <>(until /\\ ~until) \\/ until",
    ):
        assert line in module.splitlines(), line
    assert [(run.name, run.specification) for run in model.runs[2:]] == [("small_p", "SpecWatched")]


def test_what_has_no_text_is_named() -> None:
    """A promise about steps inside until is left out, and said to be."""
    model = export(temporal(Until(Recurs(b.less(N, b.next_("n", SMALL))), ONE)))
    assert model.left_out == ("p",)
    assert "\\* p is left out" in model.modules["small"]
    assert [c.property for run in model.runs for c in run.claims] == [None]


# --- the whole


def test_comments_are_plain(relay: System) -> None:
    """Documentation of actions and properties stands before them, in ASCII."""
    action = replace(relay.actions[0], doc="Sends \u2013 at once.\n\nMore.")
    lines = text(replace(relay, actions=(action, *relay.actions[1:]))).splitlines()
    at = lines.index("\\* Sends ? at once.")
    assert lines[at + 1 : at + 3] == ["\\* More.", "send(c) =="]
    assert "\\* Every stop is a terminal state." in lines


def test_only_what_is_used_is_extended() -> None:
    """A module of numbers alone extends Integers alone."""
    assert "EXTENDS Integers\n" in text(system(go((), b.num(1))))
    members = b.var("s", SetSort(SMALL))
    sized = system(
        Instance("go", (), (), conjuncts(b.less(b.size(members), b.num(2))), ()),
        variables=(Variable("s", members.sort, (frozenset(),)),),
    )
    assert "EXTENDS Integers, FiniteSets\n" in text(sized)


def test_a_system_without_variables_is_refused() -> None:
    """TLA+ has no specification of nothing."""
    with pytest.raises(ModelError, match="without variables"):
        export(System("nothing", (), ()))


def test_a_model_in_which_nothing_can_happen_has_a_next_step_that_is_false() -> None:
    """An action whose guard is false has no operator."""
    assert definition(system(go((b.FALSE,), b.num(1))), "Next") == "Next ==\n    FALSE"


def test_configurations_have_names_of_their_own() -> None:
    """A property that is called as the configuration for counting does not replace it."""
    made = system(go((), b.num(1)), properties=(Property("states", Kind.REACHABLE, b.eq(N, b.num(1))),))
    assert list(export(made).files) == ["small.tla", "small.cfg", "small_states.cfg", "small_states_2.cfg"]


def test_every_configuration_asks_whether_the_model_makes_a_mistake() -> None:
    """Also that of a module of its own: what follows a mistake means nothing."""
    checked = Instance("go", (), (), (), (("n", b.num(1)),), (Check(b.eq(N, b.num(2)), "guard", None),))
    until = Property("p", Kind.TEMPORAL, b.TRUE, formula=Until(ZERO, ONE))
    made = system(checked, properties=(until, Property("q", Kind.REACHABLE, b.eq(N, b.num(1)))))
    runs = export(made).runs
    assert [run.name for run in runs] == ["small", "small_states", "small_p", "small_q"]
    for run in runs:
        assert "NoMistake" in [c.name for c in run.claims], run.name


def test_memberships_are_not_taken_for_bound_names() -> None:
    """In brackets and braces, ``x \\in S`` would begin a function or a set of those that have a property."""
    members = b.var("s", SetSort(BoolSort()))
    flag = b.var("f", BoolSort())
    inside = b.member(members, flag)
    variables = (Variable("s", members.sort, (frozenset(),)), Variable("f", BoolSort(), (False,)))
    made = system(
        Instance("go", (), (), (), (("s", b.insert(members, inside)),)),
        variables=variables,
        properties=(Property("p", Kind.STEP, inside),),
    )
    assert "s' = s \\cup {(f \\in s)}" in definition(made, "go")
    assert definition(made, "p") == "p ==\n    [][(f \\in s)]_vars"


def test_a_value_added_to_a_bag_is_one_replacement() -> None:
    """A bag of records is a function; adding a value that depends on the state replaces one element."""
    written = text(find("reference.three_way_handshake").spec.system(None))
    assert 'EXCEPT ![[flags |-> "SYN+ACK", x |-> 2, y |-> y + 1]] = @ + 1]' in written
    assert len(written) < 60_000
