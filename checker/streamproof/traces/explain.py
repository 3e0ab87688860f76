"""Explanations: which condition is false in a state, the values it read, and the steps that wrote them.

Explanations use the model's own terms: the source text of a condition, and a value with the name of its place. For
``s.pool > 0`` in a state with an empty pool that is ``s.pool > 0 because s.pool = 0 (step 3)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import assert_never

from streamproof.base.errors import Loc
from streamproof.base.records import dataclass
from streamproof.system.expr import Expr
from streamproof.system.formula import Atom, written
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Conjunct, Instance, Kind, Property, State, System
from streamproof.system.verdict import Trace
from streamproof.traces.places import Place, Read, look, reads
from streamproof.traces.processes import Wait, circle_of_waiting


@dataclass(frozen=True, slots=True)
class Reading:
    """A place that a condition read, with its value; if `moved`, ``old -> new`` over the step in question.

    `step` is the step that wrote the value, counted from 1; 0 for an initial value, None without a trace.
    """

    place: Place
    text: str
    value: str
    step: int | None = None
    moved: bool = False

    def __str__(self) -> str:
        if self.moved:
            return f"{self.text}: {self.value}"
        match self.step:
            case None:
                since = ""
            case 0:
                since = " (initially)"
            case step:
                since = f" (step {step})"
        return f"{self.text} = {self.value}{since}"


@dataclass(frozen=True, slots=True)
class Reason:
    """A false condition, with the values it read."""

    text: str
    loc: Loc | None
    readings: tuple[Reading, ...]

    @property
    def because(self) -> str:
        """The readings on one line; empty for a condition that reads nothing."""
        return ", ".join(map(str, self.readings))

    def __str__(self) -> str:
        return f"{self.text}   because  {self.because}" if self.readings else f"{self.text}   which is never true"


@dataclass(frozen=True, slots=True)
class Blocked:
    """Instances of one action that are disabled by the same condition for the same reason.

    `missing` counts the false guard conjuncts, `guards` all of them, both of the instance closest to being enabled.
    """

    action: str
    labels: tuple[str, ...]
    reason: Reason
    missing: int
    guards: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why the last state (or step, or loop) of a trace violates a property.

    `reasons`: the false conjunct of an invariant or step property; for a deadlock, why the state is not terminal.
    `blocked`: for a deadlock, the reasons why each action is disabled, closest to being enabled first. `waiting`: for a
    deadlock, a circle of processes that wait for each other. `unmet`: for a temporal formula, the conditions that make it
    false, each with where it is false or true. `steps`: the steps, counted from 1, on which the values read above depend
    (a backward slice); empty if unknown.
    """

    reasons: tuple[Reason, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    steps: tuple[int, ...] = ()
    waiting: tuple[Wait, ...] = ()
    unmet: tuple[tuple[str, Reason], ...] = ()


@dataclass(slots=True)
class Past:
    """The behaviour that led to a state, to find the step that wrote a value. `last` is the index of that state."""

    trace: Trace
    last: int
    wanted: dict[tuple[Place, int], None] = field(default_factory=dict)
    """Places and the states in which their values are read."""
    reader: int | None = None
    """The number of the step that reads them; None: the one after their state."""


def why_false(system: System, conjuncts: Iterable[Conjunct], state: State, after: State | None = None) -> Reason | None:
    """The first conjunct that is false in `state`, with the values it read; None if all are true."""
    interpreter = Interpreter(system)
    found = interpreter.failing(tuple(conjuncts), state, after)
    return None if found is None else _reason(interpreter, found, state, after, None)


def explain(system: System, prop: Property, trace: Trace) -> Explanation:
    """Why `trace` violates `prop`, or shows it if `prop` is a reachability property."""
    return _explained(Interpreter(system), prop, trace)[0]


def _explained(interpreter: Interpreter, prop: Property, trace: Trace) -> tuple[Explanation, Past]:
    """The explanation, and the places that it reads."""
    system = interpreter.system
    past = Past(trace, len(trace) - 1)
    match prop.kind:
        case Kind.INVARIANT:
            reasons = _failed(interpreter, prop, trace.states[-1], None, past)
            return Explanation(reasons, (), _slice(interpreter, past)), past
        case Kind.STEP:
            before, after = last_step(trace)
            past = Past(trace, before)
            reasons = _failed(interpreter, prop, trace.states[before], trace.states[after], past)
            # The failing step is always relevant, with the reads of its guard and of its effect on the displayed
            # places.
            for place, _ in tuple(past.wanted):
                instance, state = trace.steps[-1], trace.states[before]
                for read in (*_sources(interpreter, instance, place, state), *_needed(interpreter, instance, state)):
                    past.wanted[read.place, before] = None
            return Explanation(reasons, (), tuple(sorted({*_slice(interpreter, past), len(trace.steps)}))), past
        case Kind.REACHABLE:
            _readings(interpreter, prop.expr, "", trace.states[-1], None, past)
            return Explanation((), (), _slice(interpreter, past)), past
        case Kind.DEADLOCK:
            stopped = blocked(interpreter, trace.states[-1], past)
            ends: tuple[Reason, ...] = ()
            if system.terminal is not None:
                found = _readings(interpreter, system.terminal, "", trace.states[-1], None, past)
                ends = (Reason("a terminal state", None, found),)
            waiting = circle_of_waiting(interpreter, trace.states[-1])
            return Explanation(ends, stopped, _slice(interpreter, past), waiting), past
        case Kind.TEMPORAL if trace.loop is not None:
            past.reader = len(trace.steps) + 1
            return Explanation(unmet=tuple(_unmet(interpreter, prop, past))), past
        case (
            Kind.TERMINATION | Kind.TEMPORAL
        ):  # what follows a finite prefix is open, and so is which condition is to blame
            return Explanation(), past
        case _:
            assert_never(prop.kind)


def _unmet(interpreter: Interpreter, prop: Property, past: Past) -> Iterator[tuple[str, Reason]]:
    """The conditions that make a formula false, with the values they read: in the last state where it is so in all states."""
    from streamproof.system.temporal import LassoTruth
    from streamproof.traces.unmet import sentence, unmet

    assert prop.formula is not None, "a temporal property has a formula"
    trace = past.trace
    for one in unmet(LassoTruth(interpreter, trace), prop.formula):
        at = past.last if one.forever else one.at
        readings: tuple[Reading, ...] = ()
        if isinstance(one.atom, Atom):
            then = Past(trace, at, past.wanted)
            readings = _readings(interpreter, one.atom.expr, one.atom.text, trace.states[at], None, then)
        yield sentence(one), Reason(one.atom.text or written(one.atom), one.atom.loc, readings)


def last_step(trace: Trace) -> tuple[int, int]:
    """Indices of the states before and after the last step, including the closing step of a loop.

    Raises `ValueError` for a trace without a step.
    """
    if not trace.steps:
        raise ValueError("the trace has no step")
    before = len(trace.steps) - 1
    return before, before + 1 if before + 1 < len(trace.states) else trace.loop or 0


def _failed(
    interpreter: Interpreter, prop: Property, state: State, after: State | None, past: Past
) -> tuple[Reason, ...]:
    found = interpreter.failing((*prop.conjuncts, Conjunct(prop.expr, prop.name, prop.loc)), state, after)
    return () if found is None else (_reason(interpreter, found, state, after, past),)


def _reason(
    interpreter: Interpreter, conjunct: Conjunct, state: State, after: State | None, past: Past | None
) -> Reason:
    found = _readings(interpreter, conjunct.expr, conjunct.text, state, after, past)
    return Reason(conjunct.text, conjunct.loc, found)


def _readings(
    interpreter: Interpreter, term: Expr, written: str, state: State, after: State | None, past: Past | None
) -> tuple[Reading, ...]:
    system = interpreter.system
    found = reads(interpreter, term, state, after)
    sides: dict[Place, set[bool]] = {}
    for read in found:
        sides.setdefault(read.place, set()).add(read.after)
    shown: dict[str, Reading] = {}
    for place, when in sides.items():
        now = look(system, place, state, _prefix(written, place.variable) if after is None else "")
        step = None
        if past is not None:
            past.wanted[place, past.last] = None
            step = _writer(system, past.trace, place, past.last)
        value, moved = now.shown, False
        if after is not None and True in when:
            then = look(system, place, after)
            if then != now:
                value, moved = f"{now.shown} -> {then.shown}", True
        shown.setdefault(now.text, Reading(place, now.text, value, step, moved))
    return tuple(shown.values())


def _prefix(written: str, variable: str) -> str:
    """The source text for the state variable, ``s.`` in ``s.pool > 0``; empty if ambiguous."""
    owners = set(re.findall(rf"(?<![\w.])([A-Za-z_]\w*)\.{re.escape(variable)}\b", written)) - {"self"}
    return f"{owners.pop()}." if len(owners) == 1 else ""


def blocked(interpreter: Interpreter, state: State, past: Past | None = None) -> tuple[Blocked, ...]:
    """Why each action is disabled in `state`: one entry per action and reason, closest to being enabled first.

    Enabled instances are omitted.
    """
    groups: dict[tuple[str, Reason], list[tuple[Instance, int]]] = {}
    for instance in interpreter.system.instances:
        false = [c for c in instance.guard if not interpreter.value(c.expr, state)]
        if false:
            reason = _reason(interpreter, false[0], state, None, past)
            groups.setdefault((instance.action, reason), []).append((instance, len(false)))
    entries = []
    for (action, reason), members in groups.items():
        nearest, missing = min(members, key=lambda m: (m[1], m[1] - len(m[0].guard)))
        entries.append(Blocked(action, tuple(i.label for i, _ in members), reason, missing, len(nearest.guard)))
    rank = {id(entry): (not entry.reason.readings, entry.missing, entry.missing - entry.guards) for entry in entries}
    best: dict[str, tuple[bool, int, int]] = {}
    for entry in entries:
        best[entry.action] = min(best.get(entry.action, rank[id(entry)]), rank[id(entry)])
    # Actions in the order of their best entry, entries of one action together; the sort is stable, so ties are in
    # declaration order.
    order = sorted(best, key=lambda a: best[a])
    return tuple(sorted(entries, key=lambda entry: (order.index(entry.action), rank[id(entry)])))


def _writer(system: System, trace: Trace, place: Place, at: int) -> int:
    """The step, counted from 1, that last changed `place` before state `at`; 0 if none did."""
    now = look(system, place, trace.states[at])
    for step in range(at, 0, -1):
        if look(system, place, trace.states[step - 1]) != now:
            return step
    return 0


def _sources(interpreter: Interpreter, instance: Instance, place: Place, state: State) -> Iterator[Read]:
    """The reads of `instance`, taken in `state`, for writing `place`."""
    for name, term in instance.updates:
        if name == place.variable:
            yield from reads(interpreter, term, state, keys=place.keys)


def _needed(interpreter: Interpreter, instance: Instance, state: State) -> Iterator[Read]:
    """The reads of the guard of `instance` in `state`."""
    for conjunct in instance.guard:
        yield from reads(interpreter, conjunct.expr, state)


def _slice(interpreter: Interpreter, past: Past) -> tuple[int, ...]:
    """The steps on which the wanted values depend, through their writes and the reads of their guards."""
    return tuple(sorted(_needs(interpreter, past)))


def _needs(interpreter: Interpreter, past: Past) -> dict[int, list[tuple[Place, int]]]:
    """For each step on which the wanted values depend, the places that it wrote, each with the number of the step that reads
    it there; the number after the last step is that of what is shown as the reason."""
    trace, found = past.trace, dict[int, list[tuple[Place, int]]]()
    pending = [(place, at, past.reader or at + 1) for place, at in past.wanted]
    met = set(past.wanted)
    while pending:
        place, at, reader = pending.pop()
        step = _writer(interpreter.system, trace, place, at)
        if step == 0:
            continue
        before = step - 1
        instance, state = trace.steps[before], trace.states[before]
        guard = () if step in found else _needed(interpreter, instance, state)
        found.setdefault(step, []).append((place, reader))
        for read in (*_sources(interpreter, instance, place, state), *guard):
            if (read.place, before) not in met:
                met.add((read.place, before))
                pending.append((read.place, before, step))
    return found


def needs(system: System, prop: Property, trace: Trace) -> dict[int, list[tuple[str, int]]]:
    """For each step that the violation of a property depends on, counted from 1, the places that it wrote, each with the
    number of the step that reads it; the number after the last step is that of the property. Empty if that is not known."""
    if prop.kind is Kind.TERMINATION:
        return {}
    interpreter = Interpreter(system)
    found = _needs(interpreter, _explained(interpreter, prop, trace)[1])
    if prop.kind is Kind.STEP:
        found.setdefault(len(trace.steps), [])
    return {
        step: [
            (look(system, place, trace.states[min(reader, len(trace)) - 1]).text, reader) for place, reader in places
        ]
        for step, places in found.items()
    }
