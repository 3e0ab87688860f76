"""Turns: calls with their answers. One that was taken before from the same single state is not followed again.

What the exchanges, events and counts of repeated turns are is made when somebody asks for them: in long drives of an adapter
in this process nearly all turns are repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from streamproof.base.records import dataclass
from streamproof.conformance.binding import Observation
from streamproof.conformance.event import Event
from streamproof.conformance.tracker import Reached
from streamproof.driving.connection import Answered
from streamproof.driving.drive_coverage import DriveCoverage
from streamproof.driving.following import Following
from streamproof.system.model import State

MOST_TURNS = 100_000
"""Largest number of turns that are remembered."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call, what came back, and the possible states of the model after it (at most a few, with their number)."""

    asked: str
    answer: str
    events: tuple[Event, ...]
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SoleAnswer:
    """An answer without other events, to one call: what is the same in whatever state it is given."""

    answered: Answered
    asked: str
    """The call as text; so is the answer."""
    answer: str
    events: tuple[Event, ...]
    observation: Observation | None
    """What the answer says of the protocol; None: nothing."""
    action: str | None
    """The accepted action, if it is one."""
    refused: str | None
    """The refused action, if it is one."""


@dataclass(slots=True, eq=False)
class Turn:
    """A call and its answer in the only possible state, after which nothing was wrong: the same again has this outcome.

    With an observation after it, which is then its answer, it is one turn.
    """

    answered: Answered
    exchanges: tuple[Exchange, ...]
    events: tuple[Event, ...]
    after: Reached
    state: State | None
    """The only possible state after it, if there is one."""
    then: Turns
    """What is known of that state."""
    action: str | None
    """The accepted action, if it is one."""
    refused: str | None
    """The refused action, if it is one."""
    usual: Turn | None = None
    """The same with an observation after it."""

    def observed(self, seen: Turn) -> Turn:
        """This turn, and the turn of an observation after it."""
        exchanges, events = (*self.exchanges, *seen.exchanges), (*self.events, *seen.events)
        return Turn(seen.answered, exchanges, events, seen.after, seen.state, seen.then, self.action, self.refused)


Turns: TypeAlias = dict[object, Turn]
"""The turns in a state, by the identity of the call (`Asked.key`; None: an observation); of other answers than the first one,
with that of the answer."""
NO_TURNS: Turns = {}
"""Where several states are possible, or events of several processes; nothing is kept in it."""


class TurnMemory:
    """The remembered turns, by the state before."""

    def __init__(self) -> None:
        self._by_state: dict[State, Turns] = {}
        self.sole_answers: dict[tuple[object, int], SoleAnswer] = {}
        """By identity of the call, as in `Turns`, and of the answer."""
        self._count = 0

    def at(self, state: State | None) -> Turns:
        """The turns in a state; None: several states are possible."""
        return NO_TURNS if state is None else self._by_state.setdefault(state, {})

    def keep(self, known: Turns, key: object, turn: Turn) -> None:
        """Keeps a turn with the call of this key among those of its state."""
        if self._count >= MOST_TURNS:
            self.forget()
        self._count += 1
        known[(key, id(turn.answered)) if key in known else key] = turn

    def forget(self) -> None:
        """Forgets all turns."""
        self._by_state, self.sole_answers, self._count = {}, {}, 0


class Tally:
    """Counts what is driven, repeated turns all at once when the coverage is read."""

    def __init__(self, actions: frozenset[str]) -> None:
        self.actions = actions
        self.counts = DriveCoverage()
        """The coverage without the repeated turns."""
        self._repeated: Counter[Turn] = Counter()
        """How often turns were repeated that are not in the coverage yet."""

    @property
    def coverage(self) -> DriveCoverage:
        """What was driven so far."""
        repeated, self._repeated = self._repeated, Counter()
        for turn, times in repeated.items():
            if turn.refused is not None:
                self.counts.refused[turn.refused] += times
            for event in turn.events:
                self.event(event, times)
        return self.counts

    @coverage.setter
    def coverage(self, coverage: DriveCoverage) -> None:
        self.counts = coverage
        self._repeated.clear()

    def event(self, event: Event, times: int = 1) -> None:
        """Counts an event."""
        self.counts.count(event, self.actions, times)

    def turns(self, turns: Sequence[Turn]) -> None:
        """Counts repeated turns."""
        self._repeated.update(turns)


class History:
    """The exchanges and events of one script."""

    def __init__(self, tally: Tally, following: Following) -> None:
        self.tally, self._following = tally, following
        self._exchanges: list[Exchange] = []
        self._before: str | None = None
        """The last accepted action."""
        self.turns: list[Turn] = []
        """The last turns, which are repeated ones."""
        self._counted: list[Turn] = []
        """Those before them that are in the coverage, and not among the exchanges and events yet."""

    @property
    def exchanges(self) -> list[Exchange]:
        """The calls with their answers."""
        self.settle()
        return self._exchanges

    @property
    def following(self) -> Following:
        """The behaviour of the implementation."""
        self.settle()
        return self._following

    @following.setter
    def following(self, following: Following) -> None:
        self._following = following

    def count_turns(self) -> None:
        """Counts the last turns."""
        turns = self.turns[:]
        if turns:
            self.turns.clear()
            self._counted += turns
            self.tally.turns(turns)
            self._follow_each_other([turn.action for turn in turns if turn.action is not None])

    def count(self, events: Sequence[Event]) -> None:
        """Counts events that are no repeated turns."""
        for event in events:
            self.tally.event(event)
        actions = self.tally.actions
        self._follow_each_other([e.event for e in events if not e.refused and e.event in actions])

    def settle(self) -> None:
        """Adds the last turns to the coverage, the exchanges and the events."""
        self.count_turns()
        turns, self._counted = self._counted, []
        if turns:
            self._exchanges += [exchange for turn in turns for exchange in turn.exchanges]
            self._following.repeat([event for turn in turns for event in turn.events])

    def _follow_each_other(self, actions: Sequence[str]) -> None:
        """Counts pairs of accepted actions."""
        if actions:
            counts = self.tally.counts
            counts.pairs.update(pairwise(actions if self._before is None else (self._before, *actions)))
            self._before = actions[-1]
