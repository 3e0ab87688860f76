"""The driver of a search over many processes: in memory while levels are narrow, then level by level over files.

After the hand-over, states are divided by their hash over *partitions*; `tasks` has the work on one of them. Wide levels are
given to the processes of an `Executor`, narrow ones are done by this process with the same functions. At the end of every
level the folder has a manifest, from which the search can be resumed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np

from streamproof.base.errors import SystemFailure, TooLarge
from streamproof.base.options import either
from streamproof.base.records import replace
from streamproof.explicit.cluster import Cluster, InProcess
from streamproof.explicit.compiled.edges import fits
from streamproof.explicit.compiled.search import CompiledSearch
from streamproof.explicit.compiled.spill import WITH_PRODUCTS
from streamproof.explicit.compiled.steps import NONE, StepCounters, count_code, expand_code, module
from streamproof.explicit.compiled.stored_graph import MappedLog, mapped_files, stored_graph
from streamproof.explicit.distributed import tasks
from streamproof.explicit.distributed.divided_graph import DividedGraph, StatesInFiles
from streamproof.explicit.distributed.manifest import Manifests, Stored, StoredSegment
from streamproof.explicit.distributed.shared_folder import NUMBER, ORDER, STATE, Array, SharedFolder
from streamproof.explicit.distributed.sorted_files import (
    hashes,
    partition_of,
    positions,
    remove_sorted,
    write_sorted,
)
from streamproof.explicit.distributed.tasks import LABEL_BITS, NO_PARENT, Code, TaskPlan
from streamproof.explicit.level_search import SearchEvent, SearchTask, Snapshot, Stop
from streamproof.explicit.mapped_graph import StoredGraph, cycle_beyond_reach
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import State

T = TypeVar("T")
J = TypeVar("J")

MOST = 1 << (63 - LABEL_BITS)
"""Limit on the number of states: an order has the number of the predecessor in 48 bits."""


class _Ended(Exception):
    """A limit ends the search within a level."""

    def __init__(self, why: Stop) -> None:
        super().__init__(why)
        self.why = why


class DistributedSearch(CompiledSearch):
    """A search in memory until a level is wide or memory is full, then over the files of a shared folder."""

    def __init__(self, task: SearchTask, cluster: Cluster, version: str) -> None:
        super().__init__(task)
        self._cluster = cluster
        self._stored: Stored | None = None
        self._next = 0
        """After the hand-over: the number of the first state that is not expanded."""
        self._expands: Code | None = None
        self._watches_stored: tuple[str, Code] | None = None
        self._graph: StoredGraph | None = None
        self._divided: DividedGraph | None = None
        self._garbage: list[str] = []
        """Sorted files that are not needed after the next manifest."""
        self._folder = SharedFolder(cluster.place, self.budget.tuning.file_rows)
        self.partitions = 0
        """Number of partitions of the states, from the hand-over on."""
        self._manifests = Manifests(self, self._folder, version)
        if cluster.resume:
            partitions, mark, document = self._manifests.load()
            self._divide(partitions)
            segments = [StoredSegment(s["first"], s["count"], s["name"]) for s in document["segments"]]
            known = [tuple((run["name"], run["count"]) for run in files) for files in document["known"]]
            self._stored = Stored(segments, known)
            self.restore(mark)
            self._next = mark.next
            self._manifests.take_over(mark, self._stored)
        else:
            self._manifests.begin()

    def _divide(self, partitions: int) -> None:
        """Set the number of partitions."""
        self.partitions = partitions
        place, room, facts = self._cluster.place, self._cluster.executor.room, self._facts
        self._plan = TaskPlan(
            place, self.layout.words, facts.instances, facts.steps, partitions, room, self._folder.rows
        )

    # --- results ---

    @property
    def _most_states(self) -> int:
        return min(self.budget.options.max_states or MOST, MOST)

    @property
    def known(self) -> int:
        """Number of distinct states."""
        return super().known if self._stored is None else self._stored.count

    @property
    def expanded(self) -> int:
        """Number of states whose successors have all been computed."""
        return super().expanded if self._stored is None else self._next - (self.faulty >= 0)

    def state(self, number: int) -> State:
        """A scalar state by its number."""
        if self._stored is None:
            return super().state(number)
        return self.layout.unpack(self._row(number)[0])

    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""
        if self._stored is None:
            return super().parent(number)
        found = self._row(number)[1] >> LABEL_BITS
        return -1 if found == NO_PARENT else found

    def _row(self, number: int) -> tuple[list[int], int]:
        """The words and the order of a state."""
        assert self._stored is not None
        segment = next(s for s in self._stored.segments if s.first <= number < s.first + s.count)
        for name in segment.files(self.partitions):
            numbers, whole = self._folder.reader(name, NUMBER), self._folder.reader(name)
            for at in range(numbers.batches):
                found = numbers.batch(at)[NUMBER]
                row = positions(found, number)
                if row < len(found) and found[row] == number:
                    columns = whole.batch(at)
                    return columns[STATE][row].tolist(), int(columns[ORDER][row])
                if row < len(found):
                    break
        raise AssertionError(f"state {number} is in no file")

    def states(self) -> Iterator[State]:
        """The scalar states, level by level."""
        if self._stored is None:
            yield from super().states()
            return
        for segment in self._stored.segments:
            for _, words in heapq.merge(*map(self._numbered, segment.files(self.partitions))):
                yield self.layout.unpack(words)

    def _numbered(self, name: str) -> Iterator[tuple[int, list[int]]]:
        for columns in self._folder.reader(name, STATE, NUMBER):
            yield from zip(columns[NUMBER].tolist(), columns[STATE].tolist(), strict=True)

    def ever_true(self, conditions: Sequence[Expr]) -> list[bool]:
        """For each condition, whether it is true in at least one known state."""
        if self._stored is None:
            return super().ever_true(conditions)
        open_ = [k for k, c in enumerate(conditions) if c is not b.TRUE and c is not b.FALSE]
        counts = self._counted([conditions[k] for k in open_], [self.known])[0] if open_ else []
        met = {k for k, count in zip(open_, counts, strict=True) if count}
        return [condition is b.TRUE or k in met for k, condition in enumerate(conditions)]

    def count(self, condition: Expr) -> tuple[int, ...]:
        """The number of known states of each level in which a condition is true."""
        if self._stored is None:
            return super().count(condition)
        return tuple(counts[0] for counts in self._counted([condition], list(accumulate(self.levels))))

    def _counted(self, conditions: Sequence[Expr], ends: Sequence[int]) -> list[list[int]]:
        """For each range of numbers that ends before one of `ends`, the number of states in which each condition is true."""
        assert self._stored is not None
        text = module(count_code(self.layout, conditions))
        code = tasks.stored_code(self._folder, text, ["count"])
        files = zip(*(segment.files(self.partitions) for segment in self._stored.segments), strict=True)
        jobs = [tasks.Count(code, len(conditions), tuple(names), tuple(ends)) for names in files]
        found = self._all(tasks.count, jobs, wide=self.known >= self.budget.tuning.wide_level)
        return [[sum(column) for column in zip(*parts, strict=True)] for parts in zip(*found, strict=True)]

    def divided_graph(self) -> DividedGraph | None:
        """The state graph in the files of all processes if states are in files, or if it does not fit into memory."""
        if self._stored is None and self.stopped is None and self._marked is not None and not fits(self, WITH_PRODUCTS):
            self._hand_over(self._marked)
            self._next = self.known
        if self._stored is None or self.stopped is not None:
            return None
        if self._divided is None:
            files = tuple(zip(*(segment.files(self.partitions) for segment in self._stored.segments), strict=True))
            counts = tuple(sum(count for _, count in runs) for runs in self._stored.known)
            code = module(expand_code(self.system, self.layout, (), idle_steps=True))
            states = StatesInFiles(self._plan, self.layout, files, counts, sum(self.generated), self.initial, code)
            executor = self._cluster.executor
            if self.known < self.budget.tuning.wide_level:
                executor = InProcess(self.partitions)
            self._divided = DividedGraph(states, executor, f"{self._manifests.run}/graph")
        return self._divided

    def stored_graph(self) -> StoredGraph | None:
        """The state graph in files of this process if states are in files, or if it does not fit into memory. Raises
        `TooLarge`."""
        self.divided_graph()
        if self._stored is None or self._graph is not None:
            return self._graph
        place = self._cluster.place
        if "://" in place:
            raise TooLarge(
                f"it maps files, and the states are at {place}",
                remedy=either("name a folder that is mounted here", "check the property without --master"),
            )
        files = mapped_files(self.budget, Path(place))
        states = files.array(np.uint64, self.known * self.layout.words).reshape(-1, self.layout.words)
        for segment in self._stored.segments:
            for name in segment.files(self.partitions):
                for columns in self._folder.reader(name, STATE, NUMBER):
                    states[columns[NUMBER].astype(np.int64)] = columns[STATE]
                    files.pulse()
        self._graph = stored_graph(self, MappedLog(states), Path(place))
        return self._graph

    def cycle(self) -> tuple[list[int], bool] | None:
        """As in memory; the processes find out whether there is a cycle, and this one where."""
        divided = self.divided_graph()
        if divided is not None and not divided.has_cycle(len(self.system.instances)):
            return None
        if divided is None:
            return super().cycle()
        with cycle_beyond_reach("cycle"):
            found = super().cycle()
        assert found is not None, "both find the same cycles"
        return found

    # --- the search ---

    def _start(self) -> None:
        super()._start()
        if self.stopped is Stop.MEMORY:
            self._too_small()

    def _too_small(self) -> NoReturn:
        raise TooLarge("the initial states do not fit into memory", remedy="raise --memory")

    def _level(self) -> None:
        if self._stored is None and self.levels[-1] < self.budget.tuning.wide_level:
            mark = self._marked
            super()._level()
            if self.stopped is not Stop.MEMORY or mark is None:
                return
            # The level is begun again over files.
            self.restore(mark)
            self.worker.table.set(NEXT=mark.next, LAST=mark.known)
            self._hand_over(mark)
            self.stopped = None
        mark = self._marked
        assert mark is not None
        if self._stored is None:
            self._hand_over(mark)
        try:
            self._level_in_files(mark)
        except SystemFailure:
            self._manifests.expect_ours()
            raise
        except (_Ended, KeyboardInterrupt) as end:
            self.restore(mark)
            self._next = mark.next
            self.stopped = end.why if isinstance(end, _Ended) else Stop.INTERRUPTED

    def _abandon(self) -> None:
        if self._stored is None:
            super()._abandon()

    def _pulse(self) -> None:
        self._report()
        spent = self.budget.spent()
        if spent in (Stop.INTERRUPTED, Stop.TIME):
            raise _Ended(spent)

    def _all(self, work: Callable[[TaskPlan, J], T], jobs: Sequence[J], *, wide: bool) -> list[T]:
        """The results of a task for all jobs."""
        executor = self._cluster.executor if wide else InProcess(self.partitions)
        return executor.run(partial(work, self._plan), jobs, self._pulse)

    def _hand_over(self, mark: Snapshot) -> None:
        """Write the states in memory to files, and free their memory."""
        self._divide(self._cluster.executor.partitions)
        table, words, parts = self.worker.table, self.layout.words, self.partitions
        folder = f"{self._manifests.run}/level-0"
        self._folder.make(folder)
        states = np.frombuffer(table.stored(0, 0, mark.known), dtype=np.uint64).reshape(-1, words)
        parents = np.frombuffer(table.stored(1, 0, mark.known), dtype=np.uint32)
        # Memory may be nearly full: besides two bytes a state, only the states of one partition are copied.
        pieces = _pieces(states, self._folder.rows)
        owners = np.concatenate([partition_of(hashes(piece), parts).astype(np.uint16) for piece in pieces])
        known: list[tuple[tuple[str, int], ...]] = []
        for part in range(parts):
            rows = np.flatnonzero(owners == part)
            chunks = (
                {STATE: states[at], ORDER: _orders(parents[at]), NUMBER: at.astype(np.uint64)}
                for at in _pieces(rows, self._folder.rows)
            )
            self._folder.write(f"{folder}/states-{part}", chunks, words)
            name, own = f"{folder}/known-{part}", states[rows]
            write_sorted(self._folder, name, [own[np.argsort(hashes(own))]], words)
            known.append(((name, len(rows)),))
            del own, chunks
        del states, parents, pieces
        self._stored = Stored([StoredSegment(0, mark.known, f"{folder}/states")], known)
        self._next = mark.next
        table.close()
        self._manifests.write(mark, self._stored)

    def _level_in_files(self, mark: Snapshot) -> None:
        """Expand every state of the newest level."""
        assert self._stored is not None
        first, known, number = self._next, self.known, len(self.levels)
        wide = known - first >= self.budget.tuning.wide_level // 4
        folder = f"{self._manifests.run}/level-{number}"
        self._folder.make(folder)
        self.levels.append(0)
        expanded = self._expand(first, None, f"{folder}/out", wide)
        faulty = min(found.facts[StepCounters.FAULTY] for found in expanded)
        until = None
        if faulty != NONE:
            # The states before the first evaluation error, and that state up to it, are all that is expanded.
            until = faulty + 1
            facts = self._expand(first, until, None, wide)
        else:
            facts = expanded
        parts = range(self.partitions)
        sources = [source for found in expanded for source in found.files]
        names = tuple(name for name, _ in sources)
        received = self._all(
            tasks.receive,
            [
                tasks.Receive(
                    part, names, sum(counts[part] for _, counts in sources), self._stored.known[part],
                    first, known, until, f"{folder}/{part}",
                )
                for part in parts
            ],
            wide=wide,
        )  # fmt: skip
        new = sum(found.count for found in received)
        wanted = self._most_states if known + new > self._most_states else None
        ranked, pieces = self._rank(received, folder, wanted, wide)
        if wanted is not None:
            # The limit is reached at this state: its successors are the last ones.
            cut = next(found.order for found in ranked if found.order is not None)
            until = (cut >> LABEL_BITS) + 1
            facts = self._expand(first, until, None, wide)
            self.stopped = Stop.STATES
        watch = self._watch_stored()
        settled = self._all(
            tasks.settle,
            [
                tasks.Settle(
                    pieces[part], (known, known + new), until, watch, len(self._watched), f"{folder}/states-{part}"
                )
                for part in parts
            ],
            wide=wide,
        )
        self._enter(received, facts, settled, until)
        temporary = [*names, *(found.name for found in ranked), *(p.name for r in received for p in r.pieces)]
        self._folder.remove(temporary)
        if self.stopped is None and self.levels[-1:] != [0]:
            self._marked = self._mark()
            self._manifests.write(self._marked, self._stored)
            remove_sorted(self._folder, self._garbage)
            self._garbage = []
        elif self.levels[-1] == 0:
            self.levels.pop()

    def _expand(self, first: int, until: int | None, out: str | None, wide: bool) -> list[tasks.ExpandedStates]:
        """Expand the states from number `first` on."""
        assert self._stored is not None
        if self._expands is None:
            text = module(self._expand_code())
            self._expands = tasks.stored_code(self._folder, text, ["expand"])
        rows = (self.known - first) // self.partitions
        newest = [s.files(self.partitions) for s in self._stored.segments if s.first + s.count > first]
        jobs = [
            tasks.Expand(self._expands, files, rows, first, until, out and f"{out}-{part}")
            for part, files in enumerate(zip(*newest, strict=True))
        ]
        return self._all(tasks.expand, jobs, wide=wide)

    def _rank(
        self, received: Sequence[tasks.Received], folder: str, wanted: int | None, wide: bool
    ) -> tuple[list[tasks.RankedStates], list[tuple[tuple[str, int, tuple[tuple[str, int], ...]], ...]]]:
        """Number the new states; also the pieces of each partition, with the places of their numbers."""
        ranges = self.partitions
        every = [piece for found in received for piece in found.pieces]
        bounds = [(0, *piece.ends) for piece in every]
        sizes = [sum(bound[r + 1] - bound[r] for bound in bounds) for r in range(ranges)]
        bases = list(accumulate(sizes, initial=self.known))
        jobs = [
            tasks.Rank(
                tuple((piece.name, bound[r], bound[r + 1]) for piece, bound in zip(every, bounds, strict=True)),
                bases[r], wanted, f"{folder}/numbers-{r}",
            )
            for r in range(ranges)
        ]  # fmt: skip
        ranked = self._all(tasks.rank, jobs, wide=wide)
        place = {piece.name: at for at, piece in enumerate(every)}
        return ranked, [
            tuple(
                (piece.name, piece.ends[-1], tuple((found.name, place[piece.name]) for found in ranked))
                for piece in found_.pieces
            )
            for found_ in received
        ]

    def _watch_stored(self) -> Code | None:
        """The code for the properties of single states that are undecided."""
        text = self._watch_code()
        if not text:
            return None
        if self._watches_stored is None or self._watches_stored[0] != text:
            self._watches_stored = text, tasks.stored_code(self._folder, module(text), ["watch"])
        return self._watches_stored[1]

    def _enter(
        self,
        received: Sequence[tasks.Received],
        expanded: Sequence[tasks.ExpandedStates],
        settled: Sequence[tasks.Settled],
        until: int | None,
    ) -> None:
        """Add the results of a level to those of the search."""
        assert self._stored is not None
        known, count = self.known, sum(found.count for found in settled)
        before = self.worker.facts.slice(0, self._facts.size)
        self.worker.facts.fill(self._facts.merged([before, *(found.facts for found in expanded)]))
        news = self._news(settled) if until is not None else [found.news for found in received]
        for instance, more in enumerate(map(sum, zip(*news, strict=True))):
            self.worker.news[instance] += more
        dropped = [set(self._stored.known[part]) - set(found.known) for part, found in enumerate(received)]
        self._garbage += [name for files in dropped for name, _ in files]
        segments = [*self._stored.segments]
        if count:
            segments.append(StoredSegment(known, count, settled[0].name.removesuffix("-0")))
        self._stored = Stored(segments, [found.known for found in received])
        self._next = known if until is None else until
        self.levels[-1] = count
        if self.faulty >= 0:
            self.stopped = Stop.MISTAKE
        if self.stuck < 0:
            self.stuck = self._first(StepCounters.STUCK)
        self._note_steps()
        mistakes: dict[int, SearchEvent] = {}
        for at, prop in enumerate(self._watched):
            for place, events in ((2 * at, self.events), (2 * at + 1, mistakes)):
                hit = min((found.hits[place] for found in settled), default=NONE)
                if hit != NONE:
                    events.setdefault(prop, SearchEvent(hit, None, events is mistakes))
        self._settle(mistakes)

    def _news(self, settled: Sequence[tasks.Settled]) -> list[list[int]]:
        """The number of new states of each instance, in files that leave out some of those received."""
        found = np.zeros(self._facts.instances, dtype=np.int64)
        for part in settled:
            for columns in self._folder.reader(part.name, ORDER):
                labels = columns[ORDER] & np.uint64((1 << LABEL_BITS) - 1)
                found += np.bincount(labels.astype(np.int64), minlength=len(found))
        return [found.tolist()]

    def _mark(self) -> Snapshot:
        found = super()._mark()
        return found if self._stored is None else replace(found, next=self._next)

    def _evaluate_level(self) -> None:
        if self._stored is None:
            super()._evaluate_level()


def _orders(parents: Array) -> Array:
    """The orders of states with these predecessors in the search in memory, which does not record instances."""
    wide = parents.astype(np.uint64)
    wide[parents == 0xFFFFFFFF] = NO_PARENT
    return wide << np.uint64(LABEL_BITS)


def _pieces(rows: Array, most: int) -> Iterator[Array]:
    for at in range(0, len(rows), most):
        yield rows[at : at + most]
