"""Random systems with a constraint on states or on steps that cuts some of their behaviours."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from random_systems import random_system, temporal_system
from streamproof.system import Kind, System
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Conjunct, Property
from streamproof.system.reference import reference
from streamproof.transform.constraint import constrained


def limited(seed: int, *, temporal: bool = False, bags: bool = False) -> System | None:
    """A random system with a constraint that cuts some of its behaviours; None if no state condition of it does."""
    random = Random(seed)
    system = temporal_system(random, bags=bags) if temporal else random_system(random, bags=bags)
    found = reference(system)
    if found.mistake is not None or len(found.levels) < 2:
        return None
    states, interpreter = [s for level in found.levels for s in level], Interpreter(system)
    conditions = _conditions(system)
    random.shuffle(conditions)
    for condition in conditions:
        inside = [interpreter.value(condition, s) for s in states]
        if (inside[0] or seed % 4 == 0) and len({*inside}) == 2:  # some initial states may be outside
            return constrained(system, [Conjunct(condition, "limit", None)])
    return None


def step_limited(seed: int, *, temporal: bool = False, bags: bool = False) -> System | None:
    """A random system with a constraint on steps that cuts some of them, a third of them with one on states, too."""
    made = step_condition(seed, temporal=temporal, bags=bags)
    if made is None:
        return None
    system, condition = made
    limits = Random(seed).choice(([], [], _conditions(system)[:1]))
    if any(b.not_(limit) is b.TRUE for limit in limits):
        limits = []
    return constrained(system, [Conjunct(c, "limit", None) for c in limits], [Conjunct(condition, "step_limit", None)])


def step_condition(seed: int, *, temporal: bool = False, bags: bool = False) -> tuple[System, Expr] | None:
    """A random system and a condition on steps that some of those that change the state break; None if there is none."""
    random = Random(seed)
    system = temporal_system(random, bags=bags) if temporal else random_system(random, bags=bags)
    found = reference(system)
    if found.mistake is not None or len(found.levels) < 2:
        return None
    interpreter = Interpreter(system)
    before = [s for level in found.levels for s in level]
    steps = [(s, t.state) for s in before for t in interpreter.steps(s) if t.state != s]
    conditions = _step_conditions(system, _conditions(system))
    random.shuffle(conditions)
    for condition in conditions:
        if len({interpreter.holds(Property("limit", Kind.STEP, condition), s, t) for s, t in steps}) == 2:
            return system, condition
    return None


def _conditions(system: System) -> list[Expr]:
    found = [p.expr for p in system.properties if p.kind is Kind.INVARIANT and not p.checks]
    found += [c.expr for i in system.instances for c in i.guard]
    return found + [b.not_(b.eq(b.var(v.name, v.sort), b.const(v.sort, v.initial[-1]))) for v in system.variables]


def _step_conditions(system: System, of_states: Sequence[Expr]) -> list[Expr]:
    kept = [b.eq(b.next_(v.name, v.sort), b.var(v.name, v.sort)) for v in system.variables]
    found = [p.expr for p in system.properties if p.kind is Kind.STEP and not p.checks]
    found += [b.or_((c, k)) for c in of_states for k in kept]
    return found + [b.or_((b.not_(k), c)) for c in of_states for k in kept]


def corpus(seeds: range, *, temporal: bool = False, steps: bool = False) -> list[System]:
    """The systems with a constraint among these seeds."""
    made: Any = step_limited if steps else limited
    return [system for seed in seeds if (system := made(seed, temporal=temporal)) is not None]
