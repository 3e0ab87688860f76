"""Searches that spill early, in small pieces."""

from __future__ import annotations

import pytest

from streamproof.explicit.compiled import memory, runs
from streamproof.explicit.compiled.deduplicate import Sizes
from streamproof.explicit.compiled.spill import SpillingSearch


class Spilling:
    """Makes searches spill early, in small pieces, and counts those that did."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        self._patch = monkeypatch
        to_disk = SpillingSearch._to_disk

        def counted(search: SpillingSearch, states: int) -> bool:
            self.times += 1
            return to_disk(search, states)

        monkeypatch.setattr(SpillingSearch, "_to_disk", counted)
        monkeypatch.setattr(memory.StateTable, "_affordable", lambda *_: False)
        monkeypatch.setattr(runs, "STRIDE", 8)

    def after(self, states: int, *, fill: int, piece: int, merge: int) -> None:
        """From now on spill after about so many states."""
        self._patch.setattr(memory, "FIRST_CAPACITY", states)
        self._patch.setattr(Sizes, "within", staticmethod(lambda room, words: Sizes(fill, piece, merge)))
