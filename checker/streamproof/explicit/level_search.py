"""The breadth-first search that both tiers are: when it begins, goes on, reports and ends, and what it has found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from streamproof.explicit.limits import Budget, Stop
from streamproof.explicit.predicates import Watch
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.records import dataclass
from streamproof.system.scalarise import Scalarised
from streamproof.system.verdict import Progress

if TYPE_CHECKING:
    from streamproof.explicit.state_graph import StateGraph


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """Where a property was decided during the search."""

    state: int
    instance: int | None
    """The instance whose step from `state` broke a step property."""
    mistake: bool
    """Whether evaluating the property is a mistake there."""


@dataclass(frozen=True)
class SearchTask:
    """What is searched, within which limits."""

    scalarised: Scalarised
    system: System
    """The scalar system, simplified: the one that is searched."""
    properties: Sequence[Property]
    """Of `system`; those about behaviours are decided afterwards, from `cycle` and `graph`."""
    budget: Budget = field(default_factory=Budget)
    after_level: Callable[[LevelSearch], Stop | None] = lambda search: None
    """Called at the end of every level but the last; gives a reason to end the search."""
    on_progress: Callable[[Progress], None] | None = None


class LevelSearch(ABC):
    """A search, level by level, and what it has found so far. States are numbered in the order of discovery.

    A tier says how the initial states are found (`_start`) and how a level is expanded (`_level`).
    """

    stuck: int = -1
    """The first state without a successor that is no legal end, or -1."""

    def __init__(self, task: SearchTask) -> None:
        self.task = task
        self.scalarised = task.scalarised
        self.system = task.system
        self.properties = task.properties
        self.budget = task.budget
        self.levels: list[int] = []
        """States first met at each level."""
        self.initial = 0
        """How many states are initial."""
        self.events: dict[int, SearchEvent] = {}
        """Where properties were decided, by position in `properties`."""
        self.stopped: Stop | None = None
        self.compile_seconds = 0.0
        self._reported = 0.0

    # --- the search

    def run(self) -> None:
        """Search until nothing is left or a limit is met; `stopped` says which."""
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
        """Called before a level is expanded; gives a reason not to."""
        return None

    @abstractmethod
    def _level(self) -> None:
        """Expand every state of the newest level."""

    @abstractmethod
    def _abandon(self) -> None:
        """Leave a level in the middle of which the user interrupts: what was found there counts, if that is possible."""

    def _settle(self, mistakes: Mapping[int, SearchEvent]) -> None:
        """At the end of a level: mistakes of properties that no state or step of the level decides."""
        self.events = {**mistakes, **self.events}

    def _open(self, *kinds: Kind) -> list[tuple[int, Property]]:
        """The properties of these kinds that are not decided, with their positions."""
        return [(k, p) for k, p in enumerate(self.properties) if k not in self.events and p.kind in kinds]

    def _watches(self) -> list[Watch]:
        """What decides the properties of single states that are not decided, as far as anything can."""
        watches = [watch_of(k, p) for k, p in self._open(Kind.INVARIANT, Kind.REACHABLE, Kind.TEMPORAL)]
        return [w for w in watches if not (w.condition is w.mistake is b.FALSE)]

    def _report(self) -> None:
        """Report progress, once a second."""
        elapsed = self.budget.elapsed
        if self.task.on_progress is not None and elapsed - self._reported >= 1.0:
            self._reported = elapsed
            self.task.on_progress(Progress(elapsed, len(self.levels), self.known, self.total, self.queue))

    # --- what was found

    @property
    @abstractmethod
    def known(self) -> int:
        """Distinct states so far."""

    @property
    @abstractmethod
    def expanded(self) -> int:
        """How many states' successors have all been looked at."""

    @property
    def queue(self) -> int:
        """Known states that have not been expanded."""
        return self.known - self.expanded

    @property
    def total(self) -> int:
        """Initial states and every successor, duplicates included."""
        return self.initial + sum(self.generated)

    @property
    @abstractmethod
    def generated(self) -> Sequence[int]:
        """Successors per instance, duplicates included."""

    @property
    @abstractmethod
    def distinct(self) -> Sequence[int]:
        """States met for the first time, per instance."""

    @property
    @abstractmethod
    def least(self) -> int:
        """The smallest number of successors of an expanded state."""

    @property
    @abstractmethod
    def most(self) -> int:
        """The largest."""

    @property
    @abstractmethod
    def faulty(self) -> int:
        """The state where the model makes a mistake, or -1."""

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
        """The position of the first instance whose step leads from one known state to another, if that has been noted."""
        return None

    @abstractmethod
    def ever_true(self, conditions: Sequence[Expr]) -> list[bool]:
        """For each condition, whether it is true in at least one known state."""

    @abstractmethod
    def largest(self, term: Expr) -> int:
        """The largest value of an integer term in the known states."""

    @abstractmethod
    def cycle(self) -> list[int] | None:
        """The states of a shortest cycle through the first state that lies on one; None when there is none."""

    @abstractmethod
    def graph(self) -> StateGraph:
        """Every step between the known states; after a search that was not cut short."""


def watch_of(number: int, prop: Property) -> Watch:
    """What decides a property of single states: an invariant that is false, or what should be reachable and is true."""
    wanted = prop.expr if prop.kind is Kind.REACHABLE else b.not_(prop.expr)
    return Watch(number, wanted, b.or_(check.condition for check in prop.checks))
