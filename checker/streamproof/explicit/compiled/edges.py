"""The second pass: every step between the known states, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from streamproof.explicit.compiled import kernels
from streamproof.explicit.compiled.memory import Block, Reserve
from streamproof.explicit.compiled.native import build
from streamproof.explicit.compiled.steps import Facts, conditions_code, expand_code
from streamproof.explicit.compiled.table import fixed_code
from streamproof.explicit.compiled.worker import Worker
from streamproof.explicit.graph import StateGraph
from streamproof.system.errors import TooLarge
from streamproof.system.expr import Expr

if TYPE_CHECKING:
    from streamproof.explicit.compiled.search import CompiledSearch

CHUNK = 1 << 16
"""States whose conditions are evaluated at once."""


class Numbering:
    """From the numbers of a search to dense ones, level by level and worker by worker, and back."""

    def __init__(self, search: CompiledSearch) -> None:
        self._threads = search.threads
        ends = np.array([[0] * search.threads, *search.ends, [w.table.count for w in search.workers]], dtype=np.int64)
        counts = np.diff(ends, axis=0)
        self._firsts = ends[:-1]
        """For each level and worker, the worker's own number of its first state there."""
        self._bases = (np.cumsum(counts.ravel()) - counts.ravel()).reshape(counts.shape)
        """For each level and worker, the dense number of that state."""
        self.blocks = [
            (worker, int(self._firsts[level, worker]), int(self._bases[level, worker]), int(counts[level, worker]))
            for level in range(len(counts))
            for worker in range(search.threads)
            if counts[level, worker]
        ]
        """Runs of states: worker, own number of the first, its dense number, and how many there are."""
        self._starts = np.array([base for _, _, base, _ in self.blocks], dtype=np.int64)

    def number(self, dense: int) -> int:
        """The search's number of a state."""
        worker, first, base, _ = self.blocks[int(np.searchsorted(self._starts, dense, side="right")) - 1]
        return (first + dense - base) * self._threads + worker

    def dense(self, number: int) -> int:
        """The dense number of a state."""
        at, worker = divmod(number, self._threads)
        level = int(np.searchsorted(self._firsts[:, worker], at, side="right")) - 1
        return int(self._bases[level, worker] + at - self._firsts[level, worker])


def state_graph(search: CompiledSearch, numbering: Numbering) -> StateGraph:
    """Expand every state that was expanded once more, and write down where its steps lead.

    Raises `TooLarge` when the steps do not fit into the memory that the search may use.
    """
    states, steps = search.known, sum(search.generated)
    needed = 8 * steps + 24 * (states + 1) + (0 if search.threads == 1 else 24 * states)
    if not search.budget.allows(needed) or states >= 1 << 31:
        raise TooLarge(
            f"the {steps:,} steps of this graph need {needed / 2**30:.1f} GiB",
            remedy="give the run more memory with --memory, or choose smaller parameters",
        )
    own = build(expand_code(search.system, search.layout, (), idle_steps=True), ["expand"], optimise=False)
    worker = search.workers[0] if search.threads == 1 else _joined(search, numbering)
    table = worker.table
    # Batches may overshoot: room for one more than there is.
    spare = worker.batch_room
    targets, labels = Reserve(4 * (steps + spare), huge=True), Reserve(4 * (steps + spare), huge=True)
    offsets = Reserve(8 * (states + 1), huge=True)
    facts = Block(Facts(len(search.system.instances), 0).fresh())
    fixed = fixed_code(search.layout.words)
    ids = None
    if search.layout.words == 1:
        ids = Reserve(16 * table.slots, huge=True)
        table.set(IDS=ids.address)
        fixed.function("number", 3)(table.control.address, 0, states)
    kept = table.control.slice(0, len(kernels.CONTROL))
    looked_at = table.next
    table.set(
        NEXT=0, LAST=looked_at, ROOM=steps + spare, EDGES=0, OFFSETS=offsets.address, TARGETS=targets.address,
        LABELS=labels.address, FACTS=facts.address, EXPAND=own.addresses["expand"],
    )  # fmt: skip
    run = fixed.function("edges", 2)
    while table.next < looked_at:
        run(table.control.address, 1 << 12)
    written = table.value("EDGES")
    for at, value in enumerate(kept):
        table.control[at] = value
    if ids is not None:
        ids.close()
    if search.threads > 1:
        worker.close()
    ends = offsets.array(np.int64, states + 1)
    ends[looked_at + 1 :] = written
    return StateGraph(
        initial=search.initial,
        offsets=ends,
        targets=targets.array(np.int32, written),
        instances=labels.array(np.int32, written),
        state=lambda dense: search.state(numbering.number(dense)),
        path=lambda dense: [numbering.dense(n) for n in search.path(numbering.number(dense))],
        evaluate=lambda conditions: evaluate(search, numbering, conditions),
        number=numbering.number,
    )


def _joined(search: CompiledSearch, numbering: Numbering) -> Worker:
    """One table with the states of all workers in their dense order."""
    words, states = search.layout.words, search.known
    one = Worker(0, 1, words, search.budget, Facts(len(search.system.instances), 0), 0)
    one.table.reserve(states, fixed_code(words))
    for worker, first, base, count in numbering.blocks:
        source = search.workers[worker].table.stored(0, first, first + count)
        one.table.stored(0, base, base + count)[:] = source
    one.table.enter(states, search.expanded + (search.faulty >= 0), fixed_code(words))
    return one


def evaluate(search: CompiledSearch, numbering: Numbering, conditions: Sequence[Expr]) -> npt.NDArray[np.bool_]:
    """Boolean terms of one state in every known state: shape (terms, states), densely numbered."""
    result = np.zeros((len(conditions), search.known), dtype=np.bool_)
    if not conditions:
        return result
    module = build(conditions_code(search.layout, conditions), ["judge"], optimise=False)
    judge = module.function("judge", 3)
    buffer = np.zeros((CHUNK, len(conditions)), dtype=np.bool_)
    for worker, first, base, count in numbering.blocks:
        for done in range(0, count, CHUNK):
            n = min(CHUNK, count - done)
            judge(search.workers[worker].table.address(first + done), n, buffer.ctypes.data)
            result[:, base + done : base + done + n] = buffer[:n].T
    return result
