"""Searches logs that tell machines apart: after the same lines one allows an action, and the other does not.

A line is here one action with its arguments. What a machine may be in after some lines is the set of states that it reaches
by them, with any hidden actions between them. The search follows a log of a recorded run (`guide`) and tries, wherever it
is, all actions that such logs have (`labels`); then it goes on from there, breadth first.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from streamproof.base.errors import EvaluationError
from streamproof.conformance import Event, Move, Observation, Stream, Task
from streamproof.conformance.moves import SystemMoves
from streamproof.system.model import Conjunct, Instance, State

Label = tuple[str, tuple[tuple[str, Any], ...]]
"""An action with its arguments."""
Guard = tuple[str, int, str]
"""A condition of a rule: the file, the line and the text."""
Log = tuple[Label, ...]
MOST_STATES = 200
"""Largest number of states that one log may leave open."""
MOST_ALONG = 200_000
"""Largest number of lines that are tried along a guide."""
LOGS = 3
"""Number of logs that are kept for each condition."""


class TooMany(Exception):
    """A log leaves too many states open."""


def label_of(instance: Instance) -> Label:
    """The line of an action."""
    return instance.action, tuple(sorted(instance.args, key=lambda arg: arg[0]))


def as_task(task: Task, log: Iterable[Label]) -> Task:
    """A behaviour of the same machine with this log."""
    lines = tuple(
        Observation(Event(task.trace, "walk", at, action, dict(args)), ((Move(action, dict(args)),),))
        for at, (action, args) in enumerate(log)
    )
    return replace(task, streams=(Stream(lines),), spans=(), ends={}, waits=(), any_order=False, explainer=None)


class Following:
    """What a machine may be in after some lines; None: an error of the machine."""

    def __init__(self, task: Task, change: Callable[[Instance], Instance | None] = lambda i: i) -> None:
        def changed(instances: Iterable[Instance]) -> tuple[Instance, ...]:
            return tuple(other for i in instances if (other := change(i)) is not None)

        ground = task.grounding
        system = replace(
            task.system, actions=tuple(replace(a, instances=changed(a.instances)) for a in task.system.actions)
        )
        self.steps = SystemMoves(system, ground and (lambda action, args: changed(ground(action, args))))
        self.hidden = [i for a in system.actions if a.name in task.hidden for i in a.instances]
        self._after: dict[tuple[frozenset[State], Label], frozenset[State] | None] = {}

    def start(self) -> frozenset[State]:
        """Before the first line."""
        return self._closed({*self.steps.interpreter.initial_states()})

    def matching(self, label: Label) -> tuple[Instance, ...]:
        """The instances of a line."""
        return self.steps.matching(Move(label[0], dict(label[1])))

    def after(self, states: frozenset[State], label: Label) -> frozenset[State] | None:
        """After one more line. Raises `TooMany`."""
        if (states, label) not in self._after:
            try:
                found = {
                    end for i in self.matching(label) for s in states if (end := self.steps.take(i, s)) is not None
                }
                self._after[states, label] = self._closed(found)
            except EvaluationError:
                self._after[states, label] = None
        return self._after[states, label]

    def matches(self, states: frozenset[State], label: Label) -> bool:
        """Whether the line is possible."""
        try:
            return bool(self.after(states, label))
        except TooMany:
            return True

    def _closed(self, states: set[State]) -> frozenset[State]:
        found, frontier = {*states}, [*states]
        while frontier:
            state = frontier.pop()
            for instance in self.hidden:
                after = self.steps.take(instance, state)
                if after is not None and after not in found:
                    found.add(after)
                    frontier.append(after)
            if len(found) > MOST_STATES:
                raise TooMany
        return frozenset(found)


@dataclass
class Difference:
    """What a search finds."""

    log: Log | None = None
    """A log that only one machine accepts, up to its last line; None: none was found."""
    tried: int = 0
    """Number of lines that were tried."""
    complete: bool = True
    """Whether all logs with these labels were tried."""


def difference(one: Following, other: Following, labels: Iterable[Label], guide: Log, most: int) -> Difference:
    """A log that one machine accepts and the other does not; `most`: lines that are tried behind the guide."""
    found, labels = Difference(), tuple(labels)
    try:
        at = one.start(), other.start()
    except TooMany:
        return replace(found, complete=False)
    known: dict[Any, Log] = {at: ()}
    with suppress(TooMany):
        for number, label in enumerate(guide, 1):
            at = one.after(at[0], label) or frozenset(), other.after(at[1], label) or frozenset()
            if not all(at):
                break
            known.setdefault(at, guide[:number])
    frontier, most = _along([*known], len(labels), most)
    while frontier:
        pair = frontier.popleft()
        for label in labels:
            found.tried += 1
            try:
                after = one.after(pair[0], label), other.after(pair[1], label)
            except TooMany:
                found.complete = False
                continue
            if bool(after[0]) != bool(after[1]) or (None in after and after[0] is not after[1]):
                found.log = (*known[pair], label)
                return found
            if after[0] and after not in known:
                known[after] = (*known[pair], label)
                frontier.append(after)
        if found.tried > most:
            found.complete = found.complete and not frontier
            break
    return found


def _along(found: list[Any], each: int, most: int) -> tuple[deque[Any], int]:
    """What is on the way of a guide, the last first, and how much is tried there and behind it; some, if it is long."""
    kept = found[:: -(1 + len(found) * each // MOST_ALONG)]
    return deque(kept), most + len(kept) * each


@dataclass
class Alone:
    """Where a condition is the only false one of an action."""

    logs: dict[Guard, list[tuple[Log, Label, bool]]] = field(default_factory=dict)
    """Guard -> some logs, each with the line of the action behind it, and whether the action is hidden."""
    asked: Counter[Guard] = field(default_factory=Counter)
    """Guard -> the number of instances and states in which it was evaluated."""
    false: set[Guard] = field(default_factory=set)
    """Guards that were false."""
    otherwise: set[Guard] = field(default_factory=set)
    """Guards that are false alone, where another behaviour with the same lines takes the action."""
    complete: bool = True
    """Whether all states were looked at that logs with these labels reach."""


def false_alone(
    machine: Following, labels: Iterable[Label], guide: Log, guard_of: Callable[[Conjunct], Guard | None], most: int
) -> Alone:
    """Looks at all instances, in the states along a log and behind it; `most`: evaluations behind it."""
    found, labels, tried = Alone(), tuple(labels), 0
    instances = [(label, i, False) for label in labels for i in machine.matching(label)]
    instances += [(label_of(i), i, True) for i in machine.hidden]
    places = {id(i): [(c, where) for c in i.guard if (where := guard_of(c))] for _, i, _ in instances}
    try:
        at = machine.start()
    except TooMany:
        return replace(found, complete=False)
    known: dict[frozenset[State], Log] = {at: ()}
    with suppress(TooMany):
        for number, label in enumerate(guide, 1):
            at = machine.after(at, label) or frozenset()
            if not at:
                break
            known.setdefault(at, guide[:number])
    frontier, most = _along([*known], len(instances), most)
    while frontier:
        states = frontier.popleft()
        for label, instance, is_hidden in instances:
            guards = places[id(instance)]
            if all(len(found.logs.get(where, ())) >= LOGS for _, where in guards):
                continue
            for state in states:
                tried += 1
                false = _false(machine, instance, guards, state)
                found.false |= false
                where = next(iter(false)) if len(false) == 1 else None
                found.asked.update({where for _, where in guards})
                if where is not None and not is_hidden and machine.matches(states, label):
                    found.otherwise.add(where)
                elif where is not None and len(found.logs.setdefault(where, [])) < LOGS:
                    found.logs[where].append((known[states], label, is_hidden))
        for label in labels:
            tried += 1
            try:
                after = machine.after(states, label)
            except TooMany:
                found.complete = False
                continue
            if after and after not in known:
                known[after] = (*known[states], label)
                frontier.append(after)
        if tried > most:
            found.complete = found.complete and not frontier
            break
    return found


def _false(machine: Following, instance: Instance, guards: list[tuple[Conjunct, Guard]], state: State) -> set[Guard]:
    """The guards of an instance that are false; none if one cannot be evaluated."""
    try:
        return {w for c, w in guards if machine.steps.interpreter.failing((c,), state) is not None}
    except EvaluationError:
        return set()


def followed_log(task: Task, edges: Mapping[State, Iterable[tuple[Instance, State]]]) -> Log:
    """The visible actions on a longest of the shortest paths of some steps."""
    first = [*SystemMoves(task.system).interpreter.initial_states()]
    paths: dict[State, tuple[State, Instance] | None] = dict.fromkeys(first)
    frontier, at = deque(first), first[0]
    while frontier:
        at = frontier.popleft()
        for instance, after in edges.get(at, ()):
            if after not in paths:
                paths[after] = at, instance
                frontier.append(after)
    log: list[Label] = []
    while (before := paths[at]) is not None:
        at, instance = before
        log += [label_of(instance)] if instance.action not in task.hidden else []
    return tuple(reversed(log))
