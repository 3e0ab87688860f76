"""Temporal verdicts agree with the referee on random systems and graphs, and both tiers find the same lassos."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

from nonempty import nonempty
from random_systems import temporal_system
from shares import share
from streamproof import model_registry
from streamproof.base.options import SearchOptions, Tuning
from streamproof.explicit.exploration import explore
from streamproof.explicit.liveness import fair_graph
from streamproof.explicit.liveness.buchi import buchi_automaton, negation_automaton
from streamproof.explicit.liveness.tableau import tableau
from streamproof.explicit.search import Search
from streamproof.system import (
    BOOL,
    Action,
    Conjunct,
    Expr,
    Fairness,
    Finding,
    Instance,
    Kind,
    ModelError,
    RangeSort,
    System,
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
    recurring,
    untils,
)
from streamproof.system.model import Property
from streamproof.system.reference import reference
from streamproof.system.reference_temporal import plain
from streamproof.system.temporal import fairness_of, true_of

ATOMS = tuple(Atom(b.var(name, BOOL), name) for name in "pqr")
COMPILED_GRAPHS = Tuning(few_edges=-1)
FIRST_FOUND = Tuning(few_edges=-1, cycle_work=0)
"""No lasso is exchanged for a shorter one: long ones, and stems that are far from them, occur."""
TINY = 5_000
"""States of the bundled models that are checked here, at most."""


def both_tiers(system: System, **limits: int) -> Sequence[Finding]:
    """The findings, which must be the same from both tiers, with graph algorithms in Python and compiled; the interpreter has
    confirmed every lasso in them."""
    found = explore(system, SearchOptions(tier="python", **limits)).findings  # type: ignore[arg-type]
    options = SearchOptions(tier="compiled", tuning=COMPILED_GRAPHS, **limits)  # type: ignore[arg-type]
    assert explore(system, options).findings == found
    return found


def confirm(system: System, finding: Finding, seen: Counter[str]) -> None:
    """A finding is the referee's; a lasso is a fair behaviour that makes the formula false."""
    seen[finding.verdict.value] += 1
    seen["vacuous"] += finding.vacuous is True
    if finding.verdict is not Verdict.VIOLATED:
        return
    trace, formula = finding.trace, system.property(finding.property).formula
    assert trace is not None
    assert trace.loop is not None
    assert formula is not None
    assert not true_of(system, formula, trace)
    assert all(evidence.satisfied for evidence in fairness_of(system, trace))
    seen["strong"] += any(o.fairness is Fairness.STRONG and o.enabled is not None for o in finding.fair)
    seen["stutters" if trace.stutters else "repeats"] += 1
    seen["long"] += len(trace.steps) - trace.loop > 3
    seen["far"] += trace.loop > 3


# --- random systems whose formulas have conditions on steps; those without are in test_temporal_agreement


@pytest.mark.parametrize(
    ("tier", "systems", "verdicts", "lassos"),
    [
        (
            "python",
            60,
            {"holds": 23, "violated": 53, "error": 3},
            {"stutters": 30, "repeats": 10, "long": 3, "strong": 4},
        ),
        pytest.param(
            "python",
            300,
            {"holds": 117, "violated": 270, "error": 23},
            {"stutters": 150, "repeats": 50, "long": 15, "far": 15, "strong": 20},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "compiled",
            30,
            {"holds": 12, "violated": 24, "error": 1},
            {"stutters": 12, "repeats": 8, "long": 2, "strong": 5},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "compiled",
            60,
            {"holds": 23, "violated": 53, "error": 3},
            {"stutters": 30, "repeats": 10, "long": 3, "strong": 7},
            marks=pytest.mark.long,
        ),
    ],
    ids=["python", "python-many", "compiled", "compiled-many"],
)
def test_conditions_on_steps(tier: str, systems: int, verdicts: dict[str, int], lassos: dict[str, int]) -> None:
    """The state graph with monitors of steps gives the verdicts of the referee, which knows no monitors."""
    seen, others = Counter[str](), Counter[str]()
    for seed in range(systems):
        system = temporal_system(Random(seed), recurring=True)
        expected = reference(system)
        if not expected.levels or expected.mistake is not None:
            continue
        for finding in explore(system, SearchOptions(tier=tier, tuning=Tuning(cycle_work=0))).findings:
            formula = system.property(finding.property).formula
            assert formula is not None
            assert finding.verdict is expected.decisions[finding.property].verdict
            confirm(system, finding, seen if any(recurring(formula)) else others)
    assert {kind: seen[kind] for kind in verdicts} == verdicts, seen
    assert all(seen[shape] >= least for shape, least in lassos.items()), seen


# --- random graphs, larger than those of the random systems and with deeper formulas


SMALL, LARGE = (1, 16), (41, 90)
"""States of random graphs, fewest and most; not all are reachable."""


def drawn(random: Random, size: tuple[int, int]) -> System:
    """A system with one variable, the number of the state, that goes through a random graph; with conditions p, q and r.

    Fairness is of every kind, and some instances share theirs. Each condition is true rarely, or often, or in between.
    """
    states = random.randint(*size)
    at = b.var("at", RangeSort(0, max(1, states - 1)))
    initial = random.randint(1, min(3, states))
    owners: list[tuple[str, Fairness, int]] = [("a0", Fairness.WEAK, 1)]
    while len(owners) < random.randint(2, 5):
        fairness = random.choice((Fairness.NONE, Fairness.WEAK, Fairness.WEAK, Fairness.STRONG, Fairness.STRONG))
        owners.append((f"a{len(owners)}", fairness, random.choice((1, 1, 2))))
    moves: list[dict[int, int]] = [{} for _, _, picks in owners for _ in range(picks)]
    for state in range(initial, states):
        random.choice(moves).setdefault(random.randrange(max(0, state - 4), state), state)
    restless = states > 1 and random.random() < 0.7  # something weakly fair is enabled wherever one is
    for state in range(states):
        if restless:
            moves[0].setdefault(state, state - 1 if state and random.random() < 0.3 else (state + 1) % states)
        for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
            target = random.randrange(max(0, state - 6), min(states, state + 3))
            random.choice(moves).setdefault(state, target)
    actions, number = [], 0
    for name, fairness, picks in owners:
        instances = []
        for pick in range(picks):
            guard: Expr = b.or_(b.eq(at, b.num(state)) for state in moves[number])
            becomes: Expr = at
            for state, target in moves[number].items():
                becomes = b.ite(b.eq(at, b.num(state)), b.num(target), becomes)
            chosen = (("k", pick),) if picks > 1 else ()
            instances.append(Instance(name, (), chosen, (Conjunct(guard, name, None),), (("at", becomes),)))
            number += 1
        actions.append(Action(name, (), fairness, tuple(instances)))
    chances = [random.choice((0.05, 0.2, 0.5, 0.85)) for _ in "pqr"]
    atoms = [
        Atom(b.or_(b.eq(at, b.num(state)) for state in range(states) if random.random() < chance), name)
        for name, chance in zip("pqr", chances, strict=True)
    ]
    properties = [
        Property(f"claim{k}", Kind.TEMPORAL, b.TRUE, formula=bounded(random, random.randint(1, 3), atoms))
        for k in range(2)
    ]
    rare = Atom(b.eq(at, b.num(random.randrange(states))), "one state, which may be unreachable")
    answered = LeadsTo(rare, random.choice(atoms))
    properties.append(Property("answered", Kind.TEMPORAL, b.TRUE, formula=answered))
    return System(
        "drawn", (Variable("at", at.sort, tuple(range(initial))),), tuple(actions), tuple(properties), terminal=b.TRUE
    )


MOST_UNTILS = 4
"""The referee guesses the truth of every *until* in every state."""


def bounded(random: Random, depth: int, atoms: Sequence[Formula]) -> Formula:
    """A formula that is not too large for the referee."""
    while len(set(untils(plain(found := formula(random, depth, atoms))))) > MOST_UNTILS:
        pass
    return found


def formula(random: Random, depth: int, atoms: Sequence[Formula] = ATOMS) -> Formula:
    """A formula over some conditions, nested as deep as this."""
    if depth == 0:
        return random.choice(atoms)
    one, other = formula(random, depth - 1, atoms), formula(random, random.randrange(depth), atoms)
    again = Always(Eventually(one))
    kinds: tuple[Formula, ...] = (
        NotF(one),
        AndF((one, other)),
        OrF((one, other)),
        Always(one),
        Eventually(one),
        Until(one, other),
        Release(one, other),
        LeadsTo(one, other),
        AndF((again, Always(Eventually(other)))),
        OrF((NotF(again), Always(Eventually(other)))),
    )
    return random.choice(kinds)


@pytest.mark.push
@pytest.mark.parametrize(
    ("tier", "size", "graphs", "verdicts", "lassos"),
    [
        (
            "python",
            SMALL,
            60,
            {"holds": 80, "violated": 100, "vacuous": 3},
            {"repeats": 50, "stutters": 18, "long": 25, "far": 5, "strong": 25},
        ),
        pytest.param(
            "python",
            SMALL,
            400,
            {"holds": 547, "violated": 653, "vacuous": 26},
            {"repeats": 400, "stutters": 160, "long": 200, "far": 50, "strong": 200},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "python",
            LARGE,
            40,
            {"holds": 51, "violated": 69, "vacuous": 8},
            {"repeats": 35, "stutters": 20, "long": 20, "far": 20, "strong": 20},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "compiled",
            SMALL,
            60,
            {"holds": 80, "violated": 100, "vacuous": 3},
            {"repeats": 60, "stutters": 18, "long": 30, "far": 5, "strong": 30},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "compiled",
            LARGE,
            10,
            {"holds": 14, "violated": 16, "vacuous": 2},
            {"repeats": 10, "stutters": 2, "long": 5, "far": 6, "strong": 6},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "compiled",
            LARGE,
            20,
            {"holds": 25, "violated": 35, "vacuous": 5},
            {"repeats": 16, "stutters": 10, "long": 10, "far": 10, "strong": 10},
            marks=pytest.mark.long,
        ),
    ],
    ids=[
        "python-small",
        "python-small-many",
        "python-large",
        "compiled-small",
        "compiled-large",
        "compiled-large-many",
    ],
)
def test_random_graphs(
    tier: str,
    size: tuple[int, int],
    graphs: int,
    verdicts: dict[str, int],
    lassos: dict[str, int],
) -> None:
    """The verdicts of the referee on graphs with fairness of every kind; each lasso is confirmed step by step.

    The numbers of verdicts are exact. Which lasso is found is up to the engine: there are so many of each shape at least.
    """
    seen, shortest = Counter[str](), Counter[str]()
    for seed in range(graphs):
        system = drawn(Random(seed), size)
        expected = reference(system)
        for tuning, shapes in ((FIRST_FOUND, seen), (COMPILED_GRAPHS, shortest))[: 2 if seed < graphs // 4 else 1]:
            for finding in explore(system, SearchOptions(tier=tier, tuning=tuning)).findings:
                assert finding.verdict is expected.decisions[finding.property].verdict, (seed, finding.property)
                confirm(system, finding, shapes)
    assert {kind: seen[kind] for kind in verdicts} == verdicts, seen
    assert all(seen[shape] >= least for shape, least in lassos.items()), seen


def constant(claim: Formula, truth: dict[str, bool]) -> bool:
    """Whether a formula is true of the behaviour that stays in one state for ever, where these atoms are true."""
    match claim:
        case Atom(text=name):
            return truth[name]
        case NotF(arg=arg):
            return not constant(arg, truth)
        case AndF(args=args):
            return all(constant(arg, truth) for arg in args)
        case OrF(args=args):
            return any(constant(arg, truth) for arg in args)
        case Always(arg=arg) | Eventually(arg=arg):
            return constant(arg, truth)
        case LeadsTo(left=left, right=right):
            return not constant(left, truth) or constant(right, truth)
        case Until(right=right) | Release(right=right):
            return constant(right, truth)
        case _:
            raise AssertionError(claim)


@pytest.mark.parametrize("seeds", share([range(155, 175), range(1000)], 2), ids=["few", "many"])
def test_behaviours_that_stay_in_one_state(seeds: range) -> None:
    """There a formula means what propositional logic makes of it, however large its automaton is."""
    claims = {}
    for seed in seeds:
        random = Random(seed)
        claims[str(seed)] = formula(random, random.randint(1, 4), random.sample((*ATOMS, NotF(ATOMS[0])), 3))
    properties = tuple(Property(name, Kind.TEMPORAL, b.TRUE, formula=claim) for name, claim in claims.items())
    for values in product((False, True), repeat=3):
        truth = dict(zip("pqr", values, strict=True))
        variables = tuple(Variable(name, BOOL, (value,)) for name, value in truth.items())
        explored = explore(System("one", variables, (), properties), SearchOptions(tier="python"))
        for name, claim in nonempty(claims.items()):
            expected = Verdict.HOLDS if constant(claim, truth) else Verdict.VIOLATED
            assert explored.finding(name).verdict is expected, (name, truth)


def test_large_tables_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts are those of the referee, however small the pieces are in which a large graph is looked at."""
    pieces = SearchOptions(tier="python", tuning=Tuning(table_cells=1, node_slice=3))
    monkeypatch.setattr(fair_graph, "PIECE", 2)
    seen: Counter[str] = Counter()
    for seed in range(40):
        system = drawn(Random(seed), SMALL)
        expected = reference(system)
        for finding in explore(system, pieces).findings:
            assert finding.verdict is expected.decisions[finding.property].verdict, (seed, finding.property)
            confirm(system, finding, seen)
    assert min(seen["holds"], seen["violated"], seen["strong"]) >= 15, seen


# --- bundled models

PARTS = 4


def temporal_models() -> list[tuple[str, str | None]]:
    """The bundled models, and their variants."""
    found: list[tuple[str, str | None]] = []
    for name in model_registry.bundled():
        spec = model_registry.find(name).spec
        found += [(name, variant) for variant in (None, *spec.model.variants)]
    return found


@pytest.mark.parametrize(
    ("part", "parts", "least"),
    [(0, 12 * PARTS, 0), *((part, PARTS, 5) for part in range(PARTS))],
)
@pytest.mark.long
def test_bundled_models(part: int, parts: int, least: int) -> None:
    """Every temporal property of every model and variant below the bound: the same findings and lassos from both tiers."""
    seen: Counter[str] = Counter()
    for name, variant in temporal_models()[part::parts]:
        spec = model_registry.find(name).spec
        system = spec.system() if variant is None else spec.system(variant=variant)
        properties = [p.name for p in system.properties if p.kind is Kind.TEMPORAL]
        if properties:
            found = explore(system, SearchOptions(properties=properties, max_states=TINY, tier="python"))
            if found.search.stopped is None:
                compiled = explore(system, SearchOptions(properties=properties, max_states=TINY, tier="compiled"))
                assert compiled.findings == found.findings, (name, variant)
                seen.update(finding.verdict.value for finding in found.findings)
    assert min(seen["holds"], seen["violated"]) > least


@pytest.mark.parametrize("variant", [None, "reordering", "lossy", "lost-announcement"])
def test_refinement_of_a_bundled_model(variant: str | None) -> None:
    """The fairness that an abstract system promises: the same finding from both tiers."""
    spec = model_registry.find("credit_connection").spec
    system = spec.system() if variant is None else spec.system(variant=variant)
    findings = {f.property: f.verdict.value for f in both_tiers(system)}
    assert findings["counted_fairness"] == ("violated" if variant == "lost-announcement" else "holds")


# --- what the decision is given


@pytest.mark.long
def test_automata_of_one_shape() -> None:
    """The automaton put together from one of a formula of the same shape is the one made for the formula itself."""
    choices: tuple[Formula, ...] = (*ATOMS, NotF(ATOMS[0]), AndF(ATOMS[:2]), Atom(b.TRUE), Atom(b.FALSE))
    seen: Counter[int] = Counter()
    for seed in range(800):
        random = Random(seed)
        claim = formula(random, random.randint(1, 3), random.sample(choices, 3))
        machine = negation_automaton(claim)
        assert machine == buchi_automaton(tableau(NotF(claim)))
        seen[len(machine.conditions)] += 1
    assert min(seen[conditions] for conditions in range(4)) > 15, seen


def test_steps_noted_on_the_way() -> None:
    """They are the steps of a second pass over the states, which is made where there are too many of them."""
    several = 0
    for seed in range(100):
        system = temporal_system(Random(seed))
        try:
            found = explore(system, SearchOptions(tier="python")).search
        except ModelError:
            continue
        if found.stopped is None:
            assert isinstance(found, Search)
            noted = found.steps()
            assert noted is found._noted
            found._noted = None
            assert found.steps() == noted
            several += len(noted[0]) > 10
    assert several > 25


# --- limits, and what is loaded


def toggling(*more: Formula) -> System:
    """A bit that is set and cleared, fairly; said of it: that it is set again and again, as a condition on steps."""
    on = b.var("on", BOOL)
    flip = Instance("flip", (), (), (), (("on", b.not_(on)),))
    sets = Recurs(b.and_((b.not_(on), b.next_("on", BOOL))), "set")
    prop = Property("sets", Kind.TEMPORAL, b.TRUE, formula=AndF((sets, *more)))
    return System("toggling", (Variable("on", BOOL, (False,)),), (Action("flip", (), Fairness.WEAK, (flip,)),), (prop,))


def test_limits_count_states_with_monitors() -> None:
    """Monitors make two states four; limits on states and levels count them, as a search with monitors would."""
    (finding,) = both_tiers(toggling())
    assert finding.because == "true of every fair behaviour of 4 states, monitor bits included"
    (finding,) = both_tiers(toggling(Always(Eventually(Atom(b.var("on", BOOL))))))
    assert finding.because.startswith("true of every fair behaviour of 4 states")
    (finding,) = both_tiers(toggling(), max_states=4)
    assert finding.verdict is Verdict.HOLDS
    (finding,) = both_tiers(toggling(), max_states=3)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "max_states is 3" in finding.because
    (finding,) = both_tiers(toggling(), max_depth=5)
    assert finding.verdict is Verdict.HOLDS
    for depth in (3, 4):
        (finding,) = both_tiers(toggling(), max_depth=depth)
        assert finding.verdict is Verdict.INCONCLUSIVE
        assert f"max_depth is {depth}" in finding.because


@pytest.mark.parametrize("words", share([["baton"], ["baton", "--variant", "inner-first"], ["credit_connection"]], 3))
def test_the_clock_decides_nothing(words: list[str]) -> None:
    """A check of a small model with temporal properties loads the same modules on a machine that is a thousand times slower,
    and of the large libraries those for arrays and compiled code only."""
    loaded = []
    for pace in (1, 1000):
        code = (
            f"import time; clock = time.perf_counter; time.perf_counter = lambda: {pace} * clock()\n"
            f"steady = time.monotonic; time.monotonic = lambda: {pace} * steady()\n"
            "import sys; from streamproof.__main__ import main; main()\n"
            "heavy = [m for m in ('llvmlite', 'networkx', 'numpy', 'pyarrow', 'scipy', 'z3') if m in sys.modules]\n"
            "print(heavy, sorted(m for m in sys.modules if m.startswith('streamproof')), file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "check", *words, "--quiet"], capture_output=True, text=True, check=True
        )
        loaded.append(done.stderr.splitlines()[-1])
    assert loaded[0] == loaded[1]
    assert loaded[0].partition("]")[0] in ("['numpy'", "['llvmlite', 'numpy'")
    assert words != ["baton"] or "llvmlite" not in loaded[0], "few edges need no compiler"
