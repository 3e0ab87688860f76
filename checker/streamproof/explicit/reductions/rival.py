"""The full search beside a reduced one: a reduction that costs more than it saves is given up.

Nobody knows beforehand how much a reduction leaves out. So both searches get the same amount of work, in turns that double,
and the one that ends first has the answer: that takes at most a few times as long as the faster of the two alone. Work is
counted in terms evaluated, never in seconds, so that every machine takes the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from streamproof.explicit.level_search import LevelSearch, SearchTask
from streamproof.explicit.limits import Stop
from streamproof.system.errors import SystemFailure, TooLarge
from streamproof.system.memory import resident_bytes
from streamproof.system.records import dataclass, replace

if TYPE_CHECKING:
    from streamproof.explicit.compiled.search import CompiledSearch

FIRST_TURN = 20_000_000
"""Work of a reduced search before the full one has its first turn: about a second."""
PER_SUCCESSOR = 2
PER_STATE = 40
"""Compiled code makes a successor while generated Python evaluates two terms, and is so many times faster on terms."""
MOST_STATES = 1 << 23
"""States after which the full search is given up: a reduction may be asked for because memory is too small."""
MEMORY_SHARE = 2
"""The full search is given up when the process holds this part of the memory that it may have."""


@dataclass(slots=True)
class Rival:
    """A full search of `task` by compiled code that goes on in turns; `begin` makes it."""

    begin: Callable[[SearchTask], LevelSearch]
    task: SearchTask
    terms: int
    """Terms that are evaluated for a state."""
    search: CompiledSearch | None = None
    _turn: int = field(default_factory=lambda: FIRST_TURN)
    _given_up: bool = False
    _allowed: int = 0

    def wins(self, work: int) -> bool:
        """Whether the full search is complete within the work that the reduced one has taken so far."""
        if work < self._turn or self._given_up:
            return False
        self._allowed = self._turn
        self._turn *= 2
        try:
            if self.search is None:
                from streamproof.explicit.compiled.search import CompiledSearch

                search = self.begin(replace(self.task, after_level=self._after_level))
                assert isinstance(search, CompiledSearch)
                self.search = search
            self.search.stopped = None
            self.search.run()
        except (SystemFailure, TooLarge, ImportError):
            self._give_up()
            return False
        match self.search.stopped:
            case None | Stop.MISTAKE | Stop.DECIDED | Stop.VIOLATIONS:
                return True
            case Stop.PAUSE:
                return False
            case Stop.INTERRUPTED:
                self.task.budget.interrupt()
                return False
            case _:
                self._give_up()
                return False

    def _after_level(self, search: LevelSearch) -> Stop | None:
        done = search.total * PER_SUCCESSOR + search.expanded * (1 + self.terms // PER_STATE)
        most = self.task.budget.max_bytes
        if search.known > MOST_STATES or (most is not None and resident_bytes() > most // MEMORY_SHARE):
            return Stop.MEMORY
        return self.task.after_level(search) or (Stop.PAUSE if done > self._allowed else None)

    def _give_up(self) -> None:
        self._given_up = True
        self.close()

    def close(self) -> None:
        """Give its memory back."""
        if self.search is not None:
            self.search.close()
            self.search = None
