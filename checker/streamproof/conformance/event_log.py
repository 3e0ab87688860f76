"""A binding for event logs: an event is an action of the model, with the action's parameters as arguments.

This is what a system needs that writes its own log. Where its events are called otherwise, a *meaning* translates them::

    BINDING = EventLog(Group, {"joined": lambda e: Move("join", {"m": e.process})}, members=3)

A state in an event (`Event.state`: variables, or parts of arrays and records) must be the model's state after the event;
`recorded_values` defines the form of its values.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from streamproof.base.errors import EvaluationError, InputError, ModelError, StreamproofError, UsageError, did_you_mean
from streamproof.base.records import replace
from streamproof.base.text import visible
from streamproof.conformance.binding import (
    Binding,
    Constraint,
    Move,
    Observation,
    Plan,
    Span,
    StateReader,
    Task,
    Unit,
)
from streamproof.conformance.event import Event
from streamproof.conformance.event_table import REQUIRED
from streamproof.conformance.events import begins_like_spans, first_event_fields, read_events
from streamproof.conformance.moves import REMEMBERED, SystemMoves
from streamproof.conformance.recorded_values import agrees, expect_value
from streamproof.language.declare.model import Model
from streamproof.language.declare.spec import Spec
from streamproof.model_registry import Target
from streamproof.system.model import System, parameter_json
from streamproof.system.sorts import show

Meaning: TypeAlias = "Callable[[Event], Move | Iterable[Move] | None] | None"
"""The moves of an event of one kind, in order; None: the event says nothing about the protocol."""

OBSERVE = "observe"
"""The event of a process that records the state, and does nothing; a model may have an action of this name instead."""
UNSAID = ("no event is an action of the model",)
"""Why a trace without any action is not judged."""
SUFFIXES = (".ndjson", ".jsonl", ".ndjson.gz", ".jsonl.gz", ".parquet")


class EventLog(Binding):
    """The binding of event logs to a model; `parameters` are the model's.

    Each trace of a log is one behaviour; parameters that it states are those of its model. Events of one process happened in
    the order of their numbers, except as their `after` says, and vector clocks order events of different processes; otherwise
    every order is possible. `ordered`: all events happened in the order of the file (of spans: of their ends). `hidden`
    actions are not recorded: they may happen at any time.
    """

    assumed: Mapping[str, Any] = MappingProxyType({})
    """Parameters that nobody stated about the implementation, with their values: no log is rejected for them."""
    enlarged: Mapping[str, Any] = MappingProxyType({})
    """Those of them that are larger than the model's default."""

    def __init__(
        self,
        model: type[Model] | Spec | System,
        meaning: Mapping[str, Meaning] | None = None,
        *,
        hidden: Iterable[str] = (),
        ordered: bool = False,
        variant: str | None = None,
        **parameters: Any,
    ) -> None:
        self._source, self._variant, self._given = model, variant, parameters
        if not isinstance(model, System):
            spec = model if isinstance(model, Spec) else Spec(model=model)
            model = spec.system(variant, **parameters)
        self.system = model
        self._parameters = {action.name: action.parameters for action in self.system.actions}
        self._meaning, self._hidden, self._ordered = dict(meaning or {}), frozenset(hidden), ordered
        self.steps = SystemMoves(model.unconstrained)
        self._values: dict[str, dict[str, dict[Any, Any]]] = {}
        self._known_moves: dict[Hashable, tuple[Move, ...]] = {}
        for name in self._hidden - self._parameters.keys():
            raise ModelError(
                f"{self.system.name} has no action {name!r} to hide", remedy=did_you_mean(name, self._parameters)
            )

    @property
    def hidden(self) -> frozenset[str]:
        """The actions that are not recorded."""
        return self._hidden

    @property
    def ordered(self) -> bool:
        """Whether all events of a trace happened in the order of the file."""
        return self._ordered

    @classmethod
    def bundled(cls, spec: Spec, variant: str | None = None, **parameters: Any) -> EventLog:
        """The binding to a model of this project, whose default parameters say nothing about an implementation."""
        log = cls(spec, variant=variant, **parameters)
        log.assumed = {n: v for n, v in _class(spec, variant).parameters().items() if n not in parameters}
        return log

    def larger(self) -> Iterator[EventLog]:
        """Bindings with more room than the default parameters have: each assumed `instance_bounds` twice and four times as
        large, alone and with all others, as far as the model allows."""
        spec = cast(Spec, self._source)
        known = {name: self.assumed.get(name) for name in _class(spec, self._variant).instance_bounds}
        bounds = {name: number for name, number in known.items() if number is not None}
        for factor in (2, 4):
            for names in dict.fromkeys([*((name,) for name in bounds), tuple(bounds)] if bounds else ()):
                enlarged: dict[str, Any] = {name: max(bounds[name], 1) * factor for name in names}
                with suppress(StreamproofError):  # no such instance, or one that is too large
                    log = EventLog(spec, variant=self._variant, **self._given, **enlarged)
                    log.assumed, log.enlarged = {**self.assumed, **enlarged}, enlarged
                    yield log

    def chosen(self, variant: str | None, texts: Sequence[str]) -> EventLog:
        """The same binding to a variant, if one is named, and with other parameters, given as ``name=value``."""
        if isinstance(self._source, System):
            what, option = ("variants", "--variant") if variant is not None else ("parameters", "-p")
            raise UsageError(f"the binding is to a System, which has no {what}", remedy=f"leave out {option}")
        variant = self._variant if variant is None else variant
        spec = self._source if isinstance(self._source, Spec) else Spec(model=self._source)
        target = Target(spec.model.title(), spec, True)
        given = {**self._given, **target.given(variant, texts)}
        target.system(variant, given)  # its errors are those of a command line
        if self.assumed:
            return self.bundled(spec, variant, **given)
        return EventLog(spec, self._meaning, hidden=self._hidden, ordered=self._ordered, variant=variant, **given)

    @staticmethod
    def runs(path: Path) -> list[Any]:
        """The file, or the event logs of a folder. Raises `InputError` if there is none."""
        found = [path] if path.is_file() else sorted(f for f in path.iterdir() if _is_log(f))
        if not found:
            raise InputError(
                f"{path}: no event log was found", remedy=f"name a file, or a folder with {SUFFIXES[0]} files"
            )
        return list(found)

    def recognises(self, path: Path) -> bool:
        """Never: the model is named."""
        return False

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """One case for each trace."""
        if job_graph is not None:
            raise InputError(f"{job_graph}: an event log has no job graph", remedy="leave out --job-graph")
        events = read_events(run)
        traces: dict[str, dict[str, list[Event]]] = {}
        for event in events:
            traces.setdefault(event.trace, {}).setdefault("" if self._ordered else event.process, []).append(event)
        stated = _stated(events)
        known: dict[str, EventLog] = {}
        try:
            cases = tuple(self.stated_in(stated.get(trace), known).case(trace, own) for trace, own in traces.items())
        except InputError:
            if self.assumed and not self.enlarged:
                for larger_plan in self._larger_plans(run):
                    return replace(larger_plan, larger=partial(self._larger_plans, run))
            raise
        name, larger = run.name.partition(".")[0], None
        if self.assumed and not self.enlarged:
            larger = partial(self._larger_plans, run)
        return Plan(name, cases, tuple(events), unit="behaviour", larger=larger)

    def stated_in(self, stated: Event | None, known: dict[str, EventLog]) -> EventLog:
        """The binding with the parameters that a log states in an event; those in `known` were made before.

        Raises `InputError` for parameters that the model does not have, and for others than the binding was given.
        """
        if stated is None or stated.parameters is None:
            return self
        given = dict(stated.parameters)
        text = json.dumps(given, sort_keys=True)
        if text not in known:
            try:
                known[text] = self._stating(given)
            except StreamproofError as error:
                loc, message = stated.loc, f"the parameters of the log: {error.message}"
                raise InputError(message, loc=loc, remedy=error.remedy) from None
        return known[text]

    def _stating(self, stated: Mapping[str, Any]) -> EventLog:
        own = {name: value for name, value in self._given.items() if name not in self.enlarged}
        source = self._source
        if isinstance(source, System):
            own, spec = dict(source.parameters), None
        else:
            spec = source if isinstance(source, Spec) else Spec(model=source)
            target = Target(spec.model.title(), spec, True)
        found: dict[str, Any] = {}
        for name, value in stated.items():
            if spec is not None:
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                found |= target.meaning(target.variant(self._variant), name, "none" if value is None else text)
            if name in own and parameter_json(own[name]) != value:
                raise UsageError(
                    f"{name} is {json.dumps(value)}, and {json.dumps(parameter_json(own[name]))} is given for it",
                    remedy="leave out -p, or state the parameters of the implementation in its log",
                )
        if spec is None or all(parameter_json(self.system.parameters.get(n)) == v for n, v in stated.items()):
            log = copy(self)
        else:
            target.system(self._variant, {**own, **found})  # its errors are those of a command line
            log = EventLog(
                spec, self._meaning, hidden=self._hidden, ordered=self._ordered, variant=self._variant, **own, **found
            )
        log._given = {**own, **found}
        log.assumed = {name: value for name, value in self.assumed.items() if name not in stated}
        log.enlarged = {name: value for name, value in self.enlarged.items() if name not in stated}
        return log

    def _larger_plans(self, run: Any) -> Iterator[Plan]:
        for log in self.larger():
            with suppress(InputError):  # values of the log do not fit these sizes either
                yield log.plan(run, None)

    def case(self, trace: str, processes: Mapping[str, Sequence[Event]]) -> Unit:
        """The behaviour of one trace, from the events of each process."""
        if not self._ordered:
            processes = {name: sorted(own, key=lambda event: event.seq) for name, own in processes.items()}
        accounts = tuple(tuple(self._spans(own)) for own in processes.values())
        waits = () if self._ordered else clock_order(processes)
        task = Task(trace, self.system, hidden=self._hidden, spans=accounts, any_order=True, waits=waits)
        says = any(moves for account in accounts for span in account for moves in span.observation.alternatives)
        unjudged = () if says else UNSAID
        title = self.system.name + (f" ({self.system.variant})" if self.system.variant else "")
        return Unit(trace, title, (task,), unjudged=unjudged, partial=self._doubt, notes=self._notes)

    @property
    def _notes(self) -> tuple[str, ...]:
        sizes = ", ".join(f"{name}={value}" for name, value in self.enlarged.items())
        return (f"with {sizes}, which the log needs: more than the model's default",) if sizes else ()

    @property
    def _doubt(self) -> str | None:
        """Why a rejection proves nothing."""
        if not self.assumed:
            return None
        values = ", ".join(f"{name}={visible(str(value))}" for name, value in self.assumed.items())
        return f"the parameters {values} are those of the model, not of the implementation; state them with -p"

    def _spans(self, own: Sequence[Event]) -> Iterator[Span]:
        """The events of a process; one that records a call may have taken effect before some of those it follows."""
        numbers = [event.seq for event in own]
        for at, event in enumerate(own):
            opens = at if event.after is None or self._ordered else bisect_right(numbers, event.after) - 1
            yield Span(self.observation(event), opens, at)

    def observation(self, event: Event) -> Observation:
        """The meaning of an event. Raises `InputError` for one that the model does not have."""
        # With a meaning, all of an event may matter. As text, 1 and True differ.
        known = None if event.event in self._meaning else (event.event, repr(event.args), repr(event.picks))
        moves = None if known is None else self._known_moves.get(known)
        if moves is None:
            moves = tuple(self._moves(event))
            for move in moves:
                self._expect_known(move, event)
            if known is not None and len(self._known_moves) < REMEMBERED:
                self._known_moves[known] = moves
        states = tuple(self._states(event)) if event.state else ()
        if event.refused:
            return Observation(event, ((),), states, (self._impossible(moves),) if moves else ())
        return Observation(event, (moves,), states, like=None if states else known)

    def _impossible(self, moves: tuple[Move, ...]) -> Constraint:
        """The moves are not possible. Where the model has an error instead of a next state, this demands nothing."""

        def refused(look: StateReader) -> bool:
            try:
                return not self.steps.along(moves, look.state)
            except EvaluationError:
                return True

        return Constraint(f"{moves[0]} is possible in the model, and was refused", refused)

    def _moves(self, event: Event) -> Iterable[Move]:
        if event.event not in self._meaning:
            if event.event == OBSERVE and event.event not in self._parameters:
                return ()
            if event.event not in self._parameters:
                known = (*self._meaning, *self._parameters)
                hint = did_you_mean(event.event, known)
                raise InputError(
                    f"{self.system.name} has no action {event.event!r}, and the binding gives the event no meaning",
                    loc=event.loc,
                    remedy="\n  ".join(
                        filter(None, (hint, "give its moves, or None if it says nothing about the protocol"))
                    ),
                )
            args, picks = (
                {name: _argument(value, event) for name, value in given.items()}
                for given in (event.args, event.picks or {})
            )
            return (Move(event.event, args, picks=picks),)
        meaning = self._meaning[event.event]
        return () if meaning is None else _meant(meaning, event)

    def _known_values(self, action: str) -> dict[str, dict[Any, Any]]:
        """The values of each parameter of an action, and of each of its choices."""
        if action not in self._values:
            found: dict[str, dict[Any, Any]] = {name: {} for name in self._parameters[action]}
            self._values[action] = found
            for instance in next(a.instances for a in self.system.actions if a.name == action):
                for name, value in (*instance.args, *instance.picks):
                    found.setdefault(name, {}).setdefault(value, value)
        return self._values[action]

    def _expect_known(self, move: Move, event: Event) -> None:
        """Raises `InputError` for an action or a parameter that the model does not have: no step could match it, and for
        a value of another type than the model's: Python calls 1 and True equal, and 1 and "1" are shown alike."""
        if move.action not in self._parameters:
            raise InputError(
                f"{self.system.name} has no action {move.action!r}",
                loc=event.loc,
                remedy=did_you_mean(move.action, self._parameters),
            )
        values = self._known_values(move.action)
        choices = values.keys() - set(self._parameters[move.action])
        for name, value in (*move.args.items(), *move.picks.items()):
            kind, known = ("choice", choices) if name in move.picks else ("parameter", self._parameters[move.action])
            if name not in known:
                raise InputError(
                    f"{move.action} has no {kind} {name!r}",
                    loc=event.loc,
                    remedy=f"its {kind}s: {', '.join(known) or 'none'}",
                )
            for other in _of_another_type(value, values[name]):
                where = "binding's move" if event.event in self._meaning else "log"
                raise InputError(
                    f"{name} is {json.dumps(value, default=str)} in the {where}, and {other!r} in the model",
                    loc=event.loc,
                    remedy="truth values, numbers and text are different: record what the model has",
                )

    def _states(self, event: Event) -> Iterator[Constraint]:
        """The variables that the event records are those of the model."""
        for name, recorded in (event.state or {}).items():
            if name not in self.system.index:
                raise InputError(
                    f"{self.system.name} has no variable {name!r}",
                    loc=event.loc,
                    remedy=did_you_mean(name, self.system.index),
                )
            yield self._recorded_value(name, recorded, event)

    def _recorded_value(self, name: str, recorded: Any, event: Event) -> Constraint:
        sort = self.system.variables[self.system.index[name]].sort
        expect_value(sort, recorded, name, event.loc)

        def text(look: StateReader) -> str:
            return f"{name} is {show(sort, look(name))} in the model, and {json.dumps(recorded)} in the log"

        return Constraint(text, lambda look: agrees(sort, look(name), recorded))


def _class(spec: Spec, variant: str | None) -> type[Model]:
    return spec.model if variant is None else spec.model.variants[variant]


def _stated(events: Iterable[Event]) -> dict[str, Event]:
    """The first event of each trace that states parameters. Raises `InputError` if another one states others."""
    found: dict[str, Event] = {}
    for event in events:
        if event.parameters is not None:
            first = found.setdefault(event.trace, event)
            if json.dumps(first.parameters, sort_keys=True) != json.dumps(event.parameters, sort_keys=True):
                raise InputError(
                    f"the trace {event.trace!r} has other parameters in {first}",
                    loc=event.loc,
                    remedy="state them once, in the first line of the trace",
                )
    return found


def is_event_log(path: Path) -> bool:
    """Whether a file, or the first log in a folder, begins like an event log, or like spans of OpenTelemetry."""
    try:
        logs = sorted(filter(_is_log, path.iterdir())) if path.is_dir() else [path]
    except OSError:
        return False  # reading it would report the error
    first = next((log for log in logs if log.is_file()), None)
    return first is not None and (begins_like_spans(first) or {*REQUIRED} <= first_event_fields(first).keys())


def _is_log(file: Path) -> bool:
    """Whether a file in a folder is an event log, by its name, or spans of OpenTelemetry, by its content."""
    return file.name.endswith(SUFFIXES) or (file.is_file() and begins_like_spans(file))


def clock_order(processes: Mapping[str, Sequence[Event]]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """For each event of each process, how many events of each process precede it by its vector clock.

    An event with a clock has its own process in it. Raises `InputError` otherwise, and for clocks that do not rise.
    """
    counts: dict[str, list[int]] = {name: [] for name in processes}
    places: dict[str, list[int]] = {name: [] for name in processes}
    for name, events in processes.items():
        for place, event in enumerate(events, 1):
            if not event.clock:
                continue
            count = event.clock.get(name, 0)
            if count <= (counts[name][-1] if counts[name] else 0):
                raise InputError(
                    f"the vector clock of {event} does not count this event of {name!r}",
                    loc=event.loc,
                    remedy="each event raises the entry of its own process",
                )
            counts[name].append(count)
            places[name].append(place)

    def before(event: Event, name: str) -> int:
        known = 0 if name == event.process else bisect_right(counts[name], (event.clock or {}).get(name, 0))
        return places[name][known - 1] if known else 0

    return tuple(
        tuple(tuple(before(event, name) for name in processes) for event in events) for events in processes.values()
    )


def _meant(meaning: Callable[[Event], Move | Iterable[Move] | None], event: Event) -> tuple[Move, ...]:
    """The moves of an event. Raises `InputError` if the meaning raises an exception or returns anything else."""
    try:
        meant = meaning(event)
        moves = (meant,) if isinstance(meant, Move) else tuple(meant or ())
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        known = ", ".join(event.args) or "none"
        raise InputError(
            f"the meaning of {event.event!r} failed: {type(error).__name__}: {error}",
            loc=event.loc,
            remedy=f"correct the event or its meaning in the binding; the event's arguments: {known}",
        ) from error
    if not all(isinstance(move, Move) for move in moves):
        raise InputError(
            f"the meaning of {event.event!r} is {meant!r}",
            loc=event.loc,
            remedy="return a Move, a list of Moves, or None",
        )
    return moves


def _of_another_type(value: Any, known: Mapping[Any, Any]) -> tuple[Any, ...]:
    """The values of the model that a value is equal to, or has the same text as, without being of their type."""
    if not isinstance(value, str | int | tuple | None):
        return ()
    if value in known:
        return () if _alike(value, known[value]) else (known[value],)
    return tuple(own for own in known if not isinstance(own, tuple) and str(own) == str(value))


def _alike(one: Any, other: Any) -> bool:
    """Whether neither of two equal values has a truth value where the other has a number."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return all(map(_alike, one, other))
    return isinstance(one, bool) == isinstance(other, bool)


def _argument(value: Any, event: Event) -> Any:
    """A value of JSON as the value of a parameter: lists stand for tuples."""
    if isinstance(value, dict):
        raise InputError("no parameter has a JSON object as value", loc=event.loc, remedy="give the event a meaning")
    return tuple(_argument(v, event) for v in value) if isinstance(value, list) else value
