"""Encoding of a scalar system as formulas: initial states, transition relation, model errors, and expressions.

Formulas are built once, over the constants of a *current* and a *following* state and one Boolean per instance that
selects the step between them; `Encoding.at` substitutes the constants of any position of a path. Invariants:

* Exactly one instance is taken per step, so a solver model names every step.
* Frame conditions are exact: the instance taken determines each written variable, and other variables keep their values.
* `mistake` is true in a state where evaluating or taking some step is an evaluation error of the model, or would put a
  value outside its sort. Where it is false, the transition relation equals that of the interpreter.
* `wellformed` is the representation invariant: values within their sorts, absent options and unused queue slots at
  their default. It is not assumed: induction proves it with the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import combinations
from operator import le
from typing import Any, assert_never, cast

from streamproof.base.errors import ModelError
from streamproof.symbolic.theory import Bits, Integers, SolverContext, Term, Terms, Theory, interval
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Check, Instance, State
from streamproof.system.sorts import (
    INFINITY,
    BoolSort,
    EnumSort,
    RangeSort,
    Scalar,
    Value,
    contains,
)
from streamproof.transform.canonical import canonical
from streamproof.transform.scalarise import Scalarised


class Encoding(SolverContext):
    """The formulas of one system, in a separate solver context, so that runs do not influence each other.

    `integers` uses the solver's integers instead of bit-vectors (see `theory`). Raises `ModelError` if an initial value
    is outside its variable's sort.
    """

    def __init__(self, scalarised: Scalarised, *, integers: bool = False) -> None:
        super().__init__()
        self.scalarised = scalarised
        self.system = scalarised.system
        self.integers = integers
        self._theory: Theory = Integers(self.ctx) if integers else Bits(self.ctx)
        self._sorts = {v.name: cast(Scalar, v.sort) for v in self.system.variables}
        self._now = self._constants("now")
        self._then = self._constants("then")
        self._taking = self._switches("now")
        self._states: list[dict[str, Term]] = []
        self._taken: list[list[Term]] = []
        self._terms = Terms(self.ctx, self._theory, self._sorts, self._now, self._then)
        _refuse_strangers(scalarised)

    # --- formulas over the current and the following state -----------------------------------------------------------

    def term(self, expr: Expr) -> Term:
        """Any scalar expression of the system."""
        return self._terms.term(expr)

    @cached_property
    def initial(self) -> Term:
        """The current state is initial."""
        terms = self._terms
        allowed = [
            self.any_of(terms.same(terms.read(self._now, v.name), terms.literal(v.sort, x), v.sort) for x in v.initial)
            for v in self.system.variables
        ]
        return self.all_of([*allowed, self.term(self.system.initially)])

    @cached_property
    def bounds(self) -> Term:
        """Every variable of the current state has a value of its sort."""
        return self.all_of(self._within(name, sort) for name, sort in self._sorts.items())

    @cached_property
    def wellformed(self) -> Term:
        """The current state satisfies the representation invariant."""
        return self.all_of([self.bounds, *(self.term(part) for part in canonical(self.scalarised))])

    @cached_property
    def transition(self) -> Term:
        """One step leads from the current state to the following one, by the instance that is taken."""
        # The following value as a chain of conditionals, rather than one implication per instance, because the
        # solver then eliminates it by propagation: 1.5 to 3 times faster on the protocols measured.
        values = {name: self._terms.read(self._now, name) for name in self._sorts}
        parts = [self.any_of(self._taking), self.z3.AtMost(*self._taking, 1)] if self._taking else [self.any_of(())]
        for taken, instance in zip(self._taking, self.system.instances, strict=True):
            parts.append(self.z3.Implies(taken, self._guard(instance)))
            for name, value in instance.updates:
                values[name] = self._terms.choose(taken, self.term(value), values[name], self._sorts[name])
        for name, value in values.items():
            parts.append(self._terms.same(self._terms.read(self._then, name), value, self._sorts[name]))
        return self.all_of(parts)

    @cached_property
    def stuck(self) -> Term:
        """Deadlock: no instance is enabled, and the current state is not terminal."""
        enabled = self.any_of(self._guard(i) for i in self.system.instances)
        legal = [] if self.system.terminal is None else [self.no(self.term(self.system.terminal))]
        return self.all_of([self.no(enabled), *legal])

    @cached_property
    def mistake(self) -> Term:
        """Evaluating or taking some step is an evaluation error, or puts a value outside its sort."""
        return self.any_of(part for i in self.system.instances for part in self._mistakes(i))

    def fires(self, checks: tuple[Check, ...]) -> Term:
        """One of the checks reports an error."""
        return self.any_of(self.term(c.condition) for c in checks)

    def _guard(self, instance: Instance) -> Term:
        return self.all_of(self.term(c.expr) for c in instance.guard)

    def _mistakes(self, instance: Instance) -> Iterator[Term]:
        yield self.fires(instance.guard_checks)
        leaving = [b.not_(b.in_domain(value, self._sorts[name])) for name, value in instance.updates]
        wrong = b.or_([*(c.condition for c in instance.effect_checks), *leaving])
        if wrong is not b.FALSE:
            yield self.all_of([self._guard(instance), self.term(wrong)])

    def _within(self, name: str, sort: Scalar) -> Term:
        if isinstance(sort, BoolSort):
            return self.all_of(())
        lo, hi = interval(sort)
        theory, value = self._theory, self._theory.read(self._now[name], sort)
        low = [theory.apply(le, theory.literal(lo), value)] if lo > -INFINITY else []
        high = [theory.apply(le, value, theory.literal(hi))] if hi < INFINITY else []
        return self.all_of([*low, *high])

    # --- paths -------------------------------------------------------------------------------------------------------

    def at(self, formula: Term, position: int) -> Term:
        """`formula` with the state at `position` of a path (from 0) as the current one, the next as the following."""
        self._reach(position + 1)
        now, then = self._states[position], self._states[position + 1]
        return self.z3.substitute(
            formula,
            *zip(self._taking, self._taken[position], strict=True),
            *((self._now[name], constant) for name, constant in now.items()),
            *((self._then[name], constant) for name, constant in then.items()),
        )

    def holds_at(self, condition: Expr, position: int) -> Term:
        """A condition on leaves in the state at `position` of a path.

        Equal to `at` of its term, but its cost depends on the condition's size, not the system's.
        """
        self._reach(position)
        there = self._states[position]
        moved = [(self._now[name], there[name]) for name in e.variables(condition)]
        return self.z3.substitute(self.term(condition), *moved)

    def differ(self, one: int, other: int) -> Term:
        """The states at two positions of a path differ."""
        self._reach(max(one, other))
        left, right = self._states[one], self._states[other]
        return self.any_of(left[name] != right[name] for name in left)

    def distinct(self, positions: int) -> Term:
        """The first `count` states of a path are pairwise different."""
        return self.all_of(self.differ(i, j) for i, j in combinations(range(positions), 2))

    def state(self, model: Any, position: int) -> State:
        """The state of the scalar system at a position in a solver model."""
        return tuple(self._value(model, self._states[position][name], sort) for name, sort in self._sorts.items())

    def taken(self, model: Any, position: int) -> int:
        """The number of the instance taken at a position in a solver model."""
        return next(k for k, t in enumerate(self._taken[position]) if self.z3.is_true(model.eval(t)))

    def takes(self, instance: int, position: int) -> Term:
        """The instance of this number is taken at a position of a path."""
        self._reach(position)
        return self._taken[position][instance]

    def _reach(self, position: int) -> None:
        while len(self._states) <= position:
            name = str(len(self._states))
            self._states.append(self._constants(name))
            self._taken.append(self._switches(name))

    def _constants(self, where: str) -> dict[str, Term]:
        return {
            name: self.z3.Bool(f"{name} {where}", self.ctx)
            if isinstance(sort, BoolSort)
            else self._theory.unknown(f"{name} {where}", sort)
            for name, sort in self._sorts.items()
        }

    def _switches(self, where: str) -> list[Term]:
        return [self.z3.Bool(f"taken {k} {where}", self.ctx) for k in range(len(self.system.instances))]

    def _value(self, model: Any, constant: Term, sort: Scalar) -> Value:
        value = model.eval(constant, model_completion=True)
        match sort:
            case BoolSort():
                return bool(self.z3.is_true(value))
            case EnumSort(members):
                return members[self._theory.number(value, sort)]
            case RangeSort():
                return self._theory.number(value, sort)
            case _:
                assert_never(sort)


def _refuse_strangers(scalarised: Scalarised) -> None:
    for v in scalarised.original.variables:
        for value in v.initial:
            if not contains(v.sort, value):
                raise ModelError(f"{v.name} starts as {value!r}, which is not a value of {v.sort}", loc=v.loc)
