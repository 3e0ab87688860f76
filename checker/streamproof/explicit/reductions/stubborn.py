"""Partial-order reduction by stubborn sets: one order of independent steps is enough.

In each state, only the enabled members of a set T of instances are taken. T satisfies:

1. for an enabled member, T contains every dependent instance; for a disabled member, a necessary set of its guard;
2. T contains a necessary set of every open goal; in a state where a goal is true, all steps are taken;
3. if deadlocks or infinite behaviours are to be decided, T has an enabled member if any instance is enabled.

Goals are the states in which a property is decided: an invariant is false, a reachability property is true, an enabled
instance breaks a step property, or the model has an evaluation error. By 1, the first member of T on a behaviour can be moved
to its front, and the behaviour still reaches the same last state. By 2, every behaviour to a goal takes a member of T. So the
reduced search has a behaviour of the same length to that goal: shortest traces stay shortest. By 1 and 3, the same is true of
behaviours into a deadlock, and an infinite behaviour is preserved: its first member of T is moved to the front, or if it
takes none, an enabled member of T is taken before it.

Valmari, "Stubborn Sets for Reduced State Space Generation", 1990; with necessary sets of properties, Schmidt, "Stubborn
Sets for Simple Linear Time Properties", 2012; on guards, Laarman, Pater, van de Pol and Hansen, "Guard-Based Partial-Order
Reduction", 2016.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import partial

from streamproof.base.records import dataclass
from streamproof.explicit.reductions.conditions import (
    Alternatives,
    Atoms,
    Condition,
    Every,
    Literal,
    holds,
    necessary,
    parts,
)
from streamproof.explicit.reductions.equivalence import Equivalence
from streamproof.explicit.reductions.independence import Independence, bits
from streamproof.explicit.successors import Rule, rules_of
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Kind, Property, System

SEEDS = 32
"""Number of enabled instances tried as the start of a set without goals."""

STEP = 10
"""Cost of visiting a part of a condition, in evaluated terms."""

MISTAKE = -1
"""The number of goals that are evaluation errors of the model; other goals have the number of their property."""


@dataclass(frozen=True, slots=True)
class StubbornGoal:
    """The states that decide a property: the number of the property, or `MISTAKE`, and a condition on states."""

    number: int
    condition: Condition


@dataclass(frozen=True, slots=True)
class Choice:
    """The instances taken in a state, in order, and whether enabled instances are left out."""

    taken: tuple[int, ...]
    reduced: bool


@dataclass(slots=True)
class StubbornSets:
    """Selects a stubborn set in each state. Sets of instances and of true atoms are integers with one bit per member."""

    atoms: tuple[Expr, ...]
    """The atoms: terms over one state, in the order of their bits from the lowest."""
    guards: tuple[Condition, ...]
    """Per instance."""
    dependent: tuple[int, ...]
    """Per instance, its dependent instances."""
    goals: tuple[StubbornGoal, ...]
    progress: bool
    """Whether each set needs an enabled member if any instance is enabled."""
    cut: int = 0
    """Number of states in which enabled instances were left out."""
    expanded: int = 0
    """Number of states for which sets were selected."""
    work: int = 0
    """Work of the selection, in evaluated terms."""
    _open: tuple[StubbornGoal, ...] = ()
    _known: dict[int, Choice] = field(default_factory=dict)
    _quick: list[tuple[int, int]] = field(init=False)
    _goals_cost: int = 0
    _costs: list[int] = field(init=False)
    """Per instance, the cost of a necessary set of its guard."""

    def __post_init__(self) -> None:
        self._open = self.goals
        self._goals_cost = STEP * sum(parts(goal.condition) for goal in self._open)
        self._quick = [_bounds(guard) for guard in self.guards]
        self._costs = [STEP * parts(guard) for guard in self.guards]

    def keep_open(self, numbers: Collection[int]) -> None:
        """Restrict the goals to these properties."""
        still = tuple(goal for goal in self.goals if goal.number == MISTAKE or goal.number in numbers)
        if still != self._open:
            self._open = still
            self._goals_cost = STEP * sum(parts(goal.condition) for goal in still)
            self._known.clear()

    def choose(self, truth: int) -> Choice:
        """The instances to take in a state where exactly these atoms are true."""
        choice = self._known.get(truth)
        self.work += len(self.atoms)
        if choice is None:
            self.work += 2 * len(self.guards) + self._goals_cost
            enabled = self._enabled(truth)
            taken = self._stubborn(truth, enabled) & enabled
            choice = self._known[truth] = Choice(tuple(bits(taken)), taken != enabled)
        self.expanded += 1
        self.cut += choice.reduced
        return choice

    def _enabled(self, truth: int) -> int:
        found = 0
        for number, (needed, forbidden) in enumerate(self._quick):
            if truth & needed == needed and not truth & forbidden and holds(self.guards[number], truth):
                found |= 1 << number
        return found

    def _stubborn(self, truth: int, enabled: int) -> int:
        base = 0
        for goal in self._open:
            needed = necessary(goal.condition, truth, partial(_cost, enabled, base))
            if needed is None:
                return enabled
            base |= needed
        base = self._closed(base, truth, enabled)
        if base & enabled or not self.progress or not enabled:
            return base
        seeds = list(bits(enabled))[:SEEDS]
        closed = (self._closed(base | 1 << seed, truth, enabled) for seed in seeds)
        return min(closed, key=lambda found: (found & enabled).bit_count())

    def _closed(self, start: int, truth: int, enabled: int) -> int:
        """A small stubborn set that contains `start`, by greedy choice of necessary sets."""
        found = todo = start
        while todo:
            low = todo & -todo
            todo ^= low
            number = low.bit_length() - 1
            self.work += self._costs[number]
            waits = necessary(self.guards[number], truth, partial(_cost, enabled, found))
            more = self.dependent[number] if waits is None else waits
            todo |= more & ~found
            found |= more
            if found & enabled == enabled:
                return found
        return found


def _cost(enabled: int, have: int, instances: int) -> int:
    """Cost of instances that are not yet in the set; enabled instances cost more."""
    new = instances & ~have
    return new.bit_count() + 1000 * (new & enabled).bit_count()


def _bounds(guard: Condition) -> tuple[int, int]:
    """The atoms that must be true, and those that must be false, for a guard to be true."""
    needed = forbidden = 0
    for part in guard.parts if isinstance(guard, Every) else (guard,):
        if isinstance(part, Literal):
            needed |= part.bit if part.positive else 0
            forbidden |= 0 if part.positive else part.bit
    return needed, forbidden


def stubborn_sets(
    system: System, properties: Sequence[Property], alive: Mapping[str, Expr], limit: int | None = None
) -> StubbornSets:
    """The stubborn sets for `properties` of a simplified scalar system, numbered by their position.

    `alive` has the condition under which each leaf is meaningful (`images.liveness`). Raises `EffortSpent` if more than
    `limit` terms must be compared.
    """
    steps = [(number, p) for number, p in enumerate(properties) if p.kind is Kind.STEP]
    rules = tuple(rules_of(system, steps))
    independence = Independence(system, rules, Equivalence(alive), limit)
    atoms = Atoms(independence.enablers)
    guards = tuple(Every(tuple(atoms.condition(term) for term in rule.guard)) for rule in rules)
    goals = (*_mistakes(system, rules, guards, atoms), *_decisions(properties, rules, guards, atoms))
    progress = any(p.kind in (Kind.DEADLOCK, Kind.TERMINATION) for p in properties)
    dependent = independence.dependent()
    return StubbornSets(tuple(atoms.terms), guards, dependent, goals, progress)


def _mistakes(system: System, rules: Sequence[Rule], guards: Sequence[Condition], atoms: Atoms) -> list[StubbornGoal]:
    undefined = b.or_(check.condition for i in system.instances for check in i.guard_checks)
    found = [] if undefined is b.FALSE else [StubbornGoal(MISTAKE, atoms.condition(undefined))]
    for rule, guard in zip(rules, guards, strict=True):
        if rule.faults is not b.FALSE:
            found.append(StubbornGoal(MISTAKE, Every((guard, atoms.condition(rule.faults)))))
    return found


def _decisions(
    properties: Sequence[Property], rules: Sequence[Rule], guards: Sequence[Condition], atoms: Atoms
) -> list[StubbornGoal]:
    found: list[StubbornGoal] = []
    for number, prop in enumerate(properties):
        if prop.kind in (Kind.INVARIANT, Kind.REACHABLE):
            checks = [atoms.condition(check.condition) for check in prop.checks]
            wanted = atoms.condition(prop.expr, prop.kind is Kind.REACHABLE)
            found.append(StubbornGoal(number, Alternatives((*checks, wanted))))
    for rule, guard in zip(rules, guards, strict=True):
        for number, mistake, broken in rule.steps:
            here = Alternatives((atoms.condition(mistake), atoms.condition(broken)))
            found.append(StubbornGoal(number, Every((guard, here))))
    return found
