"""Every engine has the same result for the same system: interpreter, both tiers of the explicit engine, the solver, Spin.

Systems are drawn with seeds, so that a failure, which names its seed and shows the system, can be repeated.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from random_systems import random_system, systems
from streamproof import ANY, Bool, Model, Range, State, action, require
from streamproof.agree.result import Answer
from streamproof.exchange.promela import spin
from streamproof.exchange.promela.spin_run import installed
from streamproof.system import Kind, System, Verdict

DEPTH = 5
"""Steps that the solver looks ahead."""
SMALL = spin.SpinOptions(hash_bits=12, depth=100_000, optimise="-O0")
"""Spin is asked about few states; compiling its verifier is what takes the time."""
needs_spin = pytest.mark.skipif(installed() is not None, reason=f"needs Spin: {installed()}")


def _agree(panel: Any, system: System, *, with_spin: bool = False) -> bool:
    """Compare all results; False where there is nothing to compare, because no state is initial."""
    referee = panel.interpreter_result(system)
    if not referee.ordered.levels:
        return False
    if with_spin:
        referee.compare(panel.run_spin(system, SMALL))
        return True
    referee.compare(panel.explored(system, "python"))
    referee.compare(panel.explored(system, "compiled"))
    referee.compare(panel.explored(system, "compiled", 2))
    referee.compare(panel.bounded(system, DEPTH))
    return True


def _agree_on(panel: Any, seeds: range, *, with_spin: bool = False) -> None:
    compared = 0
    for seed in seeds:
        try:
            compared += _agree(panel, random_system(Random(seed)), with_spin=with_spin)
        except Exception as error:
            error.add_note(f"random_system(Random({seed}))")
            raise
    assert compared > 0.8 * len(seeds)


@pytest.mark.push
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(systems())
def test_random_systems(panel: Any, system: System) -> None:
    """Systems that Hypothesis draws, and shrinks when something differs."""
    _agree(panel, system)


def test_the_comparison_can_fail(panel: Any) -> None:
    """A result that differs in any one thing is refused: a count, a level, a state, a verdict, a length, a mistake."""
    system = random_system(Random(5))
    referee, result = panel.interpreter_result(system), panel.explored(system, "python")
    referee.compare(result)
    name, answer = next(
        (p.name, result.answers[p.name])
        for p in system.properties
        if p.kind is not Kind.TERMINATION and result.answers[p.name].length is not None
    )
    other = Verdict.HOLDS if answer.verdict is Verdict.VIOLATED else Verdict.VIOLATED
    for change in (
        {"generated": result.generated + 1},
        {"levels": (*result.levels[:-1], result.levels[-1] + 1)},
        {"digest": replace(result.digest, ordered="")},
        {"digest": replace(result.digest, levels=(*result.digest.levels[:-1], 0))},
        {"mistake": 1},
        {"answers": {**result.answers, name: replace(answer, verdict=other)}},
        {"answers": {**result.answers, name: replace(answer, length=answer.length + 1)}},
        {"answers": {**result.answers, name: replace(answer, length=answer.length + 1)}, "in_order": False},
        {"answers": {}},
    ):
        with pytest.raises(AssertionError, match=r"interpreter says|dict_keys"):
            referee.compare(replace(result, **change))


class HalfMistaken(Model):
    """One initial state is a deadlock; in the other, the rule is a mistake."""

    check_deadlock = True

    def state(self) -> State:  # noqa: D102
        return State(stuck=Bool(init=ANY), n=Range(0, 1, init=1))

    @action
    def increment(self, s: Any) -> None:  # noqa: D102
        require(not s.stuck)
        s.n += 1


def test_a_deadlock_and_a_mistake_on_one_level_are_reported_in_any_order(panel: Any) -> None:
    """The one or the other, depending on the state that is expanded first; nothing else is allowed."""
    system = HalfMistaken.system()
    referee = panel.interpreter_result(system)
    for result in (panel.explored(system, "python"), panel.explored(system, "compiled", 2), panel.bounded(system, 1)):
        referee.compare(result)
        for verdict in (Verdict.VIOLATED, Verdict.ERROR):
            referee.compare(replace(result, answers={"deadlock": Answer(verdict, 1)}, in_order=False))
        for wrong in (Answer(Verdict.HOLDS), Answer(Verdict.VIOLATED, 2), Answer(Verdict.ERROR, 2)):
            with pytest.raises(AssertionError, match="interpreter says"):
                referee.compare(replace(result, answers={"deadlock": wrong}, in_order=False))


@pytest.mark.long
@needs_spin
def test_five_systems_with_spin(panel: Any) -> None:
    """Spin counts the same states, steps and levels, and decides every property alike, as early."""
    _agree_on(panel, range(2_000, 2_005), with_spin=True)


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(20))
def test_two_thousand_systems(panel: Any, hundred: int) -> None:
    """A hundred at a time, none of those in the quick tests."""
    _agree_on(panel, range(10_000 + 100 * hundred, 10_100 + 100 * hundred))


@pytest.mark.long
@needs_spin
@pytest.mark.parametrize("part", range(16))
def test_two_hundred_systems_with_spin(panel: Any, part: int) -> None:
    """Thirteen at a time, each a part of a hundred that the other engines are compared on."""
    _agree_on(panel, range(10_000 + 100 * part, 10_013 + 100 * part), with_spin=True)
