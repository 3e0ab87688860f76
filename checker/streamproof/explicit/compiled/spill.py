"""A search that continues on disk when memory is full (delayed duplicate detection, Stern and Dill 1998).

States, predecessors and sorted runs of state keys are files. A level is expanded piece by piece; its distinct successors are
collected in memory, and written to disk whenever memory is full. At the end of the level they are merged and looked up in the
runs; those in no run are new. New states are numbered in the order of discovery, so numbers, predecessors and counts are
equal to those of the search in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from streamproof.base.options import resident_bytes
from streamproof.explicit.compiled import search_kernels
from streamproof.explicit.compiled.deduplicate import Candidates, Fill, Sizes, collecting
from streamproof.explicit.compiled.edges import fits
from streamproof.explicit.compiled.memory import give_back
from streamproof.explicit.compiled.runs import RunPart, SortedRun, joined, keys_of, merged
from streamproof.explicit.compiled.search import MOST_STATES, CompiledSearch
from streamproof.explicit.compiled.spill_file import Array, SpillFile
from streamproof.explicit.compiled.steps import StepCounters
from streamproof.explicit.compiled.stored_graph import stored_graph
from streamproof.explicit.level_search import SearchTask, Stop
from streamproof.explicit.mapped_graph import StoredGraph
from streamproof.explicit.search import starts
from streamproof.system.model import State

LEAST_ROOM = 16 << 20
"""Least memory for sorting, in bytes."""
CODE_BYTES = 32 << 20
"""Memory reserved for compiling another kernel, in bytes."""
NO_PARENT = 0xFFFFFFFF
WITH_PRODUCTS = 3
"""Memory for temporal properties, as a multiple of that of the state graph."""


class Disk:
    """The known states on disk."""

    def __init__(self, folder: Path, words: int, stride: int) -> None:
        self._stride = stride
        self._folder = folder
        self._words = words
        self.log = SpillFile(folder, np.uint64, words)
        self.parents = SpillFile(folder, np.uint32)
        self._runs: list[SortedRun] = []
        self._indexed = 0

    def _run(self) -> SortedRun:
        return SortedRun(self._folder, self._words, self._stride)

    @property
    def count(self) -> int:
        """Number of known states."""
        return self.log.count

    def append(self, states: Array, parents: Array) -> None:
        """Append new states."""
        self.log.append(states)
        self.parents.append(parents)

    def cut(self, count: int) -> None:
        """Remove all but the first `count` states."""
        self.log.cut(count)
        self.parents.cut(count)

    def pieces(self, first: int, size: int) -> Iterator[tuple[int, Array]]:
        """The states from number `first` on, in pieces of `size` states, each with the number of its first state."""
        for at in range(first, self.count, size):
            yield at, self.log.read(at, min(self.count, at + size))

    def index(self, size: int, merge: int) -> None:
        """Add the states that are in no run to runs, `size` at a time."""
        for at, states in self.pieces(self._indexed, size):
            run = self._run()
            run.append(np.sort(keys_of(states)))
            self._enter(run, at + len(states), merge)

    def fresh(self, found: Candidates, merge: int, pulse: Callable[[], None]) -> tuple[SpillFile, list[int]]:
        """The candidates that are not known; calls `pulse` repeatedly.

        Returns a file with their positions in their fill (one part of the file per fill), and their number per fill. Their
        keys form a new run; the caller must append the states.
        """
        spool = SpillFile(self._folder, np.uint32)
        counts = [0] * len(found.fills)
        size = max(16, merge // max(1, len(found.fills)))
        run = self._run()
        total = 0
        parts = [RunPart(found.keys, first, last, found.places) for first, last in found.fills]
        for keys, which, places in merged(parts, size):
            pulse()
            open_ = np.arange(len(keys))
            for known in self._runs:
                open_ = open_[~known.known(keys[open_], merge)]
            if not len(open_):
                continue
            run.append(keys[open_])
            total += len(open_)
            which, places = which[open_], places[open_]
            order = np.argsort(which, kind="stable")
            fills, starts_ = np.unique(which[order], return_index=True)
            for fill, part in zip(fills.tolist(), np.split(places[order], starts_[1:]), strict=True):
                spool.write(found.fills[fill][0] + counts[fill], part)
                counts[fill] += len(part)
        self._enter(run, self.count + total, merge)
        return spool, counts

    def _enter(self, run: SortedRun, indexed: int, merge: int) -> None:
        """Add a run, and merge it with earlier runs that are not much larger, so that the number of runs stays small."""
        self._indexed = indexed
        self._runs.append(run)
        while len(self._runs) > 1 and self._runs[-2].count < 2 * self._runs[-1].count:
            self._runs[-2:] = [joined(self._run(), self._runs[-2:], max(16, merge // 2))]


class SpillingSearch(CompiledSearch):
    """A search in memory until the memory limit, then on disk."""

    def __init__(self, task: SearchTask, folder: Path) -> None:
        super().__init__(task)
        self.folder = folder
        self._disk: Disk | None = None
        self._fill: Fill | None = None
        self._sizes = Sizes(0, 1 << 12, 0)
        self._graph: StoredGraph | None = None
        # Fail now if the folder cannot be written, not after hours.
        SpillFile(self.folder, np.uint8).close()

    # --- results ---

    @property
    def known(self) -> int:
        """Number of distinct states."""
        return super().known if self._disk is None else self._disk.count

    def state(self, number: int) -> State:
        """A scalar state by its number."""
        if self._disk is None:
            return super().state(number)
        return self.layout.unpack(self._disk.log.read(number, number + 1)[0].tolist())

    def states(self) -> Iterator[State]:
        """The scalar states, level by level."""
        if self._disk is None:
            yield from super().states()
        else:
            for _, states in self._disk.pieces(0, self._sizes.piece):
                yield from map(self.layout.unpack, states.tolist())

    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""
        if self._disk is None:
            return super().parent(number)
        found = int(self._disk.parents.read(number, number + 1)[0])
        return -1 if found == NO_PARENT else found

    def stored_graph(self) -> StoredGraph | None:
        """The state graph in files if states are on disk, or if it does not fit into memory. Raises `TooLarge`."""
        if self._disk is None and self.stopped is None and not fits(self, WITH_PRODUCTS):
            self._to_disk(self.known)
        if self._graph is None and self._disk is not None:
            if self._fill is not None:
                self._fill.close()
                self._fill = None
            give_back()
            self._graph = stored_graph(self, self._disk.log, self.folder)
        return self._graph

    # --- the search ---

    def _start(self) -> None:
        super()._start()
        if self.stopped is Stop.MEMORY and self._to_disk(0):
            self.levels, self.events = [], {}
            self._compile_watches()
            self._start_on_disk()

    def _start_on_disk(self) -> None:
        assert self._disk is not None
        for states in starts(self.scalarised, self.system):
            words = np.array(self.packed(states), dtype=np.uint64).reshape(-1, self.layout.words)
            self._disk.append(words, np.full(len(words), NO_PARENT, dtype=np.uint32))
            self.stopped = self.budget.spent() or (Stop.STATES if self.known > self.budget.max_states else None)
            if self.stopped:
                break
        self.initial = self.known
        self.levels.append(self.known)
        self._end_level()

    def _level(self) -> None:
        mark = self._marked
        super()._level()
        if self._disk is None and self.stopped is Stop.MEMORY and mark is not None and self._to_disk(mark.known):
            self._back()
            super()._level()

    def _back(self) -> None:
        """Return to the end of the last complete level."""
        assert self._disk is not None
        assert self._marked is not None
        self.restore(self._marked)
        self._disk.cut(self._marked.known)
        self.worker.table.set(NEXT=self._marked.next, LAST=self.known)

    def _abandon(self) -> None:
        if self._disk is None or self._marked is None:
            super()._abandon()
            return
        self._note_steps()
        stuck, events = self.stuck, self.events
        if stuck < 0:
            stuck = self._first(StepCounters.STUCK)
        self._back()
        # Violations and evaluation errors of kept states, and of steps from them, are kept.
        self.stuck = stuck
        self.events = {k: event for k, event in events.items() if event.state < self.known}

    def _after(self, begun: float, known: int) -> None:
        super()._after(begun, known)
        if self.stopped is Stop.MEMORY:
            if self._disk is None:
                self.worker.table.shed()
            else:
                give_back()
            self.stopped = self.budget.spent()

    def _pulse(self) -> None:
        """Called repeatedly while files are merged; raises `KeyboardInterrupt` after an interrupt or at the time limit."""
        self._report()
        if self.budget.interrupted:
            raise KeyboardInterrupt

    def _to_disk(self, count: int) -> bool:
        """Move the first `count` states to disk, and free their memory; returns False if that would not help."""
        table, words = self.worker.table, self.layout.words
        most = self.budget.max_bytes or 1 << 62
        if table.in_files:
            table.shed()
        if resident_bytes() - table.held + CODE_BYTES + LEAST_ROOM > most:
            return False
        disk = Disk(self.folder, words, self.budget.tuning.key_stride)
        for first in range(0, count, 1 << 16):
            last = min(count, first + (1 << 16))
            states = np.frombuffer(table.stored(0, first, last), dtype=np.uint64).reshape(-1, words)
            disk.append(states, np.frombuffer(table.stored(1, first, last), dtype=np.uint32))
            if table.in_files:
                table.shed()
        if count:
            del states
        # From here on the table is not used, even after an interrupt.
        self._disk = disk
        table.close()
        collecting(words)
        give_back()
        degree = table.value("DEGREE")
        self._sizes = Sizes.within(max(LEAST_ROOM, most - resident_bytes()), words)
        table.set(BATCH=max(1, min(table.value("BATCH"), self._sizes.fill // degree)), COUNT=0)
        self._fill = Fill(table, words, self._sizes.fill, self.worker.batch_room)
        self.stopped = None
        return True

    def _alone(self) -> None:
        if self._disk is None:
            super()._alone()
            return
        assert self._fill is not None
        first, last = self.worker.table.next, self.known
        self._disk.index(self._sizes.fill, self._sizes.merge)
        self._fill.clear()
        with closing(Candidates(self.folder, self.layout.words)) as found:
            self._expand(last, found)
            self._fill.write(found)
            cut = self._keep(found)
        if cut is not None:
            # The limit on states was reached at this state: its successors are the last ones counted.
            assert self._marked is not None
            self.worker.facts.fill(self._marked.facts)
            self.worker.table.set(NEXT=first)
            self._expand(cut + 1, None)
            self.stopped = Stop.MISTAKE if self.faulty >= 0 else Stop.STATES

    def _expand(self, end: int, found: Candidates | None) -> None:
        """Expand the states up to number `end` and add their successors to `found`; None: only update the counters."""
        assert self._disk is not None
        assert self._fill is not None
        table = self.worker.table
        collect = collecting(self.layout.words).function("collect", 5)
        table.set(LAST=end)
        known = self.known
        while table.next < end:
            base = table.next
            states = self._disk.log.read(base, min(end, base + self._sizes.piece))
            while table.next < base + len(states):
                begun = time.perf_counter()
                outcome = collect(table.control.address, states.ctypes.data, base, base + len(states), self._pace)
                if found is not None:
                    self._after(begun, known)
                if outcome == search_kernels.FULL:
                    if found is None:
                        self._fill.clear()
                    else:
                        self._fill.write(found)
                elif outcome == search_kernels.STOPPED:
                    self.stopped = Stop.MISTAKE
                    return
                if self.stopped and found is not None:
                    return

    def _keep(self, found: Candidates) -> int | None:
        """Append the new states, in the order of discovery.

        If they exceed the limit on states, returns the number of the state whose successors reach it; these are the last
        ones kept.
        """
        assert self._disk is not None
        most = min(self.budget.max_states, MOST_STATES)
        cut: int | None = None
        news = np.zeros(len(self.system.instances), dtype=np.int64)
        spool, counts = self._disk.fresh(found, self._sizes.merge, self._pulse)
        with closing(spool):
            for (first, last), count in zip(found.fills, counts, strict=True):
                places = np.sort(spool.read(first, first + count)).astype(np.int64) + first
                for at in range(first, last, self._sizes.piece):
                    end = min(last, at + self._sizes.piece)
                    rows = places[np.searchsorted(places, at) : np.searchsorted(places, end)] - at
                    if not len(rows):
                        continue
                    parents = found.parents.read(at, end)[rows]
                    if cut is None and self.known + len(rows) > most:
                        cut = int(parents[most - self.known])
                    if cut is not None:
                        rows = rows[: np.searchsorted(parents, cut, side="right")]
                        parents = parents[: len(rows)]
                    self._disk.append(found.states.read(at, end)[rows], parents)
                    news += np.bincount(found.labels.read(at, end)[rows], minlength=len(news))
        for instance, count in enumerate(news.tolist()):
            self.worker.news[instance] += count
        return cut

    def _blocks(self, first: int) -> Iterator[tuple[int, int, int]]:
        if self._disk is None:
            yield from super()._blocks(first)
        else:
            for at, states in self._disk.pieces(first, self._sizes.piece):
                yield states.ctypes.data, at, len(states)
