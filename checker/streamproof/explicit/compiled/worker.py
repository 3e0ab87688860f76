"""One thread's share of a compiled search: its table, its buffers, and what it has counted and met."""

from __future__ import annotations

from streamproof.explicit.compiled.kernels import RECENT_STATES
from streamproof.explicit.compiled.memory import Block, Reserve
from streamproof.explicit.compiled.steps import NONE, Facts
from streamproof.explicit.compiled.table import Table
from streamproof.explicit.limits import Budget

OUT_SPACE = 1 << 16
"""Successors of one batch, at most."""
BATCH = 1024
BOX_SPACE = 1 << 18
"""Successors that wait for another worker, at most."""


class Worker:
    """The states whose hash falls into its share, all of them when it is alone."""

    def __init__(self, me: int, workers: int, words: int, budget: Budget, facts: Facts, expand: int) -> None:
        self._places = facts
        degree = max(1, facts.instances)
        self.table = Table(words, budget, workers)
        self.facts = Block(facts.fresh())
        self.news = Block([0] * facts.instances)
        largest = OUT_SPACE + degree if workers == 1 else max(OUT_SPACE + degree, BOX_SPACE)
        self._parts = [
            Reserve((OUT_SPACE + degree) * 8 * words + (1 << 16)),
            Reserve((OUT_SPACE + degree) * 2 + (1 << 16)),
            Reserve(BATCH * 4 + (1 << 16)),
            Reserve(largest * 8 + (1 << 16)),
            Reserve((OUT_SPACE + degree) * 8 + (1 << 16)),
            Reserve(RECENT_STATES * 8 * words),
        ]
        out, actions, ends, hashes, kept, recent = self._parts
        self.boxes: Block | None = None
        if workers > 1:
            self.boxes = self._new_boxes(workers, words)
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
            BOX=BOX_SPACE,
        )

    def _new_boxes(self, workers: int, words: int) -> Block:
        """Where successors wait for each worker: as `kernels.scatter` says."""
        entries: list[int] = []
        for _ in range(workers):
            box = [Reserve(BOX_SPACE * size + (1 << 16)) for size in (8 * words, 4, 2)]
            self._parts += box
            entries += [part.address for part in box] + [0]
        return Block(entries)

    @property
    def control(self) -> int:
        """The address of the control block."""
        return self.table.control.address

    @property
    def batch_room(self) -> int:
        """The most successors of one batch."""
        return self.table.value("BATCH") * self.table.value("DEGREE")

    @property
    def generated(self) -> list[int]:
        """Successors per instance, of the states it has expanded."""
        return self.facts.slice(4, 4 + self._places.instances)

    @property
    def distinct(self) -> list[int]:
        """New states per instance, among those it keeps."""
        return self.news.slice(0, self._places.instances)

    def fact(self, at: int) -> int:
        """A fact, or -1 for `NONE`."""
        found = self.facts[at]
        return -1 if found == NONE else found

    def box(self, receiver: int) -> int:
        """The address of the box with what it has found for another worker."""
        assert self.boxes is not None
        return self.boxes.address + 8 * 4 * receiver

    def waiting(self, receiver: int) -> int:
        """How many successors are in that box."""
        assert self.boxes is not None
        return self.boxes[4 * receiver + 3]

    def close(self) -> None:
        """Give the memory back."""
        self.table.close()
        for part in self._parts:
            part.close()
