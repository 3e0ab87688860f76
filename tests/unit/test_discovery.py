"""Discovery of invariants: conservation laws, what states show, Houdini, clauses from counterexamples to induction."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from nonempty import nonempty
from streamproof.symbolic.cubes import clause, cube_of
from streamproof.symbolic.discovery.houdini import inductive
from streamproof.symbolic.discovery.laws import Books, Law
from streamproof.symbolic.discovery.leaf_names import in_terms_of_the_model
from streamproof.symbolic.discovery.learning import learned
from streamproof.symbolic.discovery.linear import null_space, primitive
from streamproof.symbolic.discovery.mining import mined
from streamproof.symbolic.discovery.pretty import pretty
from streamproof.symbolic.discovery.samples import Samples
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import goals
from streamproof.symbolic.portfolio import Engine
from streamproof.symbolic.proof import prove
from streamproof.symbolic.solver import SolverBudget
from streamproof.system import (
    BOOL,
    Action,
    ArraySort,
    Conjunct,
    EnumSort,
    Expr,
    Fairness,
    Instance,
    Kind,
    OptionSort,
    Property,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    State,
    System,
    Variable,
    Verdict,
)
from streamproof.system import build as b
from streamproof.system.interpreter import Interpreter
from streamproof.system.reference import reference
from streamproof.transform.scalarise import scalarise

COUNT = RangeSort(0, 9)


def taking(name: str, guard: Sequence[Expr], *updates: tuple[str, Expr]) -> Action:
    """An action of one instance."""
    conjuncts = tuple(Conjunct(g, "", None) for g in guard)
    return Action(name, (), Fairness.NONE, (Instance(name, (), (), conjuncts, updates),))


def place(name: str, tokens: int) -> Variable:
    """A place of a net with so many tokens at first."""
    return Variable(name, COUNT, (tokens,))


def fire(name: str, *moves: tuple[str, int]) -> Action:
    """A transition of a net: what it takes from places (negative) and adds to them."""
    guard = [b.less_eq(b.num(-n), b.var(p, COUNT)) for p, n in moves if n < 0]
    return taking(name, guard, *((p, b.add(b.var(p, COUNT), b.num(n))) for p, n in moves))


def laws(system: System) -> tuple[Law, ...]:
    """The laws of a system."""
    return Books(system).kept()


def written(system: System) -> list[tuple[dict[str, int], int | None]]:
    """The laws of a system, by the texts of what they sum up, with their totals."""
    found = []
    for law in laws(system):
        total = (
            None
            if law.total is None
            else Interpreter(system).value(law.total, tuple(v.initial[0] for v in system.variables))
        )
        found.append(({pretty(term): weight for term, weight in law.coefficients.items()}, total))
    return found


def test_simpler_vectors_span_the_same_space() -> None:
    """Two independent laws stay two when they are made simpler: a vector is not combined with what it was before."""
    places = ["sent", "wire", "filled", "consumed", "announced", "heard"]
    steps: list[dict[str, int | Fraction]] = [
        {"sent": 1, "wire": 1},
        {"wire": -1, "filled": 1},
        {"filled": -1, "consumed": 1, "announced": 1},
        {"announced": -1, "heard": 1},
    ]
    assert null_space(steps, places) == (
        {"consumed": 1, "announced": -1, "heard": -1},
        {"sent": 1, "wire": -1, "filled": -1, "consumed": -1},
    )


def test_null_space_is_exact_and_primitive() -> None:
    """Every solution is a combination of the basis, whose vectors are of coprime integers."""
    equations: list[dict[str, int | Fraction]] = [{"x": 2, "y": -3}, {"y": Fraction(1, 2), "z": 5, "x": 0}]
    assert null_space(equations, ["x", "y", "z", "w"]) == ({"x": 15, "y": 10, "z": -1}, {"w": 1})
    assert primitive({"x": Fraction(-2, 3), "y": Fraction(4, 9)}) == {"x": 3, "y": -2}


def test_place_invariants_of_a_readers_writers_net() -> None:
    """The net has two place invariants: processes are somewhere, and a writer holds all three keys."""
    net = System(
        "net",
        (place("idle", 3), place("reading", 0), place("writing", 0), place("keys", 3)),
        (
            fire("read", ("idle", -1), ("reading", 1), ("keys", -1)),
            fire("done", ("idle", 1), ("reading", -1), ("keys", 1)),
            fire("write", ("idle", -1), ("writing", 1), ("keys", -3)),
            fire("wrote", ("idle", 1), ("writing", -1), ("keys", 3)),
        ),
    )
    assert written(net) == [
        ({"idle": 1, "reading": 1, "writing": 1}, 3),
        ({"reading": 1, "writing": 3, "keys": 1}, 3),
    ]


def test_a_net_that_makes_tokens_has_no_law() -> None:
    """Where a transition adds without taking, nothing is conserved."""
    assert (
        laws(System("source", (place("p", 0), place("q", 1)), (fire("make", ("p", 1)), fire("eat", ("q", -1))))) == ()
    )


def test_sums_that_one_transition_breaks_are_bounded_by_what_they_were() -> None:
    """A token may be lost on its way: sent is at least what is on its way and what arrived. Without that, it is equal."""
    net = System(
        "lossy",
        (place("left", 3), place("wire", 0), place("got", 0)),
        (fire("send", ("left", -1), ("wire", 1)), fire("get", ("wire", -1), ("got", 1)), fire("lose", ("wire", -1))),
    )
    assert written(net) == []
    books = {pretty(law.sum): tuple(map(pretty, law.bounds)) for law in Books(net).drifting()}
    assert books["left + wire + got"] == ("left + wire + got <= 3", "left + wire + got >= 3")
    encoding = Encoding(scalarise(net), integers=True)
    candidates = [condition for law in Books(net).drifting() for condition in law.bounds]
    assert "left + wire + got <= 3" in [pretty(c) for c in inductive(encoding, candidates, SolverBudget())]
    assert "left + wire + got >= 3" not in [pretty(c) for c in inductive(encoding, candidates, SolverBudget())]


def test_what_is_known_helps_candidates() -> None:
    """A candidate that only a step from an impossible state breaks is kept where that state is known to be impossible."""
    x, y = b.var("x", COUNT), b.var("y", COUNT)
    system = System(
        "copying",
        (place("x", 0), place("y", 0)),
        (taking("copy", [b.less(y, x)], ("y", x)), taking("grow", [b.less(x, b.num(3))], ("x", b.add(x, b.num(1))))),
    )
    encoding = Encoding(scalarise(system), integers=True)
    low, lower = b.less_eq(x, b.num(3)), b.less_eq(y, b.num(3))
    assert inductive(encoding, [lower], SolverBudget()) == ()
    assert inductive(encoding, [lower], SolverBudget(), [low]) == (lower,)


def test_laws_count_flags_values_and_conditional_updates() -> None:
    """A token is at a station of an enumeration, or on its way as a flag, or counted, whichever branch is taken."""
    at = EnumSort(("none", "a", "b"))
    station, flying, count = b.var("station", at), b.var("flying", BOOL), b.var("count", COUNT)
    system = System(
        "token",
        (Variable("station", at, ("a",)), Variable("flying", BOOL, (False,)), place("count", 0)),
        (
            taking(
                "leave",
                [b.eq(station, b.const(at, "a")), b.not_(flying)],
                ("station", b.const(at, "none")),
                ("flying", b.TRUE),
            ),
            taking(
                "land",
                [flying, b.eq(station, b.const(at, "none"))],
                ("flying", b.FALSE),
                ("station", b.ite(b.less(b.num(3), count), b.const(at, "b"), b.const(at, "none"))),
                ("count", b.ite(b.less(b.num(3), count), count, b.add(count, b.num(1)))),
            ),
        ),
    )
    assert written(system) == [({"station == 'a'": 1, "station == 'b'": 1, "flying": 1, "count": 1}, 1)]


def test_what_is_set_anew_is_in_no_law_unless_it_cancels() -> None:
    """A swap conserves the sum of what it swaps; a reset to a number conserves nothing of it."""
    x, y = b.var("x", COUNT), b.var("y", COUNT)
    swap = taking("swap", [], ("x", y), ("y", x))
    reset = taking("reset", [], ("z", b.num(0)))
    assert written(System("swap", (place("x", 1), place("y", 4), place("z", 2)), (swap, reset))) == [
        ({"x": 1, "y": 1}, 5)
    ]


def test_totals_are_terms_in_what_no_step_writes() -> None:
    """Where initial states say it, a total is a term in frozen variables; where they differ otherwise, there is none."""
    size, free, used = (b.var(n, COUNT) for n in ("size", "free", "used"))
    moves = (fire("take", ("free", -1), ("used", 1)), fire("give", ("free", 1), ("used", -1)))
    variables = (Variable("size", COUNT, (2, 3)), Variable("free", COUNT, (2, 3)), place("used", 0))
    (law,) = laws(System("pool", variables, moves, initially=b.eq(free, size)))
    assert (dict(law.coefficients), law.total) == ({free: 1, used: 1}, size)
    assert law.claim is b.eq(b.add(free, used), size)
    (open_law,) = laws(System("pool", variables, moves))
    assert (open_law.total, open_law.claim) == (None, None)


def ring() -> System:
    """A token goes round three flags; a counter of laps that never leaves 0..3, in a wider range."""
    flags = [b.var(f"at[{k}]", BOOL) for k in range(3)]
    laps = b.var("laps", COUNT)
    steps = [
        taking(
            f"go{k}",
            [flags[k]],
            (f"at[{k}]", b.FALSE),
            (f"at[{(k + 1) % 3}]", b.TRUE),
            ("laps", b.mod(b.add(laps, b.num(1)), b.num(4))),
        )
        for k in range(3)
    ]
    return System(
        "ring",
        (*(Variable(f"at[{k}]", BOOL, (k == 0,)) for k in range(3)), place("laps", 0)),
        tuple(steps),
        (Property("one", Kind.INVARIANT, b.not_(b.and_((flags[0], flags[1])))),),
    )


def reachable(system: System) -> list[State]:
    """Every reachable state."""
    return [state for level in reference(system).levels for state in level]


def test_mining_says_what_holds_in_all_states_and_only_that() -> None:
    """Bounds, equations and exclusions of the states are found, and each candidate is true in all of them."""
    system = ring()
    samples = Samples(system, reachable(system))
    found = [c for group in mined(samples) for c in group]
    texts = {pretty(c) for c in found}
    assert {"laps <= 3", "at[0] + at[1] + at[2] == 1", "not at[0] or not at[1]"} <= texts
    assert all(samples.all_satisfy(c) for c in found)
    interpreter = Interpreter(system)
    assert all(interpreter.value(c, s) for c in found for s in samples.states)


def test_houdini_keeps_only_what_is_inductive() -> None:
    """Of candidates true and false, only the largest inductive part stays; what holds but needs more does not."""
    system = ring()
    at = [b.var(f"at[{k}]", BOOL) for k in range(3)]
    laps = b.var("laps", COUNT)
    alone = b.not_(b.and_((at[0], at[1])))
    whole = b.eq(
        b.add(
            b.add(b.ite(at[0], b.num(1), b.num(0)), b.ite(at[1], b.num(1), b.num(0))), b.ite(at[2], b.num(1), b.num(0))
        ),
        b.num(1),
    )
    few = b.less_eq(laps, b.num(3))
    false_later = b.eq(laps, b.num(0))
    false_at_first = at[2]
    encoding = Encoding(scalarise(system))
    assert inductive(encoding, [alone, few, false_later, false_at_first], SolverBudget()) == (few,)
    assert inductive(encoding, [alone, few, false_later, whole], SolverBudget()) == (alone, few, whole)


@pytest.mark.parametrize("integers", [False, True])
def test_houdini_agrees_with_taking_every_step(integers: bool) -> None:
    """What is kept is what no step from any state that satisfies all of it breaks, by the interpreter."""
    system = ring()
    samples = Samples(system, reachable(system))
    candidates = [c for group in mined(samples) for c in group]
    kept = inductive(Encoding(scalarise(system), integers=integers), candidates, SolverBudget())
    interpreter = Interpreter(system)
    every = [(x, y, z, n) for x in (False, True) for y in (False, True) for z in (False, True) for n in range(10)]
    alive = [c for c in candidates if interpreter.value(c, (True, False, False, 0))]
    while True:
        broken = {
            c
            for s in every
            if all(interpreter.values(alive, s))
            for step in interpreter.steps(s)
            for c, holds in zip(alive, interpreter.values(alive, step.state), strict=True)
            if not holds
        }
        if not broken:
            break
        alive = [c for c in alive if c not in broken]
    assert set(kept) == set(alive)


def test_learning_excludes_states_that_are_not_reached() -> None:
    """The exclusion alone is not inductive; the clauses learned make it so, and no reachable state violates them."""
    system = ring()
    encoding = Encoding(scalarise(system))
    samples = Samples(system, reachable(system))
    clauses = learned(encoding, goals(encoding, system.properties), (), samples, SolverBudget(), {})
    assert clauses
    assert all(samples.all_satisfy(c) for c in clauses)
    proof = prove(
        system, ["one"], max_k=1, lemmas=[Property(f"l{n}", Kind.INVARIANT, c) for n, c in enumerate(clauses)]
    )
    assert proof.findings[0].verdict is Verdict.HOLDS


def test_learning_gives_up_claims_that_explored_states_refute() -> None:
    """A claim broken a step from an explored state is left out and reported, and the others are supported all the same."""
    system = ring()
    laps = b.var("laps", COUNT)
    wrong = Property("wrong", Kind.INVARIANT, b.less(laps, b.num(2)))
    right = Property("right", Kind.INVARIANT, b.less(laps, b.num(5)))
    selected = System(system.name, system.variables, system.actions, (wrong, right))
    encoding = Encoding(scalarise(selected))
    samples = Samples(system, reachable(system))
    refuted: dict[Property, None] = {}
    clauses = learned(encoding, goals(encoding, selected.properties), (), samples, SolverBudget(), refuted)
    assert [p.name for p in refuted] == ["wrong"]
    proof = prove(
        selected, ["right"], max_k=1, lemmas=[Property(f"l{n}", Kind.INVARIANT, c) for n, c in enumerate(clauses)]
    )
    assert proof.findings[0].verdict is Verdict.HOLDS


def test_what_explored_states_refute_is_found_however_deep() -> None:
    """A search of so many steps is too short for a violation; as explored states show that there is one, it goes on."""
    sort = RangeSort(0, 30)
    n = b.var("n", sort)
    guard = Conjunct(b.less(n, b.num(30)), "n < 30", None)
    up = Action("up", (), Fairness.NONE, (Instance("up", (), (), (guard,), (("n", b.add(n, b.num(1))),)),))
    system = System(
        "steps", (Variable("n", sort, (0,)),), (up,), (Property("few", Kind.INVARIANT, b.less(n, b.num(25))),)
    )
    states = [(at,) for at in range(31)]
    proof = prove(system, engine=Engine.DISCOVERY, depth=10, max_k=1, explored=lambda: states)
    assert [(f.verdict, len(f.trace or ())) for f in proof.findings] == [(Verdict.VIOLATED, 26)]
    proof = prove(system, engine=Engine.DISCOVERY, depth=10, max_k=1)
    assert [f.verdict for f in proof.findings] == [Verdict.INCONCLUSIVE]


def test_a_state_is_distinguished_from_samples_by_few_parts() -> None:
    """Two flags at once are enough to tell an unreachable state from all others; a sample is distinguished by nothing."""
    samples = Samples(ring(), reachable(ring()))
    cube = samples.separated((True, True, False, 2))
    assert cube is not None
    assert pretty(clause(cube)) == "not at[0] or not at[1]"
    assert samples.separated(samples.states[0]) is None


def test_parts_of_a_cube_are_those_of_the_state() -> None:
    """A cube is true of its state and of no other, whatever the sorts."""
    sort = EnumSort(("p", "q", "r"))
    system = System(
        "s", (Variable("e", sort, ("p",)), Variable("n", RangeSort(-1, 2), (0,)), Variable("f", BOOL, (True,))), ()
    )
    every = [(e, n, f) for e in sort.members for n in range(-1, 3) for f in (False, True)]
    interpreter = Interpreter(system)
    for state in nonempty(every):
        assert [s for s in every if not interpreter.value(clause(cube_of(system, state)), s)] == [state]


def test_leaves_are_said_in_the_terms_of_the_model() -> None:
    """Conditions on leaves become conditions on the variables, with the same value in every state, and read like Python."""
    element = RecordSort((("who", OptionSort(RangeSort(0, 1))), ("on", BOOL)))
    sort = EnumSort(("X", "Y"))
    system = System(
        "parts",
        (
            Variable("a", ArraySort(RangeSort(0, 1), element), (((None, True), (1, False)),)),
            Variable("q", QueueSort(sort, 2), (("Y",),)),
            Variable("s", SetSort(sort), (frozenset({"X"}),)),
        ),
        (),
    )
    scalar = scalarise(system)
    said = in_terms_of_the_model(scalar)
    texts = [pretty(said(b.var(v.name, v.sort))) for v in scalar.system.variables]
    assert texts == [
        "a[0].who is not None", "a[0].who", "a[0].on", "a[1].who is not None", "a[1].who", "a[1].on",
        "len(q)", "q[0]", "q[1]", "'X' in s", "'Y' in s",
    ]  # fmt: skip
    interpreter, below = Interpreter(system), Interpreter(scalar.system)
    for state in [
        (((None, True), (1, False)), ("Y",), frozenset({"X"})),
        (((0, False), (None, True)), (), frozenset({"X", "Y"})),
        (((1, False), (0, True)), ("X", "Y"), frozenset()),
    ]:
        for v in scalar.system.variables:
            leaf = b.var(v.name, v.sort)
            assert interpreter.value(said(leaf), state) == below.value(leaf, scalar.encode(state))


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (b.or_((b.not_(b.eq(b.var("n", COUNT), b.num(3))), b.var("f", BOOL))), "n != 3 or f"),
        (b.and_((b.or_((b.var("f", BOOL), b.var("g", BOOL))), b.not_(b.var("h", BOOL)))), "(f or g) and not h"),
        (b.less_eq(b.num(2), b.var("n", COUNT)), "n >= 2"),
        (b.not_(b.less_eq(b.num(2), b.var("n", COUNT))), "n < 2"),
        (b.not_(b.less(b.var("n", COUNT), b.var("m", COUNT))), "n >= m"),
        (b.sub(b.var("n", COUNT), b.sub(b.var("m", COUNT), b.num(1))), "n - (m - 1)"),
        (b.mul(b.num(2), b.add(b.var("n", COUNT), b.num(1))), "2 * (n + 1)"),
    ],
)  # fmt: skip
def test_texts_have_the_parentheses_they_need(term: Expr, text: str) -> None:
    """What is written means what the term means when Python reads it."""
    assert pretty(term) == text


def test_discovery_completes_a_proof_and_names_what_it_needed() -> None:
    """The ring's exclusion follows from what is discovered, of which only what is needed is told."""
    system = ring()
    assert prove(system, ["one"], max_k=1, depth=1).findings[0].verdict is Verdict.INCONCLUSIVE
    proof = prove(system, ["one"], engine=Engine.DISCOVERY, max_k=1, depth=0, explored=lambda: reachable(system))
    assert proof.findings[0].verdict is Verdict.HOLDS
    assert proof.engines == {"one": Engine.DISCOVERY}
    assert [(m.name, m.text) for m in proof.discovered] == [("found_1", "at[0] + at[1] + at[2] == 1")]
    assert len(proof.invariant) == 1
    assert proof.confirmed is True
