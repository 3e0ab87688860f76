"""Paths of a state graph that cover its instances, its pairs of actions, and the branches of its rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from streamproof.explicit.exploration import Exploration
from streamproof.explicit.level_search import path_to
from streamproof.system.expr import Expr, Ite, children, subterms
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Instance, State, System
from streamproof.system.verdict import Trace

LONGEST = 60
"""Number of steps from which a script is not prolonged."""
LOOKED_AT = 20_000
"""Number of steps that are evaluated in search of open branches."""
NEAR = 400
"""Number of states that are looked at for a near goal."""


class Covering:
    """The goals of a complete exploration, and behaviours that reach all of them."""

    def __init__(self, explored: Exploration) -> None:
        self._search = explored.search
        self._system = explored.system
        graph = explored.search.graph()
        self._offsets = _list(graph.offsets)
        self._targets = _list(graph.targets)
        self._labels = _list(graph.instances.astype(np.int32))
        names = {a.name: at for at, a in enumerate(self._system.actions)}
        self._action = [names[i.action] for i in self._system.instances]
        labels = np.asarray(graph.instances, dtype=np.int64)
        actions = np.asarray(self._action or [0], dtype=np.int64)[labels]
        kinds, first = np.unique(labels, return_index=True)
        self._instances = set(kinds.tolist())
        self._first: list[tuple[int, int | None]] = [(int(edge), None) for edge in first]
        self._pairs: set[tuple[int, int]] = set()
        sources = graph.sources
        for after in range(len(names)):
            out = np.zeros(graph.states, dtype=bool)
            out[sources[actions == after]] = True
            leading = np.flatnonzero(out[graph.targets])
            befores, where = np.unique(actions[leading], return_index=True)
            for before, at in zip(befores.tolist(), where.tolist(), strict=True):
                self._pairs.add((before, after))
                self._first.append((int(leading[at]), after))
        self.instances, self.pairs = len(self._instances), len(self._pairs)
        self._sources = _list(sources)

    def traces(self) -> Iterator[Trace]:
        """Behaviours that take every instance, and every pair of actions, deepest goals first."""
        # Edges are in the order of their sources, which is breadth first.
        for edge, after in sorted(self._first, key=lambda goal: (-goal[0], goal[1] is None, goal[1] or 0)):
            instance = self._labels[edge]
            open_ = instance in self._instances if after is None else (self._action[instance], after) in self._pairs
            if open_:
                yield self._trace(self._path(edge, after))

    def taking(self, branches: OpenBranches) -> Iterator[Trace]:
        """Behaviours that take the open branches, each at the first step that does, in breadth-first order."""
        decode, state = self._search.scalarised.decode, self._search.state
        open_ = [at for at in range(len(self._action)) if branches.is_open(at)]
        for edge in np.flatnonzero(np.isin(self._labels, open_)).tolist():
            if branches.looked > LOOKED_AT:
                return
            label = self._labels[edge]
            if branches.is_open(label) and branches.take(label, decode(state(self._sources[edge]))):
                yield self._trace(self._path(edge, None))

    def _path(self, edge: int, after: int | None) -> list[int]:
        """The edges of a behaviour through an edge and a next action, prolonged while a goal is near. Covers its goals."""
        path: list[int] = []
        numbers = path_to(self._search.parent, self._sources[edge])
        for source, target in pairwise(numbers):
            self._cover(path, self._between(source, target))
        self._cover(path, edge)
        if after is not None:
            state = self._targets[edge]
            edges = range(self._offsets[state], self._offsets[state + 1])
            self._cover(path, next(e for e in edges if self._action[self._labels[e]] == after))
        while len(path) < LONGEST:
            more = self._near(path[-1])
            if not more:
                break
            for each in more:
                self._cover(path, each)
        return path

    def _between(self, source: int, target: int) -> int:
        """An edge between two states, if possible one whose instance is not covered yet."""
        edges = [e for e in range(self._offsets[source], self._offsets[source + 1]) if self._targets[e] == target]
        return next((e for e in edges if self._labels[e] in self._instances), edges[0])

    def _cover(self, path: list[int], edge: int) -> None:
        self._instances.discard(self._labels[edge])
        if path:
            self._pairs.discard((self._action[self._labels[path[-1]]], self._action[self._labels[edge]]))
        path.append(edge)

    def _near(self, last: int) -> list[int]:
        """The edges to a goal that is near, after an edge; none if there is none."""
        queue, before = deque([last]), {self._targets[last]: (last, -1)}
        while queue and len(before) < NEAR:
            edge = queue.popleft()
            state, action = self._targets[edge], self._action[self._labels[edge]]
            for following in range(self._offsets[state], self._offsets[state + 1]):
                label = self._labels[following]
                if label in self._instances or (action, self._action[label]) in self._pairs:
                    way = [following]
                    while edge != last:
                        way.append(edge)
                        edge = before[self._targets[edge]][1]
                    return way[::-1]
                target = self._targets[following]
                if target not in before:
                    before[target] = (following, edge)
                    queue.append(following)
        return []

    def _trace(self, path: list[int]) -> Trace:
        decode, state = self._search.scalarised.decode, self._search.state
        numbers = [self._sources[path[0]], *(self._targets[edge] for edge in path)]
        steps = tuple(self._system.instances[self._labels[edge]] for edge in path)
        return Trace(tuple(decode(state(number)) for number in numbers), steps)


class OpenBranches:
    """The outcomes of conditions inside rules that no script has taken yet, by action and place of the condition."""

    def __init__(self, system: System) -> None:
        self.system, self._interpreter = system, Interpreter(system)
        self.looked = 0
        """Number of steps whose conditions were evaluated."""
        self.taken = 0
        """Number of outcomes that were taken."""
        self._outcomes: list[set[Any]] = []
        for instance in system.instances:
            conditions = [t.cond for t in subterms(*(expr for _, expr in instance.updates)) if isinstance(t, Ite)]
            places = {self._place(instance, cond) for cond in conditions}
            self._outcomes.append({(place, outcome) for place in places for outcome in (False, True)})
        self._open = set[Any]().union(*self._outcomes)

    def is_open(self, number: int) -> bool:
        """Whether an instance has an outcome that was not taken."""
        return not self._open.isdisjoint(self._outcomes[number])

    def take(self, number: int, state: State) -> bool:
        """Whether an instance takes such an outcome in a state, which is then no longer open."""
        self.looked += 1
        instance, evaluation = self.system.instances[number], self._interpreter.evaluation(state)
        stack, done, found = [expr for _, expr in instance.updates], set[Expr](), set[Any]()
        while stack:
            term = stack.pop()
            if term in done:
                continue
            done.add(term)
            if isinstance(term, Ite):
                outcome = bool(evaluation.value(term.cond))
                found.add((self._place(instance, term.cond), outcome))
                stack += (term.cond, term.then if outcome else term.other)
            else:
                stack += children(term)
        found &= self._open
        self._open -= found
        self.taken += len(found)
        return bool(found)

    @staticmethod
    def _place(instance: Instance, condition: Expr) -> Any:
        return instance.action, condition if condition.loc is None else condition.loc


def _list(numbers: Any) -> memoryview:
    """An array whose elements are read one by one."""
    return np.ascontiguousarray(numbers).data
