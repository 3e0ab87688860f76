"""The breadth-first search by a view."""

from __future__ import annotations

import time

from streamproof.explicit.level_search import ReductionPlan, SearchTask
from streamproof.explicit.search import Search
from streamproof.explicit.successors import expander
from streamproof.system.model import Kind, State


class ViewSearch(Search):
    """A search that explores the first state of each view."""

    def __init__(self, task: SearchTask, plan: ReductionPlan) -> None:
        super().__init__(task)
        assert plan.view is not None, "a search by views"
        self.view = plan.view

    def _fresh(self, states: list[State]) -> list[State]:
        found = dict.fromkeys(map(self.view.canonical, states))
        return [state for state in found if state not in self.seen]

    def instance(self, before: int, after: int) -> int | None:
        """None: the instance may lead to another state of the view."""
        return None

    def _compile_steps(self) -> None:
        begun = time.perf_counter()
        edges = any(p.kind is Kind.TERMINATION for p in self.properties)
        steps, tuning = self._open(Kind.STEP), self.budget.tuning
        canonical = self.view.canonical
        self._expand = expander(
            self.system, steps, edges=edges, graph=self._wants_graph, canonical=canonical, tuning=tuning
        )
        self._reported_hits = 0
        self.compile_seconds += time.perf_counter() - begun
