"""Random walks on an implementation: the next call, from the states that the model may be in."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from streamproof.base.errors import EvaluationError
from streamproof.conformance.belief import START
from streamproof.driving.driver import Driver
from streamproof.driving.following import Following, false_conditions
from streamproof.driving.script import Asked, group_of
from streamproof.system.model import State

REFUSALS = 0.2
"""Share of calls that the model does not permit."""
REMEMBERED = 50_000
"""Largest number of states whose enabled instances are remembered."""
LEAVING = 0.5
"""Probability that a walk ends before a call where no call changes the state of the model."""
LOOKED_AT = 64
"""Largest number of possible states that are looked at."""

Choices: TypeAlias = tuple[list[int], list[str], bool, list[int]]
"""The numbers of the instances that may be asked for in a state, their actions, whether no step changes the state, and one
more than the number of calls of each instance there."""


class Walking:
    """Chooses calls: possible ones, and, less often, calls that must be refused. Calls that are rare in the state, and rare
    pairs of actions, come first; where no call changes the state, a walk soon ends.

    The implementation's `own` actions are asked for only where they are possible, and the `absent` ones never. Equal seeds
    give equal walks on an implementation that answers equally.
    """

    def __init__(self, driver: Driver, steps: int) -> None:
        self.driver, self.steps = driver, steps
        self.random = random.Random(driver.seed)
        self._uniform = self.random.random
        self._instances = driver.subject.system.instances
        self._groups = [group_of(instance) for instance in self._instances]
        self._enabled: dict[State, tuple[frozenset[int], frozenset[int]]] = {}
        self._choices: dict[State, Choices] = {}
        self._refusals: dict[State, dict[str, list[int]]] = {}
        self._declared: object = None
        """What the adapter declared when choices and refusals were found."""
        self._right: list[Asked | None] = [None] * len(self._instances)
        """The calls of instances, as far as they were made."""
        self._wrong = self._right.copy()
        """Those that must be refused."""
        self._after: dict[str, dict[str, int]] = {}
        """One more than the number of calls of each action after another."""
        self._wrongly = dict.fromkeys(sorted({i.action for i in self._instances}), 0)
        """The number of calls that must be refused, by action."""

    def __call__(self, following: Following, calls: Sequence[Asked]) -> Asked | None:
        """The next call; None after the last step, or where nothing is possible."""
        if len(calls) >= self.steps:
            return None
        if self.driver.declared is not self._declared:
            self._declared = self.driver.declared
            self._choices.clear()
            self._refusals.clear()
        random = self._uniform
        if random() < REFUSALS:
            found = self._refusal(following)
            if found is not None:
                return self._wrong[found] or self._asking(found, self._wrong, refused=True)
        drawn, state = random(), following.only_state
        if state is None or self.driver.hidden:
            states, _ = self._states(following)
            state = states[int(drawn * len(states))]
        possible, names, stays, asked = self._choices.get(state) or self._possible(following, state)
        if not possible or (stays and random() < LEAVING):
            return None
        before = calls[-1].action if calls else ""
        after = self._after.get(before)
        if after is None:
            after = self._after[before] = dict.fromkeys((i.action for i in self._instances), 1)
        at = self._drawn(names, asked, after)
        chosen = possible[at]
        asked[at] += 1
        after[names[at]] += 1
        return self._right[chosen] or self._asking(chosen, self._right)

    def _asking(self, at: int, known: list[Asked | None], *, refused: bool = False) -> Asked:
        """The call of an instance, which is one object for all walks."""
        found = known[at] = Asked.of(self._instances[at], refused=refused)
        return found

    def _possible(self, following: Following, state: State) -> Choices:
        """What may be asked for in a state."""
        found = self._choices.get(state)
        if found is None:
            _make_room(self._choices)
            enabled, absent = sorted(self.enabled(following, state)[0]), self.driver.absent
            numbers = [at for at in enabled if self._instances[at].action not in absent]
            take, every = following.log.steps.take, self._instances
            stays = all(take(every[at], state) == state for at in enabled)
            names = [every[at].action for at in numbers]
            found = self._choices[state] = numbers, names, stays, [1] * len(numbers)
        return found

    def enabled(self, following: Following, state: State) -> tuple[frozenset[int], frozenset[int]]:
        """The numbers of the instances that are enabled in a state, and of those of which the model has no next state."""
        if state not in self._enabled:
            _make_room(self._enabled)
            found, errors = [], []
            for at, instance in enumerate(self._instances):
                try:
                    if following.log.steps.take(instance, state) is not None:
                        found.append(at)
                except EvaluationError:
                    errors.append(at)
            self._enabled[state] = frozenset(found), frozenset(errors)
        return self._enabled[state]

    def _drawn(self, names: Sequence[str], asked: Sequence[int], after: Mapping[str, int]) -> int:
        """The place of one of the instances; what is rare in this state, or after the last action, is more probable."""
        total, up_to = 0.0, []
        for name, times in zip(names, asked):  # noqa: B905 -- twice as fast
            up_to.append(total := total + 1.0 / (times * after[name]))
        return bisect_left(up_to, self._uniform() * total)

    def _states(self, following: Following) -> tuple[list[State], bool]:
        """The possible states, with those that hidden actions reach, and whether these are all."""
        try:
            found = [*following.tracker.closed(dict.fromkeys(following.states, START), LOOKED_AT)]
        except EvaluationError:
            return [*following.states], False
        return found, len(found) <= LOOKED_AT

    def possible(self, following: Following) -> frozenset[int]:
        """The numbers of the instances that are enabled in some possible state."""
        states, _ = self._states(following)
        return frozenset[int]().union(*(self.enabled(following, state)[0] for state in states))

    def wrong(self, following: Following) -> list[int]:
        """The numbers of instances that are not enabled in any possible state, nor others of the same action and arguments;
        none if the possible states are too many. The implementation's own actions are not asked for wrongly."""
        states, complete = self._states(following)
        if not complete:
            return []
        left_out = self.driver.own | self.driver.absent
        every = (at for state in states for numbers in self.enabled(following, state) for at in numbers)
        possible = {self._groups[at] for at in every}
        found: dict[object, int] = {}
        for at, instance in enumerate(self._instances):
            if instance.action not in left_out and self._groups[at] not in possible:
                found.setdefault(self._groups[at], at)
        return [*found.values()]

    def _refusal(self, following: Following) -> int | None:
        """A call that is not possible, of the action that was asked for wrongly least often."""
        state = following.only_state
        by_action = None if state is None else self._refusals.get(state)
        if by_action is None:
            wrong: dict[str, list[int]] = {}
            for at in self.wrong(following):
                wrong.setdefault(self._instances[at].action, []).append(at)
            by_action = dict(sorted(wrong.items()))
            if state is not None:
                _make_room(self._refusals)
                self._refusals[state] = by_action
        if not by_action:
            return None
        action = min(by_action, key=self._wrongly.__getitem__)
        self._wrongly[action] += 1
        chosen = by_action[action][int(self._uniform() * len(by_action[action]))]
        for state in following.states if self.driver.bounded else ():
            instance = self._instances[chosen]
            if (action, false_conditions(self.driver.subject.system, instance, state)) in self.driver.bounded:
                return None
        return chosen


def _make_room(known: dict[Any, Any]) -> None:
    if len(known) >= REMEMBERED:
        known.clear()
