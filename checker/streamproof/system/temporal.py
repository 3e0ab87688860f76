"""Semantics of temporal formulas on a single lasso. Slow and simple on purpose: the reference.

A lasso is a behaviour with an infinitely repeated cycle, a `Trace` with a loop; one without a loop stutters in its last
state. `fairness` defines which behaviours are fair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from streamproof.system.fairness import cycle_start, cycle_steps
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Release,
    Until,
)
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import System
from streamproof.system.records import dataclass
from streamproof.system.verdict import Trace


def true_of(system: System, formula: Formula, trace: Trace) -> bool:
    """Whether the behaviour satisfies `formula` in its first state."""
    return _Lasso(Interpreter(system), trace).true(formula, 0)


@dataclass(frozen=True, slots=True)
class _Lasso:
    interpreter: Interpreter
    trace: Trace

    def true(self, formula: Formula, at: int) -> bool:
        """Whether `formula` is true of the behaviour from position `at` on."""
        match formula:
            case Atom(expr):
                return bool(self.interpreter.value(expr, self.trace.states[at]))
            case NotF(arg):
                return not self.true(arg, at)
            case AndF(args):
                return all(self.true(arg, at) for arg in args)
            case OrF(args):
                return any(self.true(arg, at) for arg in args)
            case Always(arg):
                return all(self.true(arg, k) for k in self.future(at))
            case Eventually(arg):
                return any(self.true(arg, k) for k in self.future(at))
            case Until(left, right):
                return self.until(left, right, at)
            case Release(left, right):
                return not self.until(NotF(left), NotF(right), at)
            case LeadsTo(left, right):
                return all(not self.true(left, k) or self.true(Eventually(right), k) for k in self.future(at))
            case Recurs(step):
                return any(self.interpreter.value(step, before, after) for _, before, after in cycle_steps(self.trace))
            case _:
                assert_never(formula)

    def until(self, left: Formula, right: Formula, at: int) -> bool:
        for k in self.future(at):
            if self.true(right, k):
                return True
            if not self.true(left, k):
                return False
        return False

    def future(self, at: int) -> Iterator[int]:
        """The positions from `at` on, in order of first visit."""
        start = cycle_start(self.trace)
        yield from range(at, len(self.trace.states))
        yield from range(start, at)
