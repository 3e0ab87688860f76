"""The ways through an action's choices: sharing what they have in common changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from streamproof import Array, Model, Range, State, action, choose, require
from streamproof.language.model import marked
from streamproof.language.reader import Reader


class Calls:
    """Counts, out of sight of the language."""

    def __init__(self) -> None:
        self.made = 0

    def note(self, value: int) -> int:
        """`value`."""
        self.made += 1
        return value


CALLS = Calls()


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


class Counted(Model):
    """What is ordinary Python is called where it stands."""

    def state(self):
        """The variables."""
        return State(x=Range(0, 9))

    @action
    def go(self, s):
        """A call before two choices."""
        start = CALLS.note(2)
        s.x = start + choose(range(2)) + choose(range(2))


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


def instances(model: Model, name: str, args: tuple[tuple[str, Any], ...] = (), *, apart: bool) -> list[Any]:
    """The instances of an action with the choices they come from."""
    _, function = marked(type(model))[name]
    return list(Reader(model).instances(name, function, args, apart=apart))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["in_sequence", "below", "ended"])
def test_sharing_what_ways_have_in_common_changes_no_instance(name: str) -> None:
    """Read from the last choice that differs, or each from the start: the same instances in the same order."""
    args = (("at", 1),) if name == "below" else ()
    shared, apart = (instances(Forked(), name, args, apart=apart) for apart in (False, True))
    assert len(shared) == {"in_sequence": 9, "below": 24, "ended": 3}[name]
    assert shared == apart


def test_what_stands_before_a_choice_is_read_once() -> None:
    """The call before the choices is made once, not on each of the four ways."""
    CALLS.made = 0
    assert len(instances(Counted(), "go", apart=False)) == 4
    shared = CALLS.made
    CALLS.made = 0
    instances(Counted(), "go", apart=True)
    assert (shared, CALLS.made) == (1, 4)


def test_a_list_that_a_way_changes_is_not_another_ways() -> None:
    """Each way sees a list of two elements: an ordinary object made before a choice is made again for every way."""
    (x,) = {term for instance, _ in instances(Listed(), "go", apart=False)[:1] for _, term in instance.updates}
    assert [i.updates[0][1].value for i, _ in instances(Listed(), "go", apart=False)] == [x.value + n for n in range(3)]
    assert x.value == 2
