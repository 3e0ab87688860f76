"""Equivalence of two compiled forms of a finite system: a solver searches for a state that distinguishes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamproof import interrupts
from streamproof.any.engine.claims import inside
from streamproof.any.engine.values import Shape, SymbolicView, Universe
from streamproof.base.errors import Loc
from streamproof.symbolic.theory import Term
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Check, Instance, Property, System
from streamproof.system.sorts import Sort

LIMIT = 20_000_000
"""Resource limit of the solver for one query."""

STARTS = 64
"""Maximum number of initial values of a variable for which initial conditions are compared."""

Key = tuple[str, tuple[tuple[str, object], ...], tuple[tuple[str, object], ...], tuple[bool, tuple[int, ...]]]
Pair = tuple[Instance | None, Instance | None]
"""The instances of one key in two systems; None where there is none."""
Parts = tuple[Expr, Expr, Expr, dict[str, Expr]]


def difference(one: System, other: System) -> Iterator[tuple[str, Loc | None]]:
    """The rules and properties that differ between two systems with the same variables, each with its position.

    Raises `Outside` for terms outside the fragment. Undecided queries are not reported.
    """
    if [(v.name, v.sort) for v in one.variables] != [(v.name, v.sort) for v in other.variables]:
        yield "the state", one.variables[0].loc
        return
    question = _Question(one)
    rules: list[dict[Key, Instance]] = [{_key(i): i for i in system.instances} for system in (one, other)]
    alike: dict[object, list[Pair]] = {}
    for key in dict.fromkeys([*rules[0], *rules[1]]):
        alike.setdefault(key[:2], []).append((rules[0].get(key), rules[1].get(key)))
    for pairs in alike.values():
        if question.possible(question.rules(pairs)):
            changed = next(i for pair in pairs if question.parts(pair[0]) != question.parts(pair[1]) for i in pair if i)
            yield changed.label, one.action(changed.action).loc
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
    """An action that is fair in part has two instances that differ in the constraints only."""
    return instance.action, instance.args, instance.picks, (instance.fair, instance.listed)


class _Question:
    """Formulas satisfied by a state (or step) that distinguishes two rules or properties."""

    def __init__(self, system: System) -> None:
        self._universe = Universe()
        self._sorts: dict[str, Sort] = {v.name: v.sort for v in system.variables}
        now, then = ({v.name: self._universe.fresh(v.name, v.sort, v.loc) for v in system.variables} for _ in range(2))
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

    def rules(self, pairs: Sequence[Pair]) -> Term | None:
        """The instances of an action with the same arguments differ: in whether there is an error, or in a step.

        An instance is None if it is never enabled. Errors are those of all instances together, because one that contradicts
        another in its picks has the errors before them too. Which errors come before the last guard depends on the guards
        that are constant: an error of the first system in a joint step that the other one disables is no difference, as
        the first proves less.
        """
        z3, v = self._universe.z3, self._view.value
        parts = [(self.parts(one), self.parts(other)) for one, other in pairs]
        if all(one == other for one, other in parts):
            return None
        bad, bad2 = (v(b.or_(b.or_((p[at][0], b.and_(p[at][1:3]))) for p in parts)) for at in (0, 1))
        go2 = v(b.or_(other[1] for _, other in parts))
        joint = any(i is not None and i.of for pair in pairs for i in pair)
        errors = z3.Or(z3.And(bad2, z3.Not(bad)), z3.And(bad, z3.Not(bad2), *([go2] if joint else [])))
        steps = self._universe.any_of(self._steps(pair, pairs) for pair in pairs)
        return z3.Or(errors, z3.And(z3.Not(bad), z3.Not(bad2), steps))

    def _steps(self, pair: Pair, pairs: Sequence[Pair]) -> Term:
        """One of two rules is enabled and the other one is not, or they lead to different states. A rule of one system only,
        with a choice that the other one does not reach, has a step that no rule of the other one has."""
        z3, v = self._universe.z3, self._view.value
        if None not in pair:
            go, go2 = (v(self.parts(i)[1]) for i in pair)
            return z3.Or(go != go2, z3.And(go, z3.Not(self._alike(*pair))))
        at = 0 if pair[0] is not None else 1
        mine, others = pair[at], (other[1 - at] for other in pairs)
        same = [
            z3.And(v(self.parts(i)[1]), self._alike(mine, i))
            for i in others
            if i and mine and (i.fair, i.listed) == (mine.fair, mine.listed)
        ]
        return z3.And(v(self.parts(mine)[1]), z3.Not(self._universe.any_of(same)))

    def _alike(self, one: Instance | None, other: Instance | None) -> Term:
        """The two rules lead to the same state."""
        after, after2 = self.parts(one)[3], self.parts(other)[3]
        return self._universe.all_of(
            self._universe.same(self._after(n, after), self._after(n, after2))
            for n in {*after, *after2}
            if after.get(n) is not after2.get(n)
        )

    def parts(self, i: Instance | None) -> Parts:
        """The errors before the last guard, the guard, the errors behind it, and the updates of an instance."""
        if i is None:
            return b.FALSE, b.FALSE, b.FALSE, {}
        guard = b.and_(c.expr for c in i.guard)
        return self._some(i.guard_checks), guard, self._some(i.effect_checks), dict(i.updates)

    def _some(self, checks: tuple[Check, ...]) -> Expr:
        return b.or_(c.condition for c in checks)

    def _after(self, name: str, updates: dict[str, Expr]) -> Shape:
        return self._view.value(updates.get(name, b.var(name, self._sorts[name])))
