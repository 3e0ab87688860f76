"""Composites: where their parts begin and end, what never happens, and mistakes in how they are written."""

from __future__ import annotations

from typing import Any

import pytest

from streamproof import (
    ANY,
    WEAK,
    Model,
    ModelError,
    Native,
    Parts,
    Range,
    State,
    UsageError,
    action,
    each,
    initially,
    require,
    terminal,
)
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.symbolic.bmc import bmc
from streamproof.symbolic.proof import prove
from streamproof.system import Interpreter, Verdict


class Source(Model):
    """Has so many items to give away."""

    items: int = 2

    def state(self):
        """What is left."""
        return State(left=Range(0, self.items, init=self.items))

    @action(lane=range(2), fairness=WEAK)
    def emit(self, s, lane):
        """Gives one away."""
        require(s.left > 0)
        s.left -= 1

    @terminal
    def dry(self, s):
        """Nothing is left."""
        return s.left == 0


def test_machines_that_end_anywhere() -> None:
    """A part with `check_deadlock = False` may end anywhere; one without ends and actions never may."""

    class Anywhere(Source):
        check_deadlock = False

    class Never(Source):
        dry = None

    class Both(Model):
        def parts(self):
            return Parts(a=Anywhere(items=1), b=Source(items=1)).together("go", "a.emit", "b.emit")

    class Stuck(Model):
        def parts(self):
            return Parts(a=Never(items=1), b=Source(items=1)).together("go", "a.emit", "b.emit")

    class Ending(Stuck):
        @terminal
        def over(self, s):
            return s.a.left == 0

    assert explore(Both.system()).finding("deadlock").verdict is Verdict.HOLDS
    assert explore(Stuck.system()).finding("deadlock").verdict is Verdict.VIOLATED
    assert explore(Ending.system()).finding("deadlock").verdict is Verdict.HOLDS


def test_parts_that_all_end_anywhere_hold_vacuously() -> None:
    """Where every state is terminal, each engine says that `deadlock` holds vacuously; elsewhere none does."""

    class Anywhere(Source):
        check_deadlock = False

    class Both(Model):
        def parts(self):
            return Parts(a=Anywhere(items=1), b=Anywhere(items=1)).together("go", "a.emit", "b.emit")

    class Half(Model):
        def parts(self):
            return Parts(a=Anywhere(items=1), b=Source(items=1)).together("go", "a.emit", "b.emit")

    for model, vacuous in ((Both, True), (Half, False)):
        system = model.system()
        findings = [explore(system, SearchOptions(tier=tier)).finding("deadlock") for tier in ("python", "compiled")]
        findings += [*prove(system, ["deadlock"]).findings, *bmc(system, 3, ["deadlock"]).findings]
        assert [(f.verdict, f.vacuous) for f in findings] == [(Verdict.HOLDS, vacuous)] * 4
        assert all(f.because.startswith("vacuous: ") == vacuous for f in findings)


def test_first_states_of_parts() -> None:
    """Every part starts in one of its first states, and the composite may restrict them together."""

    class Free(Source):
        def state(self):
            return State(left=Range(0, self.items, init=ANY))

        @initially
        def some(self, s):
            return s.left > 0

    class Two(Model):
        def parts(self):
            return Parts(a=Free(), b=Free())

        @initially
        def ordered(self, s):
            return s.a.left <= s.b.left

    assert sorted(Interpreter(Two.system()).initial_states()) == [(1, 1), (1, 2), (2, 2)]
    assert sorted(Native(Two()).initial()) == [(1, 1), (1, 2), (2, 2)]


def test_what_never_can_happen_is_reported() -> None:
    """An action without an instance stays in the system, joint ones too, so that reports name it."""

    class Shut(Source):
        @action
        def shut(self, s):
            require(False)

    class Two(Model):
        def parts(self):
            return Parts(a=Shut(), b=Shut()).together("both", "a.shut()", "b.emit(k)")

    assert {a.name: len(a.instances) for a in Two.system().actions} == {
        "a.emit": 2,
        "a.shut": 0,
        "b.shut": 0,
        "both": 0,
    }


def noted(machine: Any) -> bool:
    """Changes a Python object."""
    machine.log.append(1)
    return True


def test_mistakes_in_python_code_of_a_composite() -> None:
    """A parameter that a part does not have is reported with its line; a rule that changes an object of a part is refused."""

    class Logging(Source):
        def setup(self):
            self.log: list[int] = []

    class Meddling(Model):
        def parts(self):
            return Parts(inner=each(1, lambda _: Logging()))

        @action
        def look(self, s):
            require(noted(self.inner[0]))

    class Misspelt(Model):
        def parts(self):
            return Parts(a=Source(item=3))

    with pytest.raises(ModelError, match=r"reading look\(\) changed self\.inner\[0\]\.log"):
        Meddling.system()
    with pytest.raises(UsageError, match="source has no parameter 'item'") as caught:
        Misspelt.system()
    assert caught.value.loc is not None
    assert caught.value.loc.function == "parts"
