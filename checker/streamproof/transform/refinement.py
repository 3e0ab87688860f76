"""Refinement: the image of every behaviour of a system under a refinement mapping is a behaviour of an abstract system.

The claim is split into properties of the concrete system (Martin Abadi, Leslie Lamport, "The existence of refinement
mappings", 1991), which every engine supports:

* every initial state is mapped to an initial state of the abstract system (an invariant: a state is initial or not);
* every step is mapped to a step of the abstract system, or changes no mapped variable (a step property);
* the image satisfies the fairness constraints of the abstract system (a temporal property).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from streamproof.base.errors import Loc, TooLarge
from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.formula import Always, AndF, Atom, Eventually, Formula, NotF, OrF, Recurs
from streamproof.system.model import (
    Check,
    Conjunct,
    Fairness,
    FairnessConstraint,
    Instance,
    Kind,
    Property,
    System,
    Variable,
    fairness_constraints,
)
from streamproof.system.sorts import cardinality
from streamproof.transform.assume import Substitution

START = "_start"
"""The suffix of the property of initial states."""
FAIRNESS = "_fairness"
"""The suffix of the fairness property."""
MOST_STARTS = 20_000
"""Maximum number of initial values of one variable that are enumerated."""


@dataclass(frozen=True)
class Refinement:
    """The claim that `concrete`, an initial condition and variables, refines `abstract` by `mapping`.

    `mapping` gives a term over the concrete variables for every abstract variable; where one of `checks` is true, the
    mapping itself is an error.
    """

    name: str
    variables: tuple[Variable, ...]
    initially: Expr
    abstract: System
    mapping: Mapping[str, Expr]
    checks: tuple[Check, ...] = ()
    loc: Loc | None = None
    doc: str = ""

    def properties(self) -> tuple[Property, ...]:
        """The properties of the concrete system: `name` + ``_start``, `name`, and, if the abstract system has fairness
        constraints, `name` + ``_fairness``.

        Raises `TooLarge` if a variable has too many initial values to enumerate.
        """
        starts, step = self._starts(), self._step()
        views = tuple(self.mapping.items())
        into = self.abstract.name
        found = [
            Property(
                self.name + START,
                Kind.INVARIANT,
                b.and_(conjunct.expr for conjunct in starts),
                starts,
                self.checks,
                self.loc,
                f"Every initial state is mapped to an initial state of {into}.",
                views=views,
            ),
            Property(
                self.name,
                Kind.STEP,
                step,
                (Conjunct(step, f"a step is one of {into} or changes nothing of it", self.loc),),
                (*self.checks, *(check.mapped(self._next) for check in self.checks)),
                self.loc,
                self.doc or f"Every step is mapped to a step of {into}, or changes no mapped variable.",
                views=views,
            ),
        ]
        constraints = fairness_constraints(self.abstract)
        if self.abstract.progress is not Fairness.NONE or any(a.is_fair for a in self.abstract.actions):
            found.append(
                Property(
                    self.name + FAIRNESS,
                    Kind.TEMPORAL,
                    b.TRUE,
                    (),
                    self.checks,
                    self.loc,
                    f"The fairness that {into} demands is kept.",
                    AndF(tuple(map(self._fairness, constraints))),
                    views,
                )
            )
        return tuple(found)

    # --- the abstract system, over concrete variables ---

    @cached_property
    def _seen(self) -> Substitution:
        """Terms over the abstract state as terms over the concrete one."""
        return Substitution({b.var(v.name, v.sort): self.mapping[v.name] for v in self.abstract.variables})

    @cached_property
    def _next(self) -> Substitution:
        """Terms over the concrete state as the same terms over the next one."""
        return Substitution({b.var(v.name, v.sort): b.next_(v.name, v.sort) for v in self.variables})

    def _starts(self) -> tuple[Conjunct, ...]:
        """The condition for initial states: one condition per abstract variable, and the common one."""
        first = initial_condition(self.variables, self.initially)
        into = self.abstract.name
        wanted = [
            *((f"{v.name} starts as {into} has it", _begins(v, self.mapping[v.name])) for v in self.abstract.variables),
            (f"an initial state is one of {into}", self._seen(self.abstract.initially)),
        ]
        return tuple(Conjunct(b.implies(first, term), text, self.loc) for text, term in wanted)

    def _step(self) -> Expr:
        same = b.and_(b.eq(self._next(term), term) for term in self.mapping.values())
        return b.or_((same, *(self._taken(i) for i in self.abstract.instances)))

    def _enabled(self, instance: Instance) -> Expr:
        """The instance is enabled in the abstract state, without an error."""
        wrong = (c.condition for c in (*instance.guard_checks, *instance.effect_checks))
        return self._seen(b.and_((*(b.not_(w) for w in wrong), *(c.expr for c in instance.guard))))

    def _taken(self, instance: Instance) -> Expr:
        """The concrete step is mapped to a step of the instance."""
        written = dict(instance.updates)
        arrives = (
            b.eq(self._next(self.mapping[v.name]), self._seen(written.get(v.name, b.var(v.name, v.sort))))
            for v in self.abstract.variables
        )
        return b.and_((self._enabled(instance), *arrives))

    def _changes(self, instance: Instance) -> Expr:
        """Taking the instance changes the abstract state."""
        moved = b.or_(
            b.not_(b.eq(term, b.var(name, self.abstract.variables[self.abstract.index[name]].sort)))
            for name, term in instance.updates
        )
        return self._seen(moved)

    def _fairness(self, constraint: FairnessConstraint) -> Formula:
        instances = [self.abstract.instances[number] for number in constraint.numbers]
        enabled = b.or_(b.and_((self._enabled(i), self._changes(i))) for i in instances)
        moved = b.or_(b.not_(b.eq(self._next(term), term)) for term in self.mapping.values())
        step = b.and_((moved, b.or_(map(self._taken, instances))))
        can = Atom(enabled, f"{constraint.label} of {self.abstract.name} is enabled", self.loc)
        taken = Recurs(step, f"{constraint.label} of {self.abstract.name}", self.loc)
        if constraint.fairness is Fairness.WEAK:
            return OrF((Always(Eventually(NotF(can))), taken))
        return OrF((Eventually(Always(NotF(can))), taken))


def initial_condition(variables: Iterable[Variable], initially: Expr) -> Expr:
    """The condition of the initial states. Raises `TooLarge` if a variable has too many initial values to enumerate."""
    return b.and_((*(_begins(v, b.var(v.name, v.sort)) for v in variables), initially))


def _begins(variable: Variable, term: Expr) -> Expr:
    """`term` is one of the initial values of the variable."""
    first = tuple(dict.fromkeys(variable.initial))
    if len(first) == cardinality(variable.sort):
        return b.TRUE
    if len(first) > MOST_STARTS:
        raise TooLarge(
            f"{variable.name} has {len(first):,} first values, which a refinement spells out",
            loc=variable.loc,
            remedy="choose smaller parameters, or state them with @initially",
        )
    return b.or_(b.eq(term, b.const(variable.sort, value)) for value in first)
