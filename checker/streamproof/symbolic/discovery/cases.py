"""Case split of an action instance: one case per outcome of the conditions in its updates, with the facts of that case.

Conditions in updates are simplified under the guard, or split on where the guard does not imply them. Checks are
assumed not to fail: consequences hold up to the model's first error, like everything discovered, and must be proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.assume import Substitution
from streamproof.system.expr import Expr
from streamproof.system.model import Instance
from streamproof.system.records import dataclass
from streamproof.system.sorts import BoolSort

MOST_CASES = 32
"""Maximum number of cases per instance; further conditions remain inside the updates."""


@dataclass(frozen=True, slots=True)
class UpdateCase:
    """`known` maps terms to equal terms in this case; `updates` are the new values of the written variables."""

    known: Mapping[Expr, Expr]
    updates: Mapping[str, Expr]


def cases(instance: Instance) -> Iterator[UpdateCase]:
    """The cases of an instance of a scalar system, without those that its guard refutes syntactically."""
    facts = KnownTerms()
    for conjunct in instance.guard:
        facts.learn(conjunct.expr, True)
    for check in (*instance.guard_checks, *instance.effect_checks):
        facts.learn(check.condition, False)
    pending = [(facts, dict(instance.updates))]
    room = MOST_CASES - 1
    while pending:
        facts, updates = pending.pop()
        if facts.contradictory():
            continue
        decided = Substitution(facts.known)
        updates = {name: decided(term) for name, term in updates.items()}
        condition = next((c for term in updates.values() if (c := _condition(term)) is not None), None)
        if condition is None or room == 0:
            yield UpdateCase(facts.known, updates)
            continue
        room -= 1
        for truth in (False, True):
            more = facts.copy()
            more.learn(condition, truth)
            pending.append((more, updates))


def _condition(root: Expr) -> Expr | None:
    """A condition on which the value of `root` depends."""
    if isinstance(root.sort, BoolSort):
        return None if isinstance(root, e.Const | e.Var) else root
    for term in e.subterms(root):
        if isinstance(term, e.Ite):
            return term.cond
    return None


@dataclass(slots=True)
class KnownTerms:
    """The facts about a state: terms and the terms they equal."""

    known: dict[Expr, Expr] = field(default_factory=dict)

    def copy(self) -> KnownTerms:
        """A copy, for adding facts."""
        return KnownTerms(dict(self.known))

    def contradictory(self) -> bool:
        """Whether the known values of variables contradict another fact."""
        values: dict[Expr, Expr] = {term: value for term, value in self.known.items() if isinstance(term, e.Var)}
        decided = Substitution(values)
        return any(
            isinstance(now := decided(term), e.Const) and now is not value
            for term, value in self.known.items()
            if isinstance(value.sort, BoolSort) and not isinstance(term, e.Var)
        )

    def learn(self, condition: Expr, truth: bool) -> None:
        """Adds a condition or its negation."""
        pending = [(condition, truth)]
        while pending:
            term, true = pending.pop()
            if term in self.known or isinstance(term, e.Const):
                continue
            self.known[term] = b.truth(true)
            match term:
                case e.Not(arg=inner):
                    pending.append((inner, not true))
                case e.And(args=args) if true:
                    pending += [(a, True) for a in args]
                case e.Or(args=args) if not true:
                    pending += [(a, False) for a in args]
                case e.Eq(left=e.Var() as left, right=e.Const() as right) if true:
                    self.known[left] = right
                case e.Less(left=x, right=y):
                    pending += [(b.less_eq(y, x), not true)]
                    pending += [(b.less_eq(x, y), True), (b.less(y, x), False), (b.eq(x, y), False)] if true else []
                case e.LessEq(left=x, right=y):
                    pending += [(b.less(y, x), not true)]
                    pending += [] if true else [(b.less_eq(y, x), True), (b.eq(x, y), False)]
                case _:
                    pass
