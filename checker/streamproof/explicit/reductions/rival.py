"""The full search that competes with a reduced search: a reduction that costs more than it saves is not needed.

The effect of a reduction cannot be predicted, and its preparation alone may cost more than a full search. So both get their
turns, of doubling size, in which the full search takes about five times the time of the reduction; the first to finish gives
the result. Work is counted in evaluated terms, never in seconds, so the choice does not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from streamproof.base.errors import OutOfTime, SystemFailure, TooLarge
from streamproof.base.options import COMPILED, PYTHON, resident_bytes
from streamproof.base.records import dataclass, replace
from streamproof.explicit.level_search import LevelSearch, SearchTask, Stop

PER_STATE = 40
"""Speed-up of compiled code over generated Python on terms."""
SYMMETRIC = 8
"""Divisor of the work of a search with representatives only, whose time is nearer to what is counted than that of stubborn
sets."""
MEMORY_SHARE = 2
"""Divisor of the memory limit: the full search is given up when the process uses that share."""

Begin: TypeAlias = Callable[[SearchTask], LevelSearch]


@dataclass(slots=True)
class Rival:
    """A full search of `task` that runs in turns: generated Python, and then, in place of a handover, compiled code."""

    first: Begin
    begin: Begin
    task: SearchTask
    terms: int
    """Number of terms evaluated per state."""
    search: LevelSearch | None = None
    tier: str = PYTHON
    _given_up: bool = False
    _allowed: int | None = 0

    def wins(self, work: int) -> bool:
        """Whether the full search finishes before the reduction has used this much work."""
        self._allowed = self.task.budget.tuning.rival_share * work
        if self._given_up or (self.search is not None and self.work(self.search) >= self._allowed):
            return False
        try:
            self._continue()
        except OutOfTime:
            return False  # the reduced search notices the limit, too
        except (SystemFailure, TooLarge, ImportError):
            self._give_up()
            return False
        assert self.search is not None
        match self.search.stopped:
            case None | Stop.MISTAKE | Stop.DECIDED | Stop.VIOLATIONS:
                return True
            case Stop.PAUSE | Stop.TIME:
                return False
            case Stop.INTERRUPTED:
                self.task.budget.interrupt()
                return False
            case _:
                self._give_up()
                return False

    def finish(self) -> LevelSearch:
        """The full search, to its end; for one that was begun."""
        self._allowed = None
        self._continue()
        assert self.search is not None
        return self.search

    def _continue(self) -> None:
        if self.search is None:
            self.search = self.first(self.task)
            self.search.run()
        elif self.tier == COMPILED:
            self.search.stopped = None
            self.search.run()
        if self.search.stopped is Stop.HANDOVER:
            self.search, self.tier = self.begin(replace(self.task, after_level=self._after_level)), COMPILED
            self.search.run()

    def work(self, search: LevelSearch) -> int:
        """Work of a search by compiled code, in evaluated terms."""
        successor = self.task.budget.tuning.rival_successor
        if search.task.symmetry is not None:
            successor += search.task.symmetry.work // PER_STATE
        return search.total * successor + search.expanded * (1 + self.terms // PER_STATE)

    def _after_level(self, search: LevelSearch) -> Stop | None:
        if self._allowed is not None:
            tuning, most = self.task.budget.tuning, self.task.budget.max_bytes
            if search.known > tuning.rival_states or (most is not None and resident_bytes() > most // MEMORY_SHARE):
                return Stop.MEMORY
        return self.task.after_level(search) or (
            Stop.PAUSE if self._allowed is not None and self.work(search) > self._allowed else None
        )

    def _give_up(self) -> None:
        self._given_up = True
        self.close()

    def close(self) -> None:
        """Free the memory."""
        if self.search is not None:
            self.search.close()
        self.search = None
