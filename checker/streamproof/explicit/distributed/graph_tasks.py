"""The work on one partition, or one range of numbers, of the state graph: functions that any process may run, and run again.

States are in partitions by their hash. The graph is in ranges of numbers: most steps of a breadth-first numbering lead to the
same range or to one nearby. A range has the steps from its states; states of others that they lead to are *ghosts*.

``write_steps``
    Writes the successors of the partition's states, grouped by the partition that each belongs to.
``number_steps``
    Looks up the numbers of the successors that belong to the partition, grouped by the range of the state before.
``link``
    Makes the graph of a range.
``evaluate``
    Evaluates conditions in the partition's states, grouped by range, and ``gather`` collects them.
``enter``
    Writes the first words of a range's nodes (`set_search`).
``settle``
    Computes the words of a range's nodes from those of all ranges, which stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from streamproof.base.errors import SystemFailure
from streamproof.base.records import dataclass, replace
from streamproof.explicit.compiled.memory import WordBlock
from streamproof.explicit.distributed.shared_folder import NUMBER, ORDER, STATE, Array
from streamproof.explicit.distributed.sorted_files import bounds_of, found_at, hashes, partition_of, positions
from streamproof.explicit.distributed.tasks import LABEL_BITS, Code, TaskPlan
from streamproof.explicit.mapped_graph import Readers
from streamproof.explicit.set_search import IN_SET, NodeWords

VALUE = "value"
"""The column of the values of conditions."""
MOST_PAIRS = 1 << 20
"""Largest number of steps that are written at a time."""


def _cuts(ascending: Array, bounds: Sequence[int], bits: int = 0) -> list[int]:
    """The positions at which ascending numbers, with `bits` bits behind each, go from one range to the next."""
    return [0, *(positions(ascending, bound << bits) for bound in bounds[1:-1]), len(ascending)]


@dataclass(frozen=True, slots=True)
class WriteSteps:
    """All states of a partition; `out`: the beginning of the names of the files."""

    code: Code
    files: tuple[str, ...]
    out: str


def write_steps(plan: TaskPlan, job: WriteSteps) -> list[tuple[str, int]]:
    """Writes all steps of a partition's states; returns the files, with their numbers of steps."""
    folder, words, degree = plan.folder, plan.words, max(1, plan.instances)
    most = min(MOST_PAIRS, plan.room // (8 * (8 * words + 24)))
    size = max(1, most // degree)
    room = size * degree
    out, actions = np.empty((room, words), dtype=np.uint64), np.empty(room, dtype=np.uint16)
    ends = np.empty(size, dtype=np.uint32)
    facts = WordBlock(replace(plan, steps=0).facts.fresh())
    expand = job.code.load(plan).function("expand", 7)
    written: list[tuple[str, int]] = []
    held: list[tuple[Array, Array]] = []

    def flush() -> None:
        states, orders = (np.concatenate(column) for column in zip(*held, strict=True))
        held.clear()
        found = hashes(states)
        index = np.argsort(found)
        owners = partition_of(found[index], plan.partitions)
        cuts = np.searchsorted(owners, np.arange(plan.partitions + 1, dtype=np.uint64)).tolist()
        name = f"{job.out}-{len(written)}"
        parts = ({STATE: states[index[a:b]], ORDER: orders[index[a:b]]} for a, b in pairwise(cuts))
        folder.write(name, parts, words)
        written.append((name, len(orders)))

    for name in job.files:
        for columns in folder.reader(name, STATE, NUMBER):
            states, numbers = np.ascontiguousarray(columns[STATE]), columns[NUMBER]
            for at in range(0, len(states), size):
                part = states[at : at + size]
                places = (out.ctypes.data, actions.ctypes.data, ends.ctypes.data, facts.address)
                done = expand(part.ctypes.data, len(part), 0, *places)
                assert done == len(part), "every state was expanded without a mistake before"
                count, degrees = int(ends[len(part) - 1]), np.diff(ends[: len(part)], prepend=np.uint32(0))
                sources = np.repeat(numbers[at : at + len(part)], degrees)
                held.append((out[:count].copy(), (sources << np.uint64(LABEL_BITS)) | actions[:count]))
                if sum(len(orders) for _, orders in held) >= most:
                    flush()
    if held:
        flush()
    return written


@dataclass(frozen=True, slots=True)
class NumberSteps:
    """The steps to the states of a partition, about `states`, in the batch of its number of each of `sources`; `bounds` of
    the ranges."""

    partition: int
    files: tuple[str, ...]
    states: int
    sources: tuple[tuple[str, int], ...]
    bounds: tuple[int, ...]
    out: str


def number_steps(plan: TaskPlan, job: NumberSteps) -> list[str]:
    """Writes the steps to a partition's states with the numbers of these; returns the files, with a batch for each range."""
    folder = plan.folder
    written: list[str] = []
    held: list[tuple[Array, Array]] = []

    def flush() -> None:
        orders, numbers = (np.concatenate(column) for column in zip(*held, strict=True))
        held.clear()
        index = np.argsort(orders)
        orders, numbers = orders[index], numbers[index]
        parts = ({ORDER: orders[a:b], NUMBER: numbers[a:b]} for a, b in pairwise(_cuts(orders, job.bounds, LABEL_BITS)))
        written.append(f"{job.out}-{len(written)}")
        folder.write(written[-1], parts, plan.words)

    most = max(1, min(MOST_PAIRS, plan.room // 128))
    for least, end in bounds_of(job.partition, plan.partitions, plan.windows(job.states)):
        states, numbers, known = _window(plan, job.files, least, end)
        for name, _ in job.sources:
            columns = folder.reader(name).batch(job.partition)
            found = hashes(columns[STATE])
            some = slice(positions(found, least), positions(found, end))
            at = found_at(columns[STATE][some], found[some], states, known)
            assert (at >= 0).all(), "every successor is a state"
            held.append((columns[ORDER][some], numbers[at]))
            if sum(len(orders) for orders, _ in held) >= most:
                flush()
    if held:
        flush()
    return written


def _window(plan: TaskPlan, files: Sequence[str], least: int, end: int) -> tuple[Array, Array, Array]:
    """The states with a hash in a range, ascending by it, their numbers, and the hashes."""
    states, numbers = [np.empty((0, plan.words), dtype=np.uint64)], [np.empty(0, dtype=np.uint64)]
    for name in files:
        for columns in plan.folder.reader(name, STATE, NUMBER):
            found = hashes(columns[STATE])
            chosen = found >= np.uint64(least)
            if not end >> 64:
                chosen &= found < np.uint64(end)
            states.append(columns[STATE][chosen])
            numbers.append(columns[NUMBER][chosen])
    every, number = np.concatenate(states), np.concatenate(numbers)
    found = hashes(every)
    index = np.argsort(found)
    return every[index], number[index], found[index]


# --- the graph of a range ---


@dataclass(frozen=True, slots=True)
class Link:
    """The steps from the states of a range: its batch of each of `sources`."""

    range: int
    sources: tuple[str, ...]
    bounds: tuple[int, ...]
    out: str


@dataclass(frozen=True, slots=True)
class Linked:
    """The graph of a range: the files with its arrays begin with `name`. `owners`: ranges of the ghosts."""

    name: str
    steps: int
    owners: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RangeGraph:
    """The steps from the states of a range. States have the numbers from 0 on in it, and the ghosts those behind them."""

    offsets: Array
    targets: Array
    labels: Array
    ghosts: Array
    """Their numbers in the whole graph, ascending."""


_KINDS: Mapping[str, Any] = {"offsets": np.int64, "targets": np.uint32, "labels": np.uint16, "ghosts": np.uint64}


def link(plan: TaskPlan, job: Link) -> Linked:
    """Makes the graph of a range."""
    folder, first, last = plan.folder, job.bounds[job.range], job.bounds[job.range + 1]
    batches = [folder.reader(name).batch(job.range) for name in job.sources]
    orders, goals = (
        np.concatenate([np.empty(0, dtype=np.uint64), *(batch[c] for batch in batches)]) for c in (ORDER, NUMBER)
    )
    del batches
    index = np.argsort(orders)
    orders, goals = orders[index], goals[index]
    del index
    sources = (orders >> np.uint64(LABEL_BITS)).astype(np.int64) - first
    outside = (goals < np.uint64(first)) | (goals >= np.uint64(last))
    ghosts = np.unique(goals[outside])
    if last - first + len(ghosts) > 1 << 32:
        raise SystemFailure(
            "a range of the state graph has more than 2^32 states", remedy="lower --memory: smaller ranges"
        )
    targets = np.where(
        outside, np.uint64(last - first) + np.searchsorted(ghosts, goals).astype(np.uint64), goals - np.uint64(first)
    )
    graph = RangeGraph(
        np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=last - first))]).astype(np.int64),
        targets.astype(np.uint32),
        (orders & np.uint64((1 << LABEL_BITS) - 1)).astype(np.uint16),
        ghosts,
    )
    for part in _KINDS:
        folder.put(f"{job.out}-{part}", np.ascontiguousarray(getattr(graph, part)).tobytes())
    cuts = pairwise(_cuts(ghosts, job.bounds))
    return Linked(job.out, len(orders), tuple(at for at, (a, b) in enumerate(cuts) if a < b))


# --- conditions ---


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Conditions to be evaluated in the states of a partition."""

    code: Code
    conditions: int
    files: tuple[str, ...]
    bounds: tuple[int, ...]
    out: str


def evaluate(plan: TaskPlan, job: Evaluate) -> list[list[int]]:
    """Writes the numbers of states with the values of conditions, one bit each; for each range, the batches."""
    judge = job.code.load(plan).function("judge", 3)
    weights = np.uint16(1) << np.arange(job.conditions, dtype=np.uint16)
    places: list[list[int]] = [[] for _ in job.bounds[1:]]

    def parts() -> Iterator[dict[str, Array]]:
        batch = 0
        for name in job.files:
            for columns in plan.folder.reader(name, STATE, NUMBER):
                states, numbers = np.ascontiguousarray(columns[STATE]), columns[NUMBER]
                values = np.zeros((len(states), job.conditions), dtype=np.bool_)
                judge(states.ctypes.data, len(states), values.ctypes.data)
                for at, (a, b) in enumerate(pairwise(_cuts(numbers, job.bounds))):
                    if a < b:
                        places[at].append(batch)
                        batch += 1
                        yield {NUMBER: numbers[a:b], VALUE: values[a:b] @ weights}

    plan.folder.write(job.out, parts(), plan.words)
    return places


@dataclass(frozen=True, slots=True)
class Gather:
    """The batches of each file with the values of a range's states."""

    first: int
    last: int
    sources: tuple[tuple[str, tuple[int, ...]], ...]
    out: str


def gather(plan: TaskPlan, job: Gather) -> str:
    """Writes the values of a range's states, in their order."""
    found = np.zeros(job.last - job.first, dtype=np.uint16)
    for name, batches in job.sources:
        reader = plan.folder.reader(name)
        for batch in batches:
            columns = reader.batch(batch)
            found[(columns[NUMBER] - np.uint64(job.first)).astype(np.int64)] = columns[VALUE]
    plan.folder.put(job.out, found.tobytes())
    return job.out


# --- sets of nodes ---


@dataclass(frozen=True, slots=True)
class Enter:
    """The nodes of a range that readers read. `inside`: a file with words of a set, and for each reader its place there, or
    -1: the nodes of the set get bit 0."""

    valuations: str
    readers: Readers
    inside: tuple[str, tuple[int, ...]] | None
    out: str


def enter(plan: TaskPlan, job: Enter) -> str:
    """Writes the first words of a range's nodes."""
    valuations = plan.folder.array(job.valuations, np.uint16)
    words = np.where(job.readers.reads[:, valuations], np.uint64(IN_SET), np.uint64(0))
    if job.inside is not None:
        name, places = job.inside
        marks = plan.folder.array(name, np.uint64).reshape(-1, len(valuations))
        for reader, place in enumerate(places):
            if place >= 0:
                words[reader] |= np.where((words[reader] != 0) & (marks[place] != 0), np.uint64(1), np.uint64(0))
    plan.folder.put(job.out, words.tobytes())
    return job.out


@dataclass(frozen=True, slots=True)
class SettleNodes:
    """The words of a range's nodes, to be computed once from those of all ranges. `values`: further words of the control
    block; with `prune`, nodes that do not meet all obligations are removed then."""

    range: int
    graph: str
    valuations: str
    readers: Readers
    words: tuple[str, ...]
    bounds: tuple[int, ...]
    owners: Array
    accepts: Array
    values: tuple[tuple[str, int], ...]
    prune: bool
    out: str


@dataclass(frozen=True, slots=True)
class SettledWords:
    """The file with the words; whether they changed; how many nodes were removed, and whether some are left."""

    name: str
    changed: bool
    removed: int
    left: bool


def settle(plan: TaskPlan, job: SettleNodes) -> SettledWords:
    """Computes the words of a range's nodes until nothing in it changes."""
    folder, count = plan.folder, len(job.readers.after)
    graph = RangeGraph(*(folder.array(f"{job.graph}-{part}", kind) for part, kind in _KINDS.items()))
    own = job.bounds[job.range + 1] - job.bounds[job.range]
    before = folder.array(job.words[job.range], np.uint64).reshape(count, own)
    marks = np.zeros((count, own + len(graph.ghosts)), dtype=np.uint64)
    marks[:, :own] = before
    for at, (a, b) in enumerate(pairwise(_cuts(graph.ghosts, job.bounds))):
        if a < b:
            theirs = folder.array(job.words[at], np.uint64).reshape(count, -1)
            marks[:, own + a : own + b] = theirs[:, (graph.ghosts[a:b] - np.uint64(job.bounds[at])).astype(np.int64)]
    readers = replace(job.readers, valuations=folder.array(job.valuations, np.uint16))
    nodes = NodeWords(graph, readers, marks.reshape(-1), own, lambda: None)
    control = nodes.settle(job.owners, job.accepts, **dict(job.values))
    removed = nodes.prune(control) if job.prune else nodes.removed(control)
    after = np.ascontiguousarray(marks[:, :own])
    changed = not np.array_equal(before, after)
    if changed:
        folder.put(job.out, after.tobytes())
    return SettledWords(job.out if changed else job.words[job.range], changed, removed, bool(after.any()))
