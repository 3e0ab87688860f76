"""Searches that spill early, in small pieces."""

from __future__ import annotations

import pytest

from streamproof.base.options import Tuning
from streamproof.explicit.compiled import memory
from streamproof.explicit.compiled.deduplicate import Sizes
from streamproof.explicit.compiled.spill import SpillingSearch
from streamproof.explicit.level_search import Budget


class Spilling:
    """Makes searches spill early, in small pieces, and counts those that did."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, word_bits: int = 64) -> None:
        self.times = 0
        self._word_bits = word_bits
        self._patch = monkeypatch
        to_disk = SpillingSearch._to_disk

        def counted(search: SpillingSearch, states: int) -> bool:
            self.times += 1
            return to_disk(search, states)

        monkeypatch.setattr(SpillingSearch, "_to_disk", counted)
        monkeypatch.setattr(memory.StateTable, "_affordable", lambda *_: False)

    def after(self, states: int, *, fill: int, piece: int, merge: int, stored_window: int = 0) -> None:
        """From now on spill after about so many states."""
        tuning = Tuning(word_bits=self._word_bits, first_capacity=states, key_stride=8, stored_window=stored_window)
        self._patch.setattr(Budget, "tuning", tuning)
        self._patch.setattr(Sizes, "within", staticmethod(lambda room, words: Sizes(fill, piece, merge)))
