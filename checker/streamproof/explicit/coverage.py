"""Coverage of a search: actions never taken, guard conjuncts never true, antecedents of invariants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from streamproof.explicit.level_search import LevelSearch
from streamproof.explicit.limits import Stop
from streamproof.explicit.predicates import LARGEST_BATCH, counter
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.errors import Loc
from streamproof.system.expr import Expr
from streamproof.system.model import NOT_REACHED, REACHED, Conjunct, Instance, Property, System
from streamproof.system.records import replace
from streamproof.system.verdict import Condition, Coverage

_NO_SECOND_PASS = (Stop.TIME, Stop.MEMORY, Stop.INTERRUPTED)
"""Reasons to stop after which no further pass over the states is made."""


def of_branches(
    system: System, generated: Sequence[int], distinct: Sequence[int]
) -> Mapping[tuple[str, str], tuple[int, int]]:
    """The numbers of steps and of new states for each labelled branch of each action, from those of the instances."""
    found = {(action.name, branch): (0, 0) for action in system.actions for branch in action.branches}
    for instance, steps, new in zip(system.instances, generated, distinct, strict=True):
        for branch in dict.fromkeys(instance.branches):
            before = found.get((instance.action, branch), (0, 0))
            found[instance.action, branch] = (before[0] + steps, before[1] + new)
    return found


def coverage(search: LevelSearch) -> Coverage:
    """Steps per action and, after a complete search, the guard conjuncts that are true in no state."""
    generated: dict[str, int] = {}
    distinct: dict[str, int] = {}
    was_true: set[tuple[str, str]] = set()
    candidates: dict[tuple[str, str], list[Expr]] = {}
    for at, instance in enumerate(search.system.instances):
        name = instance.action
        generated[name] = generated.get(name, 0) + search.generated[at]
        distinct[name] = distinct.get(name, 0) + search.distinct[at]
        for conjunct in _written(instance):
            if search.generated[at]:
                was_true.add((name, conjunct.text))
            candidates.setdefault((name, conjunct.text), []).append(conjunct.expr)
    open_ = [] if search.stopped is not None else [key for key in candidates if key not in was_true]
    true = search.ever_true([b.or_(candidates[key]) for key in open_])
    never: dict[str, tuple[str, ...]] = {}
    for (name, text), seen in zip(open_, true, strict=True):
        if not seen:
            never[name] = (*never.get(name, ()), text)
    for action in search.system.actions:
        generated.setdefault(action.name, 0)
        distinct.setdefault(action.name, 0)
    branches = of_branches(search.system, search.generated, search.distinct)
    return Coverage(generated, distinct, never, branches, expanded=search.expanded, complete=search.stopped is None)


def _written(instance: Instance) -> Iterator[Conjunct]:
    """The guard, without the conditions that split an action by its branches."""
    return (c for c in instance.guard if c.text not in (REACHED, NOT_REACHED))


def with_conditions(known: Coverage, search: LevelSearch) -> Coverage:
    """The coverage with the number of expanded states, per guard conjunct, in which some instance of its action satisfies it.

    Makes another pass over the states. The coverage is unchanged if a limit on time or memory, or an interrupt, ended the
    search or ends this pass.
    """
    if search.stopped in _NO_SECOND_PASS:
        return known
    instances: dict[tuple[str, str, Loc | None], list[Expr]] = {}
    for instance in search.system.instances:
        for conjunct in _written(instance):
            instances.setdefault((instance.action, conjunct.text, conjunct.loc), []).append(conjunct.expr)
    count = counter(search.system, [b.or_(terms) for terms in instances.values()])
    totals = [0] * len(instances)
    states = islice(search.states(), search.expanded)
    try:
        while batch := list(islice(states, LARGEST_BATCH)):
            if search.budget.spent():
                return known
            totals = [total + more for total, more in zip(totals, count(batch), strict=True)]
    except KeyboardInterrupt:
        return known
    found = (Condition(*key, states=total) for key, total in zip(instances, totals, strict=True))
    return replace(known, conditions=tuple(found))


def antecedents(prop: Property) -> tuple[Expr, ...]:
    """The antecedents of an invariant that is an implication or a conjunction of implications; else none."""
    parts = prop.expr.args if isinstance(prop.expr, e.And) else (prop.expr,)
    found = tuple(_antecedent(part) for part in parts)
    return tuple(a for a in found if a is not None) if None not in found else ()


def _antecedent(term: Expr) -> Expr | None:
    """The `a` of `not a or c`, where `c` has a part that is not negated; None for other terms."""
    if isinstance(term, e.Or) and isinstance(term.args[0], e.Not) and any(not isinstance(c, e.Not) for c in term.args):
        return term.args[0].arg
    return None
