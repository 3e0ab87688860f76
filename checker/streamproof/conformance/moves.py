"""The moves of one machine: the states reached from a state by a move, a sequence of moves or an observation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
_Step: TypeAlias = tuple[str, tuple[Instance, ...], bool]
"""A move: its action, its instances, and whether it is skipped if none is enabled."""


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
        """Those of hidden actions that are taken late; which one of a step is found may depend on earlier steps."""
        self._effects = Footprints(system)
        self.beliefs = Beliefs()
        self.beliefs.recurring = not PLAIN
        self._grounding = grounding
        self._generated = GeneratedSteps.of(system)
        self._by_action = {a.name: a.instances for a in system.actions}
        self._matching: dict[tuple[Any, ...], tuple[Instance, ...]] = {}
        self._known: dict[tuple[int, State], tuple[Instance, State | None]] = {}
        """By number of the instance, which is stored with its results, so that no other instance gets this number."""
        self._hidden: dict[frozenset[str], HiddenActions] = {}
        self._ways: dict[Any, tuple[tuple[_Step, ...], ...]] = {}
        """By meaning of observations (`Observation.like`): the instances of their moves."""

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
        key = (move.action, tuple(move.args.items()), tuple(move.picks.items()))
        if key not in self._matching:
            self._matching[key] = tuple(
                i
                for i in self.instances(move.action)
                if move.args.items() <= dict(i.args).items() and move.picks.items() <= dict(i.picks).items()
            )
        return self._matching[key]

    def along(self, way: tuple[Move, ...], state: State, take: _Take | None = None) -> list[tuple[State, Taken]]:
        """Every state reached by a sequence of moves, with the actions taken; `take` is another one than the method."""
        return self._along(self._grounded(way), state, take or self.take)

    def _grounded(self, way: Iterable[Move]) -> Iterator[_Step]:
        return ((move.action, self.matching(move), move.optional) for move in way)

    def _along(self, way: Iterable[_Step], state: State, take: _Take) -> list[tuple[State, Taken]]:
        found: list[tuple[State, Taken]] = [(state, ())]
        for action, instances, optional in way:
            reached: list[tuple[State, Taken]] = []
            for at, taken in found:
                ends = [(after, (*taken, action)) for i in instances if (after := take(i, at)) is not None]
                if not ends and optional:
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
        for way in self._ways_of(observation):
            for end, taken in self._along(way, state, self.take):
                look = StateReader(self.system, end)
                for condition in observation.constraints:
                    if not condition.test(look):
                        break
                else:
                    found.append((end, taken))
        return found

    def _ways_of(self, observation: Observation) -> Iterable[Iterable[_Step]]:
        like = observation.like
        if like is None or PLAIN:
            return map(self._grounded, observation.alternatives)
        ways = self._ways.get(like)
        if ways is None:
            if len(self._ways) >= REMEMBERED:
                self._ways.clear()
            ways = self._ways[like] = tuple(tuple(self._grounded(way)) for way in observation.alternatives)
        return ways
