"""The breadth-first search driver of both tiers: levels, limits, progress, early end, and results."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from streamproof.base.options import DEFAULTS, SearchOptions, Tuning, memory_of_machine, resident_bytes
from streamproof.base.records import dataclass
from streamproof.explicit.writer import Watch
from streamproof.interrupts import gently, known, left
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.verdict import Finding, Progress, Reduction, Verdict, number_of
from streamproof.transform.scalarise import Scalarised

if TYPE_CHECKING:
    from streamproof.explicit.cluster import Cluster
    from streamproof.explicit.mapped_graph import CycleFinder, StoredGraph
    from streamproof.explicit.reductions.stubborn import StubbornSets
    from streamproof.explicit.reductions.symmetry import Symmetry
    from streamproof.explicit.reductions.view import StateView
    from streamproof.explicit.state_graph import StateGraph

DEFAULT_MAX_STATES = 0xFFFF_FFF0
"""Default limit on distinct states."""

MEMORY_SHARE = 0.8
"""Default limit on memory, as a share of the memory of the machine (or the container)."""


class Stop(Enum):
    """The reason why a search ended before every reachable state was expanded."""

    STATES = "max_states"
    DEPTH = "max_depth"
    TIME = "time_limit"
    MEMORY = "memory"
    INTERRUPTED = "interrupted"
    MISTAKE = "evaluation error"
    DECIDED = "every property decided"
    VIOLATIONS = "max_violations"
    PAUSE = "continues later"
    HANDOVER = "larger than this tier is for"


@dataclass(slots=True)
class Budget:
    """The limits of one search, and the clock started with it."""

    options: SearchOptions = DEFAULTS
    max_bytes: int | None = field(init=False)
    """Memory limit of the process: that of the options, or else a share of the machine's memory."""
    started: float = field(default_factory=lambda: time.monotonic())
    _interrupted: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        self.max_bytes = self.options.memory
        if self.max_bytes is None:
            memory = memory_of_machine()
            self.max_bytes = int(memory * MEMORY_SHARE) if memory else None

    @property
    def max_states(self) -> int:
        """Limit on distinct states."""
        return self.options.max_states or DEFAULT_MAX_STATES

    @property
    def tuning(self) -> Tuning:
        """Sizes of tables and pieces."""
        return self.options.tuning

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def spent(self) -> Stop | None:
        """`TIME`, `MEMORY` or `INTERRUPTED` if that limit is reached, else None."""
        if self.interrupted:
            return Stop.INTERRUPTED
        if left() <= 0 or (self.options.time_limit is not None and self.elapsed >= self.options.time_limit):
            return Stop.TIME
        if self.max_bytes is not None and resident_bytes() >= self.max_bytes:
            return Stop.MEMORY
        return None

    def allows(self, more: int) -> bool:
        """Whether an allocation of `more` bytes stays within the memory limit."""
        return self.max_bytes is None or resident_bytes() + more <= self.max_bytes

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Inside, Ctrl-C or SIGTERM requests a stop at the next safe point; a second one raises `KeyboardInterrupt`."""
        with gently() as interrupted:
            self._interrupted = interrupted
            try:
                yield
            finally:
                was = self.interrupted
                self._interrupted = lambda: was

    def interrupt(self) -> None:
        """Record an interrupt that arrived outside `listening`."""
        self._interrupted = lambda: True

    @property
    def interrupted(self) -> bool:
        """Whether the user has interrupted the search."""
        return self._interrupted()


def processors() -> int:
    """Number of processors available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_ENDED = {
    Stop.INTERRUPTED: "interrupted; run it again to the end",
    Stop.TIME: "time limit reached; raise it",
    Stop.MEMORY: "memory limit reached; raise it or choose smaller parameters",
}


def ended(spent: Stop) -> str:
    """The reason for a temporal property that is undecided after a complete search."""
    return f"state space explored, temporal check not finished: {_ENDED.get(spent, spent.value)}"


def undecided(prop: Property, because: str) -> Finding:
    """The finding for a property that is not decided."""
    return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, because)


SYMMETRY, PARTIAL_ORDER, VIEW = "symmetry", "partial order", "view"


@dataclass(frozen=True, slots=True)
class ReductionPlan:
    """The reductions of a search: symmetry, stubborn sets, both, a view, or none.

    `refused` has the requested reductions that do not apply, with their reasons.
    """

    symmetry: Symmetry | None = None
    stubborn: StubbornSets | None = None
    refused: tuple[Reduction, ...] = ()
    view: StateView | None = None

    @property
    def reduces(self) -> bool:
        """Whether the search is not the full one."""
        return self.symmetry is not None or self.stubborn is not None or self.view is not None

    def doubt(self, prop: Property) -> str | None:
        """Why states that the search leaves out may violate a property that no explored state violates; None: they cannot."""
        return None if self.view is None else self.view.doubt(prop.name)

    def count(self, states: int) -> str:
        """A number of states of the search, as text."""
        if self.view is not None:
            return f"{number_of(states, 'reachable state')} up to the view"
        if self.stubborn is None:
            return number_of(states, "reachable state") + (" up to symmetry" if self.symmetry is not None else "")
        found = f"{number_of(states, 'state')} of the reduced search"
        return f"{found}, up to symmetry," if self.symmetry is not None else found

    @property
    def left_out(self) -> str | None:
        """After the search: why it may not have all reachable states; None if it has."""
        if self.stubborn is not None and self.stubborn.cut:
            return f"the {PARTIAL_ORDER} reduction leaves states out"
        if self.view is not None:
            return "the view leaves states out"
        return None if self.symmetry is None else f"the {SYMMETRY} reduction leaves states out"

    def given_up(self, states: int) -> ReductionPlan:
        """The plan of the full search, which finished when the reduced search had found `states` states."""
        names = [SYMMETRY] if self.symmetry is not None else []
        names += [PARTIAL_ORDER] if self.stubborn is not None else []
        return ReductionPlan(refused=(*not_needed(names, states).refused, *self.refused))

    def report(self) -> tuple[Reduction, ...]:
        """The requested reductions, after the search: the effect of the applied ones, the reasons of the others."""
        made: list[Reduction] = []
        if self.symmetry is not None:
            names = " and ".join(f"{{{', '.join(sort.members)}}}" for sort in self.symmetry.sorts)
            because = f"any two of {names} can be exchanged, so one state of each orbit is searched and counted"
            made.append(Reduction(SYMMETRY, True, because))
        if self.stubborn is not None:
            cut, expanded = self.stubborn.cut, self.stubborn.expanded
            because = f"in {cut:,} of {expanded:,} states some enabled steps were left out"
            if not cut:
                because = f"no effect: in each of {expanded:,} states every enabled step was needed"
            made.append(Reduction(PARTIAL_ORDER, True, because))
        if self.view is not None:
            because = f"of the states with equal {', '.join(self.view.names)}, one is searched and counted"
            because += "; it is proved that they have equal steps and properties" if self.view.proved else ""
            made.append(Reduction(VIEW, True, because))
        return tuple(sorted((*made, *self.refused), key=lambda r: (SYMMETRY, PARTIAL_ORDER, VIEW).index(r.name)))


def not_needed(names: Iterable[str], states: int) -> ReductionPlan:
    """The plan of a full search that finished when the search with these reductions had found `states` states."""
    had = f"the reduced one had {number_of(states, 'state')}" if states else "the reduced one had not begun"
    because = f"when the full search finished, {had}"
    return ReductionPlan(refused=tuple(Reduction(name, False, because, True) for name in names))


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """The place where a property was decided during the search."""

    state: int
    instance: int | None
    """The instance whose step from `state` breaks a step property."""
    mistake: bool
    """Whether evaluating the property fails there."""


@dataclass(frozen=True)
class SearchTask:
    """The system to search, the properties to decide, and the limits."""

    scalarised: Scalarised
    system: System
    """The simplified scalar system: the one that is searched."""
    properties: Sequence[Property]
    """Properties of `system`; temporal properties are decided after the search, from `cycle` and `graph`."""
    budget: Budget = field(default_factory=Budget)
    after_level: Callable[[LevelSearch], Stop | None] = lambda search: None
    """Called at the end of every level except the last; returns a reason to stop, or None."""
    on_progress: Callable[[Progress], None] | None = None
    cluster: Cluster | None = None
    """The processes and the folder of a search over many processes."""
    symmetry: Symmetry | None = None
    """The symmetry by which compiled code reduces the search."""

    @property
    def compiles(self) -> bool:
        """Whether only compiled code stores or shares the states as requested."""
        options = self.budget.options
        stored = options.spill is not None or options.storage is not None
        return stored or options.workers is not None or self.cluster is not None


class LevelSearch(ABC):
    """A breadth-first search and its results. States are numbered in the order of discovery.

    A tier defines how to find the initial states (`_start`) and how to expand a level (`_level`).
    """

    stuck: int = -1
    """The first deadlock (a state without a successor that is not terminal), or -1."""

    def __init__(self, task: SearchTask) -> None:
        self.task = task
        self.scalarised = task.scalarised
        self.system = task.system
        self.properties = task.properties
        self.budget = task.budget
        self.levels: list[int] = []
        """Number of new states of each level."""
        self.initial = 0
        """Number of initial states."""
        self.events: dict[int, SearchEvent] = {}
        """The places where properties were decided, by position in `properties`."""
        self.stopped: Stop | None = None
        self.stage = ""
        """The stage in which a limit ended the search, if it was not the search itself."""
        self.compile_seconds = 0.0
        self._reported = 0.0

    # --- the search

    def run(self) -> None:
        """Search until all states are expanded or a limit is reached; `stopped` is that limit."""
        try:
            if not self.levels:
                self._start()
            while not self.stopped and self.queue:
                deepest = self.budget.options.max_depth
                at_end = deepest is not None and len(self.levels) >= deepest
                self.stopped = self.task.after_level(self) or (Stop.DEPTH if at_end else self._before_level())
                if not self.stopped:
                    self._level()
        except KeyboardInterrupt:
            self.stopped = Stop.INTERRUPTED
            self._abandon()

    @abstractmethod
    def _start(self) -> None:
        """Find the initial states, the first level."""

    def _before_level(self) -> Stop | None:
        """Called before a level is expanded; returns a reason to stop, or None."""
        return None

    @abstractmethod
    def _level(self) -> None:
        """Expand every state of the newest level."""

    @abstractmethod
    def _abandon(self) -> None:
        """Leave an interrupted level; its results are kept where possible."""

    def _settle(self, mistakes: Mapping[int, SearchEvent]) -> None:
        """At the end of a level: record evaluation errors of properties that no state or step of the level decides."""
        self.events = {**mistakes, **self.events}

    def _open(self, *kinds: Kind) -> list[tuple[int, Property]]:
        """The undecided properties of these kinds, with their positions."""
        return [(k, p) for k, p in enumerate(self.properties) if k not in self.events and p.kind in kinds]

    def _watches(self) -> list[Watch]:
        """The watches of the undecided properties of single states."""
        return watches_of(self._open(Kind.INVARIANT, Kind.REACHABLE, Kind.TEMPORAL))

    def _report(self) -> None:
        """Report progress, at most once a second."""
        elapsed = self.budget.elapsed
        known(f"{number_of(self.known, 'state')} found, {self.queue:,} of them not expanded")
        if self.task.on_progress is not None and elapsed - self._reported >= 1.0:
            self._reported = elapsed
            self.task.on_progress(self.progress(elapsed))

    def progress(self, elapsed: float) -> Progress:
        """The progress after a time in seconds."""
        return Progress(elapsed, len(self.levels), self.known, self.total, self.queue)

    # --- results

    @property
    @abstractmethod
    def known(self) -> int:
        """Number of distinct states."""

    @property
    @abstractmethod
    def expanded(self) -> int:
        """Number of states whose successors have all been computed."""

    @property
    def queue(self) -> int:
        """Number of known states that have not been expanded."""
        return self.known - self.expanded

    @property
    def total(self) -> int:
        """Number of initial states and successors, duplicates included."""
        return self.initial + sum(self.generated)

    @property
    @abstractmethod
    def generated(self) -> Sequence[int]:
        """Successors per instance, duplicates included."""

    @property
    @abstractmethod
    def distinct(self) -> Sequence[int]:
        """New states, per instance."""

    @property
    @abstractmethod
    def least(self) -> int:
        """Smallest number of successors of an expanded state."""

    @property
    @abstractmethod
    def most(self) -> int:
        """Largest number of successors of an expanded state."""

    @property
    @abstractmethod
    def faulty(self) -> int:
        """The state with an evaluation error of the model, or -1."""

    @abstractmethod
    def state(self, number: int) -> State:
        """A scalar state by its number."""

    @abstractmethod
    def states(self) -> Iterator[State]:
        """The scalar states in the order of discovery."""

    @abstractmethod
    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""

    def instance(self, before: int, after: int) -> int | None:
        """The position of the first instance that leads from one known state to another, if it was recorded."""
        return None

    @abstractmethod
    def ever_true(self, conditions: Sequence[Expr]) -> list[bool]:
        """For each condition, whether it is true in at least one known state."""

    @abstractmethod
    def count(self, condition: Expr) -> tuple[int, ...]:
        """The number of known states of each level in which a condition is true."""

    @abstractmethod
    def largest(self, term: Expr) -> int:
        """The largest value of an integer term in the known states."""

    @abstractmethod
    def cycle(self) -> tuple[list[int], bool] | None:
        """The states of a cycle, with few steps to and around it, and whether none has fewer; None if there is no cycle."""

    def stored_graph(self) -> StoredGraph | None:
        """The state graph in files, after a complete search, if the states are in files. Raises `TooLarge`."""
        return None

    def divided_graph(self) -> CycleFinder | None:
        """The state graph in the files of several processes, after a complete search of them."""
        return None

    @abstractmethod
    def graph(self) -> StateGraph:
        """The state graph. Requires a complete search."""

    def close(self) -> None:  # noqa: B027 - for a tier whose memory is not that of Python
        """Free the memory; the search cannot be used afterwards."""


def watches_of(numbered: Sequence[tuple[int, Property]]) -> list[Watch]:
    """The watches of properties of single states: an invariant is false, or a reachability property is true."""
    watches = [
        Watch(number, p.expr if p.kind is Kind.REACHABLE else b.not_(p.expr), b.or_(c.condition for c in p.checks))
        for number, p in numbered
    ]
    return [w for w in watches if not (w.condition is w.mistake is b.FALSE)]


def path_to(parent: Callable[[int], int], number: int) -> list[int]:
    """The path to a state along its predecessors; the predecessor of an initial state is negative."""
    path = [number]
    while (before := parent(path[-1])) >= 0:
        path.append(before)
    return path[::-1]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The counters of a search at the end of a level, without its states."""

    levels: tuple[int, ...]
    initial: int
    stuck: int
    facts: tuple[int, ...]
    news: tuple[int, ...]
    events: Mapping[int, SearchEvent]
    next: int

    @property
    def known(self) -> int:
        """Number of states."""
        return sum(self.levels)


class Recorder(Protocol):
    """Writes snapshots of a search."""

    def write(self, mark: Snapshot) -> None:
        """Write the search up to the end of a level."""

    def close(self) -> None:
        """Finish writing."""
