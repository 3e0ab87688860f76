"""Semantics of fairness and of temporal formulas on a single lasso. Slow and simple on purpose: the reference.

A lasso is a behaviour with an infinitely repeated cycle, a `Trace` with a loop; one without a loop stutters in its last
state.

Fairness is that of TLA+: an action instance, with arbitrary picks, counts as *enabled* where it can be taken and
changes the state, and a step that changes the state *takes* every instance that could have made it. Weak fairness: an
instance that is enabled continuously from some point on is taken infinitely often. Strong fairness: an instance that is
enabled infinitely often is taken infinitely often.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import assert_never

from streamproof.base.records import dataclass
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    Happens,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Release,
    Until,
)
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import FairnessConstraint, Property, State, System, fairness_constraints
from streamproof.system.verdict import FairnessEvidence, Finding, Trace, Verdict, lasso_text, prefix_text


def true_of(system: System, formula: Formula, trace: Trace) -> bool:
    """Whether the behaviour satisfies `formula` in its first state."""
    return LassoTruth(Interpreter(system), trace).true(formula, 0)


def refutes(system: System, formula: Formula, states: Sequence[State]) -> bool:
    """Whether `formula` is false of every behaviour that begins with `states`, whatever follows, by an informative prefix:
    it is false although every condition may be true and may be false after these states."""
    return not _may(Interpreter(system), formula, states, wanted=True)[0]


def refuting_prefix(system: System, formula: Formula, trace: Trace) -> Trace | None:
    """The shortest prefix of a behaviour within the constraint of `system` that refutes `formula`; None if there is none.

    Without a constraint every prefix belongs to an infinite behaviour, which shows more.
    """
    if system.constraint is None:
        return None
    interpreter, limits = Interpreter(system), system.constraint.conjuncts
    inside = list(takewhile(lambda s: all(interpreter.value(c.expr, s) for c in limits), trace.states))
    counts = range(1, len(inside) + 1)
    count = bisect_left(counts, True, key=lambda count: refutes(system, formula, inside[:count])) + 1
    return Trace(trace.states[:count], trace.steps[: count - 1]) if count in counts else None


def is_violated_by(system: System, formula: Formula, trace: Trace) -> bool:
    """Whether a behaviour violates `formula`: a fair lasso of which it is false or, within a constraint, a finite prefix that
    refutes it."""
    if trace.loop is None:
        return refuting_prefix(system, formula, trace) is not None
    return all(evidence.satisfied for evidence in fairness_of(system, trace)) and not true_of(system, formula, trace)


def violation(system: System, prop: Property, lasso: Trace) -> Finding:
    """The finding for a fair lasso on which the formula of `prop` is false; within a constraint, its shortest prefix that
    refutes the formula is shown instead, if there is one."""
    assert prop.formula is not None, "a temporal property has a formula"
    assert lasso.loop is not None, "a lasso"
    prefix = refuting_prefix(system, prop.formula, lasso)
    if prefix is not None:
        return Finding(prop.name, prop.kind, Verdict.VIOLATED, prefix, f"refuted by {prefix_text(len(prefix.steps))}")
    because = lasso_text(lasso.loop, 0 if lasso.stutters else len(lasso.steps) - lasso.loop, fair=True)
    return Finding(prop.name, prop.kind, Verdict.VIOLATED, lasso, because, fair=fairness_of(system, lasso))


def _may(interpreter: Interpreter, formula: Formula, states: Sequence[State], *, wanted: bool) -> list[bool]:
    """For each position of a finite prefix, and the one after it, whether `formula` may have the truth value `wanted` there:
    the weak semantics, in which everything may be true and may be false after the prefix."""

    def row(part: Formula, want: bool = wanted) -> list[bool]:
        return _may(interpreter, part, states, wanted=want)

    match formula:
        case Atom(expr):
            return [*(bool(interpreter.value(expr, state)) is wanted for state in states), True]
        case NotF(arg):
            return row(arg, not wanted)
        case AndF(args) | OrF(args):
            join = all if isinstance(formula, AndF) is wanted else any
            return [*(join(each) for each in zip(*map(row, args), strict=True))] or [join(())] * (len(states) + 1)
        case Always(arg):
            return row(Release(OrF(()), arg))
        case Eventually(arg):
            return row(Until(AndF(()), arg))
        case Until(left, right) | Release(left, right):
            found, ends = [True], isinstance(formula, Until) is wanted
            for before, now in reversed(list(zip(row(left), row(right), strict=True))[:-1]):
                found.append(now or (before and found[-1]) if ends else now and (before or found[-1]))
            return found[::-1]
        case LeadsTo(left, right):
            return row(Always(OrF((NotF(left), Eventually(right)))))
        case Recurs() | Happens():
            return [True] * (len(states) + 1)
        case _:
            assert_never(formula)


@dataclass(frozen=True, slots=True)
class LassoTruth:
    """A behaviour, with the truth of formulas at each of its positions."""

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
            case Happens():
                return self.happening(formula, at) is not None
            case _:
                assert_never(formula)

    def until(self, left: Formula, right: Formula, at: int) -> bool:
        """Whether an until is true of the behaviour from position `at` on."""
        for k in self.future(at):
            if self.true(right, k):
                return True
            if not self.true(left, k):
                return False
        return False

    def happening(self, formula: Happens, at: int) -> tuple[int, int] | None:
        """The first step from position `at` on that satisfies the condition and is followed by what the formula says: the
        positions before and after it."""
        return next((step for step in self.made(formula, at) if self.true(formula.arg, step[1])), None)

    def made(self, formula: Happens, at: int) -> Iterator[tuple[int, int]]:
        """The steps from position `at` on that change the state and satisfy the condition: the positions before and after."""
        states = self.trace.states
        for k in self.future(at):
            then = k + 1 if k + 1 < len(states) else cycle_start(self.trace)
            if states[k] != states[then] and self.interpreter.value(formula.step, states[k], states[then]):
                yield k, then

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
