"""The tracker: follows a log through a machine, carrying every state that the log so far allows.

After each event the *belief* is exactly the set of states that some behaviour with these events, and any hidden actions
between them, can be in. The log is accepted while the belief is not empty. Cost is the number of events times the size of
the belief, which stays small where hidden actions are few; a limit turns a larger one into `inconclusive`, never into an
answer. Trace validation by TLC searches the same product without keeping the belief, one machine start per trace, and
reports little on failure; PObserve runs deterministic monitors. Here the answer to a rejection is the longest accepted
prefix, the states there, and for each action that the event could mean the condition that failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from streamproof.conformance.binding import Look, Move, Observation, Task
from streamproof.conformance.events import Event
from streamproof.system import EvaluationError, Instance, Interpreter, Kind, State
from streamproof.traces.explain import why_false

BELIEF_LIMIT = 20_000
EXPLAINED = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """An action the event could have meant, and why it is not possible."""

    action: str
    because: str
    distance: int = 0


@dataclass(frozen=True, slots=True)
class Rejection:
    """The first event that no behaviour of the machine explains."""

    index: int
    event: Event | None
    kind: str
    message: str
    candidates: tuple[Candidate, ...] = ()
    nearest: str | None = None
    expected: tuple[str, ...] = ()
    states: int = 0


@dataclass(frozen=True, slots=True)
class Tracked:
    """The outcome of following one behaviour. `actions` counts them along one explanation of the accepted prefix."""

    accepted: bool
    matched: int
    actions: Counter[str]
    largest_belief: int
    rejection: Rejection | None = None
    exhausted: str | None = None
    final: tuple[State, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class _Path:
    """How a state of the belief was reached: the actions taken since the state before."""

    before: _Path | None
    taken: tuple[str, ...]

    def counts(self) -> Counter[str]:
        """How often each action was taken along the whole path."""
        total, at = Counter[str](), self
        while at is not None:
            total.update(at.taken)
            at = at.before  # type: ignore[assignment]
        return total


_START = _Path(None, ())
Belief = dict[State, _Path]


@dataclass(slots=True)
class Tracker:
    """Follows one `Task`."""

    task: Task
    limit: int = BELIEF_LIMIT
    interpreter: Interpreter = field(init=False)
    _by_action: dict[str, list[Instance]] = field(init=False)
    _hidden: tuple[Instance, ...] = field(init=False)

    def __post_init__(self) -> None:
        system = self.task.system
        self.interpreter = Interpreter(system)
        self._by_action = {a.name: list(a.instances) for a in system.actions}
        self._hidden = tuple(i for a in system.actions if a.name in self.task.hidden for i in a.instances)

    def run(self) -> Tracked:
        """Follows the whole log. Raises `EvaluationError` if the machine itself is at fault."""
        belief = self._closure(dict.fromkeys(self.interpreter.initial_states(), _START))
        matched, largest = 0, len(belief)
        for index, observation in enumerate(self.task.observations):
            after: Belief = {}
            if observation.impossible is None:
                for state, path in belief.items():
                    for end, taken in self._explained(observation, state):
                        after.setdefault(end, _Path(path, taken))
            if not after:
                return self._outcome(False, matched, largest, belief, self._reject(index, observation, belief))
            belief = self._closure(after)
            matched += 1
            largest = max(largest, len(belief))
            if len(belief) > self.limit:
                because = f"more than {self.limit:,} states are possible after {observation.event}"
                return self._outcome(False, matched, largest, belief, exhausted=because)
        broken = self._broken(tuple(belief))
        if broken is not None:
            rejection = Rejection(matched, None, "property", broken, states=len(belief))
            return self._outcome(False, matched, largest, belief, rejection)
        return self._outcome(True, matched, largest, belief)

    def _outcome(
        self,
        accepted: bool,
        matched: int,
        largest: int,
        belief: Belief,
        rejection: Rejection | None = None,
        exhausted: str | None = None,
    ) -> Tracked:
        counts = next(iter(belief.values()), _START).counts()
        return Tracked(accepted, matched, counts, largest, rejection, exhausted, tuple(belief))

    # --- moving

    def _closure(self, states: Belief) -> Belief:
        """The states, and all that hidden actions lead to from them."""
        queue = list(states)
        known = dict(states)
        while queue and len(known) <= self.limit:
            state = queue.pop()
            for instance in self._hidden:
                after = self._take(instance, state)
                if after is not None and after not in known:
                    known[after] = _Path(known[state], (instance.action,))
                    queue.append(after)
        return known

    def _take(self, instance: Instance, state: State) -> State | None:
        return self.interpreter.take(instance, state)

    def _matching(self, move: Move) -> Iterator[Instance]:
        for instance in self._by_action.get(move.action, ()):
            given = dict(instance.args)
            if all(given.get(n) == v for n, v in move.args.items()):
                yield instance

    def _ways(self, way: tuple[Move, ...], state: State) -> list[tuple[State, tuple[str, ...]]]:
        """Every state that a sequence of moves leads to, with the actions taken."""
        found: list[tuple[State, tuple[str, ...]]] = [(state, ())]
        for move in way:
            reached: list[tuple[State, tuple[str, ...]]] = []
            for at, taken in found:
                ends = [
                    (after, (*taken, move.action))
                    for i in self._matching(move)
                    if (after := self._take(i, at)) is not None
                ]
                if not ends and move.optional:
                    ends = [(at, taken)]
                reached += ends
            found = reached
        return found

    def _explained(self, observation: Observation, state: State) -> Iterator[tuple[State, tuple[str, ...]]]:
        for way in observation.ways:
            for end, taken in self._ways(way, state):
                look = Look(self.task.system, end)
                if all(d.test(look) for d in observation.demands):
                    yield end, taken

    # --- explaining a rejection

    def _reject(self, index: int, observation: Observation, belief: Belief) -> Rejection:
        if observation.impossible is not None:
            return Rejection(index, observation.event, "contradiction", observation.impossible, states=len(belief))
        candidates = self._candidates(observation, list(belief)[:EXPLAINED])
        failed_demand = [c for c in candidates if c.action == ""]
        kind = "state" if failed_demand else "action"
        message = (failed_demand or candidates or [Candidate("", "no action of the machine fits", 0)])[0].because
        expected = self._enabled(list(belief)[:EXPLAINED])
        nearest = expected[0] if expected else None
        shown = tuple(c for c in candidates if c.action)
        return Rejection(index, observation.event, kind, message, shown, nearest, expected, len(belief))

    def _candidates(self, observation: Observation, states: list[State]) -> list[Candidate]:
        found: dict[tuple[str, str], Candidate] = {}
        for state in states:
            for way in observation.ways:
                at = [state]
                for position, move in enumerate(way):
                    reached = [e for s in at for e, _ in self._ways((move,), s)]
                    if not reached:
                        for candidate in self._blocked(move, at, len(way) - position):
                            found.setdefault((candidate.action, candidate.because), candidate)
                        break
                    at = reached
                else:
                    for end in at:
                        look = Look(self.task.system, end)
                        for demand in observation.demands:
                            if not demand.test(look):
                                found.setdefault(("", demand.text), Candidate("", demand.text, 0))
                                break
        return sorted(found.values(), key=lambda c: c.distance)

    def _blocked(self, move: Move, states: list[State], distance: int) -> Iterator[Candidate]:
        instances = list(self._matching(move))
        if not instances:
            yield Candidate(str(move), "the machine of this job has no such action", distance + 1)
        for state in states:
            for instance in instances:
                reason = why_false(self.task.system, instance.guard, state)
                if reason is not None:
                    yield Candidate(str(move), str(reason), distance)

    def _enabled(self, states: list[State]) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for state in states:
            for instance in self.task.system.instances:
                if instance.action in self.task.hidden:
                    continue
                try:
                    if self.interpreter.enabled(instance, state):
                        names[instance.label] = None
                except EvaluationError:
                    continue
        return tuple(names)[:40]

    def _broken(self, states: tuple[State, ...]) -> str | None:
        """An invariant that no state the log allows satisfies."""
        for prop in self.task.system.properties:
            if prop.kind is Kind.INVARIANT and states and not any(self.interpreter.holds(prop, s) for s in states):
                return f"the run ends in a state that breaks the invariant {prop.name}"
        return None


def as_record(value: Rejection | None) -> dict[str, Any] | None:
    """A rejection as plain data for verdict records."""
    if value is None:
        return None
    event = value.event
    return {
        "index": value.index,
        "event": event.event if event else None,
        "kind": value.kind,
        "file": event.file if event else None,
        "line": event.line if event else None,
        "at": str(event) if event else None,
        "message": value.message,
        "candidates": [{"action": c.action, "because": c.because} for c in value.candidates],
        "expected": list(value.expected),
        "nearest": value.nearest,
        "states": value.states,
    }
