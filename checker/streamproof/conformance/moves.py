"""The moves of one machine: the states reached from a state by a move, a sequence of moves or an observation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from streamproof.base.records import dataclass
from streamproof.conformance.belief import Beliefs, Taken
from streamproof.conformance.binding import Grounding, Move, Observation, StateReader
from streamproof.explicit.single_steps import FAULT, GeneratedSteps
from streamproof.system import Instance, Interpreter, State, System
from streamproof.transform.footprint import Footprints

REMEMBERED = 200_000
"""Maximum number of cached moves."""
PLAIN = False
"""Whether the interpreter computes each step anew: the reference for everything that is faster."""


_Take: TypeAlias = Callable[[Instance, State], State | None]


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
        """Those of hidden actions that are taken late."""
        self._effects = Footprints(system)
        self.beliefs = Beliefs()
        self.beliefs.recurring = not PLAIN
        self._grounding = grounding
        self._generated = GeneratedSteps.of(system)
        self._by_action = {a.name: a.instances for a in system.actions}
        self._matching: dict[tuple[Any, ...], dict[tuple[Any, ...], tuple[Instance, ...]]] = {}
        """By action and names of arguments and picks: the instances by their values of these."""
        self._known: dict[tuple[int, State], tuple[Instance, State | None]] = {}
        """By number of the instance, which is stored with its results, so that no other instance gets this number."""
        self._hidden: dict[frozenset[str], HiddenActions] = {}

    def take(self, instance: Instance, state: State) -> State | None:
        """The state after `instance`, or None if it is disabled. Raises `EvaluationError` for a model error."""
        if PLAIN:
            return self.interpreter.take(instance, state)
        step = self._generated.get(self.system, instance)
        if step is not None:
            after: State | None = step(state)
            return after if after is not FAULT else self.interpreter.take(instance, state)
        key = (id(instance), state)
        if key in self._known:
            return self._known[key][1]
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        writes = self._effects.take(instance, state).writes
        after = None if writes is None else self._effects.layout.written(state, writes)
        self._known[key] = (instance, after)
        return after

    def instances(self, action: str) -> tuple[Instance, ...]:
        """The ground instances of an action; none for an unknown action."""
        return self._by_action.get(action, ())

    def matching(self, move: Move) -> tuple[Instance, ...]:
        """The instances that match a move."""
        if self._grounding is not None:
            return self._grounding(move.action, move.args)
        form = (move.action, tuple(move.args), tuple(move.picks))
        found = self._matching.get(form)
        if found is None:
            found = self._matching[form] = self._by_values(*form)
        return found.get((*move.args.values(), *move.picks.values()), ())

    def _by_values(
        self, action: str, args: tuple[str, ...], picks: tuple[str, ...]
    ) -> dict[tuple[Any, ...], tuple[Instance, ...]]:
        """The instances of an action that have these arguments and picks, by the values of them."""
        found: dict[tuple[Any, ...], list[Instance]] = {}
        for instance in self.instances(action):
            given, picked = dict(instance.args), dict(instance.picks)
            if given.keys() >= {*args} and picked.keys() >= {*picks}:
                found.setdefault((*map(given.get, args), *map(picked.get, picks)), []).append(instance)
        return {values: tuple(instances) for values, instances in found.items()}

    def along(self, way: tuple[Move, ...], state: State, take: _Take | None = None) -> list[tuple[State, Taken]]:
        """Every state reached by a sequence of moves, with the actions taken; `take` is another one than the method."""
        take = take or self.take
        found: list[tuple[State, Taken]] = [(state, ())]
        for move in way:
            instances, action = self.matching(move), move.action
            reached: list[tuple[State, Taken]] = []
            for at, taken in found:
                ends = [(after, (*taken, action)) for i in instances if (after := take(i, at)) is not None]
                if not ends and move.optional:
                    ends = [(at, taken)]
                reached += ends
            if not reached:
                return reached
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

    def explained(self, observation: Observation, state: State) -> list[tuple[State, Taken]]:
        """Every state after an observation made in `state`, with its actions."""
        if observation.impossible is not None:
            return []
        before = observation.before or observation.requires_before
        if before and observation.unmet_before(StateReader(self.system, state)) is not None:
            return []
        found: list[tuple[State, Taken]] = []
        for way in observation.alternatives:
            for end, taken in self.along(way, state):
                look = StateReader(self.system, end)
                for condition in observation.constraints:
                    if not condition.test(look):
                        break
                else:
                    found.append((end, taken))
        return found
