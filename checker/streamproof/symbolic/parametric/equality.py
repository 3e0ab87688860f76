"""Equivalence of two compiled forms of a finite system: a solver searches for a state that distinguishes them."""

from __future__ import annotations

from collections.abc import Iterator

from streamproof import interrupts
from streamproof.symbolic.parametric.claims import inside
from streamproof.symbolic.parametric.values import Shape, SymbolicView, Universe
from streamproof.symbolic.theory import Term
from streamproof.system import build as b
from streamproof.system.errors import Loc
from streamproof.system.expr import Expr
from streamproof.system.model import Check, Instance, Property, System
from streamproof.system.sorts import Sort

LIMIT = 20_000_000
"""Resource limit of the solver for one query."""

STARTS = 64
"""Maximum number of initial values of a variable for which initial conditions are compared."""

Key = tuple[str, tuple[tuple[str, object], ...], tuple[tuple[str, object], ...], bool]


def difference(one: System, other: System) -> Iterator[tuple[str, Loc | None]]:
    """The rules and properties that differ between two systems with the same variables, each with its position.

    Raises `Outside` for terms outside the fragment. Undecided queries are not reported.
    """
    if [(v.name, v.sort) for v in one.variables] != [(v.name, v.sort) for v in other.variables]:
        yield "the state", one.variables[0].loc
        return
    question = _Question(one)
    rules: list[dict[Key, Instance]] = [{_key(i): i for i in system.instances} for system in (one, other)]
    for key in dict.fromkeys([*rules[0], *rules[1]]):
        pair = [of.get(key) for of in rules]
        if question.possible(question.rules(pair[0], pair[1])):
            yield next(i.label for i in pair if i is not None), one.action(key[0]).loc
    stated = {p.name: p for p in (*other.properties, *other.lemmas)}
    for prop in (*one.properties, *one.lemmas):
        if question.possible(question.properties(prop, stated[prop.name])):
            yield prop.name, prop.loc
    ends = [b.FALSE if s.terminal is None else s.terminal for s in (one, other)]
    if question.possible(question.truths(ends[0], ends[1])):
        yield "where the model may end", None
    few = all(len(v.initial) <= STARTS for s in (one, other) for v in s.variables)
    if few and question.possible(question.truths(_begins(one), _begins(other))):
        yield "the initial condition", one.variables[0].loc


def _begins(system: System) -> Expr:
    """The condition that a state is initial."""
    first = (
        b.or_(b.eq(b.var(v.name, v.sort), b.const(v.sort, value)) for value in v.initial)
        for v in system.variables
        if v.initial
    )
    return b.and_((*first, system.initially))


def _key(instance: Instance) -> Key:
    """An action that is fair in part has two instances that differ in `fair` only."""
    return instance.action, instance.args, instance.picks, instance.fair


class _Question:
    """Formulas satisfied by a state (or step) that distinguishes two rules or properties."""

    def __init__(self, system: System) -> None:
        self._universe = Universe()
        self._sorts: dict[str, Sort] = {v.name: v.sort for v in system.variables}
        now, then = ({n: self._universe.fresh(n, s) for n, s in self._sorts.items()} for _ in range(2))
        self._view = SymbolicView(self._universe, now, SymbolicView(self._universe, then))
        self._solver = self._universe.z3.SolverFor("QF_NIA", ctx=self._universe.ctx)
        self._solver.set("rlimit", LIMIT)
        for view in (self._view, SymbolicView(self._universe, then)):
            self._solver.add(*(view.value(inside(b.var(n, s), s, 0)) for n, s in self._sorts.items()))

    def possible(self, formula: Term | None) -> bool:
        """Whether a state satisfies the formula."""
        return formula is not None and bool(interrupts.answer(self._solver, formula) == self._universe.z3.sat)

    def truths(self, one: Expr, other: Expr) -> Term | None:
        """The two conditions differ."""
        return None if one is other else self._view.value(one) != self._view.value(other)

    def properties(self, one: Property, other: Property) -> Term | None:
        """The two properties differ in value, or in evaluation errors."""
        wrong = [self._some(p.checks) for p in (one, other)]
        parts = [self.truths(*wrong), self.truths(one.expr, other.expr)]
        if parts == [None, None]:
            return None
        z3 = self._universe.z3
        fine = z3.Not(self._view.value(wrong[0]))
        return z3.Or([z3.And(fine, p) if at else p for at, p in enumerate(parts) if p is not None])

    def rules(self, one: Instance | None, other: Instance | None) -> Term | None:
        """The two rules differ; None denotes a rule that is never enabled."""
        z3 = self._universe.z3
        (early, go, wrong, after), (early2, go2, wrong2, after2) = map(self._parts, (one, other))
        if (early, go, wrong, after) == (early2, go2, wrong2, after2):
            return None
        v = self._view.value
        bad, bad2 = v(wrong), v(wrong2)
        changed = [
            z3.Not(self._universe.same(self._after(n, after), self._after(n, after2)))
            for n in {*after, *after2}
            if after.get(n) is not after2.get(n)
        ]
        then = z3.Or(bad != bad2, z3.And(z3.Not(bad), self._universe.any_of(changed)))
        return z3.Or(v(early) != v(early2), z3.And(z3.Not(v(early)), z3.Or(v(go) != v(go2), z3.And(v(go), then))))

    def _parts(self, i: Instance | None) -> tuple[Expr, Expr, Expr, dict[str, Expr]]:
        if i is None:
            return b.FALSE, b.FALSE, b.FALSE, {}
        guard = b.and_(c.expr for c in i.guard)
        return self._some(i.guard_checks), guard, self._some(i.effect_checks), dict(i.updates)

    def _some(self, checks: tuple[Check, ...]) -> Expr:
        return b.or_(c.condition for c in checks)

    def _after(self, name: str, updates: dict[str, Expr]) -> Shape:
        return self._view.value(updates.get(name, b.var(name, self._sorts[name])))
