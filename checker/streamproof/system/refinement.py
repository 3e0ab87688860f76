"""Refinement: every behaviour of a system, seen through a mapping of its states, is a behaviour of another one.

The claim is taken apart into properties of the system itself (Martin Abadi, Leslie Lamport, "The existence of refinement
mappings", 1991), so that every engine decides it by what it knows:

* every initial state is mapped to an initial state of the abstract system (an invariant: a state is initial or not);
* every step is mapped to a step of the abstract system, or changes nothing of what is mapped (a property of steps);
* whatever fairness the abstract system demands of an action is kept by what is mapped (a temporal property).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from streamproof.system import build as b
from streamproof.system.errors import Loc, TooLarge
from streamproof.system.expr import Expr
from streamproof.system.formula import Always, AndF, Atom, Eventually, Formula, NotF, OrF, Recurs
from streamproof.system.model import Check, Conjunct, Fairness, Instance, Kind, Property, System, Variable
from streamproof.system.records import dataclass
from streamproof.system.sorts import cardinality
from streamproof.system.substitute import Substitution
from streamproof.system.temporal import Obligation, obligations

START = "_start"
"""What the property of initial states has after the name of the refinement."""
FAIRNESS = "_fairness"
"""What the temporal property has after the name of the refinement."""
MOST_STARTS = 20_000
"""The most first values of one variable that are spelt out."""


@dataclass(frozen=True)
class Refinement:
    """A claim that `concrete`, an initial condition and variables, refines `abstract` by `mapping`.

    `mapping` gives a term over the concrete variables for every variable of the abstract system; where one of `checks` is
    true, the mapping itself is a mistake.
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
        """What must hold of the concrete system: `name` + ``_start``, `name`, and, where the abstract system demands
        fairness, `name` + ``_fairness``.

        Raises `TooLarge` when a variable has too many first values to spell out.
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
                (*self.checks, *(self._later(check) for check in self.checks)),
                self.loc,
                self.doc or f"Every step is mapped to a step of {into}, or changes nothing of what is mapped.",
                views=views,
            ),
        ]
        owed = obligations(self.abstract)
        if any(a.fairness is not Fairness.NONE for a in self.abstract.actions):
            found.append(
                Property(
                    self.name + FAIRNESS,
                    Kind.TEMPORAL,
                    b.TRUE,
                    (),
                    self.checks,
                    self.loc,
                    f"The fairness that {into} demands is kept.",
                    AndF(tuple(map(self._fairness, owed))),
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

    def _later(self, check: Check) -> Check:
        operands = tuple((text, self._next(term)) for text, term in check.operands)
        return Check(self._next(check.condition), check.message, check.loc, operands)

    def _starts(self) -> tuple[Conjunct, ...]:
        """What an initial state must be: a condition for each abstract variable, and their common one."""
        first = b.and_((*(_begins(v, b.var(v.name, v.sort)) for v in self.variables), self.initially))
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
        """The instance can be taken in the abstract state, and that is no mistake."""
        wrong = (c.condition for c in (*instance.guard_checks, *instance.effect_checks))
        return self._seen(b.and_((*(b.not_(w) for w in wrong), *(c.expr for c in instance.guard))))

    def _taken(self, instance: Instance) -> Expr:
        """The step of the concrete system is one that the instance makes of the abstract states."""
        written = dict(instance.updates)
        arrives = (
            b.eq(self._next(self.mapping[v.name]), self._seen(written.get(v.name, b.var(v.name, v.sort))))
            for v in self.abstract.variables
        )
        return b.and_((self._enabled(instance), *arrives))

    def _changes(self, instance: Instance) -> Expr:
        """Taking the instance leads to another abstract state."""
        moved = b.or_(
            b.not_(b.eq(term, b.var(name, self.abstract.variables[self.abstract.index[name]].sort)))
            for name, term in instance.updates
        )
        return self._seen(moved)

    def _fairness(self, owed: Obligation) -> Formula:
        instances = [self.abstract.instances[number] for number in owed.numbers]
        enabled = b.or_(b.and_((self._enabled(i), self._changes(i))) for i in instances)
        moved = b.or_(b.not_(b.eq(self._next(term), term)) for term in self.mapping.values())
        step = b.and_((moved, b.or_(map(self._taken, instances))))
        can = Atom(enabled, f"{owed.label} of {self.abstract.name} is enabled", self.loc)
        taken = Recurs(step, f"{owed.label} of {self.abstract.name}", self.loc)
        if owed.fairness is Fairness.WEAK:
            return OrF((Always(Eventually(NotF(can))), taken))
        return OrF((Eventually(Always(NotF(can))), taken))


def _begins(variable: Variable, term: Expr) -> Expr:
    """That `term` is one of the first values of the variable."""
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
