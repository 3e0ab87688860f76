"""Formulas that say of steps that they recur, as the fairness of an abstract system does: each on a graph of its own.

The graph is that of the system with a bit for each such condition (`system.recurrence`); it has at most twice as many states
for each bit. The parts of a conjunction are decided one by one, so that one bit is the rule. Where the graph of the system
itself is small, the one with bits is made from it; otherwise there is another search, whose limits are the user's.
"""

from __future__ import annotations

from dataclasses import replace

from streamproof.explicit.found import Found
from streamproof.explicit.liveness.outcome import violated
from streamproof.explicit.small_graph import SmallGraph
from streamproof.explicit.witness import Witnesses
from streamproof.system.assume import simplify
from streamproof.system.formula import Formula, claims
from streamproof.system.model import Property, System
from streamproof.system.recurrence import by_states
from streamproof.system.scalarise import scalarise
from streamproof.system.verdict import Finding, Verdict


def finding(prop: Property, simple: Property, search: Found, graph: SmallGraph | None, witnesses: Witnesses) -> Finding:
    """The finding for a temporal property with conditions on steps, after a complete search.

    `simple` is the property in the terms of the system that was searched, `graph` the graph of that search if it is small.
    Raises `TooLarge` when one of the conjuncts has too many conditions.
    """
    system = search.scalarised.original
    assert prop.formula is not None, "a temporal property has a formula"
    assert simple.formula is not None, "and so it has when it is simplified"
    stored = None if graph is None else _Stored(search, graph, simple.formula)
    states = 0
    for claim, own in zip(claims(prop.formula), claims(simple.formula), strict=True):
        answer = None if stored is None else stored.decided(prop, own, witnesses)
        if answer is None:
            answer = _searched(system, claim, prop, search, witnesses)
        if isinstance(answer, Finding):
            return answer
        states = max(states, answer)
    because = f"true of every fair behaviour of {states:,} states, with a note of what recurs"
    return Finding(prop.name, prop.kind, Verdict.HOLDS, None, because)


class _Stored:
    """Decides claims on a small graph that was stored."""

    def __init__(self, search: Found, graph: SmallGraph, formula: Formula) -> None:
        from streamproof.explicit.liveness.small.noted import Notes

        self._search = search
        self._notes = Notes(search.system, tuple(search.states()), graph, formula)

    def decided(self, prop: Property, claim: Formula, witnesses: Witnesses) -> Finding | int | None:
        """The finding when the claim, a part of the formula, is false, else the number of states with their notes; None
        where another search would meet a limit, or the graph with notes is not small."""
        from streamproof.explicit.liveness.decide import Liveness

        budget = self._search.budget
        if budget.max_depth is not None or budget.spent() is not None:
            return None
        noted = self._notes.noted(claim, budget.max_states)
        if noted is None:
            return None
        lasso = Liveness(self._search.system, noted.graph).decide(noted.formula).lasso
        if lasso is None:
            return noted.graph.states
        trace = witnesses.lasso(*([noted.original[node] for node in part] for part in (lasso.stem, lasso.cycle)))
        return violated(prop, trace, witnesses.fair(prop, trace))


def _searched(system: System, claim: Formula, prop: Property, search: Found, witnesses: Witnesses) -> Finding | int:
    """The finding where another search does not show that the claim holds, else how many states it found."""
    from streamproof.explicit.early import EarlyEnd
    from streamproof.explicit.findings import judge
    from streamproof.explicit.reductions.plan import plan
    from streamproof.explicit.tiers import AUTO, Task, run_tiers

    counted = by_states(system, claim, prop.name)
    scalarised = scalarise(counted.system)
    simple = simplify(scalarised.system)
    early = EarlyEnd()
    whole = plan(scalarised, simple, simple.properties, symmetry=False, por=False)
    noted, _, _ = run_tiers(Task(scalarised, simple, simple.properties, search.budget, None, early, whole), AUTO)
    found = judge(noted, whole, early).findings[0]
    if found.verdict is Verdict.HOLDS:
        return noted.known
    if found.trace is None or found.verdict is Verdict.ERROR:
        return found
    trace = counted.trace(found.trace)
    return replace(found, trace=trace, fair=witnesses.fair(prop, trace))
