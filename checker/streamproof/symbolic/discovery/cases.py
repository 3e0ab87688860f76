"""Case split of an action instance: one case per outcome of the conditions in its updates, with the facts of that case.

Conditions in updates are simplified under the guard, or split on where the guard does not imply them. Checks are
assumed not to fail: consequences hold up to the model's first error, like everything discovered, and must be proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Instance
from streamproof.system.sorts import BoolSort
from streamproof.transform.assume import Substitution

MOST_CASES = 32
"""Maximum number of cases per instance; further conditions remain inside the updates."""


def cases(instance: Instance) -> Iterator[tuple[Mapping[Expr, Expr], Mapping[str, Expr]]]:
    """The cases of an instance of a scalar system, without those that its guard refutes syntactically.

    Of each case, a mapping from terms to equal terms, and the new values of the written variables.
    """
    given: dict[Expr, Expr] = {}
    for conjunct in instance.guard:
        _learn(given, conjunct.expr, True)
    for check in (*instance.guard_checks, *instance.effect_checks):
        _learn(given, check.condition, False)
    pending = [(given, dict(instance.updates))]
    room = MOST_CASES - 1
    while pending:
        known, updates = pending.pop()
        if _contradictory(known):
            continue
        decided = Substitution(known)
        updates = {name: decided(term) for name, term in updates.items()}
        condition = next((c for term in updates.values() if (c := _condition(term)) is not None), None)
        if condition is None or room == 0:
            yield known, updates
            continue
        room -= 1
        for truth in (False, True):
            more = dict(known)
            _learn(more, condition, truth)
            pending.append((more, updates))


def _condition(root: Expr) -> Expr | None:
    """A condition on which the value of `root` depends."""
    if isinstance(root.sort, BoolSort):
        return None if isinstance(root, e.Const | e.Var) else root
    for term in e.subterms(root):
        if isinstance(term, e.Ite):
            return term.cond
    return None


def _contradictory(known: Mapping[Expr, Expr]) -> bool:
    """Whether the known values of variables contradict another fact."""
    decided = Substitution({term: value for term, value in known.items() if isinstance(term, e.Var)})
    return any(
        isinstance(now := decided(term), e.Const) and now is not value
        for term, value in known.items()
        if isinstance(value.sort, BoolSort) and not isinstance(term, e.Var)
    )


def _learn(known: dict[Expr, Expr], condition: Expr, truth: bool) -> None:
    """Adds the facts of a condition or its negation."""
    pending = [(condition, truth)]
    while pending:
        term, true = pending.pop()
        if term in known or isinstance(term, e.Const):
            continue
        known[term] = b.truth(true)
        match term:
            case e.Not(arg=inner):
                pending.append((inner, not true))
            case e.And(args=args) if true:
                pending += [(a, True) for a in args]
            case e.Or(args=args) if not true:
                pending += [(a, False) for a in args]
            case e.Eq(left=e.Var() as left, right=e.Const() as right) if true:
                known[left] = right
            case e.Less(left=x, right=y):
                pending += [(b.less_eq(y, x), not true)]
                pending += [(b.less_eq(x, y), True), (b.less(y, x), False), (b.eq(x, y), False)] if true else []
            case e.LessEq(left=x, right=y):
                pending += [(b.less(y, x), not true)]
                pending += [] if true else [(b.less_eq(y, x), True), (b.eq(x, y), False)]
