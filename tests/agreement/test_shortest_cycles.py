"""Short fair cycles of explanations: the interpreter replays them, and seldom has a shorter closed walk that violates."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from random_systems import temporal_system
from shares import share
from streamproof.api.explain import shorter_lasso
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import EvaluationError, Instance, System, Verdict
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import State
from streamproof.system.temporal import fairness_of, true_of
from streamproof.system.verdict import Trace
from streamproof.traces.replay import verify

WALKS = 400
"""Largest number of closed walks of a system that are tried."""
Graph = dict[State, list[tuple[Instance, State]]]


def graph_of(system: System) -> tuple[Graph, dict[State, Trace]]:
    """The steps between reachable states that change the state, and a shortest way to each."""
    plain, steps = Interpreter(system), Graph()
    ways = {state: Trace((state,), ()) for state in plain.initial_states()}
    todo = deque(ways)
    while todo:
        state = todo.popleft()
        steps[state] = [(s.instance, s.state) for s in plain.steps(state) if s.state != state]
        for instance, after in steps[state]:
            if after not in ways:
                way = ways[state]
                ways[after] = Trace((*way.states, after), (*way.steps, instance))
                todo.append(after)
    return steps, ways


def closed_walks(steps: Graph, start: State, most: int) -> Iterator[tuple[list[Instance], list[State]]]:
    """The closed walks from a state of at most so many steps."""

    def longer(taken: list[Instance], states: list[State]) -> Iterator[tuple[list[Instance], list[State]]]:
        for instance, after in steps[states[-1]]:
            if after == start:
                yield [*taken, instance], states
            if len(taken) + 1 < most:
                yield from longer([*taken, instance], [*states, after])

    yield from longer([], [start]) if most else ()


def shorter(system: System, prop: Any, cycle: int) -> Trace | None:
    """A lasso with a shorter cycle and a shortest stem that violates a property, among the first closed walks."""
    steps, ways = graph_of(system)
    tried = 0
    for start, way in ways.items():
        for taken, states in closed_walks(steps, start, cycle - 1):
            tried += 1
            if tried > WALKS:
                return None
            lasso = Trace((*way.states, *states[1:]), (*way.steps, *taken), loop=len(way) - 1)
            if not true_of(system, prop.formula, lasso) and all(e.satisfied for e in fairness_of(system, lasso)):
                return lasso
    return None


@pytest.mark.parametrize("begin", share(range(0, 900, 30), of=15))
def test_random_systems(begin: int) -> None:
    """No longer than the cycles of the usual search; for nine of ten no other closed walk is shorter."""
    cycles = better = shortest = 0
    for seed in range(begin, begin + 30):
        system = temporal_system(Random(seed), recurring=True)
        if not any(Interpreter(system).initial_states()):
            continue
        try:
            findings = explore(system, SearchOptions()).findings
        except EvaluationError:
            continue
        for one in findings:
            if one.verdict is not Verdict.VIOLATED or one.trace is None or one.trace.loop is None or one.trace.stutters:
                continue
            prop = system.property(one.property)
            found = shorter_lasso(system, prop, one.trace)
            verify(system, prop, found)
            lengths = [len(t) - (t.loop or 0) for t in (one.trace, found)]
            assert lengths[1] <= lengths[0], seed
            cycles += 1
            better += lengths[1] < lengths[0] or found.stutters
            shortest += found.stutters or shorter(system, prop, lengths[1]) is None
    assert shortest >= 0.9 * cycles, (shortest, cycles, better)
    assert cycles > 1
