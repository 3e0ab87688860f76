"""The tracker on small machines: what it accepts, where it stops, what it says then."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streamproof import Array, Model, Range, State, action, invariant, require
from streamproof.conformance.binding import Constraint, Move, Observation, StateReader, Stream, Task
from streamproof.conformance.event import Event
from streamproof.conformance.tracker import Tracked, Tracker


class Lamps(Model):
    """Two lamps with a switch each; a fuse may blow unseen, and then nothing can be lit."""

    def state(self) -> State:
        """Both dark, the fuse sound."""
        return State(lit=Array(("a", "b"), Range(0, 1)), blown=Range(0, 1))

    @action(lamp=("a", "b"))
    def light(self, s, lamp):  # type: ignore[no-untyped-def]
        """A lamp that is dark is lit."""
        require(s.blown == 0)
        require(s.lit[lamp] == 0)
        s.lit[lamp] = 1

    @action(lamp=("a", "b"))
    def douse(self, s, lamp):  # type: ignore[no-untyped-def]
        """A lamp that is lit is put out."""
        require(s.lit[lamp] == 1)
        s.lit[lamp] = 0

    @action
    def blow(self, s):  # type: ignore[no-untyped-def]
        """The fuse blows; it gets dark."""
        require(s.blown == 0)
        s.blown = 1
        s.lit["a"] = 0
        s.lit["b"] = 0

    @action
    def mend(self, s):  # type: ignore[no-untyped-def]
        """A blown fuse is replaced."""
        require(s.blown == 1)
        s.blown = 0


class Ends(Lamps, variant="ends"):
    """The same, where both lamps lit is wrong."""

    @invariant
    def not_both(self, s):  # type: ignore[no-untyped-def]
        """At most one lamp is lit."""
        return s.lit["a"] + s.lit["b"] < 2


def event(seq: int, name: str = "e", process: str = "p") -> Event:
    """The seq-th event of a process."""
    return Event("t", process, seq, name)


def seen(*alternatives: Sequence[Move], seq: int = 0, process: str = "p", **rest: object) -> Observation:
    """An observation with these alternatives."""
    return Observation(event(seq, process=process), tuple(tuple(w) for w in alternatives) or ((),), **rest)  # type: ignore[arg-type]


def light(lamp: str, **rest: object) -> Move:
    """One lamp is lit."""
    return Move("light", {"lamp": lamp}, **rest)  # type: ignore[arg-type]


def follow(*observations: Observation, hidden: Sequence[str] = (), limit: int = 100) -> Tracked:
    """Follows observations through the lamps."""
    return Tracker(Task("t", Lamps.system(), (Stream(observations),), frozenset(hidden)), limit).run()


def test_a_log_of_enabled_actions_is_accepted() -> None:
    """Each event is matched, and the actions along the way are counted."""
    tracked = follow(seen([light("a")]), seen([Move("douse", {"lamp": "a"})], seq=1), seen([light("a")], seq=2))
    assert (tracked.accepted, tracked.matched, dict(tracked.actions)) == (True, 3, {"light": 2, "douse": 1})


def test_the_first_event_that_nothing_explains_is_rejected() -> None:
    """A lamp that is lit cannot be lit again; what was accepted before is counted, the condition is quoted."""
    tracked = follow(seen([light("a")]), seen([light("b")], seq=1), seen([light("a")], seq=2))
    rejection = tracked.rejection
    assert rejection is not None
    assert (tracked.matched, rejection.index, rejection.kind, rejection.event) == (2, 2, "action", event(2))
    assert [(c.action, c.because) for c in rejection.candidates] == [
        ("light(lamp=a)", "s.lit[lamp] == 0   because  s.lit[a] = 1")
    ]


def test_hidden_actions_happen_wherever_they_must() -> None:
    """A lamp is lit twice in a row: it went out unseen in between, which takes a blown and mended fuse."""
    again = (seen([light("a")]), seen([light("a")], seq=1))
    assert follow(*again, hidden=["blow", "mend"]).actions == {"light": 2, "blow": 1, "mend": 1}
    assert follow(*again, hidden=["blow"]).rejection is not None


def test_the_belief_holds_every_state_that_the_log_allows() -> None:
    """After a lamp was lit the fuse may have blown or not, and may have been mended: three states."""
    tracked = follow(seen([light("a")]), hidden=["blow", "mend"])
    assert {(state[0], state[1]) for state in tracked.final} == {((1, 0), 0), ((0, 0), 1), ((0, 0), 0)}


def test_alternative_ways_are_all_followed() -> None:
    """An event that is one lamp or the other leaves both possible until the next event decides."""
    either = seen([light("a")], [light("b")])
    assert len(follow(either).final) == 2
    assert follow(either, seen([Move("douse", {"lamp": "b"})], seq=1)).final == (((0, 0), 0),)


def test_arguments_left_open_match_any_instance() -> None:
    """A move without arguments stands for either lamp."""
    assert {state[0] for state in follow(seen([Move("light")])).final} == {(1, 0), (0, 1)}


def test_an_optional_move_is_skipped_where_it_is_not_enabled() -> None:
    """Mending a sound fuse is left out; a blown one is mended."""
    way = [Move("mend", optional=True), light("a")]
    assert follow(seen(way)).actions == {"light": 1}
    assert follow(seen([Move("blow")]), seen(way, seq=1)).actions == {"blow": 1, "mend": 1, "light": 1}


def test_demands_are_held_against_the_states_before_and_after() -> None:
    """Only the lamp that the event saw dark before and lit after can be meant."""
    before = Constraint("a must be dark", lambda look: look("lit", "a") == 0)
    demand = Constraint("b must be lit", lambda look: look("lit", "b") == 1)
    either = [light("a")], [light("b")]
    assert follow(seen(*either, constraints=(demand,), before=(before,))).final == (((0, 1), 0),)
    rejection = follow(seen([light("a")]), seen([light("b")], seq=1, before=(before,))).rejection
    assert rejection is not None
    assert (rejection.kind, rejection.message) == ("state", "a must be dark")


def test_a_demand_speaks_of_the_state_and_says_what_would_have_done() -> None:
    """Text and replacement are made from the state in which the demand fails."""
    count = Constraint(
        lambda look: f"{sum(look('lit'))} lamps are lit, not 2",
        lambda look: sum(look("lit")) == 2,
        lambda look: f"{sum(look('lit'))} lamps",
    )
    rejection = follow(seen([light("a")], constraints=(count,))).rejection
    assert rejection is not None
    assert (rejection.kind, rejection.message, rejection.nearest) == ("state", "1 lamps are lit, not 2", "1 lamps")


def test_an_impossible_event_is_a_contradiction() -> None:
    """The binding's own reason is the message; what the machine could do is still said."""
    rejection = follow(seen(impossible="it says so twice")).rejection
    assert rejection is not None
    assert (rejection.kind, rejection.message) == ("contradiction", "it says so twice")
    assert rejection.expected == ("light(lamp=a)", "light(lamp=b)", "blow()")


def test_a_move_that_the_machine_does_not_have() -> None:
    """The candidate says that there is no such action."""
    rejection = follow(seen([Move("explode")])).rejection
    assert rejection is not None
    assert [(c.action, c.because) for c in rejection.candidates] == [("explode()", "the machine has no such action")]


def test_a_move_with_an_unknown_argument() -> None:
    """The candidate names the parameter and its values."""
    rejection = follow(seen([Move("light", {"lamp": "z"})])).rejection
    assert rejection is not None
    because = "the machine has no such instance: lamp is z, its values are a, b"
    assert [(c.action, c.because) for c in rejection.candidates] == [("light(lamp=z)", because)]


def test_too_many_possible_states_are_no_verdict() -> None:
    """Past the limit the log is neither accepted nor rejected, whatever follows."""
    tracked = follow(seen([light("a")]), seen([light("a")], seq=1), hidden=["blow", "mend"], limit=2)
    assert (tracked.accepted, tracked.rejection) == (False, None)
    assert tracked.exhausted == "more than 2 states are possible after p#0 e()"


def test_a_run_that_ends_in_a_bad_state_is_rejected() -> None:
    """The log fits the machine, but every state that it can end in breaks an invariant."""
    both = (seen([light("a")]), seen([light("b")], seq=1))
    rejection = Tracker(Task("t", Ends.system(variant="ends"), (Stream(both),))).run().rejection
    assert rejection is not None
    assert (rejection.kind, rejection.event, rejection.index) == ("property", None, 2)
    assert rejection.message == "the run ends in a state that breaks the invariant not_both"
    assert Tracker(Task("t", Ends.system(variant="ends"), (Stream(both),), frozenset({"blow"}))).run().accepted


def test_states_after_an_accepted_event_are_read() -> None:
    """In all of them, by position of the event, each value once; nothing is read after an event that was rejected."""

    def lit(look: StateReader) -> tuple[int, ...]:
        found: tuple[int, ...] = look("lit")
        return found

    tracked = follow(
        seen([light("a")], [light("b")], reads=lit),
        seen([], seq=1),
        seen([], seq=2, reads=lambda look: sum(lit(look))),
        seen([Move("mend")], seq=3, reads=lit),
    )
    assert tracked.readings == {0: ((1, 0), (0, 1)), 2: (1,)}


# --- several processes


def streams(first: Sequence[Observation], second: Sequence[Observation], ends: bool = False) -> Tracked:
    """Follows two processes: one lights and douses, the other sees to the fuse."""
    lamps = Stream(first, frozenset({"light", "douse"}))
    fuse = Stream(second, frozenset({"blow", "mend"}), ends)
    rank = {(o.event.process, o.event.seq): at for at, o in enumerate([*first, *second])}
    task = Task("t", Lamps.system(), streams=(lamps, fuse))
    return Tracker(task, rank=lambda e: rank[e.process, e.seq]).run()


def test_processes_are_merged_as_the_machine_allows() -> None:
    """The fuse blows and is mended between two lightings, though its log stands behind the other."""
    tracked = streams(
        [seen([light("a")]), seen([light("a")], seq=1)],
        [seen([Move("blow")], process="q"), seen([Move("mend")], seq=1, process="q")],
    )
    assert [(e.process, e.seq) for e in tracked.events] == [("p", 0), ("q", 0), ("q", 1), ("p", 1)]


def test_where_processes_disagree_the_earlier_event_is_blamed() -> None:
    """Neither log is wrong by itself: the first line that cannot be placed is named."""
    tracked = streams([seen([light("a")]), seen([light("a")], seq=1)], [seen([Move("mend")], seq=0, process="q")])
    assert tracked.rejection is not None
    assert tracked.rejection.event == event(0, process="q")


def test_a_process_that_contradicts_itself_is_blamed_first() -> None:
    """Dousing twice is wrong whatever the fuse does, so the fuse's own trouble is not what is reported."""
    douse = Move("douse", {"lamp": "a"})
    tracked = streams(
        [seen([light("a")]), seen([douse], seq=1), seen([douse], seq=2)], [seen([Move("mend")], seq=0, process="q")]
    )
    assert tracked.rejection is not None
    assert tracked.rejection.event == event(2)


@pytest.mark.parametrize(("ends", "accepted"), [(True, True), (False, False)])
def test_a_log_that_ends_early_leaves_its_process_free(ends: bool, accepted: bool) -> None:
    """The fuse must have blown and been mended; its log may have ended before, or says that it did not happen."""
    assert streams([seen([light("a")]), seen([light("a")], seq=1)], [], ends).accepted is accepted
