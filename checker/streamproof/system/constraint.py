"""State constraints, with TLC's meaning: a state outside the constraint is found and checked, but has no steps.

`constrained` builds this meaning into a system, so that every engine has it: every guard requires the constraint, states
outside are terminal, and a temporal property concerns the behaviours that stay inside. Fairness is that of the system without
the constraint: an action that only leads outside is enabled there.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamproof.system import build as b
from streamproof.system.formula import AndF, Atom, Eventually, OrF, claims
from streamproof.system.model import Check, Conjunct, Instance, Property, StateConstraint, System
from streamproof.system.records import replace


def constrained(system: System, conjuncts: Sequence[Conjunct]) -> System:
    """`system` with the conjunction of these conditions as constraint; unchanged if there are none."""
    if not conjuncts:
        return system
    inside = b.and_(c.expr for c in conjuncts)
    outside = b.not_(inside)

    def checks(given: tuple[Check, ...]) -> tuple[Check, ...]:
        return tuple(replace(check, condition=b.and_((inside, check.condition))) for check in given)

    def instance(one: Instance) -> Instance:
        return replace(one, guard=(*conjuncts, *one.guard), guard_checks=checks(one.guard_checks))

    def prop(one: Property) -> Property:
        if one.formula is None:
            return one
        text = " and ".join(c.text for c in conjuncts)
        leaves = Eventually(Atom(outside, f"not ({text})", conjuncts[0].loc))
        parts = [OrF((leaves, part)) for part in claims(one.formula)]
        return replace(one, formula=parts[0] if len(parts) == 1 else AndF(tuple(parts)))

    return replace(
        system,
        actions=tuple(replace(a, instances=tuple(map(instance, a.instances))) for a in system.actions),
        properties=tuple(map(prop, system.properties)),
        terminal=outside if system.terminal is None else b.or_((outside, system.terminal)),
        constraint=StateConstraint(tuple(conjuncts), system),
    )
