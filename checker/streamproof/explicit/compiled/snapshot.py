"""What a search had counted at the end of a level, and what writes it down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from streamproof.explicit.level_search import SearchEvent
from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a search had counted at the end of a level, beside its states."""

    levels: tuple[int, ...]
    initial: int
    stuck: int
    facts: tuple[int, ...]
    news: tuple[int, ...]
    events: Mapping[int, SearchEvent]
    next: int

    @property
    def known(self) -> int:
        """How many states there were."""
        return sum(self.levels)


class Recorder(Protocol):
    """Where a search is written to."""

    def write(self, mark: Snapshot) -> None:
        """Bring it up to the end of a level."""

    def close(self) -> None:
        """No more is written."""
