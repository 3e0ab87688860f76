"""Adapters over random systems: implementations that are right by construction, or have another system's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from streamproof.conformance.event import Event
from streamproof.conformance.recorded_values import value_json
from streamproof.driving.adapter import Adapter, Happened, Refused
from streamproof.system import EvaluationError, Instance, Interpreter, State, System
from streamproof.system.model import parameter_json


def plain(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Arguments or picks as JSON has them."""
    return {name: parameter_json(value) for name, value in pairs}


class SystemAdapter(Adapter):
    """Takes the steps of a system, with choices of its own: initial state, picks, when own and hidden actions happen, what is
    observed, and, with `late`, when events of a second process are written."""

    def __init__(
        self, system: System, random: Random, *, own: Sequence[str] = (), hidden: Sequence[str] = (), late: bool = False
    ) -> None:
        super().__init__()
        self.system, self.random, self.interpreter = system, random, Interpreter(system)
        self.own, self.hidden, self.late = tuple(own), tuple(hidden), late
        self.waiting: list[dict[str, Any]] = []

    def steps(self, names: Sequence[str], args: Mapping[str, Any] | None = None) -> list[tuple[Instance, State]]:
        """The possible steps of some actions."""
        found = []
        for instance in self.system.instances:
            if instance.action in names and (args is None or plain(instance.args) == args):
                try:
                    after = self.interpreter.take(instance, self.state)
                except EvaluationError:
                    continue
                if after is not None:
                    found.append((instance, after))
        return found

    def some(self) -> dict[str, Any]:
        """Some of the values."""
        found = {v.name: value_json(v.sort, value) for v, value in self.system.named(self.state)}
        return {name: value for name, value in found.items() if self.random.random() < 0.5}

    def meanwhile(self) -> None:
        """Hidden and own actions happen, or not."""
        while self.random.random() < 0.4:
            steps = self.steps((*self.own, *self.hidden))
            if not steps:
                return
            instance, self.state = self.random.choice(steps)
            if instance.action in self.own:
                event = {"event": instance.action, "args": plain(instance.args), "state": self.some()}
                if self.late:
                    self.waiting.append({**event, "process": "late"})
                else:
                    self.events.append(event)
        while self.waiting and self.random.random() < 0.3:
            self.events.append(self.waiting.pop(0))

    def reset(self, parameters: Mapping[str, Any], seed: int) -> Mapping[str, Any]:
        """A random initial state."""
        self.waiting = []
        self.state = self.random.choice(list(self.interpreter.initial_states()))
        return self.some()

    def do(self, action: str, args: Mapping[str, Any]) -> Happened:
        """One of the steps of an action."""
        self.meanwhile()
        steps = self.steps((action,), args)
        if not steps or (action in self.own and self.random.random() < 0.3):
            raise Refused("not now")
        instance, self.state = self.random.choice(steps)
        picks = plain(instance.picks) if self.random.random() < 0.5 else None
        return Happened(picks=picks, state=self.some())

    def observe(self, of: list[str] | None) -> Mapping[str, Any]:
        """Some of the values, after everything that was waiting."""
        self.meanwhile()
        self.events += self.waiting
        self.waiting = []
        return self.some()


def has_behaviour(system: System, events: Sequence[Event], hidden: frozenset[str]) -> bool:
    """Whether a behaviour of the system has these events: by search over states and positions, without the trackers."""
    interpreter = Interpreter(system)
    accounts: dict[str, list[Event]] = {}
    for event in events:
        accounts.setdefault(event.process, []).append(event)
    names = [*accounts]
    stack: list[tuple[State, tuple[int, ...]]] = [(s, (0,) * len(names)) for s in interpreter.initial_states()]
    met = set(stack)

    def take(instance: Instance, state: State) -> State | EvaluationError | None:
        try:
            return interpreter.take(instance, state)
        except EvaluationError as error:
            return error

    def fits(state: State, event: Event) -> bool:
        values = {v.name: value_json(v.sort, value) for v, value in system.named(state)}
        return all(values[name] == value for name, value in (event.state or {}).items())

    def matches(instance: Instance, event: Event) -> bool:
        picks = plain(instance.picks)
        own = instance.action == event.event and plain(instance.args) == dict(event.args)
        return own and all(picks.get(name) == value for name, value in (event.picks or {}).items())

    while stack:
        state, at = stack.pop()
        if all(done == len(accounts[name]) for done, name in zip(at, names, strict=True)):
            return True
        ends: list[tuple[State, tuple[int, ...]]] = []
        for instance in system.instances:
            if instance.action in hidden:
                after = take(instance, state)
                if isinstance(after, tuple):
                    ends.append((after, at))
        for number, name in enumerate(names):
            if at[number] == len(accounts[name]):
                continue
            event = accounts[name][at[number]]
            clock = event.clock or {}
            if any(done < clock.get(other, 0) for done, other in zip(at, names, strict=True) if other != name):
                continue
            later = (*at[:number], at[number] + 1, *at[number + 1 :])
            taken = [take(i, state) for i in system.instances if matches(i, event)]
            if event.event == "observe" or event.refused:
                no = event.refused and any(isinstance(after, tuple) for after in taken)
                no = no and not any(isinstance(after, EvaluationError) for after in taken)
                if not no and fits(state, event):
                    ends.append((state, later))
            else:
                ends += [(after, later) for after in taken if isinstance(after, tuple) and fits(after, event)]
        for end in ends:
            if end not in met:
                met.add(end)
                stack.append(end)
    return False
