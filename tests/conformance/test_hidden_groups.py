"""Groups of hidden actions on machines of four cells: which actions belong together, what they reach, what is too much."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from streamproof import Array, Model, Range, State, action, require
from streamproof.conformance.binding import Move, Observation, StateReader, Stream, Task
from streamproof.conformance.delaying import Delaying, TooMany
from streamproof.conformance.event import Event
from streamproof.conformance.moves import SystemMoves
from streamproof.conformance.tracker import Tracker
from streamproof.system import Interpreter

START = ((0, 0, 0, 0),)


class Cells(Model):
    """Cell 0 counts alone; cell 2 follows cell 1, which must come first."""

    check_deadlock = False

    def state(self) -> State:
        """All zero."""
        return State(cell=Array(4, Range(0, 2)))

    @action
    def count(self, s: Any) -> None:
        """Cell 0 counts to two."""
        require(s.cell[0] < 2)
        s.cell[0] += 1

    @action
    def lead(self, s: Any) -> None:
        """Cell 1 becomes 1."""
        require(s.cell[1] == 0)
        s.cell[1] = 1

    @action
    def follow(self, s: Any) -> None:
        """Cell 2 becomes what cell 1 is."""
        require(s.cell[2] < s.cell[1])
        s.cell[2] = s.cell[1]

    @action
    def show(self, s: Any) -> None:
        """Cell 3 becomes cell 0."""
        require(s.cell[0] > 0)
        s.cell[3] = s.cell[0]


class Dependent(Cells, variant="dependent"):
    """Cell 1 becomes what cell 0 is, at once."""

    @action
    def lead(self, s: Any) -> None:
        """Cell 1 becomes 1 or 2."""
        require(s.cell[1] == 0)
        s.cell[1] = 1 + s.cell[0] // 2


def groups(model: type[Model], hidden: tuple[str, ...], limit: int = 100) -> Any:
    """The groups of these actions in the first state, as cells touched, cells written and local states."""
    moves = SystemMoves(model.system())
    delaying = Delaying(moves, limit)
    found = delaying.groups(moves.hidden(frozenset(hidden)).instances, START)
    return delaying, found, {(g.touched, g.written, len(g.variants)) for g in found}


def test_actions_that_affect_each_other_are_one_group() -> None:
    """An action that waits for another joins its group; one that reads what another writes does; the rest stay apart."""
    _, _, found = groups(Cells, ("count", "lead", "follow"))
    assert found == {(frozenset({0}), frozenset({0}), 2), (frozenset({1, 2}), frozenset({1, 2}), 2)}
    _, _, found = groups(Dependent, ("count", "lead"))
    assert found == {(frozenset({0, 1}), frozenset({0, 1}), 6)}
    _, _, found = groups(Cells, ("lead", "show"))
    assert found == {(frozenset({1}), frozenset({1}), 1)}


def test_groups_reach_all_combinations_and_nothing_else() -> None:
    """Of all 81 states, the groups reach those that the interpreter reaches by the hidden actions."""
    hidden = ("count", "lead", "follow")
    delaying, found, _ = groups(Cells, hidden)
    interpreter, reached, todo = Interpreter(Cells.system()), {START}, [START]
    while todo:
        for step in interpreter.steps(todo.pop()):
            if step.instance.action in hidden and step.state not in reached:
                reached.add(step.state)
                todo.append(step.state)
    assert len(reached) == 9
    for cells in product(range(3), repeat=4):
        assert delaying.reaches(START, found, (cells,)) is ((cells,) in reached)


def test_a_group_with_more_states_than_the_limit() -> None:
    """Three states are not more than one and two others; with a lower limit they are."""
    assert groups(Cells, ("count",), limit=2)[2] == {(frozenset({0}), frozenset({0}), 2)}
    with pytest.raises(TooMany):
        groups(Cells, ("count",), limit=1)


@pytest.mark.parametrize("eager", [-1, 0, 16])
def test_observations_of_hidden_counts(eager: int) -> None:
    """`show` needs a count; what it shows is one of the counts that were possible, and the other group stays open."""

    def shown(look: StateReader) -> Any:
        return look("cell", 3)

    one = Observation(Event("t", "p", 0, "show"), ((Move("show"),),), reads=shown)
    two = Observation(Event("t", "p", 1, "lead"), ((Move("lead"),),))
    hidden = frozenset({"count", "follow"})
    tracked = Tracker(Task("t", Cells.system(), (Stream((one, two)),), hidden), eager=eager).run()
    assert (tracked.accepted, tracked.matched, set(tracked.readings[0])) == (True, 2, {1, 2})
    twice = Tracker(Task("t", Cells.system(), (Stream((two, two)),), hidden), eager=eager).run()
    assert (twice.accepted, twice.matched) == (False, 1)


@pytest.mark.parametrize(("follows", "accepted"), [(0, True), (1, False), (None, False)])
def test_a_line_may_be_overtaken_by_those_that_it_need_not_follow(follows: int | None, accepted: bool) -> None:
    """The third line happened before the second one, which only a line that need follow just the first one allows."""
    first, second, third = (
        Observation(Event("t", "p", at, name), ((Move(name),),)) for at, name in enumerate(("count", "follow", "lead"))
    )
    third = Observation(third.event, third.alternatives, follows=follows)
    tracked = Tracker(Task("t", Cells.system(), (Stream((first, second, third)),), frozenset())).run()
    assert tracked.accepted is accepted
    assert [event.event for event in tracked.events] == (["count", "lead", "follow"] if accepted else ["count"])


def seen(at: int, *names: str, process: str = "p") -> Observation:
    """An event that is one of these actions."""
    return Observation(Event("t", process, at, names[0]), tuple((Move(name),) for name in names))


def test_too_many_states_are_counted_after_the_last_event() -> None:
    """The reason names the event after which more states are possible than the limit allows."""
    log = (seen(0, "lead"), seen(1, "count", "follow"), seen(2, "count", "follow"), seen(3, "count"))
    tracked = Tracker(Task("t", Cells.system(), (Stream(log),), frozenset()), limit=1).run()
    assert tracked.exhausted == f"more than 1 states are possible after {log[1].event}"


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_two_processes_that_contradict_themselves_the_earlier_is_blamed(first: str) -> None:
    """Each takes its own actions, and logs one that its others had to precede; the rank of the events decides."""
    one = Stream((seen(0, "follow", process="a"),), frozenset({"follow", "lead"}))
    other = Stream((seen(0, "show", process="b"),), frozenset({"show", "count"}))
    task = Task("t", Cells.system(), (one, other), frozenset())
    rejection = Tracker(task, rank=lambda event: event.process != first).run().rejection
    assert rejection is not None
    assert rejection.event is not None
    assert rejection.event.process == first
