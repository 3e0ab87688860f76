"""What must be a function of a view, so that a search by views finds all that the full search finds.

Equality of views must be a bisimulation that respects the properties (R. Milner, "Communication and Concurrency", 1989) for
all states, not only for those that were found. An `Obligation` has terms that must be functions of the view: guards,
evaluation errors, the view after each step, properties. A term is a function of the view if it reads nothing else or, where
few values are possible, if evaluation for all of them shows it. Otherwise the obligation is *open*.

For temporal properties, two more conditions make fairness the same: no step changes hidden variables alone; and two steps
with equal views after them are equal, if a fairness constraint concerns only one of them, because a step that changes the
state *takes* every instance that could have made it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import TypeAlias, cast

from streamproof.base.records import dataclass, replace
from streamproof.explicit.writer import Writer, load, local_names, reading, shared
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import atoms, recurring
from streamproof.system.model import Instance, Kind, Property, State, System, fairness_constraints, fires
from streamproof.system.sorts import Value, cardinality_up_to, values
from streamproof.transform.assume import Assuming, Substitution
from streamproof.transform.canonical import canonical as representation
from streamproof.transform.constraint import after
from streamproof.transform.flatten import Rewriter
from streamproof.transform.scalarise import Scalarised

ROWS = 100_000
"""Number of assignments that are evaluated to decide whether one term is a function of the view."""
ALL_ROWS = 2_000_000
"""The same for all terms together; beyond, a term counts as undetermined."""
PAIRS = 20_000
"""Number of pairs of instances that are compared for fairness; beyond, they count as confused."""

Row: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Obligation:
    """`terms` that must be functions of the view in states with `guard`. `what` it is about, in words."""

    what: str
    terms: tuple[Expr, ...] = ()
    guard: Expr = b.TRUE
    hidden: tuple[str, ...] = ()
    """If it is open: the scalar variables outside the view that the terms read."""


class Obligations:
    """Finds the open obligations of a scalar system for a `view`, its scalar terms."""

    def __init__(self, scalarised: Scalarised, system: System, view: Sequence[Expr]) -> None:
        self._system, self._view = system, tuple(view)
        self._constraint = scalarised.original.constraint
        self._sorts = {v.name: v.sort for v in system.variables}
        self._seen = frozenset(term.name for term in view if isinstance(term, e.Var))
        self._composite = [term for term in view if not isinstance(term, e.Var)]
        marks: dict[Expr, Expr] = {term: b.var(f"view'{k}", term.sort) for k, term in enumerate(self._composite)}
        self._marked, self._marks = Substitution(marks), e.variables(*marks.values())
        self._valid = [Assuming()(condition) for condition in representation(scalarised)]
        self._rows, self._pairs = ALL_ROWS, PAIRS
        self._known: dict[tuple[Expr, Expr], bool] = {}

    def common(self) -> Iterator[Obligation]:
        """Those of the steps and the constraint."""
        for instance in self._system.instances:
            yield from filter(None, map(self._open, self._of(instance)))
        if self._constraint is not None:
            limit = b.and_(map(Rewriter().scalar, (c.expr for c in self._constraint.conjuncts)))
            yield from filter(None, [self._open(Obligation("the constraint", (limit,)))])

    def of(self, prop: Property) -> Iterator[Obligation]:
        """Those of a property."""
        yield from filter(None, map(self._open, self._about(prop)))
        if prop.kind is Kind.TEMPORAL:
            yield from self._fair()

    def _of(self, instance: Instance) -> Iterator[Obligation]:
        guard, label, then = _guard(instance), instance.label, self._after(instance)
        yield Obligation(f"evaluation errors in the guard of {label}", (fires(instance.guard_checks),))
        yield Obligation(f"whether {label} is enabled", (guard,))
        yield Obligation(f"evaluation errors of {label}", (fires(instance.effect_checks),), guard)
        yield Obligation(f"the view after {label}", tuple(map(then, self._view)), guard)

    def _about(self, prop: Property) -> Iterator[Obligation]:
        what, wrong = f"the value of {prop.name}", fires(prop.checks)
        match prop.kind:
            case Kind.INVARIANT | Kind.REACHABLE:
                yield Obligation(what, (wrong, prop.expr))
            case Kind.STEP:
                for instance in self._system.instances:
                    then = after(self._system, instance)
                    yield Obligation(f"{what} at {instance.label}", (then(wrong), then(prop.expr)), _guard(instance))
            case Kind.DEADLOCK:
                terminal = self._system.terminal
                yield Obligation("which states are terminal", () if terminal is None else (terminal,))
            case Kind.TEMPORAL:
                assert prop.formula is not None, "a temporal property has a formula"
                yield Obligation(what, (wrong, *(atom.expr for atom in atoms(prop.formula))))
                read = e.variables(*(part.step for part in recurring(prop.formula)))
                steps = tuple(b.var(name, self._sorts[name]) for name in self._sorts if name in read)
                yield Obligation(f"{what} at a step", steps)

    def _fair(self) -> Iterator[Obligation]:
        instances = self._system.instances
        hidden = [not self._seen.issuperset(name for name, _ in instance.updates) for instance in instances]
        idle = Instance("", (), (), (), ())
        for instance, hides in zip(instances, hidden, strict=True):
            if hides:
                yield from self._never(f"whether {instance.label} changes the state", self._confused(instance, idle))
        for constraint in fairness_constraints(self._system):
            chosen = frozenset(constraint.numbers)
            for one, other in product(chosen, (k for k in range(len(instances)) if k not in chosen)):
                if hidden[one] or hidden[other]:
                    self._pairs -= 1
                    what = f"whether a step is one of {instances[one].label} or of {instances[other].label}"
                    enough = self._pairs < 0
                    yield from self._never(what, b.TRUE if enough else self._confused(instances[one], instances[other]))

    def _confused(self, one: Instance, other: Instance) -> Expr:
        """Both instances are enabled, and their steps lead to different states with equal views."""
        then, there = self._after(one), self._after(other)
        same = [b.eq(then(term), there(term)) for term in self._view]
        names = dict.fromkeys(name for name, _ in (*one.updates, *other.updates))
        written = [b.var(name, self._sorts[name]) for name in names]
        differ = b.or_(b.not_(b.eq(then(term), there(term))) for term in written)
        return b.and_((_guard(one), _guard(other), *same, differ))

    def _after(self, instance: Instance) -> Substitution:
        return Substitution({b.var(name, self._sorts[name]): term for name, term in instance.updates})

    # --- functions of the view

    def _open(self, one: Obligation) -> Obligation | None:
        """The obligation with its hidden variables; None if it is met."""
        if one.guard is b.FALSE:
            return None
        given = Assuming([one.guard])
        read = [self._hidden(term) for term in map(given, one.terms) if not self._determined(term, one.guard)]
        return replace(one, hidden=tuple(dict.fromkeys(name for names in read for name in names))) if read else None

    def _never(self, what: str, condition: Expr) -> Iterator[Obligation]:
        """An open obligation, unless a condition is shown to be false in all states."""
        condition = Assuming()(condition)
        rows = iter(()) if condition is b.FALSE else self._evaluated([condition], e.variables(condition), ())
        if rows is None or any(row[0] for row in rows):
            yield Obligation(what, hidden=tuple(self._hidden(condition)))

    def _hidden(self, term: Expr) -> list[str]:
        """The variables that a term reads outside the view, in the order of the system."""
        read = e.variables(self._marked(term)) - self._marks - self._seen
        return [name for name in self._sorts if name in read]

    def _determined(self, term: Expr, guard: Expr) -> bool:
        """Whether a term is shown to be a function of the view in states with `guard`."""
        known = self._known.get((term, guard))
        if known is None:
            known = self._known[term, guard] = not self._hidden(term) or self._tabulated(term, guard)
        return known

    def _tabulated(self, term: Expr, guard: Expr) -> bool:
        read = e.variables(term)
        parts = [part for part in self._composite if not read.isdisjoint(e.variables(part))]
        names = read.union(*map(e.variables, parts))
        keys = [*parts, *(v for v in self._view if isinstance(v, e.Var) and v.name in names)]
        rows = self._evaluated([term, *keys], names, guard.args if isinstance(guard, e.And) else (guard,))
        found: dict[Row, Value] = {}
        return rows is not None and all(found.setdefault(row[1:], row[0]) == row[0] for row in rows)

    def _evaluated(self, terms: Sequence[Expr], names: frozenset[str], given: Iterable[Expr]) -> Iterator[Row] | None:
        """The values of `terms` for all values of these variables that make those conditions in `given` true which read no
        other variable; None if there are too many."""
        variables = [v for v in self._system.variables if v.name in names]
        count = math.prod(cardinality_up_to(v.sort, ROWS) for v in variables)
        if count > min(ROWS, self._rows):
            return None
        self._rows -= count
        valid = b.and_(c for c in (*self._valid, *given) if e.variables(c) <= names)
        values_of = evaluated(replace(self._system, variables=tuple(variables)), [valid, *terms])
        rows = map(values_of, product(*(tuple(values(v.sort)) for v in variables)))
        return (row[1:] for row in rows if row[0])


def _guard(instance: Instance) -> Expr:
    return b.and_(c.expr for c in instance.guard)


def evaluated(system: System, terms: Sequence[Expr]) -> Callable[[State], Row]:
    """A function that returns the values of scalar terms in a state."""
    writer = Writer(local_names(system))
    common = shared(terms)
    with writer.block("def values(_state):"):
        writer.line(reading(system, terms))
        parts = [writer.term(term, common) for term in terms]
        writer.line(f"return ({''.join(f'{part}, ' for part in parts)})")
    return cast(Callable[[State], Row], load("values", system.name, writer.source))
