"""Long conditions of a temporal property as bits of the state, because Spin limits the length of a formula.

Each bit has the value of its condition in the state: it is set initially and at every step. So the numbers of states
and steps are unchanged; only the states become longer.
"""

from __future__ import annotations

from dataclasses import replace

from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.assume import Substitution
from streamproof.system.expr import Expr
from streamproof.system.formula import rewritten
from streamproof.system.model import Action, Instance, System, Variable
from streamproof.system.scheduler import Scheduled
from streamproof.system.sorts import BOOL

LONG = 8
"""Minimum size of a long condition, in terms."""


def with_bits(form: Scheduled) -> Scheduled:
    """The same claim, with a bit for each long condition of its formula."""
    names: dict[Expr, Expr] = {}

    def named(condition: Expr) -> Expr:
        if sum(1 for _ in e.subterms(condition)) <= LONG:
            return condition
        if condition not in names:
            names[condition] = b.var(_fresh(form.system, len(names) + 1), BOOL)
        return names[condition]

    formula = rewritten(form.formula, named)
    return replace(form, system=_extended(form.system, names), formula=formula)


def _fresh(system: System, number: int) -> str:
    name = f"said_{number}"
    while name in system.index:
        name += "_"
    return name


def _extended(system: System, names: dict[Expr, Expr]) -> System:
    bits = tuple(Variable(bit.name, BOOL, (False, True)) for bit in names.values() if isinstance(bit, e.Var))
    at_first = (b.eq(bit, condition) for condition, bit in names.items())
    return replace(
        system,
        variables=(*system.variables, *bits),
        actions=tuple(_setting(system, action, names) for action in system.actions),
        initially=b.and_((system.initially, *at_first)),
    )


def _setting(system: System, action: Action, names: dict[Expr, Expr]) -> Action:
    return replace(action, instances=tuple(_set(system, instance, names) for instance in action.instances))


def _set(system: System, instance: Instance, names: dict[Expr, Expr]) -> Instance:
    written = dict(instance.updates)
    there = Substitution({b.var(n, v.sort): written[n] for v in system.variables if (n := v.name) in written})
    set_ = tuple(
        (bit.name, now)
        for condition, bit in names.items()
        if isinstance(bit, e.Var) and (now := there(condition)) is not condition
    )
    return replace(instance, updates=(*instance.updates, *set_))
