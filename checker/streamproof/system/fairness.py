"""Fairness: the constraints of a system, and whether a behaviour is fair. Slow and simple on purpose: the reference.

Fairness is that of TLA+: an action instance, with arbitrary picks, counts as *enabled* where it can be taken and
changes the state, and a step that changes the state *takes* every instance that could have made it. Weak fairness: an
instance that is enabled continuously from some point on is taken infinitely often. Strong fairness: an instance that is
enabled infinitely often is taken infinitely often.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Fairness, State, System
from streamproof.system.records import dataclass
from streamproof.system.verdict import Owed, Trace


@dataclass(frozen=True, slots=True)
class FairnessConstraint:
    """The fairness constraint on one action for one combination of its parameters; any picks satisfy it."""

    action: str
    args: tuple[tuple[str, Any], ...]
    fairness: Fairness
    numbers: tuple[int, ...]
    """Positions in `System.instances`, one per combination of picks."""
    branch: str | None = None
    """The branch whose steps it concerns."""
    texts: tuple[str, ...] = ()
    """The values of `args` as text, as in the label of a step."""

    @property
    def label(self) -> str:
        """The label in traces: ``send(c=1)``, or ``send(c=1): delivered`` for a branch."""
        branch = "" if self.branch is None else f": {self.branch}"
        return (
            f"{self.action}({', '.join(f'{n}={v}' for (n, _), v in zip(self.args, self.texts, strict=True))}){branch}"
        )


def fairness_constraints(system: System) -> tuple[FairnessConstraint, ...]:
    """Every fairness constraint of the system, in the order of the instances."""
    found: list[FairnessConstraint] = []
    number = 0
    for action in system.actions:
        groups: dict[tuple[tuple[str, Any], ...], list[int]] = {}
        texts: dict[tuple[tuple[str, Any], ...], tuple[str, ...]] = {}
        for instance in action.instances:
            if instance.fair:
                groups.setdefault(instance.args, []).append(number)
                texts.setdefault(instance.args, instance.texts[0])
            number += 1
        if action.fairness is not Fairness.NONE:
            branch = action.fair_branch
            found += [
                FairnessConstraint(action.name, args, action.fairness, tuple(numbers), branch, texts[args])
                for args, numbers in groups.items()
            ]
    return tuple(found)


def fairness_of(system: System, trace: Trace) -> tuple[Owed, ...]:
    """The behaviour's treatment of every fair action instance; it is fair if each of them is `paid`.

    Raises `EvaluationError` for a model error.
    """
    return tuple(_owed(Interpreter(system), constraint, trace) for constraint in fairness_constraints(system))


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


def _owed(interpreter: Interpreter, constraint: FairnessConstraint, trace: Trace) -> Owed:
    instances = [interpreter.system.instances[number] for number in constraint.numbers]

    def successors(state: State) -> set[State]:
        return {after for i in instances if (after := interpreter.take(i, state)) is not None and after != state}

    taken = next((number for number, before, after in cycle_steps(trace) if after in successors(before)), None)
    around = range(cycle_start(trace), len(trace.states))
    enabled = next((k for k in around if successors(trace.states[k])), None)
    disabled = next((k for k in around if not successors(trace.states[k])), None)
    return Owed(constraint.label, constraint.fairness, taken, enabled, disabled)
