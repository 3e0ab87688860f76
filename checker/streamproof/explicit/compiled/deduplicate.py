"""The distinct successors of a part of a level, in the order of discovery: in memory until it is full, then on disk.

Successors known before the level are removed later (`runs`).
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamproof.base.records import dataclass
from streamproof.explicit.compiled import search_kernels
from streamproof.explicit.compiled.memory import LOAD, SLACK, Reserve, StateTable
from streamproof.explicit.compiled.runs import key_kind, keys_of
from streamproof.explicit.compiled.spill_file import Array, SpillFile
from streamproof.explicit.kernel_compiler import translate
from streamproof.explicit.native_code import Module, build

if TYPE_CHECKING:
    from streamproof.explicit.compiled.search_kernels import _hash, _home, _prefetch_compared, _put
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
    WORDS = LOW = NONE = AHEAD = FAULTY = 0
    TABLE = CAPACITY = LOG = COUNT = NEXT = ROOM = OUT = ACTIONS = ENDS = FACTS = EXPAND = BATCH = DEGREE = HASHES = 0
    LABELS = 0


def collect(c: words, states: words, base: word, end: word, batches: word) -> word:
    """Expand `batches` batches of the states up to number `end`; `states` has the states from number `base` on.

    Each successor is stored once, with its predecessor and, in ``LABELS``, its instance. Returns 1 if the next batch may not
    fit, 2 at an evaluation error of the model, else 0.
    """
    out = words_at(c[OUT])
    actions = shorts_at(c[ACTIONS])
    ends = halves_at(c[ENDS])
    facts = words_at(c[FACTS])
    hashes = words_at(c[HASHES])
    labels = shorts_at(c[LABELS])
    table = words_at(c[TABLE])
    capacity = c[CAPACITY]
    while batches > 0 and c[NEXT] < end:
        batches -= 1
        first = c[NEXT]
        count = c[COUNT]
        n = end - first
        n = c[BATCH] if n > c[BATCH] else n
        if count + n * c[DEGREE] > c[ROOM]:
            return 1
        source = address(states, (first - base) * WORDS)
        done = invoke(c[EXPAND], source, n, first, c[OUT], c[ACTIONS], c[ENDS], c[FACTS])
        total = ends[done - 1]
        for i in range(total):
            hashes[i] = _hash(out, i * WORDS)
        for i in range(AHEAD):
            prefetch(table, _home(hashes[i], capacity))
        i = 0
        for s in range(done):
            last = ends[s]
            while i < last:
                prefetch(table, _home(hashes[i + AHEAD], capacity))
                if WORDS > 1:
                    _prefetch_compared(c, hashes[i + AHEAD // 2])
                if _put(c, hashes[i], out, i * WORDS, first + s, count):
                    labels[count] = actions[i]
                    count += 1
                i += 1
        c[COUNT] = count
        c[NEXT] = first + done
        if facts[FAULTY] != NONE:
            return 2
    return 0


@cache
def collecting(words_of_state: int) -> Module:
    """`collect` for states of `words_of_state` words."""
    inlined = [kernel for kernel in search_kernels.KERNELS if kernel.__name__.startswith("_")]
    return build(translate([*inlined, collect], search_kernels.constants(words_of_state)), ["collect"], optimise=True)


class Candidates:
    """The successors of a level on disk: in each *fill*, distinct states in the order of discovery.

    Besides the states, each fill has their keys in ascending order, each with the position of its state.
    """

    def __init__(self, folder: Path, words_of_state: int) -> None:
        self.states = SpillFile(folder, np.uint64, words_of_state)
        self.parents = SpillFile(folder, np.uint32)
        self.labels = SpillFile(folder, np.uint16)
        self.keys = SpillFile(folder, key_kind(words_of_state))
        self.places = SpillFile(folder, np.uint32)
        self.fills: list[tuple[int, int]] = []
        """Bounds of each fill."""

    def close(self) -> None:
        """Free the disk space."""
        for spool in (self.states, self.parents, self.labels, self.keys, self.places):
            spool.close()


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of work units, in states, chosen to stay within the memory limit."""

    fill: int
    """Number of successors in memory before they are written to disk."""
    piece: int
    """Number of states that are read, expanded or checked at a time."""
    merge: int
    """Number of keys merged at a time."""

    @staticmethod
    def within(room: int, words_of_state: int) -> Sizes:
        """The sizes for `room` bytes of memory."""
        key = 8 * words_of_state + (words_of_state > 1)
        fill = 8 * words_of_state + 6 + int(8 / LOAD) + 12 + 2 * key
        merge = 5 * key + 60
        return Sizes(
            fill=int(0.6 * room) // fill,
            piece=min(1 << 16, max(64, room // 40 // (16 * words_of_state))),
            merge=min(1 << 21, int(0.2 * room) // merge),
        )


class Fill:
    """Memory for successors. It replaces the table in the control block of a worker."""

    def __init__(self, table: StateTable, words_of_state: int, states: int, batch_room: int) -> None:
        self._table = table
        self._words = words_of_state
        most = states + batch_room
        capacity = int(most / LOAD) + 1
        self._bytes = 8 * (capacity + SLACK)
        self._entries = Reserve(self._bytes, huge=True)
        self._log = Reserve(8 * words_of_state * most)
        self._parents = Reserve(4 * most)
        self._labels = Reserve(2 * most)
        table.set(
            TABLE=self._entries.address,
            CAPACITY=capacity,
            LOG=self._log.address,
            PARENTS=self._parents.address,
            LABELS=self._labels.address,
            COUNT=0,
            ROOM=most,
        )

    def clear(self) -> None:
        """Remove all states."""
        if self._table.count:
            ctypes.memset(self._entries.address, 0, self._bytes)
        self._table.set(COUNT=0)

    def rows(self) -> tuple[Array, Array, Array]:
        """The states, as rows of words, their predecessors and instances: views that end with the next change."""
        count = self._table.count
        states: Array = self._log.array(np.uint64, count * self._words).reshape(count, self._words)
        return states, self._parents.array(np.uint32, count), self._labels.array(np.uint16, count)

    def write(self, to: Candidates) -> None:
        """Move all states to disk."""
        count = self._table.count
        if not count:
            return
        states, parents, labels = self.rows()
        first = to.states.count
        to.states.append(states)
        to.parents.append(parents)
        to.labels.append(labels)
        keys = keys_of(states)
        order = np.argsort(keys)
        to.keys.append(keys[order])
        to.places.append(order.astype(np.uint32))
        to.fills.append((first, first + count))
        self.clear()

    def close(self) -> None:
        """Free the memory."""
        for part in (self._entries, self._log, self._parents, self._labels):
            part.close()
