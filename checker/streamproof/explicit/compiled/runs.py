"""Sorted runs of states on disk: which of some candidates are known already, in one pass over what may hold them.

A state's key is its word, or for wide states its words as one string of bytes, the last of which is never zero (NumPy takes
zeros at the end of a string for padding). Any order will do as long as equal states are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamproof.explicit.compiled.spill_file import Array, SpillFile
from streamproof.system.records import dataclass

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


class SortedRun:
    """Different keys in ascending order."""

    def __init__(self, folder: Path, words: int) -> None:
        self._keys = SpillFile(folder, key_kind(words))
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


@dataclass(frozen=True, slots=True)
class RunPart:
    """A sorted part of a file, and a file with a number for each of its keys, by default their positions."""

    keys: SpillFile | SortedRun
    first: int
    last: int
    notes: SpillFile | None = None


class _Cursor:
    """A part that is being read from its beginning to its end."""

    def __init__(self, part: RunPart) -> None:
        self._part = part
        self._next = part.first
        self._keys: Array = np.empty(0)
        self._notes: Array = np.empty(0)

    @property
    def bound(self) -> Any:
        """The last key that was read, when there are more in the file; else None."""
        return self._keys[-1] if self._next < self._part.last else None

    def load(self, size: int) -> bool:
        """Read on when nothing is left of what was read; False at the end."""
        if not len(self._keys) and self._next < self._part.last:
            first, last = self._next, min(self._part.last, self._next + size)
            notes = self._part.notes
            self._keys = self._part.keys.read(first, last)
            self._notes = np.arange(first, last) if notes is None else notes.read(first, last)
            self._next = last
        return len(self._keys) > 0

    def take(self, bound: Any) -> tuple[Array, Array]:
        """What was read up to the bound, which is not read again."""
        count = len(self._keys) if bound is None else int(np.searchsorted(self._keys, bound, side="right"))
        taken = self._keys[:count], self._notes[:count]
        self._keys, self._notes = self._keys[count:], self._notes[count:]
        return taken


def merged(parts: Sequence[RunPart], size: int) -> Iterator[tuple[Array, Array, Array]]:
    """The keys of some parts in ascending order, each once.

    Gives pieces: keys, the number of the part that each is from (the first of those that have it), and its note; `size`
    keys of each part are in memory.
    """
    cursors = [_Cursor(part) for part in parts]
    while busy := [(k, cursor) for k, cursor in enumerate(cursors) if cursor.load(size)]:
        bound = min((c.bound for _, c in busy if c.bound is not None), default=None)
        taken = [(k, *cursor.take(bound)) for k, cursor in busy]
        keys = np.concatenate([part for _, part, _ in taken])
        which = np.repeat(np.array([k for k, _, _ in taken]), [len(part) for _, part, _ in taken])
        notes = np.concatenate([numbers for _, _, numbers in taken])
        if len(busy) > 1:
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            first = np.ones(len(keys), dtype=np.bool_)
            first[1:] = keys[1:] != keys[:-1]
            order = order[first]
            keys, which, notes = keys[first], which[order], notes[order]
        yield keys, which, notes


def joined(folder: Path, words: int, runs: Sequence[SortedRun], size: int) -> SortedRun:
    """One run with the keys of all of them, which are closed."""
    result = SortedRun(folder, words)
    for keys, _, _ in merged([RunPart(run, 0, run.count) for run in runs], size):
        result.append(keys)
    for run in runs:
        run.close()
    return result
