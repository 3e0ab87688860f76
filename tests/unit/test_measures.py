"""Measured quantities: the largest value of a number over the reachable states."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from streamproof import Array, Model, ModelError, Parts, Queue, Range, Spec, State, action, measure, require
from streamproof.base.options import TIERS, SearchOptions
from streamproof.explicit.exploration import explore


class Stack(Model):
    """Two piles that grow to a limit each, and to another together."""

    most: int = 5
    together: int = 7

    def state(self) -> State:
        """Empty."""
        return State(pile=Array(2, Range(-3, 200, init=0)), seen=Queue(Range(0, 5), capacity=3))

    @action(i=range(2))
    def grow(self, s: Any, i: int) -> None:
        """One more."""
        require(s.pile[i] < self.most and s.pile[0] + s.pile[1] < self.together)
        s.pile[i] += 1

    @action
    def note(self, s: Any) -> None:
        """The first pile is written down."""
        require(not s.seen.full)
        s.seen.push(s.pile[0])

    @measure
    def higher(self, s: Any) -> Any:
        """The higher pile."""
        return max(s.pile[0], s.pile[1])

    @measure
    def sum_of_both(self, s: Any) -> Any:
        """Both piles."""
        return s.pile[0] + s.pile[1]

    @measure
    def negated(self, s: Any) -> Any:
        """A number that is never positive."""
        return -s.pile[0] - 4

    @measure
    def notes(self, s: Any) -> Any:
        """Numbers written down."""
        return len(s.seen)


class Pile(Model):
    """One pile, and a count that is made or not."""

    most: int = 5
    counted: bool = False

    def state(self) -> State:
        """Empty."""
        return State(n=Range(-3, 200, init=0))

    @action
    def grow(self, s: Any) -> None:
        """One more."""
        require(s.n < self.most)
        s.n += 1

    @measure
    def height(self, s: Any) -> Any:
        """How high it is."""
        return s.n

    @measure
    def twice(self, s: Any) -> Any:
        """Twice as high."""
        return 2 * s.n if self.counted else None


VALUES = {"higher": 5, "sum_of_both": 7, "negated": -4, "notes": 3}


@pytest.mark.parametrize("tier", TIERS)
def test_both_tiers_find_the_largest_values(tier: str) -> None:
    """The largest value is that of some reachable state, in ranges wider than one pass asks about."""
    spec = Spec(Stack)
    explored = explore(spec.system(), SearchOptions(tier=tier))
    found = explored.measured(spec.measured())
    assert {m.name: m.value for m in found} == VALUES
    assert all(m.exact for m in found)
    largest = max(max(pile) for pile, _ in explored.states())
    assert largest == VALUES["higher"]


@pytest.mark.parametrize("most", [1, 2, 31, 32, 33, 64, 65, 199])
def test_every_size_of_range_is_searched_to_its_end(most: int) -> None:
    """However the thresholds fall, the answer is exact."""
    spec = Spec(Pile)
    found = explore(spec.system(most=most)).measured(spec.measured(most=most))
    assert [(m.name, m.value, m.exact) for m in found] == [("height", most, True)]


def test_what_is_none_is_not_measured() -> None:
    """A quantity that a model does not count at some parameters is left out there, not reported as none."""
    spec = Spec(Pile)
    names = {counted: [m.name for m in spec.measured(counted=counted)] for counted in (False, True)}
    assert names == {False: ["height"], True: ["height", "twice"]}


def test_a_search_that_ended_early_gives_lower_bounds() -> None:
    """What was not looked at may be larger, and the answer says so."""
    spec = Spec(Stack)
    found = explore(spec.system(), SearchOptions(max_depth=3)).measured(spec.measured())
    assert [(m.value, m.exact) for m in found] == [(2, False), (2, False), (-4, False), (2, False)]
    assert found[0].because == "the largest in 11 reachable states; lower bound: the search left states out"


class Head(Stack):
    """Looks at a queue that may be empty."""

    @measure
    def first(self, s: Any) -> Any:
        """What was written down first."""
        return s.seen.head


def test_a_quantity_without_a_value_somewhere_has_no_largest_one() -> None:
    """A convention for what does not exist is not passed off as a measurement."""
    spec = Spec(Head)
    found = {m.name: m for m in explore(spec.system()).measured(spec.measured())}
    assert (found["first"].value, found["higher"].value) == (None, 5)
    assert found["first"].because == "has no value in some state: head of the empty queue s.seen"


class Twins(Model):
    """Two stacks side by side."""

    def parts(self) -> Parts:
        """The machines."""
        return Parts(left=Stack(most=2), right=Stack(most=1))

    @measure
    def difference(self, s: Any) -> Any:
        """By how much the left first pile is higher than the right one."""
        return s.left.pile[0] - s.right.pile[0]


def test_a_composite_measures_what_it_sees_of_its_parts() -> None:
    """Its quantities name the variables of the parts."""
    spec = Spec(Twins)
    assert [(m.name, m.value) for m in explore(spec.system()).measured(spec.measured())] == [("difference", 2)]


def _plain(m: Any, s: Any) -> Any:
    return s.pile[0]


@measure
def truth(m: Any, s: Any) -> Any:
    """No number."""
    return s.pile[0] > 0


@measure
def lonely(m: Any) -> Any:
    """Of nothing."""
    return 0


@measure
def higher(m: Any, s: Any) -> Any:
    """Named as one of the model's own."""
    return s.pile[0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_plain, "_plain is not marked as a measure"),
        (truth, "truth() returns a Bool"),
        (lonely, "lonely(m) is a number for every state"),
        (higher, "'higher' is the name of two things"),
    ],
)
def test_what_is_no_quantity_is_refused(function: Callable[..., Any], message: str) -> None:
    """One message, at the function."""
    with pytest.raises(ModelError) as raised:
        Spec(Stack, measures=(function,)).measured()
    assert raised.value.message == message


def test_check_reports_measures(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line shows them below the properties, and gives them to machines."""
    from streamproof.cli.verbs import run

    model = tmp_path / "pile.py"
    model.write_text(
        "from streamproof import Model, Range, State, action, invariant, measure, require\n"
        "class Pile(Model):\n"
        "    check_deadlock = False\n"
        "    def state(self):\n"
        "        return State(n=Range(0, 9))\n"
        "    @action\n"
        "    def grow(self, s):\n"
        "        require(s.n < 6)\n"
        "        s.n += 1\n"
        "    @invariant\n"
        "    def low(self, s):\n"
        "        return s.n < 9\n"
        "    @measure\n"
        "    def height(self, s):\n"
        '        """How high it gets."""\n'
        "        return s.n\n"
    )
    out = tmp_path / "report.json"
    assert run(["check", str(model), "-q", "--json", str(out), "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "  measure  largest\n  height   6        How high it gets.\n" in shown
    because = "the largest in 7 reachable states"
    assert json.loads(out.read_text())["measures"] == [
        {"name": "height", "largest": 6, "exact": True, "because": because}
    ]
