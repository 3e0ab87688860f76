"""Fairness of a part of an action: the flag of each step is what the condition says of the values in the rule."""

from __future__ import annotations

from typing import Any

import pytest

from streamproof import WEAK, Bool, Model, ModelError, Range, State, action, any_of, choose, require
from streamproof.system import Interpreter


class Steps(Model):
    """A number that is set once, and a switch."""

    check_deadlock = False
    on: bool = False

    def state(self) -> State:
        """Both positions of the switch."""
        return State(x=Range(0, 9), b=Bool(init=any_of(False, True)))

    def two_or_none(self, s: Any, z: Any) -> bool:
        """Without the choice, or with 2."""
        return z is None or z == 2

    def two(self, s: Any, z: Any) -> bool:
        """Only with 2."""
        return z is not None and z == 2

    def sum_is_three(self, s: Any, y: Any, z: Any) -> bool:
        """Two choices, each of which may be missing."""
        return (0 if y is None else y) + (0 if z is None else z) == 3


class OnlyIfOn(Steps):
    """The choice is reached where the switch is on."""

    @action(fairness=WEAK.where("two_or_none"))
    def go(self, s: Any) -> None:
        """1 or 2, or 3."""
        require(s.x == 0)
        if s.b:
            z = choose([1, 2])
            s.x = z
        else:
            s.x = 3


class NotNone(OnlyIfOn):
    """The same with a condition that None does not satisfy."""

    @action(fairness=WEAK.where("two"))
    def go(self, s: Any) -> None:
        """1 or 2, or 3."""
        require(s.x == 0)
        if s.b:
            z = choose([1, 2])
            s.x = z
        else:
            s.x = 3


class Always(Steps):
    """The choice is always reached."""

    @action(fairness=WEAK.where("two"))
    def go(self, s: Any) -> None:
        """1 or 2."""
        require(s.x == 0)
        z = choose([1, 2])
        s.x = z + 4 * s.b


class Either(Steps):
    """One of two choices, in one variable."""

    @action(fairness=WEAK.where("two"))
    def go(self, s: Any) -> None:
        """1 or 2, or 2 or 3."""
        require(s.x == 0)
        if s.b:
            z = choose([1, 2])
            s.x = z
        else:
            z = choose([2, 3])
            s.x = 4 + z


class Both(Steps):
    """One choice always, and another one where the switch is on."""

    @action(fairness=WEAK.where("sum_is_three"))
    def go(self, s: Any) -> None:
        """The sum of both, or the first times two."""
        require(s.x == 0)
        y = choose([1, 3])
        if s.b:
            z = choose([0, 2])
            s.x = y + z
        else:
            s.x = 2 * y


class Labelled(Steps):
    """The same with labels on the choice that may be missing."""

    @action(fairness=WEAK.where("sum_is_three"))
    def go(self, s: Any) -> None:
        """The sum of both, or the first times two."""
        require(s.x == 0)
        y = choose([1, 3])
        if s.b:
            z = choose(low=0, high=2)
            s.x = y + z
        else:
            s.x = 2 * y


class Unreached(Steps):
    """The choice is in a branch that no reading of the rule takes."""

    @action(fairness=WEAK.where("two_or_none"))
    def go(self, s: Any) -> None:
        """3."""
        require(s.x == 0)
        if self.on:
            z = choose([1, 2])
            s.x = z
        else:
            s.x = 3


class Assigned(Steps):
    """A choice that is not reached, and a value of the same variable that is no choice."""

    @action(fairness=WEAK.where("two_or_none"))
    def go(self, s: Any) -> None:
        """3."""
        require(s.x == 0)
        z = 3
        if self.on:
            z = choose([1, 2])
        s.x = z


class Unreachable(Steps):
    """Choices, one of them labelled, that no reading reaches."""

    count = 0

    @action(fairness=WEAK.branch("high"))
    def go(self, s: Any) -> None:
        """3."""
        require(s.x == 0)
        if self.count > 0:
            s.x = choose(low=1, high=2)
        else:
            s.x = 3

    @action(fairness=WEAK.where("two_or_none"))
    def end(self, s: Any) -> None:
        """4."""
        require(s.x == 0)
        if self.count > 0:
            z = choose([1, 2])
            s.x = z
        else:
            s.x = 4


class CallsUnreachable(Unreachable):
    """Rules that call them."""

    def go(self, s: Any) -> None:
        """3."""
        super().go(s)

    def end(self, s: Any) -> None:
        """4."""
        super().end(s)


@pytest.mark.parametrize("model", [Unreachable, CallsUnreachable])
def test_a_choice_that_is_never_made_is_known(model: type[Model]) -> None:
    """Also where the rule that has it is called by another one; steps without the branch are not subject to fairness."""
    steps = Interpreter(model.system()).steps((0, False))
    assert {(step.state[0], step.instance.fair) for step in steps} == {(3, False), (4, True)}


@pytest.mark.parametrize(
    ("model", "off", "on"),
    [
        (OnlyIfOn, {(3, True)}, {(1, False), (2, True)}),
        (NotNone, {(3, False)}, {(1, False), (2, True)}),
        (Always, {(1, False), (2, True)}, {(5, False), (6, True)}),
        (Either, {(6, True), (7, False)}, {(1, False), (2, True)}),
        (Both, {(2, False), (6, True)}, {(1, False), (3, True), (5, False)}),
        (Labelled, {(2, False), (6, True)}, {(1, False), (3, True), (5, False)}),
        (Unreached, {(3, True)}, {(3, True)}),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_each_step_has_the_flag_of_its_values(
    model: type[Model], off: set[tuple[int, bool]], on: set[tuple[int, bool]]
) -> None:
    """A step is fair exactly where the condition is true of the values of the variables; of a choice not made it is None."""
    interpreter = Interpreter(model.system())
    for switch, expected in ((False, off), (True, on)):
        steps = interpreter.steps((0, switch))
        assert {(step.state[0], step.instance.fair) for step in steps} == expected


def test_a_variable_that_may_also_be_no_choice() -> None:
    """It is refused with its line, also where the choice is in a branch that is never taken."""
    with pytest.raises(ModelError, match="which may get several values in one step: line"):
        Assigned.system()
