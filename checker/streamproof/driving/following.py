"""Following an implementation through the model, event by event: the trackers of `conformance`, without a finished log.

The events of one process are in order: the tracker keeps the belief. Events of several processes may have any order that the
calls leave open; the tracker for overlapping calls then begins again with each answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamproof.base.errors import EvaluationError
from streamproof.conformance.belief import START
from streamproof.conformance.binding import Observation, Task
from streamproof.conformance.delaying import TooMany
from streamproof.conformance.event import Event
from streamproof.conformance.event_log import EventLog
from streamproof.conformance.overlapping import OverlapTracker
from streamproof.conformance.recorded_values import agrees, places
from streamproof.conformance.run_verdict import Rejection, Tracked
from streamproof.conformance.tracker import Reached, Tracker
from streamproof.driving.script import PROCESS
from streamproof.system import ArraySort, State, System
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Instance, parameter_json
from streamproof.system.sorts import BagSort, RecordSort, Sort, Value, show

REMEMBERED = 100_000
"""Largest number of remembered observations, and of remembered steps."""


class UndecidedStep(Exception):
    """Nothing can be concluded from the events; the text says why."""


class DriveRules:
    """How one model is followed with some actions hidden; scripts share its caches."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.tracker = Tracker(Task("", log.system, hidden=log.hidden), steps=log.steps)
        self.start = self.tracker.begin()
        """The belief before anything has happened."""
        self._observations: dict[Any, Observation] = {}
        self._after: dict[tuple[int, State], tuple[Observation, Reached]] = {}
        """By number of the observation, which is stored with its results, so that no other one gets this number."""

    def observation(self, event: Event) -> Observation:
        """The meaning of an event, which is one object for equal events. Raises `InputError`."""
        key = event.event, event.refused, repr(event.args), repr(event.picks), repr(event.state)
        found = self._observations.get(key)
        if found is None:
            if len(self._observations) >= REMEMBERED:
                self._observations.clear()
            found = self._observations[key] = self.log.observation(event)
        return found

    def follow(self, observation: Observation, belief: Reached) -> Reached:
        """The belief after an observation; from a single state it is computed once."""
        if len(belief) != 1:
            return self.tracker.follow(observation, belief)
        (state,) = belief
        known = self._after.get((id(observation), state))
        if known is None:
            if len(self._after) >= REMEMBERED:
                self._after.clear()
            known = self._after[id(observation), state] = observation, self.after(observation, state)
        return known[1]

    def after(self, observation: Observation, state: State) -> Reached:
        """The belief after an observation in the only possible state. Raises `TooMany` and `EvaluationError`."""
        if self.log.hidden:
            return self.tracker.follow(observation, {state: START})
        return {end: START for end, _ in self.log.steps.explained(observation, state)}


class Following:
    """One behaviour of an implementation, as far as it has happened."""

    def __init__(self, rules: DriveRules, trace: str) -> None:
        self.rules, self.log, self.tracker, self.trace = rules, rules.log, rules.tracker, trace
        self._events: list[Event] = []
        self._unnumbered: list[Event] = []
        """Events after these, of the process without a name, as the only one."""
        self.belief: Reached | Sequence[State] = rules.start
        self.only_state = next(iter(self.belief)) if len(self.belief) == 1 else None
        """The only possible state, if there is one, and the events are those of one process without a name."""
        self._counts: dict[str, int] = {}
        self._several = False

    @property
    def events(self) -> list[Event]:
        """What has happened, each event with its number and vector clock."""
        for at, event in enumerate(self._unnumbered, len(self._events)):
            self._events.append(_numbered(event, self.trace, at, {event.process: at + 1}))
        self._unnumbered.clear()
        return self._events

    @property
    def states(self) -> Sequence[State]:
        """The possible states, or one of them if events have several orders."""
        return tuple(self.belief)

    def repeat(self, events: Sequence[Event]) -> None:
        """Adds events of the process without a name, which the caller has followed."""
        if events:
            self._unnumbered += events
            self._counts[PROCESS] = self._counts.get(PROCESS, 0) + len(events)

    def written(self) -> Mapping[str, int]:
        """The number of events of each process: what a call that begins now comes after."""
        return dict(self._counts)

    def take(self, happened: Sequence[tuple[Event, Mapping[str, int]]]) -> Rejection | None:
        """Adds events, each with what preceded it; the reason if no behaviour of the model has them.

        Raises `UndecidedStep`, and `InputError` for events that the model does not have.
        """
        happening = [event for event, _ in happened]
        if self._counts.keys() | {event.process for event in happening} <= {PROCESS}:
            self.repeat(happening)
        else:
            events = self.events
            for event, known in happened:
                count = self._counts[event.process] = self._counts.get(event.process, 0) + 1
                events.append(_numbered(event, event.trace, count - 1, {**known, event.process: count}))
        self._several = self._several or len(self._counts) > 1
        try:
            rejection = self._again() if self._several else self._on(happening)
        except TooMany:
            raise UndecidedStep(f"more than {self.tracker.limit:,} states are possible") from None
        except EvaluationError as error:
            raise UndecidedStep(f"the model has no next state: {error.one_line}") from None
        is_alone = len(self.belief) == 1 and self._counts.keys() <= {PROCESS}
        self.only_state = next(iter(self.belief)) if is_alone else None
        return rejection

    def _on(self, happening: Sequence[Event]) -> Rejection | None:
        assert isinstance(self.belief, dict)
        known = [self.rules.observation(event) for event in happening]
        for left, observation in enumerate(known, -len(known)):
            after = self.rules.follow(observation, self.belief)
            if not after:
                at = len(self.events) + left
                return self.tracker.refusal(self.log.observation(self.events[at]), self.belief, at)
            self.belief = after
        return None

    def _again(self) -> Rejection | None:
        tracked = judged(self.log, self.trace, self.events)
        if tracked.exhausted is not None:
            raise UndecidedStep(tracked.exhausted)
        if tracked.rejection is None:
            self.belief = tracked.final
        return tracked.rejection


def _numbered(event: Event, trace: str, number: int, clock: Mapping[str, int]) -> Event:
    return Event(
        *(trace, event.process, number, event.event, event.args, None, clock, event.state),
        refused=event.refused,
        picks=event.picks,
    )


def judged(log: EventLog, trace: str, events: Sequence[Event]) -> Tracked:
    """The second opinion, and that of several processes: all events as one log. Raises `EvaluationError`."""
    processes: dict[str, list[Event]] = {}
    for event in events:
        processes.setdefault(event.process, []).append(event)
    (task,) = log.case(trace, processes).tasks
    order = {event.key: at for at, event in enumerate(events)}
    return OverlapTracker(task, rank=lambda event: order[event.key], steps=log.steps).run()


def leaves(value: Any) -> int:
    """The number of values in a recorded state that something is compared with."""
    if isinstance(value, Mapping):
        return sum(map(leaves, value.values()))
    if isinstance(value, list):
        return max(1, sum(map(leaves, value)))
    return 1


def differing(
    system: System, expected: Sequence[State], observed: Mapping[str, Any]
) -> Iterator[tuple[str, list[str], str]]:
    """The parts of observed values that none of the states has: their names, the values of the states, what was observed."""
    for name, value in observed.items():
        if name in system.index and expected:
            at = system.index[name]
            yield from _differing(system.variables[at].sort, [state[at] for state in expected], value, name)


def _differing(sort: Sort, own: Sequence[Value], recorded: Any, text: str) -> Iterator[tuple[str, list[str], str]]:
    if any(agrees(sort, value, recorded) for value in own):
        return
    if isinstance(sort, ArraySort) and not isinstance(sort, BagSort) and isinstance(recorded, dict):
        known = places(sort.index)
        for key, part in recorded.items():
            yield from _differing(sort.element, [value[known[key]] for value in own], part, f"{text}[{key}]")
    elif isinstance(sort, RecordSort) and isinstance(recorded, dict):
        for at, (field, inner) in enumerate(sort.fields):
            if field in recorded:
                yield from _differing(inner, [value[at] for value in own], recorded[field], text + sort.part(field))
    else:
        yield text, [*dict.fromkeys(show(sort, value) for value in own)], json.dumps(recorded)


def plain_args(instance: Instance) -> dict[str, Any]:
    """The arguments of an instance as values of JSON."""
    return {name: parameter_json(value) for name, value in instance.args}


def false_conditions(system: System, instance: Instance, state: State) -> frozenset[str]:
    """The conditions of the guard of an instance that are false in a state."""
    evaluation = Interpreter(system).evaluation(state)
    if any(evaluation.value(check.condition) for check in instance.guard_checks):
        return frozenset({"an error"})
    return frozenset(c.text for c in instance.guard if not evaluation.value(c.expr))
