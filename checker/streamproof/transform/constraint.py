"""State constraints, with TLC's meaning: a state outside the constraint is found and checked, but has no steps.

`constrained` builds this meaning into a system, so that every engine has it: every guard requires the constraint, states
outside are terminal, and a temporal property is judged on what happens inside. Fairness is that of the system without the
constraint: an action that only leads outside is enabled there.

A behaviour that leaves the constraint has a finite prefix inside. It violates a formula only if that prefix refutes it,
whatever follows: `weakened` takes every condition of the formula as true from the first state outside on (the weak semantics
of C. Eisner, D. Fisman, J. Havlicek, Y. Lustig, A. McIsaac, D. Van Campenhout, "Reasoning with Temporal Logic on Truncated
Paths", 2003). Every state may be followed by a fair behaviour, so the prefix of an unfair behaviour counts too.

A constraint on steps becomes one on states: a step that breaks it sets a variable, and the states in which that is true are
outside. A step that changes nothing breaks none, so that a behaviour may always stutter.

Step conditions in formulas are replaced by state conditions for engines that support only these: a step of the kind flips a
bit, which must flip infinitely often. The bit is a function of the history, so fairness, cycles and stuttering are unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from streamproof.base.errors import ModelError
from streamproof.base.records import dataclass, replace
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    Happens,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Until,
    folded,
    happenings,
    mapped,
    of_state,
    recurring,
    written,
)
from streamproof.system.model import (
    Check,
    Conjunct,
    Instance,
    Kind,
    Property,
    StateConstraint,
    System,
    Variable,
    fresh,
)
from streamproof.system.sorts import BOOL
from streamproof.system.verdict import CheckResult, Finding, Trace, Verdict
from streamproof.transform.assume import Substitution


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
    of_states = turned(formula, names)
    counted = system.with_instances(
        lambda instance: _turning(system, instance, names),
        variables=(*system.variables, *(Variable(name, BOOL, (False,)) for name in names.values())),
        properties=(Property(name, Kind.TEMPORAL, b.TRUE, formula=of_states),),
        lemmas=(),
        constraint=None,  # it is part of guards and formula, and its own formulas are not of this system
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
        names[step] = fresh(f"turned_{len(names) + 1}", taken)
        taken.add(names[step])
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
    if isinstance(formula, Happens):
        one = Atom(b.var(names[Recurs(formula.step)], BOOL), formula.text, formula.loc)
        then = turned(formula.arg, names)
        if of_state(then):  # a bit stays apart from other conditions on the same state
            then = Until(OrF(()), then)
        turns = [AndF((now, Until(now, AndF((new, then))))) for now, new in ((one, NotF(one)), (NotF(one), one))]
        return Eventually(OrF(tuple(turns)))
    return mapped(formula, partial(turned, names=names))


R = TypeVar("R", bound=CheckResult)


def cut_name(taken: Collection[str]) -> str:
    """The name of the variable that is true after a step that breaks a constraint on steps; none of those `taken`."""
    return fresh("cut", taken)


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
        for part in happenings(one.formula):
            raise ModelError(
                f"{part.text} in a formula other than always(eventually(...)) is not judged within a constraint",
                loc=part.loc,
                remedy="record the action in a variable of the state, or leave the constraint out",
            )
        formula = folded(one.formula)  # what constants refute is refuted by the first state
        formula = Atom(b.truth(formula), written(one.formula), one.loc) if isinstance(formula, bool) else formula
        return replace(one, formula=weakened(formula, outside), checks=checks(one.checks))

    return system.with_instances(
        instance,
        properties=tuple(map(prop, system.properties)),
        terminal=outside if system.terminal is None else b.or_((outside, system.terminal)),
        constraint=StateConstraint(tuple(conjuncts), free, on_steps=bool(steps)),
    )


def weakened(formula: Formula, outside: Expr, *, weak: bool = True) -> Formula:
    """`formula`, in which every condition counts as true where `outside` is, which stays true; not `weak`: as false.

    A part that is negated is made strong, so that its negation is weak.
    """
    turn = partial(weakened, outside=outside, weak=weak)
    turn_over = partial(weakened, outside=outside, weak=not weak)
    match formula:
        case Atom(expr, text, loc):
            return Atom(b.or_((outside, expr)) if weak else b.and_((b.not_(outside), expr)), text, loc)
        case Recurs():
            leaves = Eventually(Atom(outside, "the constraint is left", formula.loc))
            return OrF((leaves, formula)) if weak else AndF((NotF(leaves), formula))
        case Happens():
            raise AssertionError("refused before")
        case NotF(arg):
            return NotF(turn_over(arg))
        case LeadsTo(left, right):
            return LeadsTo(turn_over(left), turn(right))
        case _:
            return mapped(formula, turn)


def _cutting(system: System, steps: Sequence[Conjunct]) -> tuple[System, Conjunct]:
    """`system` with the variable that a step sets for a broken condition, and the condition that it is false."""
    name = cut_name(system.index)
    broken = b.and_((b.not_(b.and_(c.expr for c in steps)), changing(system)))

    def instance(one: Instance) -> Instance:
        breaks = after(system, one)(broken)
        return one if breaks is b.FALSE else replace(one, updates=(*one.updates, (name, breaks)))

    cut = system.with_instances(instance, variables=(*system.variables, Variable(name, BOOL, (False,))))
    return cut, Conjunct(b.not_(b.var(name, BOOL)), " and ".join(c.text for c in steps), steps[0].loc)


CONTRADICTS = (
    "parts of the formula may contradict each other after some behaviours that leave it, and whether the formula can still "
    "be true then is not examined; simplify the formula, or state its parts as properties of their own"
)


def within_constraint(system: System, result: R) -> R:
    """`result`, in which every verdict on all behaviours names the constraint that ends some of them.

    Only a search that left no state out knows that every state is inside; all others name it. A second call changes nothing.
    """
    limit = system.constraint
    if limit is None or (result.counts is not None and result.left_out is None and not any(result.counts.outside)):
        return result
    return replace(result, findings=tuple(restricted(finding, limit) for finding in result.findings))


def restricted(finding: Finding, limit: StateConstraint) -> Finding:
    """`finding`, with the constraint if it is about all behaviours; a behaviour that shows a verdict needs no more."""
    about_all = Verdict.VIOLATED if finding.kind is Kind.REACHABLE else Verdict.HOLDS
    if finding.verdict is not about_all or finding.within is not None:
        return finding
    if finding.kind is Kind.TEMPORAL:
        from streamproof.system.prefixes import may_contradict

        if may_contradict(limit.own_formula(finding.property)):
            because = f"within the constraint {limit.text}: {CONTRADICTS}"
            return replace(finding, verdict=Verdict.INCONCLUSIVE, because=because, vacuous=False)
        ends = f"of behaviours that leave the constraint {limit.text}, only the part within it is judged"
    elif limit.on_steps:
        ends = f"behaviours end where the constraint {limit.text} is false"
    else:
        ends = f"steps from states outside the constraint {limit.text} are not followed"
    return replace(finding, because=f"{finding.because}; {ends}", within=limit.text)
