"""The tracker: follows a log through a machine, with the set of all states consistent with the log so far.

After each event the *belief* is exactly the set of states reachable by a behaviour with these events, and any hidden
actions between them. The log is accepted while the belief is not empty. A small belief is kept as it is, of a larger one
some states that stand for all (`delaying`). Cost is the number of events times the states kept; more of them than the
limit make the verdict `inconclusive`. Trace validation by TLC searches the same product without a belief, one machine
start per trace, and reports little on failure; PObserve runs deterministic monitors. Here a rejection gives the longest
accepted prefix, the states there, and for each possible action of the event the condition that failed (`explaining`).

Several streams are merged as the machine allows, the first ones as far as possible: exact if no event of one process
makes an event of another impossible, as with processes that send messages and never withdraw them. The lines of several
threads in one stream are merged in the same way, within the order that `Observation.follows` leaves open: exact if each
line names the state that it changes. An accepted merge is always a behaviour of the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from typing import Any, TypeAlias

from streamproof.base.records import dataclass
from streamproof.conformance.binding import Observation, StateReader, Stream, Task
from streamproof.conformance.delaying import Delaying, HiddenGroup, TooMany
from streamproof.conformance.event import Event
from streamproof.conformance.explaining import Refusal, explained_refusal, shown_states
from streamproof.conformance.moves import HiddenActions, SystemMoves
from streamproof.conformance.run_verdict import Rejection, Tracked
from streamproof.system import Kind, Property, State

BELIEF_LIMIT = 20_000
EAGER = 16
"""Maximum number of states up to which hidden actions are taken at once."""
EXPLAINED = 1_000
"""Approximate maximum number of states that are counted for an explanation."""


@dataclass(frozen=True, eq=False, slots=True)
class Path:
    """How a state of the belief was reached: the actions taken since the state before."""

    before: Path | None
    taken: tuple[str, ...]

    def counts(self) -> Counter[str]:
        """The number of occurrences of each action on the whole path."""
        total: Counter[str] = Counter()
        at: Path | None = self
        while at is not None:
            total.update(at.taken)
            at = at.before
        return total


START = Path(None, ())
Belief: TypeAlias = dict[State, Path]
"""The states that fit the observations, each with the actions that led to it."""


class _StreamReader:
    """A position in a stream: `first` is the position of the first remaining observation, `early` are later ones that
    have been accepted already."""

    def __init__(self, stream: Stream) -> None:
        self.observations = stream.observations
        self.silent: frozenset[str] = stream.actions if stream.ends else frozenset()
        self.first = 0
        self.early: set[int] = set()

    @property
    def head(self) -> Observation | None:
        """The first remaining observation."""
        return self.observations[self.first] if self.first < len(self.observations) else None

    def candidates(self) -> Iterator[tuple[int, Observation]]:
        """The first observation and later ones that may precede it, with their positions."""
        for at in range(self.first, len(self.observations)):
            observation = self.observations[at]
            free = observation.follows is not None and observation.follows < self.first and at not in self.early
            if at == self.first or free:
                yield at, observation

    def take(self, at: int) -> None:
        """Removes the observation at a position."""
        self.early.add(at)
        while self.first in self.early:
            self.early.remove(self.first)
            self.first += 1


@dataclass(slots=True)
class Tracker:
    """Follows one `Task`. `rank` orders events of different streams, to select the blocked event to blame."""

    task: Task
    limit: int = BELIEF_LIMIT
    rank: Callable[[Event], Any] | None = None
    steps: SystemMoves | None = None
    eager: int = EAGER
    """See `EAGER`; -1 delays all hidden actions, `limit` none."""
    _delaying: Delaying = field(init=False)
    _groups: dict[State, tuple[HiddenGroup, ...]] = field(init=False, default_factory=dict)
    _steps: SystemMoves = field(init=False)
    _hidden: HiddenActions = field(init=False)
    _readings: dict[int, tuple[Any, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._steps = self.steps or SystemMoves(self.task.system)
        self._delaying = Delaying(self._steps, self.limit)

    def run(self) -> Tracked:
        """Follows the whole log. Raises `EvaluationError` for an error of the machine."""
        readers = [_StreamReader(stream) for stream in self.task.streams]
        belief = self.begin(readers)
        events: list[Event] = []
        largest = len(belief)
        while any(r.head is not None for r in readers):
            try:
                belief = self._reduced(belief)
                largest = max(largest, len(belief))
                options = ((r, *candidate) for r in readers for candidate in r.candidates())
                found = next(((*o, after) for o in options if (after := self._accepted(o[2], belief))), None)
            except TooMany:
                because = f"more than {self.limit:,} states are possible"
                because += f" after {events[-1]}" if events else " before the first event"
                return self._outcome(events, largest, belief, exhausted=because)
            if found is None:
                rejection = self._contradiction() or self._refuse(readers, events, belief)
                return self._outcome(events, largest, belief, rejection)
            reader, at, observation, belief = found
            reader.take(at)
            if reader.head is None:
                self._see(readers)
            if observation.reads is not None:
                values = (observation.reads(StateReader(self.task.system, state)) for state in belief)
                self._readings[len(events)] = tuple(dict.fromkeys(values))
            events.append(observation.event)
        belief = self._closure(belief, self.limit if self._invariants else self.eager)
        largest = max(largest, len(belief))
        broken = self._broken(tuple(belief))
        if broken is not None and len(belief) > self.limit:
            because = f"more than {self.limit:,} states are possible at the end"
            return self._outcome(events, largest, belief, exhausted=because)
        if broken is not None:
            states = shown_states(self.task.system, tuple(belief))
            rejection = Rejection(len(events), None, "property", broken, states=len(belief), before=states)
            return self._outcome(events, largest, belief, rejection)
        return self._outcome(events, largest, belief)

    def begin(self, readers: list[_StreamReader] | None = None) -> Belief:
        """The belief before the first event."""
        self._see(readers or [])
        return dict.fromkeys(self._steps.interpreter.initial_states(), START)

    def follow(self, observation: Observation, belief: Belief) -> Belief:
        """The belief after one more observation, empty if it is impossible. Raises `TooMany` and `EvaluationError`."""
        return self._accepted(observation, self._reduced(belief))

    def closed(self, belief: Belief, most: int = EXPLAINED) -> Belief:
        """The belief with what hidden actions reach, as far as it has at most `most` states."""
        return self._closure(belief, most) if self._hidden.instances else belief

    def refusal(self, observation: Observation, belief: Belief, accepted: int) -> Rejection:
        """Why an observation is impossible, after `accepted` events."""
        belief = self._closure(belief, EXPLAINED)
        return explained_refusal(Refusal(self._steps, self.task, observation, tuple(belief), accepted))

    def _outcome(
        self,
        events: list[Event],
        largest: int,
        belief: Belief,
        rejection: Rejection | None = None,
        exhausted: str | None = None,
    ) -> Tracked:
        counts = next(iter(belief.values()), START).counts()
        return Tracked(tuple(events), counts, largest, rejection, exhausted, tuple(belief), self._readings)

    def _see(self, readers: list[_StreamReader]) -> None:
        """Determines the actions that no stream would record from here on."""
        names = self.task.hidden.union(*(r.silent for r in readers if r.head is None))
        self._hidden = self._steps.hidden(names)

    def _reduced(self, belief: Belief) -> Belief:
        """The belief with all that hidden actions reach if that is little, else without what they reach from the rest of
        it. Sets `_groups`, of each state, in the second case. Raises `TooMany`."""
        self._groups = {}
        eager = min(self.eager, self.limit)
        closed = self._closure(belief, eager)
        if len(closed) <= eager:
            return closed
        kept: Belief = {}
        for state, path in belief.items():
            if not any(self._delaying.reaches(one, groups, state) for one, groups in self._groups.items()):
                kept[state] = path
                self._groups[state] = self._delaying.groups(self._hidden.instances, state)
            if len(kept) > self.limit:
                raise TooMany
        return kept

    def _accepted(self, observation: Observation, belief: Belief) -> Belief:
        after: Belief = {}
        for state, path in belief.items():
            if state in self._groups:
                found: Iterable[tuple[State, tuple[str, ...]]]
                found = self._delaying.after(observation, state, self._groups[state]).items()
            else:
                found = self._steps.explained(observation, state)
            for end, taken in found:
                after.setdefault(end, Path(path, taken))
        return after

    def _closure(self, states: Belief, most: int) -> Belief:
        """The states, and all states reachable from them by hidden actions; no longer complete beyond `most`."""
        queue = list(states)
        known = dict(states)
        while queue and len(known) <= most:
            state = queue.pop()
            for action, after in self._steps.by_hidden(self._hidden, state):
                if after not in known:
                    known[after] = Path(known[state], (action,))
                    queue.append(after)
        return known

    def _contradiction(self) -> Rejection | None:
        """The first event that no behaviour explains, even if all other processes had recorded nothing.

        If processes disagree, neither can certainly be blamed; a process that contradicts itself can.
        """
        streams = self.task.streams
        found: list[Rejection] = []
        for stream in streams if len(streams) > 1 else ():
            others = frozenset[str]().union(*(s.actions for s in streams if s is not stream)) - stream.actions
            alone = replace(self.task, streams=(stream,), hidden=self.task.hidden | others)
            rejection = Tracker(alone, self.limit, self.rank, self._steps, self.eager).run().rejection
            if rejection is not None and rejection.event is not None:
                found.append(rejection)
        rank = self.rank
        return min(found, key=lambda r: rank(r.event) if rank and r.event else 0, default=None)

    def _refuse(self, readers: list[_StreamReader], events: list[Event], belief: Belief) -> Rejection:
        blocked = [r.head for r in readers if r.head is not None]
        rank = self.rank
        first = blocked[0] if rank is None else min(blocked, key=lambda o: rank(o.event))
        return self.refusal(first, belief, len(events))

    @property
    def _invariants(self) -> list[Property]:
        return [p for p in self.task.system.properties if p.kind is Kind.INVARIANT]

    def _broken(self, states: tuple[State, ...]) -> str | None:
        """An invariant that no state consistent with the log satisfies."""
        for prop in self._invariants:
            if not any(self._steps.interpreter.holds(prop, s) for s in states):
                return f"the run ends in a state that breaks the invariant {prop.name}"
        return None
