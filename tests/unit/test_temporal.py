"""Temporal properties: the meaning on a lasso, and the four traps of deciding them on a graph, in both procedures."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import count

import pytest

from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import Exploration, explore
from streamproof.explicit.level_search import Budget, Stop
from streamproof.explicit.liveness import fair_graph
from streamproof.explicit.search import Search
from streamproof.system import (
    Action,
    Check,
    Conjunct,
    Expr,
    Fairness,
    Instance,
    Interpreter,
    Kind,
    Property,
    RangeSort,
    System,
    Trace,
    Variable,
    Verdict,
)
from streamproof.system import build as b
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Release,
    Until,
    written,
)
from streamproof.system.model import fairness_constraints
from streamproof.system.temporal import fairness_of, true_of
from streamproof.system.verdict import FairnessEvidence, prefix_text
from streamproof.transform.constraint import constrained

NONE, WEAK, STRONG = Fairness.NONE, Fairness.WEAK, Fairness.STRONG
DIAL = RangeSort(0, 5)
x = b.var("x", DIAL)


def at(*values: int) -> Atom:
    """That `x` has one of these values."""
    return Atom(b.or_(b.eq(x, b.num(v)) for v in values), f"x in {values}")


def move(name: str, fairness: Fairness, *arrows: tuple[int, int]) -> Action:
    """An action with one instance that turns the dial along these arrows, one from a value at most."""
    guard: Expr = b.or_(b.eq(x, b.num(before)) for before, _ in arrows)
    becomes: Expr = x
    for before, after in arrows:
        becomes = b.ite(b.eq(x, b.num(before)), b.num(after), becomes)
    return Action(name, (), fairness, (Instance(name, (), (), (Conjunct(guard, name, None),), (("x", becomes),)),))


def dial(*actions: Action, checks: tuple[Check, ...] = (), **formulas: Formula) -> System:
    """A dial that starts at 0."""
    properties = tuple(Property(n, Kind.TEMPORAL, b.TRUE, checks=checks, formula=f) for n, f in formulas.items())
    return System("dial", (Variable("x", DIAL, (0,)),), actions, properties)


def values(trace: Trace | None) -> tuple[tuple[int, ...], int | None, bool]:
    """The values of `x`, where the loop begins, and whether the behaviour stays in its last state."""
    assert trace is not None
    return tuple(state[0] for state in trace.states), trace.loop, trace.stutters


def verdicts(result: Exploration) -> dict[str, str]:
    """Verdict by property."""
    return {f.property: f.verdict.value for f in result.findings}


# --- what formulas mean

LASSO = Trace(((0,), (1,), (2,), (1,), (3,)), (), loop=2)
"""0 1 (2 1 3) (2 1 3) ..., the steps left out."""


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (at(0), True),
        (at(1), False),
        (NotF(at(1)), True),
        (Always(at(0, 1, 2, 3)), True),
        (Always(at(1, 2, 3)), False),
        (Eventually(at(3)), True),
        (Eventually(at(4)), False),
        (Always(Eventually(at(2))), True),
        (Always(Eventually(at(0))), False),
        (Eventually(Always(at(1, 2, 3))), True),
        (Eventually(Always(at(1, 2))), False),
        (Until(at(0, 1), at(2)), True),
        (Until(at(0), at(2)), False),
        (Until(at(0, 1, 2, 3), at(4)), False),
        (Release(at(3), at(0, 1, 2, 3)), True),
        (Release(at(1), at(0)), False),
        (Release(at(5), at(0, 1, 2, 3)), True),
        (LeadsTo(at(3), at(1)), True),
        (LeadsTo(at(1), at(0)), False),
        (LeadsTo(at(0), at(0)), True),
        (LeadsTo(at(4), at(5)), True),
        (AndF((at(0), Eventually(at(3)))), True),
        (OrF((at(1), Always(at(0)))), False),
        (AndF(()), True),
        (OrF(()), False),
    ],
    ids=lambda v: written(v) if not isinstance(v, bool) else str(v),
)
def test_meaning(formula: Formula, expected: bool) -> None:
    """A formula is true or false of 0 1 (2 1 3) repeated for ever, as its definition says."""
    system = dial(move("none", NONE, (0, 0)))
    assert true_of(system, formula, LASSO) is expected
    assert true_of(system, NotF(formula), LASSO) is not expected


def test_a_finite_behaviour_stays_in_its_last_state() -> None:
    """The meaning of a trace without a loop is that of the one that stutters at its end."""
    system = dial(move("up", NONE, (0, 1)))
    (up,) = system.instances
    short = Trace(((0,), (1,)), (up,))
    for trace in (short, replace(short, loop=1)):
        assert true_of(system, Eventually(Always(at(1))), trace)
        assert not true_of(system, Always(Eventually(at(0))), trace)


def test_text() -> None:
    """A formula is shown as it could have been written."""
    p, q = Atom(b.eq(x, b.num(0)), "s.x == 0"), Atom(b.TRUE, "s.ok")
    formula = OrF((NotF(Always(Eventually(p))), AndF((Until(p, q), LeadsTo(q, Release(p, q)), p))))
    assert written(formula) == (
        "(not always(eventually(s.x == 0))) or "
        "(until(s.x == 0, s.ok) and leads_to(s.ok, release(s.x == 0, s.ok)) and (s.x == 0))"
    )


# --- what fairness means


def test_fairness_of_a_lasso() -> None:
    """Taken, not enabled, or neither: said of each fair instance, with the step or state that shows it."""
    system = dial(
        move("go", NONE, (0, 1)),
        move("turn", WEAK, (1, 2)),
        move("back", NONE, (2, 1)),
        move("leave", STRONG, (1, 3)),
        move("off", WEAK, (1, 4), (2, 4)),
        move("idle", WEAK, (1, 1), (2, 2)),
    )
    named = {i.action: i for i in system.instances}
    trace = Trace(((0,), (1,), (2,)), (named["go"], named["turn"], named["back"]), loop=1)
    assert fairness_of(system, trace) == (
        FairnessEvidence("turn()", WEAK, taken=2, enabled=1, disabled=2),
        FairnessEvidence("leave()", STRONG, taken=None, enabled=1, disabled=2),
        FairnessEvidence("off()", WEAK, taken=None, enabled=1, disabled=None),
        FairnessEvidence("idle()", WEAK, taken=None, enabled=None, disabled=1),
    )
    assert [evidence.satisfied for evidence in fairness_of(system, trace)] == [True, False, False, True]
    assert [evidence.because for evidence in fairness_of(system, trace)] == [
        "taken by step 2",
        "enabled in state 1 and not taken on the cycle",
        "enabled in state 1 and not taken on the cycle",
        "never enabled on the cycle",
    ]


def test_a_step_takes_every_instance_that_could_have_made_it() -> None:
    """Two instances with the same effect are both taken by one step."""
    system = dial(move("one", WEAK, (0, 1)), move("other", STRONG, (0, 1)), move("back", NONE, (1, 0)))
    one, _, back = system.instances
    owed = fairness_of(system, Trace(((0,), (1,)), (one, back), loop=0))
    assert [o.taken for o in owed] == [1, 1]


def test_picks_share_their_fairness() -> None:
    """What is owed is the action at its parameters: any of its picks will do, and the others are nobody's to owe."""
    picks = tuple(
        Instance("flip", (), (("side", k),), (Conjunct(b.eq(x, b.num(0)), "", None),), (("x", b.num(k)),))
        for k in (1, 2)
    )
    flip = Action("flip", (), STRONG, picks)
    back = move("back", WEAK, (1, 0), (2, 0))
    heads = Always(Eventually(at(1)))
    system = dial(flip, back, heads=heads, moves=Always(Eventually(at(1, 2))))
    assert [o.numbers for o in fairness_constraints(system)] == [(0, 1), (2,)]
    assert verdicts(explore(system)) == {"heads": "violated", "moves": "holds"}
    apart = Action("flip", ("side",), STRONG, tuple(replace(i, args=i.picks, picks=()) for i in picks))
    assert verdicts(explore(dial(apart, back, heads=heads))) == {"heads": "holds"}


# --- the four traps


def test_stuttering_is_not_ignored() -> None:
    """First trap: every state has a step, and still nothing need ever happen unless fairness asks for it."""
    round_ = ((0, 1), (1, 2), (2, 0))
    finding = explore(dial(move("turn", NONE, *round_), comes=Eventually(at(2)))).finding("comes")
    assert finding.verdict is Verdict.VIOLATED
    assert values(finding.trace) == ((0,), 0, True)
    assert finding.because == "fair lasso: stem of 0 steps, then stuttering"
    assert verdicts(explore(dial(move("turn", WEAK, *round_), comes=Eventually(at(2))))) == {"comes": "holds"}


def test_a_step_that_changes_nothing_is_stuttering() -> None:
    """A self-loop neither takes a fair instance nor makes it enabled."""
    system = dial(move("turn", WEAK, (0, 0)), move("go", NONE, (0, 1)), comes=Eventually(at(1)))
    finding = explore(system).finding("comes")
    assert values(finding.trace) == ((0,), 0, True)
    assert finding.fair == (FairnessEvidence("turn()", WEAK, taken=None, enabled=None, disabled=0),)


def test_one_of_two_steps_recurs() -> None:
    """The step from 0 is taken once and the step to 2 again and again, so that one of them recurs, and not the first."""
    again = Recurs(b.eq(b.next_("x", DIAL), b.num(2)), "to 2")
    once = Recurs(b.eq(x, b.num(0)), "from 0")
    system = dial(
        move("turn", WEAK, (0, 1), (1, 2), (2, 1)), either=OrF((again, once)), first=OrF((once, at(5))), once=once
    )
    result = explore(system)
    assert verdicts(result) == {"either": "holds", "first": "violated", "once": "violated"}
    assert values(result.finding("once").trace)[0][:2] == (0, 1)


def test_strong_fairness_is_not_judged_on_a_whole_component() -> None:
    """Second trap: the component 0 1 2 offers the way out at 1, and the cycle 0 2 avoids 1; strong fairness of the way
    out does not forbid that cycle, but it does forbid the cycle through 1."""
    inside = move("inside", NONE, (0, 1), (1, 0))
    aside = move("aside", NONE, (0, 2), (2, 0))
    out = move("out", STRONG, (1, 3))
    push = move("push", WEAK, (0, 2), (2, 0))
    finding = explore(dial(inside, aside, out, push, leaves=Eventually(at(3)))).finding("leaves")
    assert finding.verdict is Verdict.VIOLATED
    assert values(finding.trace) == ((0, 2), 0, False)
    assert [o.because for o in finding.fair] == ["never enabled on the cycle", "taken by step 1"]
    pushed = move("push", WEAK, (0, 1), (1, 0))
    assert verdicts(explore(dial(inside, out, pushed, leaves=Eventually(at(3))))) == {"leaves": "holds"}
    weak = move("out", WEAK, (1, 3))
    assert verdicts(explore(dial(inside, weak, pushed, leaves=Eventually(at(3))))) == {"leaves": "violated"}


@pytest.mark.parametrize("fairness", [WEAK, STRONG])
def test_steps_that_leave_without_fairness_are_owed_nothing(fairness: Fairness) -> None:
    """Every state of the cycle has such a step, and the cycle takes the only instance with a fairness constraint."""
    turn, leave = move("turn", fairness, (0, 1), (1, 0)), move("leave", NONE, (0, 2), (1, 2))
    finding = explore(dial(turn, leave, leaves=Eventually(at(2)))).finding("leaves")
    assert finding.verdict is Verdict.VIOLATED
    assert values(finding.trace) == ((0, 1), 0, False)


def test_strong_fairness_takes_components_apart_again_and_again() -> None:
    """What is left without the states of one strongly fair instance may offer another one and fall apart once more."""
    ring = move("ring", WEAK, (0, 1), (1, 2), (2, 3), (3, 4), (4, 0))
    jumps = (move("a", NONE, (1, 0)), move("b", NONE, (2, 1)), move("c", NONE, (3, 2)))
    leaves = Eventually(at(5))
    one = dial(ring, *jumps, move("out", STRONG, (4, 5)), leaves=leaves)
    assert verdicts(explore(one)) == {"leaves": "violated"}
    two = dial(ring, *jumps, move("out", STRONG, (4, 5)), move("too", STRONG, (2, 5)), leaves=leaves)
    finding = explore(two).finding("leaves")
    assert values(finding.trace) == ((0, 1), 0, False)
    three = dial(
        ring,
        *jumps,
        move("out", STRONG, (4, 5)),
        move("too", STRONG, (2, 5)),
        move("off", STRONG, (0, 5)),
        leaves=leaves,
    )
    assert verdicts(explore(three)) == {"leaves": "holds"}


def test_a_component_is_not_printed_as_a_path() -> None:
    """Third trap: the cycle of the lasso is a walk along real steps that pays everything owed, each step replayed."""
    system = dial(
        move("ab", WEAK, (0, 1), (1, 0)),
        move("ac", STRONG, (0, 2)),
        move("ca", WEAK, (2, 0)),
        move("ad", STRONG, (0, 3)),
        move("da", WEAK, (3, 0)),
        never=Eventually(at(4)),
    )
    finding = explore(system).finding("never")
    trace = finding.trace
    assert trace is not None
    assert trace.loop == 0
    interpreter = Interpreter(system)
    around = (*trace.states, trace.states[0])
    for before, instance, after in zip(around, trace.steps, around[1:], strict=False):
        assert interpreter.take(instance, before) == after
    assert sorted(set(trace.states)) == [(0,), (2,), (3,)], "ab is weak, and not enabled in the others"
    assert (len(trace.steps), finding.shortest) == (4, True)
    assert [(o.label, o.because) for o in finding.fair] == [
        ("ab()", "not enabled in state 1"),
        ("ac()", "taken by step 1"),
        ("ca()", "taken by step 2"),
        ("ad()", "taken by step 3"),
        ("da()", "taken by step 4"),
    ]


# --- findings


def test_mistakes_of_atoms() -> None:
    """A reachable state in which a formula's condition is a mistake makes it an error, with the way there."""
    wrong = Check(b.eq(x, b.num(2)), "x is two", None)
    system = dial(move("turn", WEAK, (0, 1), (1, 2)), checks=(wrong,), ends=Eventually(at(2)))
    finding = explore(system).finding("ends")
    assert finding.verdict is Verdict.ERROR
    assert values(finding.trace) == ((0, 1, 2), None, False)


def test_an_incomplete_search_decides_nothing() -> None:
    """Temporal properties are inconclusive when a limit was met."""
    system = dial(move("turn", WEAK, (0, 1), (1, 2), (2, 3)), ends=Eventually(at(3)))
    assert verdicts(explore(system, SearchOptions(max_depth=2))) == {"ends": "inconclusive"}


@pytest.mark.parametrize(
    ("trouble", "because"), [(KeyboardInterrupt, "interrupted"), (MemoryError, "not enough memory")]
)
def test_the_second_pass_may_be_cut_short(
    trouble: type[BaseException], because: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends the second pass early leaves the temporal properties open, and the others as they were found."""

    def cut(search: Search) -> None:
        raise trouble

    monkeypatch.setattr(Search, "steps", cut)
    result = explore(dial(move("turn", WEAK, (0, 1)), ends=Eventually(at(1))))
    finding = result.finding("ends")
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert because in finding.because
    assert result.counts.distinct == 2


@pytest.mark.parametrize(
    ("stop", "because"),
    [(Stop.INTERRUPTED, "interrupted"), (Stop.TIME, "time limit reached"), (Stop.MEMORY, "memory limit reached")],
)
def test_limits_count_for_the_second_pass(stop: Stop, because: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is met between the search and the second pass leaves temporal properties open."""
    level = Search._level

    def last(search: Search) -> None:
        level(search)
        if not search.queue:
            monkeypatch.setattr(Budget, "spent", lambda b: stop)

    monkeypatch.setattr(Search, "_level", last)
    finding = explore(dial(move("turn", WEAK, (0, 1)), ends=Eventually(at(1)))).finding("ends")
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.because.startswith(f"state space explored, temporal check not finished: {because}")


def test_what_holds_vacuously() -> None:
    """A leads-to whose condition is never true says nothing, and that is said; not where it is one claim of several."""
    never, ever = LeadsTo(at(4), at(5)), LeadsTo(at(0), at(1))
    result = explore(dial(move("turn", WEAK, (0, 1)), one=never, two=ever, both=AndF((never, ever))))
    assert [(f.verdict.value, f.vacuous) for f in result.findings] == [("holds", k == 0) for k in range(3)]
    assert result.finding("one").because == "vacuous: its antecedent is false in all 2 states"
    assert [result.vacuity(name) for name in ("one", "two")] == [True, False]


def test_seconds_are_those_of_the_second_pass() -> None:
    """Time is taken only when a temporal property is decided."""
    turn = move("turn", WEAK, (0, 1))
    assert explore(dial(turn)).seconds.liveness == 0.0
    assert explore(dial(turn, ends=Eventually(at(1)))).seconds.liveness > 0.0


def test_the_parts_of_the_time_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that every look at it moves on, the search takes more than half of the time."""
    monkeypatch.setattr(time, "perf_counter", partial(next, count()))
    system = dial(move("turn", WEAK, (0, 1), (1, 2), (2, 3), (3, 4)), ends=Eventually(at(4)))
    seconds = explore(system, SearchOptions(tier="python")).seconds
    assert seconds.total == seconds.compile + seconds.explore + seconds.liveness
    assert 2 * seconds.compile < seconds.total


def test_states_outside_the_constraint_refute_no_negation() -> None:
    """The dial is never at 2 within the constraint, and there is a way to 1."""
    system = dial(move("turn", WEAK, (0, 1), (1, 2)), never=Always(NotF(at(2))), not_1=Always(NotF(at(1))))
    within = constrained(system, [Conjunct(b.less(x, b.num(2)), "x < 2", None)])
    assert verdicts(explore(within)) == {"never": "holds", "not_1": "violated"}


def test_what_holds_vacuously_within_the_constraint() -> None:
    """The number of states is that of the states within it: 0 and 1."""
    system = dial(move("turn", WEAK, (0, 1), (1, 2)), move("back", WEAK, (1, 0)), one=LeadsTo(at(4), at(5)))
    finding = explore(constrained(system, [Conjunct(b.less(x, b.num(2)), "x < 2", None)])).finding("one")
    assert finding.because.startswith("vacuous: its antecedent is false in all 2 states within the constraint")


def test_the_text_of_a_prefix() -> None:
    """A prefix of no step is the initial state."""
    texts = ("the initial state, whatever follows", "the first step, whatever follows")
    assert (prefix_text(0), prefix_text(1)) == texts
    assert prefix_text(2) == "the first 2 steps, whatever follows"


def test_stem_and_cycle() -> None:
    """The stem is a shortest one to where the trouble begins, and the cycle a short one."""
    system = dial(
        move("go", WEAK, (0, 1), (1, 2)),
        move("on", WEAK, (2, 3), (3, 4), (4, 2)),
        again=Always(Eventually(at(1))),
        back=LeadsTo(at(2), at(0)),
    )
    result = explore(system)
    assert values(result.finding("again").trace) == ((0, 1, 2, 3, 4), 2, False)
    assert values(result.finding("back").trace) == ((0, 1, 2, 3, 4), 2, False)
    assert result.finding("back").because.startswith("fair lasso: stem of 2 steps, cycle of 3")


def test_too_many_conditions() -> None:
    """A formula with more conditions than automata are made for is left undecided, with advice."""
    many = Until(at(0), OrF(tuple(Always(Atom(b.less(x, b.num(1) if k else b.num(2)))) for k in range(2))))
    assert verdicts(explore(dial(move("turn", WEAK, (0, 1)), many=many))) == {"many": "holds"}
    grid = System(
        "grid",
        tuple(Variable(f"y{k}", RangeSort(0, 1), (0,)) for k in range(13)),
        (Action("none", (), NONE, (Instance("none", (), (), (), ()),)),),
        (
            Property(
                "wide",
                Kind.TEMPORAL,
                b.TRUE,
                formula=OrF(
                    tuple(Eventually(Atom(b.eq(b.var(f"y{k}", RangeSort(0, 1)), b.num(1)))) for k in range(13))
                ),
            ),
        ),
    )
    finding = explore(grid).finding("wide")
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "13 different conditions" in finding.because


def test_too_much_is_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a limit on how many instances are owed fairness; above it the property is left undecided."""
    turns = (move("turn", WEAK, (0, 1)), move("back", WEAK, (1, 0)))
    assert verdicts(explore(dial(*turns, comes=Eventually(at(1))))) == {"comes": "holds"}
    monkeypatch.setattr(fair_graph, "MOST_CONSTRAINTS", 1)
    finding = explore(dial(*turns, comes=Eventually(at(1)))).finding("comes")
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.because.startswith("fairness is required of 2 action instances")
