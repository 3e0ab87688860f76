"""Findings for temporal properties: the graph is stored when the first of them is asked for."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING

from streamproof.explicit.found import Found
from streamproof.explicit.limits import Stop
from streamproof.explicit.liveness import recurring
from streamproof.explicit.liveness.outcome import violated
from streamproof.explicit.reductions.plan import Plan
from streamproof.explicit.witness import Witnesses
from streamproof.interrupts import TimeUp, alarm
from streamproof.system.errors import TooLarge, UsageError
from streamproof.system.formula import recurring as steps_of
from streamproof.system.model import Property
from streamproof.system.verdict import Finding, Verdict
from streamproof.system.wording import number_of

if TYPE_CHECKING:
    from streamproof.explicit.liveness.decide import Liveness
    from streamproof.explicit.small_graph import SmallGraph


_ENDED = {
    Stop.INTERRUPTED: "interrupted; run it again to the end",
    Stop.TIME: "the time limit was met; raise it",
    Stop.MEMORY: "the memory was used up; choose smaller parameters",
}


def ended(spent: Stop) -> str:
    """What is said of a property of endless behaviours where the search was complete and the time for this one was not."""
    return f"state space explored, temporal check not finished: {_ENDED.get(spent, spent.value)}"


class Temporal:
    """Decides the temporal properties of a complete search. `seconds` is what that has taken so far."""

    def __init__(self, search: Found, plan: Plan, witnesses: Witnesses) -> None:
        self._search, self._plan, self._witnesses = search, plan, witnesses
        self._liveness: Liveness | None = None
        self.seconds = 0.0

    @cached_property
    def _small(self) -> SmallGraph | None:
        """The graph of a small state space, stored once."""
        return self._search.small_graph()

    def finding(self, prop: Property, simple: Property) -> Finding:
        """The finding for one property: as its author wrote it, and in the terms of the system that was searched.

        Raises `UsageError` when the search was a reduced one: what it leaves out may be on the only fair cycle.
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
            because = "there is not enough memory for the graph of states; choose smaller parameters"
            return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, because)
        finally:
            self.seconds += time.perf_counter() - begun

    def _decided(self, prop: Property, simple: Property) -> Finding:
        from streamproof.explicit.liveness.decide import Liveness

        assert simple.formula is not None, "a temporal property has a formula"
        if any(steps_of(simple.formula)):
            return recurring.finding(prop, simple, self._search, self._small, self._witnesses)
        if self._liveness is None:
            self._liveness = Liveness(self._search.system, self._small or self._search.graph())
        answer = self._liveness.decide(simple.formula)
        if answer.lasso is not None:
            trace = self._witnesses.lasso(answer.lasso.stem, answer.lasso.cycle)
            return violated(prop, trace, self._witnesses.fair(prop, trace))
        states = number_of(self._liveness.states, "state")
        if answer.vacuous:
            because = f"vacuous: the condition that leads to something is true in none of {states}"
            return Finding(prop.name, prop.kind, Verdict.HOLDS, None, because, vacuous=True)
        because = f"true of every fair behaviour of {states} and {number_of(self._liveness.steps, 'step')}"
        return Finding(prop.name, prop.kind, Verdict.HOLDS, None, because)
