"""Whether every trace of a machine is a trace of another one, as far as it is looked at."""

from __future__ import annotations

from collections import deque
from typing import Any

from streamproof import System
from streamproof.system.interpreter import Interpreter

Label = tuple[str, tuple[Any, ...]]
"""An action with its arguments."""


def missing_trace(system: System, other: System, most: int) -> tuple[Label, ...] | None:
    """A shortest trace of a system that the other one does not have; None if the first `most` states of the search have
    none. A state of the search is a state of the system with those that the other may be in after the same trace."""
    steps, others = Interpreter(system), Interpreter(other)
    moves: dict[Any, dict[Label, set[Any]]] = {}

    def after(states: frozenset[Any], label: Label) -> frozenset[Any]:
        found = set[Any]()
        for state in states:
            if state not in moves:
                moves[state] = {}
                for step in others.steps(state):
                    taken = (step.instance.action, tuple(sorted(step.instance.args)))
                    moves[state].setdefault(taken, set()).add(step.state)
            found |= moves[state].get(label, set())
        return frozenset(found)

    started = frozenset(others.initial_states())
    origin: dict[Any, tuple[Any, Label] | None] = {(state, started): None for state in steps.initial_states()}
    frontier = deque(origin)
    while frontier and len(origin) < most:
        pair = frontier.popleft()
        state, known = pair
        for step in steps.steps(state):
            label = (step.instance.action, tuple(sorted(step.instance.args)))
            now = step.state, after(known, label)
            if not now[1]:
                return (*_trace(origin, pair), label)
            if now not in origin:
                origin[now] = pair, label
                frontier.append(now)
    return None


def _trace(origin: dict[Any, tuple[Any, Label] | None], pair: Any) -> tuple[Label, ...]:
    found: list[Label] = []
    while (before := origin[pair]) is not None:
        pair, label = before
        found.append(label)
    return tuple(reversed(found))
