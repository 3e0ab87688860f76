"""The choices of an action: one instance for each combination that can be taken."""

from __future__ import annotations

from typing import Any

import pytest

from streamproof import Array, Model, Range, State, action, choose, require
from streamproof.language.declare.model import marked
from streamproof.language.lower import model_reader
from streamproof.language.lower.model_reader import Reader
from streamproof.system import ModelError


class Forked(Model):
    """Choices in statements of their own, under conditions, in loops and in functions."""

    def state(self):
        """The variables."""
        return State(x=Range(0, 9), row=Array(3, Range(0, 9)))

    def picked(self, s, at):
        """A choice that another one decides about."""
        if choose([False, True]):
            require(s.row[at] > 0)
            return choose(range(2))
        return 7

    @action
    def in_sequence(self, s):
        """Two choices with something between and after them."""
        held = [0, s.x]
        first = choose(range(3))
        held[0] = first
        require(s.x + first < 5)
        second = choose(range(3))
        held.append(second)
        s.row[first] = held[0] + held[2]
        s.x = second

    @action(at=3)
    def below(self, s, at):
        """Choices where a condition of the state holds, in a loop, and in a function."""
        total = 0
        if s.row[at] > 2:
            total = choose(range(2))
        for i in range(2):
            if s.row[i] == 0:
                total += choose([0, 1])
        s.x = total
        s.row[at] = self.picked(s, at)

    @action
    def ended(self, s):
        """A way that ends at a condition that is never true, and one that returns early."""
        kind = choose(["never", "early", "late"])
        require(kind != "never")
        if kind == "early":
            s.x = 1
            return
        other = choose(range(2))
        s.x = 2 + other


class Listed(Model):
    """An ordinary list, made anew and changed on each way."""

    def state(self):
        """The variables."""
        return State(x=Range(0, 9))

    def made(self):
        """A list."""
        return [4]

    def longer(self, given):
        """How long the list is now."""
        given.append(5)
        return len(given)

    @action
    def go(self, s):
        """The list is there before the choice, and changed after it."""
        given = self.made()
        more = choose(range(3))
        s.x = self.longer(given) + more


def instances(model: Model, name: str, args: tuple[tuple[str, Any], ...] = ()) -> list[Any]:
    """The instances of an action."""
    _, function = marked(type(model))[name]
    return [instance for instance, _ in Reader(model).instances(name, function, args)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "count"), [("in_sequence", 9), ("below", 24), ("ended", 3)])
def test_each_combination_of_choices_is_an_instance(name: str, count: int) -> None:
    """In the order of the options, the last choice changing first; combinations that are never enabled are left out."""
    found = instances(Forked(), name, (("at", 1),) if name == "below" else ())
    picks = [tuple(str(value) for _, value in instance.picks) for instance in found]
    assert len(found) == len(set(picks)) == count
    assert picks == sorted(picks)


def test_a_list_that_one_reading_changes_is_not_another_ones() -> None:
    """Each reading sees a list of two elements: an ordinary object is made again for every combination."""
    assert [i.updates[0][1].value for i in instances(Listed(), "go")] == [2, 3, 4]


class Vast(Model):
    """Eight choices of twenty values, one after the other."""

    def state(self):
        """The variables."""
        return State(x=Range(0, 19))

    @action
    def go(self, s):
        """As many instances as 20 ** 8."""
        for _ in range(8):
            s.x = choose(range(20))


def test_instances_are_counted_while_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choices of one action can have more combinations than memory holds: the limit ends the reading."""
    monkeypatch.setattr(model_reader, "INSTANCE_LIMIT", 1_000)
    with pytest.raises(ModelError, match="action go has more than 1,000 instances") as caught:
        Vast.system()
    assert caught.value.remedy == "smaller domains"
