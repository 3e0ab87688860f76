"""The state graph as arrays, for the check of temporal properties."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from streamproof.explicit.digraph import Digraph
from streamproof.explicit.writer import LARGEST_BATCH, Writer, load, local_names, reading, shared
from streamproof.system.expr import Expr
from streamproof.system.model import State, System
from streamproof.system.records import dataclass

Truths: TypeAlias = npt.NDArray[np.bool_]
"""Truth values of Boolean terms; shape (terms, states) or (terms, steps)."""


@dataclass(frozen=True)
class StateGraph:
    """All reachable states, numbered from 0 in the order of discovery, and all steps between them.

    The steps from state `k` have the numbers ``offsets[k]`` to ``offsets[k + 1] - 1``, in the order of the instances. All
    terms are terms of the simplified scalar system that was searched.
    """

    initial: int
    """Number of initial states; they come first."""
    offsets: npt.NDArray[np.int64]
    """Shape (states + 1,)."""
    targets: npt.NDArray[np.int32]
    """Shape (steps,): the target state of each step."""
    instances: npt.NDArray[np.integer[Any]]
    """Shape (steps,): the position in `System.instances` of the instance of each step."""
    path: Callable[[int], list[int]]
    """A shortest path from an initial state to this one: the numbers of its states, both ends included."""
    evaluate: Callable[[Sequence[Expr]], Truths]
    """Evaluates terms of one state in all states."""
    evaluate_steps: Callable[[Sequence[Expr]], Truths]
    """Evaluates terms of a state and its successor in all steps."""

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.offsets) - 1

    @property
    def steps(self) -> int:
        """Number of steps, self-loops and parallel steps included."""
        return len(self.targets)

    @property
    def sources(self) -> npt.NDArray[np.int32]:
        """Per step, its source state; computed on each access."""
        return sources(self.offsets)

    @property
    def digraph(self) -> Digraph:
        """The states and steps, without their terms."""
        return Digraph(self.offsets, self.targets)


def sources(offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Per edge, its source node."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))


def path_to(parent: Callable[[int], int], number: int) -> list[int]:
    """The path to a state along its predecessors; the predecessor of an initial state is negative."""
    path = [number]
    while (before := parent(path[-1])) >= 0:
        path.append(before)
    return path[::-1]


class Recorded(Protocol):
    """A complete search with all steps recorded; a subset of the members of `search.Search`."""

    system: System
    initial: int

    @property
    def known(self) -> int:
        """Number of distinct states."""

    def states(self) -> Iterator[State]:
        """The states in the order of discovery."""

    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""

    def steps(self) -> tuple[array[int], array[int], array[int]]:
        """The target of each step, the instance of each step, and the number of steps from each state."""


def state_graph(search: Recorded) -> StateGraph:
    """The state graph of a search by the Python tier."""
    targets, instances, degrees = search.steps()
    offsets = np.zeros(search.known + 1, dtype=np.int64)
    np.cumsum(np.frombuffer(degrees, dtype=np.int32), out=offsets[1:])
    system = search.system

    def evaluate_steps(conditions: Sequence[Expr]) -> Truths:
        from streamproof.system.constraint import twofold

        both, later = twofold(system)
        states = tuple(search.states())
        pairs = (states[a] + states[b] for a, b in zip(sources(offsets).tolist(), targets, strict=True))
        return _evaluate(both, [later(condition) for condition in conditions], pairs, len(targets))

    return StateGraph(
        initial=search.initial,
        offsets=offsets,
        targets=np.frombuffer(targets, dtype=np.int32),
        instances=np.frombuffer(instances, dtype=np.int32),
        path=lambda number: path_to(search.parent, number),
        evaluate=lambda conditions: _evaluate(system, conditions, search.states(), search.known),
        evaluate_steps=evaluate_steps,
    )


def _evaluate(system: System, conditions: Sequence[Expr], states: Iterable[State], count: int) -> Truths:
    judge = _judge(system, conditions)
    found = b"".join(map(judge, _batches(states)))
    return np.frombuffer(found, dtype=np.bool_).reshape(count, len(conditions)).T


def _batches(states: Iterable[State]) -> Iterator[list[State]]:
    remaining = iter(states)
    while batch := list(islice(remaining, LARGEST_BATCH)):
        yield batch


def _judge(system: System, conditions: Sequence[Expr]) -> Callable[[Sequence[State]], bytearray]:
    """A generated function that returns one byte (0 or 1) per state and condition, state by state."""
    writer = Writer(local_names(system))
    common = shared(conditions)
    with writer.block("def judge(_states):"):
        writer.line("_found = bytearray(); _add = _found.append")
        with writer.block("for _state in _states:"):
            writer.line(reading(system, conditions))
            for condition in conditions:
                writer.line(f"_add(1 if {writer.term(condition, common)} else 0)")
        writer.line("return _found")
    return cast("Callable[[Sequence[State]], bytearray]", load("judge", system.name, writer.source))
