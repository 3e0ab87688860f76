"""Which steps of a machine are sequences of steps of another one, in every reachable state: by the states before and after
(`matched`), or by a rule that gives each sequence (`related`)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from streamproof import System
from streamproof.conformance import StateReader
from streamproof.system import Instance, build
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Conjunct

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


Move = tuple[str, dict[str, Any]]
"""An action with arguments, or some of them."""
Sequence = Callable[[Instance, StateReader, StateReader, Callable[[], StateReader]], Iterator[Move]]
"""From a step, with the states before and after, to the steps of the coarser machine; the last argument reads its state, in
which the steps so far have been taken."""
Agrees = Callable[[StateReader, StateReader], bool]
"""Whether the states of both machines after such steps agree."""


@dataclass
class Relation:
    """What a comparison by a rule finds."""

    taken: set[str] = field(default_factory=set)
    """Actions of the finer machine that were taken."""
    matched: set[str] = field(default_factory=set)
    """Actions of the coarser machine that they are."""
    wrong: list[str] = field(default_factory=list)
    """Steps that are no such sequence."""


def related(
    fine: System, coarse: System, sequence: Sequence, agrees: Agrees, anew: Callable[[str], bool] = lambda move: False
) -> Relation:
    """Follows every behaviour of one machine in the other, until the first step that is no such sequence. Before a step of
    the coarser machine that is `anew`, it is in its first state."""
    steps, others, found = Interpreter(fine), Interpreter(coarse), Relation()
    (nothing,) = others.initial_states()
    frontier = [(state, nothing) for state in steps.initial_states()]
    known = {*frontier}
    successors = lru_cache(maxsize=None)(lambda at: [*others.steps(at)])
    while frontier and not found.wrong:
        state, start = frontier.pop()
        before = StateReader(fine, state)
        for step in steps.steps(state):
            name, after, at = step.instance.action, StateReader(fine, step.state), start
            found.taken.add(name)
            for move, args in sequence(step.instance, before, after, lambda: StateReader(coarse, at)):  # noqa: B023
                at = nothing if anew(move) else at
                to = [
                    s
                    for s in successors(at)
                    if s.instance.action == move and args.items() <= dict(s.instance.args).items()
                ]
                if len(to) != 1:
                    found.wrong.append(f"{name}: {move}({args}) is possible in {len(to)} ways in {at}")
                    break
                at = to[0].state
                found.matched.add(move)
            else:
                if not agrees(after, StateReader(coarse, at)):
                    found.wrong.append(f"{name} leads to {step.state}, and to {at}")
            if (step.state, at) not in known:
                known.add((step.state, at))
                frontier.append((step.state, at))
    return found


def never(system: System, name: str) -> System:
    """The system with an action that is never enabled."""

    def changed(instance: Instance) -> Instance:
        guard = (Conjunct(build.FALSE, "never", None),)
        return replace(instance, guard=guard) if instance.action == name else instance

    actions = tuple(replace(a, instances=tuple(map(changed, a.instances))) for a in system.actions)
    return replace(system, actions=actions)
