"""Sorted runs of states on disk: which of some candidates are known already, in one pass over what may hold them.

A state's key is its word, or for wide states its words as one string of bytes, the last of which is never zero (NumPy takes
zeros at the end of a string for padding). Any order will do as long as equal states are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from streamproof.explicit.compiled.spool import Array, Spool

STRIDE = 4096
"""Of every so many keys one is kept in memory, to know where to look."""
NEAR = 4
"""Blocks of so many strides apart or less are read in one go."""


def key_kind(words: int) -> np.dtype[Any]:
    """The kind of the keys of states of so many words."""
    return np.dtype(np.uint64) if words == 1 else np.dtype(f"S{8 * words + 1}")


def keys_of(states: Array) -> Array:
    """The keys of some states, whose words are the rows."""
    count, words = states.shape
    if words == 1:
        return states.reshape(count)
    text = np.empty((count, 8 * words + 1), dtype=np.uint8)
    text[:, :-1] = states.astype(">u8").view(np.uint8)
    text[:, -1] = 1
    return text.view(key_kind(words)).reshape(count)


class Run:
    """Different keys in ascending order."""

    def __init__(self, folder: Path, words: int) -> None:
        self._keys = Spool(folder, key_kind(words))
        self._parts: list[Array] = []
        self._fences: Array | None = None

    @property
    def count(self) -> int:
        """How many keys there are."""
        return self._keys.count

    def append(self, keys: Array) -> None:
        """Add sorted keys, larger than those before."""
        self._parts.append(keys[-self.count % STRIDE :: STRIDE].copy())
        self._keys.append(keys)
        self._fences = None

    def read(self, first: int, last: int) -> Array:
        """The keys from position `first` to `last`."""
        return self._keys.read(first, last)

    def known(self, keys: Array, most: int) -> Array:
        """For each of some sorted keys, whether it is in the run; reads `most` keys at a time, a few strides at least."""
        result = np.zeros(len(keys), dtype=np.bool_)
        if not self.count or not len(keys):
            return result
        if self._fences is None:
            self._parts = [np.concatenate(self._parts)]
            (self._fences,) = self._parts
        blocks = np.searchsorted(self._fences, keys, side="right") - 1
        first = int(np.searchsorted(blocks, 0))
        while first < len(keys):
            # As far as the next block to be read is near, and not too much has to be read.
            start = int(blocks[first])
            last = int(np.searchsorted(blocks, start + max(NEAR, most // STRIDE), side="left"))
            gaps = np.flatnonzero(np.diff(blocks[first:last]) > NEAR)
            last = first + int(gaps[0]) + 1 if len(gaps) else last
            there = self.read(start * STRIDE, min(self.count, (int(blocks[last - 1]) + 1) * STRIDE))
            wanted = keys[first:last]
            at = np.searchsorted(there, wanted)
            at[at == len(there)] = 0
            result[first:last] = there[at] == wanted
            first = last
        return result

    def close(self) -> None:
        """Give the space back."""
        self._keys.close()


@dataclass
class _Cursor:
    """A sorted part of a file that is being read from its beginning to its end."""

    keys: Spool | Run
    next: int
    end: int
    base: int = 0
    ahead: Array | None = None

    def load(self, size: int) -> None:
        """Read on when nothing is left of what was read."""
        if (self.ahead is None or not len(self.ahead)) and self.next < self.end:
            last = min(self.end, self.next + size)
            self.base, self.ahead, self.next = self.next, self.keys.read(self.next, last), last

    def take(self, bound: Any) -> tuple[int, Array]:
        """What was read up to the bound, and where it lies in the file."""
        assert self.ahead is not None
        count = len(self.ahead) if bound is None else int(np.searchsorted(self.ahead, bound, side="right"))
        base, taken = self.base, self.ahead[:count]
        self.base, self.ahead = base + count, self.ahead[count:]
        return base, taken


def merged(parts: Sequence[tuple[Spool | Run, int, int]], size: int) -> Iterator[tuple[Array, Array, Array]]:
    """The keys of some sorted parts of files (file, first, last) in ascending order, each once.

    Gives pieces of keys, from which part each is (the first of those that have it) and its position in the file; `size`
    keys of each part are in memory.
    """
    cursors = [_Cursor(keys, first, last) for keys, first, last in parts]
    while True:
        for cursor in cursors:
            cursor.load(size)
        busy = [(k, c) for k, c in enumerate(cursors) if c.ahead is not None and len(c.ahead)]
        if not busy:
            return
        unread = [c.ahead[-1] for _, c in busy if c.ahead is not None and c.next < c.end]
        bound = min(unread, default=None)
        taken = [(k, *cursor.take(bound)) for k, cursor in busy]
        keys = np.concatenate([part for _, _, part in taken])
        which = np.repeat(np.array([k for k, _, _ in taken]), [len(part) for _, _, part in taken])
        places = np.concatenate([np.arange(base, base + len(part)) for _, base, part in taken])
        if len(busy) > 1:
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            first = np.ones(len(keys), dtype=np.bool_)
            first[1:] = keys[1:] != keys[:-1]
            order = order[first]
            keys, which, places = keys[first], which[order], places[order]
        yield keys, which, places


def joined(folder: Path, words: int, runs: Sequence[Run], size: int) -> Run:
    """One run with the keys of all of them, which are closed."""
    result = Run(folder, words)
    for keys, _, _ in merged([(run, 0, run.count) for run in runs], size):
        result.append(keys)
    for run in runs:
        run.close()
    return result
