"""Breadth-first search of every reachable state, exact: a state is identified by itself, never by a hash alone."""

from __future__ import annotations

import gc
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import chain, islice, product
from typing import TYPE_CHECKING

from streamproof.explicit.digraph import Digraph
from streamproof.explicit.found import Found, SearchEvent
from streamproof.explicit.limits import Budget, Stop
from streamproof.explicit.successors import Batch, Expand, StepHit, Steps, expander
from streamproof.explicit.watch import LARGEST_BATCH, Hit, Inspect, Watch, ever_true, inspector, keeper, largest
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.leaves import encode
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.records import dataclass
from streamproof.system.scalarise import Scalarised
from streamproof.system.verdict import Progress

if TYPE_CHECKING:
    from streamproof.explicit.state_graph import StateGraph

BATCH_SECONDS = 0.05
"""States are expanded in batches of about this time, so that limits and interrupts are noticed soon."""
MANY_HITS = 500
"""Reports of broken properties from which on it takes longer to receive them than to generate the functions anew."""
SUCCESSOR = 20
"""To make a successor and look it up takes as long as to evaluate so many terms, which is a microsecond."""
WAITING = 0.6
"""Share of the states that wait to be expanded: more is seen, after some hundred states, of large state spaces only."""


@dataclass(frozen=True, slots=True)
class Handover:
    """From which size on, or after how much work, a search is better done by another tier: decided by counts alone.

    `work`: terms evaluated, of which a state takes `terms`, and a successor `SUCCESSOR`. `growing`: states after which it is
    better already, where most of them are waiting, as in the beginning of large searches.
    """

    states: int
    work: int
    growing: int
    terms: int

    def due(self, states: int, expanded: int, generated: int) -> bool:
        """Whether a search has come so far. It does not matter how often this is asked: from there on it is always due."""
        return states > self.states or expanded * self.terms + generated * SUCCESSOR > self.work

    def due_after_level(self, states: int, level: int) -> bool:
        """Whether it is large, to judge by a level of so many states that waits."""
        return states > self.growing and level > WAITING * states


@dataclass(slots=True)
class Search:
    """The search and everything it has found so far. States are numbered in the order of discovery."""

    scalarised: Scalarised
    system: System
    """The scalar system, simplified: the one that is searched."""
    properties: Sequence[Property]
    """Of `system`; those of kind deadlock and termination are decided from `stuck` and `edges`."""
    budget: Budget
    on_progress: Callable[[Progress], None] | None
    early: Callable[[Found], Stop | None]
    """Called at the end of every level but the last; gives a reason to end the search."""
    handover: Handover | None = None
    """When to leave the search to a faster tier; None: never."""
    seen: dict[State, int] = field(default_factory=dict)
    parents: array[int] = field(default_factory=lambda: array("i"))
    edges: array[int] = field(default_factory=lambda: array("i"))
    levels: list[int] = field(default_factory=list)
    generated: list[int] = field(default_factory=list)
    """Successors per instance."""
    distinct: list[int] = field(default_factory=list)
    initial: int = 0
    expanded: int = 0
    least: int = 1 << 60
    most: int = 0
    stuck: int = -1
    faulty: int = -1
    events: dict[int, SearchEvent] = field(default_factory=dict)
    mistaken: dict[int, SearchEvent] = field(default_factory=dict)
    """First mistakes of properties in the level at hand; they count when nothing there decides the property."""
    stopped: Stop | None = None
    compile_seconds: float = 0.0
    _expand: Expand | None = None
    _inspect: Inspect | None = None
    _inspected: int = 0
    _noted: Steps | None = None
    """The steps so far, where temporal properties need them."""
    _reported_hits: int = 0
    """Hits since functions were generated."""
    _listed: tuple[State, ...] = ()
    _reported: float = 0.0

    @property
    def total(self) -> int:
        """Initial states and every successor, duplicates included."""
        return self.initial + sum(self.generated)

    @property
    def known(self) -> int:
        """Distinct states so far."""
        return len(self.seen)

    def state(self, number: int) -> State:
        """A scalar state by its number."""
        if len(self._listed) != len(self.seen):
            self._listed = tuple(self.seen)
        return self._listed[number]

    def states(self) -> Iterator[State]:
        """The scalar states in the order of discovery."""
        return iter(self.seen)

    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""
        return self.parents[number]

    def instance(self, before: int, after: int) -> int | None:
        """The position of the first instance whose step leads from one known state to another, if that has been noted."""
        if self._noted is None or before >= len(self._noted[2]):
            return None
        targets, instances, degrees = self._noted
        first = sum(degrees[:before])
        steps = range(first, first + degrees[before])
        return next((instances[step] for step in steps if targets[step] == after), None)

    def ever_true(self, conditions: Sequence[Expr]) -> list[bool]:
        """For each condition, whether it is true in at least one known state."""
        return ever_true(self.system, conditions, self.seen)

    def largest(self, term: Expr) -> int:
        """The largest value of an integer term in the known states."""
        return largest(self.system, term, self.seen)

    def cycle(self) -> list[int] | None:
        """The states of a shortest cycle through the first state that lies on one; None when there is none."""
        return Digraph.parse(self.edges, len(self.seen)).cycle()

    def steps(self) -> Steps:
        """Every step between the known states; after a search that was not cut short.

        Where they have not been noted on the way, for a certificate of termination, every state is expanded once more.
        """
        if self._noted is not None and len(self._noted[2]) == len(self.seen):
            return self._noted
        expand = expander(self.system, (), edges=False, graph=True)
        steps = array("i"), array("i"), array("i")
        remaining, number = iter(self.seen), 0
        while batch := list(islice(remaining, LARGEST_BATCH)):
            expand(batch, number, self.seen, [], array("i"), array("i"), [], len(self.seen), steps)
            number += len(batch)
        return steps

    def graph(self) -> StateGraph:
        """Every step between the known states; asked only after a search that was not cut short."""
        from streamproof.explicit.state_graph import state_graph

        return state_graph(self)

    def run(self) -> None:
        """Search until nothing is left or a limit is met; `stopped` says which."""
        self.generated = [0] * len(self.system.instances)
        self.distinct = [0] * len(self.system.instances)
        self._compile_steps()
        self._compile_watches()
        self._noted = (array("i"), array("i"), array("i")) if self._wants_graph else None
        with _no_collection():
            try:
                self._levels(self._start())
            except KeyboardInterrupt:
                self._restore()
                self._settle()
                self.stopped = Stop.INTERRUPTED

    def _start(self) -> list[State]:
        """The initial states, in the interpreter's order."""
        level: list[State] = []
        for kept in map(self._fresh, starts(self.scalarised, self.system)):
            self.seen.update(zip(kept, range(len(level), len(level) + len(kept)), strict=True))
            level += kept
            self.stopped = self.budget.spent() or (Stop.STATES if len(level) > self.budget.max_states else None)
            if self.stopped:
                break
        self.initial = len(level)
        self.parents.extend([-1] * len(level))
        self.levels.append(len(level))
        self._look(level)
        self._settle()
        return level

    def _fresh(self, states: list[State]) -> list[State]:
        """Which of these initial states are searched from."""
        return states

    def _levels(self, level: list[State]) -> None:
        while level and not self.stopped:
            at_end = self.budget.max_depth is not None and len(self.levels) >= self.budget.max_depth
            large = self.handover is not None and self.handover.due_after_level(self.known, len(level))
            self.stopped = self.early(self) or (Stop.DEPTH if at_end else Stop.HANDOVER if large else None)
            if not self.stopped:
                level = self._level(level)

    def _level(self, level: list[State]) -> list[State]:
        """Expand all of `level`; gives the states met for the first time."""
        after: list[State] = []
        self.levels.append(0)
        done, size = 0, 64
        while done < len(level) and not self.stopped:
            begun = time.perf_counter()
            batch = self._batch(level[done : done + size], after)
            done += batch.expanded
            self._look(after)
            self._stop(batch)
            seconds = time.perf_counter() - begun
            size = self._next_size(size, seconds)
            self._report(len(level) - done + len(after))
        if not after:
            self.levels.pop()
        self._settle()
        return after

    def _next_size(self, size: int, seconds: float) -> int:
        """How many states to expand next, after so many that took so long."""
        return max(1, min(LARGEST_BATCH, 2 * size, int(size * BATCH_SECONDS / max(seconds, 1e-6))))

    def _batch(self, states: list[State], after: list[State]) -> Batch:
        assert self._expand is not None
        hits: list[StepHit] = []
        batch = Batch(
            *self._expand(
                states,
                self.expanded,
                self.seen,
                after,
                self.parents,
                self.edges,
                hits,
                self.budget.max_states,
                self._noted,
            )
        )
        self.expanded += batch.expanded
        self.levels[-1] = len(after)
        self.generated = [have + more for have, more in zip(self.generated, batch.generated, strict=True)]
        self.distinct = [have + more for have, more in zip(self.distinct, batch.distinct, strict=True)]
        self.least, self.most = min(self.least, batch.least), max(self.most, batch.most)
        if self.stuck < 0:
            self.stuck = batch.stuck
        self.faulty = batch.faulty
        for number, state, instance, mistake in hits:
            self._decide(number, SearchEvent(state, instance, mistake))
        if self._outdated(hits):
            self._compile_steps()
        return batch

    def _look(self, level: list[State]) -> None:
        """Evaluate the properties of single states in those states of the newest level that have not been looked at."""
        first = len(self.seen) - len(level)
        while self._inspected < len(self.seen):
            at = self._inspected - first
            states = level[at : at + LARGEST_BATCH]
            hits: list[Hit] = []
            if self._inspect is not None:
                self._inspect(states, self._inspected, hits)
            for number, state, mistake in hits:
                self._decide(number, SearchEvent(state, None, mistake))
            self._inspected += len(states)
            if self._outdated(hits):
                self._compile_watches()

    def _outdated(self, hits: Sequence[StepHit] | Sequence[Hit]) -> bool:
        """Whether it pays to generate functions without the properties that are decided by now."""
        self._reported_hits += len(hits)
        return self._reported_hits > MANY_HITS

    def _decide(self, number: int, event: SearchEvent) -> None:
        (self.mistaken if event.mistake else self.events).setdefault(number, event)

    def _settle(self) -> None:
        """At the end of a level: mistakes of properties that no state or step of the level has decided."""
        self.events = self.mistaken | self.events
        self.mistaken = {}

    def _stop(self, batch: Batch) -> None:
        # First, so that it does not depend on the size of batches, and so on the clock, which tier goes on.
        if self.handover is not None and self.handover.due(self.known, self.expanded, self.total):
            self.stopped = Stop.HANDOVER
        elif batch.faulty >= 0:
            self.stopped = Stop.MISTAKE
        elif len(self.seen) > self.budget.max_states:
            self.stopped = Stop.STATES
        else:
            self.stopped = self.budget.spent()

    def _open(self, *kinds: Kind) -> list[tuple[int, Property]]:
        return [(k, p) for k, p in enumerate(self.properties) if k not in self.events and p.kind in kinds]

    def _compile_steps(self) -> None:
        """Generate the successor function without the step properties that have been decided."""
        begun = time.perf_counter()
        edges = any(p.kind is Kind.TERMINATION for p in self.properties)
        self._expand = expander(self.system, self._open(Kind.STEP), edges=edges, graph=self._wants_graph)
        self._reported_hits = 0
        self.compile_seconds += time.perf_counter() - begun

    @property
    def _wants_graph(self) -> bool:
        """Whether the steps between the states will be asked for, by temporal properties."""
        return any(p.kind is Kind.TEMPORAL for p in self.properties)

    def _compile_watches(self) -> None:
        """Generate the evaluation of the properties of single states without those that have been decided."""
        begun = time.perf_counter()
        watches = [watch_of(k, p) for k, p in self._open(Kind.INVARIANT, Kind.REACHABLE, Kind.TEMPORAL)]
        watches = [w for w in watches if not (w.condition is w.mistake is b.FALSE)]
        self._inspect = inspector(self.system, watches) if watches else None
        self._reported_hits = 0
        self.compile_seconds += time.perf_counter() - begun

    def _report(self, queue: int) -> None:
        elapsed = self.budget.elapsed
        if self.on_progress is not None and elapsed - self._reported >= 1.0:
            self._reported = elapsed
            self.on_progress(Progress(elapsed, len(self.levels), len(self.seen), self.total, queue))

    def _restore(self) -> None:
        """After an exception in the middle of a batch: forget the states that it had begun to add."""
        known = sum(self.levels)
        while len(self.seen) > known:
            self.seen.popitem()
        del self.parents[known:]
        while self.levels and not self.levels[-1]:
            self.levels.pop()


def starts(scalarised: Scalarised, system: System) -> Iterator[list[State]]:
    """The initial states of `system`, the simplified form of the scalar one, in the interpreter's order, some at a time."""
    original = scalarised.original
    rows = [tuple(dict.fromkeys(encode(v.sort, value) for value in v.initial)) for v in original.variables]
    keep = keeper(system, system.initially)
    candidates = (tuple(chain.from_iterable(parts)) for parts in product(*rows))
    while batch := list(islice(candidates, LARGEST_BATCH)):
        yield keep(batch)


def watch_of(number: int, prop: Property) -> Watch:
    """What decides a property of single states: an invariant that is false, or what should be reachable and is true."""
    wanted = prop.expr if prop.kind is Kind.REACHABLE else b.not_(prop.expr)
    return Watch(number, wanted, b.or_(check.condition for check in prop.checks))


@contextmanager
def _no_collection() -> Iterator[None]:
    """States are tuples of scalars and never form reference cycles; walking millions of them finds nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
