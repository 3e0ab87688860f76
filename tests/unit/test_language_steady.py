"""Rules that are another one each time they are read are refused; rules that ask nothing of ordinary Python are read once."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import pytest

from streamproof import Array, Model, Range, State, action, choose, invariant, require
from streamproof.base.errors import ModelError
from streamproof.language.declare.spec import compile_model
from streamproof.language.lower.model_reader import Reader


class Clock:
    """Goes on whenever it is looked at, out of sight of the language: in no Python object that a model can reach."""

    @property
    def time(self) -> int:
        """How often it was looked at."""
        return int(os.environ.get("STREAMPROOF_TICKS", "0"))

    @time.setter
    def time(self, now: int) -> None:
        os.environ["STREAMPROOF_TICKS"] = str(now)

    def tick(self) -> int:
        """The next number up to 9."""
        self.time = (self.time + 1) % 10
        return self.time

    def __add__(self, other: int) -> int:
        return self.tick()

    def __iter__(self) -> Any:
        return iter([self.tick()])

    @property
    def now(self) -> int:
        """The next number."""
        return self.tick()


CLOCK = Clock()


def ticked(value: int) -> int:
    """Not what it was before."""
    return CLOCK.tick()


class Base(Model):
    """A variable, and what rules can ask for."""

    ends = (3, 5)

    def setup(self):
        """An ordinary list."""
        self.steps = [1, 2]

    def state(self):
        """The variables."""
        return State(x=Range(0, 20), row=Array(2, Range(0, 9)))

    @property
    def later(self) -> int:
        """The next number."""
        return CLOCK.tick()

    @cached_property
    def once(self) -> int:
        """The same number each time."""
        return 4

    def half(self, n):
        """A helper, lowered with values of the state and called with numbers."""
        return n // 2


class ByFunction(Base):
    """A function of the module."""

    @action
    def go(self, s):
        """Adds something."""
        s.x = ticked(1)


class ByProperty(Base):
    """A property of the model."""

    @action
    def go(self, s):
        """Adds something."""
        s.x = self.later


class ByOperator(Base):
    """An operator of an object."""

    @action
    def go(self, s):
        """Adds something."""
        s.x = CLOCK + 1


class ByIteration(Base):
    """Going through an object."""

    @action
    def go(self, s):
        """Adds something."""
        for n in CLOCK:
            s.x = n


class ByAttribute(Base):
    """A property of an object."""

    @action
    def go(self, s):
        """Adds something."""
        s.x = CLOCK.now


class ByKey(Base):
    """A function given to one of Python's own."""

    @action
    def go(self, s):
        """Adds something."""
        s.x = max(self.ends, key=ticked)


class Computed(Model):
    """Attributes that are computed."""

    def __getattr__(self, name: str) -> int:
        if name != "unheard":
            raise AttributeError(name)
        return CLOCK.tick()

    def state(self):
        """The variables."""
        return State(x=Range(0, 20))

    @action
    def go(self, s):
        """Adds something."""
        s.x = self.unheard


@pytest.mark.parametrize(
    "model", [ByFunction, ByProperty, ByOperator, ByIteration, ByAttribute, ByKey, Computed], ids=lambda m: m.__name__
)
def test_rules_that_change_by_themselves_are_refused(model: type[Model], monkeypatch: pytest.MonkeyPatch) -> None:
    """However a rule asks for what is different each time."""
    # It goes on from 9 with 0: of two keys the second is the greater one at first, and not the next time.
    monkeypatch.setenv("STREAMPROOF_TICKS", "6")
    with pytest.raises(ModelError, match="action go is not deterministic: two evaluations gave different rules"):
        compile_model(model())


class Unsteady(Base):
    """A property that asks a clock."""

    @action
    def go(self, s):
        """Adds something."""
        s.x = 1

    @invariant
    def early(self, s):
        """Depends on the time."""
        return s.x < ticked(1)


def test_properties_that_change_by_themselves_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theirs is one reading otherwise, and the verdict would be about what it happened to be."""
    monkeypatch.setenv("STREAMPROOF_TICKS", "6")
    with pytest.raises(ModelError, match="early is not deterministic: two evaluations gave different results"):
        compile_model(Unsteady())


class Closed(Base):
    """Rules with helpers, choices, lists, properties kept and Python's own functions."""

    @action(at=2)
    def go(self, s, at):
        """Much of the language."""
        require(s.row[at] < max(self.ends) and len(self.steps) == 2)
        n = choose(self.steps)
        found = [v for v in sorted(range(3)) if v in self.ends]
        s.x = self.half(s.row[at]) + n + len(found) + self.once + min(3, int("2")) + {1: 2}.get(1)


class Helped(Base):
    """A rule that calls a function with numbers."""

    @action
    def go(self, s):
        """Calls it."""
        s.x = self.half(7)


@pytest.mark.parametrize(("model", "again"), [(Closed, 0), (Helped, 1)])
def test_rules_are_read_twice_where_they_run_ordinary_python(
    model: type[Model], again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that only reads what is known need not be read again; one that calls a helper is."""
    calls: list[Any] = []
    before = Reader.instances

    def noted(self: Reader, name: str, function: Any, args: Any, **more: Any) -> Any:
        calls.append(args)
        return before(self, name, function, args, **more)

    monkeypatch.setattr(Reader, "instances", noted)
    compile_model(model())
    assert len(calls) - len(set(calls)) == again
