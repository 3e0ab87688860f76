"""Every connected scoped graph up to a given size, one per isomorphism class: the graphs of the Loops API.

Two graphs are isomorphic if renaming operators and loops makes them equal. Graphs grow by one operator at a time, the
last one of a topological order, which may be the head of a new loop; feedback edges are added last. A loop is identified
by its head, so a graph is a matrix of relations between operators; the canonical representative of a class is the graph
with the least matrix in the order of `_least`. Between two operators there is at most one edge of each kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, permutations, product

from streamproof_models.scopes import ROOT, Edge, Operator, Pattern, ScopedGraph, StreamScope

OPERATORS = "abcdefghijk"
LOOPS = "LMNOPQRSTUV"

_FORWARD, _FORWARD_ALL, _FEEDBACK, _FEEDBACK_ALL, _AROUND = 1, 2, 4, 8, 16
"""The relation between two operators, as bits: the last is between the head of a loop and the operators directly in it."""

Matrix = tuple[tuple[int, ...], ...]
"""Row and column: from and to. The diagonal has, beside feedback to itself, 64 times the parallelism, and 32 for a head."""

_HEAD, _SUBTASK = 32, 64
_EDGES = _FORWARD | _FORWARD_ALL
_RETURNS = _FEEDBACK | _FEEDBACK_ALL


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
        for name, least in (("loops", 0), ("depth", 0), ("parallelism", 1), ("sources", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}, the least is {least}")
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
    graphs = [_graph(matrix).validate() for matrix in matrices if _connected(matrix)]
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
        return frozenset(((_SUBTASK * p,),) for p in range(1, bounds.parallelism + 1))
    return frozenset(
        _least(larger) for smaller in _grown(operators - 1, bounds) for larger in _with_one_more(smaller, bounds)
    )


def _with_one_more(matrix: Matrix, bounds: Bounds) -> Iterator[Matrix]:
    """Adds an operator without readers: in an existing scope, as the head of a new loop, or as a source."""
    count = len(matrix)
    heads = [v for v in range(count) if matrix[v][v] & _HEAD]
    chains = [_chain(matrix, v) for v in range(count)]
    inputs = [sum(bool(matrix[u][v] & _EDGES) for u in range(count)) for v in range(count)]
    joins = sum(max(0, number - 1) for number in inputs)
    most = count if bounds.joins is None else bounds.joins - joins + 1
    for parallelism in range(1, bounds.parallelism + 1):
        if inputs.count(0) < bounds.sources:
            yield _placed(matrix, None, parallelism * _SUBTASK, ())
        for home in (None, *heads):
            inside = [v for v in range(count) if home is None or home in chains[v]]
            level = 0 if home is None else len(chains[home])
            for read in _inputs(matrix, inside, parallelism, most):
                yield _placed(matrix, home, parallelism * _SUBTASK, read)
                if level < bounds.depth and len(heads) < bounds.loops:
                    yield _placed(matrix, home, parallelism * _SUBTASK + _HEAD, read)


def _chain(matrix: Matrix, v: int) -> tuple[int, ...]:
    """The heads of the loops around an operator, the innermost first; a head is in its own loop."""
    found = [v] if matrix[v][v] & _HEAD else []
    while (outer := next((h for h in range(len(matrix)) if h != v and matrix[h][v] & _AROUND), None)) is not None:
        found.append(outer)
        v = outer
    return tuple(found)


def _inputs(matrix: Matrix, readable: list[int], parallelism: int, most: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Every choice of operators to read, one to `most`, with how each is connected."""
    kinds = {u: _kinds(matrix[u][u] // _SUBTASK, parallelism, _FORWARD) for u in readable}
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
        column[home] |= _AROUND
    rows = [(*row, new) for row, new in zip(matrix, column, strict=True)]
    return (*rows, (*[0] * len(matrix), diagonal))


def _closed(matrix: Matrix, bounds: Bounds) -> Iterator[Matrix]:
    """The same with feedback edges, every loop having at least one."""
    count = len(matrix)
    heads = [v for v in range(count) if matrix[v][v] & _HEAD]
    choices = []
    for head in heads:
        inside = [v for v in range(count) if head in _chain(matrix, v)]
        most = len(inside) if bounds.feedback is None else min(bounds.feedback, len(inside))
        parallelism = matrix[head][head] // _SUBTASK
        choices.append(
            [
                [(v, head, kind) for v, kind in zip(chosen, connected, strict=True)]
                for size in range(1, most + 1)
                for chosen in combinations(inside, size)
                for connected in product(*(_kinds(matrix[v][v] // _SUBTASK, parallelism, _FEEDBACK) for v in chosen))
            ]
        )
    if not heads:
        yield matrix
        return
    for picked in product(*choices):
        rows = [list(row) for row in matrix]
        for v, head, kind in (edge for edges in picked for edge in edges):
            rows[v][head] |= kind
        yield _least(tuple(map(tuple, rows)))


def _connected(matrix: Matrix) -> bool:
    """Whether the graph is connected: two sources may be unrelated."""
    reached, before = {0}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {v for v in range(len(matrix)) for u in reached if (matrix[u][v] | matrix[v][u]) & _EDGES}
    return len(reached) == len(matrix)


# --- one of each class


def _least(matrix: Matrix) -> Matrix:
    """The matrix of the canonical representative of the class.

    Operators are first distinguished by their neighbourhoods; all orders are tried only among those that remain alike.
    """
    count = len(matrix)
    every = range(count)
    colours = [row[v] for v, row in enumerate(matrix)]
    classes = len(set(colours))
    while True:
        around = [
            (colours[v], tuple(sorted((matrix[v][u], matrix[u][v], colours[u]) for u in every if u != v)))
            for v in every
        ]
        ranks = {seen: rank for rank, seen in enumerate(sorted(set(around)))}
        colours = [ranks[seen] for seen in around]
        if len(ranks) == classes:
            break
        classes = len(ranks)
    groups: list[list[int]] = [[] for _ in range(classes)]
    for v in every:
        groups[colours[v]].append(v)
    if classes == count:
        order = [group[0] for group in groups]
        return tuple(tuple(matrix[u][v] for v in order) for u in order)
    best: Matrix | None = None
    for arranged in product(*(permutations(group) for group in groups)):
        order = [v for group in arranged for v in group]
        found = tuple(tuple(matrix[u][v] for v in order) for u in order)
        if best is None or found < best:
            best = found
    assert best is not None
    return best


# --- names


def _graph(matrix: Matrix) -> ScopedGraph:
    """The graph with names: operators in a topological order, loops in that of their heads."""
    order: list[int] = []
    left = list(range(len(matrix)))
    while left:
        free = next(v for v in left if not any(matrix[u][v] & _EDGES for u in left))
        order.append(free)
        left.remove(free)
    names = {v: OPERATORS[at] for at, v in enumerate(order)}
    loops = dict(zip([v for v in order if matrix[v][v] & _HEAD], LOOPS, strict=False))
    operators = []
    for v in order:
        chain = tuple(loops[h] for h in reversed(_chain(matrix, v)))
        operators.append(Operator(names[v], StreamScope(chain) if chain else ROOT, matrix[v][v] // _SUBTASK))
    pairs = [(u, v, matrix[u][v]) for u in order for v in order]
    return ScopedGraph(
        tuple(operators),
        tuple(_edge(names[u], names[v], bits, _FORWARD_ALL) for u, v, bits in pairs if u != v and bits & _EDGES),
        tuple(_edge(names[u], names[v], bits, _FEEDBACK_ALL) for u, v, bits in pairs if bits & _RETURNS),
    )


def _edge(source: str, target: str, bits: int, all_to_all: int) -> Edge:
    return Edge(source, target, Pattern.ALL_TO_ALL if bits & all_to_all else Pattern.POINTWISE)
