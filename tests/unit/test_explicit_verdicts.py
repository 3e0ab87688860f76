"""The explicit engine on systems whose state space fits in the head: every kind of property, both ways."""

from __future__ import annotations

import pytest

from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.explicit.search import Search
from streamproof.explicit.witness import Disagreement
from streamproof.system import (
    BOOL,
    Action,
    Check,
    Conjunct,
    Counts,
    EnumSort,
    Exit,
    Expr,
    Fairness,
    Instance,
    Interpreter,
    Kind,
    Loc,
    ModelError,
    Property,
    RangeSort,
    System,
    UsageError,
    Variable,
    Verdict,
)
from streamproof.system import build as b
from streamproof.system.verdict import Condition, OutDegree

DIAL = RangeSort(0, 4)
x = b.var("x", DIAL)
after = b.next_("x", DIAL)


def when(name: str, guard: Expr, becomes: Expr, **more: tuple[Check, ...]) -> Action:
    """An action of one instance that sets `x`."""
    conjunct = Conjunct(guard, f"guard of {name}", None)
    return Action(name, (), Fairness.NONE, (Instance(name, (), (), (conjunct,), (("x", becomes),), **more),))


def dial(*actions: Action, terminal: Expr | None = None, **properties: tuple[Kind, Expr]) -> System:
    """A dial from 0 to 4 that starts at 0."""
    declared = tuple(Property(name, kind, expr) for name, (kind, expr) in properties.items())
    return System("dial", (Variable("x", DIAL, (0,)),), actions, declared, terminal=terminal)


def equals(value: int) -> Expr:
    """`x == value`."""
    return b.eq(x, b.num(value))


UP = when("up", b.less(x, b.num(4)), b.add(x, b.num(1)))
RESET = when("reset", equals(4), b.num(0))
STAY = when("stay", equals(2), x)


def test_counts_follow_tlc() -> None:
    """Initial states and every successor are generated, the initial level is 1, a self-loop is a successor."""
    result = explore(dial(UP, RESET, STAY))
    assert result.counts == Counts(distinct=5, generated=7, depth=5, levels=(1, 1, 1, 1, 1))
    assert result.complete
    assert result.stopped is None
    assert result.counts.out_degree == OutDegree(1, 6 / 5, 2)
    assert list(result.states()) == [(0,), (1,), (2,), (3,), (4,)]
    assert result.coverage.generated == {"up": 4, "reset": 1, "stay": 1}
    assert result.coverage.distinct == {"up": 4, "reset": 0, "stay": 0}
    assert result.findings == ()


def test_two_ways_into_one_state_are_two_generated_states() -> None:
    """Instances that agree on the next state are counted one by one."""
    jump = when("jump", equals(0), b.num(1))
    assert explore(dial(UP, jump)).counts == Counts(5, 6, 5, (1, 1, 1, 1, 1))


def test_an_invariant_that_holds() -> None:
    """True in all states: no trace, and the number of states it was checked in."""
    finding = explore(dial(UP, small=(Kind.INVARIANT, b.less_eq(x, b.num(4))))).finding("small")
    assert (finding.verdict, finding.trace, finding.vacuous) == (Verdict.HOLDS, None, False)
    assert finding.because == "true in all 5 reachable states; ranges and parameters alone decide it"


def test_an_invariant_that_is_violated() -> None:
    """The trace is a shortest one: through the short cut, not step by step."""
    jump = when("jump", equals(1), b.num(3))
    finding = explore(dial(UP, jump, never=(Kind.INVARIANT, b.not_(equals(3))))).finding("never")
    assert finding.verdict is Verdict.VIOLATED
    assert finding.trace is not None
    assert finding.trace.states == ((0,), (1,), (3,))
    assert [step.label for step in finding.trace.steps] == ["up()", "jump()"]
    assert finding.because == "false after 2 steps"


def test_an_invariant_that_is_false_at_the_start() -> None:
    """The trace is the initial state alone."""
    finding = explore(dial(UP, moved=(Kind.INVARIANT, b.not_(equals(0))))).finding("moved")
    assert finding.trace is not None
    assert (finding.trace.states, finding.trace.steps, finding.because) == (((0,),), (), "false after 0 steps")


def test_the_failing_conjunct_is_named() -> None:
    """With several conjuncts the reason quotes the one that is false."""
    low, even = b.less(x, b.num(4)), b.not_(equals(3))
    conjuncts = (Conjunct(low, "s.x < 4", None), Conjunct(even, "s.x != 3", None))
    prop = Property("both", Kind.INVARIANT, b.and_((low, even)), conjuncts)
    system = System("dial", (Variable("x", DIAL, (0,)),), (UP,), (prop,))
    assert explore(system).finding("both").because == "false after 3 steps: not s.x != 3"


def test_a_step_property_that_holds() -> None:
    """Checked on every step, self-loops too; untouched variables count as unchanged."""
    finding = explore(dial(UP, STAY, grows=(Kind.STEP, b.less_eq(x, after)))).finding("grows")
    assert (finding.verdict, finding.because) == (Verdict.HOLDS, "true of 5 steps between 5 reachable states")


def test_a_step_property_that_is_violated() -> None:
    """The trace ends with the step that breaks it, even though that step leads to a known state."""
    finding = explore(dial(UP, RESET, grows=(Kind.STEP, b.less(x, after)))).finding("grows")
    assert finding.verdict is Verdict.VIOLATED
    assert finding.trace is not None
    assert finding.trace.states == ((0,), (1,), (2,), (3,), (4,), (0,))
    assert finding.because == "broken by step 5, reset()"


def test_a_self_loop_breaks_a_step_property() -> None:
    """A step that changes nothing is a step."""
    finding = explore(dial(UP, STAY, moves=(Kind.STEP, b.not_(b.eq(x, after))))).finding("moves")
    assert finding.trace is not None
    assert finding.trace.states == ((0,), (1,), (2,), (2,))
    assert finding.because == "broken by step 3, stay()"


def test_reachability_with_a_witness() -> None:
    """What is reached holds, with a shortest way to it."""
    finding = explore(dial(UP, RESET, top=(Kind.REACHABLE, equals(4)))).finding("top")
    assert (finding.verdict, finding.because) == (Verdict.HOLDS, "reached after 4 steps")
    assert finding.trace is not None
    assert len(finding.trace) == 5


def test_reachability_that_fails() -> None:
    """What a complete search did not reach is violated, and there is no behaviour to show."""
    finding = explore(dial(STAY, top=(Kind.REACHABLE, equals(4)))).finding("top")
    assert (finding.verdict, finding.trace) == (Verdict.VIOLATED, None)
    assert finding.because == "false in the only reachable state"


def test_deadlock() -> None:
    """A state without successor is a deadlock when no legal end is declared."""
    finding = explore(dial(UP, free=(Kind.DEADLOCK, b.TRUE))).finding("free")
    assert (finding.verdict, finding.because) == (Verdict.VIOLATED, "nothing is enabled after 4 steps")
    assert finding.trace is not None
    assert finding.trace.states[-1] == (4,)


def test_a_legal_end_is_not_a_deadlock() -> None:
    """A terminal state excuses exactly the states it describes."""
    free = (Kind.DEADLOCK, b.TRUE)
    assert explore(dial(UP, terminal=equals(4), free=free)).finding("free").verdict is Verdict.HOLDS
    assert explore(dial(UP, terminal=equals(3), free=free)).finding("free").verdict is Verdict.VIOLATED


def test_a_self_loop_is_no_deadlock() -> None:
    """A state whose only step leads back to it has a step."""
    loop = when("loop", equals(4), b.num(4))
    result = explore(dial(UP, loop, free=(Kind.DEADLOCK, b.TRUE)))
    assert result.finding("free").verdict is Verdict.HOLDS
    assert result.finding("free").because == "all 5 reachable states have a successor or are terminal"


def test_termination_holds_without_a_cycle() -> None:
    """The dial that only goes up ends."""
    finding = explore(dial(UP, ends=(Kind.TERMINATION, b.TRUE))).finding("ends")
    assert (finding.verdict, finding.because) == (Verdict.HOLDS, "no cycle among 5 reachable states")


def test_a_self_loop_does_not_terminate() -> None:
    """A self-loop is a cycle of one step; the lasso leads to it."""
    finding = explore(dial(UP, STAY, ends=(Kind.TERMINATION, b.TRUE))).finding("ends")
    assert finding.verdict is Verdict.VIOLATED
    assert finding.trace is not None
    assert (finding.trace.states, finding.trace.loop) == (((0,), (1,), (2,)), 2)
    assert [step.label for step in finding.trace.steps] == ["up()", "up()", "stay()"]
    assert finding.because == "lasso: stem of 2 steps, cycle of 1"


def test_a_longer_cycle_is_shown_as_a_lasso() -> None:
    """The stem leads to the first state on a cycle, the loop is the shortest way round through it."""
    back = when("back", equals(4), b.num(2))
    finding = explore(dial(UP, back, ends=(Kind.TERMINATION, b.TRUE))).finding("ends")
    assert finding.trace is not None
    assert (finding.trace.states, finding.trace.loop) == (((0,), (1,), (2,), (3,), (4,)), 2)
    assert finding.trace.steps[-1].label == "back()"


def test_all_properties_in_one_pass() -> None:
    """A violation stops the check of that property only; findings come in declaration order."""
    result = explore(
        dial(
            UP,
            never_1=(Kind.INVARIANT, b.not_(equals(1))),
            never_3=(Kind.INVARIANT, b.not_(equals(3))),
            top=(Kind.REACHABLE, equals(4)),
            free=(Kind.DEADLOCK, b.TRUE),
            slow=(Kind.STEP, b.less_eq(after, b.add(x, b.num(1)))),
        )
    )
    lengths = [(f.property, f.verdict.value, f.trace and len(f.trace)) for f in result.findings]
    assert lengths == [
        ("never_1", "violated", 2),
        ("never_3", "violated", 4),
        ("top", "holds", 5),
        ("free", "violated", 5),
        ("slow", "holds", None),
    ]
    assert result.counts.distinct == 5


def test_properties_can_be_chosen() -> None:
    """Only what is asked for is decided; unknown names are refused with the known ones."""
    system = dial(UP, low=(Kind.INVARIANT, b.less(x, b.num(9))), free=(Kind.DEADLOCK, b.TRUE))
    assert [f.property for f in explore(system, SearchOptions(properties=["free"])).findings] == ["free"]
    assert [f.property for f in explore(system, SearchOptions(deadlock=False)).findings] == ["low"]
    assert [f.property for f in explore(system, SearchOptions(properties="low")).findings] == ["low"]
    with pytest.raises(UsageError, match="dial has no property 'lwo'\n  its properties are: low, free"):
        explore(system, SearchOptions(properties=["lwo"]))


def test_search_can_end_when_everything_is_decided() -> None:
    """What was asked is answered after two levels; the rest of the space is not visited."""
    result = explore(dial(UP, never_1=(Kind.INVARIANT, b.not_(equals(1)))), SearchOptions(stop_when_decided=True))
    assert result.finding("never_1").verdict is Verdict.VIOLATED
    assert (result.complete, result.stopped, result.counts.distinct) == (False, "every property decided", 2)


def test_several_initial_states() -> None:
    """The product of the initial values, filtered, repeated values counted once."""
    y = b.var("y", BOOL)
    start = (Variable("x", DIAL, (0, 2, 2, 4)), Variable("y", BOOL, (False, True)))
    prop = Property("low", Kind.INVARIANT, b.not_(b.and_((equals(3), y))))
    result = explore(System("two", start, (UP,), (prop,), initially=b.not_(b.and_((equals(2), y)))))
    assert result.counts == Counts(distinct=10, generated=13, depth=4, levels=(5, 3, 1, 1))
    trace = result.finding("low").trace
    assert trace is not None
    assert trace.states == ((0, True), (1, True), (2, True), (3, True))


def test_no_initial_state_is_a_mistake_of_the_model() -> None:
    """Nothing to start from makes every property true, so it is refused."""
    system = System("none", (Variable("x", DIAL, (0, 1)),), (UP,), initially=equals(3))
    with pytest.raises(ModelError, match="none has no initial state"):
        explore(system)


def test_a_system_without_variables_or_actions() -> None:
    """One state, no step."""
    result = explore(System("void", (), (), (Property("free", Kind.DEADLOCK, b.TRUE),)))
    assert result.counts == Counts(1, 1, 1, (1,))
    assert result.finding("free").verdict is Verdict.VIOLATED
    assert list(result.states()) == [()]


OVER = Check(b.less(b.num(4), b.add(x, b.num(2))), "5 is outside Range(0, 4)", Loc("dial.py", 7), (("s.x", x),))
LEAP = when("leap", b.less(b.num(0), x), b.add(x, b.num(2)), effect_checks=(OVER,))


def test_a_mistake_of_the_model_ends_the_search() -> None:
    """What is undecided becomes an error with the way to it; what was violated before stays violated."""
    result = explore(
        dial(
            LEAP,
            UP,
            never_1=(Kind.INVARIANT, b.not_(equals(1))),
            low=(Kind.INVARIANT, b.less_eq(x, b.num(4))),
            top=(Kind.REACHABLE, equals(3)),
        )
    )
    message = (
        "dial.py:7: 5 is outside Range(0, 4) in leap() (s.x = 3)\n"
        "  guard it with require(...), or widen the sort if the value is meant to be possible"
    )
    assert (result.complete, result.stopped) == (False, "evaluation error")
    assert result.mistake is not None
    assert result.mistake.trace.states == ((0,), (1,), (3,))
    assert str(result.mistake.error) == message
    assert [f.verdict for f in result.findings] == [Verdict.VIOLATED, Verdict.ERROR, Verdict.HOLDS]
    assert (result.finding("low").trace, result.finding("low").because) == (result.mistake.trace, message)


def test_a_mistake_in_a_guard_shows_in_disabled_states_too() -> None:
    """Guard checks are decided in every state, whether or not the instance is enabled."""
    check = Check(equals(3), "index outside", Loc("dial.py", 3))
    asks = when("asks", b.FALSE, x, guard_checks=(check,))
    result = explore(dial(UP, asks))
    assert result.mistake is not None
    assert len(result.mistake.trace) == 4
    assert result.mistake.error.message == "index outside in asks()"
    assert explore(dial(UP, when("asks", b.FALSE, x, effect_checks=(check,)))).mistake is None


@pytest.mark.parametrize("kind", [Kind.INVARIANT, Kind.REACHABLE, Kind.STEP])
def test_a_mistake_in_a_property_concerns_that_property_only(kind: Kind) -> None:
    """The property gets an error with its trace; the search goes on for the others."""
    expr = b.FALSE if kind is Kind.REACHABLE else b.TRUE
    wrong = Property("wrong", kind, expr, checks=(Check(equals(2), "head of an empty queue", Loc("dial.py", 9)),))
    other = Property("top", Kind.REACHABLE, equals(4))
    result = explore(System("dial", (Variable("x", DIAL, (0,)),), (UP,), (wrong, other)))
    assert result.complete
    assert result.finding("top").verdict is Verdict.HOLDS
    finding = result.finding("wrong")
    assert finding.verdict is Verdict.ERROR
    assert finding.trace is not None
    assert len(finding.trace) == (4 if kind is Kind.STEP else 3)
    assert finding.because.startswith("dial.py:9: head of an empty queue in property wrong")


def test_a_vacuous_invariant_is_marked() -> None:
    """An implication whose assumption never comes true holds, and says that it was never put to the test."""
    never, sometimes = b.implies(b.less(b.num(4), b.add(x, x)), equals(2)), b.implies(equals(2), b.less(x, b.num(3)))
    stuck = when("up", b.less(x, b.num(2)), b.add(x, b.num(1)))
    result = explore(dial(stuck, never=(Kind.INVARIANT, never), sometimes=(Kind.INVARIANT, sometimes)))
    assert [(f.verdict, f.vacuous) for f in result.findings] == [(Verdict.HOLDS, True), (Verdict.HOLDS, False)]
    because = "vacuous: its antecedent is false in all 3 reachable states"
    assert result.finding("never").because == because


def test_mutual_exclusion_is_not_vacuous() -> None:
    """That two things are never true together is not an implication with an idle assumption."""
    both = b.or_((b.not_(equals(1)), b.not_(b.eq(b.add(x, x), b.num(3)))))
    assert explore(dial(UP, apart=(Kind.INVARIANT, both))).finding("apart").vacuous is False


def test_guards_that_were_never_true_are_told() -> None:
    """Per action, the conjuncts that no state satisfied; those that were true, but never together, are not among them."""
    conjuncts = (Conjunct(equals(1), "s.x == 1", None), Conjunct(b.less(b.num(7), b.add(x, x)), "s.x + s.x > 7", None))
    apart = Action("apart", (), Fairness.NONE, (Instance("apart", (), (), conjuncts, ()),))
    never = Action("never", (), Fairness.NONE, (Instance("never", (), (), (Conjunct(b.FALSE, "False", None),), ()),))
    result = explore(dial(when("up", b.less(x, b.num(2)), b.add(x, b.num(1))), apart, never))
    assert result.coverage.never == ("apart", "never")
    assert result.coverage.never_true == {"apart": ("s.x + s.x > 7",), "never": ("False",)}


def test_conditions_of_guards_are_counted_in_expanded_states() -> None:
    """A condition counts once a state, for whichever instance of its action it is true; two places are two conditions."""

    def some(value: int, line: int) -> Instance:
        conjuncts = (
            Conjunct(equals(value), "s.x == v", Loc("m.py", line)),
            Conjunct(b.less(x, b.num(3)), "s.x < 3", None),
        )
        return Instance("some", (("v", value),), (), conjuncts, (("x", b.add(x, b.num(1))),))

    action = Action("some", ("v",), Fairness.NONE, (some(0, 1), some(1, 1), some(2, 9), some(4, 9)))
    result = explore(dial(action))
    detailed = result.detailed_coverage()
    assert result.coverage.conditions is None
    assert detailed.expanded == result.counts.distinct == 4
    assert detailed.conditions == (
        Condition("some", "s.x == v", Loc("m.py", 1), 2),
        Condition("some", "s.x < 3", None, 3),
        Condition("some", "s.x == v", Loc("m.py", 9), 1),
    )
    cut = explore(dial(action), SearchOptions(max_depth=3))
    assert (cut.counts.queue, [c.states for c in cut.detailed_coverage().conditions or ()]) == (1, [2, 2, 0])


@pytest.mark.parametrize("tier", ["python", "compiled"])
def test_both_tiers_count_conditions_alike(tier: str) -> None:
    """The pass over the states of the compiled search gives the same counts."""
    detailed = explore(dial(UP, RESET, STAY), SearchOptions(tier=tier)).detailed_coverage()
    assert [(c.action, c.states) for c in detailed.conditions or ()] == [("up", 4), ("reset", 1), ("stay", 1)]


def test_enums_and_composite_states_come_back_as_they_were_declared() -> None:
    """Traces speak of the original variables, not of leaves."""
    sort = EnumSort(("IDLE", "BUSY"))
    phase = b.var("phase", sort)
    go = Instance(
        "go", (), (), (Conjunct(b.eq(phase, b.const(sort, "IDLE")), "idle", None),), (("phase", b.const(sort, "BUSY")),)
    )
    prop = Property("idle", Kind.INVARIANT, b.eq(phase, b.const(sort, "IDLE")))
    system = System("work", (Variable("phase", sort, ("IDLE",)),), (Action("go", (), Fairness.NONE, (go,)),), (prop,))
    trace = explore(system).finding("idle").trace
    assert trace is not None
    assert trace.states == (("IDLE",), ("BUSY",))


def test_an_answer_that_the_interpreter_does_not_confirm_is_never_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """A violation is replayed first; a mismatch is raised as a defect of the engine."""
    search = Search.run

    def wrong(self: Search) -> None:
        search(self)
        self.stuck = 0

    monkeypatch.setattr(Search, "run", wrong)
    with pytest.raises(Disagreement, match="the explicit engine reports that nothing is enabled") as caught:
        explore(dial(UP, free=(Kind.DEADLOCK, b.TRUE)))
    assert caught.value.exit_code is Exit.DISAGREE


def test_a_step_that_the_interpreter_does_not_know_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step of a trace is taken again by the interpreter."""
    monkeypatch.setattr(Interpreter, "steps", lambda self, state: iter(()))
    with pytest.raises(Disagreement, match="a step leads from the first state to the second"):
        explore(dial(UP, never_1=(Kind.INVARIANT, b.not_(equals(1)))))
