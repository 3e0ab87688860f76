"""State constraints, with TLC's meaning: a state outside the constraint is found and checked, but has no steps.

`constrained` builds this meaning into a system, so that every engine has it: every guard requires the constraint, states
outside are terminal, and a temporal property concerns the behaviours that stay inside. Fairness is that of the system without
the constraint: an action that only leads outside is enabled there.

A constraint on steps becomes one on states: a step that breaks it sets a variable, and the states in which that is true are
outside. A step that changes nothing breaks none, so that a behaviour may always stutter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

from streamproof.system import build as b
from streamproof.system.errors import ModelError
from streamproof.system.formula import AndF, Atom, Eventually, OrF, claims
from streamproof.system.model import Check, Conjunct, Instance, Kind, Property, StateConstraint, System, Variable
from streamproof.system.records import replace
from streamproof.system.sorts import BOOL
from streamproof.system.step_bits import after, changing
from streamproof.system.verdict import CheckResult, Finding, Verdict

R = TypeVar("R", bound=CheckResult)


def cut_name(taken: Collection[str]) -> str:
    """The name of the variable that is true after a step that breaks a constraint on steps; none of those `taken`."""
    name = "cut"
    while name in taken:
        name += "_"
    return name


def constrained(system: System, conjuncts: Sequence[Conjunct], steps: Sequence[Conjunct] = ()) -> System:
    """`system` with the conjunction of these conditions on states and on steps as constraint; unchanged without any.

    Raises `ModelError` for a constraint that is true in no state, which TLC rejects too.
    """
    free = system
    if steps:
        system, unbroken = _cutting(system, steps)
        conjuncts = (*conjuncts, unbroken)
    if not conjuncts:
        return system
    inside = b.and_(c.expr for c in conjuncts)
    outside = b.not_(inside)
    if outside is b.TRUE:
        names = " and ".join(c.text for c in conjuncts)
        raise ModelError(
            f"the constraint {names} is true in no state", loc=conjuncts[0].loc, remedy="it would cut every behaviour"
        )

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
        constraint=StateConstraint(tuple(conjuncts), free, on_steps=bool(steps)),
    )


def _cutting(system: System, steps: Sequence[Conjunct]) -> tuple[System, Conjunct]:
    """`system` with the variable that a step sets for a broken condition, and the condition that it is false."""
    name = cut_name(system.index)
    broken = b.and_((b.not_(b.and_(c.expr for c in steps)), changing(system)))

    def instance(one: Instance) -> Instance:
        breaks = after(system, one)(broken)
        return one if breaks is b.FALSE else replace(one, updates=(*one.updates, (name, breaks)))

    cut = replace(
        system,
        variables=(*system.variables, Variable(name, BOOL, (False,))),
        actions=tuple(replace(a, instances=tuple(map(instance, a.instances))) for a in system.actions),
    )
    return cut, Conjunct(b.not_(b.var(name, BOOL)), " and ".join(c.text for c in steps), steps[0].loc)


def within_constraint(system: System, result: R) -> R:
    """`result`, in which every verdict on all behaviours names the constraint that ends some of them.

    Engines without state counts do not know whether a state is outside, and name it always. A second call changes nothing.
    """
    limit = system.constraint
    if limit is None or (result.counts is not None and not any(result.counts.outside)):
        return result
    return replace(result, findings=tuple(restricted(finding, limit) for finding in result.findings))


def restricted(finding: Finding, limit: StateConstraint) -> Finding:
    """`finding`, with the constraint if it is about all behaviours; a behaviour that shows a verdict needs no more."""
    about_all = Verdict.VIOLATED if finding.kind is Kind.REACHABLE else Verdict.HOLDS
    if finding.verdict is not about_all or finding.within is not None:
        return finding
    if limit.on_steps:
        ends = f"behaviours end where the constraint {limit.text} is false"
    elif finding.kind is Kind.TEMPORAL:
        ends = f"behaviours that leave the constraint {limit.text} are left out"
    else:
        ends = f"steps from states outside the constraint {limit.text} are not followed"
    return replace(finding, because=f"{finding.because}; {ends}", within=limit.text)
