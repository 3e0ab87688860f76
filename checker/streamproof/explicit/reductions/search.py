"""The breadth-first search of a reduced state space."""

from __future__ import annotations

import time
from collections.abc import Sequence

from streamproof.explicit.level_search import ReductionPlan, SearchTask, Stop
from streamproof.explicit.reductions.expand import reduced_expander
from streamproof.explicit.reductions.rival import SYMMETRIC, Rival
from streamproof.explicit.search import SUCCESSOR, Handover, Search
from streamproof.explicit.successors import Batch, StepHit, expander
from streamproof.explicit.writer import Hit
from streamproof.system.model import Kind, State

SIZE = 16
"""Number of states expanded at a time."""


class ReducedSearch(Search):
    """A search with the reductions of a plan. With symmetry, the states are canonical representatives of their orbits."""

    def __init__(
        self,
        task: SearchTask,
        plan: ReductionPlan,
        terms: int,
        rival: Rival | None = None,
        spent: int = 0,
        handover: Handover | None = None,
    ) -> None:
        """`terms`: number of terms evaluated per state. `rival`: the competing full search, if any; `spent`: work that the
        reduction has used before. `handover`: when compiled code takes over."""
        super().__init__(task, handover)
        self.plan = plan
        self.terms = terms
        self.rival = rival
        self.beaten = False
        """Whether the full search has finished first."""
        self._spent = spent
        self._turn = max(self.budget.tuning.rival_turn, 2 * spent)

    @property
    def work(self) -> int:
        """Work of the search, in evaluated terms."""
        symmetry, stubborn = self.plan.symmetry, self.plan.stubborn
        choosing = 0 if stubborn is None else stubborn.work
        successor = SUCCESSOR + (0 if symmetry is None else symmetry.work)
        return self._spent + self.expanded * self.terms + choosing + self.total * successor

    def _next_size(self, size: int, seconds: float) -> int:
        """A constant: the rival's turns depend on work, not on time."""
        return SIZE

    def _stop(self, batch: Batch) -> None:
        super()._stop(batch)
        if not self.stopped and self.rival is not None and self.work >= self._turn:
            self._turn = 2 * self.work
            self.beaten = self.rival.wins(self._turn // (SYMMETRIC if self.plan.stubborn is None else 1))
            self.stopped = Stop.HANDOVER if self.beaten else None

    def _fresh(self, states: list[State]) -> list[State]:
        if self.plan.symmetry is None:
            return states
        found = dict.fromkeys(map(self.plan.symmetry.canonical, states))
        return [state for state in found if state not in self.seen]

    def _compile_steps(self) -> None:
        begun = time.perf_counter()
        edges = any(p.kind is Kind.TERMINATION for p in self.properties)
        canonical = None if self.plan.symmetry is None else self.plan.symmetry.canonical
        steps = self._open(Kind.STEP)
        if self.plan.stubborn is None:
            tuning = self.budget.tuning
            self._expand = expander(self.system, steps, edges=edges, canonical=canonical, tuning=tuning)
        else:
            self._still_open()
            self._expand = reduced_expander(self.system, steps, self.plan.stubborn, edges=edges, canonical=canonical)
        self.compile_seconds += time.perf_counter() - begun

    def _outdated(self, hits: Sequence[StepHit] | Sequence[Hit]) -> bool:
        """Always, after a hit: stubborn sets for fewer open properties are smaller."""
        return bool(hits)

    def _compile_watches(self) -> None:
        super()._compile_watches()
        self._still_open()

    def _still_open(self) -> None:
        """Restrict the goals of the stubborn sets to the undecided properties."""
        if self.plan.stubborn is not None:
            self.plan.stubborn.keep_open({number for number, _ in self._open(*Kind)})
