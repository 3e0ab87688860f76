"""The second pass: every step between the known states, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from streamproof.explicit.compiled import kernels
from streamproof.explicit.compiled.ahead import MOST, Ahead
from streamproof.explicit.compiled.memory import Block, Reserve
from streamproof.explicit.compiled.native import build
from streamproof.explicit.compiled.steps import conditions_code, module
from streamproof.explicit.graph import StateGraph
from streamproof.system.errors import TooLarge
from streamproof.system.expr import Expr

if TYPE_CHECKING:
    from streamproof.explicit.compiled.search import CompiledSearch

CHUNK = 1 << 16
"""States whose conditions are evaluated at once."""


def state_graph(search: CompiledSearch) -> StateGraph:
    """Expand every state that was expanded once more, and write down where its steps lead.

    Raises `TooLarge` when the steps do not fit into the memory that the search may use.
    """
    states, steps = search.known, sum(search.generated)
    needed = 6 * steps + 24 * (states + 1)
    if not search.budget.allows(needed) or states >= 1 << 31:
        raise TooLarge(
            f"the {steps:,} steps of this graph need {needed / 2**30:.1f} GiB",
            remedy="give the run more memory with --memory, or choose smaller parameters",
        )
    own, noted = search.every_step()
    worker, table, fixed = search.worker, search.worker.table, search.fixed
    if not table.value("CAPACITY"):
        table.enter_again(fixed)
    # Batches may overshoot: room for one more than there is.
    spare = worker.batch_room
    targets, labels = Reserve(4 * (steps + spare), huge=True), Reserve(2 * (steps + spare), huge=True)
    offsets = Reserve(8 * (states + 1), huge=True)
    facts = Block(noted.fresh())
    ids = None
    if search.layout.words == 1:
        ids = Reserve(4 * table.slots, huge=True)
        table.set(IDS=ids.address)
        fixed.function("number", 3)(table.control.address, 0, states)
    kept = table.control.slice(0, len(kernels.CONTROL))
    looked_at = table.next
    table.set(
        NEXT=0, LAST=looked_at, ROOM=steps + spare, EDGES=0, OFFSETS=offsets.address, TARGETS=targets.address,
        LABELS=labels.address, FACTS=facts.address, EXPAND=own.addresses["expand"],
    )  # fmt: skip
    run = fixed.function("edges", 2)

    def coming() -> list[tuple[int, int]]:
        """Where the next steps go."""
        begun = table.value("EDGES")
        return [(targets.address, min(4 * steps, 4 * begun + MOST)), (labels.address, min(2 * steps, 2 * begun + MOST))]

    ahead = Ahead(coming, search.budget) if search.threads > 1 else None
    try:
        while table.next < looked_at:
            run(table.control.address, 1 << 12)
    finally:
        if ahead is not None:
            ahead.stop()
    written = table.value("EDGES")
    for at, value in enumerate(kept):
        table.control[at] = value
    if ids is not None:
        ids.close()
    ends = offsets.array(np.int64, states + 1)
    ends[looked_at + 1 :] = written
    return StateGraph(
        initial=search.initial,
        offsets=ends,
        targets=targets.array(np.int32, written),
        instances=labels.array(np.uint16, written),
        state=search.state,
        path=search.path,
        evaluate=lambda conditions: evaluate(search, conditions),
    )


def evaluate(search: CompiledSearch, conditions: Sequence[Expr]) -> npt.NDArray[np.bool_]:
    """Boolean terms of one state in every known state: shape (terms, states)."""
    result = np.zeros((len(conditions), search.known), dtype=np.bool_)
    if not conditions:
        return result
    judge = build(module(conditions_code(search.layout, conditions)), ["judge"], optimise=False).function("judge", 3)
    buffer = np.zeros((CHUNK, len(conditions)), dtype=np.bool_)
    for first in range(0, search.known, CHUNK):
        n = min(CHUNK, search.known - first)
        judge(search.worker.table.address(first), n, buffer.ctypes.data)
        result[:, first : first + n] = buffer[:n].T
    return result
