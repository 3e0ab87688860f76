"""Proofs by induction on systems small enough to hold in the head: strengths, lemmas, what they rest on, what is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest

from streamproof.symbolic.confirmation import confirms
from streamproof.symbolic.induction import NO_MISTAKE, Round
from streamproof.symbolic.proof import Proof, prove
from streamproof.symbolic.replay import ReplayFailure
from streamproof.symbolic.solver import STEPS, Effort, SolverBudget, Stopped
from streamproof.system import (
    BOOL,
    Action,
    Check,
    Conjunct,
    EnumSort,
    Expr,
    Fairness,
    Instance,
    Interpreter,
    Kind,
    ModelError,
    Property,
    QueueSort,
    RangeSort,
    System,
    UsageError,
    Variable,
    Verdict,
)
from streamproof.system import build as b
from streamproof.transform.scalarise import scalarise


def taking(name: str, guard: Sequence[Expr], *updates: tuple[str, Expr], checks: Sequence[Check] = ()) -> Action:
    """An action of one instance."""
    conjuncts = tuple(Conjunct(g, "", None) for g in guard)
    return Action(name, (), Fairness.NONE, (Instance(name, (), (), conjuncts, updates, (), tuple(checks)),))


def always(name: str, expr: Expr) -> Property:
    """An invariant."""
    return Property(name, Kind.INVARIANT, expr)


N = b.var("n", RangeSort(0, 5))


def not_(value: int) -> Expr:
    """That the counter does not show this."""
    return b.not_(b.eq(N, b.num(value)))


def evens(*properties: Property, lemmas: Sequence[Property] = ()) -> System:
    """0, 2, 4, 0, ...: odd numbers are in the range and never reached."""
    step = taking("skip", (), ("n", b.mod(b.add(N, b.num(2)), b.num(6))))
    return System("evens", (Variable("n", N.sort, (0,)),), (step,), properties, lemmas=tuple(lemmas))


EVEN = always("even", b.eq(b.mod(N, b.num(2)), b.num(0)))
NOT_3 = always("not_3", not_(3))


def traces(proof: Proof) -> dict[str, list[int]]:
    """What `n` was along each counterexample to induction."""
    return {name: [state[0] for state in cti.trace.states] for name, cti in proof.ctis.items()}


def test_an_inductive_invariant_is_proved_with_strength_1() -> None:
    """The verdict says how it was proved and that it was confirmed."""
    proof = prove(evens(EVEN))
    assert [(f.property, f.verdict) for f in proof.findings] == [("even", Verdict.HOLDS)]
    assert proof.findings[0].because == "by k-induction, k=1"
    assert (proof.k, proof.ctis, proof.confirmed, proof.lemmas) == ({"even": 1}, {}, True, ())


def test_a_true_invariant_may_need_a_higher_strength() -> None:
    """3 is entered from 1, 1 from 5 and 5 only from 3: two steps do not exclude it, three do."""
    short = prove(evens(NOT_3), max_k=2, depth=0)
    assert short.findings[0].verdict is Verdict.INCONCLUSIVE
    assert short.findings[0].because == (
        "no violation in the first 1 step, but not inductive up to k=2: add a lemma that excludes the first state of the "
        "counterexample to induction, raise k, or use check"
    )
    assert traces(short) == {"not_3": [5, 1, 3]}
    assert (short.ctis["not_3"].k, short.ctis["not_3"].because) == (2, "false after 2 steps")
    long = prove(evens(NOT_3), max_k=3, depth=0)
    assert (long.findings[0].verdict, long.k, long.ctis) == (Verdict.HOLDS, {"not_3": 3}, {})


def test_a_lemma_lowers_the_strength() -> None:
    """With evenness the same invariant follows at once, and the verdict says what it rests on."""
    proof = prove(evens(NOT_3, lemmas=[EVEN]))
    assert proof.k == {"not_3": 1}
    assert proof.findings[0].because == ("by k-induction, k=1, with lemma even")
    assert (proof.used, proof.dropped) == (("even",), ())
    assert [(f.property, f.verdict) for f in proof.lemmas] == [("even", Verdict.HOLDS)]


def test_a_lemma_that_is_not_needed_is_not_said_to_be_used() -> None:
    """What a proof rests on is taken from the solver's core, not from what was offered."""
    proof = prove(evens(EVEN, lemmas=[always("low", b.less_eq(N, b.num(4)))]))
    assert proof.findings[0].verdict is Verdict.HOLDS
    assert proof.used == ()


def test_a_false_lemma_is_dropped_with_its_counterexample() -> None:
    """It is not believed, and what does not need it is proved all the same."""
    proof = prove(evens(EVEN, lemmas=[always("not_4", not_(4))]), max_k=3)
    assert proof.findings[0].verdict is Verdict.HOLDS
    assert (proof.used, proof.dropped) == ((), ("not_4",))
    (lemma,) = proof.lemmas
    assert lemma.verdict is Verdict.INCONCLUSIVE
    assert lemma.because == "not inductive of strength 1: false after 1 step"
    assert traces(proof) == {"not_4": [2, 4]}


def test_a_lemma_false_within_the_strength_is_refuted() -> None:
    """Where the base of the induction reaches it, the counterexample is a real one."""
    proof = prove(evens(NOT_3, lemmas=[always("not_2", not_(2))]), max_k=3)
    (lemma,) = proof.lemmas
    assert lemma.verdict is Verdict.VIOLATED
    assert lemma.trace is not None
    assert [s[0] for s in lemma.trace.states] == [0, 2]
    assert proof.findings[0].verdict is Verdict.HOLDS


def test_a_true_lemma_that_is_not_inductive_is_dropped() -> None:
    """Houdini: the lemma that falls takes with it only what rests on it."""
    proof = prove(evens(EVEN, NOT_3, lemmas=[always("not_5", not_(5))]), max_k=1, depth=0)
    assert [f.verdict for f in proof.findings] == [Verdict.HOLDS, Verdict.HOLDS]
    alone = prove(evens(NOT_3, lemmas=[always("not_5", not_(5))]), max_k=1, depth=0)
    assert alone.findings[0].verdict is Verdict.INCONCLUSIVE
    assert alone.dropped == ("not_5",)
    assert traces(alone) == {"not_5": [3, 5], "not_3": [1, 3]}


def test_lemmas_given_replace_those_of_the_system() -> None:
    """The caller's lemmas are used instead of the system's."""
    system = evens(NOT_3, lemmas=[always("idle", b.TRUE)])
    assert prove(system, max_k=1, depth=0).findings[0].verdict is Verdict.INCONCLUSIVE
    assert prove(system, max_k=1, depth=0, lemmas=[EVEN]).used == ("even",)


def test_a_lemma_that_is_no_invariant_is_refused() -> None:
    """Reachability cannot help a proof."""
    with pytest.raises(
        ModelError, match=r"^lemma some is of kind reachable\n  write a lemma as an invariant of states"
    ):
        prove(evens(EVEN, lemmas=[Property("some", Kind.REACHABLE, b.TRUE)]))


def test_a_violation_is_found_by_search_and_replayed() -> None:
    """What is not inductive because it is false ends with a shortest counterexample, beyond the strength tried."""
    proof = prove(evens(always("not_4", not_(4)), EVEN), max_k=1)
    broken, even = proof.findings
    assert (broken.verdict, even.verdict) == (Verdict.VIOLATED, Verdict.HOLDS)
    assert broken.trace is not None
    assert [s[0] for s in broken.trace.states] == [0, 2, 4]
    assert proof.ctis == {}


def test_an_unreachable_state_refutes_reachability_without_a_trace() -> None:
    """Induction shows that it is never reached; there is nothing to show."""
    reach = Property("three", Kind.REACHABLE, b.eq(N, b.num(3)))
    (finding,) = prove(evens(reach)).findings
    assert (finding.verdict, finding.trace) == (Verdict.VIOLATED, None)
    assert finding.because == ("true in no reachable state, by k-induction, k=3")
    witness = prove(evens(replace(reach, expr=b.eq(N, b.num(4))))).findings[0]
    assert (witness.verdict, witness.because) == (Verdict.HOLDS, "reached after 2 steps")


def test_step_properties_and_deadlock_freedom_are_proved() -> None:
    """Both are inductive beside evenness; the step property is not without it."""
    up_or_home = b.or_((b.less(N, b.next_("n", N.sort)), b.eq(b.next_("n", N.sort), b.num(0))))
    step, free = Property("up", Kind.STEP, up_or_home), Property("free", Kind.DEADLOCK, b.TRUE)
    together = prove(evens(step, free, lemmas=[EVEN]), max_k=1, depth=0)
    assert [f.verdict for f in together.findings] == [Verdict.HOLDS, Verdict.HOLDS]
    assert together.findings[0].because.startswith("by k-induction, k=1, with lemma even")
    assert together.findings[1].because == "by k-induction, k=1"
    alone = prove(evens(step), max_k=1, depth=0)
    assert alone.findings[0].verdict is Verdict.INCONCLUSIVE
    assert traces(alone) == {"up": [5, 1]}
    assert alone.ctis["up"].because == "broken by step 1, skip()"


def test_a_step_back_to_an_earlier_state_breaks_a_step_property() -> None:
    """Loop-free fragments must not hide the last step of a loop: 0, 2, 4, 0 breaks `never 4 to 0` at strength 3, too."""
    never_home = Property("never_home", Kind.STEP, b.or_((not_(4), b.not_(b.eq(b.next_("n", N.sort), b.num(0))))))
    for k in (1, 2, 3, 4):
        (finding,) = prove(evens(never_home), max_k=k, depth=0).findings
        assert finding.verdict is (Verdict.VIOLATED if k > 3 else Verdict.INCONCLUSIVE)


def test_termination_is_left_to_the_explicit_engine() -> None:
    """The verdict says which engine decides it."""
    (finding,) = prove(evens(Property("ends", Kind.TERMINATION, b.TRUE))).findings
    assert (finding.verdict, finding.because) == (
        Verdict.INCONCLUSIVE,
        "termination is decided on the whole graph of states: use check, which explores it",
    )


# --- a bounded queue whose capacity is guarded by credit: the mistake is excluded by a conservation law --------------


CREDIT = b.var("credit", RangeSort(0, 3))
WIRE = b.var("wire", QueueSort(EnumSort(("DATA", "EVENT")), 2))
LAW = always("law", b.eq(b.add(CREDIT, b.length(WIRE)), b.num(2)))


def credited(*properties: Property, lemmas: Sequence[Property] = ()) -> System:
    """Sending needs credit and pushes; a push to a full queue, or credit beyond its range, is a mistake."""
    full = Check(b.eq(b.length(WIRE), b.num(2)), "push to a full queue", None)
    over = Check(b.eq(CREDIT, b.num(3)), "credit leaves its range", None)
    data = b.const(EnumSort(("DATA", "EVENT")), "DATA")
    send = taking(
        "send",
        [b.less(b.num(0), CREDIT)],
        ("credit", b.sub(CREDIT, b.num(1))),
        ("wire", b.push(WIRE, data)),
        checks=[full],
    )
    take = taking(
        "take",
        [b.less(b.num(0), b.length(WIRE))],
        ("credit", b.add(CREDIT, b.num(1))),
        ("wire", b.pop(WIRE)),
        checks=[over],
    )
    variables = (Variable("credit", CREDIT.sort, (2,)), Variable("wire", WIRE.sort, ((),)))
    return System("credited", variables, (send, take), properties, lemmas=tuple(lemmas))


FREE = Property("free", Kind.DEADLOCK, b.TRUE)


def test_nothing_holds_while_the_model_may_make_a_mistake() -> None:
    """Deadlock freedom rests on the queue never overflowing, which is not inductive without the law."""
    proof = prove(credited(FREE), max_k=1, depth=1)
    (finding,) = proof.findings
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.because == (
        "no violation in the first 1 step, nor, by induction, before the model's first mistake; up to k=1 it may make one "
        "(push to a full queue in send()): add a lemma that excludes the first state of the counterexample to induction, "
        "raise k, or use check"
    )
    assert list(proof.ctis) == [NO_MISTAKE]
    before, after = proof.ctis[NO_MISTAKE].trace.states
    assert (before[0], len(before[1]), after[0], len(after[1])) == (2, 1, 1, 2)
    assert proof.k == {}
    assert proof.confirmed is None


def test_a_conservation_law_excludes_the_mistake() -> None:
    """With the law as a lemma everything is inductive, and the law is named as what the proof rests on."""
    proof = prove(credited(FREE, lemmas=[LAW]), max_k=1)
    assert proof.findings[0].because == ("by k-induction, k=1, with lemma law")
    assert proof.used == ("law",)


def test_a_property_may_be_another_ones_lemma() -> None:
    """Properties asked for together are proved together."""
    proof = prove(credited(FREE, LAW), max_k=1)
    assert [f.verdict for f in proof.findings] == [Verdict.HOLDS, Verdict.HOLDS]
    assert proof.findings[0].because == "by k-induction, k=1"


def test_what_is_proved_up_to_the_first_mistake_is_no_verdict() -> None:
    """A reachable mistake outweighs an inductive invariant: the verdict is the error, with the way to it."""
    system = credited(LAW)
    crowded = replace(
        system,
        variables=(replace(system.variables[0], initial=(2,)), replace(system.variables[1], initial=(("DATA",),))),
    )
    low = always("low", b.less_eq(CREDIT, b.num(3)))
    (finding,) = prove(replace(crowded, properties=(low,))).findings
    assert finding.verdict is Verdict.ERROR
    assert finding.because.splitlines()[0] == "push to a full queue in send()"
    assert finding.trace is not None
    assert [len(wire) for _, wire in finding.trace.states] == [1, 2]


# --- mutual exclusion ------------------------------------------------------------------------------------------------


PLACE = EnumSort(("AWAY", "WISH", "WAIT", "IN"))


def peterson(*lemmas: Property) -> System:
    """Two processes: raise the flag, give way, enter, leave."""
    turn = b.var("turn", BOOL)
    place = [b.var(f"at{k}", PLACE) for k in (0, 1)]
    flag = [b.var(f"flag{k}", BOOL) for k in (0, 1)]

    def at(k: int, where: str) -> Expr:
        return b.eq(place[k], b.const(PLACE, where))

    def go(k: int, where: str) -> tuple[str, Expr]:
        return f"at{k}", b.const(PLACE, where)

    actions: list[Action] = []
    for k, other in ((0, 1), (1, 0)):
        mine = turn if k == 1 else b.not_(turn)
        actions += [
            taking(f"wish{k}", [at(k, "AWAY")], go(k, "WISH"), (f"flag{k}", b.TRUE)),
            taking(f"yield{k}", [at(k, "WISH")], go(k, "WAIT"), ("turn", b.truth(other == 1))),
            taking(f"enter{k}", [at(k, "WAIT"), b.or_((b.not_(flag[other]), mine))], go(k, "IN")),
            taking(f"leave{k}", [at(k, "IN")], go(k, "AWAY"), (f"flag{k}", b.FALSE)),
        ]
    exclusive = always("exclusive", b.not_(b.and_((at(0, "IN"), at(1, "IN")))))
    variables = (
        *(Variable(f"at{k}", PLACE, ("AWAY",)) for k in (0, 1)),
        *(Variable(f"flag{k}", BOOL, (False,)) for k in (0, 1)),
        Variable("turn", BOOL, (False, True)),
    )
    return System("peterson", variables, tuple(actions), (exclusive, FREE), lemmas=lemmas)


def raised(k: int) -> Property:
    """The flag is up exactly away from home."""
    away = b.eq(b.var(f"at{k}", PLACE), b.const(PLACE, "AWAY"))
    return always(f"raised{k}", b.not_(b.eq(b.var(f"flag{k}", BOOL), away)))


def gave_way(k: int) -> Property:
    """While a process is in and the other waits, the turn is that of the one inside."""
    inside = b.eq(b.var(f"at{k}", PLACE), b.const(PLACE, "IN"))
    waits = b.eq(b.var(f"at{1 - k}", PLACE), b.const(PLACE, "WAIT"))
    turn = b.var("turn", BOOL)
    return always(f"gave_way{k}", b.implies(b.and_((inside, waits)), turn if k == 1 else b.not_(turn)))


def test_mutual_exclusion_is_proved_with_lemmas() -> None:
    """Peterson's algorithm is safe by four lemmas at strength 1, all of which the proof rests on."""
    lemmas = (raised(0), raised(1), gave_way(0), gave_way(1))
    proof = prove(peterson(*lemmas), ["exclusive"], max_k=1)
    assert proof.findings[0].verdict is Verdict.HOLDS
    assert proof.used == ("raised0", "raised1", "gave_way0", "gave_way1")


def test_mutual_exclusion_without_lemmas_shows_a_step_from_an_odd_state() -> None:
    """The counterexample to induction starts where the interpreter agrees that the property holds, and ends where not."""
    system = peterson()
    proof = prove(system, ["exclusive"], max_k=1, depth=5)
    cti = proof.ctis["exclusive"]
    interpreter = Interpreter(system)
    before, after = cti.trace.states
    prop = system.property("exclusive")
    assert (interpreter.holds(prop, before), interpreter.holds(prop, after)) == (True, False)
    assert interpreter.take(cti.trace.steps[0], before) == after
    assert cti.trace.steps[0].label in ("enter0()", "enter1()")


def test_without_loop_freedom_strength_does_not_help() -> None:
    """An unreachable state with a step to itself defeats plain k-induction of any strength, loop-free fragments do not."""
    bad = b.eq(N, b.num(2))
    clock = b.var("clock", RangeSort(0, 99))
    tick = taking("tick", [b.eq(N, b.num(0))], ("clock", b.mod(b.add(clock, b.num(1)), b.num(100))))
    stay = taking("stay", [b.eq(N, b.num(1))])
    fall = taking("fall", [b.eq(N, b.num(1))], ("n", b.num(2)))
    variables = (Variable("n", N.sort, (0,)), Variable("clock", clock.sort, (0,)))
    system = System("trap", variables, (tick, stay, fall), (always("safe", b.not_(bad)),))
    plain = prove(system, simple=False, max_k=5, depth=0)
    assert plain.findings[0].verdict is Verdict.INCONCLUSIVE
    assert traces(plain) == {"safe": [1, 1, 1, 1, 1, 2]}
    assert prove(system, max_k=5, depth=0).k == {"safe": 2}


# --- limits and second opinions --------------------------------------------------------------------------------------


def test_bad_strengths_and_depths_are_refused() -> None:
    """Each message says what is allowed."""
    with pytest.raises(UsageError, match=r"^induction of strength 0\n  choose 1 or more$"):
        prove(evens(EVEN), max_k=0)
    with pytest.raises(UsageError, match=r"^a depth of -1 steps\n"):
        prove(evens(EVEN), depth=-1)
    with pytest.raises(UsageError, match=r"^evens has no property 'odd'\n  its properties: even$"):
        prove(evens(EVEN), ["odd"])


def test_a_run_out_of_time_says_so() -> None:
    """What was not decided in time is inconclusive, whatever it would have been."""
    proof = prove(evens(EVEN), seconds=1e-9)
    assert proof.findings[0].verdict is Verdict.INCONCLUSIVE
    because = "out of time after 1e-09 s: no violation in no state at all; allow more time, or use check"
    assert proof.findings[0].because == because
    assert (proof.queries, proof.interrupted) == (0, False)


def test_a_reproducible_limit_does_not_look_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """With limits in the solver's steps, hours by the clock change nothing, and too few steps end the run."""
    clock = count(0, 3_600)
    monkeypatch.setattr("streamproof.symbolic.solver.time.monotonic", lambda: float(next(clock)))
    proof = prove(evens(EVEN), seconds=60.0, reproducible=True)
    assert (proof.findings[0].verdict, proof.k["even"]) == (Verdict.HOLDS, 1)
    assert 0 < proof.seconds.total < 1
    ended = prove(evens(EVEN), seconds=proof.seconds.total / 2, reproducible=True)
    assert ended.findings[0].because.startswith("out of time after ")


def test_an_interrupt_keeps_what_is_known() -> None:
    """Ctrl-C after the first round: what that proved holds, the rest is open and says why."""

    def interrupt(effort: Effort) -> None:
        if effort.doing.startswith("induction") and effort.depth == 2:
            raise KeyboardInterrupt

    proof = prove(evens(EVEN, always("not_4", not_(4))), on_progress=interrupt)
    assert proof.interrupted
    assert [f.verdict for f in proof.findings] == [Verdict.HOLDS, Verdict.INCONCLUSIVE]
    assert proof.findings[1].because == (
        "interrupted: no violation in the first 1 step, but not inductive up to k=1: add a lemma that excludes the first "
        "state of the counterexample to induction, raise k, or use check"
    )


def test_the_second_opinion_refuses_a_wrong_proof() -> None:
    """Claims that are false at the start, or not inductive, are found out when the proof is checked again."""
    started, entered, odd = always("not_0", not_(0)), always("not_4", not_(4)), NOT_3
    scalarised = scalarise(evens(started, entered, odd))
    with pytest.raises(ReplayFailure, match="a claim that was proved is false near the initial states"):
        confirms(scalarised, [Round(1, [started], safe=True, simple=False, integers=False)], SolverBudget())
    with pytest.raises(ReplayFailure, match="a claim that was proved is not inductive of strength 1"):
        confirms(scalarised, [Round(1, [odd], safe=True, simple=False, integers=False)], SolverBudget())
    with pytest.raises(ReplayFailure, match="a claim that was proved is false near the initial states"):
        confirms(scalarised, [Round(3, [entered], safe=True, simple=True, integers=True)], SolverBudget())
    assert confirms(scalarised, [Round(3, [odd], safe=True, simple=True, integers=False)], SolverBudget())


def test_a_proof_that_never_shows_safety_is_not_confirmed() -> None:
    """Rounds none of which excludes mistakes prove nothing."""
    scalarised = scalarise(evens(EVEN))
    assert not confirms(scalarised, [Round(1, [EVEN], safe=False, simple=False, integers=False)], SolverBudget())


@pytest.mark.long
def test_sums_that_bit_vectors_do_not_decide_are_left_to_integers() -> None:
    """A conservation law over many counters is proved in seconds, as integers get their turn early."""
    sort = RangeSort(0, 9)
    names = [f"c{k}" for k in range(16)]
    counters = [b.var(name, sort) for name in names]
    moves = [
        taking(
            f"move{k}",
            [b.less(b.num(0), counters[k]), b.less(counters[k - 1], b.num(9))],
            (names[k], b.sub(counters[k], b.num(1))),
            (names[k - 1], b.add(counters[k - 1], b.num(1))),
        )
        for k in range(16)
    ]
    total = b.num(0)
    for c in counters:
        total = b.add(total, c)
    variables = tuple(Variable(name, sort, (3,)) for name in names)
    proof = prove(
        System("sums", variables, tuple(moves), (always("law", b.eq(total, b.num(48))),)), depth=0, confirm=False
    )
    assert proof.findings[0].because == "by k-induction, k=1"


@pytest.mark.parametrize(("short", "over"), [(STEPS // 2_000, True), (STEPS // 500, False)])
def test_a_slice_ends_the_run_where_no_query_would_be_let_through(short: int, over: bool) -> None:
    """Half a millisecond before the end of a run is its end, or an engine that is asked again goes on for ever."""
    budget = SolverBudget(seconds=1, reproducible=True, steps=STEPS - short)

    def spend() -> None:
        with budget.slice(0.0001):
            budget.allowance()

    if over:
        with pytest.raises(Stopped, match="out of time after 1 s"):
            spend()
    else:
        spend()
    assert budget.seconds == 1
