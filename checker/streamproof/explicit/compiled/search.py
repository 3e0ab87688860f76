"""The search by compiled code: the same states in the same order as the first tier's, many times faster.

It begins with one worker. When there are enough states for several, they go on from the end of a level (`team`); what is
found does not depend on how many they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from streamproof.explicit.compiled import search_kernels
from streamproof.explicit.compiled.layout import Layout, layout, packed
from streamproof.explicit.compiled.memory import WordBlock
from streamproof.explicit.compiled.native import Module, build
from streamproof.explicit.compiled.prefault import Prefault
from streamproof.explicit.compiled.snapshot import Recorder, Snapshot
from streamproof.explicit.compiled.steps import NONE, StepCounters, ever_code, expand_code, module, watch_code
from streamproof.explicit.compiled.table import fixed_code
from streamproof.explicit.compiled.worker import Worker
from streamproof.explicit.level_search import LevelSearch, SearchEvent, SearchTask
from streamproof.explicit.limits import Stop
from streamproof.explicit.search import starts
from streamproof.system import build as b
from streamproof.system.errors import SystemFailure
from streamproof.system.expr import Expr
from streamproof.system.model import Kind, State
from streamproof.system.sorts import RangeSort

if TYPE_CHECKING:
    from streamproof.explicit.compiled.workers import Workers
    from streamproof.explicit.state_graph import StateGraph

MOST_STATES = 0xFFFF_FFF0
"""States are numbered in 32 bits."""
MOST_BATCHES = 1 << 20
"""More are not expanded at once, however short they are."""
BLOCK = 1 << 18
"""So many states are handed to compiled code at once when all are looked at."""
TOGETHER, WIDE_TOGETHER = 1 << 21, 1 << 24
"""From so many known states on, several workers are faster than one: states of one word; wider ones, compared in the log."""
READY_FROM = 1 << 21
"""From so many known states on, a second thread clears memory ahead of one worker; before, it is more of a hindrance."""
AT_ONCE = 32
"""So many thresholds are asked about in one pass over the states."""
SLICE_SECONDS = 0.1
"""Compiled code runs for about this long before limits and interrupts are looked at."""


class CompiledSearch(LevelSearch):
    """The search by compiled code."""

    def __init__(self, task: SearchTask, threads: int = 1, together: int = 0) -> None:
        """With `together` known states there are several workers (`threads`); 0: when it pays."""
        super().__init__(task)
        self.threads = threads
        self.checkpoints: Recorder | None = None
        """Where the search is written to at the ends of levels."""
        self.passed: list[tuple[int, int]] = []
        """At the ends of levels: the states that have been expanded, and the steps that leave them."""
        begun = time.perf_counter()
        self.layout: Layout = layout(self.system)
        self._steps = [(k, p) for k, p in enumerate(self.properties) if p.kind is Kind.STEP]
        self._facts = StepCounters(len(self.system.instances), len(self._steps))
        self.fixed = fixed_code(self.layout.words)
        self._watched: list[int] = []
        watching = self._watch_code()
        # A second pass needs the steps that change nothing too: the same code serves both.
        self._all_steps = any(p.kind in (Kind.TERMINATION, Kind.TEMPORAL) for p in self.properties)
        # A team deals its table out, which the second pass needs whole.
        late = self.layout.words > 1 or self._all_steps
        self.together = together or (WIDE_TOGETHER if late else TOGETHER)
        code = module(expand_code(self.system, self.layout, self._steps, idle_steps=self._all_steps), watching)
        self._own = build(code, ["expand", "watch"] if watching else ["expand"], optimise=False)
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

    # --- what was found ---

    @property
    def known(self) -> int:
        """Distinct states so far."""
        return self.worker.table.count

    @property
    def expanded(self) -> int:
        """States whose successors have all been looked at."""
        return self.worker.table.next - (self.faulty >= 0)

    @property
    def generated(self) -> list[int]:
        """Successors per instance."""
        return self._met()[self._facts.generated(0) : self._facts.hit(0)]

    @property
    def distinct(self) -> list[int]:
        """New states per instance."""
        instances = len(self.system.instances)
        return [sum(counts) for counts in zip(*(w.news.slice(0, instances) for w in self._workers), strict=True)]

    @property
    def least(self) -> int:
        """The smallest number of successors of an expanded state."""
        return self._met()[StepCounters.LEAST]

    @property
    def most(self) -> int:
        """The largest."""
        return self._met()[StepCounters.MOST]

    @property
    def faulty(self) -> int:
        """The state where the model makes a mistake, or -1."""
        return self._first(StepCounters.FAULTY)

    @property
    def _workers(self) -> list[Worker]:
        return [self.worker, *(m.worker for m in self._team.members)] if self._team else [self.worker]

    @property
    def _most_states(self) -> int:
        return min(self.budget.max_states, MOST_STATES)

    def _met(self) -> list[int]:
        """What all workers have counted and met."""
        return self._facts.merged([w.facts.slice(0, self._facts.size) for w in self._workers])

    def _first(self, fact: int) -> int:
        """The number of the first state that a fact tells of, or -1."""
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
        judged = [conditions[k] for k in open_]
        ever = build(module(ever_code(self.layout, judged)), ["ever"], optimise=False).function("ever", 3)
        size = len(open_) // 8 + 1
        seen = WordBlock([0] * size)
        for address, _, count in self._blocks(0):
            ever(address, count, seen.address)
        flags = b"".join(word.to_bytes(8, "little") for word in seen.slice(0, size))
        for at, k in enumerate(open_):
            found[k] = bool(flags[at])
        return found

    def largest(self, term: Expr) -> int:
        """The largest value of an integer term in the known states, found by asking them about thresholds."""
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

    def cycle(self) -> list[int] | None:
        """The states of a shortest cycle through the first state that lies on one; None when there is none."""
        return self.graph().digraph.cycle()

    def graph(self) -> StateGraph:
        """Every step between the known states."""
        from streamproof.explicit.compiled.edges import state_graph

        return state_graph(self)

    def every_step(self) -> tuple[Module, StepCounters]:
        """The successor function that writes down all steps, and what it notes."""
        if self._all_steps:
            return self._own, self._facts
        code = module(expand_code(self.system, self.layout, (), idle_steps=True))
        return build(code, ["expand"], optimise=False), StepCounters(len(self.system.instances), 0)

    # --- the search ---

    def run(self) -> None:
        """Search until nothing is left or a limit is met; `stopped` says which."""
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
        """After an interrupt in the middle of a level: what was found there counts."""
        self.levels[-1:] = [self.known - sum(self.levels[:-1])]
        if len(self.levels) == 1:
            self.initial = self.known
        self._look()

    def _blocks(self, first: int) -> Iterator[tuple[int, int, int]]:
        """The states from number `first` on, as blocks in memory: address, number of the first state, and how many."""
        for at in range(first, self.known, BLOCK):
            yield self.worker.table.address(at), at, min(BLOCK, self.known - at)

    def _checkpoint(self, seconds: float) -> None:
        """Write the search as it was at the end of the last level, if that was not done so many seconds ago or less."""
        if self.checkpoints is not None and time.monotonic() - self._written >= seconds and self._marked is not None:
            self.checkpoints.write(self._marked)
            self._written = time.monotonic()

    @property
    def facts_size(self) -> int:
        """How many words the facts of a `Snapshot` are."""
        return self._facts.size

    def restore(self, mark: Snapshot) -> None:
        """Go back to the end of a level; the table holds the states up to there."""
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
            tuple(self._met()),
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
            words = WordBlock(packed(self.layout, states))
            add(self.worker.control, words.address, len(states))
            limit = Stop.STATES if self.known > self.budget.max_states else None
            self.stopped = self.stopped or self.budget.spent() or limit
            if self.stopped:
                break
        self.initial = self.known
        self.levels.append(self.known)
        self._end_level()

    def _end_level(self) -> None:
        """Note how far the newest level goes, and look at its states."""
        self._look()
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
            elif self._ahead is None and known >= READY_FROM:
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
        """From here on workers touch their memory themselves."""
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
            # There is no address space for the others' buffers (ulimit -v): one goes on.
            self.threads = 1
            return
        if not self._team.deal():
            self._end_team()
            self.stopped = Stop.MEMORY

    def _end_team(self) -> None:
        """What all have counted and met is this worker's from here on."""
        if self._team is not None:
            met, news = self._met(), self.distinct
            team, self._team = self._team, None
            team.close()
            self.worker.facts.fill(met)
            self.worker.news.fill(news)

    def _after(self, begun: float, known: int) -> None:
        """After a piece of work: limits, the size of the next piece, and progress."""
        seconds = time.perf_counter() - begun
        wanted = int(self._pace * SLICE_SECONDS / max(seconds, 1e-6))
        self._pace = max(1, min(2 * self._pace, wanted, MOST_BATCHES))
        self.levels[-1] = self.known - known
        self.stopped = self.budget.spent()
        self._report()

    def _look(self) -> None:
        """Evaluate the properties of single states in the states of the newest level.

        A mistake of a property counts when no state of the level decides it.
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
        """Where in a block of states, which begins at the number given, something is met first."""
        address, first, count = block
        notes = WordBlock([NONE] * (2 * len(self._watched)))
        self._watch(address, count, notes.address)
        return first, notes

    def _compile_watches(self) -> None:
        """Compile the evaluation of the properties of single states that are not decided yet."""
        begun = time.perf_counter()
        watching = self._watch_code()
        if watching:
            self._watch = build(module(watching), ["watch"], optimise=False).function("watch", 3)
        self.compile_seconds += time.perf_counter() - begun

    def _watch_code(self) -> str:
        """The code of that evaluation; empty when nothing is left to evaluate."""
        watches = self._watches()
        self._watched = [w.number for w in watches]
        return watch_code(self.layout, [(w.mistake, w.condition) for w in watches]) if watches else ""

    def _note_steps(self) -> None:
        met = self._met()
        for at, (number, _) in enumerate(self._steps):
            for place, mistake in ((self._facts.hit(at), False), (self._facts.hit(at) + 2, True)):
                if met[place] != NONE:
                    self.events.setdefault(number, SearchEvent(met[place], met[place + 1], mistake))

    def close(self) -> None:
        """Give the memory back; nothing can be asked afterwards."""
        self.worker.close()
