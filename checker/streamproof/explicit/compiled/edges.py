"""The second pass of the compiled tier: all steps between known states, as arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from streamproof.base.errors import TooLarge
from streamproof.base.options import either
from streamproof.base.records import replace
from streamproof.explicit.compiled import search_kernels
from streamproof.explicit.compiled.memory import AHEAD_MOST, Fixed, Prefault, Reserve, WordBlock, Worker
from streamproof.explicit.compiled.packed_states import Layout
from streamproof.explicit.compiled.steps import StepCounters, conditions_code, module
from streamproof.explicit.level_search import Budget, Stop, path_to
from streamproof.explicit.native_code import Module, build
from streamproof.explicit.state_graph import StateGraph, Truths, sources
from streamproof.system.expr import Expr
from streamproof.system.model import System
from streamproof.transform.constraint import twofold

CHUNK = 1 << 16
"""Number of states whose conditions are evaluated at a time."""
BUFFERS = ("OUT", "ACTIONS", "ENDS", "HASHES", "KEPT", "RECENT", "SCRATCH")
"""Memory of each thread, in bytes."""


class Expanded(Protocol):
    """A search of the compiled tier whose states can be expanded again; see `LevelSearch`."""

    system: System
    budget: Budget
    initial: int
    stopped: Stop | None
    layout: Layout
    fixed: Fixed
    worker: Worker
    threads: int
    passed: list[tuple[int, int]]
    """At the end of each level: number of expanded states, and number of their steps."""

    @property
    def known(self) -> int:
        """Number of distinct states."""

    @property
    def generated(self) -> Sequence[int]:
        """Successors per instance."""

    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""

    def every_step(self) -> tuple[Module, StepCounters]:
        """The successor function that records all steps, and its counters."""


def _graph_bytes(search: Expanded) -> int:
    return 6 * sum(search.generated) + 24 * (search.known + 1)


def fits(search: Expanded, copies: int = 1) -> bool:
    """Whether `copies` times the memory of the state graph is free."""
    return search.known < 1 << 31 and search.budget.allows(copies * _graph_bytes(search))


def state_graph(search: Expanded) -> StateGraph:
    """The state graph: expand all states again and record their steps.

    Raises `TooLarge` if the steps do not fit into the memory limit of the search.
    """
    states, steps = search.known, sum(search.generated)
    if not fits(search):
        raise TooLarge(
            f"the {steps:,} steps of this graph need {_graph_bytes(search) / 2**30:.1f} GiB",
            remedy=either("raise --memory", "use the disk with --spill DIR", "choose smaller parameters"),
        )
    own, noted = search.every_step()
    worker, table, fixed = search.worker, search.worker.table, search.fixed
    if not table.value("CAPACITY"):
        table.enter_again(fixed)
    # Batches may overshoot: room for one more.
    spare = worker.batch_room
    targets, labels = Reserve(4 * (steps + spare), huge=True), Reserve(2 * (steps + spare), huge=True)
    offsets = Reserve(8 * (states + 1), huge=True)
    ids = None
    if search.layout.words == 1:
        ids = Reserve(4 * table.slots, huge=True)
        table.set(IDS=ids.address)
        fixed.function("number", 3)(table.control.address, 0, states)
    looked_at = table.next
    where = {
        "ROOM": steps + spare,
        "OFFSETS": offsets.address,
        "TARGETS": targets.address,
        "LABELS": labels.address,
        "EXPAND": own.addresses["expand"],
    }
    spans = _spans(search, looked_at, steps)
    parts = [_Part(search, span, noted, where, own=not at) for at, span in enumerate(spans)]

    def coming() -> list[tuple[int, int]]:
        """The memory of the next steps."""
        begun = parts[0].value("EDGES")
        return [
            (targets.address, min(4 * steps, 4 * begun + AHEAD_MOST)),
            (labels.address, min(2 * steps, 2 * begun + AHEAD_MOST)),
        ]

    ahead = Prefault(coming, search.budget) if search.threads > 1 and len(parts) == 1 else None
    try:
        _fill(parts, fixed.function("edges", 2))
    finally:
        if ahead is not None:
            ahead.stop()
        for part in parts:
            part.close()
        if ids is not None:
            ids.close()
    written = parts[-1].value("EDGES")
    ends = offsets.array(np.int64, states + 1)
    ends[looked_at + 1 :] = written
    after = targets.array(np.int32, written)
    return StateGraph(
        initial=search.initial,
        offsets=ends,
        targets=after,
        instances=labels.array(np.uint16, written),
        path=lambda number: path_to(search.parent, number),
        evaluate=lambda conditions: _evaluate(search, conditions),
        evaluate_steps=lambda conditions: _evaluate_steps(search, conditions, sources(ends), after),
        tuning=search.budget.tuning,
    )


class _Part:
    """A range of states whose steps are written by one thread, with the search's buffers or buffers of its own."""

    def __init__(
        self, search: Expanded, span: tuple[int, int, int], noted: StepCounters, where: Mapping[str, int], *, own: bool
    ) -> None:
        table, words, expand = search.worker.table, search.layout.words, where["EXPAND"]
        self._control = WordBlock(table.control.slice(0, len(search_kernels.CONTROL)))
        self._facts = WordBlock(noted.fresh())
        self._worker = None if own else Worker(words, search.budget, noted, expand, lender=table)
        if self._worker is not None:
            self._set({name: self._worker.table.value(name) for name in BUFFERS})
        first, last, step = span
        self._set({**where, "NEXT": first, "LAST": last, "EDGES": step, "FACTS": self._facts.address})

    def _set(self, values: Mapping[str, int]) -> None:
        for name, value in values.items():
            self._control[search_kernels.CONTROL.index(name)] = value

    def value(self, name: str) -> int:
        """A word of the control block, by name."""
        return self._control[search_kernels.CONTROL.index(name)]

    def fill(self, run: Callable[..., int], over: threading.Event) -> None:
        """Write the steps; stop early when `over` is set."""
        while self.value("NEXT") < self.value("LAST") and not over.is_set():
            run(self._control.address, 1 << 12)

    def close(self) -> None:
        """Free the buffers."""
        if self._worker is not None:
            self._worker.close()


def _spans(search: Expanded, looked_at: int, steps: int) -> list[tuple[int, int, int]]:
    """The range of each thread: its first state, its last state, and the number of its first step.

    The number of steps before a state is known at the ends of levels if every step was counted and leads to a known state.
    """
    whole = [(0, looked_at, 0)]
    if search.threads == 1 or steps < search.budget.tuning.divided_steps or search.stopped or search.known != looked_at:
        return whole
    # Both ranges are whole levels: their states were expanded in this order, and `passed` has the exact number of steps
    # before.
    half = min(search.passed, key=lambda at: abs(2 * at[1] - steps), default=(0, 0))
    if not 0 < half[0] < looked_at:
        return whole
    return [(0, half[0], 0), (half[0], looked_at, half[1])]


def _fill(parts: Sequence[_Part], run: Callable[..., int]) -> None:
    """Fill all parts, one thread each."""
    over = threading.Event()
    threads = []
    try:
        for part in parts[1:]:
            thread = threading.Thread(target=part.fill, args=(run, over), daemon=True)
            with suppress(RuntimeError):  # thread limit reached: this thread fills the part below
                thread.start()
                threads.append(thread)
        parts[0].fill(run, over)
        for thread in threads:
            thread.join()
        # A part without a thread is filled here; one that is full writes nothing more.
        for part in parts:
            part.fill(run, over)
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _evaluate(search: Expanded, conditions: Sequence[Expr]) -> Truths:
    table = search.worker.table
    return _judged(search.layout, conditions, search.known, table.address)


def _evaluate_steps(
    search: Expanded, conditions: Sequence[Expr], before: npt.NDArray[np.int32], after: npt.NDArray[np.int32]
) -> Truths:
    width = search.layout.words
    words = np.frombuffer(search.worker.table.stored(0, 0, search.known), dtype=np.uint64).reshape(search.known, width)
    twice, conditions = of_pairs(search, conditions)
    pairs = np.empty((CHUNK, 2 * width), dtype=np.uint64)

    def at(first: int) -> int:
        some = slice(first, first + CHUNK)
        pairs[: len(before[some]), :width] = words[before[some]]
        pairs[: len(before[some]), width:] = words[after[some]]
        return pairs.ctypes.data

    return _judged(twice, conditions, len(before), at)


def of_pairs(search: Expanded, conditions: Sequence[Expr]) -> tuple[Layout, list[Expr]]:
    """The layout of a state that is followed by another one, and conditions on steps as conditions on such pairs."""
    layout = search.layout
    both, later = twofold(search.system)
    fields = [*layout.fields.values(), *(replace(f, word=f.word + layout.words) for f in layout.fields.values())]
    names = [v.name for v in both.variables]
    twice = Layout(dict(zip(names, fields, strict=True)), 2 * layout.words, 2 * layout.bits)
    return twice, [later(condition) for condition in conditions]


def _judged(layout: Layout, conditions: Sequence[Expr], count: int, address: Callable[[int], int]) -> Truths:
    """Values of Boolean terms in `count` packed states; ``address(k)`` is the address of the `CHUNK` that begins with state
    `k`."""
    result = np.zeros((len(conditions), count), dtype=np.bool_)
    if not conditions:
        return result
    judge = _judge(layout, conditions)
    buffer = np.zeros((CHUNK, len(conditions)), dtype=np.bool_)
    # Invariant: the columns before `first` have the values of their states; the buffer is overwritten by each chunk.
    for first in range(0, count, CHUNK):
        n = min(CHUNK, count - first)
        judge(address(first), n, buffer.ctypes.data)
        result[:, first : first + n] = buffer[:n].T
    return result


def evaluated(
    layout: Layout, conditions: Sequence[Expr], pieces: Iterable[tuple[int, npt.NDArray[Any]]]
) -> Iterator[tuple[int, Truths]]:
    """For each piece of packed states, the number of its first state, and the values of Boolean terms, a row for a state."""
    judge = _judge(layout, conditions)
    for first, states in pieces:
        values = np.zeros((len(states), len(conditions)), dtype=np.bool_)
        judge(np.ascontiguousarray(states).ctypes.data, len(states), values.ctypes.data)
        yield first, values


def _judge(layout: Layout, conditions: Sequence[Expr]) -> Callable[..., int]:
    return build(module(conditions_code(layout, conditions)), ["judge"], optimise=False).function("judge", 3)
