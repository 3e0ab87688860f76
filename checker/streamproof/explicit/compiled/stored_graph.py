"""The second pass over states on disk: all steps between them, as arrays mapped from files.

The states are entered into a hash table as many at a time as fit into memory. For each such window all states are expanded
again, and the successors that are in the window get their numbers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from streamproof.base.errors import TooLarge
from streamproof.base.options import either, resident_bytes
from streamproof.base.records import dataclass
from streamproof.explicit.compiled import search_kernels
from streamproof.explicit.compiled.edges import Expanded, evaluated, of_pairs
from streamproof.explicit.compiled.memory import LOAD, SLACK, Reserve, WordBlock
from streamproof.explicit.compiled.spill_file import Array
from streamproof.explicit.kernel_compiler import translate
from streamproof.explicit.level_search import Budget
from streamproof.explicit.mapped_graph import MappedFiles, StoredGraph
from streamproof.explicit.native_code import Module, build
from streamproof.system.expr import Expr

if TYPE_CHECKING:
    from streamproof.explicit.compiled.search_kernels import _find, _hash, _home, _prefetch_compared
    from streamproof.explicit.kernel_builtins import (
        address,
        halves_at,
        invoke,
        prefetch,
        shorts_at,
        word,
        words,
        words_at,
    )

    # Constants that are filled in when the kernel is translated.
    WORDS = NONE = AHEAD = TABLE = CAPACITY = NEXT = LAST = OUT = ACTIONS = ENDS = FACTS = EXPAND = BATCH = HASHES = 0
    IDS = OFFSETS = TARGETS = LABELS = EDGES = ME = 0

PIECE = 1 << 16
"""Number of states that are read at a time."""
LEAST_WINDOW = 1 << 12
"""Least number of states that are entered into the table at a time."""
PAIRS = 1 << 18
"""Number of steps whose conditions are evaluated at a time."""
SHARE = 0.7
"""Share of the free memory that the table and its states take."""


def locate(c: words, states: words, base: word) -> word:
    """Expand the states from ``NEXT`` to ``LAST``; `states` has them from number `base` on.

    Writes the ends of their steps to ``OFFSETS``, the instances to ``LABELS``, and the numbers of the successors that are in
    the table to ``TARGETS``: their number there plus ``ME``. The others keep what is there.
    """
    out = words_at(c[OUT])
    actions = shorts_at(c[ACTIONS])
    ends = halves_at(c[ENDS])
    hashes = words_at(c[HASHES])
    table = words_at(c[TABLE])
    ids = halves_at(c[IDS])
    offsets = words_at(c[OFFSETS])
    targets = halves_at(c[TARGETS])
    labels = shorts_at(c[LABELS])
    capacity = c[CAPACITY]
    while c[NEXT] < c[LAST]:
        first = c[NEXT]
        written = c[EDGES]
        n = c[LAST] - first
        n = c[BATCH] if n > c[BATCH] else n
        source = address(states, (first - base) * WORDS)
        done = invoke(c[EXPAND], source, n, first, c[OUT], c[ACTIONS], c[ENDS], c[FACTS])
        total = ends[done - 1]
        for i in range(total):
            hashes[i] = _hash(out, i * WORDS)
        for i in range(AHEAD):
            prefetch(table, _home(hashes[i], capacity))
        for i in range(total):
            line = _home(hashes[i + AHEAD], capacity)
            prefetch(table, line)
            if WORDS > 1:
                _prefetch_compared(c, hashes[i + AHEAD // 2])
            else:
                prefetch(ids, line)
            labels[written + i] = actions[i]
            found = _find(c, hashes[i], out, i * WORDS)
            if found != NONE:
                targets[written + i] = found + c[ME]
        for s in range(done):
            offsets[first + s + 1] = written + ends[s]
        c[EDGES] = written + total
        c[NEXT] = first + done
    return 0


@cache
def _locating(words_of_state: int) -> Module:
    inlined = [kernel for kernel in search_kernels.KERNELS if kernel.__name__.startswith("_")]
    return build(translate([*inlined, locate], search_kernels.constants(words_of_state)), ["locate"], optimise=True)


class StateLog(Protocol):
    """The packed states by number."""

    def read(self, first: int, last: int) -> Array:
        """The states from number `first` to `last`, as rows of words."""


@dataclass(frozen=True)
class MappedLog:
    """The packed states in an array."""

    states: Array

    def read(self, first: int, last: int) -> Array:
        """The states from number `first` to `last`."""
        return self.states[first:last]


def stored_graph(search: Expanded, log: StateLog, folder: Path) -> StoredGraph:
    """The graph of a complete search whose states are in `log`; files in `folder`. Raises `TooLarge`."""
    if search.stopped is not None:
        raise TooLarge("the search ended early", remedy="let it end")
    states, steps = search.known, sum(search.generated)
    if states > 0xFFFF_FFF0:
        raise TooLarge(f"{states:,} states, for cycles and temporal properties", remedy="at most 4,294,967,280")
    files = mapped_files(search.budget, folder)
    offsets = files.array(np.int64, states + 1)
    targets, labels = files.array(np.uint32, steps), files.array(np.uint16, steps)

    def valuations(conditions: Sequence[Expr]) -> Array:
        found = files.array(np.uint16, states)
        if conditions:
            weights = np.uint16(1) << np.arange(len(conditions), dtype=np.uint16)
            for first, values in evaluated(search.layout, conditions, _pieces(log, states)):
                found[first : first + len(values)] = values @ weights
                files.pulse()
        return found

    def changes(conditions: Sequence[Expr]) -> Array:
        found, at = files.array(np.uint16, steps), 0
        weights = np.uint16(1) << np.arange(len(conditions), dtype=np.uint16)
        twice, over_pairs = of_pairs(search, conditions)
        for _, values in evaluated(twice, over_pairs, enumerate(_step_pairs(search, log, files, offsets))):
            found[at : at + len(values)] = values @ weights
            at += len(values)
        for first in range(0, states, PIECE):
            last = min(first + PIECE, states)
            own = slice(int(offsets[first]), int(offsets[last]))
            sources = np.repeat(np.arange(first, last, dtype=np.uint32), np.diff(offsets[first : last + 1]))
            found[own][targets[own] == sources] = 0
            files.pulse()
        return found

    graph = StoredGraph(files, search.initial, offsets, targets, labels, valuations, changes)
    size = _window(search, states)
    for first in range(0, states, size):
        _fill(search, log, graph, first, min(states, first + size))
    assert offsets[states] == steps, "every step was generated again"
    return graph


def _step_pairs(search: Expanded, log: StateLog, files: MappedFiles, offsets: Array) -> Iterator[Array]:
    """The states before and after each step, in the order of the graph: all states are expanded once more."""
    words, (own, noted) = search.layout.words, search.every_step()
    facts, degree = WordBlock(noted.fresh()), max(1, noted.instances)
    size = max(1, PAIRS // degree)
    room = size * degree
    out, actions = np.empty((room, words), dtype=np.uint64), np.empty(room, dtype=np.uint16)
    ends = np.empty(size, dtype=np.uint32)
    expand = own.function("expand", 7)
    for begin, some in _pieces(log, len(offsets) - 1):
        for at in range(0, len(some), size):
            part = some[at : at + size]
            places = (out.ctypes.data, actions.ctypes.data, ends.ctypes.data, facts.address)
            done = expand(part.ctypes.data, len(part), begin + at, *places)
            degrees = np.diff(offsets[begin + at : begin + at + len(part) + 1])
            assert done == len(part), "every state was expanded without a mistake before"
            yield np.hstack([np.repeat(part, degrees, axis=0), out[: ends[len(part) - 1]]])
            files.pulse()


def mapped_files(budget: Budget, folder: Path) -> MappedFiles:
    """Files whose pages are given back at the memory limit of a search."""
    return MappedFiles(folder, lambda: budget.allows(0))


def _pieces(log: StateLog, states: int) -> Iterator[tuple[int, Array]]:
    for first in range(0, states, PIECE):
        yield first, np.ascontiguousarray(log.read(first, min(states, first + PIECE)))


def _window(search: Expanded, states: int) -> int:
    """The number of states that are in the table at a time."""
    tuning = search.budget.tuning
    if tuning.stored_window:
        return tuning.stored_window
    free = (search.budget.max_bytes or 1 << 34) - resident_bytes()
    size = int((SHARE * free - 12 * SLACK) / (8 * search.layout.words + 12 / LOAD))
    if size < min(states, LEAST_WINDOW):
        raise TooLarge(
            "too little memory to look up the successors of states on disk",
            remedy=either("raise --memory", "choose smaller parameters"),
        )
    return size


def _fill(search: Expanded, log: StateLog, graph: StoredGraph, begin: int, end: int) -> None:
    """Write the steps to the states from number `begin` to `end`."""
    worker, words = search.worker, search.layout.words
    capacity = int((end - begin) / LOAD) + 8
    own, noted = search.every_step()
    facts = WordBlock(noted.fresh())
    table = Reserve(8 * (capacity + SLACK), huge=True)
    entered, ids = Reserve(8 * words * (end - begin)), Reserve(4 * (capacity + SLACK))
    control = WordBlock(worker.table.control.slice(0, len(search_kernels.CONTROL)))

    def put(**values: int) -> None:
        for name, value in values.items():
            control[search_kernels.CONTROL.index(name)] = value

    try:
        put(
            TABLE=table.address, CAPACITY=capacity, LOG=entered.address, IDS=ids.address, FACTS=facts.address,
            EXPAND=own.addresses["expand"], OFFSETS=graph.offsets.ctypes.data, TARGETS=graph.targets.ctypes.data,
            LABELS=graph.labels.ctypes.data, EDGES=0, NEXT=0, ME=begin,
        )  # fmt: skip
        for first in range(begin, end, PIECE):
            some = np.ascontiguousarray(log.read(first, min(end, first + PIECE)))
            ctypes.memmove(entered.address + 8 * words * (first - begin), some.ctypes.data, some.nbytes)
        search.fixed.function("index", 3)(control.address, 0, end - begin)
        if words == 1:
            search.fixed.function("number", 3)(control.address, 0, end - begin)
        run = _locating(words).function("locate", 3)
        for first, some in _pieces(log, graph.states):
            last = first + len(some)
            # In parts: one call of compiled code is not interrupted.
            for stop in range(first + PIECE // 16, last + PIECE // 16, PIECE // 16):
                put(LAST=min(stop, last))
                run(control.address, some.ctypes.data, first)
                graph.files.pulse()
    finally:
        for part in (table, entered, ids):
            part.close()
