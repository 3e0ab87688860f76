"""The interpreter's result, in its own search order and for any order, for systems that are small enough."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import assert_never

from streamproof.agree.digest import digest
from streamproof.agree.result import Answer, EngineResult, Expected
from streamproof.base.errors import EvaluationError
from streamproof.base.records import dataclass
from streamproof.system.formula import happenings, recurring, untils
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.reference import Reference, reference
from streamproof.system.reference_temporal import plain
from streamproof.system.verdict import Verdict

NAME = "interpreter"
MOST_CYCLE_STATES = 4_000
"""Maximum number of states for which the interpreter searches for a shortest cycle."""
MOST_NODES = 8_000
"""Maximum number of pairs of state and guess for which it checks a temporal property."""


@dataclass(frozen=True, slots=True)
class InterpreterResult:
    """The interpreter's result, and the answers it permits for other engines."""

    result: EngineResult
    expected: Mapping[str, Expected]
    found: Reference


def interpreter_result(system: System, *, thorough: bool = True) -> InterpreterResult:
    """Explores `system` completely with the interpreter, or up to the model's first error.

    Unless `thorough`, expensive termination and temporal properties are skipped; the result gives the reason.
    """
    begun = time.perf_counter()
    at_once = tuple(p for p in system.properties if thorough or p.kind not in _ENDLESS)
    found = reference(replace(system, properties=at_once))
    decisions = dict(found.decisions)
    why: dict[str, str] = {}
    later = []
    for prop in system.properties:
        if prop not in at_once:
            too_many = _too_many(prop, found.counts.distinct)
            if too_many is None:
                later.append(prop)
            else:
                why[prop.name] = too_many
    if later:
        decisions |= reference(replace(system, properties=tuple(later))).decisions
    answers = {name: Answer(d.verdict, d.length, d.loop) for name, d in decisions.items()}
    counts = found.counts.inside
    result = EngineResult(
        NAME,
        {p.name: answers[p.name] for p in system.properties if p.name in answers},
        counts.distinct,
        counts.generated,
        counts.depth,
        counts.levels,
        digest(system.variables, chain(*found.levels), found.counts.levels),
        found.mistake,
        tells_mistakes=True,
        in_order=True,
        seconds=time.perf_counter() - begun,
        why=why,
        states=lambda: chain(*found.levels),
    )
    return InterpreterResult(result, expected(system), found)


_ENDLESS = (Kind.TERMINATION, Kind.TEMPORAL)


def _too_many(prop: Property, states: int) -> str | None:
    if prop.formula is None:
        return (
            None
            if states <= MOST_CYCLE_STATES
            else f"the interpreter looks for cycles of up to {MOST_CYCLE_STATES} states"
        )
    guesses = len({*untils(plain(prop.formula)), *happenings(plain(prop.formula))}) + len({*recurring(prop.formula)})
    if states << guesses <= MOST_NODES:
        return None
    return f"{states} states with {1 << guesses} guesses each are more than the interpreter has time for"


def expected(system: System) -> Mapping[str, Expected]:
    """By breadth-first search with the interpreter: the first level at which each property is decided, and the verdicts
    there.

    Termination and temporal properties are omitted.
    """
    interpreter = Interpreter(system)
    properties = [p for p in system.properties if p.kind not in _ENDLESS]
    level = tuple(interpreter.initial_states())
    seen = set(level)
    decided: dict[str, Expected] = {}
    arriving: list[tuple[State, State]] = []
    length = 1
    while level:
        for prop in properties:
            if prop.name not in decided:
                found = frozenset(_events(interpreter, prop, level, arriving))
                if found:
                    decided[prop.name] = Expected(found, length)
        if any(_mistaken(interpreter, state) for state in level):
            further = [(state, after) for state in level for after in _taken(interpreter, system, state)]
            reached = tuple(dict.fromkeys(after for _, after in further if after not in seen))
            for prop in properties:
                if prop.name not in decided:
                    decided[prop.name] = _beside_mistake(interpreter, prop, length, reached, further)
                elif prop.kind is Kind.DEADLOCK and decided[prop.name].length == length:
                    # Of a deadlock and a mistake on one level, an engine reports the one that it expands first.
                    decided[prop.name] = Expected(frozenset({Verdict.VIOLATED, Verdict.ERROR}), length)
            return decided
        arriving = [(state, step.state) for state in level for step in interpreter.steps(state)]
        level = tuple(dict.fromkeys(after for _, after in arriving if after not in seen))
        seen.update(level)
        length += 1
        for prop in properties:
            # Steps between known states are checked although they open no new level.
            if prop.name not in decided and prop.kind is Kind.STEP:
                found = frozenset(_events(interpreter, prop, (), arriving))
                if found:
                    decided[prop.name] = Expected(found, length)
    never = {p.name: Verdict.VIOLATED if p.kind is Kind.REACHABLE else Verdict.HOLDS for p in properties}
    return {name: decided.get(name, Expected(frozenset({verdict}), None)) for name, verdict in never.items()}


def _taken(interpreter: Interpreter, system: System, state: State) -> Iterator[State]:
    """The states after the steps from a state, without those that are mistakes."""
    for instance in system.instances:
        with suppress(EvaluationError):
            after = interpreter.take(instance, state)
            if after is not None:
                yield after


def _beside_mistake(
    interpreter: Interpreter,
    prop: Property,
    length: int,
    level: tuple[State, ...],
    arriving: list[tuple[State, State]],
) -> Expected:
    """The answers to an undecided property where the model makes a mistake on the level before these states and steps."""
    later = () if prop.kind is Kind.DEADLOCK else _events(interpreter, prop, level, arriving)
    return Expected(frozenset({Verdict.ERROR}), length, frozenset(later))


def _events(
    interpreter: Interpreter, prop: Property, level: tuple[State, ...], arriving: list[tuple[State, State]]
) -> Iterator[Verdict]:
    match prop.kind:
        case Kind.DEADLOCK:
            free = (s for s in level if not _mistaken(interpreter, s) and not interpreter.terminal(s))
            yield from (Verdict.VIOLATED for s in free if not any(True for _ in interpreter.steps(s)))
        case Kind.STEP:
            yield from (v for s, t in arriving if (v := _value(interpreter, prop, s, t)) is not Verdict.HOLDS)
        case Kind.REACHABLE:
            yield from (v for s in level if (v := _value(interpreter, prop, s)) is not Verdict.VIOLATED)
        case Kind.INVARIANT:
            yield from (v for s in level if (v := _value(interpreter, prop, s)) is not Verdict.HOLDS)
        case Kind.TERMINATION | Kind.TEMPORAL:
            raise AssertionError(f"{prop.name} is decided by no single state or step")
        case _:
            assert_never(prop.kind)


def _value(interpreter: Interpreter, prop: Property, state: State, after: State | None = None) -> Verdict:
    try:
        return Verdict.HOLDS if interpreter.holds(prop, state, after) else Verdict.VIOLATED
    except EvaluationError:
        return Verdict.ERROR


def _mistaken(interpreter: Interpreter, state: State) -> bool:
    try:
        for _ in interpreter.steps(state):
            pass
    except EvaluationError:
        return True
    return False
