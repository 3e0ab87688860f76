"""Sorted runs of state keys on disk, for delayed duplicate detection in sequential passes.

The key of a state is its word, or for wide states its words as one byte string whose last byte is never zero (NumPy treats
trailing zeros as padding). Any order works as long as equal states are adjacent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamproof.base.options import TUNING
from streamproof.base.records import dataclass
from streamproof.explicit.compiled.spill_file import Array, SpillFile

NEAR = 4
"""Largest distance, in strides, of blocks that are read together."""


def key_kind(words: int) -> np.dtype[Any]:
    """The NumPy type of the keys of states of `words` words."""
    return np.dtype(np.uint64) if words == 1 else np.dtype(f"S{8 * words + 1}")


def keys_of(states: Array) -> Array:
    """The keys of states, given as rows of words."""
    count, words = states.shape
    if words == 1:
        return states.reshape(count)
    text = np.empty((count, 8 * words + 1), dtype=np.uint8)
    text[:, :-1] = states.astype(">u8").view(np.uint8)
    text[:, -1] = 1
    return text.view(key_kind(words)).reshape(count)


class SortedRun:
    """Distinct keys in ascending order."""

    def __init__(self, folder: Path, words: int, stride: int = TUNING.key_stride) -> None:
        """`stride`: distance between two keys of the sparse index in memory."""
        self._stride = stride
        self._keys = SpillFile(folder, key_kind(words))
        self._parts: list[Array] = []
        self._fences: Array | None = None

    @property
    def count(self) -> int:
        """Number of keys."""
        return self._keys.count

    def append(self, keys: Array) -> None:
        """Append sorted keys, larger than all present ones."""
        self._parts.append(keys[-self.count % self._stride :: self._stride].copy())
        self._keys.append(keys)
        self._fences = None

    def read(self, first: int, last: int) -> Array:
        """The keys from position `first` to `last`."""
        return self._keys.read(first, last)

    def known(self, keys: Array, most: int) -> Array:
        """For each of some sorted keys, whether it is in the run. Reads `most` keys at a time, at least a few strides."""
        result = np.zeros(len(keys), dtype=np.bool_)
        if not self.count or not len(keys):
            return result
        if self._fences is None:
            self._parts = [np.concatenate(self._parts)]
            (self._fences,) = self._parts
        blocks = np.searchsorted(self._fences, keys, side="right") - 1
        first = int(np.searchsorted(blocks, 0))
        while first < len(keys):
            # Extend the read while the next block is near and the limit is not reached.
            start = int(blocks[first])
            last = int(np.searchsorted(blocks, start + max(NEAR, most // self._stride), side="left"))
            gaps = np.flatnonzero(np.diff(blocks[first:last]) > NEAR)
            last = first + int(gaps[0]) + 1 if len(gaps) else last
            there = self.read(start * self._stride, min(self.count, (int(blocks[last - 1]) + 1) * self._stride))
            wanted = keys[first:last]
            at = np.searchsorted(there, wanted)
            at[at == len(there)] = 0
            result[first:last] = there[at] == wanted
            first = last
        return result

    def close(self) -> None:
        """Free the disk space."""
        self._keys.close()


@dataclass(frozen=True, slots=True)
class RunPart:
    """A sorted part of a file, and a file with a number for each of its keys, by default their positions."""

    keys: SpillFile | SortedRun
    first: int
    last: int
    notes: SpillFile | None = None


class _Cursor:
    """A sequential reader of a part."""

    def __init__(self, part: RunPart) -> None:
        self._part = part
        self._next = part.first
        self._keys: Array = np.empty(0)
        self._notes: Array = np.empty(0)

    @property
    def bound(self) -> Any:
        """The last buffered key if the file has more; else None."""
        return self._keys[-1] if self._next < self._part.last else None

    def load(self, size: int) -> bool:
        """Refill an empty buffer; returns False at the end of the part."""
        if not len(self._keys) and self._next < self._part.last:
            first, last = self._next, min(self._part.last, self._next + size)
            notes = self._part.notes
            self._keys = self._part.keys.read(first, last)
            self._notes = np.arange(first, last) if notes is None else notes.read(first, last)
            self._next = last
        return len(self._keys) > 0

    def take(self, bound: Any) -> tuple[Array, Array]:
        """Remove and return the buffered keys up to `bound`, with their notes."""
        count = len(self._keys) if bound is None else int(np.searchsorted(self._keys, bound, side="right"))
        taken = self._keys[:count], self._notes[:count]
        self._keys, self._notes = self._keys[count:], self._notes[count:]
        return taken


def merged(parts: Sequence[RunPart], size: int) -> Iterator[tuple[Array, Array, Array]]:
    """The distinct keys of all parts in ascending order.

    Yields pieces: keys, the number of the first part with each key, and its note. Memory: `size` keys per part.
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


def joined(result: SortedRun, runs: Sequence[SortedRun], size: int) -> SortedRun:
    """The empty run `result`, with the keys of all `runs`; closes them."""
    for keys, _, _ in merged([RunPart(run, 0, run.count) for run in runs], size):
        result.append(keys)
    for run in runs:
        run.close()
    return result
