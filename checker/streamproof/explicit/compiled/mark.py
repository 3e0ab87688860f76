"""What a search had counted at the end of a level."""

from __future__ import annotations

from collections.abc import Mapping

from streamproof.explicit.found import Event
from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """What a search had counted at the end of a level, beside its states."""

    levels: tuple[int, ...]
    initial: int
    stuck: int
    facts: tuple[int, ...]
    news: tuple[int, ...]
    events: Mapping[int, Event]
    next: int

    @property
    def known(self) -> int:
        """How many states there were."""
        return sum(self.levels)
