"""Which steps of a machine are sequences of steps of another one, in every reachable state."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from streamproof import System
from streamproof.system.interpreter import Interpreter

View = Callable[[dict[str, Any]], dict[str, Any]]
"""From the variables of the finer machine to those of the other."""


@dataclass
class Matched:
    """What a comparison finds."""

    states: int = 0
    """Number of reachable states."""
    same: set[str] = field(default_factory=set)
    """Actions with a step that is such a sequence."""
    other: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """Actions with a step that is none, each with the states before and after the first one found."""


def matched(fine: System, coarse: System, view: View, most: int, exceptions: Container[str] | None = None) -> Matched:
    """Compares every step with the sequences of up to `most` steps; with `exceptions` to the first step of another action
    that is none."""
    names, wanted = [v.name for v in fine.variables], [v.name for v in coarse.variables]
    steps, found = Interpreter(fine), Matched()
    sequences = _Sequences(coarse, most)
    frontier = [*steps.initial_states()]
    known = {*frontier}

    def seen(state: Any) -> tuple[Any, ...]:
        viewed = view(dict(zip(names, state, strict=True)))
        return tuple(viewed[name] for name in wanted)

    assert {*map(seen, frontier)} <= {*Interpreter(coarse).initial_states()}
    while frontier:
        state = frontier.pop()
        before = seen(state)
        for step in steps.steps(state):
            name, after = step.instance.action, seen(step.state)
            if after in sequences.reached(before):
                found.same.add(name)
            else:
                found.other.setdefault(name, (before, after))
                if exceptions is not None and name not in exceptions:
                    return found
            if step.state not in known:
                known.add(step.state)
                frontier.append(step.state)
    found.states = len(known)
    return found


class _Sequences:
    """The states that are reached in a few steps."""

    def __init__(self, system: System, most: int) -> None:
        self._interpreter, self._most = Interpreter(system), most
        self._next = lru_cache(maxsize=None)(self._successors)
        self.reached = lru_cache(maxsize=None)(self._reached)

    def _successors(self, state: Any) -> frozenset[Any]:
        return frozenset(step.state for step in self._interpreter.steps(state))

    def _reached(self, state: Any) -> frozenset[Any]:
        found = frontier = frozenset({state})
        for _ in range(self._most):
            frontier = frozenset[Any]().union(*map(self._next, frontier)) - found
            found |= frontier
        return found
