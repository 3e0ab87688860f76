"""Random systems with temporal properties in which some fairness constraints concern a part of their action."""

from __future__ import annotations

from random import Random

from random_systems import temporal_system
from streamproof.base.records import replace
from streamproof.system import Expr, Fairness, Instance, System
from streamproof.system import build as b
from streamproof.system.model import Conjunct, ListedFairness


def partly_fair(seed: int, *, bags: bool = False) -> System | None:
    """A random system, some of whose fair actions are split by a condition; None if it has no fair action."""
    random = Random(seed)
    system = temporal_system(random, bags=bags)
    conditions = [b.eq(b.var(v.name, v.sort), b.const(v.sort, value)) for v in system.variables for value in v.initial]
    conditions += [c.expr for i in system.instances for c in i.guard]
    found = 0

    def parts(instance: Instance) -> tuple[Instance, ...]:
        nonlocal found
        match random.randrange(4):
            case 0:
                return (instance,)
            case 1:
                found += 1
                return (replace(instance, fair=False),)
        found += 1
        condition = random.choice(conditions)
        return (_with(instance, condition, True), _with(instance, b.not_(condition), False))

    actions = []
    for action in system.actions:
        if action.fairness is Fairness.NONE:
            actions.append(action)
        else:
            actions.append(replace(action, instances=tuple(p for i in action.instances for p in parts(i))))
    return replace(system, actions=tuple(actions)) if found else None


def _with(instance: Instance, condition: Expr, fair: bool) -> Instance:
    return replace(instance, guard=(*instance.guard, Conjunct(condition, "part", None)), fair=fair)


def severally_fair(seed: int) -> System:
    """A random system some of whose actions have several fairness constraints, each on some of the steps; some systems have
    progress."""
    random = Random(seed)
    system = partly_fair(seed) or temporal_system(Random(seed))
    actions = []
    for action in system.actions:
        count = random.choice((0, 2, 2, 3))
        if not count:
            actions.append(action)
            continue
        several = tuple(ListedFairness(random.choice([*Fairness]), f" where {at}") for at in range(count))
        instances = tuple(
            replace(i, fair=False, listed=tuple(at for at in range(count) if random.random() < 0.7))
            for i in action.instances
        )
        actions.append(replace(action, fairness=Fairness.NONE, several=several, instances=instances))
    return replace(system, actions=tuple(actions), progress=random.choice([*Fairness]))
