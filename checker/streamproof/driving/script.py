"""Scripts: what an implementation is asked to do, one event after the other. Suites, walks and differences are scripts.

A script is a trace of an event log: an event is an action to do, with the state that the model has after it where it is
known; a `refused` event is one that must not happen. So a suite is a log, and what an implementation did is one, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from pathlib import Path
from typing import Any

from streamproof.base.records import dataclass
from streamproof.conformance.event import Event
from streamproof.conformance.event_log import OBSERVE, EventLog
from streamproof.conformance.events import read_events
from streamproof.conformance.recorded_values import value_json
from streamproof.system.model import Instance, State, System, parameter_json
from streamproof.system.verdict import Trace

PROCESS = "implementation"
"""The process of events that name none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of a script: an action with its arguments, and the choices proposed."""

    action: str
    args: Mapping[str, Any] = field(default_factory=dict)
    picks: Mapping[str, Any] = field(default_factory=dict)
    refused: bool = False
    """Whether the model does not permit it where the script was made."""
    nested: bool = field(default=True, compare=False, repr=False)
    """Whether a value may have parts."""
    key: object = field(default_factory=object, init=False, compare=False, repr=False)
    """What this call is known by."""

    @classmethod
    def of(cls, instance: Instance, *, refused: bool = False) -> Asked:
        """The call of an instance."""
        args, picks = _json(instance.args), {} if refused else _json(instance.picks)
        nested = any(type(value) in (list, dict) for value in (*args.values(), *picks.values()))
        return cls(instance.action, args, picks, refused, nested)

    def call(self) -> dict[str, Any]:
        """The message, of which nothing is shared: an adapter of this process may change it."""
        args = deepcopy(self.args) if self.nested else {**self.args}
        found: dict[str, Any] = {"call": "do", "action": self.action, "args": args}
        if self.picks:
            found["picks"] = deepcopy(self.picks) if self.nested else {**self.picks}
        return found

    def __str__(self) -> str:
        return f"{self.action}({', '.join(f'{n}={v}' for n, v in self.args.items())})"


@dataclass(frozen=True, slots=True)
class CallScript:
    """A named sequence of calls."""

    name: str
    calls: tuple[Asked, ...]


def _json(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: parameter_json(value) for name, value in pairs}


def group_of(instance: Instance) -> tuple[object, ...]:
    """An action with its arguments, whatever its choices."""
    return instance.key[: 1 + len(instance.args)]


def read_scripts(path: Path, system: System) -> list[CallScript]:
    """The scripts of an event log, one for each trace. Raises `InputError`."""
    known = {action.name for action in system.actions}
    found: dict[str, list[Asked]] = {}
    log = EventLog(system)
    for event in read_events(path):
        log.observation(event)  # its names and types are those of the model
        calls = found.setdefault(event.trace, [])
        if event.event in known:
            calls.append(Asked(event.event, event.args, event.picks or {}, bool(event.refused)))
    return [CallScript(name, tuple(calls)) for name, calls in found.items()]


def sizes(system: System, without: Collection[str] = ()) -> dict[str, Any]:
    """The parameters of a system, as a log states them."""
    return {name: parameter_json(value) for name, value in system.parameters.items() if name not in without}


def events_of(system: System, name: str, trace: Trace, refused: Mapping[int, Sequence[Instance]]) -> Iterator[Event]:
    """The events of a behaviour: initial values, each step with the state after it. `refused` has, by number of a state, the
    instances that are not possible there."""
    number = 0

    def event(action: str, args: Any = (), picks: Any = (), state: State | None = None, *, no: bool = False) -> Event:
        nonlocal number
        number += 1
        shown = None if state is None else {v.name: value_json(v.sort, value) for v, value in system.named(state)}
        more: dict[str, Any] = {"refused": True} if no else {}
        if picks:
            more["picks"] = _json(picks)
        if number == 1:
            more["parameters"] = sizes(system)
        return Event(name, "model", number - 1, action, _json(args), state=shown, **more)

    if OBSERVE not in {action.name for action in system.actions}:
        yield event(OBSERVE, state=trace.states[0])
    for at, state in enumerate(trace.states):
        if at:
            step = trace.steps[at - 1]
            yield event(step.action, step.args, step.picks, state)
        for instance in refused.get(at, ()):
            yield event(instance.action, instance.args, no=True)
