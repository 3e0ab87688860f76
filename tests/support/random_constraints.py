"""Random systems with a state constraint that cuts some of their behaviours."""

from __future__ import annotations

from random import Random
from typing import Any

from random_systems import random_system, temporal_system
from streamproof.system import Kind, System
from streamproof.system import build as b
from streamproof.system.constraint import constrained
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Conjunct
from streamproof.system.reference import reference


def limited(seed: int, *, temporal: bool = False) -> System | None:
    """A random system with a constraint that cuts some of its behaviours; None if no state condition of it does."""
    random = Random(seed)
    system = temporal_system(random) if temporal else random_system(random)
    found = reference(system)
    if found.mistake is not None or len(found.levels) < 2:
        return None
    states, interpreter = [s for level in found.levels for s in level], Interpreter(system)
    conditions = [p.expr for p in system.properties if p.kind is Kind.INVARIANT and not p.checks]
    conditions += [c.expr for i in system.instances for c in i.guard] + [b.not_(v) for v in _truths(system)]
    random.shuffle(conditions)
    for condition in conditions:
        inside = [interpreter.value(condition, s) for s in states]
        if (inside[0] or seed % 4 == 0) and len({*inside}) == 2:  # some initial states may be outside
            return constrained(system, [Conjunct(condition, "limit", None)])
    return None


def _truths(system: System) -> list[Any]:
    return [b.eq(b.var(v.name, v.sort), b.const(v.sort, v.initial[-1])) for v in system.variables]


def corpus(seeds: range, *, temporal: bool = False) -> list[System]:
    """The systems with a constraint among these seeds."""
    return [system for seed in seeds if (system := limited(seed, temporal=temporal)) is not None]
