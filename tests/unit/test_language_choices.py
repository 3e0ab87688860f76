"""The choices of an action: one instance for each combination, in order."""

from __future__ import annotations

import types
from typing import Any

import pytest

from streamproof import Array, Model, Range, State, action, choose, require
from streamproof.language.compile import Reader
from streamproof.language.model import marked
from streamproof.system.model import Instance


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


def instances(model: Model, name: str, args: tuple[tuple[str, Any], ...] = ()) -> list[Instance]:
    """The instances of an action."""
    _, function = marked(type(model))[name]
    assert isinstance(function, types.FunctionType)
    return [i for i, _ in Reader(model).instances(name, function, args)]


@pytest.mark.parametrize(
    ("name", "count", "first", "last"),
    [
        ("in_sequence", 9, {"first": 0, "second": 0}, {"first": 2, "second": 2}),
        ("below", 24, {"total": 0, "choice": 0, "choice_2": 0, "choice_3": False}, None),
        ("ended", 3, {"kind": "early"}, {"kind": "late", "other": 1}),
    ],
)
def test_one_instance_for_each_combination(
    name: str, count: int, first: dict[str, Any], last: dict[str, Any] | None
) -> None:
    """The last choice changes first, and no combination occurs twice."""
    found = [i.picks for i in instances(Forked(), name, (("at", 1),) if name == "below" else ())]
    assert len(found) == len(set(found)) == count
    assert dict(found[0]) == first
    assert last is None or dict(found[-1]) == last


def test_a_list_is_made_again_for_each_combination() -> None:
    """Each combination sees a list of two elements: what one of them appends, another does not find there."""
    assert [i.updates[0][1].value for i in instances(Listed(), "go")] == [2, 3, 4]  # type: ignore[attr-defined]
