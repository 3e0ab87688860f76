"""The search by compiled code: the same states in the same order as the first tier's, many times faster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from streamproof.explicit.compiled import kernels
from streamproof.explicit.compiled.kernel import translate
from streamproof.explicit.compiled.layout import Layout, layout, packed
from streamproof.explicit.compiled.memory import Block, Reserve
from streamproof.explicit.compiled.native import Module, build
from streamproof.explicit.compiled.steps import NONE, Facts, ever_code, expand_code, watch_code
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
FIRST_CAPACITY = 1 << 20
"""Entries of the first table; doubled up to `DOUBLING`, then half as many more each time."""
DOUBLING = 1 << 24
LOAD = 0.75
"""The table grows when it is fuller than this."""
OUT_SPACE = 1 << 16
"""Successors of one batch, at most."""
BATCH = 256
SLACK = 1 << 18
"""Slots behind the table's end, more than one batch can push out."""
SLICE_SECONDS = 0.1
"""Compiled code runs for about this long before limits and interrupts are looked at."""


@dataclass
class CompiledSearch:
    """A search and what it has found so far; the attributes are those of `search.Search`."""

    scalarised: Scalarised
    system: System
    properties: Sequence[Property]
    budget: Budget
    on_progress: Callable[[Progress], None] | None
    stop_when_decided: bool
    levels: list[int] = field(default_factory=list)
    initial: int = 0
    expanded: int = 0
    events: dict[int, Event] = field(default_factory=dict)
    stopped: Stop | None = None
    compile_seconds: float = 0.0

    def __post_init__(self) -> None:
        begun = time.perf_counter()
        self.layout: Layout = layout(self.system)
        self._steps = [(k, p) for k, p in enumerate(self.properties) if p.kind is Kind.STEP]
        self._facts_at = Facts(len(self.system.instances), len(self._steps))
        self.fixed = fixed_code(self.layout.words)
        self._own = build(expand_code(self.system, self.layout, self._steps), ["expand"], optimise=False)
        self._watched: list[int] = []
        self._compile_watches()
        self.compile_seconds = time.perf_counter() - begun
        self.table = Table(self.layout.words, self.budget)
        self._facts = Block(self._facts_at.fresh())
        self._news = Block([0] * len(self.system.instances))
        degree = max(1, len(self.system.instances))
        self._out = Reserve((OUT_SPACE + degree) * 8 * self.layout.words + (1 << 16))
        self._actions = Reserve((OUT_SPACE + degree) * 2 + (1 << 16))
        self._ends = Reserve(BATCH * 4 + (1 << 16))
        self._hashes = Reserve((OUT_SPACE + degree) * 8 + (1 << 16))
        self.table.set(
            OUT=self._out.address,
            ACTIONS=self._actions.address,
            ENDS=self._ends.address,
            HASHES=self._hashes.address,
            FACTS=self._facts.address,
            EXPAND=self._own.addresses["expand"],
            NEWS=self._news.address,
            BATCH=max(1, min(BATCH, OUT_SPACE // degree)),
            DEGREE=degree,
            MOST_STATES=min(self.budget.max_states, MOST_STATES),
        )
        self._inspected = 0
        self._reported = 0.0
        self._pace = 16

    # --- what was found ---

    @property
    def known(self) -> int:
        """Distinct states so far."""
        return self.table.count

    @property
    def generated(self) -> list[int]:
        """Successors per instance."""
        return self._facts.slice(4, 4 + len(self.system.instances))

    @property
    def distinct(self) -> list[int]:
        """New states per instance."""
        return self._news.slice(0, len(self.system.instances))

    @property
    def total(self) -> int:
        """Initial states and every successor, duplicates included."""
        return self.initial + sum(self.generated)

    @property
    def least(self) -> int:
        """The smallest number of successors of an expanded state."""
        return self._facts[Facts.LEAST]

    @property
    def most(self) -> int:
        """The largest."""
        return self._facts[Facts.MOST]

    @property
    def stuck(self) -> int:
        """The first state without a successor that is no legal end, or -1."""
        return _number(self._facts[Facts.STUCK])

    @property
    def faulty(self) -> int:
        """The state where the model makes a mistake, or -1."""
        return _number(self._facts[Facts.FAULTY])

    def state(self, number: int) -> State:
        """A scalar state by its number."""
        return self.layout.unpack(self.table.words(number))

    def states(self) -> Iterator[State]:
        """The scalar states in the order of discovery."""
        return (self.state(k) for k in range(self.known))

    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""
        return self.table.parent(number)

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
        seen = Block([0] * (len(open_) // 8 + 1))
        for first in range(0, self.known, 1 << 20):
            ever(self.table.address(first), min(1 << 20, self.known - first), seen.address)
        flags = b"".join(word.to_bytes(8, "little") for word in seen.slice(0, len(open_) // 8 + 1))
        for at, k in enumerate(open_):
            found[k] = bool(flags[at])
        return found

    def cycle(self) -> list[int] | None:
        """The states of a shortest cycle through the first state that lies on one; None when there is none."""
        from streamproof.explicit.rounds import first_round

        return first_round(self.graph())

    def graph(self) -> StateGraph:
        """Every step between the known states."""
        from streamproof.explicit.compiled.edges import state_graph

        return state_graph(self)

    # --- the search ---

    def run(self) -> None:
        """Search until nothing is left or a limit is met; `stopped` says which."""
        try:
            self._start()
            while self.table.next < self.known and not self.stopped:
                if self._all_decided():
                    self.stopped = Stop.DECIDED
                elif len(self.levels) == self.budget.max_depth:
                    self.stopped = Stop.DEPTH
                else:
                    self._level()
        except KeyboardInterrupt:
            self.stopped = Stop.INTERRUPTED
            self.levels[-1:] = [self.known - sum(self.levels[:-1])]
        self.expanded = self.table.next - (self.faulty >= 0)

    def _start(self) -> None:
        add = self.fixed.function("add", 3)
        for states in starts(self.scalarised, self.system):
            self._room(len(states))
            words = Block(packed(self.layout, states))
            add(self.table.control.address, words.address, len(states))
            self.stopped = self.budget.spent() or (Stop.STATES if self.known > self.budget.max_states else None)
            if self.stopped:
                break
        self.initial = self.known
        self.levels.append(self.known)
        self._look()

    def _level(self) -> None:
        """Expand every state of the newest level."""
        search = self.fixed.function("search", 2)
        last = self.known
        self.table.set(LAST=last)
        self.levels.append(0)
        while self.table.next < last and not self.stopped:
            begun = time.perf_counter()
            outcome = search(self.table.control.address, self._pace)
            seconds = time.perf_counter() - begun
            self.levels[-1] = self.known - last
            self._look()
            self._note_steps()
            if outcome == kernels.FULL:
                if not self._room(self.table.value("BATCH") * self.table.value("DEGREE")):
                    self.stopped = Stop.MEMORY
            elif outcome == kernels.STOPPED:
                self.stopped = Stop.MISTAKE if self.faulty >= 0 else Stop.STATES
            else:
                self.stopped = self.budget.spent()
                self._pace = max(1, min(2 * self._pace, int(self._pace * SLICE_SECONDS / max(seconds, 1e-6))))
            self._report(last)
        if not self.levels[-1]:
            self.levels.pop()

    def _room(self, more: int) -> bool:
        """Make the table large enough for so many states more; False when memory does not allow it."""
        return self.table.make_room(more, self.fixed)

    def _look(self) -> None:
        """Evaluate the properties of single states in the states that have not been looked at."""
        known = self.known
        if self._watched and self._inspected < known:
            notes = Block([NONE] * (2 * len(self._watched)))
            self._watch(self.table.address(self._inspected), known - self._inspected, notes.address)
            hits = False
            for at, number in enumerate(self._watched):
                if notes[2 * at] != NONE:
                    self.events[number] = Event(self._inspected + notes[2 * at], None, bool(notes[2 * at + 1]))
                    hits = True
            if hits:
                self._compile_watches()
        self._inspected = known

    def _compile_watches(self) -> None:
        """Compile the evaluation of the properties of single states that are not decided yet."""
        begun = time.perf_counter()
        open_ = [
            (k, p)
            for k, p in enumerate(self.properties)
            if k not in self.events and p.kind in (Kind.INVARIANT, Kind.REACHABLE)
        ]
        watches = [(k, watch_of(k, p)) for k, p in open_]
        watches = [(k, w) for k, w in watches if not (w.condition is w.mistake is b.FALSE)]
        self._watched = [k for k, _ in watches]
        if watches:
            code = watch_code(self.layout, [(w.mistake, w.condition) for _, w in watches])
            self._watching = build(code, ["watch"], optimise=False)
            self._watch = self._watching.function("watch", 3)
        self.compile_seconds += time.perf_counter() - begun

    def _note_steps(self) -> None:
        for at, (number, _) in enumerate(self._steps):
            place = self._facts_at.hit(at)
            if number not in self.events and self._facts[place] != NONE:
                hit = self._facts.slice(place, place + 3)
                self.events[number] = Event(hit[0], hit[1], bool(hit[2]))

    def _all_decided(self) -> bool:
        return (
            self.stop_when_decided
            and bool(self.properties)
            and all(
                number in self.events or (p.kind is Kind.DEADLOCK and self.stuck >= 0)
                for number, p in enumerate(self.properties)
            )
        )

    def _report(self, last: int) -> None:
        elapsed = self.budget.elapsed
        if self.on_progress is not None and elapsed - self._reported >= 1.0:
            self._reported = elapsed
            self.on_progress(Progress(elapsed, len(self.levels), self.known, self.total, self.known - self.table.next))

    def close(self) -> None:
        """Give the memory back; nothing can be asked afterwards."""
        for part in (self._out, self._actions, self._ends, self._hashes, self.table):
            part.close()


_AT = {name: at for at, name in enumerate(kernels.CONTROL)}


def _number(fact: int) -> int:
    return -1 if fact == NONE else fact


@cache
def fixed_code(words: int) -> Module:
    """The kernels for states of so many words."""
    text = translate(kernels.KERNELS, kernels.constants(words))
    return build(text, list(kernels.ENTRIES), optimise=True)


class Table:
    """The known states: table, log, predecessors, and the control block that compiled code works on."""

    def __init__(self, words: int, budget: Budget) -> None:
        self._words = words
        self._budget = budget
        most = budget.max_bytes or (1 << 36)
        self._entries = Reserve(most, huge=True)
        self._log = Reserve(most, huge=True)
        self._parents = Reserve(most // 2, huge=True)
        self._scratch = Reserve(8 * (1 << 16))
        self.control = Block([0] * len(kernels.CONTROL))
        self.set(
            TABLE=self._entries.address,
            LOG=self._log.address,
            PARENTS=self._parents.address,
            SCRATCH=self._scratch.address,
            CAPACITY=FIRST_CAPACITY,
            ROOM=int(FIRST_CAPACITY * LOAD),
        )

    def set(self, **values: int) -> None:
        """Write words of the control block, by name."""
        for name, value in values.items():
            self.control[_AT[name]] = value

    def value(self, name: str) -> int:
        """A word of the control block, by name."""
        return self.control[_AT[name]]

    @property
    def slots(self) -> int:
        """Places for entries, the slack included."""
        return self.value("CAPACITY") + SLACK

    @property
    def count(self) -> int:
        """Distinct states."""
        return self.value("COUNT")

    @property
    def next(self) -> int:
        """The first state that has not been expanded."""
        return self.value("NEXT")

    def address(self, number: int) -> int:
        """Where a state lies in the log."""
        return self._log.address + 8 * self._words * number

    def words(self, number: int) -> tuple[int, ...]:
        """The words of a state."""
        size = 8 * self._words
        view = self._log.bytes(size * number, size * (number + 1))
        return tuple(view.cast("Q"))

    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""
        found = int.from_bytes(self._parents.bytes(4 * number, 4 * number + 4), "little")
        return -1 if found == 0xFFFFFFFF else found

    def make_room(self, more: int, fixed: Module) -> bool:
        """Grow until so many states more fit; False when memory does not allow it."""
        capacity = self.value("CAPACITY")
        wanted = capacity
        while self.count + more > wanted * LOAD:
            wanted = wanted * 2 if wanted < DOUBLING else wanted // 2 * 3
        if wanted > capacity:
            if not self._affordable(wanted, capacity):
                return False
            fixed.function("grow", 4)(self.control.address, capacity, wanted, SLACK)
            self.set(ROOM=int(wanted * LOAD))
        return True

    def _affordable(self, wanted: int, capacity: int) -> bool:
        extra = 8 * (wanted - capacity) + int(wanted * LOAD - self.count) * (8 * self._words + 4)
        fits = 8 * (wanted + SLACK) <= self._entries.size and 8 * self._words * wanted <= self._log.size
        return fits and self._budget.allows(extra)

    def close(self) -> None:
        """Give the memory back."""
        for part in (self._entries, self._log, self._parents, self._scratch):
            part.close()
