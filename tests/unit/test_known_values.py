"""What is known while a rule is read: the case of a value that the rule makes, the text of a divisor, names of models."""

from __future__ import annotations

from typing import Any

import pytest

from streamproof import Case, Model, Range, State, Union, action, choose
from streamproof.language.native.native import Native
from streamproof.system import EvaluationError, Interpreter


class Vote(Case):
    """A case with a field."""

    by: Any


class Veto(Case):
    """Another one, earlier in the alphabet."""

    by: Any


class Known(Model):
    """A case is made, chosen and taken apart at once; numbers are divided."""

    check_deadlock = False

    def state(self) -> State:
        """Two numbers and a message."""
        message = Union(Vote(by=Range(0, 3)), Veto(by=Range(0, 3)), init=Vote(by=0))
        return State(x=Range(0, 40), zero=Range(0, 1), m=message)

    @action
    def match_it(self, s: Any) -> None:
        """Each case has its own tens."""
        made = choose([Vote(by=1), Veto(by=2)])
        match made:
            case Veto(by=n):
                s.x = 20 + n
            case Vote(by=n):
                s.x = 10 + n

    @action
    def ask_it(self, s: Any) -> None:
        """The kind is asked for."""
        made = choose([Vote(by=1), Veto(by=2)])
        s.x = 31 if isinstance(made, Vote) else 32
        s.m = made

    @action
    def compare(self, s: Any) -> None:
        """Equal to one case, with one value."""
        made = choose([Vote(by=1), Veto(by=1), Vote(by=2)])
        s.x = 5 if made == Vote(by=s.zero + 1) else 6
        s.m = made

    @action
    def divide(self, s: Any) -> None:
        """By zero."""
        s.x = s.x // s.zero


@pytest.mark.parametrize(("rule", "numbers"), [("match_it", {11, 22}), ("ask_it", {31, 32}), ("compare", {5, 6})])
def test_cases_made_in_a_rule(rule: str, numbers: set[int]) -> None:
    """A case that a rule makes is of its own class only, lowered and natively."""
    system = Known.system()
    interpreter = Interpreter(system)
    (state,) = interpreter.initial_states()
    lowered = {interpreter.take(instance, state) for instance in system.action(rule).instances}
    assert {after[0] for after in lowered if after is not None} == numbers
    assert None not in lowered


def test_the_divisor_is_named() -> None:
    """A division by zero names what is zero, lowered and natively."""
    system = Known.system()
    (state,) = Interpreter(system).initial_states()
    for divide in (
        lambda: Interpreter(system).take(system.action("divide").instances[0], state),
        lambda: Native(Known()).step(state, "divide"),
    ):
        with pytest.raises(EvaluationError, match=r"division by zero: s\.zero is 0"):
            divide()


def test_names_of_every_model() -> None:
    """A variable may have a name that every model has."""

    class Variables(Model):
        check_deadlock = False

        def state(self) -> State:
            return State(system=Range(0, 1), parts=Range(0, 1))

        @action
        def go(self, s: Any) -> None:
            s.system = 1 - s.parts

    assert [v.name for v in Variables.system().variables] == ["system", "parts"]
