"""Semantics of fairness and of temporal formulas on a single lasso. Slow and simple on purpose: the reference.

A lasso is a behaviour with an infinitely repeated cycle, a `Trace` with a loop; one without a loop stutters in its last
state.

Fairness is that of TLA+: an action instance, with arbitrary picks, counts as *enabled* where it can be taken and
changes the state, and a step that changes the state *takes* every instance that could have made it. Weak fairness: an
instance that is enabled continuously from some point on is taken infinitely often. Strong fairness: an instance that is
enabled infinitely often is taken infinitely often.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

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
from streamproof.system.model import FairnessConstraint, State, System, fairness_constraints
from streamproof.system.records import dataclass
from streamproof.system.verdict import FairnessEvidence, Trace


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


def fairness_of(system: System, trace: Trace) -> tuple[FairnessEvidence, ...]:
    """The behaviour's treatment of every fair action instance; it is fair if each of them is `satisfied`.

    Raises `EvaluationError` for a model error.
    """
    return tuple(_evidence(Interpreter(system), constraint, trace) for constraint in fairness_constraints(system))


def postponed(system: System, trace: Trace) -> tuple[str, ...]:
    """Labels of the action instances that could change the last state of a behaviour that stutters there forever.

    The behaviour is fair, so no fairness constraint requires their steps. Empty for a behaviour that does not stutter.
    """
    if not trace.stutters:
        return ()
    interpreter, last = Interpreter(system), trace.states[-1]
    steps = interpreter.steps(last)
    return tuple(dict.fromkeys(step.instance.label for step in steps if step.state != last))


def cycle_start(trace: Trace) -> int:
    """The position where the cycle begins."""
    return len(trace.states) - 1 if trace.loop is None else trace.loop


def cycle_steps(trace: Trace) -> Iterator[tuple[int, State, State]]:
    """The steps of the cycle that change the state: number from 1, state before, state after."""
    if trace.loop is None:
        return
    for number in range(trace.loop, len(trace.steps)):
        before = trace.states[number]
        after = trace.states[number + 1] if number + 1 < len(trace.states) else trace.states[trace.loop]
        if before != after:
            yield number + 1, before, after


def _evidence(interpreter: Interpreter, constraint: FairnessConstraint, trace: Trace) -> FairnessEvidence:
    instances = [interpreter.system.instances[number] for number in constraint.numbers]

    def successors(state: State) -> set[State]:
        return {after for i in instances if (after := interpreter.take(i, state)) is not None and after != state}

    taken = next((number for number, before, after in cycle_steps(trace) if after in successors(before)), None)
    around = range(cycle_start(trace), len(trace.states))
    enabled = next((k for k in around if successors(trace.states[k])), None)
    disabled = next((k for k in around if not successors(trace.states[k])), None)
    return FairnessEvidence(constraint.label, constraint.fairness, taken, enabled, disabled)
