"""Findings for temporal properties; the state graph is stored for the first of them."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING

from streamproof.explicit.level_search import LevelSearch, ReductionPlan, Stop, ended
from streamproof.explicit.liveness.fair_graph import Lasso, violated
from streamproof.explicit.witness import Witnesses
from streamproof.interrupts import TimeUp, alarm
from streamproof.system import build as b
from streamproof.system.errors import TooLarge, UsageError
from streamproof.system.flatten import Rewriter
from streamproof.system.formula import Atom, Eventually, Formula, claims, recurring
from streamproof.system.model import Property
from streamproof.system.verdict import Finding, Verdict, number_of

if TYPE_CHECKING:
    from streamproof.explicit.liveness.decide import TemporalChecker


class Temporal:
    """Decides the temporal properties of a complete search. `seconds` is the time used by the temporal check."""

    def __init__(self, search: LevelSearch, plan: ReductionPlan, witnesses: Witnesses) -> None:
        self._search, self._plan, self._witnesses = search, plan, witnesses
        self.seconds = 0.0

    @cached_property
    def _checker(self) -> TemporalChecker:
        from streamproof.explicit.liveness.decide import TemporalChecker

        return TemporalChecker(self._search.system, self._search.graph())

    def finding(self, prop: Property, simple: Property) -> Finding:
        """The finding for one property: `prop` of the original system, `simple` of the system that was searched.

        Raises `UsageError` after a reduced search: the states left out may be on the only fair cycle.
        """
        if self._plan.reduces:
            raise UsageError(
                f"{prop.name} is a temporal property, and the search was reduced",
                remedy="leave out --symmetry and --por, or the temporal properties with --property",
            )
        begun = time.perf_counter()
        spent = self._search.budget.spent()
        if spent is not None:
            return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, ended(spent))
        try:
            with alarm():
                return self._decided(prop, simple)
        except TimeUp:
            return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, ended(Stop.TIME))
        except TooLarge as limit:
            return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, str(limit))
        except MemoryError:
            because = "not enough memory for the state graph; choose smaller parameters"
            return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, because)
        finally:
            self.seconds += time.perf_counter() - begun

    def _decided(self, prop: Property, simple: Property) -> Finding:
        assert simple.formula is not None, "a temporal property has a formula"
        if any(recurring(simple.formula)):
            return self._monitored(prop, simple.formula)
        answer = self._checker.decide(simple.formula)
        if answer.lasso is not None:
            return self._violated(prop, answer.lasso)
        states = number_of(self._checker.graph.states, "state")
        because = f"true of every fair behaviour of {states} and {number_of(self._checker.graph.steps, 'step')}"
        if answer.vacuous:
            every = "the only state" if states == "1 state" else f"all {states}"
            return self._holds(prop, f"vacuous: its antecedent is false in {every}", vacuous=True)
        return self._holds(prop, because)

    def _holds(self, prop: Property, because: str, *, vacuous: bool = False) -> Finding:
        """A property without a lasso that violates it. It is vacuous too if every fair behaviour leaves the constraint."""
        if self._all_leave:
            because, vacuous = "vacuous: every fair behaviour leaves the constraint", True
        return Finding(prop.name, prop.kind, Verdict.HOLDS, None, because, vacuous=vacuous)

    @cached_property
    def _all_leave(self) -> bool:
        """Whether there is a constraint, and no fair behaviour stays within it."""
        limit = self._search.scalarised.original.constraint
        if limit is None:
            return False
        outside = b.not_(b.and_(Rewriter().scalar(c.expr) for c in limit.conjuncts))
        return self._checker.decide(Eventually(Atom(outside))).lasso is None

    def _monitored(self, prop: Property, formula: Formula) -> Finding:
        """The finding for a formula with conditions on steps: its conjuncts one by one, usually with one monitor bit each."""
        from streamproof.explicit.liveness.decide import TemporalChecker
        from streamproof.explicit.liveness.step_monitors import StepMonitors

        search = self._search
        monitors = StepMonitors(search.system, self._checker.graph, formula)
        states = 0
        for claim in claims(formula):
            monitored = monitors.monitored(claim, search.budget)
            answer = TemporalChecker(search.system, monitored.graph).decide(monitored.formula)
            if answer.lasso is not None:
                return self._violated(prop, answer.lasso.renumbered(monitored.original))
            states = max(states, monitored.graph.states)
        return self._holds(prop, f"true of every fair behaviour of {states:,} states, monitor bits included")

    def _violated(self, prop: Property, lasso: Lasso) -> Finding:
        trace = self._witnesses.lasso(lasso.stem, lasso.cycle)
        return violated(prop, trace, self._witnesses.fair(prop, trace))
