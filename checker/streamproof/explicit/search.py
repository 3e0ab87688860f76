"""The Python tier: exact breadth-first search. States are compared in full, never by hash alone."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, product
from typing import TYPE_CHECKING

from streamproof.base.options import uncollected
from streamproof.base.records import dataclass
from streamproof.explicit.level_search import LevelSearch, SearchEvent, SearchTask, Stop, path_to
from streamproof.explicit.successors import Batch, Expand, StepHit, Steps, expander
from streamproof.explicit.writer import (
    LARGEST_BATCH,
    Hit,
    Inspect,
    batches,
    counter,
    evaluator,
    ever_true,
    inspector,
    keeper,
    largest,
)
from streamproof.interrupts import abruptly
from streamproof.system.expr import Expr
from streamproof.system.leaves import encode
from streamproof.system.model import Kind, State, System
from streamproof.transform.constraint import twofold
from streamproof.transform.scalarise import Scalarised

if TYPE_CHECKING:
    from streamproof.explicit.state_graph import StateGraph, Truths

BATCH_SECONDS = 0.05
"""Target time of a batch of states in seconds; limits and interrupts are checked between batches."""
SUCCESSOR = 20
"""Cost of a successor (construction and lookup), in evaluated terms: about 1 microsecond."""
WAITING = 0.6
"""Share of unexpanded states that, after some hundred states, only large state spaces exceed."""


@dataclass(frozen=True, slots=True)
class Handover:
    """Size and work at which another tier takes over the search. Depends on counts only, never on a clock.

    `states`: number of states. `work`: number of evaluated terms; a state costs `terms`, a successor `SUCCESSOR`. `growing`:
    number of states if most of them are unexpanded, as at the beginning of large searches.
    """

    states: int
    work: int
    growing: int
    terms: int

    def due(self, states: int, expanded: int, generated: int) -> bool:
        """Whether the search has reached the size or the work. Monotonic: once true, it stays true."""
        return states > self.states or expanded * self.terms + generated * SUCCESSOR > self.work

    def due_after_level(self, states: int, level: int) -> bool:
        """Whether the number of states in the unexpanded `level` indicates a large state space."""
        return states > self.growing and level > WAITING * states


class Search(LevelSearch):
    """The search by generated Python."""

    expanded: int = 0
    generated: Sequence[int] = ()
    distinct: Sequence[int] = ()
    least: int = 1 << 60
    most: int = 0
    faulty: int = -1

    def __init__(self, task: SearchTask, handover: Handover | None = None) -> None:
        """`handover`: when to leave the search to a faster tier; None: never."""
        super().__init__(task)
        self.handover = handover
        self.seen: dict[State, int] = {}
        self.parents = array("i")
        self.edges = array("i")
        self.generated = [0] * len(self.system.instances)
        self.distinct = [0] * len(self.system.instances)
        self._newest: list[State] = []
        """The states of the newest level."""
        self._mistakes: dict[int, SearchEvent] = {}
        """First evaluation errors of properties in the current level; used if nothing in the level decides the property."""
        self._expand: Expand | None = None
        self._inspect: Inspect | None = None
        self._inspected = 0
        self._noted: Steps | None = None
        """The steps found, if temporal properties need them."""
        self._reported_hits = 0
        """Number of hits since functions were generated."""
        self._listed: tuple[State, ...] = ()

    @property
    def known(self) -> int:
        """Number of distinct states."""
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
        """The position of the first instance that leads from one known state to another, if it was recorded."""
        if self._noted is None or before >= len(self._noted[2]):
            return None
        targets, instances, degrees = self._noted
        first = sum(degrees[:before])
        steps = range(first, first + degrees[before])
        return next((instances[step] for step in steps if targets[step] == after), None)

    def ever_true(self, conditions: Sequence[Expr]) -> list[bool]:
        """For each condition, whether it is true in at least one known state."""
        return ever_true(self.system, conditions, self.seen)

    def count(self, condition: Expr) -> tuple[int, ...]:
        """The number of known states of each level in which a condition is true."""
        counted, states = counter(self.system, [condition]), iter(self.seen)
        return tuple(counted(list(islice(states, level)))[0] for level in self.levels)

    def largest(self, term: Expr) -> int:
        """The largest value of an integer term in the known states."""
        return largest(self.system, term, self.seen)

    def cycle(self) -> tuple[list[int], bool] | None:
        """The states of a cycle, with few steps to and around it, and whether none has fewer; None if there is no cycle."""
        from streamproof.explicit.state_graph import Digraph

        return Digraph.parse(self.edges, len(self.seen)).lasso(self.levels, self.budget.tuning.cycle_work)

    def steps(self) -> Steps:
        """All steps between known states. Requires a complete search.

        If the search did not record them (a certificate of termination needs them), every state is expanded again.
        """
        if self._noted is not None and len(self._noted[2]) == len(self.seen):
            return self._noted
        expand = expander(self.system, (), edges=False, graph=True, tuning=self.budget.tuning)
        steps = array("i"), array("i"), array("i")
        number = 0
        for batch in batches(self.seen):
            expand(batch, number, self.seen, [], array("i"), array("i"), [], len(self.seen), steps)
            number += len(batch)
        return steps

    def graph(self) -> StateGraph:
        """The state graph. Requires a complete search."""
        import numpy as np

        from streamproof.explicit.state_graph import StateGraph, sources

        targets, instances, degrees = self.steps()
        offsets = np.zeros(self.known + 1, dtype=np.int64)
        np.cumsum(np.frombuffer(degrees, dtype=np.int32), out=offsets[1:])

        def evaluate_steps(conditions: Sequence[Expr]) -> Truths:
            both, later = twofold(self.system)
            states = tuple(self.seen)
            pairs = (states[a] + states[b] for a, b in zip(sources(offsets).tolist(), targets, strict=True))
            return _evaluate(both, [later(condition) for condition in conditions], pairs, len(targets))

        return StateGraph(
            initial=self.initial,
            offsets=offsets,
            targets=np.frombuffer(targets, dtype=np.int32),
            instances=np.frombuffer(instances, dtype=np.int32),
            path=lambda number: path_to(self.parent, number),
            evaluate=lambda conditions: _evaluate(self.system, conditions, self.seen, self.known),
            evaluate_steps=evaluate_steps,
            tuning=self.budget.tuning,
        )

    def run(self) -> None:
        """Search until all states are expanded or a limit is reached; `stopped` is that limit."""
        self._compile_steps()
        self._compile_watches()
        self._noted = (array("i"), array("i"), array("i")) if self._wants_graph else None
        with uncollected():  # states are tuples of scalars
            super().run()

    def _start(self) -> None:
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
        self._newest = level
        self._evaluate_level(level)
        self._end_level()

    def _fresh(self, states: list[State]) -> list[State]:
        """Those of these initial states that are new."""
        return states

    def _before_level(self) -> Stop | None:
        large = self.handover is not None and self.handover.due_after_level(self.known, self.queue)
        return Stop.HANDOVER if large else None

    def _level(self) -> None:
        level, after = self._newest, list[State]()
        self.levels.append(0)
        done, size = 0, 64
        while done < len(level) and not self.stopped:
            begun = time.perf_counter()
            batch = self._batch(level[done : done + size], after)
            done += batch.expanded
            self._evaluate_level(after)
            self._stop(batch)
            seconds = time.perf_counter() - begun
            size = self._next_size(size, seconds)
            self._report()
        if not after:
            self.levels.pop()
        self._newest = after
        self._end_level()

    def _next_size(self, size: int, seconds: float) -> int:
        """Size of the next batch, from the size and the time of the last one."""
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

    def _evaluate_level(self, level: list[State]) -> None:
        """Evaluate the properties of single states in the unchecked states of the newest level."""
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
        """Whether regenerating the functions without decided properties is cheaper than their further hits."""
        self._reported_hits += len(hits)
        return self._reported_hits > self.budget.tuning.many_hits

    def _decide(self, number: int, event: SearchEvent) -> None:
        (self._mistakes if event.mistake else self.events).setdefault(number, event)

    def _end_level(self) -> None:
        self._settle(self._mistakes)
        self._mistakes = {}

    def _stop(self, batch: Batch) -> None:
        # First: the choice of the tier must not depend on the size of batches, and so on the clock.
        if self.handover is not None and self.handover.due(self.known, self.expanded, self.total):
            self.stopped = Stop.HANDOVER
        elif batch.faulty >= 0:
            self.stopped = Stop.MISTAKE
        elif len(self.seen) > self.budget.max_states:
            self.stopped = Stop.STATES
        else:
            self.stopped = self.budget.spent()

    def _compile_steps(self) -> None:
        """Generate the successor function without the step properties that have been decided."""
        begun = time.perf_counter()
        edges = any(p.kind is Kind.TERMINATION for p in self.properties)
        with abruptly():
            steps, tuning = self._open(Kind.STEP), self.budget.tuning
            self._expand = expander(self.system, steps, edges=edges, graph=self._wants_graph, tuning=tuning)
        self._reported_hits = 0
        self.compile_seconds += time.perf_counter() - begun

    @property
    def _wants_graph(self) -> bool:
        """Whether temporal properties will need the state graph."""
        return any(p.kind is Kind.TEMPORAL for p in self.properties)

    def _compile_watches(self) -> None:
        """Generate the evaluation of the properties of single states without those that have been decided."""
        begun = time.perf_counter()
        watches = self._watches()
        with abruptly():
            self._inspect = inspector(self.system, watches) if watches else None
        self._reported_hits = 0
        self.compile_seconds += time.perf_counter() - begun

    def _abandon(self) -> None:
        """After an exception in a batch: remove the states that the batch had added."""
        known = sum(self.levels)
        while len(self.seen) > known:
            self.seen.popitem()
        del self.parents[known:]
        while self.levels and not self.levels[-1]:
            self.levels.pop()
        self._end_level()


def _evaluate(system: System, conditions: Sequence[Expr], states: Iterable[State], count: int) -> Truths:
    """Values of Boolean terms in `count` scalar states of a system."""
    import numpy as np

    found = b"".join(map(evaluator(system, conditions), batches(states)))
    return np.frombuffer(found, dtype=np.bool_).reshape(count, len(conditions)).T


def starts(scalarised: Scalarised, system: System) -> Iterator[list[State]]:
    """Batches of the initial states of `system`, the simplified scalar system, in the interpreter's order."""
    original = scalarised.original
    rows = [tuple(dict.fromkeys(encode(v.sort, value) for value in v.initial)) for v in original.variables]
    keep = keeper(system, system.initially)
    yield from map(keep, batches(tuple(chain.from_iterable(parts)) for parts in product(*rows)))
