"""Reference verdicts: breadth-first search by the interpreter alone. For small systems and for tests.

Engines are compared with it. It explores level by level, in the order of the initial states and of the instances, and
decides each property at the first state or step that decides it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import assert_never

from streamproof.base.errors import EvaluationError
from streamproof.base.records import dataclass
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.prefixes import may_leave_open
from streamproof.system.reference_temporal import can_be_violated, can_be_violated_within
from streamproof.system.verdict import Counts, Verdict


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on one property, and the length, in states, of a shortest behaviour that shows it (None: none).

    Temporal properties have no length. For a cycle, `length` counts the states up to its end and `loop` those before
    it.
    """

    verdict: Verdict
    length: int | None = None
    loop: int | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """The results of the interpreter's search."""

    levels: tuple[tuple[State, ...], ...]
    """The new states of each level."""
    counts: Counts
    decisions: Mapping[str, Decision]
    mistake: int | None
    """The level, from 1, of the first model error; the search ends there."""


def reference(system: System) -> Reference:
    """Explores `system` completely, or up to its first evaluation error."""
    return _Exploration(system).run()


@dataclass
class _Exploration:
    system: System
    level_of: dict[State, int] = field(default_factory=dict)
    successors: dict[State, list[State]] = field(default_factory=dict)
    decided: dict[str, Decision] = field(default_factory=dict)
    generated: int = 0
    mistake: int | None = None

    def __post_init__(self) -> None:
        self.interpreter = Interpreter(self.system)

    def run(self) -> Reference:
        queue: deque[State] = deque()
        for state in self.interpreter.initial_states():
            self._meet(state, 1, queue)
        while queue and self.mistake is None:
            self._expand(queue.popleft(), queue)
        for prop in self.system.properties:
            if prop.name not in self.decided:
                self.decided[prop.name] = self._at_the_end(prop)
        depth = max(self.level_of.values(), default=0)
        levels = tuple(tuple(s for s, at in self.level_of.items() if at == n) for n in range(1, depth + 1))
        outside: tuple[int, ...] = ()
        if self.system.constraint is not None:
            limits = [c.expr for c in self.system.constraint.conjuncts]
            inside = [[all(self.interpreter.value(c, s) for c in limits) for s in level] for level in levels]
            outside = tuple(level.count(False) for level in inside)
        counts = Counts(len(self.level_of), self.generated, depth, tuple(map(len, levels)), outside=outside)
        return Reference(levels, counts, self.decided, self.mistake)

    def _meet(self, state: State, level: int, queue: deque[State]) -> None:
        self.generated += 1
        if state in self.level_of:
            return
        self.level_of[state] = level
        queue.append(state)
        for prop in self._open(Kind.INVARIANT, Kind.REACHABLE, Kind.TEMPORAL):
            self._decide(prop, self._decides(prop, state, None), level)

    def _expand(self, state: State, queue: deque[State]) -> None:
        level = self.level_of[state]
        after: list[State] = []
        try:
            for step in self.interpreter.steps(state):
                after.append(step.state)
                for prop in self._open(Kind.STEP):
                    self._decide(prop, self._decides(prop, state, step.state), level + 1)
                self._meet(step.state, level + 1, queue)
        except EvaluationError:
            self.mistake = level
        self.successors[state] = after
        if not after and self.mistake is None and not self.interpreter.terminal(state):
            for prop in self._open(Kind.DEADLOCK):
                self.decided[prop.name] = Decision(Verdict.VIOLATED, level)

    def _decide(self, prop: Property, found: Verdict | None, level: int) -> None:
        """Records a verdict. An evaluation error of the property counts only if nothing on the same level decides it."""
        before = self.decided.get(prop.name)
        if found is not None and (before is None or (before.length == level and found is not Verdict.ERROR)):
            self.decided[prop.name] = Decision(found, level)

    def _decides(self, prop: Property, state: State, after: State | None) -> Verdict | None:
        try:
            true = self.interpreter.holds(prop, state, after)
        except EvaluationError:
            return Verdict.ERROR
        if prop.kind is Kind.REACHABLE:
            return Verdict.HOLDS if true else None
        return None if true else Verdict.VIOLATED

    def _open(self, *kinds: Kind) -> Iterator[Property]:
        return (
            p
            for p in self.system.properties
            if p.kind in kinds and (p.name not in self.decided or self.decided[p.name].verdict is Verdict.ERROR)
        )

    def _at_the_end(self, prop: Property) -> Decision:
        if prop.kind is Kind.TERMINATION:
            found = self._shortest_lasso()
            if found is not None:
                return found
        if self.mistake is not None:
            return Decision(Verdict.ERROR, self.mistake)
        match prop.kind:
            case Kind.TEMPORAL:
                assert prop.formula is not None
                initial = [state for state, level in self.level_of.items() if level == 1]
                if self.system.constraint is None:
                    broken = can_be_violated(self.system, prop.formula, initial, tuple(self.level_of))
                else:
                    broken = can_be_violated_within(self.system, prop, initial, self.successors)
                if not broken and may_leave_open(self.system, prop.name, self.level_of):
                    return Decision(Verdict.INCONCLUSIVE)
                return Decision(Verdict.VIOLATED if broken else Verdict.HOLDS)
            case Kind.REACHABLE:
                return Decision(Verdict.VIOLATED)
            case Kind.INVARIANT | Kind.STEP | Kind.DEADLOCK | Kind.TERMINATION:
                return Decision(Verdict.HOLDS)
            case _:
                assert_never(prop.kind)

    def _shortest_lasso(self) -> Decision | None:
        """A cycle with the fewest steps to and around it together, of those one with the fewest steps to it."""
        best: Decision | None = None
        for state, level in self.level_of.items():
            most = None if best is None or best.length is None else best.length - level
            around = _distance_back(self.successors, state, most)
            if around is not None:
                best = Decision(Verdict.VIOLATED, level - 1 + around, level - 1)
        return best


def _distance_back(successors: Mapping[State, Sequence[State]], start: State, most: int | None) -> int | None:
    """The number of steps of a shortest cycle through `start`, of at most `most` steps."""
    distance = {start: 0}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        if most is not None and distance[state] >= most:
            return None
        for after in successors.get(state, ()):
            if after == start:
                return distance[state] + 1
            if after not in distance:
                distance[after] = distance[state] + 1
                queue.append(after)
    return None
