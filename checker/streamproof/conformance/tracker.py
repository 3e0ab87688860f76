"""The tracker: follows a log through a machine, carrying every state that the log so far allows.

After each event the *belief* is exactly the set of states that some behaviour with these events, and any hidden actions
between them, can be in. The log is accepted while the belief is not empty. Cost is the number of events times the size of
the belief, which stays small where hidden actions are few; a limit turns a larger one into `inconclusive`, never into an
answer. Trace validation by TLC searches the same product without keeping the belief, one machine start per trace, and
reports little on failure; PObserve runs deterministic monitors. Here the answer to a rejection is the longest accepted
prefix, the states there, and for each action that the event could mean the condition that failed (`explaining`).

Several streams are merged as the machine allows, the first ones as far as they go: exact where no event of one process
makes an event of another impossible, as with processes that send messages and never withdraw them. The lines of several
threads in one stream are merged in the same way, within the order that `Observation.follows` leaves open: exact where each
line names the state that it changes. An accepted merge is always a behaviour of the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from itertools import islice
from typing import Any

from streamproof.conformance.binding import Grounding, Look, Move, Observation, Stream, Task
from streamproof.conformance.events import Event
from streamproof.conformance.explaining import Refusal, Rejection, explained_refusal, shown_states
from streamproof.system import Instance, Interpreter, Kind, State, System
from streamproof.system.records import dataclass

BELIEF_LIMIT = 20_000
REMEMBERED = 200_000


@dataclass(frozen=True, slots=True)
class Tracked:
    """The outcome of following one behaviour. `actions` counts them along one explanation of the accepted prefix."""

    accepted: bool
    events: tuple[Event, ...]
    actions: Counter[str]
    largest_belief: int
    rejection: Rejection | None = None
    exhausted: str | None = None
    final: tuple[State, ...] = ()

    @property
    def matched(self) -> int:
        """How many events were accepted."""
        return len(self.events)


class Steps:
    """The moves of one system, each computed once per state. Behaviours of equal machines share one."""

    def __init__(self, system: System, grounding: Grounding | None = None) -> None:
        self.system = system
        self.interpreter = Interpreter(system)
        self._grounding = grounding
        self._by_action = {a.name: a.instances for a in system.actions}
        self._matching: dict[tuple[str, tuple[tuple[str, Any], ...]], tuple[Instance, ...]] = {}
        self._known: dict[tuple[int, State], tuple[Instance, State | None]] = {}
        """By number of the instance, which is kept beside what it leads to: so no other one can get this number."""

    def take(self, instance: Instance, state: State) -> State | None:
        """The state after `instance`, or None where it is not enabled. Raises `EvaluationError` on a model's mistake."""
        key = (id(instance), state)
        if key in self._known:
            return self._known[key][1]
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        after = self.interpreter.take(instance, state)
        self._known[key] = (instance, after)
        return after

    def instances(self, action: str) -> tuple[Instance, ...]:
        """The ground instances of an action; none for one that the machine does not have."""
        return self._by_action.get(action, ())

    def matching(self, move: Move) -> tuple[Instance, ...]:
        """The instances that a move may be."""
        if self._grounding is not None:
            return self._grounding(move.action, move.args)
        key = (move.action, tuple(move.args.items()))
        if key not in self._matching:
            self._matching[key] = tuple(
                i for i in self.instances(move.action) if move.args.items() <= dict(i.args).items()
            )
        return self._matching[key]

    def along(self, way: tuple[Move, ...], state: State) -> list[tuple[State, tuple[str, ...]]]:
        """Every state that a sequence of moves leads to, with the actions taken."""
        found: list[tuple[State, tuple[str, ...]]] = [(state, ())]
        for move in way:
            reached: list[tuple[State, tuple[str, ...]]] = []
            for at, taken in found:
                ends = [
                    (after, (*taken, move.action))
                    for i in self.matching(move)
                    if (after := self.take(i, at)) is not None
                ]
                if not ends and move.optional:
                    ends = [(at, taken)]
                reached += ends
            found = reached
        return found

    def explained(self, observation: Observation, state: State) -> Iterator[tuple[State, tuple[str, ...]]]:
        """Every state after an observation made in `state`, with the actions that it stood for."""
        if observation.impossible is not None:
            return
        if observation.before or observation.awaits is not None:
            look = Look(self.system, state)
            if observation.awaits is not None and not observation.awaits.test(look):
                return
            if not all(d.test(look) for d in observation.before):
                return
        for way in observation.ways:
            for end, taken in self.along(way, state):
                look = Look(self.system, end)
                if all(d.test(look) for d in observation.demands):
                    yield end, taken


@dataclass(frozen=True, eq=False, slots=True)
class Path:
    """How a state of the belief was reached: the actions taken since the state before."""

    before: Path | None
    taken: tuple[str, ...]

    def counts(self) -> Counter[str]:
        """How often each action was taken along the whole path."""
        total: Counter[str] = Counter()
        at: Path | None = self
        while at is not None:
            total.update(at.taken)
            at = at.before
        return total


START = Path(None, ())
_Belief = dict[State, Path]


@dataclass(slots=True)
class _Reader:
    """A stream and the observations that are left of it, by position. A stream is read ahead only if it is a sequence."""

    rest: Iterator[tuple[int, Observation]]
    silent: frozenset[str] = frozenset()
    left: list[tuple[int, Observation]] = field(default_factory=list)

    @classmethod
    def of(cls, stream: Stream) -> _Reader:
        """A reader of one process's account."""
        return cls(iter(()), stream.actions if stream.ends else frozenset(), list(enumerate(stream.observations)))

    @property
    def head(self) -> Observation | None:
        """The first observation that is left."""
        if not self.left:
            self.left.extend(islice(self.rest, 1))
        return self.left[0][1] if self.left else None

    def candidates(self) -> Iterator[tuple[int, Observation]]:
        """The first observation and those that may precede it although the log has them later, by index in `left`."""
        if self.head is None:
            return
        first = self.left[0][0]
        for index, (_, observation) in enumerate(self.left):
            if index == 0 or (observation.follows is not None and observation.follows < first):
                yield index, observation


@dataclass(slots=True)
class Tracker:
    """Follows one `Task`. `rank` orders events of different streams, for choosing which of several blocked ones to blame."""

    task: Task
    limit: int = BELIEF_LIMIT
    rank: Callable[[Event], Any] | None = None
    steps: Steps | None = None
    _steps: Steps = field(init=False)
    _hidden: tuple[Instance, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        self._steps = self.steps or Steps(self.task.system)

    def run(self) -> Tracked:
        """Follows the whole log. Raises `EvaluationError` if the machine itself is at fault."""
        readers = [_Reader(enumerate(self.task.observations))] if not self.task.streams else []
        readers += map(_Reader.of, self.task.streams)
        self._see(readers)
        belief = self._closure(dict.fromkeys(self._steps.interpreter.initial_states(), START))
        events: list[Event] = []
        largest = len(belief)
        while any(r.head is not None for r in readers):
            if len(belief) > self.limit:
                because = f"more than {self.limit:,} states are possible"
                because += f" after {events[-1]}" if events else " before the first event"
                return self._outcome(events, largest, belief, exhausted=because)
            options = ((r, *candidate) for r in readers for candidate in r.candidates())
            found = next(((*o, after) for o in options if (after := self._accepted(o[2], belief))), None)
            if found is None:
                rejection = self._contradiction() or self._refuse(readers, events, belief)
                return self._outcome(events, largest, belief, rejection)
            reader, index, observation, after = found
            del reader.left[index]
            if reader.head is None:
                self._see(readers)
            belief = self._closure(after)
            events.append(observation.event)
            largest = max(largest, len(belief))
            if observation.then is not None:
                observation.then([Look(self.task.system, state) for state in after])
        broken = self._broken(tuple(belief))
        if broken is not None:
            states = shown_states(self.task.system, tuple(belief))
            rejection = Rejection(len(events), None, "property", broken, states=len(belief), before=states)
            return self._outcome(events, largest, belief, rejection)
        return self._outcome(events, largest, belief)

    def _outcome(
        self,
        events: list[Event],
        largest: int,
        belief: _Belief,
        rejection: Rejection | None = None,
        exhausted: str | None = None,
    ) -> Tracked:
        counts = next(iter(belief.values()), START).counts()
        accepted = rejection is None and exhausted is None
        return Tracked(accepted, tuple(events), counts, largest, rejection, exhausted, tuple(belief))

    def _see(self, readers: list[_Reader]) -> None:
        """Settles which actions nothing would have recorded from here on."""
        names = self.task.hidden.union(*(r.silent for r in readers if r.head is None))
        self._hidden = tuple(i for a in self.task.system.actions if a.name in names for i in a.instances)

    def _accepted(self, observation: Observation, belief: _Belief) -> _Belief:
        after: _Belief = {}
        if observation.impossible is None:
            for state, path in belief.items():
                for end, taken in self._steps.explained(observation, state):
                    after.setdefault(end, Path(path, taken))
        return after

    def _closure(self, states: _Belief) -> _Belief:
        """The states, and all that hidden actions lead to from them."""
        queue = list(states)
        known = dict(states)
        while queue and len(known) <= self.limit:
            state = queue.pop()
            for instance in self._hidden:
                after = self._steps.take(instance, state)
                if after is not None and after not in known:
                    known[after] = Path(known[state], (instance.action,))
                    queue.append(after)
        return known

    def _contradiction(self) -> Rejection | None:
        """The first event that no behaviour explains even if all other processes had recorded nothing.

        Where processes disagree neither can be blamed for sure; where one contradicts itself, it can.
        """
        streams = self.task.streams
        found: list[Rejection] = []
        for stream in streams if len(streams) > 1 else ():
            others = frozenset[str]().union(*(s.actions for s in streams if s is not stream)) - stream.actions
            alone = replace(self.task, streams=(stream,), hidden=self.task.hidden | others)
            rejection = Tracker(alone, self.limit, self.rank, self._steps).run().rejection
            if rejection is not None and rejection.event is not None:
                found.append(rejection)
        rank = self.rank
        return min(found, key=lambda r: rank(r.event) if rank and r.event else 0, default=None)

    def _refuse(self, readers: list[_Reader], events: list[Event], belief: _Belief) -> Rejection:
        blocked = [r.head for r in readers if r.head is not None]
        rank = self.rank
        first = blocked[0] if rank is None else min(blocked, key=lambda o: rank(o.event))
        return explained_refusal(Refusal(self._steps, self.task, first, tuple(belief), len(events)))

    def _broken(self, states: tuple[State, ...]) -> str | None:
        """An invariant that no state the log allows satisfies."""
        for prop in self.task.system.properties:
            if prop.kind is Kind.INVARIANT and not any(self._steps.interpreter.holds(prop, s) for s in states):
                return f"the run ends in a state that breaks the invariant {prop.name}"
        return None
