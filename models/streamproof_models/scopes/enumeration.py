"""Every connected scoped graph up to a given size, one per isomorphism class: the graphs of the Loops API.

Two graphs are isomorphic if renaming operators and loops makes them equal. Graphs grow by one operator at a time, the
last one of a topological order, which may be the head of a new loop; feedback edges are added last. Between two operators
there is at most one edge of each kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product

from streamproof_models.scopes.graph import ScopedGraph
from streamproof_models.scopes.matrices import (
    AROUND,
    EDGES,
    FEEDBACK,
    FORWARD,
    HEAD,
    OPERATORS,
    SUBTASK,
    Matrix,
    enclosing_heads,
    graph_of,
    least,
)
from streamproof_models.scopes.rules import validate


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds on the size of graphs; at least one operator is a source, and the number of sinks is unlimited.

    `feedback` edges per loop, and `joins`, inputs of operators beyond their first; None: unlimited.
    """

    operators: int
    loops: int = 2
    depth: int = 2
    parallelism: int = 1
    sources: int = 1
    feedback: int | None = 1
    joins: int | None = None

    def __post_init__(self) -> None:
        """Raises `ValueError` for unsatisfiable bounds, or too many operators for names."""
        if not 1 <= self.operators <= len(OPERATORS):
            raise ValueError(f"operators is {self.operators}; 1 to {len(OPERATORS)} are possible")
        for name, minimum in (("loops", 0), ("depth", 0), ("parallelism", 1), ("sources", 1)):
            if getattr(self, name) < minimum:
                raise ValueError(f"{name} is {getattr(self, name)}, the least is {minimum}")
        if self.feedback is not None and self.feedback < 1:
            raise ValueError(f"feedback is {self.feedback}, the least is 1: every loop has a feedback edge")
        if self.joins is not None and self.joins < 0:
            raise ValueError(f"joins is {self.joins}, the least is 0")


def scoped_graphs(bounds: Bounds) -> Iterator[ScopedGraph]:
    """Every graph within the bounds once, by number of operators, then of loops and edges."""
    for operators in range(1, bounds.operators + 1):
        yield from graphs_of(operators, bounds)


def graphs_of(operators: int, bounds: Bounds) -> tuple[ScopedGraph, ...]:
    """The graphs with exactly `operators` operators; each is valid."""
    matrices = {closed for grown in _grown(operators, _without_feedback(bounds)) for closed in _closed(grown, bounds)}
    graphs = [validate(graph_of(matrix)) for matrix in matrices if _connected(matrix)]
    return tuple(sorted(graphs, key=_order))


def _order(graph: ScopedGraph) -> tuple[int, int, int, int, str]:
    scopes = graph.scopes
    depth = max((scope.level for scope in scopes), default=0)
    return (
        len(scopes),
        depth,
        sum(o.parallelism for o in graph.operators),
        len(graph.edges + graph.feedback),
        str(graph),
    )


# --- growing


def _without_feedback(bounds: Bounds) -> Bounds:
    """The cached graphs without closed loops, so that they are generated once."""
    return replace(bounds, operators=len(OPERATORS), feedback=None)


@cache
def _grown(operators: int, bounds: Bounds) -> frozenset[Matrix]:
    """Graphs without feedback edges, each the least of its class."""
    if operators == 1:
        return frozenset(((SUBTASK * p,),) for p in range(1, bounds.parallelism + 1))
    return frozenset(
        least(larger) for smaller in _grown(operators - 1, bounds) for larger in _with_one_more(smaller, bounds)
    )


def _with_one_more(matrix: Matrix, bounds: Bounds) -> Iterator[Matrix]:
    """Adds an operator without readers: in an existing scope, as the head of a new loop, or as a source."""
    count = len(matrix)
    heads = [v for v in range(count) if matrix[v][v] & HEAD]
    chains = [enclosing_heads(matrix, v) for v in range(count)]
    inputs = [sum(bool(matrix[u][v] & EDGES) for u in range(count)) for v in range(count)]
    joins = sum(max(0, number - 1) for number in inputs)
    most = count if bounds.joins is None else bounds.joins - joins + 1
    for parallelism in range(1, bounds.parallelism + 1):
        if inputs.count(0) < bounds.sources:
            yield _placed(matrix, None, parallelism * SUBTASK, ())
        for home in (None, *heads):
            inside = [v for v in range(count) if home is None or home in chains[v]]
            level = 0 if home is None else len(chains[home])
            for read in _inputs(matrix, inside, parallelism, most):
                yield _placed(matrix, home, parallelism * SUBTASK, read)
                if level < bounds.depth and len(heads) < bounds.loops:
                    yield _placed(matrix, home, parallelism * SUBTASK + HEAD, read)


def _inputs(matrix: Matrix, readable: list[int], parallelism: int, most: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Every choice of operators to read, one to `most`, with how each is connected."""
    kinds = {u: _kinds(matrix[u][u] // SUBTASK, parallelism, FORWARD) for u in readable}
    for size in range(1, min(len(readable), most) + 1):
        for chosen in combinations(readable, size):
            for connected in product(*(kinds[u] for u in chosen)):
                yield tuple(zip(chosen, connected, strict=True))


def _kinds(one: int, other: int, pointwise: int) -> tuple[int, ...]:
    """The possible connections of two operators with these parallelisms, as bits; the one after `pointwise` is all-to-all."""
    if one != other:
        return (2 * pointwise,)
    return (pointwise,) if one == 1 else (pointwise, 2 * pointwise)


def _placed(matrix: Matrix, home: int | None, diagonal: int, inputs: Iterable[tuple[int, int]]) -> Matrix:
    column = [0] * len(matrix)
    for u, kind in inputs:
        column[u] = kind
    if home is not None:
        column[home] |= AROUND
    rows = [(*row, new) for row, new in zip(matrix, column, strict=True)]
    return (*rows, (*[0] * len(matrix), diagonal))


def _closed(matrix: Matrix, bounds: Bounds) -> Iterator[Matrix]:
    """The same with feedback edges, every loop having at least one."""
    count = len(matrix)
    heads = [v for v in range(count) if matrix[v][v] & HEAD]
    choices = []
    for head in heads:
        inside = [v for v in range(count) if head in enclosing_heads(matrix, v)]
        most = len(inside) if bounds.feedback is None else min(bounds.feedback, len(inside))
        parallelism = matrix[head][head] // SUBTASK
        choices.append(
            [
                [(v, head, kind) for v, kind in zip(chosen, connected, strict=True)]
                for size in range(1, most + 1)
                for chosen in combinations(inside, size)
                for connected in product(*(_kinds(matrix[v][v] // SUBTASK, parallelism, FEEDBACK) for v in chosen))
            ]
        )
    if not heads:
        yield matrix
        return
    for picked in product(*choices):
        rows = [list(row) for row in matrix]
        for v, head, kind in (edge for edges in picked for edge in edges):
            rows[v][head] |= kind
        yield least(tuple(map(tuple, rows)))


def _connected(matrix: Matrix) -> bool:
    """Whether the graph is connected: two sources may be unrelated."""
    reached, before = {0}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {v for v in range(len(matrix)) for u in reached if (matrix[u][v] | matrix[v][u]) & EDGES}
    return len(reached) == len(matrix)
