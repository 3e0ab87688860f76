"""Long conditions of a temporal property as bits of the state, because Spin limits the length of a formula.

Each bit has the value of its condition in the state: it is set initially and at every step. So the numbers of states
and steps are unchanged; only the states become longer.
"""

from __future__ import annotations

from dataclasses import replace

from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import rewritten
from streamproof.system.model import Instance, Variable, fresh
from streamproof.system.sorts import BOOL
from streamproof.transform.assume import Substitution
from streamproof.transform.fair_scheduler import Scheduled

LONG = 8
"""Minimum size of a long condition, in terms."""


def with_bits(form: Scheduled) -> Scheduled:
    """The same claim, with a bit for each long condition of its formula."""
    system, names = form.system, dict[Expr, e.Var]()

    def named(condition: Expr) -> Expr:
        if sum(1 for _ in e.subterms(condition)) <= LONG:
            return condition
        if condition not in names:
            bit = b.var(fresh(f"said_{len(names) + 1}", system.index), BOOL)
            assert isinstance(bit, e.Var)
            names[condition] = bit
        return names[condition]

    def with_updates(instance: Instance) -> Instance:
        written = dict(instance.updates)
        there = Substitution({b.var(n, v.sort): written[n] for v in system.variables if (n := v.name) in written})
        now = ((bit.name, condition, there(condition)) for condition, bit in names.items())
        set_ = ((name, then) for name, condition, then in now if then is not condition)
        return replace(instance, updates=(*instance.updates, *set_))

    formula = rewritten(form.formula, named)
    bits = (Variable(bit.name, BOOL, (False, True)) for bit in names.values())
    extended = system.with_instances(
        with_updates,
        variables=(*system.variables, *bits),
        initially=b.and_((system.initially, *(b.eq(bit, condition) for condition, bit in names.items()))),
    )
    return replace(form, system=extended, formula=formula)
