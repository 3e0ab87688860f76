"""Shortest lassos: no behaviour with fewer steps of stem and cycle violates the property, by trying all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random

import pytest

from random_systems import random_system, temporal_system
from shares import share
from streamproof.api.explain import shorter_lasso
from streamproof.base.options import SearchOptions, Tuning
from streamproof.explicit.exploration import explore
from streamproof.explicit.liveness.fair_graph import Lasso
from streamproof.explicit.liveness.shortest import normal
from streamproof.system import EvaluationError, ModelError, System, Verdict
from streamproof.system.build import TRUE
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind, Property, State
from streamproof.system.temporal import is_violated_by
from streamproof.system.verdict import Finding, Trace
from streamproof.traces.replay import replay, verify

WALKS = 4_000
"""Largest number of walks of a system that are tried."""


class TooMany(Exception):
    """There are more walks than are tried."""


def lassos(system: System, most: int) -> Iterator[Trace]:
    """All behaviours of at most `most` steps, each of which changes the state, that end in a cycle or stay in a state."""
    plain = Interpreter(system)
    walks = [Trace((state,), ()) for state in plain.initial_states()]
    tried = 0
    for steps in range(most + 1):
        longer = []
        for walk in walks:
            last = walk.states[-1]
            yield Trace(walk.states, walk.steps, loop=steps)
            for at, state in enumerate(walk.states[:-1]):
                if state == last:
                    yield Trace(walk.states[:-1], walk.steps, loop=at)
            for after, instance in {s.state: s.instance for s in plain.steps(last) if s.state != last}.items():
                longer.append(Trace((*walk.states, after), (*walk.steps, instance)))
                tried += 1
                if tried > WALKS:
                    raise TooMany
        walks = longer


def violations(system: System, tuning: Tuning) -> list[tuple[Property, Finding, Trace]]:
    """The violated temporal properties of a system, with their lassos."""
    if not any(Interpreter(system).initial_states()):
        return []
    try:
        findings = explore(system, SearchOptions(tuning=tuning)).findings
    except EvaluationError:
        return []
    return [
        (system.property(one.property), one, one.trace)
        for one in findings
        if one.verdict is Verdict.VIOLATED and one.kind is Kind.TEMPORAL and one.trace is not None
    ]


def compared(seeds: range, *, recurring: bool) -> tuple[int, int, int]:
    """Numbers of violations, of lassos that are proved shortest, and of those shorter than without the search."""
    count = proved = better = 0
    for seed in seeds:
        system = temporal_system(Random(seed), recurring=recurring)
        plain = violations(system, Tuning(cycle_work=0))
        for (prop, found, trace), (_, _, first) in zip(violations(system, Tuning()), plain, strict=True):
            assert prop.formula is not None
            verify(system, prop, trace)
            assert len(trace.steps) <= len(first.steps), seed
            count, proved = count + 1, proved + found.shortest
            better += len(trace.steps) < len(first.steps)
            if found.shortest:
                try:
                    fewer = [t for t in lassos(system, len(trace.steps) - 1) if is_violated_by(system, prop.formula, t)]
                except TooMany:
                    continue
                assert not fewer, (seed, prop.name)
    return count, proved, better


@pytest.mark.parametrize("begin", share(range(0, 3000, 25), of=120))
def test_no_lasso_is_shorter(begin: int) -> None:
    """Every lasso of a formula over states is proved shortest, and it is."""
    count, proved, _ = compared(range(begin, begin + 25), recurring=False)
    assert count == proved > 10


@pytest.mark.parametrize("begin", share(range(0, 900, 25), of=36))
def test_conditions_on_steps(begin: int) -> None:
    """With a monitor of steps nothing is proved, and no lasso is longer than without the search."""
    count, proved, _ = compared(range(begin, begin + 25), recurring=True)
    assert count > proved


@pytest.mark.long
def test_many_lassos_get_shorter() -> None:
    """The search matters: about one lasso in twelve is shorter than without it."""
    count, _, better = compared(range(300), recurring=False)
    assert better > count / 20


def fewest(system: System) -> int | None:
    """The fewest steps to a cycle and around it, self-loops included; None if there is no cycle."""
    plain = Interpreter(system)
    after: dict[State, set[State]] = {}

    def distances(starts: Iterable[State]) -> dict[State, int]:
        found, todo = dict.fromkeys(starts, 0), [*starts]
        for state in todo:
            for other in after.setdefault(state, {step.state for step in plain.steps(state)}):
                if other not in found:
                    found[other] = found[state] + 1
                    todo.append(other)
        return found

    depth = distances([*plain.initial_states()])
    around = ((d, distances([*after[s]]).get(s)) for s, d in depth.items())
    return min((d + back + 1 for d, back in around if back is not None), default=None)


@pytest.mark.parametrize("tier", ["python", "compiled"])
def test_no_infinite_execution_is_shorter(tier: str) -> None:
    """By breadth-first searches from every state, for both tiers."""
    lengths = Counter[int]()
    for seed in range(60):
        system = replace(random_system(Random(seed)), properties=(Property("termination", Kind.TERMINATION, TRUE),))
        try:
            expected = fewest(system)
            finding = explore(system, SearchOptions(tier=tier)).finding("termination")
        except (EvaluationError, ModelError):
            continue
        if finding.verdict is Verdict.VIOLATED:
            assert finding.trace is not None
            replay(system, finding.trace)
            assert finding.shortest
            assert len(finding.trace.steps) == expected, seed
            lengths[len(finding.trace.steps)] += 1
        elif finding.verdict is Verdict.HOLDS:
            assert expected is None
    assert len(lengths) > 1


@pytest.mark.parametrize("work", [0, 1])
def test_a_lasso_that_is_not_searched_is_not_called_shortest(work: int) -> None:
    """Without work, and with too little of it for a cycle."""
    systems = (temporal_system(Random(seed)) for seed in range(20))
    found = [(one.shortest, trace) for s in systems for _, one, trace in violations(s, Tuning(cycle_work=work))]
    assert len(found) > 5
    assert not [trace for shortest, trace in found if shortest and trace.steps]


def test_explanations_have_the_same_length() -> None:
    """`explain` takes a longer lasso of the same property to a shortest one."""
    tried = 0
    for seed in range(60):
        system = temporal_system(Random(seed))
        best = violations(system, Tuning())
        for (prop, _, first), (_, found, trace) in zip(violations(system, Tuning(cycle_work=0)), best, strict=True):
            if len(first.steps) > len(trace.steps):
                shown, shortest = shorter_lasso(system, prop, first)
                verify(system, prop, shown)
                assert (len(shown.steps), shortest) == (len(trace.steps), found.shortest)
                tried += 1
    assert tried > 2


@pytest.mark.parametrize(
    ("stem", "cycle", "expected"),
    [
        ((0, 1), (1, 2, 1, 2), ((0, 1), (1, 2))),
        ((0, 1, 2, 1, 2), (2, 1), ((0, 1), (1, 2))),
        ((0, 0, 0), (0,), ((0,), (0,))),
        ((1, 2, 3), (3, 1, 2), ((1,), (1, 2, 3))),
        ((0,), (0, 1, 1), ((0,), (0, 1, 1))),
    ],
)
def test_one_behaviour_has_one_form(stem: tuple[int, ...], cycle: tuple[int, ...], expected: object) -> None:
    """Repetitions of a cycle within it, and in the stem, are left out."""
    found = normal(Lasso(stem, cycle))
    assert (found.stem, found.cycle) == expected
