"""The search by compiled code: the same states level by level as the first tier's, many times faster.

With several workers each owns the states of its share of the hashes. They expand their parts of a level at the same time,
put what they find into boxes for each other, and then empty the boxes in a fixed order: results do not depend on timing.
States are numbered ``k * workers + w``, the k-th of worker w; of one worker that is the order of discovery.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamproof.explicit.compiled import kernels
from streamproof.explicit.compiled.checkpoint import Checkpoints, Mark
from streamproof.explicit.compiled.layout import Layout, layout, packed
from streamproof.explicit.compiled.memory import Block
from streamproof.explicit.compiled.native import build
from streamproof.explicit.compiled.steps import NONE, Facts, ever_code, expand_code, watch_code
from streamproof.explicit.compiled.table import fixed_code
from streamproof.explicit.compiled.worker import Worker
from streamproof.explicit.found import Event
from streamproof.explicit.limits import Budget, Stop
from streamproof.explicit.search import starts, watch_of
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.scalarise import Scalarised
from streamproof.system.verdict import Progress

if TYPE_CHECKING:
    from streamproof.explicit.graph import StateGraph

MOST_STATES = 0xFFFF_FFF0
"""States are numbered in 32 bits."""
MOST_BATCHES = 1 << 20
"""More are not expanded at once, however short they are."""
BLOCK = 1 << 20
"""So many states are handed to compiled code at once when all are looked at."""
SLICE_SECONDS = 0.1
"""Compiled code runs for about this long before limits and interrupts are looked at."""


@dataclass
class CompiledSearch:
    """A search and what it has found so far; see `found.Found`."""

    scalarised: Scalarised
    system: System
    properties: Sequence[Property]
    budget: Budget
    on_progress: Callable[[Progress], None] | None
    stop_when_decided: bool
    threads: int = 1
    checkpoints: Checkpoints | None = None
    """Where the search is written to at the ends of levels."""
    checkpoint_seconds: float = 60.0
    levels: list[int] = field(default_factory=list)
    ends: list[list[int]] = field(default_factory=list)
    """At the end of each level, how many states each worker has."""
    initial: int = 0
    events: dict[int, Event] = field(default_factory=dict)
    stuck: int = -1
    stopped: Stop | None = None
    compile_seconds: float = 0.0

    def __post_init__(self) -> None:
        begun = time.perf_counter()
        self.layout: Layout = layout(self.system)
        self._steps = [(k, p) for k, p in enumerate(self.properties) if p.kind is Kind.STEP]
        self._facts = Facts(len(self.system.instances), len(self._steps))
        self.fixed = fixed_code(self.layout.words, self.threads)
        self._own = build(expand_code(self.system, self.layout, self._steps), ["expand"], optimise=False)
        self._watched: list[int] = []
        self._compile_watches()
        self.compile_seconds = time.perf_counter() - begun
        expand = self._own.addresses["expand"]
        self.workers = [
            Worker(me, self.threads, self.layout.words, self.budget, self._facts, expand) for me in range(self.threads)
        ]
        self.workers[0].table.set(MOST_STATES=min(self.budget.max_states, MOST_STATES))
        self._marked: Mark | None = None
        self._written = 0.0
        self._reported = 0.0
        self._pace = 16

    # --- what was found ---

    @property
    def known(self) -> int:
        """Distinct states so far."""
        return sum(w.table.count for w in self.workers)

    @property
    def expanded(self) -> int:
        """States whose successors have all been looked at."""
        return sum(w.table.next - (w.fact(Facts.FAULTY) >= 0) for w in self.workers)

    @property
    def generated(self) -> list[int]:
        """Successors per instance."""
        return [sum(counts) for counts in zip(*(w.generated for w in self.workers), strict=True)]

    @property
    def distinct(self) -> list[int]:
        """New states per instance."""
        return [sum(counts) for counts in zip(*(w.distinct for w in self.workers), strict=True)]

    @property
    def total(self) -> int:
        """Initial states and every successor, duplicates included."""
        return self.initial + sum(self.generated)

    @property
    def least(self) -> int:
        """The smallest number of successors of an expanded state."""
        return min(w.facts[Facts.LEAST] for w in self.workers)

    @property
    def most(self) -> int:
        """The largest."""
        return max(w.facts[Facts.MOST] for w in self.workers)

    @property
    def faulty(self) -> int:
        """The state where the model makes a mistake, or -1."""
        return self._first(Facts.FAULTY)

    def state(self, number: int) -> State:
        """A scalar state by its number."""
        at, worker = divmod(number, self.threads)
        return self.layout.unpack(self.workers[worker].table.words(at))

    def states(self) -> Iterator[State]:
        """The scalar states, level by level."""
        return map(self.state, self.numbers())

    def numbers(self) -> Iterator[int]:
        """The numbers of the known states, level by level."""
        before = [0] * self.threads
        for ends in (*self.ends, [w.table.count for w in self.workers]):
            for worker, (first, last) in enumerate(zip(before, ends, strict=True)):
                yield from range(first * self.threads + worker, last * self.threads + worker, self.threads)
            before = ends

    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""
        at, worker = divmod(number, self.threads)
        return self.workers[worker].table.parent(at)

    def path(self, number: int) -> list[int]:
        """The numbers of the states on a shortest way from an initial state to this one, both ends included."""
        numbers = [number]
        while (before := self.parent(numbers[-1])) >= 0:
            numbers.append(before)
        return numbers[::-1]

    def ever_true(self, conditions: Sequence[Expr]) -> list[bool]:
        """For each condition, whether it is true in at least one known state."""
        found = [condition is b.TRUE for condition in conditions]
        open_ = [k for k, c in enumerate(conditions) if c is not b.TRUE and c is not b.FALSE]
        if not open_:
            return found
        module = build(ever_code(self.layout, [conditions[k] for k in open_]), ["ever"], optimise=False)
        ever = module.function("ever", 3)
        size = len(open_) // 8 + 1
        seen = Block([0] * size)
        for address, _, count, _ in self._blocks([0] * self.threads):
            ever(address, count, seen.address)
        flags = b"".join(word.to_bytes(8, "little") for word in seen.slice(0, size))
        for at, k in enumerate(open_):
            found[k] = bool(flags[at])
        return found

    def cycle(self) -> list[int] | None:
        """The states of a shortest cycle through the first state that lies on one; None when there is none."""
        from streamproof.explicit.compiled.edges import Numbering, state_graph
        from streamproof.explicit.compiled.peel import has_cycle

        numbering = Numbering(self)
        graph = state_graph(self, numbering)
        if not has_cycle(graph):
            return None
        from streamproof.explicit.rounds import first_round

        return [numbering.number(dense) for dense in first_round(graph) or ()]

    def graph(self) -> StateGraph:
        """Every step between the known states."""
        from streamproof.explicit.compiled.edges import Numbering, state_graph

        return state_graph(self, Numbering(self))

    # --- the search ---

    def run(self) -> None:
        """Search until nothing is left or a limit is met; `stopped` says which."""
        try:
            self._run()
        finally:
            if self.checkpoints is not None:
                self.checkpoints.close()

    def _run(self) -> None:
        self._written = float("-inf") if not self.ends else time.monotonic()
        try:
            if not self.ends:
                self._start()
            while not self.stopped and self._queue:
                if self._all_decided():
                    self.stopped = Stop.DECIDED
                elif self.budget.max_depth is not None and len(self.levels) >= self.budget.max_depth:
                    self.stopped = Stop.DEPTH
                else:
                    self._checkpoint(self.checkpoint_seconds)
                    self._level()
        except KeyboardInterrupt:
            self.stopped = Stop.INTERRUPTED
            self._abandon()
        if self.stopped is not Stop.MISTAKE:
            self._checkpoint(0.0)

    @property
    def _queue(self) -> int:
        """Known states that have not been expanded."""
        return self.known - sum(w.table.next for w in self.workers)

    def _abandon(self) -> None:
        """After an interrupt in the middle of a level: what was found there counts."""
        self.levels[-1:] = [self.known - sum(self.levels[:-1])]
        if len(self.levels) == 1:
            self.initial = self.known
        self._look()

    def _blocks(self, first: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
        """The states of each worker from its own number `first` on, as blocks in memory.

        Gives a block's address, the worker's number of its first state, how many there are, and which worker it is.
        """
        for me, worker in enumerate(self.workers):
            for at in range(first[me], worker.table.count, BLOCK):
                yield worker.table.address(at), at, min(BLOCK, worker.table.count - at), me

    def _checkpoint(self, seconds: float) -> None:
        """Write the search as it was at the end of the last level, if that was not done so many seconds ago or less."""
        if self.checkpoints is not None and time.monotonic() - self._written >= seconds and self._marked is not None:
            self.checkpoints.write(self._marked)
            self._written = time.monotonic()

    def restore(self, mark: Mark) -> None:
        """Go back to the end of a level; the tables hold the states up to there."""
        self.levels, self.ends = list(mark.levels), [list(ends) for ends in mark.ends]
        self.initial, self.stuck, self.events = mark.initial, mark.stuck, dict(mark.events)
        for worker, facts, news in zip(self.workers, mark.facts, mark.news, strict=True):
            worker.facts.fill(facts)
            worker.news.fill(news)
        self._marked = mark
        self._compile_watches()

    def _mark(self) -> Mark:
        return Mark(
            tuple(self.levels),
            tuple(map(tuple, self.ends)),
            self.initial,
            self.stuck,
            tuple(tuple(w.facts.all()) for w in self.workers),
            tuple(tuple(w.news.all()) for w in self.workers),
            dict(self.events),
            tuple(w.table.next for w in self.workers),
        )

    def _start(self) -> None:
        add = self.fixed.function("add", 3)
        for states in starts(self.scalarised, self.system):
            shares: list[list[State]] = [[] for _ in self.workers]
            if self.threads > 1:
                words, owner = Block(packed(self.layout, states)), Block([0] * (len(states) // 8 + 1))
                self.fixed.function("owners", 3)(words.address, len(states), owner.address)
                whose = b"".join(word.to_bytes(8, "little") for word in owner.slice(0, len(states) // 8 + 1))
                for state, owner_of in zip(states, whose, strict=False):
                    shares[owner_of].append(state)
            else:
                shares[0] = states
            for worker, share in zip(self.workers, shares, strict=True):
                if not worker.table.make_room(len(share), self.fixed):
                    self.stopped = Stop.MEMORY
                    break
                words = Block(packed(self.layout, share))
                add(worker.control, words.address, len(share))
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
        self.ends.append([w.table.count for w in self.workers])
        if not self.stopped:
            self._marked = self._mark()

    def _level(self) -> None:
        """Expand every state of the newest level."""
        known = self.known
        for worker in self.workers:
            worker.table.set(LAST=worker.table.count)
        self.levels.append(0)
        if self.threads == 1:
            self._alone()
        else:
            self._together()
        if self.stuck < 0:
            self.stuck = self._first(Facts.STUCK)
        self._note_steps()
        self.levels[-1] = self.known - known
        if self.levels[-1]:
            self._end_level()
        else:
            self.levels.pop()

    def _alone(self) -> None:
        search, (worker,) = self.fixed.function("search", 2), self.workers
        known = worker.table.count
        while worker.table.next < worker.table.last and not self.stopped:
            begun = time.perf_counter()
            outcome = search(worker.control, self._pace)
            self._after(begun, known)
            if outcome == kernels.FULL and not worker.table.make_room(worker.batch_room, self.fixed):
                self.stopped = Stop.MEMORY
            elif outcome == kernels.STOPPED:
                self.stopped = Stop.MISTAKE if self.faulty >= 0 else Stop.STATES

    def _together(self) -> None:
        scatter, gather = self.fixed.function("scatter", 3), self.fixed.function("gather", 2)
        known = self.known

        def expand(worker: Worker) -> None:
            assert worker.boxes is not None
            scatter(worker.control, worker.boxes.address, 1 << 40)

        def collect(worker: Worker) -> bool:
            me = self.workers.index(worker)
            if not worker.table.make_room(sum(sender.waiting(me) for sender in self.workers), self.fixed):
                return False
            for sender in self.workers:
                gather(worker.control, sender.box(me))
            return True

        with ThreadPoolExecutor(self.threads) as pool:
            while not self.stopped and any(w.table.next < w.table.last for w in self.workers):
                begun = time.perf_counter()
                list(pool.map(expand, self.workers))
                enough = list(pool.map(collect, self.workers))
                self._after(begun, known)
                if not all(enough):
                    self.stopped = Stop.MEMORY
                elif self.faulty >= 0:
                    self.stopped = Stop.MISTAKE
                elif self.known > min(self.budget.max_states, MOST_STATES // self.threads):
                    self.stopped = Stop.STATES

    def _after(self, begun: float, known: int) -> None:
        """After a piece of work: limits, the size of the next piece, and progress."""
        seconds = time.perf_counter() - begun
        wanted = int(self._pace * SLICE_SECONDS / max(seconds, 1e-6))
        self._pace = max(1, min(2 * self._pace, wanted, MOST_BATCHES))
        self.levels[-1] = self.known - known
        self.stopped = self.budget.spent()
        self._report()

    def _report(self) -> None:
        """Tell about progress, once a second."""
        elapsed = self.budget.elapsed
        if self.on_progress is not None and elapsed - self._reported >= 1.0:
            self._reported = elapsed
            self.on_progress(Progress(elapsed, len(self.levels), self.known, self.total, self._queue))

    def _look(self) -> None:
        """Evaluate the properties of single states in the states of the newest level.

        A mistake of a property counts when no state of the level decides it.
        """
        before = len(self.events)
        mistakes: dict[int, Event] = {}
        newest = self.ends[-1] if self.ends else [0] * self.threads
        for address, first, count, number in self._blocks(newest) if self._watched else ():
            notes = Block([NONE] * (2 * len(self._watched)))
            self._watch(address, count, notes.address)
            for at, prop in enumerate(self._watched):
                for place, events in ((2 * at, self.events), (2 * at + 1, mistakes)):
                    if notes[place] != NONE:
                        state = (first + notes[place]) * self.threads + number
                        events.setdefault(prop, Event(state, None, events is mistakes))
        self.events = mistakes | self.events
        if len(self.events) > before:
            self._compile_watches()

    def _compile_watches(self) -> None:
        """Compile the evaluation of the properties of single states that are not decided yet."""
        begun = time.perf_counter()
        watches = [
            (k, watch_of(k, p))
            for k, p in enumerate(self.properties)
            if k not in self.events and p.kind in (Kind.INVARIANT, Kind.REACHABLE, Kind.TEMPORAL)
        ]
        watches = [(k, w) for k, w in watches if not (w.condition is w.mistake is b.FALSE)]
        self._watched = [k for k, _ in watches]
        if watches:
            code = watch_code(self.layout, [(w.mistake, w.condition) for _, w in watches])
            self._watching = build(code, ["watch"], optimise=False)
            self._watch = self._watching.function("watch", 3)
        self.compile_seconds += time.perf_counter() - begun

    def _note_steps(self) -> None:
        for at, (number, _) in enumerate(self._steps):
            for place, mistake in ((self._facts.hit(at), False), (self._facts.hit(at) + 2, True)):
                for me, worker in enumerate(self.workers):
                    state, instance = worker.facts.slice(place, place + 2)
                    if state != NONE:
                        self.events.setdefault(number, Event(state * self.threads + me, instance, mistake))

    def _first(self, fact: int) -> int:
        """The number of the state that a fact tells of, or -1; of several workers, the first that has met one."""
        met = ((w.fact(fact), me) for me, w in enumerate(self.workers))
        return next((state * self.threads + me for state, me in met if state >= 0), -1)

    def _all_decided(self) -> bool:
        return (
            self.stop_when_decided
            and bool(self.properties)
            and all(
                number in self.events or (p.kind is Kind.DEADLOCK and self.stuck >= 0)
                for number, p in enumerate(self.properties)
            )
        )

    def close(self) -> None:
        """Give the memory back; nothing can be asked afterwards."""
        for worker in self.workers:
            worker.close()
