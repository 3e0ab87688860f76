"""Fairness and stuttering made explicit: an equivalent system without fairness constraints, for tools without fairness.

Stuttering becomes an instance, so that every behaviour is infinite. Fairness becomes a round: a counter waits for each
constraint in turn, so that the fair behaviours are those with infinitely many rounds. This multiplies the states by the
number of constraints, whereas one bit per constraint would multiply them by two to that number. A constraint of weak
fairness is met where it is disabled or taken; one of strong fairness where it is taken, or after it was given up, a
step that guesses that it is never enabled again: if it is, the round never ends. Step conditions in a formula become
bits (`constraint.by_states`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system.expr import Expr, Var
from streamproof.system.formula import Always, Atom, Eventually, Formula, NotF, OrF
from streamproof.system.model import (
    Action,
    Conjunct,
    Fairness,
    FairnessConstraint,
    Instance,
    Kind,
    Property,
    System,
    Variable,
    fairness_constraints,
    fresh,
)
from streamproof.system.sorts import BOOL, RangeSort
from streamproof.system.verdict import Trace
from streamproof.transform.constraint import after, by_states, changing

STAY = "stay"
"""The stuttering action."""
GIVE_UP = "give_up"
"""The action that guesses that a strong fairness constraint is never enabled again."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A system without fairness, and the formula to check in place of one on the fair behaviours of `original`.

    A behaviour of `original` is fair and violates the formula exactly when, extended by bookkeeping steps, it is a
    behaviour of `system` in which `round_ends` (None: no constraints) holds infinitely often and `formula` is false.
    """

    original: System
    system: System
    formula: Formula
    round_ends: Expr | None

    @property
    def whole(self) -> Formula:
        """A formula that holds in every behaviour of `system` exactly when the original formula holds in every fair one
        of `original`."""
        if self.round_ends is None:
            return self.formula
        ends = Atom(self.round_ends, "a round ends")
        # Both, so that stuttering at the end of a round does not count as infinitely many rounds.
        return OrF((Eventually(Always(NotF(ends))), Eventually(Always(ends)), self.formula))

    @property
    def stepwise(self) -> Formula:
        """The same for tools whose behaviours are all infinite by stuttering: there a round that ends is over."""
        if self.round_ends is None:
            return self.formula
        return OrF((Eventually(Always(NotF(Atom(self.round_ends, "a round ends")))), self.formula))

    def trace(self, trace: Trace) -> Trace:
        """The lasso of the original for a lasso of `system`, without bookkeeping steps."""
        assert trace.loop is not None, "a lasso"
        width = len(self.original.variables)
        back = dict(zip(self.system.instances, self.original.instances, strict=False))
        states = [trace.states[0][:width]]
        steps: list[Instance] = []
        loop = 0
        for number, instance in enumerate(trace.steps):
            if number == trace.loop:
                loop = len(steps)
            beyond = number + 1 < len(trace.states)
            then = trace.states[number + 1 if beyond else trace.loop][:width]
            if instance in back:
                steps.append(back[instance])
                states.append(then)
        if trace.loop == len(trace.steps):
            loop = len(steps)
        if loop == len(steps):
            return Trace(tuple(states), tuple(steps), loop)
        return Trace(tuple(states[:-1]), tuple(steps), loop)


def scheduled(system: System, formula: Formula, name: str = "formula") -> Scheduled:
    """`system` without fairness; its only property, called `name`, has the formula `Scheduled.whole`."""
    fairness = fairness_constraints(system)
    idle = replace(system, actions=tuple(replace(a, fairness=Fairness.NONE) for a in system.actions))
    counted = by_states(idle, formula, name)
    staying = Instance(fresh(STAY, [a.name for a in system.actions]), (), (), (), ())
    actions = (*counted.system.actions, Action(staying.action, (), Fairness.NONE, (staying,)))
    result = Scheduled(system, replace(counted.system, actions=actions), counted.formula, None)
    if fairness:
        result = _Rounds(system, result.system, fairness).scheduled(counted.formula)
    prop = Property(name, Kind.TEMPORAL, b.TRUE, formula=result.whole)
    return replace(result, system=replace(result.system, properties=(prop,), terminal=None))


def enabled(system: System, constraint: FairnessConstraint) -> Expr:
    """Some instance of the constraint is enabled and changes the state."""
    options = []
    for number in constraint.numbers:
        instance = system.instances[number]
        changes = after(system, instance)(changing(system))
        options.append(b.and_((*(c.expr for c in instance.guard), changes)))
    return b.or_(options)


def taken(system: System, constraint: FairnessConstraint) -> Expr:
    """The step condition that some instance of the constraint can make the step, possibly without a change."""
    options = []
    for number in constraint.numbers:
        instance = system.instances[number]
        written = dict(instance.updates)
        arrives = (b.eq(b.next_(v.name, v.sort), written.get(v.name, b.var(v.name, v.sort))) for v in system.variables)
        options.append(b.and_((*(c.expr for c in instance.guard), *arrives)))
    return b.or_(options)


@dataclass
class _Rounds:
    """Adds rounds to `extended`, which is `system` with stuttering and step bits."""

    system: System
    extended: System
    fairness: tuple[FairnessConstraint, ...]

    def __post_init__(self) -> None:
        strong = [at for at, o in enumerate(self.fairness) if o.fairness is Fairness.STRONG]
        self.given_up = {at: b.var(fresh(f"given_up_{at + 1}", self.extended.index), BOOL) for at in strong}
        self.end = len(self.fairness)
        self.dead = self.end + 1
        self.sort = RangeSort(0, self.dead if strong else self.end)
        self.round = b.var(fresh("round", self.extended.index), self.sort)
        self.can = [enabled(self.system, o) for o in self.fairness]
        self.does = [taken(self.system, o) for o in self.fairness]
        self.moved = changing(self.system)
        self.broken = b.or_(b.and_((given_up, self.can[at])) for at, given_up in self.given_up.items())

    def scheduled(self, formula: Formula) -> Scheduled:
        assert isinstance(self.round, Var)
        actions = [
            replace(a, instances=tuple(replace(i, updates=(*i.updates, *self._next(i))) for i in a.instances))
            for a in self.extended.actions
        ]
        if self.given_up:
            name = fresh(GIVE_UP, [a.name for a in self.extended.actions])
            actions.append(Action(name, ("of",), Fairness.NONE, tuple(self._giving_up(name))))
        variables = [Variable(v.name, BOOL, (False,)) for v in self.given_up.values() if isinstance(v, Var)]
        rounds = replace(
            self.extended,
            variables=(*self.extended.variables, *variables, Variable(self.round.name, self.sort, (0,))),
            actions=tuple(actions),
        )
        return Scheduled(self.system, rounds, formula, b.eq(self.round, b.num(self.end)))

    def _giving_up(self, name: str) -> Iterator[Instance]:
        for at, given_up in self.given_up.items():
            assert isinstance(given_up, Var)
            free = (Conjunct(b.not_(given_up), "not given up", None),)
            bare = Instance(name, (("of", self.fairness[at].label),), (), free, ((given_up.name, b.TRUE),))
            yield replace(bare, updates=(*bare.updates, *self._next(bare)))

    def _next(self, instance: Instance) -> tuple[tuple[str, Expr], ...]:
        """The effect of a step of the instance on the round."""
        here = after(self.system, instance)
        there = here(self.moved)
        following: Expr = self.round
        for at in range(self.end):
            met = [
                b.and_((there, here(self.does[at]))),
                self.given_up[at] if at in self.given_up else b.not_(self.can[at]),
            ]
            following = b.ite(b.and_((b.eq(self.round, b.num(at)), b.or_(met))), b.num(at + 1), following)
        following = b.ite(b.eq(self.round, b.num(self.end)), b.num(0), following)
        if self.given_up:
            over = b.or_((b.eq(self.round, b.num(self.dead)), self.broken))
            following = b.ite(over, b.num(self.dead), following)
        assert isinstance(self.round, Var)
        return ((self.round.name, following),)
