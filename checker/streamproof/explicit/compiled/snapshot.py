"""Snapshots of a search at the ends of levels, and the interface of their recorders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from streamproof.explicit.level_search import SearchEvent
from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The counters of a search at the end of a level, without its states."""

    levels: tuple[int, ...]
    initial: int
    stuck: int
    facts: tuple[int, ...]
    news: tuple[int, ...]
    events: Mapping[int, SearchEvent]
    next: int

    @property
    def known(self) -> int:
        """Number of states."""
        return sum(self.levels)


class Recorder(Protocol):
    """Writes snapshots of a search."""

    def write(self, mark: Snapshot) -> None:
        """Write the search up to the end of a level."""

    def close(self) -> None:
        """Finish writing."""
