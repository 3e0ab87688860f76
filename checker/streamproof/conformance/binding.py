"""The interface between an implementation's events and a machine: observations, and the bindings that make them.

A binding reads a run's events in order and interprets each: the possible action sequences (`alternatives`), and
constraints on the state before (`before`) and afterwards (`constraints`). Actions declared *hidden* are never logged;
the tracker inserts them wherever they are enabled.

A behaviour may have been recorded by several processes. Each is a `Stream` with its own order; between streams only the
machine's own constraints apply.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from streamproof.base.errors import Loc
from streamproof.base.records import dataclass
from streamproof.conformance.event import Event
from streamproof.conformance.event_forms import NOTHING, LogForm
from streamproof.conformance.history import JobHistory
from streamproof.conformance.run_verdict import Recovery, RunFinding, Tracked
from streamproof.system import ArraySort, Instance, State, System
from streamproof.system.sorts import OptionSort, QueueSort, RecordSort, index_value, position


class StateReader:
    """Reads a state by names: ``look("status", "B (1/4)")`` is the element of an array, ``look("job")`` a variable."""

    __slots__ = ("_state", "_system")

    @property
    def state(self) -> State:
        """The whole state."""
        return self._state

    def __init__(self, system: System, state: State) -> None:
        self._system, self._state = system, state

    def __call__(self, name: str, key: Any = None) -> Any:
        """The value; raises `KeyError` for an unknown name or key."""
        at = self._system.index[name]
        if key is None:
            return self._state[at]
        if type(key) is str:
            where = self._system.named_places[at].get(key)
            if where is not None:
                return self._state[at][where]
        sort = self._system.variables[at].sort
        where = position(sort.index, index_value(sort.index, key)) if isinstance(sort, ArraySort) else None
        if where is None:
            raise KeyError(f"{name}[{key!r}]")
        return self._state[at][where]

    def fields(self, name: str) -> tuple[str, ...]:
        """The fields of the records in a variable. Raises `KeyError` if it does not hold records."""
        sort = self._system.variables[self._system.index[name]].sort
        while isinstance(sort, ArraySort | QueueSort | OptionSort):
            sort = sort.element
        if not isinstance(sort, RecordSort):
            raise KeyError(name)
        return tuple(field for field, _ in sort.fields)


@dataclass(frozen=True, slots=True)
class Move:
    """One action of the machine. `args` and `picks` must match the instance's; others are free. A disabled `optional` move
    is skipped."""

    action: str
    args: Mapping[str, Any] = field(default_factory=dict)
    optional: bool = False
    picks: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        inner = ", ".join(f"{n}={v}" for n, v in self.args.items())
        return f"{self.action}({inner})"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint of an event on a state.

    `text` is the message if it is false; it may depend on the state. `instead` is the acceptable event in the log's
    form.
    """

    text: str | Callable[[StateReader], str]
    test: Callable[[StateReader], bool]
    instead: Callable[[StateReader], str] | None = None

    def said(self, look: StateReader) -> str:
        """Why it is false in a state."""
        return self.text if isinstance(self.text, str) else self.text(look)


def first_unmet(constraints: Iterable[Constraint], look: StateReader) -> Constraint | None:
    """The first of the constraints that is false in a state."""
    return next((c for c in constraints if not c.test(look)), None)


@dataclass(frozen=True, slots=True)
class Observation:
    """The meaning of one event: `alternatives`, each a sequence of moves (empty: no action of the machine).

    `impossible` rejects the event unconditionally, with the reason: the log contradicts itself. `reads` is evaluated in
    the possible states after the accepted event; the values are in `Tracked.readings`.
    """

    event: Event
    alternatives: tuple[tuple[Move, ...], ...] = ((),)
    constraints: Sequence[Constraint] = ()
    before: Sequence[Constraint] = ()
    impossible: str | None = None
    requires_before: Constraint | None = None
    """Constraints on the actions of other processes. If one is false, the event is not wrong, but too early."""
    reads: Callable[[StateReader], Hashable] | None = None
    follows: int | None = None
    """Position, in the same stream, of the last observation that must precede this one; None: all earlier ones. A
    thread that changes the state first and logs afterwards may be overtaken in the log by another thread."""

    like: Hashable = None
    """What of the event decides `alternatives` and the conditions, if not None: observations of one machine with equal values
    here have the same ones, in other words perhaps. What one of them leads to is then computed once in each state. With
    `BY_VALUE`, its moves and the tests of its conditions decide."""

    def unmet_before(self, look: StateReader) -> Constraint | None:
        """The first constraint on the state before that is false; None if all are true."""
        first = () if self.requires_before is None else (self.requires_before,)
        return first_unmet((*first, *self.before), look)


BY_VALUE = object()
"""For `Observation.like`, where the tests of conditions are compared by value: what is equal is found when it is needed."""


def meaning(observation: Observation) -> Hashable:
    """`Observation.like`; with `BY_VALUE`, the moves and conditions of the observation, or None if they have no hash."""
    if observation.like is not BY_VALUE:
        return observation.like
    moves = tuple(
        tuple((m.action, m.optional, *m.args.items(), *m.picks.items()) for m in way)
        for way in observation.alternatives
    )
    first = () if observation.requires_before is None else (observation.requires_before.test,)
    before, after = (tuple(c.test for c in of) for of in (observation.before, observation.constraints))
    found = moves, first, before, after
    try:
        hash(found)
    except TypeError:
        return None
    return found


@dataclass(frozen=True, slots=True)
class Stream:
    """One process's record of a behaviour: a total order, or a partial one if observations have `follows`.

    `actions` are the actions that this process takes and records. `ends`: its log may end before the behaviour does, so
    that its later actions are unrecorded.
    """

    observations: Sequence[Observation]
    actions: frozenset[str] = frozenset()
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """An observation of a call that took effect between two moments, `opens` and `closes`, of its process's order.

    `after`: the position, in the same account, of an overlapping span that must precede it. `rests_on_returned`: it
    reads the effects of calls that have recorded their return, so that the truncated end of the record cannot explain
    another value.
    """

    observation: Observation
    opens: int
    closes: int
    after: int | None = None
    rests_on_returned: bool = False


Grounding: TypeAlias = Callable[[str, Mapping[str, Any]], tuple[Instance, ...]]
"""The instances of an action with given arguments, possibly none, for systems with too many to enumerate."""


class Explainer(Protocol):
    """Explanations of the machine in terms of the implementation."""

    def why_not(self, move: Move, look: StateReader) -> str | None:
        """Why `move` is disabled in a state, as one sentence; None to show the false condition itself."""

    def expected(self, enabled: Sequence[Instance], look: StateReader, event: Event) -> Iterable[tuple[int, str]]:
        """The acceptable events in a state where these actions are enabled, in the log's form, each with its distance
        from `event`; 0 is closest."""


class RecoveryReader(Protocol):
    """Extracts recoveries from failures from the tracker's result."""

    def recoveries(self, tracked: Tracked) -> tuple[Recovery, ...]:
        """The recoveries in the accepted prefix and in the rejected event."""


@dataclass(frozen=True, slots=True)
class Task:
    """One behaviour to follow: a machine, the interpreted events, and the hidden actions.

    Each process's account is one of `streams`, or, for overlapping calls, one of `spans`, in the order of `closes`. Accounts
    are merged as far as each goes, which is exact if no event of one process can make an event of another impossible; if one
    can, give `spans` and `any_order`.
    """

    trace: str
    system: System
    streams: tuple[Stream, ...] = ()
    hidden: frozenset[str] = frozenset()
    explainer: Explainer | None = None
    spans: tuple[Sequence[Span], ...] = ()
    ends: Mapping[int, int] = field(default_factory=dict)
    """Accounts of `spans` that end before the behaviour does, with the moment from which they may be incomplete: events
    that wait for a missing record prove nothing."""
    grounding: Grounding | None = None
    any_order: bool = False
    """With `spans`: an event of one process may make an event of another impossible, so that every order is tried."""
    waits: tuple[tuple[tuple[int, ...], ...], ...] = ()
    """With `any_order`: for each span, how many of each account precede it, as vector clocks say."""

    def __post_init__(self) -> None:
        # A constraint limits a search, not an implementation.
        object.__setattr__(self, "system", self.system.unconstrained)


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a verdict: behaviours that must all be accepted.

    `tasks` begin with the one whose model and actions are in the verdict, if `followed`. `unjudged` lists what the logs
    leave undetermined; if not empty, an accepted case counts as inconclusive. `notes` are remarks on an accepted
    verdict, `recoveries` reads how the first task recovered from failures. `findings` hold if the case is accepted;
    `history` is what the job did, for drawings.
    """

    trace: str
    title: str
    tasks: tuple[Task, ...]
    followed: bool = True
    unjudged: tuple[str, ...] = ()
    damage: tuple[Loc, ...] = ()
    """Unreadable lines that may have been events: a rejection after one of them in the same file proves nothing."""
    partial: str | None = None
    """Missing records that may be the cause of any rejection, which then proves nothing."""
    notes: tuple[str, ...] = ()
    recoveries: RecoveryReader | None = None
    findings: tuple[RunFinding, ...] = ()
    opened: tuple[tuple[Event, str], ...] = ()
    """Events of which the logs leave something undetermined even if they are accepted, with what it is."""
    history: JobHistory | None = None
    unrecorded: str | None = None
    """Why the model's subject is not checked, if the logs have no record of it: if accepted, the case is inconclusive, and
    beside verdicts of other models it does not count."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The contents of a run: its cases, and its events in the best total order known. `unknown` counts unread records."""

    name: str
    cases: tuple[Unit, ...]
    events: tuple[Event, ...] = ()
    unknown: int = 0
    problems: tuple[str, ...] = ()
    """Unreadable data, each with file and line."""
    unit: str = "job"
    """The kind of a case, in one word."""
    nothing: str = "the run's logs name no behaviour to follow"
    """The message for a run without cases."""
    larger: Callable[[], Iterator[Plan]] | None = None
    """The same run, judged with larger bounds of the instance that nobody stated about the implementation."""


class Binding(Protocol):
    """The binding of one kind of an implementation's logs to one model, registered in the entry-point group
    ``streamproof.bindings`` under the name of the model; a second kind of logs under ``model:kind``. One in the group
    ``streamproof.bindings_on_request`` judges runs only if its model is named, or all models are."""

    default: bool = False
    """Whether this binding is used for paths that no binding recognises, and for those with a job graph."""
    reads_job_graph: bool = False
    """Whether a given job graph is for this binding, too, if all models are named."""
    unjudged: Mapping[str, str] = MappingProxyType({})
    """Why events are not judged, by the beginning of a family's name, for all bindings of these files."""

    @property
    def form(self) -> LogForm:
        """The events that the binding reads, for contracts; `NOTHING` of logs that are not declared."""
        return NOTHING

    def runs(self, path: Path) -> list[Any]:
        """The runs under a path. Raises `InputError` if there is none."""

    def recognises(self, path: Path) -> bool:
        """Whether files under a path belong to this binding and no other, so that it reads them without an option."""

    def reads(self, path: Path) -> bool:
        """Whether this binding, of several of its model, reads the files under a path if the model is named."""
        return self.recognises(path)

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """The behaviours of one run. Raises `InputError` for a job graph that is not the run's."""
