"""Conservation laws: weighted sums that no step changes, like the place invariants of Petri nets.

The change of each variable in a step is a linear form, derived from the rules case by case; a law is a choice of
weights for which the changes cancel in every case. The laws are the null space of the cases, up to linear combination.
Flags count as 0 or 1, and each value of an enumeration as a flag of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from streamproof.base.records import dataclass
from streamproof.symbolic.discovery.cases import cases
from streamproof.symbolic.discovery.linear import (
    ONE,
    Form,
    VectorSpan,
    amount,
    as_term,
    features,
    form,
    null_space,
    plus,
    scaled,
)
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Action, System
from streamproof.system.sorts import BoolSort, EnumSort
from streamproof.transform.assume import Substitution


@dataclass(frozen=True, slots=True)
class Law:
    """A conservation law: the sum of `coefficients` (a weight per numeric variable, flag, or enumeration value) is constant.

    `total` is its value in the initial states: a number, or a term over variables that no step writes. None if the
    value differs between initial states or is not determined.
    """

    coefficients: Mapping[Expr, int]
    total: Expr | None

    @property
    def sum(self) -> Expr:
        """The sum as a term."""
        return as_term(self.coefficients)

    @property
    def claim(self) -> Expr | None:
        """The invariant that the sum equals its initial value; None if that is unknown."""
        return None if self.total is None else b.eq(self.sum, self.total)

    @property
    def bounds(self) -> tuple[Expr, ...]:
        """The invariants that the sum is at most, and at least, its initial value; empty if that is unknown."""
        return () if self.total is None else (b.less_eq(self.sum, self.total), b.less_eq(self.total, self.sum))


class Books:
    """The change of each variable by each action of a scalar system."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._written = {name for instance in system.instances for name, _ in instance.updates}
        self._places = tuple(f for v in system.variables if v.name in self._written for f in features(v))
        self._beginning = _beginning(system, self._written)
        self._equations = {a.name: tuple(_equations(a, system, self._places)) for a in system.actions}

    def kept(self) -> tuple[Law, ...]:
        """A basis of the conservation laws of the system: they hold up to the model's first error, and must be proved."""
        return self._laws(self._equations)

    def drifting(self) -> Iterator[Law]:
        """Sums that all actions but one conserve, each once.

        A protocol with a loss conserves a sum except at the loss. If the excepted action changes the sum in one
        direction only, the sum is bounded, and `Law.bounds` are candidates.
        """
        seen = {frozenset(law.coefficients.items()) for law in self.kept()}
        for name in self._equations:
            for law in self._laws(other for other in self._equations if other != name):
                key = frozenset(law.coefficients.items())
                if key not in seen:
                    seen.add(key)
                    yield law

    def _laws(self, actions: Iterable[str]) -> tuple[Law, ...]:
        equations = (equation for name in actions for equation in self._equations[name])
        found = null_space(equations, self._places)
        return tuple(Law(*_with_total(weights, self._written, self._beginning)) for weights in found)


def _equations(action: Action, system: System, places: tuple[Expr, ...]) -> Iterator[Mapping[Expr, int | Fraction]]:
    """Linear equations on the weights: one per case of each instance and per component of the change."""
    sorts = {v.name: v.sort for v in system.variables}
    for instance in action.instances:
        for equal, updates in cases(instance):
            known = Substitution(equal)
            after = Substitution({b.var(name, sorts[name]): value for name, value in updates.items()})
            parts: dict[Expr, dict[Expr, int | Fraction]] = {}
            for place in places:
                if not e.variables(place) & updates.keys():
                    continue
                added = plus(amount(known(after(place))), amount(known(place)), -1)
                for part, factor in added.items():
                    parts.setdefault(part, {})[place] = factor
            yield from parts.values()


def _with_total(
    weights: Mapping[Expr, int], written: set[str], beginning: VectorSpan[Expr]
) -> tuple[Mapping[Expr, int], Expr | None]:
    """The weights and the total, scaled to integers."""
    whole: Form = {}
    for place, weight in weights.items():
        whole = plus(whole, scaled(amount(place), weight))
    rest = beginning.reduced(whole)
    if any(e.variables(part) & written or isinstance(part.sort, BoolSort) for part in rest):
        return weights, None
    by = math.lcm(*(Fraction(f).denominator for f in rest.values()))
    return {place: by * weight for place, weight in weights.items()}, as_term(scaled(rest, by))


def _beginning(system: System, written: set[str]) -> VectorSpan[Expr]:
    """The facts about initial states, as linear forms that are 0 in all of them; written variables are eliminated first."""
    equations: list[Form] = []
    for v in system.variables:
        if len(set(v.initial)) == 1:
            fixed = Substitution({b.var(v.name, v.sort): b.const(v.sort, v.initial[0])})
            equations += [plus(amount(f), amount(fixed(f)), -1) for f in features(v)]
    conjuncts = system.initially.args if isinstance(system.initially, e.And) else (system.initially,)
    for conjunct in conjuncts:
        match conjunct:
            case e.Eq(left=x, right=y) if not isinstance(x.sort, BoolSort) and _numeric(x, y):
                equations.append(plus(form(x), form(y), -1))
            case e.Var() | e.Eq():
                equations.append(plus(amount(conjunct), {ONE: -1}))
            case e.Not(arg=e.Var() | e.Eq() as inner):
                equations.append(amount(inner))
            case _:
                pass
    parts = dict.fromkeys(part for equation in equations for part in equation if part is not ONE)
    order = [p for p in parts if e.variables(p) & written] + [p for p in parts if not e.variables(p) & written]
    span: VectorSpan[Expr] = VectorSpan(order)
    for equation in equations:
        span.add(equation)
    return span


def _numeric(*terms: Expr) -> bool:
    return not any(isinstance(t.sort, BoolSort | EnumSort) for t in terms)
