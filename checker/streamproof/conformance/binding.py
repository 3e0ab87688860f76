"""What ties an implementation's events to a machine: observations, and the binding that makes them.

A binding reads a run's events in order and says of each what it means to the machine: which action sequences it may
stand for (`ways`), and what must be true of the state afterwards (`demands`). Actions it declares *hidden* are never
logged; the tracker inserts them wherever they can happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from streamproof.conformance.events import Event
from streamproof.system import System, Value

View: TypeAlias = Mapping[str, Value]
"""A state by variable name; arrays over names are read through `Look`."""


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
class Demand:
    """Something an event says about the state after it; `text` is shown when it does not hold."""

    text: str
    test: Callable[[Look], bool]


@dataclass(frozen=True, slots=True)
class Observation:
    """What one event means. `ways` are alternatives, each a sequence of moves (empty: nothing happens in the machine).

    `impossible` refuses the event outright, with the reason: the log contradicts itself. `note` is shown in explanations.
    """

    event: Event
    ways: tuple[tuple[Move, ...], ...] = ((),)
    demands: tuple[Demand, ...] = ()
    impossible: str | None = None
    note: str = ""


class Look:
    """Reads a state by names: ``look("status", "B (1/4)")`` is the element of an array, ``look("job")`` a variable."""

    def __init__(self, system: System, state: tuple[Value, ...]) -> None:
        self._system, self._state = system, state

    def __call__(self, name: str, key: Any = None) -> Value:
        from streamproof.system import ArraySort
        from streamproof.system.sorts import position

        at = self._system.index[name]
        value = self._state[at]
        if key is None:
            return value
        sort = self._system.variables[at].sort
        assert isinstance(sort, ArraySort)
        where = position(sort.index, key)
        if where is None:
            raise KeyError(f"{name}[{key!r}]")
        return value[where]


@dataclass(frozen=True, slots=True)
class Task:
    """One behaviour to follow: a machine, the meaning of its events, and what is never logged.

    `unjudged` says what the log leaves open; where it is not empty an accepted run counts as inconclusive.
    """

    trace: str
    system: System
    observations: Iterable[Observation]
    hidden: frozenset[str] = frozenset()
    unjudged: tuple[str, ...] = ()
    title: str = ""
    recoveries: Callable[[], list[dict[str, Any]]] = list
    """Facts for the report about what was recovered, available once the observations are used up."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run holds: behaviours to follow, and ready verdicts for those that cannot be followed, with the reason."""

    name: str
    tasks: tuple[Task, ...]
    settled: tuple[dict[str, Any], ...] = ()
    events: tuple[Event, ...] = ()
    read: int = 0
    unknown: int = 0


class Binding(Protocol):
    """An implementation's logs, tied to one model. Bindings register in the entry-point group ``streamproof.bindings``."""

    model: str

    def runs(self, path: Path) -> list[Path | Any]:
        """The runs under a path. Raises `InputError` where there is none."""

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """The behaviours of one run."""
