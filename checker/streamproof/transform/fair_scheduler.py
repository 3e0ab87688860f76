"""Fairness and stuttering made explicit: an equivalent system without fairness constraints, for tools without fairness.

Stuttering becomes an instance, so that every behaviour is infinite. Fairness becomes a round: a counter waits for each
constraint in turn, so that the fair behaviours are those with infinitely many rounds. This multiplies the states by the
number of constraints, whereas one bit per constraint would multiply them by two to that number. A constraint of weak
fairness is met where it is disabled or taken; one of strong fairness where it is taken, or after it was given up, a
step that guesses that it is never enabled again: if it is, the round never ends. A step counts for the constraints of
its own instance: where another instance makes the same step, there is a behaviour with that one in its place. Step
conditions in a formula become bits (`constraint.by_states`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

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
    without_fairness,
)
from streamproof.system.sorts import BOOL, RangeSort
from streamproof.system.verdict import Trace
from streamproof.transform.constraint import after, by_states, changing

STAY = "stay"
"""The stuttering action."""
GIVE_UP = "give_up"
"""The action that guesses that a strong fairness constraint is never enabled again."""
PASS = "pass"
"""The action by which a constraint is met without being taken, where that is a step of its own."""


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


def scheduled(system: System, formula: Formula, name: str = "formula", *, apart: bool = False) -> Scheduled:
    """`system` without fairness; its only property, called `name`, has the formula `Scheduled.whole`.

    `apart`: that a constraint is met without being taken is a step of its own, which makes behaviours longer, and terms
    shorter by a factor of the number of instances.
    """
    fairness = fairness_constraints(system)
    counted = by_states(without_fairness(system), formula, name)
    staying = Instance(fresh(STAY, [a.name for a in system.actions]), (), (), (), ())
    actions = (*counted.system.actions, Action(staying.action, (), Fairness.NONE, (staying,)))
    result = Scheduled(system, replace(counted.system, actions=actions), counted.formula, None)
    if fairness:
        result = _Rounds(system, result.system, fairness, apart).scheduled(counted.formula)
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


@dataclass
class _Rounds:
    """Adds rounds to `extended`, which is `system` with stuttering and step bits."""

    system: System
    extended: System
    fairness: tuple[FairnessConstraint, ...]
    apart: bool

    def __post_init__(self) -> None:
        strong = [at for at, o in enumerate(self.fairness) if o.fairness is Fairness.STRONG]
        self.given_up = {at: b.var(fresh(f"given_up_{at + 1}", self.extended.index), BOOL) for at in strong}
        self.end = len(self.fairness)
        self.dead = self.end + 1
        self.sort = RangeSort(0, self.dead if strong else self.end)
        self.counter = fresh("round", self.extended.index)
        self.round = b.var(self.counter, self.sort)
        self.can = [enabled(self.system, o) for o in self.fairness]
        self.moved = changing(self.system)
        self.broken = b.or_(b.and_((given_up, self.can[at])) for at, given_up in self.given_up.items())

    def scheduled(self, formula: Formula) -> Scheduled:
        numbers = count()
        actions = [
            replace(a, instances=tuple(self._counting(i, next(numbers)) for i in a.instances))
            for a in self.extended.actions
        ]
        if self.given_up:
            name = fresh(GIVE_UP, [a.name for a in self.extended.actions])
            actions.append(Action(name, ("of",), Fairness.NONE, tuple(self._giving_up(name))))
        if self.apart:
            name = fresh(PASS, [a.name for a in self.extended.actions])
            actions.append(Action(name, ("of",), Fairness.NONE, tuple(self._passing(name))))
        variables = [Variable(v.name, BOOL, (False,)) for v in self.given_up.values() if isinstance(v, Var)]
        rounds = replace(
            self.extended,
            variables=(*self.extended.variables, *variables, Variable(self.counter, self.sort, (0,))),
            actions=tuple(actions),
        )
        return Scheduled(self.system, rounds, formula, b.eq(self.round, b.num(self.end)))

    def _giving_up(self, name: str) -> Iterator[Instance]:
        for at, given_up in self.given_up.items():
            assert isinstance(given_up, Var)
            free = (Conjunct(b.not_(given_up), "not given up", None),)
            bare = Instance(name, (("of", self.fairness[at].label),), (), free, ((given_up.name, b.TRUE),))
            yield self._counting(bare, None)

    def _passing(self, name: str) -> Iterator[Instance]:
        for at, constraint in enumerate(self.fairness):
            here = Conjunct(b.and_((b.eq(self.round, b.num(at)), self._idle(at))), "met without a step", None)
            following = self._unless_broken(b.num(at + 1))
            yield Instance(name, (("of", constraint.label),), (), (here,), ((self.counter, following),))

    def _idle(self, at: int) -> Expr:
        """The constraint is met in a state, without a step."""
        return self.given_up[at] if at in self.given_up else b.not_(self.can[at])

    def _unless_broken(self, following: Expr) -> Expr:
        if not self.given_up:
            return following
        over = b.or_((b.eq(self.round, b.num(self.dead)), self.broken))
        return b.ite(over, b.num(self.dead), following)

    def _counting(self, instance: Instance, number: int | None) -> Instance:
        """The instance with its effect on the round; `number`: its position in `system`, None for another."""
        there = after(self.system, instance)(self.moved)
        following: Expr = self.round
        for at, constraint in enumerate(self.fairness):
            met = b.or_([*([] if self.apart else [self._idle(at)]), *([there] if number in constraint.numbers else [])])
            following = b.ite(b.and_((b.eq(self.round, b.num(at)), met)), b.num(at + 1), following)
        following = self._unless_broken(b.ite(b.eq(self.round, b.num(self.end)), b.num(0), following))
        return replace(instance, updates=(*instance.updates, (self.counter, following)))
