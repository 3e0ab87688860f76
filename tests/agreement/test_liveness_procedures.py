"""Small graphs are decided in plain Python, others on arrays: both give the same answers, down to the lasso."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from random_systems import temporal_system
from streamproof import registry
from streamproof.explicit import explore, small_graph
from streamproof.explicit.graph import StateGraph
from streamproof.explicit.liveness import decide
from streamproof.explicit.liveness import recurring as recurring_steps
from streamproof.explicit.liveness.arrays import ArraySearch
from streamproof.explicit.liveness.automaton import Automaton, automaton
from streamproof.explicit.liveness.decide import Liveness
from streamproof.explicit.liveness.outcome import Lasso
from streamproof.explicit.liveness.refuting import refuter
from streamproof.explicit.liveness.small import arena, noted
from streamproof.explicit.liveness.tableau import tableau
from streamproof.explicit.search import Search
from streamproof.explicit.small_graph import SmallGraph, Truths
from streamproof.explicit.witness import Witnesses
from streamproof.system import (
    BOOL,
    Action,
    Expr,
    Fairness,
    Finding,
    Instance,
    Kind,
    ModelError,
    System,
    Trace,
    Variable,
    Verdict,
)
from streamproof.system import build as b
from streamproof.system import expr as e
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
    claims,
    recurring,
)
from streamproof.system.model import Property
from streamproof.system.temporal import true_of

ATOMS = tuple(Atom(b.var(name, BOOL), name) for name in "pqr")


# --- whole searches of random systems


def both_ways(system: System, monkeypatch: pytest.MonkeyPatch, **limits: int) -> Sequence[Finding]:
    """The findings, which must be the same from both procedures; the interpreter has confirmed every lasso in them."""
    found = explore(system, tier="python", **limits).findings  # type: ignore[arg-type]
    with monkeypatch.context() as patched:
        patched.setattr(small_graph, "MOST_STATES", -1)
        assert explore(system, tier="python", **limits).findings == found  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("recur", [False, True], ids=["states", "steps"])
def test_random_systems(recur: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts, reasons, whether vacuous, traces and how they treat what is fair; with conditions on steps the number of
    states with their notes is a part of the reason."""
    seen: Counter[str] = Counter()
    for seed in range(300):
        system = temporal_system(Random(seed), recurring=recur)
        try:
            findings = both_ways(system, monkeypatch)
        except ModelError:
            continue
        for finding in findings:
            formula = system.property(finding.property).formula
            assert formula is not None
            if recur and not any(recurring(formula)):
                continue
            seen[finding.verdict.value] += 1
            seen["vacuous"] += finding.vacuous
            seen["strong"] += any(o.fairness is Fairness.STRONG and o.enabled is not None for o in finding.fair)
            if finding.verdict is Verdict.VIOLATED:
                assert finding.trace is not None
                assert finding.trace.loop is not None
                seen["stutters" if finding.trace.stutters else "repeats"] += 1
                seen["long"] += len(finding.trace.steps) - finding.trace.loop > 3
    assert min(seen["holds"], seen["violated"]) > 100
    assert min(seen["stutters"], seen["repeats"]) > 50
    assert min(seen["long"], seen["strong"]) > 15
    assert seen["vacuous"] > (-1 if recur else 3)


# --- random graphs, larger than those of the random systems and with deeper formulas


def owing(random: Random, instances: int) -> System:
    """A system that has only its conditions and what fairness is owed to, the first instance weakly; some share theirs."""
    actions, number = [Action("a0", (), Fairness.WEAK, (Instance("a0", (), (), (), ()),))], 1
    while number < instances:
        picks = min(random.choice((1, 1, 2)), instances - number)
        own = tuple(Instance(f"a{number}", (), (("k", k),), (), ()) for k in range(picks))
        fairness = random.choice((Fairness.NONE, Fairness.WEAK, Fairness.WEAK, Fairness.STRONG))
        actions.append(Action(f"a{number}", (), fairness, own))
        number += picks
    return System("owing", tuple(Variable(a.text, BOOL, (False,)) for a in ATOMS), tuple(actions), ())


def drawn(random: Random) -> tuple[System, SmallGraph, StateGraph]:
    """One random graph, every state of which can be reached, in both forms."""
    states, instances = random.randint(1, 40), random.randint(1, 6)
    initial = random.randint(1, min(3, states))
    parents = [-1] * initial + [random.randrange(max(0, k - 6), k) for k in range(initial, states)]
    rows: list[list[tuple[int, int]]] = [[] for _ in range(states)]
    for state, parent in enumerate(parents):
        if parent >= 0:
            rows[parent].append((random.randrange(instances), state))
    restless = states > 1 and random.random() < 0.7  # something weakly fair is enabled wherever one is
    for state in range(states):
        if restless:
            rows[state].append((0, state - 1 if state and random.random() < 0.3 else (state + 1) % states))
        for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
            rows[state].append(
                (random.randrange(instances), random.randrange(max(0, state - 8), min(states, state + 3)))
            )
        rows[state].sort()
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    targets, taken = [t for row in rows for _, t in row], [i for row in rows for i, _ in row]
    chance = random.choice((0.15, 0.5, 0.85))
    known = {atom.expr: bytes(random.random() < chance for _ in range(states)) for atom in ATOMS}

    def path(number: int) -> list[int]:
        return small_graph.path(parents.__getitem__, number)

    def truth(term: Expr, state: int) -> int:
        return int(_value(term, {atom: row[state] for atom, row in known.items()}))

    def rows_of(terms: Sequence[Expr]) -> list[bytes]:
        return [bytes(truth(term, state) for state in range(states)) for term in terms]

    plain = SmallGraph(initial, offsets, targets, taken, path, Truths(rows_of))
    arrays = StateGraph(
        initial,
        np.array(offsets, dtype=np.int64),
        np.array(targets, dtype=np.int32),
        np.array(taken, dtype=np.int32),
        path,
        lambda terms: np.array([list(row) for row in rows_of(terms)], dtype=np.bool_),
    )
    return owing(random, instances), plain, arrays


def _value(term: Expr, atoms: dict[Expr, int]) -> bool:
    match term:
        case e.Var():
            return bool(atoms[term])
        case e.Const(value=value):
            return bool(value)
        case e.Not(arg=arg):
            return not _value(arg, atoms)
        case e.And(args=args):
            return all(_value(arg, atoms) for arg in args)
        case e.Or(args=args):
            return any(_value(arg, atoms) for arg in args)
        case _:
            raise AssertionError("formulas add no other operators")


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


def confirm(system: System, graph: SmallGraph, formula: Formula, lasso: Lasso) -> None:
    """The lasso is a behaviour from an initial state along real steps, is fair, and makes the formula false."""
    offsets, targets = graph.offsets, graph.targets
    stem, cycle = lasso.stem, lasso.cycle
    assert stem[0] < graph.initial
    assert stem[-1] == cycle[0]
    around = [(a, c) for a, c in pairwise((*cycle, cycle[0])) if a != c]
    assert len(around) == (0 if len(cycle) == 1 else len(cycle))
    for a, c in (*pairwise(stem), *around):
        assert c in targets[offsets[a] : offsets[a + 1]]

    def offers(state: int) -> list[tuple[int, int]]:
        return [
            (graph.instances[k], targets[k]) for k in range(offsets[state], offsets[state + 1]) if targets[k] != state
        ]

    number = 0
    for action in system.actions:
        own = range(number, number := number + len(action.instances))
        taken = any((i, c) in offers(a) for a, c in around for i in own)
        enabled = [any(i in own for i, _ in offers(state)) for state in cycle]
        match action.fairness:
            case Fairness.WEAK:
                assert taken or not all(enabled)
            case Fairness.STRONG:
                assert taken or not any(enabled)
    rows = graph.evaluate([atom.expr for atom in ATOMS])
    states = tuple(tuple(bool(row[k]) for row in rows) for k in (*stem, *cycle[1:]))
    assert not true_of(system, formula, Trace(states, (), len(stem) - 1))


def test_large_automata(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small graph multiplied by a large automaton is decided on arrays, with the same answer."""
    asked: list[Automaton] = []
    accepted = ArraySearch.accepted

    def noting(search: ArraySearch, machine: Automaton) -> Lasso | None:
        asked.append(machine)
        return accepted(search, machine)

    monkeypatch.setattr(ArraySearch, "accepted", noting)
    for seed in range(40):
        random = Random(seed)
        system, plain, _ = drawn(random)
        claim = formula(random, 2)
        monkeypatch.setattr(decide, "MOST_EDGES", 500_000)
        answer = Liveness(system, plain).decide(claim)
        assert not asked
        monkeypatch.setattr(decide, "MOST_EDGES", 0)
        assert Liveness(system, plain).decide(claim) == answer
        assert asked or all(not refuter(part).places for part in claims(claim))
        asked.clear()


def test_random_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same lasso or none on graphs with fairness of every kind; each lasso is confirmed step by step.

    Every other time valuations are not held in bytes, as those of many conditions are not.
    """
    seen: Counter[str] = Counter()
    for seed in range(600):
        monkeypatch.setattr(arena, "BITS", 8 if seed % 2 else 0)
        random = Random(seed)
        system, plain, arrays = drawn(random)
        small, large = Liveness(system, plain), Liveness(system, arrays)
        assert (small.states, small.steps) == (large.states, large.steps)
        for _ in range(2):
            claim = formula(random, random.randint(1, 3))
            answer = small.decide(claim)
            assert answer == large.decide(claim)
            seen["vacuous"] += answer.vacuous
            if answer.lasso is None:
                seen["holds"] += 1
                continue
            confirm(system, plain, claim, answer.lasso)
            seen["violated"] += 1
            seen["stutters"] += len(answer.lasso.cycle) == 1
            seen["long"] += len(answer.lasso.cycle) > 4
            seen["far"] += len(answer.lasso.stem) > 4
    assert min(seen["holds"], seen["violated"]) > 200
    assert min(seen["stutters"], seen["long"], seen["far"]) > 100, seen
    assert seen["vacuous"] > 3, seen


# --- bundled models

PARTS = 4


def temporal_models() -> list[tuple[str, str | None]]:
    """The bundled models, and their variants, with a temporal property."""
    found = []
    for name in registry.bundled():
        spec = registry.find(name).spec
        found += [(name, variant) for variant in (None, *spec.model.variants)]
    return found


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))])
def test_bundled_models(part: int) -> None:
    """Every temporal property without conditions on steps of every model and variant below the bound."""
    seen: Counter[str] = Counter()
    for name, variant in temporal_models()[part::PARTS]:
        spec = registry.find(name).spec
        system = spec.system() if variant is None else spec.system(variant=variant)
        properties = [p.name for p in system.properties if p.kind is Kind.TEMPORAL]
        if not properties:
            continue
        found = explore(system, properties=properties, max_states=small_graph.MOST_STATES, tier="python").found
        graph = found.small_graph() if found.stopped is None else None
        if graph is None:
            continue
        small, large = Liveness(found.system, graph), Liveness(found.system, found.graph())
        for prop in found.properties:
            assert prop.formula is not None
            if not any(recurring(prop.formula)):
                answer = small.decide(prop.formula)
                assert answer == large.decide(prop.formula), (name, variant, prop.name)
                seen["holds" if answer.lasso is None else "violated"] += 1
    assert min(seen["holds"], seen["violated"]) > 5


@pytest.mark.parametrize("variant", [None, "reordering", "lossy", "lost-announcement"])
def test_refinement_of_a_bundled_model(variant: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fairness that an abstract system promises: the same finding from the stored graph and from searches."""
    spec = registry.find("credit_connection").spec
    system = spec.system() if variant is None else spec.system(variant=variant)
    findings = {f.property: f.verdict.value for f in both_ways(system, monkeypatch)}
    assert findings["counted_fairness"] == ("violated" if variant == "lost-announcement" else "holds")


# --- what both procedures are given


def test_automata_of_one_shape() -> None:
    """A refuter put together from a formula of the same shape is the one made for the formula itself."""
    choices: tuple[Formula, ...] = (*ATOMS, NotF(ATOMS[0]), AndF(ATOMS[:2]), Atom(b.TRUE), Atom(b.FALSE))
    seen: Counter[int] = Counter()
    for seed in range(800):
        random = Random(seed)
        claim = formula(random, random.randint(1, 3), random.sample(choices, 3))
        machine = refuter(claim)
        assert machine == automaton(tableau(NotF(claim)))
        seen[len(machine.conditions)] += 1
    assert min(seen[conditions] for conditions in range(4)) > 15, seen


def test_steps_noted_on_the_way() -> None:
    """They are the steps of a second pass over the states, which is made where there are too many of them."""
    several = 0
    for seed in range(100):
        system = temporal_system(Random(seed))
        try:
            found = explore(system, tier="python").found
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


def test_limits_count_with_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes make two states four; limits on states and levels are those of the graph with notes, as of a search of it."""
    (finding,) = both_ways(toggling(), monkeypatch)
    assert finding.because == "true of every fair behaviour of 4 states, with a note of what recurs"
    (finding,) = both_ways(toggling(Always(Eventually(Atom(b.var("on", BOOL))))), monkeypatch)
    assert finding.because.startswith("true of every fair behaviour of 4 states")
    (finding,) = both_ways(toggling(), monkeypatch, max_states=4)
    assert finding.verdict is Verdict.HOLDS
    (finding,) = both_ways(toggling(), monkeypatch, max_states=3)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "max_states is 3" in finding.because
    (finding,) = both_ways(toggling(), monkeypatch, max_depth=3)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "max_depth is 3" in finding.because


def test_too_many_states_with_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where notes make the graph too large, there is a search after all."""
    searched: list[Property] = []

    def noting(system: System, claim: Formula, prop: Property, search: Search, witnesses: Witnesses) -> Finding | int:
        searched.append(prop)
        return by_search(system, claim, prop, search, witnesses)

    by_search = recurring_steps._searched
    monkeypatch.setattr(recurring_steps, "_searched", noting)
    expected = explore(toggling()).findings
    assert not searched
    monkeypatch.setattr(noted, "TIMES", 1)
    monkeypatch.setattr(small_graph, "MOST_STATES", 2)
    assert explore(toggling()).findings == expected
    assert len(searched) == 1


def test_what_is_small() -> None:
    """The bound is one of size, of states and of steps."""
    assert small_graph.is_small(small_graph.MOST_STATES, small_graph.MOST_STEPS)
    assert not small_graph.is_small(small_graph.MOST_STATES + 1, 0)
    assert not small_graph.is_small(1, small_graph.MOST_STEPS + 1)


@pytest.mark.parametrize("pace", [1, 1000])
@pytest.mark.parametrize("words", [["baton"], ["baton", "--variant", "inner-first"], ["credit_connection"]])
def test_arrays_are_not_loaded(words: list[str], pace: int) -> None:
    """A check of a small model with temporal properties, held or violated, of states or of steps, loads no NumPy.

    Neither does it on a machine that is a thousand times slower.
    """
    code = (
        f"import time; clock = time.perf_counter; time.perf_counter = lambda: {pace} * clock()\n"
        f"steady = time.monotonic; time.monotonic = lambda: {pace} * steady()\n"
        "import sys; from streamproof.__main__ import main; main()\n"
        "loaded = [m for m in ('numpy', 'scipy', 'llvmlite') if m in sys.modules]\n"
        "print(loaded, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "check", *words, "--quiet"], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"
