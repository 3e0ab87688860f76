"""The state graph of a system, and searches of its mutants that start from it.

A mutant changes few instances. The steps of all others from the states of the original are known; what is evaluated are the
changed instances, and every instance in the states that the original does not reach. Generated Python does both.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from streamproof.base.options import SearchOptions
from streamproof.base.records import replace
from streamproof.explicit.exploration import Exploration
from streamproof.explicit.level_search import Budget, LevelSearch, SearchEvent, SearchTask, Stop, path_to, watches_of
from streamproof.explicit.search import starts
from streamproof.explicit.state_graph import StateGraph, Truths, sources
from streamproof.explicit.successors import Expand, Judge, StepHit, expander
from streamproof.explicit.writer import (
    LARGEST_BATCH,
    Hit,
    batches,
    counter,
    evaluator,
    inspector,
    largest,
)
from streamproof.mutation.mutants import Mutant
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Action, Instance, Kind, State, System
from streamproof.transform.assume import simplify
from streamproof.transform.constraint import twofold
from streamproof.transform.scalarise import Scalarised, scalarise

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers: TypeAlias = npt.NDArray[np.int64]

MOST_STATES = 100_000
"""Number of states above which a system is not kept as a graph for its mutants."""
MOST_NEW = 50_000
"""Number of states that the original lacks above which another search takes over."""
ENOUGH = 1_000
"""Number of states that the original lacks above which the search ends after a violation."""
MOST_ROWS = 1 << 26
"""Bytes of truth values that are kept."""


class KnownGraph:
    """The states and steps of a system after a complete search, and what is known of them."""

    def __init__(self, original: Exploration, system: System, properties: Sequence[str]) -> None:
        """`system` is the one that was searched. The `properties` hold of it."""
        self.scalarised = scalarise(system)
        self.system = simplify(self.scalarised.system)
        self.properties = tuple(self.system.property(name) for name in properties)
        self.states = list(original.search.states())
        self.numbers = {state: number for number, state in enumerate(self.states)}
        graph = original.search.graph()
        self.initial = graph.initial
        self.offsets = np.asarray(graph.offsets, dtype=np.int64)
        self.targets = np.asarray(graph.targets, dtype=np.int64)
        self.instances = np.asarray(graph.instances, dtype=np.int64)
        self.steps = [(k, p) for k, p in enumerate(self.properties) if p.kind is Kind.STEP]
        watches = watches_of(
            [(k, p) for k, p in enumerate(self.properties) if p.kind in (Kind.INVARIANT, Kind.REACHABLE, Kind.TEMPORAL)]
        )
        self.inspect = inspector(self.system, watches) if watches else None
        self._rows: dict[Expr, Truths] = {}
        self.watched: list[tuple[int, bool, Truths]] = []
        for watch in watches:
            condition, wrong = self.rows((watch.condition, watch.mistake))
            self.watched += [(watch.number, False, condition & ~wrong), (watch.number, True, wrong)]
        self.watched = [one for one in self.watched if one[2].any()]
        """The watches that are true in some state: the number of the property, whether it is a mistake, and where."""
        self.terminal = b.FALSE if self.system.terminal is None else self.system.terminal
        self._judges: dict[int, Judge] = {}
        self._others: tuple[str | None, Numbers, Expand | None] = ("", np.zeros(0, dtype=np.int64), None)

    def rows(self, conditions: Sequence[Expr]) -> Truths:
        """The values of conditions in all states; shape (conditions, states)."""
        missing = [condition for condition in dict.fromkeys(conditions) if condition not in self._rows]
        if (len(self._rows) + len(missing)) * len(self.states) > MOST_ROWS:
            self._rows = {}
            missing = list(dict.fromkeys(conditions))
        if missing:
            found = truths(self.system, missing, self.states)
            self._rows.update(zip(missing, found, strict=True))
        return np.array([self._rows[condition] for condition in conditions], dtype=np.bool_).reshape(
            len(conditions), len(self.states)
        )

    def others(self, action: str | None) -> tuple[Numbers, Expand | None]:
        """The numbers of the instances of all other actions, and their successor function; the newest is kept."""
        if self._others[0] != action or self._others[2] is None:
            actions = tuple(a for a in self.system.actions if a.name != action)
            numbers = [at for at, i in enumerate(self.system.instances) if i.action != action]
            self._others = (action, np.array(numbers, dtype=np.int64), self.expander(actions) if numbers else None)
        return self._others[1:]

    def expander(self, actions: Sequence[Action]) -> Expand:
        """A successor function that also checks the step properties."""
        return expander(
            replace(self.system, actions=tuple(actions)), self.steps, edges=False, graph=True, judges=self._judges
        )


def truths(system: System, conditions: Sequence[Expr], states: Sequence[State]) -> Truths:
    """The values of conditions in states; shape (conditions, states)."""
    found = b"".join(map(evaluator(system, conditions), batches(states)))
    return np.frombuffer(found, dtype=np.bool_).reshape(len(states), len(conditions)).T


def by_key(instances: Iterable[Instance]) -> dict[object, list[int]]:
    """The numbers of the instances of each key. Which of several takes a step, as of the branches of an action, is no
    difference, unless in fairness."""
    found: dict[object, list[int]] = {}
    for number, instance in enumerate(instances):
        found.setdefault(instance.key, []).append(number)
    return found


class ChangedSystem:
    """A mutant in the terms of a known graph: which steps of the graph it has, and which instances are changed."""

    def __init__(self, known: KnownGraph, mutant: Mutant) -> None:
        self.known, self.begins_elsewhere = known, mutant.kind == "initial value"
        system = mutant.system
        own = () if mutant.action is None else (system.action(mutant.action),)
        part = scalarise(replace(system, actions=own, properties=(), lemmas=(), terminal=None, derived=()))
        simple = simplify(part.system)
        self.scalarised = Scalarised(
            system, _with(known.scalarised.system, part.system, system), known.scalarised.leaves
        )
        self.system = _with(known.system, simple, system)
        before, after = known.system.instances, self.system.instances
        theirs = by_key(after)
        self.counterpart = np.full(len(before), -1, dtype=np.int64)
        """The number in the mutant of each instance that is not changed; -1: it is."""
        for key, some in by_key(before).items():
            others = theirs.get(key, [])
            if [before[at] for at in some] == [after[at] for at in others]:
                self.counterpart[some] = others
        self.is_same = self.counterpart >= 0
        self.changed = sorted(set(range(len(after))).difference(self.counterpart.tolist()))
        """The numbers of the changed instances."""
        now = {v.name: b.var(v.name, v.sort) for v in self.system.variables}
        still = [all(term is now[name] for name, term in i.updates) for i in after]
        self.is_still = np.array(still, dtype=np.bool_)
        """Whether each instance changes nothing: its steps have the number of the state in the list that was given."""
        self._action = mutant.action

    @cached_property
    def successors(self) -> list[tuple[Numbers, Expand]]:
        """Functions that together compute all successors of a state, with the numbers of their instances in the mutant."""
        numbers, others = self.known.others(self._action)
        found = [] if others is None else [(self.counterpart[numbers], others)]
        own = np.array([at for at, i in enumerate(self.system.instances) if i.action == self._action], dtype=np.int64)
        if len(own):
            assert self._action is not None, "it has instances"
            found.append((own, self.known.expander((self.system.action(self._action),))))
        return found

    @cached_property
    def expand(self) -> Expand:
        """The successor function of the changed instances."""
        some = tuple(self.system.instances[at] for at in self.changed)
        return self.known.expander((replace(self.system.action(some[0].action), instances=some),))

    def first_difference(self) -> int | None:
        """The first state of the graph from which the steps differ, in the order of its search; None: there is none."""
        known = self.known
        ours = ~self.is_same
        if not ours.any() and not self.changed:
            return None
        changed, seen = np.array(self.changed, dtype=np.int64), dict(known.numbers)
        labels: dict[object, int] = {}
        before, after = (
            np.array(
                [labels.setdefault((i.key, i.fair, i.listed), len(labels)) for i in some.instances], dtype=np.int64
            )
            for some in (known.system, self.system)
        )
        mask = ours[known.instances]
        ends = np.concatenate(([0], np.cumsum(mask)))[known.offsets]
        origins = np.repeat(np.arange(len(known.states)), np.diff(ends))
        was = origins, before[known.instances[mask]], known.targets[mask]
        size, first = 64, 0
        while first < len(known.states):
            some = known.states[first : first + size]
            done, now = len(some), (np.zeros(0, dtype=np.int64),) * 3
            if self.changed:
                noted = array("i"), array("i"), array("i")
                done = self.expand(some, 0, seen, [], array("i"), array("i"), [], 1 << 60, noted)[0]
                targets, instances, degrees = (np.array(one, dtype=np.int64) for one in noted)
                rows = np.repeat(np.arange(first, first + len(degrees)), degrees)
                instances = changed[instances[: len(rows)]]
                now = rows, after[instances], np.where(self.is_still[instances], rows, targets[: len(rows)])
            edges = slice(ends[first], ends[first + done])
            differ = _first_difference(_in_order(*(one[edges] for one in was)), _in_order(*now))
            if differ is not None or done < len(some):
                return first + done if differ is None else differ
            first, size = first + len(some), min(2 * size, LARGEST_BATCH)
        return None


def _in_order(rows: Numbers, labels: Numbers, targets: Numbers) -> Numbers:
    """The set of some steps: rows of the sources, labels and targets, in this order."""
    found = np.stack((rows, labels, targets))[:, np.lexsort((targets, labels, rows))]
    return found[:, np.append(True, (found[:, 1:] != found[:, :-1]).any(axis=0))[: found.shape[1]]]


def _first_difference(was: Numbers, now: Numbers) -> int | None:
    """The first row of which two sets of steps in order have other steps."""
    size = min(was.shape[1], now.shape[1])
    differ = np.flatnonzero((was[:, :size] != now[:, :size]).any(axis=0))
    at = int(differ[0]) if len(differ) else size
    return min((int(one[0, at]) for one in (was, now) if at < one.shape[1]), default=None)


def _with(whole: System, part: System, mutant: System) -> System:
    """The scalar system of a mutant: that of the original with the actions and initial values of `part`."""
    own = {action.name: action for action in part.actions}
    actions = tuple(own.get(action.name, action) for action in whole.actions)
    return replace(
        whole,
        actions=actions,
        variables=part.variables,
        initially=part.initially,
        progress=mutant.progress,
    )


class MutantSearch(LevelSearch):
    """The breadth-first search of a mutant on the graph of the original.

    A *place* is the number of a state in the graph or, from its number of states on, of a state that the original lacks.
    """

    expanded: int = 0
    least: int = 0
    most: int = 0
    faulty: int = -1

    def __init__(self, changed: ChangedSystem, options: SearchOptions) -> None:
        known = changed.known
        super().__init__(SearchTask(changed.scalarised, changed.system, known.properties, Budget(options)))
        self._known, self._changed = known, changed
        self._order: list[int] = []
        """The places in the order of discovery."""
        self._numbers = np.full(len(known.states), -1, dtype=np.int64)
        """The number of each place; -1: not found."""
        self._extra: list[State] = []
        """The states that the original lacks."""
        self._seen = dict(known.numbers)
        self._parents: list[int] = []
        self._by: list[int] = []
        """The instance of the step by which each state was found, or -1."""
        self._edges: list[tuple[Numbers, Numbers, Numbers]] = []
        """Sources and targets, by number and place, and instances."""
        self._mistakes: dict[int, SearchEvent] = {}
        kept = changed.is_same[known.instances]
        self._kept_offsets = np.concatenate(([0], np.cumsum(kept)))[known.offsets]
        self._kept = known.targets[kept], changed.counterpart[known.instances[kept]]
        self._is_terminal = known.rows([known.terminal])[0]
        self._changed_numbers = np.array(changed.changed, dtype=np.int64)

    # --- the search

    def _start(self) -> None:
        places = list(range(self._known.initial))
        if self._changed.begins_elsewhere:
            states = [state for batch in starts(self.scalarised, self.system) for state in batch]
            self._extra = [state for state in states if state not in self._seen]
            self._seen.update(zip(self._extra, range(len(self._seen), len(self._seen) + len(self._extra)), strict=True))
            places = [self._seen[state] for state in states]
        none = np.full(len(places), -1, dtype=np.int64)
        self._find(np.array(places, dtype=np.int64), none, none)
        self.initial = len(self._order)
        self.levels.append(self.initial)
        self._look(0)
        self._end_level()

    def _find(self, places: Numbers, parents: Numbers, instances: Numbers) -> None:
        """New states; their numbers are the next ones. Each has its predecessor, and the instance of the step from it."""
        more = len(self._known.states) + len(self._extra) - len(self._numbers)
        if more > 0:
            more = max(more, len(self._numbers))
            self._numbers = np.concatenate((self._numbers, np.full(more, -1, dtype=np.int64)))
        self._numbers[places] = np.arange(len(self._order), len(self._order) + len(places))
        self._order += places.tolist()
        self._parents += parents.tolist()
        self._by += instances.tolist()

    def _level(self) -> None:
        last = len(self._order)
        self.levels.append(0)
        while self.expanded < last and not self.stopped:
            first = self.expanded
            some = self._order[first : min(first + LARGEST_BATCH, last)]
            had = len(self._order)
            self._expand(first, some)
            self.levels[-1] = len(self._order) - last
            self._look(had)
            if self.faulty >= 0:
                self.stopped = Stop.MISTAKE
            elif self.stopped or len(self._extra) > MOST_NEW:
                self.stopped = Stop.HANDOVER
            elif len(self._order) > self.budget.max_states:
                self.stopped = Stop.STATES
            else:
                self.stopped = self.budget.spent()
            self._report()
        if not self.stopped and len(self._extra) > ENOUGH and self._is_violated():
            self.stopped = Stop.VIOLATIONS
        if not self.levels[-1]:
            self.levels.pop()
        self._end_level()

    def _expand(self, first: int, places: list[int]) -> None:
        """Expand states, the first of which has the number `first`."""
        known, count = self._known, len(self._known.states)
        every = np.array(places, dtype=np.int64)
        old = np.flatnonzero(every < count)
        new = np.flatnonzero(every >= count)
        begin = self._kept_offsets[every[old]]
        degrees = self._kept_offsets[every[old] + 1] - begin
        steps = np.repeat(begin - np.cumsum(degrees) + degrees, degrees) + np.arange(int(degrees.sum()))
        found = [(np.repeat(old, degrees), self._kept[0][steps], self._kept[1][steps])]
        if self._changed.changed and len(old):
            states = [known.states[place] for place in every[old].tolist()]
            found.append(self._run(self._changed.expand, self._changed_numbers, states, old, every, first))
        if len(new):
            states = [self._extra[place - count] for place in every[new].tolist()]
            for numbers, expand in self._changed.successors:
                found.append(self._run(expand, numbers, states, new, every, first))
        origins, targets, instances = (np.concatenate(parts) for parts in zip(*found, strict=True))
        in_order = np.lexsort((instances, origins))
        origins, targets, instances = origins[in_order], targets[in_order], instances[in_order]
        self._edges.append((origins + first, targets, instances))
        if self.faulty < 0 and not self.stopped:
            self._look_for_deadlock(first, every, np.bincount(origins, minlength=len(places)))
        self.expanded += len(places)
        unique, at = np.unique(targets, return_index=True)
        fresh = unique >= len(self._numbers)
        fresh[~fresh] = self._numbers[unique[~fresh]] < 0
        chosen = np.sort(at[fresh])
        self._find(targets[chosen], origins[chosen] + first, instances[chosen])

    def _run(
        self, expand: Expand, numbers: Numbers, states: Sequence[State], rows: Numbers, every: Numbers, first: int
    ) -> tuple[Numbers, Numbers, Numbers]:
        """The steps of instances from states: rows of the sources, places of the targets, numbers of the instances."""
        noted = array("i"), array("i"), array("i")
        hits: list[StepHit] = []
        limit = len(self._known.states) + MOST_NEW
        done, *_, faulty = expand(states, 0, self._seen, self._extra, array("i"), array("i"), hits, limit, noted)
        for prop, row, instance, mistake in hits:
            event = SearchEvent(first + int(rows[row]), int(numbers[instance]), bool(mistake))
            (self._mistakes if mistake else self.events).setdefault(prop, event)
        if faulty >= 0 and self.faulty < 0:
            self.faulty = first + int(rows[faulty])
        targets, instances, degrees = (np.array(one, dtype=np.int64) for one in noted)
        sources_ = np.repeat(rows[: len(degrees)], degrees)
        if faulty < 0 and done < len(states):
            self.stopped = Stop.HANDOVER  # the others were not expanded
        instances = numbers[instances[: len(sources_)]]
        return (
            sources_,
            np.where(self._changed.is_still[instances], every[sources_], targets[: len(sources_)]),
            instances,
        )

    def _is_violated(self) -> bool:
        asked = {prop.kind for prop in self.properties}
        decided = (self.properties[at].kind for at in (*self.events, *self._mistakes))
        return (self.stuck >= 0 and Kind.DEADLOCK in asked) or any(kind is not Kind.REACHABLE for kind in decided)

    def _look_for_deadlock(self, first: int, places: Numbers, degrees: Numbers) -> None:
        for row in np.flatnonzero(degrees == 0).tolist() if self.stuck < 0 else ():
            place = int(places[row])
            if place < len(self._known.states):
                ends = bool(self._is_terminal[place])
            else:
                ends = bool(truths(self.system, [self._known.terminal], [self._state_at(place)])[0, 0])
            if not ends:
                self.stuck = first + row
                return

    def _look(self, first: int) -> None:
        """The properties of single states, in the states from the number `first` on."""
        count = len(self._known.states)
        places = np.array(self._order[first:], dtype=np.int64)
        old = np.flatnonzero(places < count)
        for prop, mistake, row in self._known.watched:
            at = np.flatnonzero(row[places[old]])
            if len(at):
                self._decide(prop, first + int(old[at[0]]), mistake=mistake)
        new = np.flatnonzero(places >= count)
        if len(new) and self._known.inspect is not None:
            hits: list[Hit] = []
            self._known.inspect([self._state_at(place) for place in places[new].tolist()], 0, hits)
            for prop, number, mistake in hits:  # in order, so that the first one counts
                self._decide(prop, first + int(new[number]), mistake=bool(mistake))

    def _decide(self, prop: int, number: int, *, mistake: bool) -> None:
        (self._mistakes if mistake else self.events).setdefault(prop, SearchEvent(number, None, mistake))

    def _end_level(self) -> None:
        self._settle(self._mistakes)
        self._mistakes = {}

    def _abandon(self) -> None:
        self._end_level()

    # --- results

    @property
    def known(self) -> int:
        """Number of distinct states."""
        return len(self._order)

    @property
    def generated(self) -> Sequence[int]:
        """Successors per instance, duplicates included."""
        return self._counted([instances for _, _, instances in self._edges])

    @property
    def distinct(self) -> Sequence[int]:
        """New states, per instance."""
        return self._counted([np.array([by for by in self._by if by >= 0], dtype=np.int64)])

    def _counted(self, parts: Sequence[Numbers]) -> list[int]:
        size = len(self.system.instances)
        found: list[int] = sum((np.bincount(part, minlength=size) for part in parts), np.zeros(size, int)).tolist()
        return found

    def _state_at(self, place: int) -> State:
        count = len(self._known.states)
        return self._known.states[place] if place < count else self._extra[place - count]

    def state(self, number: int) -> State:
        """A scalar state by its number."""
        return self._state_at(self._order[number])

    def states(self) -> Iterator[State]:
        """The scalar states in the order of discovery."""
        return map(self._state_at, self._order)

    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""
        return self._parents[number]

    def instance(self, before: int, after: int) -> int | None:
        """The instance by which a state was found from its predecessor."""
        return self._by[after] if self._parents[after] == before and before >= 0 else None

    def ever_true(self, conditions: Sequence[Expr]) -> list[bool]:
        """For each condition, whether it is true in at least one known state."""
        return [bool(row.any()) for row in self._evaluate(conditions)]

    def count(self, condition: Expr) -> tuple[int, ...]:
        """The number of known states of each level in which a condition is true."""
        counted, states = counter(self.system, [condition]), list(self.states())
        ends = np.cumsum([0, *self.levels])
        return tuple(counted(states[ends[k] : ends[k + 1]])[0] for k in range(len(self.levels)))

    def largest(self, term: Expr) -> int:
        """The largest value of an integer term in the known states."""
        return largest(self.system, term, self.states())

    def _evaluate(self, conditions: Sequence[Expr]) -> Truths:
        places = np.array(self._order, dtype=np.int64)
        old = places < len(self._known.states)
        found = np.empty((len(conditions), len(places)), dtype=np.bool_)
        found[:, old] = self._known.rows(conditions)[:, places[old]]
        if not old.all():
            new = [self._state_at(place) for place in places[~old].tolist()]
            found[:, ~old] = truths(self.system, conditions, new)
        return found

    def cycle(self) -> tuple[list[int], bool] | None:
        """The states of a cycle, and whether none has fewer steps to and around it; None if there is no cycle."""
        return self.graph().digraph.lasso(self.levels, self.budget.tuning.cycle_work)

    def graph(self) -> StateGraph:
        """The state graph; a state that was not expanded has no steps."""
        origins, places, instances = (np.concatenate(parts) for parts in zip(*self._edges, strict=True))
        offsets = np.zeros(self.known + 1, dtype=np.int64)
        np.cumsum(np.bincount(origins, minlength=self.known), out=offsets[1:])
        targets = self._numbers[places].astype(np.int32)

        def evaluate_steps(conditions: Sequence[Expr]) -> Truths:
            both, later = twofold(self.system)
            states = list(self.states())
            pairs = [states[a] + states[b] for a, b in zip(sources(offsets).tolist(), targets.tolist(), strict=True)]
            return truths(both, [later(condition) for condition in conditions], pairs)

        return StateGraph(
            initial=self.initial,
            offsets=offsets,
            targets=targets,
            instances=instances.astype(np.int32),
            path=lambda number: path_to(self.parent, number),
            evaluate=self._evaluate,
            evaluate_steps=evaluate_steps,
            tuning=self.budget.tuning,
        )
