"""The same behaviour in an order that is easier to read, and what each of its steps is needed for.

Neighbouring steps that commute are exchanged, so that the steps of a process stand together (few context switches; exchange
of independent steps as in Mazurkiewicz's traces). The last state, the number of steps and what is shown stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from streamproof.base.errors import EvaluationError, StreamproofError
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Instance, Kind, Property, State, System
from streamproof.system.verdict import Trace
from streamproof.traces.processes import Processes
from streamproof.traces.replay import verify

ROUNDS = 3
"""Largest number of passes over a behaviour."""


def switches(system: System, trace: Trace) -> int:
    """The number of steps of another process than the step before."""
    return _switches([Processes(system).of(step)[:1] for step in trace.steps])


def _switches(owners: Sequence[tuple[str, ...]]) -> int:
    return sum(one != other for one, other in pairwise(owners))


def fewer_switches(system: System, prop: Property | None, trace: Trace) -> Trace:
    """A behaviour with the same steps, last state and property, and with fewer steps of another process than the step before.

    A lasso stays as it is, and so does the last step of a behaviour that violates a condition on steps.
    """
    if trace.loop is not None or len(trace.steps) < 3:
        return trace
    interpreter, processes = Interpreter(system), Processes(system)
    states, steps = list(trace.states), list(trace.steps)
    movable = len(steps) - (prop is not None and prop.kind is Kind.STEP)
    owners = [processes.of(step)[:1] for step in steps]
    least = _switches(owners)
    for _ in range(ROUNDS):
        before = list(steps)
        for at in range(2, movable):
            earlier = next((k for k in range(at - 1, -1, -1) if owners[k] == owners[at]), None)
            if earlier is None or earlier == at - 1:
                continue
            moved = _moved(interpreter, states, steps, at, earlier + 1)
            if moved is not None:
                order = [*owners[: earlier + 1], owners[at], *owners[earlier + 1 : at], *owners[at + 1 :]]
                if _switches(order) <= _switches(owners):
                    states, steps, owners = *moved, order
        if steps == before:
            break
    if _switches(owners) >= least:
        return trace
    tidied = Trace(tuple(states), tuple(steps))
    try:
        if prop is not None:
            verify(system, prop, tidied)
    except StreamproofError:  # a property of more than the last state
        return trace
    return tidied


def _moved(
    interpreter: Interpreter, states: Sequence[State], steps: Sequence[Instance], at: int, to: int
) -> tuple[list[State], list[Instance]] | None:
    """The behaviour with the step `at` moved to `to`; None if a step is then not possible, or leads elsewhere."""
    order = [*steps[:to], steps[at], *steps[to:at], *steps[at + 1 :]]
    found = list(states[: to + 1])
    try:
        for step in order[to : at + 1]:
            after = interpreter.take(step, found[-1])
            if after is None:
                return None
            found.append(after)
    except EvaluationError:
        return None
    return ([*found, *states[at + 2 :]], order) if found[-1] == states[at + 1] else None


def sentences(trace: Trace, needs: Mapping[int, Sequence[tuple[str, int]]], kind: Kind | None) -> dict[int, str]:
    """For each step, counted from 1, what it is needed for; nothing where that is not known.

    A step on which the false conditions of a temporal formula do not depend may be needed for the cycle, or for fairness.
    """
    if not needs:
        return {}
    found = {}
    last = len(trace.steps)
    for number in range(1, last + 1):
        wanted = needs.get(number)
        if wanted is None:
            if kind is Kind.TEMPORAL:
                continue
            found[number] = "not needed: nothing that is shown as the reason depends on it"
            continue
        readers: dict[int, list[str]] = {}
        for place, reader in wanted:
            readers.setdefault(reader, []).append(place)
        parts = []
        for reader, places in sorted(readers.items()):
            shown = ", ".join(dict.fromkeys(places))
            what = "the end" if reader > last else f"step {reader}"
            parts.append(f"{what} reads {shown}")
        broken = "it breaks the condition" if kind is Kind.STEP and number == last else ""
        found[number] = "needed: " + "; ".join(filter(None, (broken, *parts)))
    return found
