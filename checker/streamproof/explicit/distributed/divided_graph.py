"""Cycles and fair cycles in a graph that is divided over the files of a shared folder: the driver of `graph_tasks`.

Sets of nodes are computed as in a graph in mapped files, round by round. In a round every range computes its words from the
words of all ranges at the end of the round before; ranges of whose ghosts no word has changed have nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

import numpy as np

from streamproof.base.errors import SystemFailure, TooLarge
from streamproof.base.records import dataclass, replace
from streamproof.explicit.cluster import Executor
from streamproof.explicit.compiled.packed_states import Layout
from streamproof.explicit.compiled.steps import conditions_code, module
from streamproof.explicit.distributed import graph_tasks, tasks
from streamproof.explicit.distributed.graph_tasks import Linked
from streamproof.explicit.distributed.shared_folder import Array
from streamproof.explicit.distributed.tasks import TaskPlan, ranges_of
from streamproof.explicit.mapped_graph import Constraints, Readers
from streamproof.explicit.set_search import FairSet
from streamproof.system.expr import Expr

T = TypeVar("T")
J = TypeVar("J")

STEP_BYTES = 40
"""Memory of a task for each step of a range, at most."""


@dataclass(frozen=True, slots=True)
class StatesInFiles:
    """The states of a complete search, for each partition its files. `code` writes all steps of a state."""

    plan: TaskPlan
    layout: Layout
    files: tuple[tuple[str, ...], ...]
    counts: tuple[int, ...]
    """Number of states of each partition."""
    steps: int
    initial: int
    """Number of initial states; they come first."""
    code: str

    @property
    def count(self) -> int:
        """Number of states."""
        return sum(self.counts)


class DividedGraph:
    """The graph of states in files, made with the first question. Raises `TooLarge` if the folder cannot be used."""

    def __init__(self, states: StatesInFiles, executor: Executor, name: str) -> None:
        """`name`: the beginning of the names of its files."""
        self._states, self._executor, self._name = states, executor, name
        self.plan, self.folder = states.plan, states.plan.folder
        ranges = max(states.plan.partitions, -(-states.steps * STEP_BYTES // states.plan.room))
        self.bounds = tuple(ranges_of(0, states.count, min(ranges, states.count)))
        self.linked: list[Linked] = []
        self._numbers = 0
        self._valuations: dict[tuple[Expr, ...], list[str]] = {}

    def new_name(self, what: str) -> str:
        """A name for files."""
        self._numbers += 1
        return f"{self._name}/{what}-{self._numbers}"

    def run(self, work: Callable[[TaskPlan, J], T], jobs: Sequence[J]) -> list[T]:
        """The results of a task for all jobs."""
        return self._executor.run(partial(work, self.plan), jobs, lambda: None) if jobs else []

    def has_cycle(self, instances: int) -> bool:
        """Whether there is a cycle of steps."""
        one = np.ones((1, 1), dtype=np.bool_)
        readers = Readers(one, one, np.zeros((1, 1), dtype=np.uint64), _NONE, 0, stays=False)

        def answer() -> bool:
            with closing(DividedSet(self, readers, Constraints(instances, (), ()), ())) as among:
                return among.shrink()

        return self._answer(answer)

    def accepts(
        self,
        members: Readers,
        constraints: Constraints,
        every: Readers,
        places: Sequence[int],
        starts: Sequence[int],
        conditions: Sequence[Expr],
    ) -> bool:
        """Whether a fair cycle that `members` read can be reached. `every` reads the behaviours up to it, from one of
        `starts` on; `places` has for each of them its place in `members`, or -1. `conditions`: those of valuations."""

        def answer() -> bool:
            with closing(DividedSet(self, members, constraints, conditions)) as among:
                if not among.shrink():
                    return False
                none = Constraints(constraints.instances, (), ())
                with closing(DividedSet(self, every, none, conditions, (among, places))) as before:
                    return before.marks_one_of(starts, self._states.initial)

        return self._answer(answer)

    def _answer(self, question: Callable[[], bool]) -> bool:
        try:
            if not self.linked:
                self._link()
            return question()
        except SystemFailure as failure:
            raise TooLarge(failure.message, remedy=failure.remedy) from None

    def _link(self) -> None:
        states, parts = self._states, range(self.plan.partitions)
        self.folder.make(self._name)
        code = tasks.stored_code(self.folder, states.code, ["expand"])
        names = self.new_name("steps")
        written = self.run(
            graph_tasks.write_steps,
            [graph_tasks.WriteSteps(code, states.files[part], f"{names}-{part}") for part in parts],
        )
        sources = tuple(file for files in written for file in files)
        assert sum(count for _, count in sources) == states.steps, "every step was generated again"
        names = self.new_name("numbers")
        numbered = self.run(
            graph_tasks.number_steps,
            [
                graph_tasks.NumberSteps(
                    part, states.files[part], states.counts[part], sources, self.bounds, f"{names}-{part}"
                )
                for part in parts
            ],
        )
        self.folder.remove(name for name, _ in sources)
        found = tuple(name for names in numbered for name in names)
        names = self.new_name("graph")
        self.linked = self.run(
            graph_tasks.link,
            [graph_tasks.Link(k, found, self.bounds, f"{names}-{k}") for k in range(len(self.bounds) - 1)],
        )
        self.folder.remove(found)
        assert sum(one.steps for one in self.linked) == states.steps, "every step leads to a state"

    def valuations(self, conditions: Sequence[Expr]) -> list[str]:
        """For each range the file with the values of conditions in its states."""
        key = tuple(conditions)
        if key not in self._valuations:
            states = self._states
            names = self.new_name("evaluated")
            evaluated: list[list[list[int]]] = []
            if conditions:
                text = module(conditions_code(states.layout, conditions))
                code = tasks.stored_code(self.folder, text, ["judge"])
                jobs = [
                    graph_tasks.Evaluate(code, len(conditions), files, self.bounds, f"{names}-{part}")
                    for part, files in enumerate(states.files)
                ]
                evaluated = self.run(graph_tasks.evaluate, jobs)
            values = self.new_name("values")
            self._valuations[key] = self.run(
                graph_tasks.gather,
                [
                    graph_tasks.Gather(
                        self.bounds[k],
                        self.bounds[k + 1],
                        tuple((f"{names}-{part}", tuple(places[k])) for part, places in enumerate(evaluated)),
                        f"{values}-{k}",
                    )
                    for k in range(len(self.bounds) - 1)
                ],
            )
            self.folder.remove(f"{names}-{part}" for part in range(len(evaluated)))
        return self._valuations[key]


class DividedSet(FairSet):
    """A set of nodes of a divided graph; `inside`: another set whose nodes get bit 0, and the places of readers in it."""

    def __init__(
        self,
        graph: DividedGraph,
        readers: Readers,
        constraints: Constraints,
        conditions: Sequence[Expr],
        inside: tuple[DividedSet, Sequence[int]] | None = None,
    ) -> None:
        super().__init__(replace(readers, valuations=_NONE), constraints)
        self._graph = graph
        self._values = graph.valuations(conditions)
        name = graph.new_name("words")
        self.words: list[str] = graph.run(
            graph_tasks.enter,
            [
                graph_tasks.Enter(
                    self._values[k],
                    self.readers,
                    None if inside is None else (inside[0].words[k], tuple(inside[1])),
                    f"{name}-{k}",
                )
                for k in range(len(graph.linked))
            ],
        )
        self._live = set(range(len(self.words)))

    def _some_left(self) -> bool:
        return bool(self._live)

    def _round(self, owners: Array, accepts: Array, **values: int) -> int:
        removed = self._settle(owners, accepts, **values)
        return removed + sum(one.removed for one in self._once(sorted(self._live), owners, accepts, values, prune=True))

    def _settle(self, owners: Array, accepts: Array, **values: int) -> int:
        """Compute all words until nothing changes; returns the number of nodes removed."""
        removed, due = 0, sorted(self._live)
        while due:
            found = self._once(due, owners, accepts, values, prune=False)
            removed += sum(one.removed for one in found)
            changed = {k for k, one in zip(due, found, strict=True) if one.changed}
            due = [k for k in sorted(self._live) if changed & set(self._graph.linked[k].owners)]
        return removed

    def _once(
        self, due: Sequence[int], owners: Array, accepts: Array, values: dict[str, int], *, prune: bool
    ) -> list[graph_tasks.SettledWords]:
        graph, name = self._graph, self._graph.new_name("words")
        found = graph.run(
            graph_tasks.settle,
            [
                graph_tasks.SettleNodes(
                    k, graph.linked[k].name, self._values[k], self.readers, tuple(self.words), graph.bounds,
                    owners, accepts, tuple(values.items()), prune, f"{name}-{k}",
                )
                for k in due
            ],
        )  # fmt: skip
        old = [self.words[k] for k, one in zip(due, found, strict=True) if one.changed]
        for k, one in zip(due, found, strict=True):
            self.words[k] = one.name
            if not one.left:
                self._live.discard(k)
        graph.folder.remove(old)
        return found

    def close(self) -> None:
        """Delete the words."""
        self._graph.folder.remove(self.words)

    def marks_one_of(self, starts: Sequence[int], states: int) -> bool:
        """Whether a node with bit 0 can be reached from one of the first `states` states with one of the readers `starts`."""
        none: Any = np.zeros(self.constraints.instances, dtype=np.uint64)
        self._settle(none, np.zeros_like(self.readers.accepts))
        for k, name in enumerate(self.words):
            first, last = self._graph.bounds[k : k + 2]
            if first < states:
                words = self._graph.folder.array(name, np.uint64).reshape(-1, last - first)
                if (words[list(starts), : states - first] & np.uint64(1)).any():
                    return True
        return False


_NONE: Array = np.empty(0, dtype=np.uint16)
