"""The compiled tier: the same states in the same order as the Python tier, many times faster.

The search begins with one worker. Large searches continue with several workers from the end of a level (`workers`); the
result does not depend on their number.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from streamproof.base.errors import SystemFailure
from streamproof.explicit.compiled import search_kernels
from streamproof.explicit.compiled.memory import Prefault, WordBlock, Worker, fixed_code
from streamproof.explicit.compiled.packed_states import Layout, layout
from streamproof.explicit.compiled.steps import (
    NONE,
    StepCounters,
    count_code,
    expand_code,
    module,
    watch_code,
)
from streamproof.explicit.level_search import LevelSearch, Recorder, SearchEvent, SearchTask, Snapshot, Stop
from streamproof.explicit.native_code import Module, build
from streamproof.explicit.search import starts
from streamproof.interrupts import abruptly
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Kind, State
from streamproof.system.sorts import RangeSort

if TYPE_CHECKING:
    from streamproof.explicit.compiled.workers import Workers
    from streamproof.explicit.state_graph import StateGraph

MOST_STATES = 0xFFFF_FFF0
"""Limit on the number of states: they are numbered in 32 bits."""
MOST_BATCHES = 1 << 20
"""Largest number of batches per call of compiled code."""
BLOCK = 1 << 18
"""Number of states per call of compiled code in a pass over all states."""
AT_ONCE = 32
"""Number of thresholds tested in one pass over the states."""
SLICE_SECONDS = 0.1
"""Target time between two checks of limits and interrupts, in seconds."""


class CompiledSearch(LevelSearch):
    """The search by compiled code."""

    def __init__(self, task: SearchTask, threads: int = 1, together: int = 0) -> None:
        """Uses `threads` workers from `together` known states on; 0: when they are faster."""
        super().__init__(task)
        self.threads = threads
        self.checkpoints: Recorder | None = None
        """The recorder of the search at the ends of levels, if any."""
        self.passed: list[tuple[int, int]] = []
        """At the end of each level: number of expanded states, and number of their steps."""
        begun = time.perf_counter()
        self.layout: Layout = layout(self.system, self.budget.tuning.word_bits)
        self._steps = [(k, p) for k, p in enumerate(self.properties) if p.kind is Kind.STEP]
        self._facts = StepCounters(len(self.system.instances), len(self._steps))
        self.fixed = fixed_code(self.layout.words)
        self._watched: list[int] = []
        watching = self._watch_code()
        # A second pass also needs the self-loops: the same code serves both.
        self._all_steps = any(p.kind in (Kind.TERMINATION, Kind.TEMPORAL) for p in self.properties)
        # Several workers split the table; the second pass needs it whole.
        tuning = self.budget.tuning
        late = self.layout.words > 1 or self._all_steps
        self.together = together or (tuning.wide_together if late else tuning.together)
        named = ["expand", *(["watch"] if watching else []), *(["represent"] if task.symmetry is not None else [])]
        self._own = build(module(self._expand_code(), watching), named, optimise=False)
        if watching:
            self._watch = self._own.function("watch", 3)
        self.compile_seconds = time.perf_counter() - begun
        expand = self._own.addresses["expand"]
        self.worker = Worker(self.layout.words, self.budget, self._facts, expand)
        self.worker.table.set(MOST_STATES=self._most_states)
        self._team: Workers | None = None
        self._ahead: Prefault | None = None
        self._marked: Snapshot | None = None
        self._written = 0.0
        self._pace = 16

    def _expand_code(self) -> str:
        """The code of the successor function."""
        code = expand_code(self.system, self.layout, self._steps, idle_steps=self._all_steps)
        if self.task.symmetry is None:
            return code
        from streamproof.explicit.compiled.representatives import represented

        return represented(code, self.layout, self.task.symmetry)

    def packed(self, states: Sequence[State]) -> list[int]:
        """The words of initial states; with symmetry, of the representatives among them: all images of an initial state are
        initial."""
        words = self.layout.packer(states)
        if self.task.symmetry is None or not states:
            return words
        block, width = WordBlock(words), self.layout.words
        self._own.function("represent", 3)(block.address, len(states), 0)
        pairs = ((words[at : at + width], block.slice(at, at + width)) for at in range(0, len(words), width))
        return [word for before, after in pairs if before == after for word in before]

    # --- results ---

    @property
    def known(self) -> int:
        """Number of distinct states."""
        return self.worker.table.count

    @property
    def expanded(self) -> int:
        """Number of states whose successors have all been computed."""
        return self.worker.table.next - (self.faulty >= 0)

    @property
    def generated(self) -> list[int]:
        """Successors per instance."""
        return self._counters()[self._facts.generated(0) : self._facts.hit(0)]

    @property
    def distinct(self) -> list[int]:
        """New states per instance."""
        instances = len(self.system.instances)
        return [sum(counts) for counts in zip(*(w.news.slice(0, instances) for w in self._workers), strict=True)]

    @property
    def least(self) -> int:
        """Smallest number of successors of an expanded state."""
        return self._counters()[StepCounters.LEAST]

    @property
    def most(self) -> int:
        """Largest number of successors of an expanded state."""
        return self._counters()[StepCounters.MOST]

    @property
    def faulty(self) -> int:
        """The state with an evaluation error of the model, or -1."""
        return self._first(StepCounters.FAULTY)

    @property
    def _workers(self) -> list[Worker]:
        return [self.worker, *(m.worker for m in self._team.members)] if self._team else [self.worker]

    @property
    def _most_states(self) -> int:
        return min(self.budget.max_states, MOST_STATES)

    def _counters(self) -> list[int]:
        """The merged counters of all workers."""
        return self._facts.merged([w.facts.slice(0, self._facts.size) for w in self._workers])

    def _first(self, fact: int) -> int:
        """The number of the first state recorded by a counter, or -1."""
        least = min(w.facts[fact] for w in self._workers)
        return -1 if least == NONE else least

    def state(self, number: int) -> State:
        """A scalar state by its number."""
        return self.layout.unpack(self.worker.table.words(number))

    def states(self) -> Iterator[State]:
        """The scalar states, level by level."""
        return map(self.state, range(self.known))

    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""
        return self.worker.table.parent(number)

    def ever_true(self, conditions: Sequence[Expr]) -> list[bool]:
        """For each condition, whether it is true in at least one known state."""
        found = [condition is b.TRUE for condition in conditions]
        open_ = [k for k, c in enumerate(conditions) if c is not b.TRUE and c is not b.FALSE]
        if not open_:
            return found
        run = self._counter([conditions[k] for k in open_])
        counts = WordBlock([0] * len(open_))
        for address, _, count in self._blocks(0):
            run(address, count, counts.address)
        for at, k in enumerate(open_):
            found[k] = counts[at] > 0
        return found

    def _counter(self, conditions: Sequence[Expr]) -> Callable[..., int]:
        return build(module(count_code(self.layout, conditions)), ["count"], optimise=False).function("count", 3)

    def count(self, condition: Expr) -> tuple[int, ...]:
        """The number of known states of each level in which a condition is true."""
        run = self._counter([condition])
        flags, ends = WordBlock([0]), list(accumulate(self.levels))
        found = [0] * len(ends)
        for address, first, count in self._blocks(0):
            at = 0
            while at < count:
                level = bisect_right(ends, first + at)
                part = min(count, ends[level] - first) - at
                flags.fill([0])
                run(address + 8 * self.layout.words * at, part, flags.address)
                found[level] += flags[0]
                at += part
        return tuple(found)

    def largest(self, term: Expr) -> int:
        """The largest value of an integer term in the known states, by bisection with thresholds."""
        assert isinstance(term.sort, RangeSort)
        least, most = term.sort.lo, term.sort.hi
        while least < most:
            width = max(1, -(-(most - least) // AT_ONCE))
            thresholds = [*range(least + width, most, width), most]
            met = self.ever_true([b.less_eq(b.num(threshold), term) for threshold in thresholds])
            reached = [threshold for threshold, yes in zip(thresholds, met, strict=True) if yes]
            most = min([t for t in thresholds if t not in reached], default=most + 1) - 1
            least = max(reached, default=least)
        return least

    def cycle(self) -> tuple[list[int], bool] | None:
        """The states of a cycle, with few steps to and around it if states are in memory, and whether none has fewer; None if
        there is no cycle."""
        stored = self.stored_graph()
        if stored is None:
            return self.graph().digraph.lasso(self.levels, self.budget.tuning.cycle_work)
        from streamproof.explicit.set_search import find_cycle

        found = find_cycle(stored, len(self.system.instances))
        return None if found is None else (found, False)

    def graph(self) -> StateGraph:
        """The state graph."""
        from streamproof.explicit.compiled.edges import state_graph

        return state_graph(self)

    def every_step(self) -> tuple[Module, StepCounters]:
        """The successor function that records all steps, and its counters."""
        if self._all_steps:
            return self._own, self._facts
        code = module(expand_code(self.system, self.layout, (), idle_steps=True))
        return build(code, ["expand"], optimise=False), StepCounters(len(self.system.instances), 0)

    # --- the search ---

    def run(self) -> None:
        """Search until all states are expanded or a limit is reached; `stopped` is that limit."""
        self._written = float("-inf") if not self.levels else time.monotonic()
        try:
            super().run()
            if self.stopped is not Stop.MISTAKE:
                self._checkpoint(0.0)
        finally:
            self._end_ahead()
            self._end_team()
            if self.checkpoints is not None:
                self.checkpoints.close()

    def _before_level(self) -> None:
        self._checkpoint(self.budget.options.checkpoint_seconds)

    def _abandon(self) -> None:
        """Leave an interrupted level; its results are kept."""
        self.levels[-1:] = [self.known - sum(self.levels[:-1])]
        if len(self.levels) == 1:
            self.initial = self.known
        self._evaluate_level()

    def _blocks(self, first: int) -> Iterator[tuple[int, int, int]]:
        """The states from number `first` on, as blocks in memory: address, number of the first state, number of states."""
        for at in range(first, self.known, BLOCK):
            yield self.worker.table.address(at), at, min(BLOCK, self.known - at)

    def _checkpoint(self, seconds: float) -> None:
        """Write a checkpoint of the end of the last level, unless the last one is at most `seconds` old."""
        if self.checkpoints is not None and time.monotonic() - self._written >= seconds and self._marked is not None:
            self.checkpoints.write(self._marked)
            self._written = time.monotonic()

    @property
    def facts_size(self) -> int:
        """Number of words of the counters in a `Snapshot`."""
        return self._facts.size

    def restore(self, mark: Snapshot) -> None:
        """Return to the end of a level; the table has the states up to there."""
        self.levels = list(mark.levels)
        self.initial, self.stuck, self.events = mark.initial, mark.stuck, dict(mark.events)
        self.worker.facts.fill(mark.facts)
        self.worker.news.fill(mark.news)
        self._marked = mark
        self._compile_watches()

    def _mark(self) -> Snapshot:
        return Snapshot(
            tuple(self.levels),
            self.initial,
            self.stuck,
            tuple(self._counters()),
            tuple(self.distinct),
            dict(self.events),
            self.worker.table.next,
        )

    def _start(self) -> None:
        add, table = self.fixed.function("add", 3), self.worker.table
        for states in starts(self.scalarised, self.system):
            if not table.make_room(len(states), self.fixed):
                self.stopped = Stop.MEMORY
                break
            packed = self.packed(states)
            words = WordBlock(packed)
            add(self.worker.control, words.address, len(packed) // self.layout.words)
            limit = Stop.STATES if self.known > self.budget.max_states else None
            self.stopped = self.stopped or self.budget.spent() or limit
            if self.stopped:
                break
        self.initial = self.known
        self.levels.append(self.known)
        self._end_level()

    def _end_level(self) -> None:
        """Record the end of the newest level, and evaluate its states."""
        self._evaluate_level()
        if not self.stopped:
            self._marked = self._mark()

    def _level(self) -> None:
        """Expand every state of the newest level."""
        known = self.known
        self.worker.table.set(LAST=known)
        self.levels.append(0)
        if self._team is None and self.threads > 1:
            if known >= self.together:
                self._gather_team()
            elif self._ahead is None and known >= self.budget.tuning.prefault_states:
                self._ahead = Prefault(self.worker.table.coming, self.budget)
        if self._team is not None:
            self._together(self._team)
        elif not self.stopped:
            self._alone()
        if self.stuck < 0:
            self.stuck = self._first(StepCounters.STUCK)
        self._note_steps()
        self.passed.append((self.worker.table.next, sum(self.generated)))
        self.levels[-1] = self.known - known
        if self.levels[-1]:
            self._end_level()
        else:
            self.levels.pop()

    def _alone(self) -> None:
        search, table = self.fixed.function("search", 2), self.worker.table
        known = table.count
        while table.next < table.last and not self.stopped:
            begun = time.perf_counter()
            outcome = search(self.worker.control, self._pace)
            self._after(begun, known)
            if outcome == search_kernels.FULL and not table.make_room(self.worker.batch_room, self.fixed):
                self.stopped = Stop.MEMORY
            elif outcome == search_kernels.STOPPED:
                self.stopped = Stop.MISTAKE if self.faulty >= 0 else Stop.STATES

    def _together(self, team: Workers) -> None:
        known, table = self.known, self.worker.table
        while table.next < table.last and not self.stopped:
            begun = time.perf_counter()
            outcome = search_kernels.FULL
            try:
                outcome = team.turn(self._most_states)
            finally:
                if outcome == search_kernels.FULL:
                    self._end_team()
            self._after(begun, known)
            if outcome == search_kernels.FULL:
                self.stopped = Stop.MEMORY
            elif outcome == search_kernels.STOPPED:
                self.stopped = Stop.MISTAKE if self.faulty >= 0 else Stop.STATES

    def _end_ahead(self) -> None:
        """End the helper thread: workers now fault in their memory themselves."""
        if self._ahead is not None:
            self._ahead.stop()
            self._ahead = None

    def _gather_team(self) -> None:
        from streamproof.explicit.compiled.workers import Workers

        self._end_ahead()
        expand = self._own.addresses["expand"]
        try:
            self._team = Workers(self.threads, self.worker.table, self.layout.words, self.budget, self._facts, expand)
        except SystemFailure:
            # No address space for the buffers of several workers (ulimit -v): continue with one.
            self.threads = 1
            return
        if not self._team.deal():
            self._end_team()
            self.stopped = Stop.MEMORY

    def _end_team(self) -> None:
        """Merge the counters of all workers into those of the first worker."""
        if self._team is not None:
            met, news = self._counters(), self.distinct
            team, self._team = self._team, None
            team.close()
            self.worker.facts.fill(met)
            self.worker.news.fill(news)

    def _after(self, begun: float, known: int) -> None:
        """After a piece of work: check limits, choose the size of the next piece, report progress."""
        seconds = time.perf_counter() - begun
        wanted = int(self._pace * SLICE_SECONDS / max(seconds, 1e-6))
        self._pace = max(1, min(2 * self._pace, wanted, MOST_BATCHES))
        self.levels[-1] = self.known - known
        self.stopped = self.budget.spent()
        self._report()

    def _evaluate_level(self) -> None:
        """Evaluate the properties of single states in the states of the newest level.

        An evaluation error of a property is used if no state of the level decides it.
        """
        before = len(self.events)
        mistakes: dict[int, SearchEvent] = {}
        blocks = self._blocks(sum(self.levels[:-1])) if self._watched else iter(())
        watched = (
            map(self._watch_block, blocks) if self._team is None else self._team.each(self._watch_block, [*blocks])
        )
        for first, notes in watched:
            for at, prop in enumerate(self._watched):
                for place, events in ((2 * at, self.events), (2 * at + 1, mistakes)):
                    if notes[place] != NONE:
                        events.setdefault(prop, SearchEvent(first + notes[place], None, events is mistakes))
        self._settle(mistakes)
        if len(self.events) > before:
            self._compile_watches()

    def _watch_block(self, block: tuple[int, int, int]) -> tuple[int, WordBlock]:
        """The first hits in a block of states, and the number of the first state of the block."""
        address, first, count = block
        notes = WordBlock([NONE] * (2 * len(self._watched)))
        self._watch(address, count, notes.address)
        return first, notes

    def _compile_watches(self) -> None:
        """Compile the evaluation of the undecided properties of single states."""
        begun = time.perf_counter()
        watching = self._watch_code()
        if watching:
            with abruptly():
                self._watch = build(module(watching), ["watch"], optimise=False).function("watch", 3)
        self.compile_seconds += time.perf_counter() - begun

    def _watch_code(self) -> str:
        """The code of that evaluation; empty if all are decided."""
        watches = self._watches()
        self._watched = [w.number for w in watches]
        return watch_code(self.layout, [(w.mistake, w.condition) for w in watches]) if watches else ""

    def _note_steps(self) -> None:
        met = self._counters()
        for at, (number, _) in enumerate(self._steps):
            for place, mistake in ((self._facts.hit(at), False), (self._facts.hit(at) + 2, True)):
                if met[place] != NONE:
                    self.events.setdefault(number, SearchEvent(met[place], met[place + 1], mistake))

    def close(self) -> None:
        """Free the memory; the search cannot be used afterwards."""
        self.worker.close()
