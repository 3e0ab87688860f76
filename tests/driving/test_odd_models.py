"""Models with names that the driver and adapters have, too, and values of unusual types: no correct service is blamed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pytest

from streamproof import Enum, Model, Range, Set, State, action, require
from streamproof.base.errors import InputError, UsageError
from streamproof.driving import Adapter, Refused, assert_no_difference
from streamproof.driving.connection import of_class
from streamproof.driving.contract import contract, page
from streamproof.driving.drive import Drive, DriveOptions, drive
from streamproof.driving.messages import AdapterFailure
from streamproof.driving.suite import MOST_STATES, make_suite, suite_or_none
from streamproof.driving.testing import subject_of
from streamproof.selection import selected


class Odd(Model):
    """Its bound is called as an option of event logs, an action as an attribute of adapters."""

    ordered: int = 2
    instance_bounds = ("ordered",)

    def state(self) -> State:
        """A counter."""
        return State(of=Range(0, self.ordered), seen=Set(Range(0, self.ordered)), phase=Enum("LOW", "HIGH"))

    @action
    def events(self, s: Any) -> None:
        """Counts."""
        require(s.of < self.ordered)
        s.of += 1
        s.seen.add(s.of)
        s.phase = "HIGH"

    @action
    def picks(self, s: Any) -> None:
        """Begins again."""
        require(s.of > 0)
        s.of = 0
        s.phase = "LOW"


class Observing(Model):
    """An action has the name of observations."""

    def state(self) -> State:
        """One value."""
        return State(n=Range(0, 1))

    @action
    def observe(self, s: Any) -> None:
        """The only step."""
        s.n = 1 - s.n


class Phase(StrEnum):
    """Text of a type of its own."""

    LOW = "LOW"
    HIGH = "HIGH"


class Counter(Adapter):
    """Right, without a bound; it calls no constructor of `Adapter`, and observes a set and a text of another type."""

    def __init__(self) -> None:
        self.most = 9

    def reset(self, parameters: Any, seed: int) -> None:
        """Nothing is counted."""
        self.count, self.seen = 0, set[int]()

    def do(self, action: str, args: Any) -> None:
        """A step, if it is possible."""
        if action == "picks" and not self.count:
            raise Refused("nothing is counted")
        self.count = 0 if action == "picks" else self.count + 1
        if self.count:
            self.seen.add(self.count)

    def observe(self, of: Any) -> Any:
        """All of it."""
        return {"of": self.count, "seen": self.seen, "phase": Phase.HIGH if self.count else Phase.LOW}


def driven(adapter: type[Adapter], model: type[Model] = Odd, **options: Any) -> Drive:
    """A suite and a few walks."""
    subject = subject_of(selected(model))
    return drive(subject, of_class(adapter), suite_or_none(subject, MOST_STATES), DriveOptions(seed=1, **options))


def test_a_bound_and_an_action_may_have_any_name() -> None:
    """What exceeds the bound is no difference, whatever the bound is called."""
    found = driven(Counter, walks=5)
    assert (found.answer, found.doubts) == ("no difference", ())
    assert found.ends["beyond bounds"] > 0
    assert make_suite(subject_of(selected(Odd)), 100).beyond == 1


def test_a_method_cannot_stand_for_a_name_of_all_adapters() -> None:
    """An action called `events` is not asked of the list of events, which would be a failure of the implementation."""

    class Methods(Counter):
        do = Adapter.do

    found = driven(Methods, walks=2)
    assert (found.answer, found.coverage.unsupported.total() > 0) == ("inconclusive", True)


def test_an_action_called_observe_cannot_be_driven() -> None:
    """Its steps and observations would be the same event. The contract has one of them."""
    with pytest.raises(UsageError, match="observing has an action 'observe'"):
        driven(Counter, Observing)
    text = "\n".join(page(contract(subject_of(selected(Observing)).system)))
    assert text.count("| `observe` |") == 1


def _circle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("methods", "text"),
    [
        ({"reset": Adapter.reset}, "an adapter needs reset"),
        ({"observe": lambda self, of: {"of": object()}}, "which is no value of Range"),
        ({"observe": lambda self, of: {"of": 10**5000}}, "the answer of the adapter to observe is no JSON"),
        ({"observe": lambda self, of: {"of": _circle()}}, "the answer of the adapter to observe is nested too deeply"),
        ({"observe": lambda self, of: True}, "to observe has in 'state' something else"),
        ({"__init__": lambda self: [][0]}, "cannot be made: IndexError"),
    ],
)
def test_mistakes_of_an_adapter_are_no_difference(methods: dict[str, Any], text: str) -> None:
    """A class without `reset`, with values that are no JSON, or that cannot be made."""
    with pytest.raises(AdapterFailure, match=text):
        driven(type("Wrong", (Counter,), methods))


def test_names_that_the_model_does_not_have_are_errors() -> None:
    """Of an action that need not happen, and of a call in a test."""
    with pytest.raises(UsageError, match="no action 'event'"):
        driven(Counter, without=("event",))
    with pytest.raises(InputError, match="has no action 'event'"):
        assert_no_difference(Odd, Counter, [{"event": "events"}, {"event": "event"}])


def test_a_script_that_the_time_limit_ends_is_not_decided() -> None:
    """The last one, too."""

    class Bounded(Counter):
        def do(self, action: str, args: Any) -> None:
            if action == "events" and self.count == 2:
                raise Refused("enough")
            super().do(action, args)

    found = driven(Bounded, walks=1, steps=10**9, time_limit=0.3)
    assert (found.answer, found.doubts) == ("inconclusive", ("the time limit of 0.3 s was reached",))


class CountingVotes(Adapter):
    """Two-phase commit whose coordinator counts votes instead of voters: a message that arrives again is counted again."""

    def reset(self, parameters: Mapping[str, Any], seed: int) -> None:
        """Everyone works."""
        names = [f"rm{at + 1}" for at in range(parameters["resource_managers"])]
        self.manager, self.voters, self.votes = dict.fromkeys(names, "working"), set[str](), 0
        self.sent, self.decided = set[str](), "undecided"

    def moves(self, is_possible: bool, *, manager: str = "", then: str = "", decided: str = "") -> None:
        """Refuses, or sets a resource manager, or the decision."""
        if not is_possible:
            raise Refused("not now")
        if manager:
            self.manager[manager] = then
        self.decided = decided or self.decided

    def prepare(self, r: str) -> None:
        """Votes."""
        self.moves(self.manager[r] == "working", manager=r, then="prepared")
        self.sent.add(r)

    def refuse(self, r: str) -> None:
        """Aborts alone."""
        self.moves(self.manager[r] == "working", manager=r, then="aborted")

    def hear_prepared(self, r: str) -> None:
        """Counts a vote."""
        self.moves(r in self.sent and self.decided == "undecided")
        self.voters.add(r)
        self.votes += 1

    def decide_commit(self) -> None:
        """Everyone has voted, it seems."""
        self.moves(self.decided == "undecided" and self.votes >= len(self.manager), decided="committed")

    def decide_abort(self) -> None:
        """Aborts."""
        self.moves(self.decided == "undecided", decided="aborted")

    def obey_commit(self, r: str) -> None:
        """Commits."""
        self.moves(self.decided == "committed", manager=r, then="committed")

    def obey_abort(self, r: str) -> None:
        """Aborts."""
        self.moves(self.decided == "aborted", manager=r, then="aborted")

    def observe(self, of: list[str] | None) -> dict[str, Any]:
        """All that the model has."""
        sent = {"commit_sent": self.decided == "committed", "abort_sent": self.decided == "aborted"}
        known = {"heard": sorted(self.voters), "prepared_sent": sorted(self.sent)}
        return {"manager": dict(self.manager), "transaction": self.decided, **known, **sent}


@pytest.mark.parametrize("seed", [*range(1, 6), *(pytest.param(n, marks=pytest.mark.long) for n in range(6, 41))])
def test_what_only_a_repeated_step_shows_is_found(seed: int) -> None:
    """The state of the model stays, that of the implementation does not; walks soon end where nothing changes any more."""
    subject = subject_of(selected("reference.two_phase_commit"))
    found = drive(subject, of_class(CountingVotes), suite_or_none(subject, MOST_STATES), DriveOptions(seed=seed))
    assert found.difference is not None
    assert found.shortest is not None
    assert found.shortest.script.calls[-1].action == "decide_commit"
    assert [call.action for call in found.shortest.script.calls].count("hear_prepared") >= 3
