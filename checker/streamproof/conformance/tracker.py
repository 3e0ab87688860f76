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

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, TypeAlias

from streamproof.base.records import dataclass
from streamproof.conformance.belief import START, AcceptedRun, Belief, BeliefStep, HiddenGroup, Link, Path, Taken
from streamproof.conformance.binding import BY_VALUE, Observation, StateReader, Stream, Task, meaning
from streamproof.conformance.delaying import Delaying, TooMany
from streamproof.conformance.event import Event
from streamproof.conformance.explaining import Refusal, explained_refusal, shown_states
from streamproof.conformance.moves import HiddenActions, SystemMoves
from streamproof.conformance.run_verdict import Rejection, Tracked
from streamproof.system import Kind, Property, State

BELIEF_LIMIT = 20_000
EAGER = 16
"""Maximum number of states up to which hidden actions are taken at once."""
LONGEST_ALIKE = 64
"""Maximum number of observations up to which the outcome of a whole log is kept for equal ones."""
EXPLAINED = 1_000
"""Approximate maximum number of states that are counted for an explanation."""
Reached: TypeAlias = dict[State, Path]
"""The states that fit the observations, each with the actions that led to it."""


class _StreamReader:
    """A position in a stream: `first` is the position of the first remaining observation, `early` are later ones that
    have been accepted already."""

    def __init__(self, stream: Stream, number: int) -> None:
        self.number = number
        self.observations = stream.observations
        self.silent: frozenset[str] = stream.actions if stream.ends else frozenset()
        self.first = 0
        self.early: set[int] = set()
        self.last = max((at for at, o in enumerate(stream.observations) if o.follows is not None), default=-1)
        """The last observation that may come before others."""

    @property
    def head(self) -> Observation | None:
        """The first remaining observation."""
        return self.observations[self.first] if self.first < len(self.observations) else None

    def candidates(self) -> Iterator[tuple[int, Observation]]:
        """The first observation and later ones that may precede it, with their positions."""
        if self.first < len(self.observations):
            yield self.first, self.observations[self.first]
        for at in range(self.first + 1, self.last + 1):
            observation = self.observations[at]
            if observation.follows is not None and observation.follows < self.first and at not in self.early:
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
    _steps: SystemMoves = field(init=False)
    _hidden: HiddenActions = field(init=False)
    _kind: Hashable = field(init=False)
    """What a belief's steps depend on beside its states."""
    _readings: dict[int, tuple[Any, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._steps = self.steps or SystemMoves(self.task.system)
        self._delaying = Delaying(self._steps, self.limit)

    def run(self) -> Tracked:
        """Follows the whole log, unless an equal one has been accepted. Raises `EvaluationError` for an error of the
        machine."""
        beliefs = self._steps.beliefs
        key = self._alike() if beliefs.recurring else None
        known = None if key is None else beliefs.accepted.get(key)
        if known is not None:
            streams = [stream.observations for stream in self.task.streams]
            return replace(known.outcome, events=tuple(streams[number][at].event for number, at in known.order))
        order: list[tuple[int, int]] = []
        outcome = self._followed(order)
        if key is not None and outcome.accepted:
            beliefs.accept(key, AcceptedRun(replace(outcome, events=()), tuple(order)))
        return outcome

    def _alike(self) -> Hashable:
        """What decides the outcome; None for a long log, or if something else decides it, too."""
        streams = self.task.streams
        if sum(len(stream.observations) for stream in streams) > LONGEST_ALIKE:
            return None
        found: list[Hashable] = [self.task.hidden, self.limit, self.eager]
        for stream in streams:
            for o in stream.observations:
                if o.like is None or o.like is BY_VALUE or o.reads is not None or o.impossible is not None:
                    return None
            found += [stream.actions, stream.ends, *((o.like, o.follows) for o in stream.observations)]
        return tuple(found)

    def _followed(self, order: list[tuple[int, int]]) -> Tracked:
        """The outcome; `order` receives the accepted observations by stream and position."""
        readers = [_StreamReader(stream, number) for number, stream in enumerate(self.task.streams)]
        paths = [*self.begin(readers).values()]
        belief = self._kept(self._steps.interpreter.initial_states())
        events: list[Event] = []
        largest = len(belief.states)
        waiting = [r for r in readers if r.head is not None]
        while waiting:
            try:
                options = ((r, *candidate) for r in waiting for candidate in r.candidates())
                found = next(((*o, step) for o in options if (step := self._step(belief, o[2])) is not None), None)
            except TooMany:
                because = f"more than {self.limit:,} states are possible"
                because += f" after {events[-1]}" if events else " before the first event"
                reached, size = self._open(belief, paths)
                return self._outcome(events, max(largest, size), reached, exhausted=because)
            if found is None:
                reached = _reached(self._reduced(belief), paths)
                rejection = self._contradiction() or self._refuse(readers, events, reached)
                return self._outcome(events, max(largest, len(reached)), reached, rejection)
            reader, at, observation, step = found
            largest = max(largest, step.size)
            belief, paths = step.after, step.paths(paths)
            order.append((reader.number, at))
            reader.take(at)
            if reader.first >= len(reader.observations):
                self._see(readers)
                waiting = [r for r in readers if r.head is not None]
                belief = self._kept(belief.states)
            if observation.reads is not None:
                values = (observation.reads(StateReader(self.task.system, state)) for state in belief.states)
                self._readings[len(events)] = tuple(dict.fromkeys(values))
            events.append(observation.event)
        links = self._closure(_links(belief), self.limit if self._invariants else self.eager)
        reached = _reached(links, paths)
        largest = max(largest, len(reached))
        broken = self._broken(tuple(reached))
        if broken is not None and len(reached) > self.limit:
            because = f"more than {self.limit:,} states are possible at the end"
            return self._outcome(events, largest, reached, exhausted=because)
        if broken is not None:
            states = shown_states(self.task.system, tuple(reached))
            rejection = Rejection(len(events), None, "property", broken, states=len(reached), before=states)
            return self._outcome(events, largest, reached, rejection)
        return self._outcome(events, largest, reached)

    def begin(self, readers: list[_StreamReader] | None = None) -> Reached:
        """The states before the first event."""
        self._see(readers or [])
        return dict.fromkeys(self._steps.interpreter.initial_states(), START)

    def follow(self, observation: Observation, reached: Reached) -> Reached:
        """The states after one more observation, none if it is impossible. Raises `TooMany` and `EvaluationError`."""
        step = self._step(self._kept(reached), observation)
        return {} if step is None else dict(zip(step.after.states, step.paths([*reached.values()]), strict=True))

    def closed(self, reached: Reached, most: int = EXPLAINED) -> Reached:
        """The states with what hidden actions reach, as far as there are at most `most`."""
        if not self._hidden.instances:
            return reached
        return _reached(self._closure(_links(Belief(tuple(reached))), most), [*reached.values()])

    def refusal(self, observation: Observation, reached: Reached, accepted: int) -> Rejection:
        """Why an observation is impossible, after `accepted` events."""
        states = tuple(self._closure(_links(Belief(tuple(reached))), EXPLAINED))
        return explained_refusal(Refusal(self._steps, self.task, observation, states, accepted))

    def _outcome(
        self,
        events: list[Event],
        largest: int,
        reached: Reached,
        rejection: Rejection | None = None,
        exhausted: str | None = None,
    ) -> Tracked:
        counts = next(iter(reached.values()), START).counts()
        return Tracked(tuple(events), counts, largest, rejection, exhausted, tuple(reached), self._readings)

    def _see(self, readers: list[_StreamReader]) -> None:
        """Determines the actions that no stream would record from here on."""
        names = self.task.hidden.union(*(r.silent for r in readers if r.head is None))
        self._hidden = self._steps.hidden(names)
        self._kind = names, self.limit, self.eager

    def _kept(self, states: Iterable[State]) -> Belief:
        return self._steps.beliefs.get(self._kind, states)

    def _open(self, belief: Belief, paths: list[Path]) -> tuple[Reached, int]:
        """The states before an observation that leads to too many, and the number of those that were followed."""
        try:
            reached = _reached(self._reduced(belief), paths)
        except TooMany:
            return dict(zip(belief.states, paths, strict=True)), 0
        return reached, len(reached)

    def _step(self, belief: Belief, observation: Observation) -> BeliefStep | None:
        """The step by an observation; None if it is impossible. Raises `TooMany` and `EvaluationError`."""
        beliefs = self._steps.beliefs
        if not beliefs.recurring or observation.reads is not None or observation.impossible is not None:
            return self._computed(belief, observation)
        like = meaning(observation)
        if like is None:
            return self._computed(belief, observation)
        if like in belief.steps:
            beliefs.count(False)
            return belief.steps[like]
        step = self._computed(belief, observation)
        beliefs.count(True)
        belief.steps[like] = step
        return step

    def _computed(self, belief: Belief, observation: Observation) -> BeliefStep | None:
        closed, groups = self._reduced(belief), belief.groups
        after: dict[State, Link] = {}
        # A state is large, and its hash is not kept: it is looked up as seldom as possible.
        for state, (at, before) in closed.items():
            found: Iterable[tuple[State, Taken]]
            if groups and state in groups:
                found = self._delaying.after(observation, state, groups[state]).items()
            else:
                found = self._steps.explained(observation, state)
            for end, taken in found:
                after.setdefault(end, (at, before + taken))
        if not after:
            return None
        return BeliefStep(self._steps.beliefs.get(self._kind, after), tuple(after.values()), len(closed))

    def _reduced(self, belief: Belief) -> Mapping[State, Link]:
        """The belief with all that hidden actions reach if that is little, else without what they reach from the rest of
        it, and with their groups in each state. Raises `TooMany`."""
        if belief.closed is not None:
            return belief.closed
        eager = min(self.eager, self.limit)
        links = _links(belief)
        closed = self._closure(links, eager)
        if len(closed) > eager:
            closed, open_ = {}, dict[State, tuple[HiddenGroup, ...]]()
            for state, link in links.items():
                if not any(self._delaying.reaches(one, groups, state) for one, groups in open_.items()):
                    closed[state] = link
                    open_[state] = self._delaying.groups(self._hidden.instances, state)
                if len(closed) > self.limit:
                    raise TooMany
            belief.groups = open_
        belief.closed = closed
        return closed

    def _closure(self, links: dict[State, Link], most: int) -> dict[State, Link]:
        """The states, and all states reachable from them by hidden actions; no longer complete beyond `most`."""
        if not self._hidden.instances:
            return links
        queue = list(links)
        known = dict(links)
        while queue and len(known) <= most:
            state = queue.pop()
            for action, after in self._steps.by_hidden(self._hidden, state):
                if after not in known:
                    at, taken = known[state]
                    known[after] = at, (*taken, action)
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

    def _refuse(self, readers: list[_StreamReader], events: list[Event], reached: Reached) -> Rejection:
        blocked = [r.head for r in readers if r.head is not None]
        rank = self.rank
        first = blocked[0] if rank is None else min(blocked, key=lambda o: rank(o.event))
        return self.refusal(first, reached, len(events))

    @property
    def _invariants(self) -> list[Property]:
        return [p for p in self.task.system.properties if p.kind is Kind.INVARIANT]

    def _broken(self, states: tuple[State, ...]) -> str | None:
        """An invariant that no state consistent with the log satisfies."""
        for prop in self._invariants:
            if not any(self._steps.interpreter.holds(prop, s) for s in states):
                return f"the run ends in a state that breaks the invariant {prop.name}"
        return None


def _links(belief: Belief) -> dict[State, Link]:
    """The states of a belief as reached from themselves."""
    return {state: (at, ()) for at, state in enumerate(belief.states)}


def _reached(links: Mapping[State, Link], paths: list[Path]) -> Reached:
    """States with their whole paths."""
    return {state: Path(paths[at], taken) if taken else paths[at] for state, (at, taken) in links.items()}
