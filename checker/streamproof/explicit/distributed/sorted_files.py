"""The known states of a partition: files of states sorted by their hashes, for delayed duplicate detection.

The whole state is compared: a hash only says where a state is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from streamproof.explicit.distributed.shared_folder import STATE, Array, FileReader, SharedFolder

_FENCES = ".fences"
"""Ending of the file with the first hash of each batch."""


def hashes(states: Array) -> Array:
    """A hash of 64 bits of each state, given as rows of words; for one word a bijection (the mixer of SplitMix64)."""
    found = _mixed(states[:, 0])
    for word in range(1, states.shape[1]):
        found = _mixed(found ^ states[:, word])
    return found


def _mixed(x: Array) -> Array:
    x = x ^ (x >> np.uint64(30))
    x = x * np.uint64(0xBF58476D1CE4E5B9)
    x = x ^ (x >> np.uint64(27))
    x = x * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed


def partition_of(found: Array, partitions: int) -> Array:
    """The partition of each hash; larger hashes have no smaller partition."""
    owners: Array = ((found >> np.uint64(32)) * np.uint64(partitions)) >> np.uint64(32)
    return owners


def bounds_of(partition: int, partitions: int, windows: int) -> list[tuple[int, int]]:
    """The hashes of a partition, cut into `windows` ranges: of each the least hash, and the first one behind it."""
    least = [(-(-(part << 32) // partitions)) << 32 for part in (partition, partition + 1)]
    steps = [least[0] + (least[1] - least[0]) * k // windows for k in range(windows + 1)]
    return [(a, b) for a, b in pairwise(steps) if a < b]


def positions(values: Array, bound: int) -> int:
    """The number of ascending values below a bound, which may be 2^64."""
    return len(values) if bound >> 64 else int(np.searchsorted(values, np.uint64(bound)))


def write_sorted(folder: SharedFolder, name: str, parts: Iterable[Array], words: int) -> int:
    """Write states that are ascending by hash, within and between `parts`, and the first hash of each batch."""
    fences: list[Array] = []

    def batches() -> Iterator[dict[str, Array]]:
        for states in parts:
            found = hashes(states)
            at = 0
            while at < len(states):
                end = min(len(states), at + folder.rows)
                # States of one hash are in one batch: parts have no hash in common.
                while end < len(states) and found[end] == found[end - 1]:
                    end += 1
                fences.append(found[at : at + 1])
                yield {STATE: states[at:end]}
                at = end

    rows = folder.write(name, batches(), words)
    folder.put(name + _FENCES, np.concatenate(fences).tobytes() if fences else b"")
    return rows


def sorted_names(name: str) -> tuple[str, str]:
    """The names of the two files of a sorted file."""
    return name, name + _FENCES


def remove_sorted(folder: SharedFolder, names: Iterable[str]) -> None:
    """Delete sorted files."""
    folder.remove(chain.from_iterable(map(sorted_names, names)))


class SortedFile:
    """Such a file, to be looked up in."""

    def __init__(self, folder: SharedFolder, name: str) -> None:
        self._reader: FileReader = folder.reader(name)
        self._fences = np.frombuffer(folder.get(name + _FENCES), dtype=np.uint64)

    def between(self, least: int, end: int) -> Iterator[Array]:
        """The states whose hashes are in a range, in their order."""
        first = max(0, int(np.searchsorted(self._fences, np.uint64(least), side="right")) - 1)
        for at in range(first, positions(self._fences, end)):
            states = self._reader.batch(at)[STATE]
            found = hashes(states)
            yield states[positions(found, least) : positions(found, end)]

    def known(self, states: Array, found: Array) -> Array:
        """For each of some states, ascending by their hashes `found`, whether it is in the file."""
        answer = np.zeros(len(states), dtype=np.bool_)
        if not len(self._fences) or not len(states):
            return answer
        blocks = np.searchsorted(self._fences, found, side="right") - 1
        starts = np.flatnonzero(np.diff(blocks, prepend=-2))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(blocks)], strict=True):
            if blocks[start] < 0:
                continue
            there = self._reader.batch(int(blocks[start]))[STATE]
            answer[start:end] = _contained(states[start:end], found[start:end], there)
        return answer


def _contained(states: Array, found: Array, there: Array) -> Array:
    """Which states are among those of a batch, both ascending by hash."""
    contained: Array = found_at(states, found, there, hashes(there)) >= 0
    return contained


def found_at(states: Array, found: Array, there: Array, theirs: Array) -> Array:
    """The position of each state, with its hash in `found`, among others, which are ascending by their hashes; or -1."""
    at = np.searchsorted(theirs, found)
    answer = np.full(len(states), -1, dtype=np.int64)
    open_ = np.arange(len(states))
    # Several states may have one hash: those that differ from the first with their hash look at the next.
    while len(open_):
        open_ = open_[at[open_] < len(there)]
        open_ = open_[theirs[at[open_]] == found[open_]]
        same = (there[at[open_]] == states[open_]).all(axis=1)
        answer[open_[same]] = at[open_[same]]
        open_ = open_[~same]
        at[open_] += 1
    return answer


def distinct(states: Array, orders: Array) -> tuple[Array, Array, Array]:
    """The distinct ones of some states, each with the least of its orders, ascending by hash; and their hashes.

    The states are best given as parts that are ascending by hash: a stable sort merges them.
    """
    found = hashes(states)
    index = np.argsort(found, kind="stable")
    states, orders, found = states[index], orders[index], found[index]
    if not len(found):
        return states, orders, found
    new = np.concatenate(([True], found[1:] != found[:-1]))
    if ((states[1:] != states[:-1]).any(axis=1) & ~new[1:]).any():
        # Different states of one hash: only the whole state brings equal ones together.
        index = np.lexsort((*(states[:, word] for word in range(states.shape[1])), found))
        states, orders, found = states[index], orders[index], found[index]
        new = np.concatenate(([True], (states[1:] != states[:-1]).any(axis=1)))
    firsts = np.flatnonzero(new)
    return states[firsts], np.minimum.reduceat(orders, firsts), found[firsts]


def merge_sorted(
    folder: SharedFolder, name: str, files: Sequence[str], words: int, ranges: Sequence[tuple[int, int]]
) -> int:
    """One file with the states of several, which have none in common; reads the hashes of one of `ranges` at a time."""
    opened = [SortedFile(folder, file) for file in files]

    def parts() -> Iterator[Array]:
        for least, end in ranges:
            found = [states for file in opened for states in file.between(least, end)]
            if found:
                states: Any = np.concatenate(found)
                yield states[np.argsort(hashes(states), kind="stable")]

    return write_sorted(folder, name, parts(), words)
