"""The graph of reachable states as plain lists: what `graph.StateGraph` is, where loading NumPy would take longer than all
that is done with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, TypeAlias, cast

from streamproof.explicit.loader import load
from streamproof.explicit.watch import LARGEST_BATCH, reading
from streamproof.explicit.writer import Writer, local_names, shared
from streamproof.system.expr import Expr
from streamproof.system.model import State, System
from streamproof.system.records import dataclass

if TYPE_CHECKING:
    from streamproof.explicit.search import Search

MOST_STATES = 5_000
"""Graphs of more states, or of more steps than `MOST_STEPS`, are better done with as arrays: then the time that lists take
comes near that of loading NumPy and SciPy, some 0.15 s."""
MOST_STEPS = 60_000

Judge: TypeAlias = Callable[[Sequence[State]], bytearray]
"""Called with states; gives a byte, 0 or 1, per state and condition, state by state."""


class Truths:
    """In which states conditions are true; what has been evaluated is remembered."""

    def __init__(self, evaluate: Callable[[Sequence[Expr]], list[bytes]]) -> None:
        self._evaluate = evaluate
        self._known: dict[Expr, bytes] = {}

    def __call__(self, conditions: Sequence[Expr]) -> list[bytes]:
        """For each condition a byte per state, 0 or 1."""
        fresh = [condition for condition in dict.fromkeys(conditions) if condition not in self._known]
        if fresh:
            self._known.update(zip(fresh, self._evaluate(fresh), strict=True))
        return [self._known[condition] for condition in conditions]


@dataclass(frozen=True)
class SmallGraph:
    """Every reachable state, numbered from 0 in the order of discovery, and every step between two of them.

    The steps from state `k` are those numbered ``offsets[k]`` up to, not including, ``offsets[k + 1]``, in the order of the
    instances. All terms are those of the simplified scalar system that was searched.
    """

    initial: int
    """The first so many states are the initial ones."""
    offsets: Sequence[int]
    targets: Sequence[int]
    """Per step, the state that it leads to."""
    instances: Sequence[int]
    """Per step, the position in `System.instances` of the instance whose step it is."""
    path: Callable[[int], list[int]]
    """A shortest way from an initial state to this one: the numbers of its states, both ends included."""
    evaluate: Truths
    """Boolean terms of one state in every state: for each term a byte per state, 0 or 1."""

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.offsets) - 1

    @property
    def steps(self) -> int:
        """How many steps there are, self-loops and parallel ones included."""
        return len(self.targets)


def is_small(states: int, steps: int) -> bool:
    """Whether a graph of this size is done with sooner as plain lists."""
    return states <= MOST_STATES and steps <= MOST_STEPS


def small_graph(search: Search) -> SmallGraph:
    """Every step between the states that a complete search has found, few as they are."""
    targets, instances, counts = search.steps()
    return SmallGraph(
        initial=search.initial,
        offsets=[0, *accumulate(counts)],
        targets=targets.tolist(),
        instances=instances.tolist(),
        path=lambda number: path(search.parent, number),
        evaluate=Truths(lambda conditions: evaluate(search.system, conditions, search.states())),
    )


def path(parent: Callable[[int], int], number: int) -> list[int]:
    """The way to a state along its predecessors; that of an initial one is negative."""
    way = [number]
    while (before := parent(way[-1])) >= 0:
        way.append(before)
    return way[::-1]


def evaluate(system: System, conditions: Sequence[Expr], states: Iterable[State]) -> list[bytes]:
    """Boolean terms of one state: for each of them a byte per state."""
    judge = judge_of(system, conditions)
    found = b"".join(map(judge, batches(states)))
    return [found[at :: len(conditions)] for at in range(len(conditions))]


def batches(states: Iterable[State]) -> Iterator[list[State]]:
    """The states, some at a time."""
    remaining = iter(states)
    while batch := list(islice(remaining, LARGEST_BATCH)):
        yield batch


def judge_of(system: System, conditions: Sequence[Expr]) -> Judge:
    """A function that evaluates conditions in every state that it is given."""
    writer = Writer(local_names(system))
    common = shared(conditions)
    with writer.block("def judge(_states):"):
        writer.line("_found = bytearray(); _add = _found.append")
        with writer.block("for _state in _states:"):
            writer.line(reading(system, conditions))
            for condition in conditions:
                writer.line(f"_add(1 if {writer.term(condition, common)} else 0)")
        writer.line("return _found")
    return cast(Judge, load("judge", system.name, writer.source))
