"""An action instance taken apart: one case for each way its conditions can turn out, with what is known in it.

Conditions inside updates are decided by the guard where that settles them, and split on where it does not. Checks are taken
not to fail: what follows from the cases is true up to the first mistake of the model, as all that is discovered, and must be
proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Instance
from streamproof.system.records import dataclass
from streamproof.system.sorts import BoolSort
from streamproof.system.substitute import Substitution

MOST_CASES = 32
"""Cases of one instance; conditions beyond are left inside the updates."""


@dataclass(frozen=True, slots=True)
class UpdateCase:
    """`known` maps terms to what they equal in this case; `updates` are the values of the variables written."""

    known: Mapping[Expr, Expr]
    updates: Mapping[str, Expr]


def cases(instance: Instance) -> Iterator[UpdateCase]:
    """The cases of an instance of a scalar system; those that its guard excludes on the face of it are left out."""
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
    """A condition that the value of `root` hangs on."""
    if isinstance(root.sort, BoolSort):
        return None if isinstance(root, e.Const | e.Var) else root
    for term in e.subterms(root):
        if isinstance(term, e.Ite):
            return term.cond
    return None


@dataclass(slots=True)
class KnownTerms:
    """What is known of a state: terms and what they equal there."""

    known: dict[Expr, Expr] = field(default_factory=dict)

    def copy(self) -> KnownTerms:
        """The same, to learn more."""
        return KnownTerms(dict(self.known))

    def contradictory(self) -> bool:
        """Whether the values known of variables refute something else that is known."""
        values: dict[Expr, Expr] = {term: value for term, value in self.known.items() if isinstance(term, e.Var)}
        decided = Substitution(values)
        return any(
            isinstance(now := decided(term), e.Const) and now is not value
            for term, value in self.known.items()
            if isinstance(value.sort, BoolSort) and not isinstance(term, e.Var)
        )

    def learn(self, condition: Expr, truth: bool) -> None:
        """That a condition is true, or false."""
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
