"""Several workers on one level: each has the table for its share of the hashes, all share one log.

A level is expanded in turns; each turn is a range of consecutive states of the log, in three phases. First, every worker
expands its part of the range and distributes the successors to boxes, one per table. Second, every worker looks up the states
in the boxes for its table, in the order of the parts, and keeps the new ones. Third, the positions of the new states in the
log are known, and each worker writes its own. So states have the same order, numbers and predecessors as with one worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import Any, TypeVar

from streamproof.explicit.compiled import search_kernels
from streamproof.explicit.compiled.memory import Reserve, StateTable, WordBlock, Worker, fixed_code
from streamproof.explicit.compiled.steps import StepCounters
from streamproof.explicit.level_search import Budget

T = TypeVar("T")
R = TypeVar("R")

SLACK_BYTES = 1 << 16
PLACES = 6
"""Number of words of a box descriptor (`search_kernels.scatter`)."""


class TeamMember:
    """A worker with its boxes."""

    def __init__(self, me: int, of: int, words: int, worker: Worker, box_bytes: int) -> None:
        self.worker = worker
        self.me = me
        degree = worker.table.value("DEGREE")
        space = max(degree, box_bytes // (8 * words))
        widths = (8 * words, 4, 2, 4, 8)
        self._parts = [[Reserve(space * width + SLACK_BYTES) for width in widths] for _ in range(of)]
        self._hashes = Reserve(space * 8 + SLACK_BYTES)
        worker.table.set(HASHES=self._hashes.address)
        entries: list[int] = []
        for box in self._parts:
            entries += [part.address for part in box] + [0]
        self.boxes = WordBlock(entries)
        least = min(part.size // width for box in self._parts for part, width in zip(box, widths, strict=True))
        self.reach = max(1, (least - SLACK_BYTES // 8) // degree)
        """Number of states whose successors fit into the boxes."""
        self.before: tuple[list[int], list[int]] = ([], [])

    def box(self, receiver: int) -> int:
        """The address of the box for a table."""
        return self.boxes.address + 8 * PLACES * receiver

    def waiting(self, receiver: int) -> int:
        """Number of states in the box for a table."""
        return self.boxes[PLACES * receiver + PLACES - 1]

    def remember(self) -> None:
        """Save the counters."""
        self.before = (self.worker.facts.all(), self.worker.news.all())

    def undo(self) -> None:
        """Restore the saved counters, and empty the boxes."""
        facts, news = self.before
        self.worker.facts.fill(facts)
        self.worker.news.fill(news)
        for receiver in range(len(self._parts)):
            self.boxes[PLACES * receiver + PLACES - 1] = 0

    def close(self) -> None:
        """Give the memory back."""
        self.worker.close()
        self._hashes.close()
        for box in self._parts:
            for part in box:
                part.close()


class Workers:
    """Workers for the states in `table`; each has a share of its entries."""

    def __init__(
        self, threads: int, table: StateTable, words: int, budget: Budget, facts: StepCounters, expand: int
    ) -> None:
        self._table = table
        self._fixed = fixed_code(words, threads)
        self._degree = table.value("DEGREE")
        self.members = [
            TeamMember(
                me,
                threads,
                words,
                Worker(words, budget, facts, expand, me=me, of=threads, lender=table),
                budget.tuning.box_bytes,
            )
            for me in range(threads)
        ]
        self._pool = ThreadPoolExecutor(threads - 1)
        for name, arguments in (("scatter", 2), ("gather", 3), ("append", 3), ("share", 2), ("grow", 4)):
            self._fixed.function(name, arguments)

    def deal(self) -> bool:
        """Insert each state of the log into its table; returns False at the memory limit."""
        known = self._table.count
        self._table.forget_entries()
        share = self._fixed.function("share", 2)
        room = known // len(self.members) + known // 16 + 1024

        def enter(member: TeamMember) -> bool:
            table = member.worker.table
            if not table.make_room(room, self._fixed):
                return False
            share(member.worker.control, known)
            return table.make_room(1, self._fixed)

        return all(self._all(lambda member, _: enter(member), range(len(self.members))))

    def turn(self, most: int) -> int:
        """Expand the next states of the level in one turn. Returns a result of `search_kernels.search`.

        If the new states exceed the memory limit, or an exception is raised, the turn is undone and is the last.
        """
        table = self._table
        first, known = table.next, table.count
        size = min(table.last - first, sum(m.reach for m in self.members))
        # Close to the limit on states, one state at a time: the search ends with the first that exceeds it.
        size = max(1, min(size, (most - known) // self._degree))
        ends = [first + size * k // len(self.members) for k in range(len(self.members) + 1)]
        for member in self.members:
            member.remember()
        done = False
        try:
            outcomes = self._all(self._expand, pairwise(ends))
            faulty = next((k for k, outcome in enumerate(outcomes) if outcome == search_kernels.STOPPED), None)
            for member in self.members[faulty + 1 :] if faulty is not None else ():
                member.undo()
            if all(self._all(self._look_up, self._starts(known, by_table=True))):
                fresh = self._starts(known, by_table=False)
                self._all(self._write, fresh)
                last = first + size if faulty is None else self.members[faulty].worker.table.next
                table.set(COUNT=fresh[-1], NEXT=last)
                done = True
                return search_kernels.GOING if faulty is None and fresh[-1] <= most else search_kernels.STOPPED
            return search_kernels.FULL
        finally:
            if not done:
                self._pool.shutdown()
                for member in self.members:
                    member.undo()

    def _starts(self, known: int, *, by_table: bool) -> list[int]:
        """The first number of the states in each box, for each table or for each worker; and the end."""
        threads = range(len(self.members))
        counts = [[member.waiting(receiver) for receiver in threads] for member in self.members]
        sums = map(sum, zip(*counts, strict=True) if by_table else counts)
        return list(accumulate(sums, initial=known))

    def _all(self, work: Callable[[TeamMember, Any], Any], what: Iterable[Any]) -> list[Any]:
        """Run `work` for all workers in parallel."""
        first, *rest = zip(self.members, what, strict=False)
        others = [self._pool.submit(work, *part) for part in rest]
        return [work(*first), *(other.result() for other in others)]

    def _expand(self, member: TeamMember, part: tuple[int, int]) -> int:
        member.worker.table.set(NEXT=part[0], LAST=part[1])
        return self._fixed.function("scatter", 2)(member.worker.control, member.boxes.address)

    def _look_up(self, member: TeamMember, behind: int) -> bool:
        me, gather = member.me, self._fixed.function("gather", 3)
        if not member.worker.table.make_room(sum(m.waiting(me) for m in self.members), self._fixed):
            return False
        for other in self.members:
            behind += gather(member.worker.control, other.box(me), behind)
        return True

    def _write(self, member: TeamMember, number: int) -> int:
        return self._fixed.function("append", 3)(member.worker.control, member.boxes.address, number)

    def each(self, work: Callable[[T], R], what: Sequence[T]) -> list[R]:
        """Run `work` on all elements in parallel."""
        return list(self._pool.map(work, what))

    def close(self) -> None:
        """End the threads, and free the memory; the log stays."""
        self._pool.shutdown()
        for member in self.members:
            member.close()
