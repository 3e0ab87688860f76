"""Calls that overlap: every order that their spans allow is tried, and no other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from streamproof import Model, Queue, Range, State, action, require
from streamproof.conformance.binding import Constraint, Move, Observation, Span, Task
from streamproof.conformance.event import Event
from streamproof.conformance.overlapping import OverlapTracker
from streamproof.language.free.grounding import Rules


class Cell(Model):
    """A number that is set, and a wire on which numbers travel."""

    name = "cell"

    def setup(self) -> None:
        """Numbers have no bound that matters."""
        self.number = range(1 << 20)

    def state(self) -> State:
        """Zero, and nothing on the wire."""
        return State(value=Range(0, 1 << 20), wire=Queue(Range(0, 1 << 20), capacity=1 << 20))

    @action(n="number")
    def put(self, s, n):  # type: ignore[no-untyped-def]
        """Sets the number."""
        s.value = n

    @action(n="number")
    def send(self, s, n):  # type: ignore[no-untyped-def]
        """A number goes out."""
        s.wire.push(n)

    @action
    def take(self, s):  # type: ignore[no-untyped-def]
        """The next number arrives and is set."""
        require(len(s.wire) > 0)
        s.value = s.wire.pop()


RULES = Rules(Cell())


@dataclass(frozen=True)
class Process:
    """Makes the spans of one account."""

    name: str

    def span(self, opens: int, closes: int, *moves: Move, reads: int | None = None, waits: bool = False) -> Span:
        """What took place between two moments; `reads` is the number seen afterwards."""
        event = Event("t", self.name, closes, "call")
        seen = Constraint(lambda look: f"{look('value')} is there", lambda look: look("value") == reads)
        message = Constraint("nothing was sent", lambda look: bool(look("wire")))
        observation = Observation(
            event, (tuple(moves),), () if reads is None else (seen,), requires_before=message if waits else None
        )
        return Span(observation, opens, closes)


A, B = Process("a"), Process("b")


def follow(*accounts: tuple[Span, ...], limit: int = 1000) -> OverlapTracker:
    """A tracker of these accounts."""
    return OverlapTracker(Task("t", RULES.system, spans=accounts, grounding=RULES.instances), limit=limit)


def put(n: int) -> Move:
    """Setting a number."""
    return Move("put", {"n": n})


def test_calls_that_do_not_overlap_keep_their_order() -> None:
    """What was set last is what is read."""
    calls = (A.span(0, 1, put(1)), A.span(2, 3, put(2)), A.span(4, 5, reads=2))
    assert follow(calls).run().accepted
    refused = follow((*calls[:2], A.span(4, 5, reads=1))).run()
    assert refused.rejection is not None
    assert refused.rejection.message == "2 is there"
    assert refused.rejection.event == calls[2].observation.event
    assert refused.matched == 2


@pytest.mark.parametrize(("seen", "accepted"), [(1, True), (2, True), (3, False)])
def test_calls_that_overlap_may_have_come_in_either_order(seen: int, accepted: bool) -> None:
    """Each of two calls at the same time may have been the last; a third number was never there."""
    calls = (A.span(0, 2, put(1)), A.span(1, 3, put(2)), A.span(4, 5, reads=seen))
    assert follow(calls).run().accepted is accepted


def test_what_ends_later_may_have_come_long_before() -> None:
    """A long call took place at any of its moments: before all the others, between them, or at the end."""
    for seen in (9, 1, 2):
        calls = (A.span(1, 2, put(1)), A.span(3, 4, put(2)), A.span(5, 6, reads=seen), A.span(0, 8, put(9)))
        assert follow(calls).run().accepted is (seen != 1)


def test_one_account_waits_for_another() -> None:
    """A message is taken after it was sent, whichever process is looked at first."""
    sender = (A.span(0, 1, Move("send", {"n": 7})),)
    receiver = (B.span(0, 1, Move("take"), reads=7, waits=True),)
    assert follow(receiver, sender).run().accepted
    assert follow(sender, receiver).run().accepted


def test_who_waits_in_vain_is_blamed_only_if_nobody_is_wrong() -> None:
    """A process that contradicts itself is named, not the one that waits for its message."""
    wrong = A.span(0, 1, put(1), reads=2)
    sender = (wrong, A.span(2, 3, Move("send", {"n": 7})))
    receiver = (B.span(0, 1, Move("take"), reads=7, waits=True),)
    refused = follow(receiver, sender).run()
    assert refused.rejection is not None
    assert refused.rejection.event == wrong.observation.event
    alone = follow(receiver, ()).run()
    assert alone.rejection is not None
    assert alone.rejection.message == "nothing was sent"


@pytest.mark.parametrize(("since", "rests", "exhausted"), [(4, False, True), (4, True, False), (5, False, False)])
def test_the_end_of_a_record_excuses_what_it_may_have_cut_off(since: int, rests: bool, exhausted: bool) -> None:
    """What a call reads may rest on one that had not returned when the record ended; not what came before such calls, nor
    what rests on calls that have returned."""
    read = replace(A.span(2, 5, reads=2), rests_on_returned=rests)
    task = Task("t", RULES.system, spans=((A.span(0, 1, put(1)), read),), ends={0: since}, grounding=RULES.instances)
    tracked = OverlapTracker(task).run()
    assert not tracked.accepted
    assert (tracked.exhausted is not None) is exhausted
    assert (tracked.rejection is None) is exhausted


def test_too_many_orders_are_no_answer() -> None:
    """A search that meets its limit says so."""
    calls = tuple(A.span(0, 100 + n, put(n)) for n in range(12))
    tracked = follow((*calls, A.span(200, 201, reads=99)), limit=50).run()
    assert not tracked.accepted
    assert tracked.rejection is None
    assert tracked.exhausted == "more than 50 orders of overlapping calls are possible"
