"""The symbolic engine and the interpreter give the same verdicts, at the same depths, on random systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings

from streamproof.symbolic import bmc, prove
from streamproof.system import EvaluationError, Interpreter, Kind, Property, State, System, Verdict
from streamproof.system.testing import systems

DEPTH = 7
"""Steps that the engine is asked to cover; most random systems are exhausted before."""


@dataclass(frozen=True)
class Expected:
    """What may be answered for a property, whatever the order of search, and the number of states that shows it."""

    verdicts: frozenset[Verdict]
    length: int | None


def expected(system: System) -> Mapping[str, Expected]:
    """By breadth-first search with the interpreter: the first level at which each property is decided, and how."""
    interpreter = Interpreter(system)
    level = tuple(interpreter.initial_states())
    seen = set(level)
    decided: dict[str, Expected] = {}
    arriving: list[tuple[State, State]] = []
    length = 1
    while level:
        for prop in system.properties:
            if prop.name not in decided:
                found = frozenset(_events(interpreter, prop, level, arriving))
                if found:
                    decided[prop.name] = Expected(found, length)
        if any(_mistaken(interpreter, state) for state in level):
            return {
                p.name: decided.get(p.name, Expected(frozenset({Verdict.ERROR}), length)) for p in system.properties
            }
        arriving = [(state, step.state) for state in level for step in interpreter.steps(state)]
        level = tuple(dict.fromkeys(after for _, after in arriving if after not in seen))
        seen.update(level)
        length += 1
        for prop in system.properties:
            # Steps between known states are seen although they open no new level.
            if prop.name not in decided and prop.kind is Kind.STEP:
                found = frozenset(_events(interpreter, prop, (), arriving))
                if found:
                    decided[prop.name] = Expected(found, length)
    never = {p.name: Verdict.VIOLATED if p.kind is Kind.REACHABLE else Verdict.HOLDS for p in system.properties}
    return {name: decided.get(name, Expected(frozenset({verdict}), None)) for name, verdict in never.items()}


def _events(
    interpreter: Interpreter, prop: Property, level: tuple[State, ...], arriving: list[tuple[State, State]]
) -> Iterator[Verdict]:
    match prop.kind:
        case Kind.TERMINATION:
            return
        case Kind.DEADLOCK:
            free = (s for s in level if not _mistaken(interpreter, s) and not interpreter.terminal(s))
            yield from (Verdict.VIOLATED for s in free if not any(interpreter.steps(s)))
        case Kind.STEP:
            yield from (v for s, t in arriving if (v := _value(interpreter, prop, s, t)) is not Verdict.HOLDS)
        case Kind.REACHABLE:
            yield from (v for s in level if (v := _value(interpreter, prop, s)) is not Verdict.VIOLATED)
        case Kind.INVARIANT:
            yield from (v for s in level if (v := _value(interpreter, prop, s)) is not Verdict.HOLDS)


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


@pytest.mark.parametrize(("integers", "examples"), [(False, 120), (True, 40)])
def test_bounded_search_finds_what_breadth_first_search_finds_and_as_early(integers: bool, examples: int) -> None:
    """Verdict and length of the shortest behaviour agree for each property that is decided within the depth."""

    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow])
    @given(systems())
    def agree(system: System) -> None:
        answers = expected(system)
        result = bmc(system, DEPTH, integers=integers)
        for finding in result.findings:
            answer = answers[finding.property]
            if finding.kind is Kind.TERMINATION:
                assert finding.verdict is Verdict.INCONCLUSIVE
            elif answer.length is not None and answer.length <= DEPTH + 1:
                assert finding.verdict in answer.verdicts
                assert finding.trace is not None
                assert len(finding.trace) == answer.length
            else:
                assert finding.trace is None
                assert finding.verdict is Verdict.INCONCLUSIVE or (
                    result.complete and finding.verdict in answer.verdicts
                )

    agree()


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(systems())
def test_a_proof_never_contradicts_the_search_of_all_states(system: System) -> None:
    """What induction or the search beside it decides is what exhaustive search decides; proofs are confirmed."""
    answers = expected(system)
    proof = prove(system, depth=3, max_k=3)
    for finding in proof.findings:
        if finding.kind is not Kind.TERMINATION and finding.verdict is not Verdict.INCONCLUSIVE:
            assert finding.verdict in answers[finding.property].verdicts
    assert proof.confirmed in (True, None)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(systems())
def test_lemmas_are_never_believed(system: System) -> None:
    """With invariants offered as lemmas, true ones or not, no verdict on them or on the rest becomes wrong."""
    answers = expected(system)
    lemmas = tuple(p for p in system.properties if p.kind in (Kind.INVARIANT, Kind.STEP))[::2]
    rest = tuple(p for p in system.properties if p not in lemmas)
    proof = prove(replace(system, properties=rest, lemmas=lemmas), depth=2, max_k=2)
    for finding in (*proof.findings, *proof.lemmas):
        if finding.kind is not Kind.TERMINATION and finding.verdict is not Verdict.INCONCLUSIVE:
            assert finding.verdict in answers[finding.property].verdicts
    assert {*proof.used, *proof.dropped} <= {p.name for p in lemmas}
    assert not {*proof.used} & {*proof.dropped}
