"""Models: parameters, variants, rules and their domains, choices, and what becomes of them in the system."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

import pytest

import streamproof
from streamproof import (
    ANY,
    STRONG,
    WEAK,
    Array,
    Bool,
    Enum,
    Model,
    Range,
    Set,
    Spec,
    State,
    UsageError,
    action,
    any_of,
    choose,
    initially,
    invariant,
    lemma,
    refines,
    require,
    step,
    terminal,
)
from streamproof.language.declare.spec import compile_model, compile_unbounded
from streamproof.language.free.grounding import Rules
from streamproof.language.native.native import Native
from streamproof.system import Conjunct, Fairness, Interpreter, Kind, ModelError
from streamproof.system.build import TRUE
from streamproof.system.sorts import values


class Pump(Model):
    """Moves water from a well into tanks."""

    tanks: int = 2
    size: int = 3
    greedy: bool = False
    label: str = "pump"
    sizes = {"small": {"tanks": 1}}  # noqa: RUF012

    def setup(self):
        """Derived parameters."""
        self.inner = range(1, self.tanks)

    @cached_property
    def half(self):
        """Computed once, when it is first asked for."""
        return self.size // 2

    def state(self):
        """The variables."""
        return State(
            level=Array(range(self.tanks), Range(0, self.size)),
            mode=Enum("off", "on"),
            marks=Set(Range(0, 1)),
        )

    @action(t="tanks", fairness=WEAK)
    def fill(self, s, t):
        """One unit goes into a tank."""
        require(s.mode == "on" and s.level[t] < self.size)
        s.level[t] += 1

    @action(t="inner", fairness=STRONG)
    def drain(self, s, t):
        """An inner tank empties."""
        require(s.level[t] > self.half)
        s.level[t] = 0

    @action
    def switch(self, s):
        """On or off, perhaps with a mark."""
        to = choose(["off", "on"])
        if s.mode == "off":
            s.marks.add(choose([0, 1]))
        s.mode = to

    @invariant
    def bounded(self, s):
        """Nothing overflows."""
        return all(v <= self.size for v in s.level) and len(s.marks) <= 2

    @step
    def one_at_a_time(self, s, t):
        """A step changes one tank at most."""
        return sum(s.level[i] != t.level[i] for i in range(self.tanks)) <= 1

    @lemma
    def marked(self, s):
        """Marks come before water."""
        return s.level[0] == 0 or len(s.marks) > 0

    @terminal
    def full(self, s):
        """All tanks are full."""
        return all(v == self.size for v in s.level)


class Careless(Pump, variant="careless"):
    """Fills without looking."""

    def fill(self, s, t):
        """The guard on the level is left out."""
        require(s.mode == "on")
        s.level[t] += 1


class Eager(Pump, variant="eager"):
    """Fills a second tank too."""

    def fill(self, s, t):
        """The inner tank is filled as well, if it has room."""
        super().fill(s, t)
        if s.level[1] < self.size:
            s.level[1] += 1


def test_the_system_has_what_the_model_declares() -> None:
    """Names, order, fairness, kinds, documentation and parameters arrive in the system."""
    system = Pump.system(size=2)
    assert system.name == "pump"
    assert system.parameters == {"tanks": 2, "size": 2, "greedy": False, "label": "pump"}
    assert [(a.name, a.parameters, a.fairness) for a in system.actions] == [
        ("fill", ("t",), Fairness.WEAK),
        ("drain", ("t",), Fairness.STRONG),
        ("switch", (), Fairness.NONE),
    ]
    assert [(p.name, p.kind, p.doc) for p in system.properties] == [
        ("bounded", Kind.INVARIANT, "Nothing overflows."),
        ("one_at_a_time", Kind.STEP, "A step changes one tank at most."),
        ("deadlock", Kind.DEADLOCK, "Every reachable state has a successor or is terminal."),
    ]
    assert [p.name for p in system.lemmas] == ["marked"]
    assert [i.label for i in system.action("fill").instances] == ["fill(t=0)", "fill(t=1)"]
    assert [i.label for i in system.action("drain").instances] == ["drain(t=1)"]


def test_guards_are_taken_apart_with_their_text() -> None:
    """Each conjunct of a require is a guard of its own, with its source."""
    fill = Pump.system().action("fill").instances[0]
    assert [c.text for c in fill.guard] == ["s.mode == 'on'", "s.level[t] < self.size"]
    assert len({c.loc for c in fill.guard}) == 1


def test_a_property_is_taken_apart_element_by_element() -> None:
    """all(...) becomes one conjunct per element, which says for which one it is."""
    bounded = Pump.system().property("bounded")
    assert [c.text for c in bounded.conjuncts] == ["v <= self.size", "v <= self.size", "len(s.marks) <= 2"]


def test_guards_spare_checks() -> None:
    """A rule that tests the bound needs no check of it; without the test there is one."""
    assert all(not i.guard_checks and not i.effect_checks for i in Pump.system().instances)
    careless = Pump.system("careless").action("fill").instances[0]
    assert [c.message for c in careless.effect_checks] == ["s.level[t] leaves Range(0, 3)"]


def test_a_check_before_a_guard_is_decided_in_every_state() -> None:
    """What is computed before a require can be a mistake although the rule is not enabled."""

    class Early(Model):
        """Steps before it looks."""

        def state(self):
            """One variable."""
            return State(x=Range(0, 2), ready=Bool())

        @action
        def go(self, s):
            """The bound is not tested."""
            s.x += 1
            require(s.ready)

    go = Early.system().action("go").instances[0]
    assert [c.message for c in go.guard_checks] == ["s.x leaves Range(0, 2)"]
    assert go.effect_checks == ()


def test_choices_become_instances() -> None:
    """One instance per combination of choices, named after the variable they are assigned to."""
    switch = Pump.system().action("switch")
    assert [i.picks for i in switch.instances] == [
        (("to", "off"), ("choice", 0)),
        (("to", "off"), ("choice", 1)),
        (("to", "on"), ("choice", 0)),
        (("to", "on"), ("choice", 1)),
    ]


def test_a_choice_that_is_not_reached_counts_once() -> None:
    """Where an action does not come to a choice, its options are not distinguished: no step is there twice."""
    system = Pump.system()
    interpreter = Interpreter(system)
    off, on = ((0, 0), "off", frozenset()), ((0, 0), "on", frozenset())
    assert [s.instance.action for s in interpreter.steps(off)].count("switch") == 4
    assert [s.instance.action for s in interpreter.steps(on)].count("switch") == 2


def test_variants_override_rules() -> None:
    """A variant keeps the mark of the rule it overrides, and can call the original."""
    assert set(Pump.variants) == {"careless", "eager"}
    system = Pump.system("eager")
    assert (system.name, system.variant) == ("pump", "eager")
    fill = system.action("fill")
    assert fill.fairness is Fairness.WEAK
    assert Interpreter(system).take(fill.instances[0], ((0, 0), "on", frozenset())) == ((1, 1), "on", frozenset())


def test_an_empty_domain_leaves_the_rule_without_instances() -> None:
    """With one tank there is no inner one to drain; the rule stays, so that reports count it as never enabled."""
    system = Pump.system(tanks=1)
    assert [a.name for a in system.actions if a.instances] == ["fill", "switch"]
    assert system.action("drain").instances == ()


def test_first_values() -> None:
    """A default, one value, several, all of them; and a condition on their combinations."""

    class First(Model):
        """Four ways to begin."""

        def state(self):
            """One variable for each."""
            return State(
                a=Range(1, 3),
                b=Range(0, 3, init=2),
                c=Range(0, 3, init=any_of(0, 3)),
                d=Array(range(2), Bool(init=ANY)),
                e=Array(["x", "y"], Range(0, 9), init={"x": 4, "y": 5}),
            )

        @initially
        def some(self, s):
            """Not both of d."""
            return not all(s.d) and (s.c == 0 or s.d[0])

        @action
        def stay(self, s):
            """Nothing happens."""
            return

    states = list(Interpreter(First.system()).initial_states())
    assert [(s[2], s[3]) for s in states] == [
        (0, (False, False)),
        (0, (False, True)),
        (0, (True, False)),
        (3, (True, False)),
    ]
    assert {(s[0], s[1], s[4]) for s in states} == {(1, 2, (4, 5))}


def test_parameters_from_text() -> None:
    """The command line's texts become values of the annotated type, or one clear error."""
    assert Pump.parse("tanks", "3") == 3
    assert Pump.parse("greedy", "yes") is True
    assert Pump.parse("label", "3") == "3"
    with pytest.raises(UsageError, match="tanks='many' is not a value of type int\n  give an integer"):
        Pump.parse("tanks", "many")
    with pytest.raises(UsageError, match="pump has no parameter 'tank'\n  its parameters: tanks, size, greedy, label"):
        Pump.parse("tank", "3")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tank": 1}, "pump has no parameter 'tank'"),
        ({"tanks": "1"}, "tanks='1' is not a value of type int"),
        ({"greedy": 1}, "greedy=1 is not a value of type bool"),
    ],
)
def test_wrong_parameters(given: dict[str, object], message: str) -> None:
    """Unknown names and values of another type are refused."""
    with pytest.raises(UsageError, match=message):
        Pump.system(**given)


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("s.n < 3", "not s.n < 3"),
        ("not s.up", "s.up"),
        ("not any(s.up for s in x)", "any(s.up for s in x)"),
        ("not (s.a or s.b)  [k=1]", "(s.a or s.b)  [k=1]"),
        ("s.a or not s.b  [k=1]", "not (s.a or not s.b)  [k=1]"),
        ("a if b else c", "not (a if b else c)"),
        ("nothing Python reads", "not (nothing Python reads)"),
    ],
)
def test_the_text_for_where_a_condition_is_false(text: str, denied: str) -> None:
    """Neither a double negation nor one that binds to a part of the condition only."""
    assert Conjunct(TRUE, text, None).denied == denied


def test_native_execution_is_found_at_the_door() -> None:
    """`streamproof.Native` is there without being loaded before somebody asks; other names are not."""
    assert streamproof.Native is Native
    with pytest.raises(AttributeError, match="module 'streamproof' has no attribute 'Naive'"):
        _ = streamproof.Naive


class Limited(Model):
    """Numbers with limits."""

    n: int = 1
    level: int = 0
    limits = {"n": (1, None), "level": (-1, 2)}  # noqa: RUF012

    def state(self) -> State:
        """One variable."""
        return State(up=Bool())

    @action
    def flip(self, s: State) -> None:
        """Up or down."""
        s.up = not s.up


class Narrow(Limited, variant="narrow"):
    """The same with an upper limit for the other."""

    limits = {"n": (1, 3)}  # noqa: RUF012


@pytest.mark.parametrize(
    ("variant", "given", "message"),
    [
        (None, {"n": 0}, "limited does not allow n=0\n  n is 1 or more"),
        (None, {"level": 3}, "limited does not allow level=3\n  level is -1 to 2"),
        ("narrow", {"n": 4}, "limited does not allow n=4\n  n is 1 to 3"),
        ("narrow", {"level": -2}, "limited does not allow level=-2\n  level is -1 to 2"),
    ],
)
def test_parameters_outside_their_limits(variant: str | None, given: dict[str, int], message: str) -> None:
    """Which parameter, and what it may be; a variant's limits add to those of its model."""
    with pytest.raises(UsageError) as caught:
        Limited.system(variant, **given)
    assert str(caught.value) == message
    assert Limited.system(n=9, level=2).parameters == {"n": 9, "level": 2}


class Restarts(Model):
    """A job that is restarted any number of times, or at most so often."""

    most: int | None = None
    label: str | None = None
    limits = {"most": (0, 5)}  # noqa: RUF012

    def state(self) -> State:
        """One variable."""
        return State(failed=Range(0, 3 if self.most is None else self.most))

    @action
    def fail(self, s):
        """One more failure; where nothing is counted, the third is the last."""
        require(s.failed < (3 if self.most is None else self.most))
        s.failed += 1

    @action
    def rest(self, s):
        """Nothing happens."""

    @invariant
    def few(self, s):
        """Few failures."""
        return s.failed < 3


class Tireless(Restarts, variant="tireless", without="rest"):
    """Never rests."""


class Fair(Restarts, variant="unchecked", without=("rest", "few")):
    """Neither rests nor claims anything."""


def test_optional_parameters() -> None:
    """`int | None` accepts numbers within the limits and None, written none on the command line; any number for proofs."""
    assert (Restarts.parse("most", "none"), Restarts.parse("most", "None"), Restarts.parse("most", "2")) == (
        None,
        None,
        2,
    )
    assert Restarts.parse("label", "none") is None
    assert Restarts.system().parameters == {"most": None, "label": None}
    assert [len(list(values(Restarts.system(most=m).variables[0].sort))) for m in (None, 0, 2)] == [4, 1, 3]
    with pytest.raises(UsageError, match=r"most='x' is not a value of type int \| None\n  give an integer, or none"):
        Restarts.parse("most", "x")
    with pytest.raises(UsageError, match="restarts does not allow most=6\n  most is 0 to 5"):
        Restarts.system(most=6)
    wrong = type("Wrong", (Restarts,), {"sizes": {"small": {"most": "1"}}})
    with pytest.raises(ModelError, match=r"sets, for 'small', most to '1'\n  most is of type int \| None"):
        wrong.system()


def test_rules_and_properties_are_removed_by_name() -> None:
    """`without=` removes what a variant inherits; the other variants and the model keep it."""
    assert [a.name for a in Restarts.system("tireless").actions] == ["fail"]
    assert [p.name for p in Restarts.system("unchecked").properties] == ["deadlock"]
    assert [a.name for a in Restarts.system().actions] == ["fail", "rest"]
    with pytest.raises(
        ModelError, match=r"without 'fial', which is no inherited rule or property\n  did you mean fail\?"
    ):
        type("Wrong", (Restarts,), {}, without="fial")
    with pytest.raises(ModelError, match="without 'rest', which is no inherited"):
        type("Wrong", (Tireless,), {}, without="rest")
    with pytest.raises(ModelError, match="is declared without 'fail', and defines it"):
        type("Wrong", (Restarts,), {"fail": Restarts.fail}, without="fail")


class Width(StrEnum):
    """Of an edge."""

    PLAIN = "plain"
    BROAD = "broad"


class Edges(Model):
    """A walk along the edges of a graph."""

    n: int = 4

    def setup(self):
        """Node i has i edges."""
        self.out = {i: [(i + d) % self.n for d in range(1, i + 1)] for i in range(self.n)}

    def state(self):
        """The node."""
        return State(at=Range(0, self.n - 1, init=self.n - 1), kind=Enum(Width))

    @action(kind=lambda m, to, at: [Width.PLAIN, Width.BROAD][: at - to], at="n", to=lambda m, at: m.out[at])
    def go(self, s, at, to, kind):
        """Along one edge."""
        require(s.at == at)
        s.at = to
        s.kind = Width.BROAD if kind is Width.PLAIN else kind


def test_a_domain_may_depend_on_earlier_parameters() -> None:
    """Only the combinations that the functions give are instances; the rule gets members of an enumeration."""
    system = Edges.system()
    assert [tuple(v for _, v in i.args) for i in system.instances] == [
        (1, 2, "plain"),
        *[(2, 3, "plain"), (2, 0, "plain"), (2, 0, "broad")],
        *[(3, 0, "plain"), (3, 0, "broad"), (3, 1, "plain"), (3, 1, "broad"), (3, 2, "plain")],
    ]
    native, interpreter = Native(Edges()), Interpreter(system)
    state = next(native.initial())
    for instance in system.instances:
        assert native.step(state, "go", *(v for _, v in instance.args)) == interpreter.take(instance, state)
    rules = Rules(Edges())
    assert len(rules.instances("go", {"at": 2, "to": 0, "kind": "broad"})) == 1
    assert rules.instances("go", {"at": 2, "to": 1, "kind": "plain"}) == ()


@pytest.mark.parametrize(
    ("domains", "message"),
    [
        ({"a": lambda m, b: [b], "b": 2}, "the domain of go\\(a\\) depends on 'b', which is not an earlier parameter"),
        ({"a": 2, "b": lambda m, c: [c]}, "depends on 'c', which is not an earlier parameter\n  earlier parameters: a"),
        ({"a": 2, "b": lambda m, a: 0.5}, "the domain of go\\(b\\) is 0.5"),
        ({"a": 2000, "b": lambda m, a: 2000}, "go has more than 2,000,000 combinations of values"),
    ],
)
def test_wrong_dependent_domains(domains: dict[str, object], message: str) -> None:
    """One message each; the number of combinations is bounded."""

    class Wrong(Edges):
        """Another rule."""

        @action(**domains)
        def go(self, s, a, b):
            """Never."""
            require(a > b > a)

    with pytest.raises(ModelError, match=message):
        Wrong.system()


def test_limits_of_what_is_no_parameter() -> None:
    """A name in `limits` that is not a parameter is a mistake of the model."""
    wrong = type("Wrong", (Limited,), {"limits": {"m": (0, 1)}})
    with pytest.raises(ModelError, match="limits of Wrong names 'm', which is not a parameter"):
        wrong.system()


def test_an_attribute_without_a_type_is_no_parameter() -> None:
    """The error says how to make it one."""

    class Untyped(Model):
        """Forgets the annotation."""

        depth = 3

    with pytest.raises(UsageError, match="give it a type to make it one: depth: int"):
        Untyped(depth=4)


def test_an_unknown_variant() -> None:
    """The error lists those that there are."""
    with pytest.raises(UsageError, match="pump has no variant 'lazy'\n  its variants: careless, eager"):
        Pump.system("lazy")


def test_a_spec_adds_properties_and_expectations() -> None:
    """Properties stated outside the model are compiled like its own; unlisted verdicts are expected to hold."""

    @invariant
    def dry(self: Pump, s: object) -> bool:
        """No water at all."""
        return all(v == 0 for v in s.level)  # type: ignore[attr-defined]

    spec = Spec(Pump, (dry,), {None: {"dry": "violated"}}, {"careless": {"tanks": 1}}, termination=True)
    assert [p.name for p in spec.system().properties] == [
        "bounded",
        "one_at_a_time",
        "dry",
        "deadlock",
        "termination",
    ]
    assert spec.system("careless").parameters["tanks"] == 1
    assert (spec.expectation(None, "dry"), spec.expectation("careless", "dry")) == ("violated", "holds")


def test_an_unmarked_property_of_a_spec() -> None:
    """A plain function is refused, with what to do."""
    with pytest.raises(ModelError, match="helper is not marked as a property"):
        Spec(Pump, (helper,)).system()


def helper(self: Pump, s: object) -> bool:
    """No decorator."""
    return True


def test_partial_legal_ends_are_checked_with_deadlock() -> None:
    """What may be undefined in a @terminal condition is a check of the deadlock property."""

    class Ends(Model):
        """Ends by an index that may be outside."""

        def state(self):
            """An array and a position."""
            return State(a=Array(range(2), Bool()), at=Range(0, 2))

        @action
        def move(self, s):
            """Steps on."""
            require(s.at < 2)
            s.at += 1

        @terminal
        def there(self, s):
            """The element at the position."""
            return s.a[s.at]

    assert [c.message for c in Ends.system().property("deadlock").checks] == ["index outside Range(0, 1)"]


class Counts(Model):
    """Counts up to a limit."""

    limit: int = 3
    check_deadlock = False

    def state(self):
        """The number so far."""
        return State(n=Range(0, self.limit))

    @action
    def count(self, s):
        """One more."""
        require(s.n < self.limit)
        s.n += 1


class Halves(Counts):
    """Claims to be the other one, and less than it allows."""

    @invariant
    def small(self, s):
        """Not beyond the limit."""
        return s.n <= self.limit

    @refines(Counts)
    def counts(self, s):
        """Itself."""
        return {"n": s.n}


def test_a_refinement_is_claimed_by_a_whole_model_only() -> None:
    """Neither a model without its properties nor one with a free parameter claims a refinement."""
    assert [p.name for p in compile_model(Halves()).properties] == ["small", "counts_start", "counts"]
    assert compile_model(Halves(), without_properties=True).properties == ()
    system, _ = compile_unbounded(Halves(), frozenset({"limit"}), ())
    assert [p.name for p in system.properties] == ["small"]


class Taken(Halves):
    """Names a property as one of a refinement is named."""

    @invariant
    def counts_start(self, s):
        """True."""
        return True


def test_a_refinement_takes_the_names_of_its_properties() -> None:
    """A property that another function states has none of them."""
    message = "'counts_start' names a property and a property of the refinement counts\n  rename one of them"
    with pytest.raises(ModelError, match=message):
        Taken.system()
