"""The moves of one machine: the states reached from a state by a move, a sequence of moves or an observation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streamproof.base.records import dataclass
from streamproof.conformance.binding import Grounding, Move, Observation, StateReader
from streamproof.explicit.single_steps import FAULT, GeneratedSteps
from streamproof.system import Instance, Interpreter, State, System
from streamproof.transform.footprint import Footprints

REMEMBERED = 200_000
"""Maximum number of cached moves."""


@dataclass(frozen=True, slots=True)
class HiddenActions:
    """Instances that no stream records, with the steps known of them by state."""

    instances: tuple[Instance, ...]
    known: dict[State, tuple[tuple[str, State], ...]]


class SystemMoves:
    """The moves of one system, each computed once per state. Behaviours of equal machines share one."""

    def __init__(self, system: System, grounding: Grounding | None = None) -> None:
        self.system = system
        self.interpreter = Interpreter(system)
        self.footprints = Footprints(system)
        self._grounding = grounding
        self._generated = GeneratedSteps.of(system)
        self._by_action = {a.name: a.instances for a in system.actions}
        self._matching: dict[tuple[Any, ...], tuple[Instance, ...]] = {}
        self._known: dict[tuple[int, State], tuple[Instance, State | None]] = {}
        """By number of the instance, which is stored with its results, so that no other instance gets this number."""
        self._hidden: dict[frozenset[str], HiddenActions] = {}

    def take(self, instance: Instance, state: State) -> State | None:
        """The state after `instance`, or None if it is disabled. Raises `EvaluationError` for a model error."""
        step = self._generated.get(self.system, instance)
        if step is not None:
            after: State | None = step(state)
            return after if after is not FAULT else self.interpreter.take(instance, state)
        key = (id(instance), state)
        if key in self._known:
            return self._known[key][1]
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        writes = self.footprints.take(instance, state).writes
        after = None if writes is None else self.footprints.layout.written(state, writes)
        self._known[key] = (instance, after)
        return after

    def instances(self, action: str) -> tuple[Instance, ...]:
        """The ground instances of an action; none for an unknown action."""
        return self._by_action.get(action, ())

    def matching(self, move: Move) -> tuple[Instance, ...]:
        """The instances that match a move."""
        if self._grounding is not None:
            return self._grounding(move.action, move.args)
        key = (move.action, tuple(move.args.items()), tuple(move.picks.items()))
        if key not in self._matching:
            self._matching[key] = tuple(
                i
                for i in self.instances(move.action)
                if move.args.items() <= dict(i.args).items() and move.picks.items() <= dict(i.picks).items()
            )
        return self._matching[key]

    def along(
        self, way: tuple[Move, ...], state: State, take: Callable[[Instance, State], State | None] | None = None
    ) -> list[tuple[State, tuple[str, ...]]]:
        """Every state reached by a sequence of moves, with the actions taken; `take` is another one than the method."""
        take = take or self.take
        found: list[tuple[State, tuple[str, ...]]] = [(state, ())]
        for move in way:
            reached: list[tuple[State, tuple[str, ...]]] = []
            for at, taken in found:
                ends = [
                    (after, (*taken, move.action)) for i in self.matching(move) if (after := take(i, at)) is not None
                ]
                if not ends and move.optional:
                    ends = [(at, taken)]
                reached += ends
            found = reached
        return found

    def by_hidden(self, hidden: HiddenActions, state: State) -> tuple[tuple[str, State], ...]:
        """The states after each hidden instance that is enabled, with their actions; computed once per state."""
        known = hidden.known.get(state)
        if known is None:
            known = tuple((i.action, after) for i in hidden.instances if (after := self.take(i, state)) is not None)
            if len(hidden.known) >= REMEMBERED:
                hidden.known.clear()
            hidden.known[state] = known
        return known

    def hidden(self, names: frozenset[str]) -> HiddenActions:
        """The instances of the actions with these names, with what is known of them."""
        if names not in self._hidden:
            instances = tuple(i for a in self.system.actions if a.name in names for i in a.instances)
            self._hidden[names] = HiddenActions(instances, {})
        return self._hidden[names]

    def explained(self, observation: Observation, state: State) -> Iterator[tuple[State, tuple[str, ...]]]:
        """Every state after an observation made in `state`, with its actions."""
        if observation.impossible is not None or observation.unmet_before(StateReader(self.system, state)) is not None:
            return
        for way in observation.alternatives:
            for end, taken in self.along(way, state):
                look = StateReader(self.system, end)
                if all(d.test(look) for d in observation.constraints):
                    yield end, taken
