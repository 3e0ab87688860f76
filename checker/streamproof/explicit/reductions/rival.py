"""The full search that competes with a reduced search: a reduction that costs more than it saves is given up.

The effect of a reduction cannot be predicted. So both searches get equal work in alternating turns of doubling size, and the
first to finish gives the result: at most a few times the time of the faster one alone. Work is counted in evaluated terms,
never in seconds, so the choice does not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from streamproof.base.errors import OutOfTime, SystemFailure, TooLarge
from streamproof.base.options import resident_bytes
from streamproof.base.records import dataclass, replace
from streamproof.explicit.level_search import LevelSearch, SearchTask, Stop

if TYPE_CHECKING:
    from streamproof.explicit.compiled.search import CompiledSearch

PER_STATE = 40
"""Speed-up of compiled code over generated Python on terms."""
MEMORY_SHARE = 2
"""Divisor of the memory limit: the full search is given up when the process uses that share."""


@dataclass(slots=True)
class Rival:
    """A full search of `task` by compiled code that runs in turns; created by `begin`."""

    begin: Callable[[SearchTask], LevelSearch]
    task: SearchTask
    terms: int
    """Number of terms evaluated per state."""
    search: CompiledSearch | None = None
    _turn: int = field(init=False)
    _given_up: bool = False
    _allowed: int = 0

    def __post_init__(self) -> None:
        self._turn = self.task.budget.tuning.rival_turn

    def wins(self, work: int) -> bool:
        """Whether the full search finishes within the work that the reduced search has used."""
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
        except OutOfTime:
            return False  # the reduced search notices the limit, too
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
        tuning = self.task.budget.tuning
        done = search.total * tuning.rival_successor + search.expanded * (1 + self.terms // PER_STATE)
        most = self.task.budget.max_bytes
        if search.known > tuning.rival_states or (most is not None and resident_bytes() > most // MEMORY_SHARE):
            return Stop.MEMORY
        return self.task.after_level(search) or (Stop.PAUSE if done > self._allowed else None)

    def _give_up(self) -> None:
        self._given_up = True
        self.close()

    def close(self) -> None:
        """Free the memory."""
        if self.search is not None:
            self.search.close()
            self.search = None
