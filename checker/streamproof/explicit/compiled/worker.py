"""The share of one thread in a compiled search: table, buffers and counters."""

from __future__ import annotations

from streamproof.explicit.compiled.memory import Reserve, WordBlock
from streamproof.explicit.compiled.search_kernels import RECENT_STATES
from streamproof.explicit.compiled.steps import StepCounters
from streamproof.explicit.compiled.table import StateTable
from streamproof.explicit.level_search import Budget

OUT_SPACE = 1 << 16
"""Largest number of successors of one batch."""
BATCH = 1024
"""Largest number of states of one batch."""


class Worker:
    """A table and the buffers for expanding states: alone, or one of several that share the log of `lender`."""

    def __init__(
        self,
        words: int,
        budget: Budget,
        facts: StepCounters,
        expand: int,
        *,
        me: int = 0,
        of: int = 1,
        lender: StateTable | None = None,
    ) -> None:
        degree = max(1, facts.instances)
        self.table = StateTable(words, budget, of, lender)
        self.facts = WordBlock(facts.fresh())
        self.news = WordBlock([0] * facts.instances)
        self._parts = [
            Reserve((OUT_SPACE + degree) * 8 * words + (1 << 16)),
            Reserve((OUT_SPACE + degree) * 2 + (1 << 16)),
            Reserve(BATCH * 4 + (1 << 16)),
            Reserve((OUT_SPACE + degree) * 8 + (1 << 16)),
            Reserve((OUT_SPACE + degree) * 8 + (1 << 16)),
            Reserve(RECENT_STATES * 8 * words),
        ]
        out, actions, ends, hashes, kept, recent = self._parts
        self.table.set(
            OUT=out.address,
            ACTIONS=actions.address,
            ENDS=ends.address,
            HASHES=hashes.address,
            KEPT=kept.address,
            RECENT=recent.address,
            FACTS=self.facts.address,
            EXPAND=expand,
            NEWS=self.news.address,
            BATCH=max(1, min(BATCH, OUT_SPACE // degree)),
            DEGREE=degree,
            ME=me,
        )

    @property
    def control(self) -> int:
        """Address of the control block."""
        return self.table.control.address

    @property
    def batch_room(self) -> int:
        """Largest number of successors of one batch."""
        return self.table.value("BATCH") * self.table.value("DEGREE")

    def close(self) -> None:
        """Free the memory."""
        self.table.close()
        for part in self._parts:
            part.close()
