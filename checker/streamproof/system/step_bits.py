"""Step conditions in formulas replaced by state conditions: a step of the kind flips a bit, which must flip infinitely often.

An engine that supports state conditions only decides the formula on a system with one more bit for each step condition.
The bit is a function of the history, so fairness, cycles and stuttering are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    NotF,
    Recurs,
    mapped,
    recurring,
)
from streamproof.system.model import Instance, Kind, Property, System, Variable
from streamproof.system.records import dataclass, replace
from streamproof.system.sorts import BOOL
from streamproof.system.substitute import Substitution
from streamproof.system.verdict import Trace


@dataclass(frozen=True, slots=True)
class Counted:
    """A system whose `formula` has state conditions only, and the translation of its behaviours."""

    original: System
    system: System
    formula: Formula

    def trace(self, trace: Trace) -> Trace:
        """The behaviour of the original for a behaviour of `system`."""
        width = len(self.original.variables)
        back = dict(zip(self.system.instances, self.original.instances, strict=True))
        states = tuple(state[:width] for state in trace.states)
        return Trace(states, tuple(back[i] for i in trace.steps), trace.loop)


def by_states(system: System, formula: Formula, name: str = "formula") -> Counted:
    """`system` with a bit for each step condition in `formula`, which is its only property, called `name`."""
    names = bits(system, list(dict.fromkeys(recurring(formula))))
    instances = {i: _turning(system, i, names) for i in system.instances}
    of_states = turned(formula, names)
    counted = replace(
        system,
        variables=(*system.variables, *(Variable(name, BOOL, (False,)) for name in names.values())),
        actions=tuple(replace(a, instances=tuple(instances[i] for i in a.instances)) for a in system.actions),
        properties=(Property(name, Kind.TEMPORAL, b.TRUE, formula=of_states),),
        lemmas=(),
    )
    return Counted(system, counted, of_states)


def after(system: System, instance: Instance) -> Substitution:
    """Turns a step condition into a condition on the state before, for the steps of `instance`."""
    written = dict(instance.updates)
    return Substitution({b.next_(v.name, v.sort): written.get(v.name, b.var(v.name, v.sort)) for v in system.variables})


def changing(system: System) -> Expr:
    """The step condition that the state changes."""
    return b.or_(b.not_(b.eq(b.next_(v.name, v.sort), b.var(v.name, v.sort))) for v in system.variables)


def twofold(system: System) -> tuple[System, Substitution]:
    """The system with a second copy of its variables for the values after a step, and terms that read them."""
    mark = "'"
    while any(v.name + mark in system.index for v in system.variables):
        mark += "'"
    then = [replace(v, name=v.name + mark) for v in system.variables]
    later = {b.next_(v.name, v.sort): b.var(t.name, t.sort) for v, t in zip(system.variables, then, strict=True)}
    return replace(system, variables=(*system.variables, *then)), Substitution(later)


def bits(system: System, steps: Iterable[Recurs]) -> dict[Recurs, str]:
    """For each step condition, a name that is not a variable of the system."""
    taken = set(system.index)
    names: dict[Recurs, str] = {}
    for step in steps:
        number = len(names) + 1
        name = f"turned_{number}"
        while name in taken:
            name += "_"
        taken.add(name)
        names[step] = name
    return names


def _turning(system: System, instance: Instance, names: Mapping[Recurs, str]) -> Instance:
    here = after(system, instance)
    moved = here(changing(system))
    updates = []
    for step, name in names.items():
        bit = b.var(name, BOOL)
        taken = b.and_((moved, here(step.step)))
        if taken is not b.FALSE:
            updates.append((name, b.ite(taken, b.not_(bit), bit)))
    return replace(instance, updates=(*instance.updates, *updates))


def turned(formula: Formula, names: Mapping[Recurs, str]) -> Formula:
    """The formula over states that is equivalent to `formula`, with bits of these names for its step conditions."""
    if isinstance(formula, Recurs):
        bit = Atom(b.var(names[formula], BOOL), formula.text, formula.loc)
        return AndF((Always(Eventually(bit)), Always(Eventually(NotF(bit)))))
    return mapped(formula, partial(turned, names=names))
