"""The work on one partition, or one range of numbers, of a level: functions that any process may run, and run again.

All that they exchange are files in a shared folder; arguments and replies are small. A level takes four of them, each for all
partitions before the next begins:

``expand``
    Writes the successors of the partition's states, grouped by the partition that each belongs to.
``receive``
    Keeps of all successors that belong to the partition those that are not known, each with its least order: the number of
    its predecessor and the instance that leads to it.
``rank``
    Numbers the new states of all partitions whose predecessors are in a range, in their order. So states have the same
    numbers, predecessors and counts as in a search in memory.
``settle``
    Writes the new states of the partition, ascending by number, and evaluates properties in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from streamproof.base.errors import SystemFailure
from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass
from streamproof.explicit.compiled import search_kernels
from streamproof.explicit.compiled.deduplicate import Fill, Sizes, collecting
from streamproof.explicit.compiled.memory import WordBlock, Worker
from streamproof.explicit.compiled.steps import NONE, StepCounters
from streamproof.explicit.distributed.shared_folder import NUMBER, ORDER, STATE, Array, SharedFolder
from streamproof.explicit.distributed.sorted_files import (
    SortedFile,
    bounds_of,
    distinct,
    hashes,
    merge_sorted,
    partition_of,
    positions,
    remove_sorted,
    write_sorted,
)
from streamproof.explicit.level_search import Budget
from streamproof.explicit.native_code import Module, build

LABEL_BITS = 16
"""Bits of an order that name the instance; the others are the number of the predecessor."""
NO_PARENT = (1 << (64 - LABEL_BITS)) - 1
"""The predecessor in the order of an initial state."""
BATCHES = 1 << 12
"""Number of batches per call of compiled code."""
SPREAD, LEAST = 8, 1 << 14
"""Number of distinct successors of a state for which there is memory at once, and number for a small level."""
_ROW = 4
"""Memory of a task, as a multiple of the rows that it holds."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What all tasks of a search have in common. `room`: memory of a task, in bytes; `rows`: of a batch in a file."""

    place: str
    words: int
    instances: int
    steps: int
    partitions: int
    room: int
    rows: int

    @property
    def facts(self) -> StepCounters:
        """The layout of counters."""
        return StepCounters(self.instances, self.steps)

    @property
    def folder(self) -> SharedFolder:
        """The folder of the search."""
        return SharedFolder(self.place, self.rows)

    def windows(self, rows: int) -> int:
        """The number of passes in which a task with this number of rows stays within its memory."""
        return max(1, -(-rows * _ROW * (8 * self.words + 24) // self.room))


@dataclass(frozen=True, slots=True)
class Code:
    """Compiled code as a file of the folder, with the digest of its text, which is compiled only if it fits."""

    name: str
    digest: str
    functions: tuple[str, ...]

    def load(self, plan: TaskPlan) -> Module:
        """The compiled functions."""
        return _loaded(plan.place, self)


@lru_cache(maxsize=4)
def _loaded(place: str, code: Code) -> Module:
    text = SharedFolder(place).get(code.name)
    if sha256(text).hexdigest() != code.digest:
        raise SystemFailure(f"{place}/{code.name} was changed", remedy="start the search again in an empty folder")
    return build(text.decode(), code.functions, optimise=False)


def stored_code(folder: SharedFolder, text: str, functions: Sequence[str]) -> Code:
    """Writes code for all processes."""
    digest = sha256(text.encode()).hexdigest()
    name = f"code-{digest[:16]}.ll"
    folder.put(name, text.encode())
    return Code(name, digest, tuple(functions))


# --- expand ---


@dataclass(frozen=True, slots=True)
class Expand:
    """The states of a partition from number `first` on, about `rows`; with `until`, up to that number. `out`: the beginning
    of the names of the files of successors; None: only the counters are wanted."""

    code: Code
    files: tuple[str, ...]
    rows: int
    first: int
    until: int | None
    out: str | None


@dataclass(frozen=True, slots=True)
class ExpandedStates:
    """The counters, and the files with their numbers of successors for each partition."""

    facts: tuple[int, ...]
    files: tuple[tuple[str, tuple[int, ...]], ...]


def expand(plan: TaskPlan, job: Expand) -> ExpandedStates:
    """Writes the successors of a partition's states; stops at an evaluation error of the model."""
    return _PartitionExpansion(plan, job).run()


class _PartitionExpansion:
    def __init__(self, plan: TaskPlan, job: Expand) -> None:
        self._plan, self._job, self._folder = plan, job, plan.folder
        self._facts = plan.facts
        budget = Budget(SearchOptions(memory=max(plan.room, 1 << 24)))
        module = job.code.load(plan)
        self._worker = Worker(plan.words, budget, self._facts, module.addresses["expand"])
        table = self._table = self._worker.table
        table.close()
        # Memory for many more successors than there are costs the time to clear it.
        size = max(1, min(Sizes.within(plan.room, plan.words).fill, SPREAD * job.rows + LEAST))
        table.set(BATCH=max(1, min(table.value("BATCH"), size // table.value("DEGREE"))), COUNT=0)
        self._fill = Fill(table, plan.words, size, self._worker.batch_room)
        self._collect = collecting(plan.words).function("collect", 5)
        self._files: list[tuple[str, tuple[int, ...]]] = []
        self._numbers: list[Array] = []
        """The numbers of the states whose successors are in memory."""
        self._base = 0
        """The row of the first of them."""

    def run(self) -> ExpandedStates:
        try:
            rows = 0
            hits: dict[int, int] = {}
            for states, numbers in self._states():
                before = self._worker.facts.all()
                self._numbers.append(numbers)
                whole = self._piece(states, rows)
                self._note(before, numbers, rows, hits)
                rows += len(states)
                if not whole:
                    break
            self._flush(rows)
        finally:
            self._fill.close()
            self._worker.close()
        facts = self._worker.facts.slice(0, self._facts.size)
        for place, number in hits.items():
            facts[place] = number
        return ExpandedStates(tuple(facts), tuple(self._files))

    def _states(self) -> Iterator[tuple[Array, Array]]:
        for name in self._job.files:
            for columns in self._folder.reader(name, STATE, NUMBER):
                numbers = columns[NUMBER]
                begin = positions(numbers, self._job.first)
                end = len(numbers) if self._job.until is None else positions(numbers, self._job.until)
                if begin < end:
                    yield np.ascontiguousarray(columns[STATE][begin:end]), numbers[begin:end]

    def _piece(self, states: Array, rows: int) -> bool:
        """Expand states, the first being row `rows`; returns False at an evaluation error of the model."""
        end = rows + len(states)
        while self._table.next < end:
            outcome = self._collect(self._table.control.address, states.ctypes.data, rows, end, BATCHES)
            if outcome == search_kernels.STOPPED:
                return False
            if outcome == search_kernels.FULL:
                self._flush(rows)
                self._fill.clear()
        return True

    def _note(self, before: Sequence[int], numbers: Array, rows: int, hits: dict[int, int]) -> None:
        """The numbers of the states in the counters that this piece has set; they have rows there."""
        places = (StepCounters.STUCK, StepCounters.FAULTY, *range(self._facts.hit(0), self._facts.size, 2))
        for place in places:
            if before[place] == NONE and self._worker.facts[place] != NONE:
                hits[place] = int(numbers[self._worker.facts[place] - rows])

    def _flush(self, rows: int) -> None:
        """Write the successors in memory. Those that come later have predecessors from row `rows` on."""
        count = self._table.count
        if count and self._job.out is not None:
            states, parents, labels = self._fill.rows()
            known = np.concatenate(self._numbers)
            orders = (known[parents.astype(np.int64) - self._base] << np.uint64(LABEL_BITS)) | labels
            found = hashes(states)
            index = np.argsort(found)
            owners = partition_of(found[index], self._plan.partitions)
            ends = np.searchsorted(owners, np.arange(self._plan.partitions + 1, dtype=np.uint64)).tolist()
            name = f"{self._job.out}-{len(self._files)}"
            parts = ({STATE: states[index[a:b]], ORDER: orders[index[a:b]]} for a, b in pairwise(ends))
            self._folder.write(name, parts, self._plan.words)
            self._files.append((name, tuple(b - a for a, b in pairwise(ends))))
        while len(self._numbers) > 1 and self._base + len(self._numbers[0]) <= rows:
            self._base += len(self._numbers.pop(0))


# --- receive ---


@dataclass(frozen=True, slots=True)
class Receive:
    """The successors that belong to a partition, in the batch of its number of each of `sources`, and the files with its
    known states. The predecessors are numbered from `first` to `last`; with `until`, successors of later ones are left
    out."""

    partition: int
    sources: tuple[str, ...]
    rows: int
    known: tuple[tuple[str, int], ...]
    first: int
    last: int
    until: int | None
    out: str


@dataclass(frozen=True, slots=True)
class NewStates:
    """A file of new states, ascending by order; `ends` bound the rows whose predecessors are in each range."""

    name: str
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Received:
    """The new states, how many of each instance, and the files with the known states from now on."""

    pieces: tuple[NewStates, ...]
    news: tuple[int, ...]
    known: tuple[tuple[str, int], ...]

    @property
    def count(self) -> int:
        """Number of new states."""
        return sum(piece.ends[-1] for piece in self.pieces)


def ranges_of(first: int, last: int, parts: int) -> list[int]:
    """The bounds of `parts` ranges of the numbers from `first` to `last`."""
    return [first + (last - first) * k // parts for k in range(parts + 1)]


def receive(plan: TaskPlan, job: Receive) -> Received:
    """Keeps the successors that are not known."""
    folder = plan.folder
    readers = [folder.reader(name) for name in job.sources]
    known = [SortedFile(folder, name) for name, _ in job.known]
    bounds = ranges_of(job.first, job.last, plan.partitions)
    pieces: list[NewStates] = []
    news = np.zeros(plan.instances, dtype=np.int64)

    def fresh() -> Iterator[Array]:
        for number, (least, end) in enumerate(bounds_of(job.partition, plan.partitions, plan.windows(job.rows))):
            states, orders = _between(plan, readers, job, least, end)
            states, orders, found = distinct(states, orders)
            for file in known:
                new = ~file.known(states, found)
                states, orders, found = states[new], orders[new], found[new]
            if len(states):
                yield states
                index = np.argsort(orders)
                orders = orders[index]
                name = f"{job.out}-new-{number}"
                parts = ({STATE: states[i], ORDER: o} for i, o in _batched(plan.rows, index, orders))
                folder.write(name, parts, plan.words)
                cuts = [positions(orders, bound << LABEL_BITS) for bound in bounds[1:-1]]
                pieces.append(NewStates(name, (*cuts, len(orders))))
                news[:] += np.bincount(orders & np.uint64((1 << LABEL_BITS) - 1), minlength=len(news))[: len(news)]

    name = f"{job.out}-known"
    count = write_sorted(folder, name, fresh(), plan.words)
    files = [*job.known, (name, count)] if count else [*job.known]
    # Files that are not much larger are merged, so that their number grows with the logarithm of the number of states.
    while len(files) > 1 and files[-2][1] < 2 * files[-1][1]:
        both, size = files[-2:], files[-2][1] + files[-1][1]
        merged = f"{job.out}-merged-{len(files)}"
        windows = bounds_of(job.partition, plan.partitions, plan.windows(size))
        merge_sorted(folder, merged, [file for file, _ in both], plan.words, windows)
        files[-2:] = [(merged, size)]
        remove_sorted(folder, [file for file, _ in both if file.startswith(f"{job.out}-")])
    return Received(tuple(pieces), tuple(news.tolist()), tuple(files))


def _batched(rows: int, *arrays: Array) -> Iterator[tuple[Array, ...]]:
    for at in range(0, len(arrays[0]), rows):
        yield tuple(array[at : at + rows] for array in arrays)


def _between(plan: TaskPlan, readers: Sequence[Any], job: Receive, least: int, end: int) -> tuple[Array, Array]:
    """The received successors whose hashes are in a range, with their orders."""
    states, orders = [np.empty((0, plan.words), dtype=np.uint64)], [np.empty(0, dtype=np.uint64)]
    for reader in readers:
        columns = reader.batch(job.partition)
        found = hashes(columns[STATE])
        chosen = slice(positions(found, least), positions(found, end))
        some, order = columns[STATE][chosen], columns[ORDER][chosen]
        if job.until is not None:
            early = order < np.uint64(job.until << LABEL_BITS)
            some, order = some[early], order[early]
        states.append(some)
        orders.append(order)
    return np.concatenate(states), np.concatenate(orders)


# --- rank ---


@dataclass(frozen=True, slots=True)
class Rank:
    """The new states whose predecessors are in a range: rows of pieces, which get the numbers from `base` on. `wanted`: a
    number whose order is wanted."""

    rows: tuple[tuple[str, int, int], ...]
    base: int
    wanted: int | None
    out: str


@dataclass(frozen=True, slots=True)
class RankedStates:
    """A file with the numbers of the rows, a batch for each piece; and the order of the number that was wanted."""

    name: str
    order: int | None


def rank(plan: TaskPlan, job: Rank) -> RankedStates:
    """Numbers new states in their order."""
    folder = plan.folder
    parts = [_rows(folder, name, first, last, ORDER)[ORDER] for name, first, last in job.rows]
    orders = np.concatenate([np.empty(0, dtype=np.uint64), *parts])
    index = np.argsort(orders, kind="stable")
    numbers = np.empty(len(orders), dtype=np.uint64)
    numbers[index] = np.arange(job.base, job.base + len(orders), dtype=np.uint64)
    ends = list(accumulate((len(part) for part in parts), initial=0))
    folder.write(job.out, ({NUMBER: numbers[a:b]} for a, b in pairwise(ends)), plan.words)
    at = -1 if job.wanted is None else job.wanted - job.base
    return RankedStates(job.out, int(orders[index[at]]) if 0 <= at < len(orders) else None)


def _rows(folder: SharedFolder, name: str, first: int, last: int, *columns: str) -> dict[str, Array]:
    """Some columns of the rows from `first` to `last` of a file."""
    found: dict[str, list[Array]] = {column: [] for column in columns}
    reader, at = folder.reader(name, *columns), 0
    for number in range(reader.batches):
        if at >= last:
            break
        some = reader.batch(number)
        size = len(some[columns[0]])
        if at + size > first:
            for column in columns:
                found[column].append(some[column][max(0, first - at) : last - at])
        at += size
    return {column: np.concatenate(parts) if parts else np.empty(0, np.uint64) for column, parts in found.items()}


# --- settle ---


@dataclass(frozen=True, slots=True)
class Settle:
    """The new states of a partition: each piece with its number of rows and its place in the files of numbers, one for each
    range. With `until`, those of later predecessors are left out. `watch`: code that looks for states that decide `watches`
    properties."""

    pieces: tuple[tuple[str, int, tuple[tuple[str, int], ...]], ...]
    numbers: tuple[int, int]
    until: int | None
    watch: Code | None
    watches: int
    out: str


@dataclass(frozen=True, slots=True)
class Settled:
    """The file of states, their number, and the first state of each hit, or `NONE`."""

    name: str
    count: int
    hits: tuple[int, ...]


def settle(plan: TaskPlan, job: Settle) -> Settled:
    """Writes the new states of a partition by number, and evaluates properties in them."""
    folder = plan.folder
    hits = [NONE] * (2 * job.watches)
    look = None if job.watch is None else job.watch.load(plan).function("watch", 3)
    rows = sum(count for _, count, _ in job.pieces)
    numbers = [_numbers(folder, places) for _, _, places in job.pieces]
    bounds = ranges_of(*job.numbers, plan.windows(rows))

    def parts() -> Iterator[dict[str, Array]]:
        for least, end in pairwise(bounds):
            columns = _settled(folder, job, numbers, least, end)
            if columns is None:
                continue
            index = np.argsort(columns[NUMBER], kind="stable")
            for (chosen,) in _batched(plan.rows, index):
                part = {name: np.ascontiguousarray(column[chosen]) for name, column in columns.items()}
                if look is not None:
                    notes = WordBlock([NONE] * len(hits))
                    look(part[STATE].ctypes.data, len(chosen), notes.address)
                    for place in range(len(hits)):
                        if hits[place] == NONE and notes[place] != NONE:
                            hits[place] = int(part[NUMBER][notes[place]])
                yield part

    count = folder.write(job.out, parts(), plan.words)
    return Settled(job.out, count, tuple(hits))


def _numbers(folder: SharedFolder, places: Sequence[tuple[str, int]]) -> Array:
    """The numbers of the rows of a piece."""
    return np.concatenate([folder.reader(name).batch(batch)[NUMBER] for name, batch in places])


def _settled(
    folder: SharedFolder, job: Settle, numbers: Sequence[Array], least: int, end: int
) -> dict[str, Array] | None:
    """The rows of all pieces whose numbers are in a range, with their numbers."""
    found: list[dict[str, Array]] = []
    for (name, _, _), known in zip(job.pieces, numbers, strict=True):
        first, last = positions(known, least), positions(known, end)
        if first < last:
            columns = {**_rows(folder, name, first, last, STATE, ORDER), NUMBER: known[first:last]}
            if job.until is not None:
                early = columns[ORDER] < np.uint64(job.until << LABEL_BITS)
                columns = {key: column[early] for key, column in columns.items()}
            found.append(columns)
    if not found:
        return None
    return {key: np.concatenate([columns[key] for columns in found]) for key in (STATE, ORDER, NUMBER)}


# --- passes over all states ---


@dataclass(frozen=True, slots=True)
class Count:
    """Conditions to be counted in files of states, in ranges of numbers that end before each of `ends`."""

    code: Code
    conditions: int
    files: tuple[str, ...]
    ends: tuple[int, ...]


def count(plan: TaskPlan, job: Count) -> list[list[int]]:
    """For each range, the number of states in which each condition is true."""
    run = job.code.load(plan).function("count", 3)
    totals = [WordBlock([0] * job.conditions) for _ in job.ends]
    for name in job.files:
        for columns in plan.folder.reader(name, STATE, NUMBER):
            states, numbers = np.ascontiguousarray(columns[STATE]), columns[NUMBER]
            places = [0, *(positions(numbers, end) for end in job.ends)]
            for total, (first, last) in zip(totals, pairwise(places), strict=True):
                if first < last:
                    run(states[first:].ctypes.data, last - first, total.address)
    return [total.slice(0, job.conditions) for total in totals]
