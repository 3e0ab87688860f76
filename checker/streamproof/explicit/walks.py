"""Random walks through a state space, with the properties decided on the way."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain, islice

from streamproof.base.errors import ModelError
from streamproof.base.records import dataclass, replace
from streamproof.explicit.enabled import BrokenStep, Option, options_of
from streamproof.explicit.findings import steps_taken
from streamproof.explicit.level_search import Budget, Stop, watches_of
from streamproof.explicit.search import starts
from streamproof.explicit.writer import Hit, inspector, keeper
from streamproof.system import build as b
from streamproof.system.leaves import encode
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.verdict import Coverage
from streamproof.transform.scalarise import Scalarised

MOST_STARTS = 4096
"""Largest number of initial states that are listed; beyond it, initial values are drawn at random until they are allowed."""
TRIES = 1000
PATIENCE = 256
"""Number of steps between two checks of limits and interrupts."""


@dataclass(frozen=True, slots=True)
class WalkEffort:
    """Progress of a simulation: seconds, complete walks, steps of all walks, distinct states visited."""

    elapsed: float
    walks: int
    steps: int
    distinct: int


@dataclass(frozen=True, slots=True)
class WalkEvent:
    """A decided property or an evaluation error, with the walk to its state."""

    path: tuple[State, ...]
    instance: int | None = None
    """The instance whose step from the last state breaks a step property."""
    mistake: bool = False
    loop: int | None = None
    """The position in `path` of the state to which a further step leads back."""


class Walks:
    """Random walks, and their results. Raises `ModelError` if there is no initial state."""

    def __init__(
        self,
        scalarised: Scalarised,
        system: System,
        properties: Sequence[Property],
        budget: Budget,
        rng: random.Random,
        *,
        guided: bool,
        most_steps: int,
        on_progress: Callable[[WalkEffort], None] | None = None,
        on_walk: Callable[[Sequence[State], Sequence[int]], None] | None = None,
    ) -> None:
        """`on_walk` receives the states of each finished walk, and the numbers of its instances."""
        self.on_walk = on_walk
        self.scalarised, self.system, self.properties = scalarised, system, properties
        self.budget, self.rng, self.on_progress = budget, rng, on_progress
        self.guided, self.most_steps = guided, most_steps
        self.visits: dict[State, int] = {}
        """Number of walks that visited each state."""
        self.walks = self.steps = self.longest = 0
        self.stopped: str | None = None
        self.events: dict[int, WalkEvent] = {}
        """The events by number of the property."""
        self.fault: WalkEvent | None = None
        self.generated, self.distinct, self.taken = ([0] * len(system.instances) for _ in range(3))
        self.options = options_of(system, self._open(Kind.STEP))
        self._ends = keeper(system, b.FALSE if system.terminal is None else system.terminal)
        self._keep = keeper(system, system.initially)
        self._compile_watches()
        self._path: list[State] = []
        self._steps_taken: list[int] = []
        self._at: dict[State, int] = {}
        """The states of this walk, each with its first position."""
        self._reported = 0.0
        self._initial = list(islice(chain.from_iterable(starts(scalarised, system)), MOST_STARTS + 1))
        if not self._initial:
            raise ModelError(
                f"{system.name} has no initial state",
                remedy="no choice of initial values satisfies its initial condition",
            )

    def take(self, walks: int) -> None:
        """Take `walks` walks, or fewer if a limit or a violation ends them."""
        try:
            while self.walks < walks and self.stopped is None:
                self._walk()
                self._notice()
        except KeyboardInterrupt:
            self.stopped = Stop.INTERRUPTED.value

    def coverage(self) -> Coverage:
        """Steps per action."""
        taken = steps_taken(self.system, self.generated, self.distinct)
        return replace(taken, expanded=len(self.visits), complete=False)

    def shortened(self, path: Sequence[State]) -> list[State]:
        """A shortest path from the first of these states to the last that visits only these states."""
        allowed, before = set(path), {path[0]: path[0]}
        queue = deque([path[0]])
        while queue and path[-1] not in before:
            state = queue.popleft()
            for _, after in self.options(state, []) or ():
                if after in allowed and after not in before:
                    before[after] = state
                    queue.append(after)
        way = [path[-1]]
        while way[-1] != path[0]:
            way.append(before[way[-1]])
        return way[::-1]

    def _walk(self) -> None:
        self.walks += 1
        state = self._start()
        self._path, self._at, self._steps_taken = [state], {state: 0}, []
        self._meet(state)
        self._evaluate([state], ahead=False)
        while self.stopped is None:
            options = self._expand(state)
            if not options or self.stopped is not None or len(self._path) > self.most_steps:
                break
            instance, state = self._choose(options)
            self.taken[instance] += 1
            self._steps_taken.append(instance)
            self.steps += 1
            self._go(state)
            if self._at[state] == len(self._path) - 1 and self._meet(state):
                self.distinct[instance] += 1
            if self.steps % PATIENCE == 0:
                self._notice()
        self.longest = max(self.longest, len(self._path) - 1)
        if self.on_walk is not None:
            self.on_walk(self._path, self._steps_taken)

    def _meet(self, state: State) -> bool:
        """Count a state once per walk; returns whether it is new."""
        walks = self.visits.get(state, 0)
        self.visits[state] = walks + 1
        return walks == 0

    def _expand(self, state: State) -> list[Option]:
        """The options of a state, with step properties and evaluation errors checked."""
        hits: list[BrokenStep] = []
        options = self.options(state, hits)
        for number, instance, mistake in hits:
            self._found(number, WalkEvent(tuple(self._path), instance, mistake))
        if options is None:
            self.fault = WalkEvent(tuple(self._path), mistake=True)
            self.stopped = Stop.MISTAKE.value
            return []
        for instance, _ in options:
            self.generated[instance] += 1
        self._evaluate([after for _, after in options if after not in self.visits], ahead=True)
        if not options and not self._ends([state]):
            for number, _ in self._open(Kind.DEADLOCK):
                self._found(number, WalkEvent(tuple(self._path)))
        return options

    def _choose(self, options: Sequence[Option]) -> Option:
        # Only `random()` gives the same numbers in every version of Python.
        drawn = self.rng.random()
        if not self.guided:
            return options[int(drawn * len(options))]
        weights = [
            1.0 / (math.sqrt(1 + self.taken[instance]) * (1 + self.visits.get(after, 0)) ** 3)
            for instance, after in options
        ]
        rest = drawn * sum(weights)
        for option, weight in zip(options, weights, strict=True):
            rest -= weight
            if rest < 0:
                return option
        return options[-1]

    def _go(self, state: State) -> None:
        """Continue with `state`; a state visited twice in one walk is a cycle."""
        if state in self._at:
            for number, _ in self._open(Kind.TERMINATION):
                first = max(at for at, s in enumerate(self._path) if s == state)
                self._found(number, WalkEvent(tuple(self._path), loop=first))
        self._path.append(state)
        self._at.setdefault(state, len(self._path) - 1)

    def _evaluate(self, states: Sequence[State], *, ahead: bool) -> None:
        """Evaluate the properties of single states: in the successors (`ahead`) or in the current state."""
        hits: list[Hit] = []
        if self._inspect is not None:
            self._inspect(states, 0, hits)
        for number, at, mistake in hits:
            path = (*self._path, states[at]) if ahead else tuple(self._path)
            self._found(number, WalkEvent(path, mistake=mistake))
        if hits:
            self._compile_watches()

    def _found(self, number: int, event: WalkEvent) -> None:
        self.events.setdefault(number, event)
        if self.properties[number].kind is not Kind.REACHABLE or event.mistake:
            self.stopped = "violation"
        elif len(self.events) == len(self.properties):
            self.stopped = Stop.DECIDED.value

    def _open(self, *kinds: Kind) -> list[tuple[int, Property]]:
        return [(k, p) for k, p in enumerate(self.properties) if k not in self.events and p.kind in kinds]

    def _compile_watches(self) -> None:
        watches = watches_of(self._open(Kind.INVARIANT, Kind.REACHABLE))
        self._inspect = inspector(self.system, watches) if watches else None

    def _start(self) -> State:
        """A random initial state, uniformly distributed; if there are too many to list, by rejection sampling."""
        if len(self._initial) > MOST_STARTS:
            for _ in range(TRIES):
                variables = self.scalarised.original.variables
                drawn = [encode(v.sort, v.initial[int(self.rng.random() * len(v.initial))]) for v in variables]
                state = tuple(chain.from_iterable(drawn))
                if self._keep([state]):
                    return state
        return self._initial[int(self.rng.random() * len(self._initial))]

    def _notice(self) -> None:
        """Check limits and interrupts, and report progress."""
        spent = self.budget.spent()
        if spent is not None and self.stopped is None:
            self.stopped = spent.value
        elapsed = self.budget.elapsed
        if self.on_progress is not None and elapsed - self._reported >= 1.0:
            self._reported = elapsed
            self.on_progress(WalkEffort(elapsed, self.walks, self.steps, len(self.visits)))
