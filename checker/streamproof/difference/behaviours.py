"""Behaviours that only one of two systems has: the shortest ones, by the subset construction on both systems at once.

A behaviour is seen as its labels and the values of the variables that both systems have. A node of the search is a pair of
sets: the states in which each system may be after the same beginning (Rabin and Scott's construction, applied to both).
What only one set can do next is a difference; the breadth-first order makes the first one of each action a shortest one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from streamproof.base.errors import EvaluationError, Exit, StreamproofError
from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass
from streamproof.explicit.level_search import Budget
from streamproof.explicit.single_steps import FAULT, GeneratedSteps
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Instance, State, System
from streamproof.system.sorts import show
from streamproof.system.verdict import Trace
from streamproof.traces.explain import why_false
from streamproof.traces.places import changes
from streamproof.traces.replay import replay

STEPS, ACTIONS, STATES = "steps", "actions", "states"
VIEWS = (STEPS, ACTIONS, STATES)
"""What is seen of a step: its label and the common variables, its label alone, or the common variables alone."""
INITIAL, ENDS, MISTAKE = "an initial state", "may end", "an evaluation error"
"""In place of the label of a step: the beginning, the end in a terminal state, and a rule that fails."""
OFTEN = 64
"""Number of nodes between two looks at the limits."""

Seen: TypeAlias = tuple[Any, ...]
"""What is seen of an initial state, a step, an end or a mistake."""
Moves: TypeAlias = Mapping[Seen, tuple[tuple[Instance | None, State | None], ...]]
"""The steps from a state by what is seen of them."""


class DifferenceUnconfirmed(StreamproofError):
    """The interpreter does not confirm a difference: a defect of streamproof, never of the models."""

    exit_code = Exit.DISAGREE


@dataclass(frozen=True, slots=True)
class Divergence:
    """A shortest behaviour of one system that the other one lacks.

    `trace` is the whole behaviour; its last step, or its initial state, is what the other lacks. With `what` = `ENDS` or
    `MISTAKE` that is the end, or a mistake of the rules, in its last state. `beside` is a behaviour of the other system that
    is seen as the same up to there; None if the initial state is lacking. `does` says what the last step changes, `why` what
    the other system does instead.
    """

    action: str
    what: str
    trace: Trace
    beside: Trace | None
    does: str
    why: str

    @property
    def before(self) -> tuple[str, ...]:
        """The labels of the steps that both systems have."""
        return tuple(step.label for step in self.trace.steps[: len(self.trace.steps) - self.is_step])

    @property
    def is_step(self) -> bool:
        """Whether the last step is what the other system lacks."""
        return self.what not in (INITIAL, ENDS, MISTAKE)


@dataclass(frozen=True, slots=True)
class BehaviourDifference:
    """The behaviours that only the second system has (`gained`) and only the first has (`lost`), at most one for each action.

    `nodes`: the number of pairs of sets of states that were searched; `stopped`: the limit that ended the search, None: none.
    """

    gained: tuple[Divergence, ...]
    lost: tuple[Divergence, ...]
    nodes: int
    stopped: str | None


class _Side:
    """One of the two systems, as it is seen."""

    def __init__(self, system: System, look: Callable[[State], Seen], view: str) -> None:
        self.system, self.look, self.view = system, look, view
        self.interpreter = Interpreter(system)
        self._labels = [i.label if view != STATES else "" for i in system.instances]
        self._generated = GeneratedSteps.of(system)

    def started(self) -> dict[Seen, dict[State, None]]:
        """The initial states by what is seen of them."""
        found: dict[Seen, dict[State, None]] = {}
        for state in self.interpreter.initial_states():
            found.setdefault((INITIAL, self.look(state)), {})[state] = None
        return found

    def moves(self, state: State, *, plainly: bool = False) -> Moves:
        """What is possible in a state, by what is seen of it. `plainly`: by the interpreter alone."""
        found: dict[Seen, list[tuple[Instance | None, State | None]]] = {}
        for instance, label in zip(self.system.instances, self._labels, strict=True):
            after = self._after(instance, state, plainly)
            if after is FAULT:
                found.setdefault((MISTAKE, label), []).append((instance, None))
            elif after is not None:
                found.setdefault((label, self.look(after)), []).append((instance, after))
        if self.interpreter.terminal(state):
            found[ENDS,] = [(None, None)]
        return {seen: tuple(steps) for seen, steps in found.items()}

    def _after(self, instance: Instance, state: State, plainly: bool) -> Any:
        """The state after an instance; None if it is disabled, `FAULT` at an evaluation error."""
        step = None if plainly else self._generated.get(self.system, instance)
        if step is not None:
            return step(state)
        try:
            return self.interpreter.take(instance, state)
        except EvaluationError:
            return FAULT


def common_variables(before: System, after: System) -> tuple[str, ...]:
    """The names of the variables that both systems have."""
    other = {v.name for v in after.variables}
    return tuple(v.name for v in before.variables if v.name in other)


def observers(before: System, after: System, view: str) -> tuple[Callable[[State], Seen], Callable[[State], Seen]]:
    """For each of two systems, what is seen of a state: the values of the common variables, as text where sorts differ."""
    names = () if view == ACTIONS else common_variables(before, after)
    pairs = [(before.variables[before.index[n]], after.variables[after.index[n]]) for n in names]
    as_text = [one.sort != other.sort for one, other in pairs]

    def observer(system: System) -> Callable[[State], Seen]:
        parts = [
            (system.index[name], system.variables[system.index[name]].sort, text)
            for name, text in zip(names, as_text, strict=True)
        ]
        if not any(as_text):
            places = [at for at, _, _ in parts]
            if places == list(range(len(system.variables))):
                return lambda state: state
            return lambda state: tuple(state[at] for at in places)
        return lambda state: tuple(show(sort, state[at]) if text else state[at] for at, sort, text in parts)

    return observer(before), observer(after)


def compare_behaviours(
    before: System,
    after: System,
    options: SearchOptions,
    *,
    view: str = STEPS,
    on_nodes: Callable[[int], None] | None = None,
) -> BehaviourDifference:
    """The shortest behaviours that only one of two systems has, within the limits of `options` (states: of the search).

    Every one is replayed by the interpreter on both systems. Raises `DifferenceUnconfirmed` if that fails.
    """
    looks = observers(before, after, view)
    return _BehaviourComparison(_Side(before, looks[0], view), _Side(after, looks[1], view), on_nodes).run(
        Budget(options)
    )


_Node: TypeAlias = tuple[frozenset[State], frozenset[State]]


class _BehaviourComparison:
    def __init__(self, before: _Side, after: _Side, on_nodes: Callable[[int], None] | None) -> None:
        self.sides = (before, after)
        self.on_nodes = on_nodes or (lambda count: None)
        self.origin: dict[_Node, tuple[_Node, Seen] | None] = {}
        self.starts: dict[_Node, Seen] = {}
        self.found: tuple[dict[tuple[str, bool], Divergence], dict[tuple[str, bool], Divergence]] = ({}, {})
        """What only the one and only the other has, by the action, and whether it is a mistake."""

    def run(self, budget: Budget) -> BehaviourDifference:
        """Searches all pairs, or until a limit is reached."""
        stopped = None
        level = self._start()
        nodes = 0
        with budget.listening():
            while level and stopped is None:
                following: list[_Node] = []
                for node in level:
                    if nodes % OFTEN == 0:
                        spent = budget.spent()
                        stopped = None if spent is None else spent.value
                        self.on_nodes(nodes)
                    if nodes >= budget.max_states:
                        stopped = f"{budget.max_states:,} states"
                    if stopped is not None:
                        break
                    nodes += 1
                    following += self._expand(node)
                level = following
        lost, gained = (tuple(found.values()) for found in self.found)
        return BehaviourDifference(gained, lost, nodes, stopped)

    def _start(self) -> list[_Node]:
        one, other = (side.started() for side in self.sides)
        for number, (own, others) in enumerate(((one, other), (other, one))):
            lacking = next((state for seen, states in own.items() if seen not in others for state in states), None)
            if lacking is not None:
                trace = Trace((lacking,), ())
                replay(self.sides[number].system, trace)
                why = "it begins in no such state"
                self.found[number][INITIAL, False] = Divergence(INITIAL, INITIAL, trace, None, "", why)
        for seen in one:
            if seen in other:
                node = (frozenset(one[seen]), frozenset(other[seen]))
                self.origin[node] = None
                self.starts[node] = seen
        return list(self.origin)

    def _expand(self, node: _Node) -> Iterator[_Node]:
        """The nodes after a node that are new; what only one side can do is recorded."""
        moves = [self._together(side, states) for side, states in zip(self.sides, node, strict=True)]
        for number in (0, 1):
            for seen, steps in moves[number].items():
                if seen not in moves[1 - number]:
                    self._diverges(number, node, seen, steps)
        for seen, steps in moves[0].items():
            others = moves[1].get(seen)
            if others is not None:
                following = (_reached(steps), _reached(others))
                if following[0] and following not in self.origin:
                    self.origin[following] = node, seen
                    yield following

    def _together(
        self, side: _Side, states: Iterable[State]
    ) -> dict[Seen, list[tuple[State, Instance | None, State | None]]]:
        found: dict[Seen, list[tuple[State, Instance | None, State | None]]] = {}
        for state in states:
            for seen, steps in side.moves(state).items():
                found.setdefault(seen, []).extend((state, instance, after) for instance, after in steps)
        return found

    def _diverges(
        self, number: int, node: _Node, seen: Seen, steps: list[tuple[State, Instance | None, State | None]]
    ) -> None:
        state, instance, after = steps[0]
        action = ENDS if instance is None else instance.action
        what = MISTAKE if seen[0] == MISTAKE else ENDS if instance is None else instance.label
        if (action, what == MISTAKE) in self.found[number]:
            return
        word, other = self._word(node), self.sides[1 - number]
        trace, does = self._path(self.sides[number], word, state), ""
        if after is not None and instance is not None:
            trace = Trace((*trace.states, after), (*trace.steps, instance))
            does = _changed(self.sides[number].system, state, after)
        beside = self._path(other, word, next(iter(node[1 - number])))
        why = self._why(other, beside.states[-1], what, instance)
        divergence = Divergence(action, what, trace, beside, does, why)
        self._confirm(number, (*word, seen), divergence)
        self.found[number][action, what == MISTAKE] = divergence

    def _word(self, node: _Node) -> list[Seen]:
        """What is seen on a shortest way to a node."""
        word: list[Seen] = []
        while (step := self.origin[node]) is not None:
            node, seen = step
            word.append(seen)
        return [self.starts[node], *reversed(word)]

    def _levels(
        self, side: _Side, word: list[Seen], *, plainly: bool = False
    ) -> list[dict[State, tuple[State, Instance]]]:
        """The states of a side after each beginning of a word, each with the step that leads there."""
        levels: list[dict[State, Any]] = [dict.fromkeys(side.started().get(word[0], {}))]
        for seen in word[1:]:
            following: dict[State, Any] = {}
            for state in levels[-1]:
                for instance, after in side.moves(state, plainly=plainly).get(seen, ()):
                    if after is not None:
                        following.setdefault(after, (state, instance))
            levels.append(following)
        return levels

    def _path(self, side: _Side, word: list[Seen], state: State) -> Trace:
        """A behaviour that is seen as a word and ends in a state."""
        levels = self._levels(side, word)
        states, steps = [state], list[Instance]()
        for level in reversed(levels[1:]):
            before, instance = level[states[-1]]
            states.append(before)
            steps.append(instance)
        return Trace(tuple(reversed(states)), tuple(reversed(steps)))

    def _why(self, side: _Side, state: State, what: str, instance: Instance | None) -> str:
        """What a side does in a state in place of a step of the other."""
        if what == ENDS:
            return "the state is not terminal"
        if what == MISTAKE or side.view == STATES or instance is None:
            return "no such step" if what != MISTAKE else "no such mistake"
        own = [i for i in side.system.instances if i.label == instance.label]
        if not own:
            return f"no step has the label {instance.label}"
        for one in own:
            try:
                after = side.interpreter.take(one, state)
            except EvaluationError as error:
                return f"the step is an evaluation error: {error.message}"
            if after is not None:
                return f"{one.label} changes {_changed(side.system, state, after)}"
        return f"needs {why_false(side.system, own[0].guard, state)}"

    def _confirm(self, number: int, word: tuple[Seen, ...], found: Divergence) -> None:
        """Replays a difference by the interpreter alone: the one side has the behaviour, no state of the other one does."""
        side, other, trace = self.sides[number], self.sides[1 - number], found.trace
        replay(side.system, trace)
        seen_of = [(INITIAL, side.look(trace.states[0]))]
        labels = [i.label if side.view != STATES else "" for i in trace.steps]
        seen_of += [(label, side.look(state)) for label, state in zip(labels, trace.states[1:], strict=True)]
        if not found.is_step:
            seen_of += [word[-1]] if word[-1] in side.moves(trace.states[-1], plainly=True) else []
        left = self._levels(other, list(word[:-1]), plainly=True)[-1]
        lacks = bool(left) and not any(word[-1] in other.moves(state, plainly=True) for state in left)
        if tuple(seen_of) != word or not lacks:
            raise DifferenceUnconfirmed(
                "the interpreter does not confirm a difference between the behaviours of the two models",
                remedy=f"please report this defect with both models and this behaviour: {trace!r}",
            )


def _reached(steps: Iterable[tuple[State, Instance | None, State | None]]) -> frozenset[State]:
    return frozenset(after for _, _, after in steps if after is not None)


def _changed(system: System, before: State, after: State) -> str:
    """What a step changes, on one line."""
    return "; ".join(map(str, changes(system, before, after))) or "nothing"
