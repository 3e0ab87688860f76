"""Formulas that say of steps that they recur, as the fairness of an abstract system does: each on a graph of its own.

The graph is that of the system with a bit for each such condition (`system.recurrence`); it has at most twice as many states
for each bit. The parts of a conjunction are decided one by one, so that one bit is the rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from streamproof.explicit.found import Found
from streamproof.system.assume import simplify
from streamproof.system.formula import Formula, claims
from streamproof.system.model import Property, System
from streamproof.system.recurrence import by_states
from streamproof.system.scalarise import scalarise
from streamproof.system.verdict import Finding, Owed, Trace, Verdict


def finding(prop: Property, search: Found, fair: Callable[[Property, Trace], tuple[Owed, ...]]) -> Finding:
    """The finding for a temporal property with conditions on steps, after a complete search.

    `fair` confirms a lasso of the system itself and says how it treats the actions that are owed fairness.
    """
    system = search.scalarised.original
    assert prop.formula is not None, "a temporal property has a formula"
    states = 0
    for claim in claims(prop.formula):
        found, known = _decided(system, claim, prop.name, search)
        if found.verdict is not Verdict.HOLDS:
            if found.trace is None or found.verdict is Verdict.ERROR:
                return found
            trace = by_states(system, claim, prop.name).trace(found.trace)
            return replace(found, trace=trace, fair=fair(prop, trace))
        states = max(states, known)
    because = f"true of every fair behaviour of {states:,} states, with a note of what recurs"
    return Finding(prop.name, prop.kind, Verdict.HOLDS, None, because)


def _decided(system: System, claim: Formula, name: str, search: Found) -> tuple[Finding, int]:
    """The finding for one claim, and how many states were found for it."""
    from streamproof.explicit.findings import judge
    from streamproof.explicit.reductions.plan import plan
    from streamproof.explicit.tiers import AUTO, Task, run_tiers

    scalarised = scalarise(by_states(system, claim, name).system)
    simple = simplify(scalarised.system)
    whole = plan(scalarised, simple, simple.properties, symmetry=False, por=False)
    noted, _ = run_tiers(Task(scalarised, simple, simple.properties, search.budget, None, False, whole), AUTO)
    return judge(noted, whole).findings[0], noted.known
