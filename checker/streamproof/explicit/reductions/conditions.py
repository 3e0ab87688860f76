"""Conditions as Boolean combinations of atoms with one bit each, and their necessary enabling sets.

A *necessary set* of a condition that is false in a state is a set of instances such that every path to a state where the
condition is true takes one of them. For a conjunction, it is that of any one false part; for a disjunction, the union over
all parts; for an atom, the instances that write its variables, without those that provably cannot make it true.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TypeAlias, assert_never

from streamproof.base.records import dataclass
from streamproof.system import expr as e
from streamproof.system.expr import Expr


@dataclass(frozen=True, slots=True)
class Literal:
    """An atom or its negation. `bit` is the bit of the atom in truth masks.

    `enablers` has a bit for each instance that may make the literal true where it is false.
    """

    bit: int
    positive: bool
    enablers: int


@dataclass(frozen=True, slots=True)
class Every:
    """A conjunction; without parts always true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """A disjunction; without parts always false."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Literal | Every | Alternatives

Cost: TypeAlias = Callable[[int], int]
"""Cost of adding these instances to a stubborn set."""


def holds(condition: Condition, truth: int) -> bool:
    """Whether the condition is true if exactly the atoms in `truth` are true."""
    match condition:
        case Literal(bit, positive, _):
            return bool(truth & bit) is positive
        case Every(parts):
            return all(holds(part, truth) for part in parts)
        case Alternatives(parts):
            return any(holds(part, truth) for part in parts)
        case _:
            assert_never(condition)


def parts(condition: Condition) -> int:
    """Number of literals and junctions of a condition."""
    return 1 if isinstance(condition, Literal) else 1 + sum(map(parts, condition.parts))


def necessary(condition: Condition, truth: int, cost: Cost) -> int | None:
    """A cheap necessary set of a condition where exactly the atoms in `truth` are true; None if the condition is true."""
    if isinstance(condition, Literal):
        return None if bool(truth & condition.bit) is condition.positive else condition.enablers
    if isinstance(condition, Every):
        sets = [found for part in condition.parts if (found := necessary(part, truth, cost)) is not None]
        return min(sets, key=cost, default=None)
    union = 0
    for part in condition.parts:
        found = necessary(part, truth, cost)
        if found is None:
            return None
        union |= found
    return union


@dataclass(slots=True)
class Atoms:
    """The atoms of all conditions of a system, numbered in order of occurrence."""

    enablers: Callable[[Expr, bool], int]
    """The instances that may make a term true (or false), as bits."""
    terms: dict[Expr, int] = field(default_factory=dict)
    _literals: dict[tuple[Expr, bool], Literal] = field(default_factory=dict)

    def condition(self, term: Expr, positive: bool = True) -> Condition:
        """A Boolean scalar term (or its negation) as a condition over atoms."""
        match term:
            case e.Const(value=value):
                return Every(()) if value is positive else Alternatives(())
            case e.Not(arg=x):
                return self.condition(x, not positive)
            case e.And(args=args) | e.Or(args=args):
                parts = tuple(self.condition(x, positive) for x in args)
                return Every(parts) if isinstance(term, e.And) is positive else Alternatives(parts)
            case _:
                return self._literal(term, positive)

    def _literal(self, term: Expr, positive: bool) -> Literal:
        if (term, positive) not in self._literals:
            bit = 1 << self.terms.setdefault(term, len(self.terms))
            self._literals[term, positive] = Literal(bit, positive, self.enablers(term, positive))
        return self._literals[term, positive]
