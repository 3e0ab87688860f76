"""The graph of reachable states as arrays: what properties of whole behaviours are decided on."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from streamproof.explicit.cycles import Graph, components
from streamproof.explicit.small_graph import SmallGraph
from streamproof.system.expr import Expr
from streamproof.system.records import dataclass

SMALL = 20_000
"""Graphs of at most so many nodes and edges are done with before SciPy would be loaded."""


def strong_components(
    offsets: npt.NDArray[np.signedinteger[Any]], targets: npt.NDArray[np.int32]
) -> tuple[int, npt.NDArray[np.int32]]:
    """How many strongly connected components a graph has, and which one each node is in.

    The edges of node `k` lead to ``targets[offsets[k]:offsets[k + 1]]``; neither array is changed.
    """
    nodes = len(offsets) - 1
    if max(nodes, len(targets)) <= SMALL:
        return _components_in_python(offsets, targets)
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    # Given parallel edges, `connected_components` (scipy 1.17) may never come back: they are made one first.
    marks = np.zeros(len(targets), dtype=np.int8)
    simple = csr_array((marks, targets.copy(), offsets.astype(np.int32)), shape=(nodes, nodes), copy=False)
    simple.sum_duplicates()
    # The weights are never read; one number stands for all of them.
    weights = np.broadcast_to(np.float64(1), len(simple.indices))
    matrix = csr_array((weights, simple.indices, simple.indptr), shape=(nodes, nodes), copy=False)
    count, of = connected_components(matrix, directed=True, connection="strong")
    return int(count), of


def _components_in_python(
    offsets: npt.NDArray[np.signedinteger[Any]], targets: npt.NDArray[np.int32]
) -> tuple[int, npt.NDArray[np.int32]]:
    nodes = len(offsets) - 1
    graph = Graph(array("q", offsets.tolist()), array("i", targets.tolist()))
    of = np.zeros(nodes, dtype=np.int32)
    count = 0
    for part in components(graph, bytearray(b"\x01" * nodes)):
        of[part] = count
        count += 1
    return count, of


@dataclass(frozen=True)
class StateGraph:
    """Every reachable state, numbered from 0 in the order of discovery, and every step between two of them.

    The steps from state `k` are those numbered ``offsets[k]`` up to, not including, ``offsets[k + 1]``, in the order of the
    instances. All terms are those of the simplified scalar system that was searched.
    """

    initial: int
    """The first so many states are the initial ones."""
    offsets: npt.NDArray[np.int64]
    """Shape (states + 1,)."""
    targets: npt.NDArray[np.int32]
    """Shape (steps,): the state that each step leads to."""
    instances: npt.NDArray[np.integer[Any]]
    """Shape (steps,): the position in `System.instances` of the instance whose step it is."""
    path: Callable[[int], list[int]]
    """A shortest way from an initial state to this one: the numbers of its states, both ends included."""
    evaluate: Callable[[Sequence[Expr]], npt.NDArray[np.bool_]]
    """Boolean terms of one state in every state: shape (terms, states)."""

    @classmethod
    def of(cls, graph: SmallGraph) -> StateGraph:
        """A small graph as arrays."""
        return cls(
            graph.initial,
            np.array(graph.offsets, dtype=np.int64),
            np.array(graph.targets, dtype=np.int32),
            np.array(graph.instances, dtype=np.int32),
            graph.path,
            lambda conditions: np.array([np.frombuffer(row, dtype=np.bool_) for row in graph.evaluate(conditions)]),
        )

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.offsets) - 1

    @property
    def steps(self) -> int:
        """How many steps there are, self-loops and parallel ones included."""
        return len(self.targets)
