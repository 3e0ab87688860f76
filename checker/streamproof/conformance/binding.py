"""What ties an implementation's events to a machine: observations, and the binding that makes them.

A binding reads a run's events in order and says of each what it means to the machine: which action sequences it may
stand for (`alternatives`), and what must be true of the state before (`before`) and afterwards (`constraints`). Actions it
declares *hidden* are never logged; the tracker inserts them wherever they can happen.

A behaviour may have been recorded by several processes. Each is a `Stream` with its own order; between streams nothing
is assumed but what the machine itself demands.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from streamproof.conformance.events import Event
from streamproof.conformance.run_verdict import Recovery, Tracked
from streamproof.system import ArraySort, Instance, State, System
from streamproof.system.errors import Loc
from streamproof.system.records import dataclass
from streamproof.system.sorts import OptionSort, QueueSort, RecordSort, position


class StateReader:
    """Reads a state by names: ``look("status", "B (1/4)")`` is the element of an array, ``look("job")`` a variable."""

    __slots__ = ("_state", "_system")

    def __init__(self, system: System, state: State) -> None:
        self._system, self._state = system, state

    def __call__(self, name: str, key: Any = None) -> Any:
        """The value; raises `KeyError` for a name or key that the machine does not have."""
        at = self._system.index[name]
        value = self._state[at]
        if key is None:
            return value
        sort = self._system.variables[at].sort
        where = position(sort.index, key) if isinstance(sort, ArraySort) else None
        if where is None:
            raise KeyError(f"{name}[{key!r}]")
        return value[where]

    def fields(self, name: str) -> tuple[str, ...]:
        """The fields of the records that a variable holds, or may hold. Raises `KeyError` where it holds none."""
        sort = self._system.variables[self._system.index[name]].sort
        while isinstance(sort, ArraySort | QueueSort | OptionSort):
            sort = sort.element
        if not isinstance(sort, RecordSort):
            raise KeyError(name)
        return tuple(field for field, _ in sort.fields)


@dataclass(frozen=True, slots=True)
class Move:
    """One action of the machine. `args` must match the instance's; picks are free. An `optional` move is skipped where it
    is not enabled."""

    action: str
    args: Mapping[str, Any] = field(default_factory=dict)
    optional: bool = False

    def __str__(self) -> str:
        inner = ", ".join(f"{n}={v}" for n, v in self.args.items())
        return f"{self.action}({inner})"


@dataclass(frozen=True, slots=True)
class Constraint:
    """Something an event says about a state.

    `text` is shown where it does not hold; it may speak of the state. `instead` is the event that would have been
    accepted in its place, as the log would have written it.
    """

    text: str | Callable[[StateReader], str]
    test: Callable[[StateReader], bool]
    instead: Callable[[StateReader], str] | None = None

    def said(self, look: StateReader) -> str:
        """Why it does not hold in a state."""
        return self.text if isinstance(self.text, str) else self.text(look)


@dataclass(frozen=True, slots=True)
class Observation:
    """What one event means: `alternatives`, each a sequence of moves (empty: nothing happens in the machine).

    `impossible` refuses the event outright, with the reason: the log contradicts itself. `reads` is what to read in the
    states that are possible after the event once it is accepted; the values are in `Tracked.readings`.
    """

    event: Event
    alternatives: tuple[tuple[Move, ...], ...] = ((),)
    constraints: tuple[Constraint, ...] = ()
    before: tuple[Constraint, ...] = ()
    impossible: str | None = None
    requires_before: Constraint | None = None
    """What another process must have done before. Where it does not hold the event is not wrong, but too early."""
    reads: Callable[[StateReader], Hashable] | None = None
    follows: int | None = None
    """Position, in the same stream, of the last observation that must precede this one; None: all that stand before it.
    A thread that changes the state first and logs afterwards may be overtaken in the log by another thread."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What one process recorded of a behaviour: a total order, or a partial one where observations say what they `follow`.

    `actions` are those that this process takes and records. `ends` says that its log may end before the behaviour does:
    after its last event its actions may have happened unrecorded.
    """

    observations: Sequence[Observation]
    actions: frozenset[str] = frozenset()
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """An observation of something that took place between two moments, `opens` and `closes`, of its process's order.

    `after`: the position, in the same account, of a span that it cannot come before although they overlap.
    `rests_on_returned`: it reads what calls did that have left their records if it has: none that the end of the record
    cut off explains that it reads something else.
    """

    observation: Observation
    opens: int
    closes: int
    after: int | None = None
    rests_on_returned: bool = False


class Grounding(Protocol):
    """The instances of an action with given arguments, for systems that have too many to spell out."""

    def __call__(self, action: str, args: Mapping[str, Any], /) -> tuple[Instance, ...]:
        """Empty where there are none."""


class Explainer(Protocol):
    """How a binding speaks of its machine to those who know the implementation and not the machine."""

    def why_not(self, move: Move, look: StateReader) -> str | None:
        """Why `move` cannot happen in a state, as one sentence; None where the condition itself must do."""

    def expected(self, enabled: Sequence[Instance], look: StateReader, event: Event) -> Iterable[tuple[int, str]]:
        """The events that would have been accepted in a state where these actions are enabled, as the log would show
        them, each with its distance from `event`; 0 is nearest."""


class RecoveryReader(Protocol):
    """How a binding finds the recoveries from failures in what the tracker found."""

    def recoveries(self, tracked: Tracked) -> tuple[Recovery, ...]:
        """The recoveries up to the end of the accepted prefix, that of the rejected event included."""


@dataclass(frozen=True, slots=True)
class Task:
    """One behaviour to follow: a machine, the meaning of its events, and what is never logged.

    Each process's account is one of `streams`, or, where calls overlap, one of `spans`, in the order of `closes`.
    """

    trace: str
    system: System
    streams: tuple[Stream, ...] = ()
    hidden: frozenset[str] = frozenset()
    explainer: Explainer | None = None
    spans: tuple[tuple[Span, ...], ...] = ()
    ends: Mapping[int, int] = field(default_factory=dict)
    """Accounts of `spans` that end before the behaviour does, with the moment from which on something may be missing in
    them: what waits for it proves nothing."""
    grounding: Grounding | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """What gets one verdict: behaviours that must all be accepted.

    `tasks` start with the one that the verdict's model and actions are about, if `followed`. `unjudged` says what the
    logs leave open; where it is not empty an accepted case counts as inconclusive. `notes` are remarks that go with an
    accepted verdict, `recoveries` says how the first task recovered from failures.
    """

    trace: str
    title: str
    tasks: tuple[Task, ...]
    followed: bool = True
    unjudged: tuple[str, ...] = ()
    damage: tuple[Loc, ...] = ()
    """Lines that could not be read and may have been events: a rejection further down in the same file proves nothing."""
    partial: str | None = None
    """What is missing from the records, where any rejection may be due to it: then it proves nothing either."""
    notes: tuple[str, ...] = ()
    recoveries: RecoveryReader | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run holds: its cases, and its events in the best total order known. `unknown` counts unread records."""

    name: str
    cases: tuple[Case, ...]
    events: tuple[Event, ...] = ()
    unknown: int = 0
    problems: tuple[str, ...] = ()
    """What could not be read, each with file and line."""
    unit: str = "job"
    """What a case is about, in one word."""
    nothing: str = "the run's logs name no behaviour to follow"
    """What is said where there are no cases."""


class Binding(Protocol):
    """An implementation's logs, tied to one model. Bindings register in the entry-point group ``streamproof.bindings``,
    under the name of the model."""

    default: bool = False
    """Whether paths that no binding recognises are this one's, and those for which a job graph is given."""

    def runs(self, path: Path) -> list[Any]:
        """The runs under a path. Raises `InputError` where there is none."""

    def recognises(self, path: Path) -> bool:
        """Whether files under a path are this binding's and no other's, so that it reads them without being asked for."""

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """The behaviours of one run. Raises `InputError` for a job graph that is not the run's."""
