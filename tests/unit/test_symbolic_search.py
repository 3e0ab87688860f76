"""Bounded model checking on systems small enough to hold in the head."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from streamproof.symbolic.bmc import bmc
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.portfolio import Engine
from streamproof.symbolic.proof import prove
from streamproof.symbolic.replay import ReplayFailure
from streamproof.symbolic.solver import Effort
from streamproof.system import (
    Action,
    Check,
    Conjunct,
    Exit,
    Expr,
    Fairness,
    Finding,
    Instance,
    Kind,
    Property,
    RangeSort,
    System,
    UsageError,
    Variable,
    Verdict,
)
from streamproof.system import build as b
from streamproof.system.reference import reference

N = b.var("n", RangeSort(0, 3))
TICK = ("n", b.add(N, b.num(1)))


def counter(*properties: Property, guard: Expr = b.TRUE, terminal: Expr | None = None, **parts: object) -> System:
    """`n` counts up from 0, as long as the guard allows, in a range that ends at 3."""
    instance = replace(Instance("tick", (), (), (Conjunct(guard, "", None),), (TICK,)), **parts)  # type: ignore[arg-type]
    return System(
        "counter",
        (Variable("n", N.sort, (0,)),),
        (Action("tick", (), Fairness.NONE, (instance,)),),
        properties,
        terminal=terminal,
    )


def prop(kind: Kind, expr: Expr = b.TRUE, name: str = "p", *checks: Check) -> Property:
    """A property of one conjunct."""
    return Property(name, kind, expr, (Conjunct(expr, "it", None),), checks)


def n_is(value: int) -> Expr:
    """That the counter shows this."""
    return b.eq(N, b.num(value))


BELOW_3 = b.less(N, b.num(3))


def only(system: System, depth: int) -> Finding:
    """The finding on the only property."""
    (finding,) = bmc(system, depth).findings
    return finding


def values_of(finding: Finding) -> list[int]:
    """What `n` was along the trace."""
    assert finding.trace is not None
    return [state[0] for state in finding.trace.states]


def test_an_invariant_is_broken_by_a_shortest_behaviour() -> None:
    """The counterexample has every state, names every step, and says after how many steps the invariant is false."""
    finding = only(counter(prop(Kind.INVARIANT, b.not_(n_is(2))), guard=BELOW_3), 3)
    assert finding.verdict is Verdict.VIOLATED
    assert values_of(finding) == [0, 1, 2]
    assert finding.trace is not None
    assert [i.label for i in finding.trace.steps] == ["tick()", "tick()"]
    assert finding.because == "false after 2 steps"


def test_an_invariant_may_be_false_at_the_start() -> None:
    """A counterexample of no steps is one state."""
    finding = only(counter(prop(Kind.INVARIANT, b.not_(n_is(0))), guard=BELOW_3), 0)
    assert (finding.verdict, values_of(finding), finding.because) == (Verdict.VIOLATED, [0], "false after 0 steps")


def test_the_conjunct_that_failed_is_named() -> None:
    """Of several conjuncts, the first false one is told."""
    parts = (Conjunct(b.less_eq(N, b.num(3)), "n <= 3", None), Conjunct(b.not_(n_is(1)), "n != 1", None))
    both = Property("p", Kind.INVARIANT, b.and_([c.expr for c in parts]), parts)
    assert only(counter(both, guard=BELOW_3), 3).because == "false after 1 step: not n != 1"


def test_a_step_property_is_broken_by_the_step_named() -> None:
    """The trace ends with the step that breaks it."""
    stays_or_low = b.or_((b.less(N, b.num(1)), b.eq(N, b.next_("n", N.sort))))
    finding = only(counter(prop(Kind.STEP, stays_or_low), guard=BELOW_3), 3)
    assert (finding.verdict, values_of(finding)) == (Verdict.VIOLATED, [0, 1, 2])
    assert finding.because == "broken by step 2, tick()"


def test_a_reachable_state_is_reached_with_a_witness() -> None:
    """Reachability holds by a shortest behaviour to such a state."""
    finding = only(counter(prop(Kind.REACHABLE, b.less(b.num(1), N)), guard=BELOW_3), 3)
    assert (finding.verdict, values_of(finding), finding.because) == (Verdict.HOLDS, [0, 1, 2], "reached after 2 steps")


def test_a_deadlock_is_where_nothing_is_enabled() -> None:
    """The counter that stops at 3 deadlocks there, unless that is a terminal state."""
    finding = only(counter(prop(Kind.DEADLOCK), guard=BELOW_3), 5)
    assert (finding.verdict, values_of(finding)) == (Verdict.VIOLATED, [0, 1, 2, 3])
    assert finding.because == "nothing is enabled after 3 steps"
    ended = only(counter(prop(Kind.DEADLOCK), guard=BELOW_3, terminal=n_is(3)), 5)
    assert ended.verdict is Verdict.HOLDS
    assert ended.because == "no violation, and no behaviour reaches a new state after 3 steps"


def test_a_bound_alone_never_yields_holds() -> None:
    """Without a violation in the depth, and without covering everything, the verdict is inconclusive, with advice."""
    result = bmc(counter(prop(Kind.INVARIANT, b.not_(n_is(3))), guard=BELOW_3), 2)
    assert (result.depth, result.complete) == (2, False)
    assert result.findings[0].verdict is Verdict.INCONCLUSIVE
    assert result.findings[0].because == (
        "no violation in the first 2 steps; raise the depth, prove it by induction, or use check"
    )


def test_completeness_is_shown_by_loops() -> None:
    """A counter modulo 3 has no behaviour of 3 steps without a loop: at depth 3 the search is complete, at 2 it is not."""
    modulo = {"updates": (("n", b.mod(b.add(N, b.num(1)), b.num(3))),)}
    system = counter(prop(Kind.INVARIANT, BELOW_3), prop(Kind.REACHABLE, n_is(3), "never"), **modulo)
    assert not bmc(system, 2).complete
    assert not bmc(system, 3, completeness=False).complete
    result = bmc(system, 3)
    assert [f.verdict for f in result.findings] == [Verdict.HOLDS, Verdict.VIOLATED]
    assert result.findings[1].because == "true in no reachable state: no behaviour reaches a new state after 3 steps"
    assert result.findings[1].trace is None


def test_a_step_back_is_seen_before_the_search_is_called_complete() -> None:
    """The step from the last new state back to an old one can break a step property: it must be looked at."""
    modulo = {"updates": (("n", b.mod(b.add(N, b.num(1)), b.num(3))),)}
    never_back = prop(Kind.STEP, b.less_eq(N, b.next_("n", N.sort)))
    assert [bmc(counter(never_back, **modulo), depth).findings[0].verdict for depth in (2, 3)] == [
        Verdict.INCONCLUSIVE,
        Verdict.VIOLATED,
    ]


def test_an_evaluation_error_is_reported_with_the_way_to_it() -> None:
    """A check that fires is an error of the model: everything not decided before ends with it."""
    check = Check(b.not_(BELOW_3), "n leaves its range", None, (("n", N),))
    system = counter(
        prop(Kind.INVARIANT, b.not_(n_is(1)), "early"), prop(Kind.INVARIANT, b.TRUE, "late"), effect_checks=(check,)
    )
    early, late = bmc(system, 9).findings
    assert (early.verdict, values_of(early)) == (Verdict.VIOLATED, [0, 1])
    assert (late.verdict, values_of(late)) == (Verdict.ERROR, [0, 1, 2, 3])
    assert late.because.splitlines()[0] == "n leaves its range in tick() (n = 3)"


def test_a_check_beside_the_guard_fires_in_every_state() -> None:
    """A guard check is decided where the instance is not enabled, too."""
    check = Check(n_is(2), "undecidable", None)
    finding = only(counter(prop(Kind.DEADLOCK), guard=b.less(N, b.num(2)), guard_checks=(check,)), 9)
    assert (finding.verdict, values_of(finding)) == (Verdict.ERROR, [0, 1, 2])


def test_a_value_outside_its_sort_is_an_error_without_a_check() -> None:
    """A hand-built system that writes 4 into a range up to 3 is caught although nothing in it says so."""
    finding = only(counter(prop(Kind.INVARIANT)), 9)
    assert (finding.verdict, values_of(finding)) == (Verdict.ERROR, [0, 1, 2, 3])
    assert finding.because == "n leaves Range(0, 3) in tick() (n = 4)"


def test_a_mistake_in_a_property_is_its_own() -> None:
    """A property that cannot be evaluated is an error; its neighbour is decided as ever."""
    check = Check(n_is(2), "head of an empty queue", None)
    system = counter(
        prop(Kind.INVARIANT, b.TRUE, "partial", check), prop(Kind.INVARIANT, BELOW_3, "total"), guard=BELOW_3
    )
    partial, total = bmc(system, 9).findings
    assert (partial.verdict, values_of(partial)) == (Verdict.ERROR, [0, 1, 2])
    assert partial.because.splitlines()[0] == "head of an empty queue in property partial"
    assert (total.verdict, values_of(total)) == (Verdict.VIOLATED, [0, 1, 2, 3])


def test_termination_is_left_to_the_explicit_engine() -> None:
    """The verdict says which engine decides it."""
    finding = only(counter(prop(Kind.TERMINATION), guard=BELOW_3), 9)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.because == "termination is decided on the whole graph of states: use check, which explores it"


def test_without_initial_states_everything_is_vacuous() -> None:
    """What holds of no behaviour at all is marked vacuous."""
    system = replace(
        counter(prop(Kind.INVARIANT, b.FALSE), prop(Kind.REACHABLE, b.TRUE, "q"), guard=BELOW_3), initially=n_is(2)
    )
    result = bmc(system, 3)
    assert [(f.verdict, f.vacuous) for f in result.findings] == [(Verdict.HOLDS, True), (Verdict.VIOLATED, True)]
    assert {f.because for f in result.findings} == {"vacuous: the system has no initial state"}


def test_without_actions_only_the_initial_states_count() -> None:
    """A system that cannot move deadlocks at once and is explored completely."""
    system = replace(counter(prop(Kind.DEADLOCK), prop(Kind.INVARIANT, n_is(0), "zero")), actions=())
    result = bmc(system, 4)
    assert [f.verdict for f in result.findings] == [Verdict.VIOLATED, Verdict.HOLDS]
    assert (result.depth, result.complete) == (0, True)


def test_properties_are_chosen_by_name() -> None:
    """Only those asked for are answered, in the system's order; an unknown name is refused with the known ones."""
    system = counter(*(prop(Kind.INVARIANT, b.TRUE, name) for name in "abc"), guard=BELOW_3)
    assert [f.property for f in bmc(system, 1, ["c", "a"]).findings] == ["a", "c"]
    with pytest.raises(UsageError, match=r"^counter has no property 'd'\n  its properties: a, b, c$"):
        bmc(system, 1, ["d"])


def test_a_negative_depth_is_refused() -> None:
    """The message says what the smallest depth means."""
    with pytest.raises(
        UsageError, match=r"^a depth of -1 steps\n  0 looks at the initial states only; choose 0 or more$"
    ):
        bmc(counter(), -1)


def test_progress_tells_depth_and_what_is_open() -> None:
    """One report per depth, in order, the open properties counted down as they are decided."""
    efforts: list[Effort] = []
    system = counter(prop(Kind.INVARIANT, b.not_(n_is(1))), prop(Kind.INVARIANT, b.TRUE, "q"), guard=BELOW_3)
    bmc(system, 2, on_progress=efforts.append, completeness=False)
    assert [(e.doing, e.depth, e.undecided) for e in efforts] == [
        ("searching", 0, 2),
        ("searching", 1, 2),
        ("searching", 2, 1),
    ]


def test_the_same_search_twice_gives_the_same_traces() -> None:
    """Runs are seeded and share no state."""
    free = Variable("m", RangeSort(0, 50), tuple(range(51)))
    system = counter(prop(Kind.INVARIANT, b.not_(n_is(2))), guard=BELOW_3)
    system = replace(system, variables=(*system.variables, free))
    assert bmc(system, 3).findings == bmc(system, 3).findings


def test_a_wrong_model_of_the_solver_is_caught_by_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counterexample that does not replay is a defect of the engine, with an exit code of its own, never a verdict."""
    monkeypatch.setattr(Encoding, "stuck", property(lambda self: self.all_of(())))
    with pytest.raises(
        ReplayFailure, match=r"the symbolic engine and the interpreter disagree: \(0,\) decides none of p"
    ) as caught:
        bmc(counter(prop(Kind.DEADLOCK), guard=BELOW_3), 3)
    assert caught.value.exit_code is Exit.DISAGREE


def test_a_wrong_step_is_caught_by_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transition relation that forgets the guards takes a step that the interpreter refuses."""
    monkeypatch.setattr(Encoding, "_guard", lambda self, instance: self.all_of(()))
    with pytest.raises(ReplayFailure, match=r"tick\(\) leads from \(2,\) to None, not to \(3,\)"):
        bmc(counter(prop(Kind.REACHABLE, n_is(3)), guard=b.less(N, b.num(2))), 3)


def crowd() -> System:
    """Fourteen counters whose sum is asked for: easy to state, minutes for a solver to search to any depth."""
    sort = RangeSort(0, 9)
    names = [f"c{k}" for k in range(14)]
    instances = tuple(
        Instance(
            "move",
            (("of", x), ("to", y)),
            (),
            (Conjunct(b.and_((b.less(b.num(0), b.var(x, sort)), b.less(b.var(y, sort), b.num(9)))), "", None),),
            ((x, b.sub(b.var(x, sort), b.num(1))), (y, b.add(b.var(y, sort), b.num(1)))),
        )
        for x in names
        for y in names
        if x != y
    )
    total = b.num(0)
    for k, name in enumerate(names):
        total = b.add(total, b.mul(b.var(name, sort), b.var(names[k - 1], sort)))
    return System(
        "crowd",
        tuple(Variable(name, sort, (k % 3,)) for k, name in enumerate(names)),
        (Action("move", ("of", "to"), Fairness.NONE, instances),),
        (prop(Kind.INVARIANT, b.less(total, b.num(700))),),
    )


def test_a_timeout_per_query_ends_in_inconclusive() -> None:
    """A query that the solver gives up leaves its property open and says how far the search had come."""
    finding = bmc(crowd(), 40, query_limit=0.05, completeness=False).findings[0]
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.because.startswith("the solver gave up ")
    assert finding.because.endswith("; raise the timeout, or use check")


def test_a_limit_on_the_run_ends_in_inconclusive() -> None:
    """The whole run stops soon after its time, with what is known."""
    began = time.monotonic()
    result = bmc(crowd(), 40, seconds=1.0)
    assert time.monotonic() - began < 10
    assert result.findings[0].verdict is Verdict.INCONCLUSIVE
    assert result.findings[0].because.startswith("out of time after 1 s: no violation in ")
    assert not result.interrupted


INTERRUPTED = """
import sys; sys.path.insert(0, {folder!r})
from test_symbolic_search import crowd
from streamproof.symbolic.bmc import bmc
result = bmc(crowd(), 400, on_progress=lambda effort: print(effort.depth, flush=True))
print(result.interrupted, result.findings[0].verdict.value, result.findings[0].because)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a process of its own")
def test_interrupting_gives_the_partial_result() -> None:
    """Ctrl-C in the midst of a query ends the run at once, marks it, and keeps what is known."""
    code = INTERRUPTED.format(folder=os.path.dirname(__file__))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert "2\n" in iter(child.stdout.readline, "")
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    rest, _ = child.communicate(timeout=60)
    last = rest.splitlines()[-1]
    assert last.startswith("True inconclusive interrupted: no violation in the first ")
    assert child.returncode == 0


@pytest.mark.parametrize("kind", [Kind.INVARIANT, Kind.REACHABLE, Kind.STEP])
@pytest.mark.parametrize("engine", ["bmc", "pdr"])
def test_an_error_of_a_property_counts_only_without_a_decision_at_its_depth(kind: Kind, engine: str) -> None:
    """One step leads to where the property cannot be evaluated, another to where it is decided, in either order of values."""
    sort = RangeSort(0, 4)
    x = b.var("x", sort)
    start = Conjunct(b.eq(x, b.num(0)), "x == 0", None)
    for wrong in (1, 2, 3, 4):
        rules = tuple(
            Action(f"to_{k}", (), Fairness.NONE, (Instance(f"to_{k}", (), (), (start,), (("x", b.const(sort, k)),)),))
            for k in (1, 2, 3, 4)
        )
        decides = b.eq(b.next_("x", sort) if kind is Kind.STEP else x, b.num(5 - wrong))
        fails = b.eq(b.next_("x", sort) if kind is Kind.STEP else x, b.num(wrong))
        prop = Property(
            "p",
            kind,
            decides if kind is Kind.REACHABLE else b.not_(decides),
            checks=(Check(fails, "no value", None),),
        )
        system = System("fork", (Variable("x", sort, (0,)),), rules, (prop,))
        found = bmc(system, 3) if engine == "bmc" else prove(system, ["p"], engine=Engine.PDR)
        expected = Verdict.HOLDS if kind is Kind.REACHABLE else Verdict.VIOLATED
        assert found.findings[0].verdict is expected is reference(system).decisions["p"].verdict
