"""Scoped graphs as matrices of relations between operators, and the canonical representative of an isomorphism class.

A loop is identified by its head. Of the matrices of isomorphic graphs, `least` gives the least.
"""

from __future__ import annotations

from itertools import permutations, product

from streamproof_models.scopes.graph import ROOT, Edge, Operator, Pattern, ScopedGraph, StreamScope

OPERATORS = "abcdefghijk"
LOOPS = "LMNOPQRSTUV"

FORWARD, FORWARD_ALL, FEEDBACK, FEEDBACK_ALL, AROUND = 1, 2, 4, 8, 16
"""The relation between two operators, as bits: the last is between the head of a loop and the operators directly in it."""

Matrix = tuple[tuple[int, ...], ...]
"""Row and column: from and to. The diagonal has, beside feedback to itself, 64 times the parallelism, and 32 for a head."""

HEAD, SUBTASK = 32, 64
EDGES = FORWARD | FORWARD_ALL
RETURNS = FEEDBACK | FEEDBACK_ALL


def enclosing_heads(matrix: Matrix, v: int) -> tuple[int, ...]:
    """The heads of the loops around an operator, the innermost first; a head is in its own loop."""
    found = [v] if matrix[v][v] & HEAD else []
    while (outer := next((h for h in range(len(matrix)) if h != v and matrix[h][v] & AROUND), None)) is not None:
        found.append(outer)
        v = outer
    return tuple(found)


def least(matrix: Matrix) -> Matrix:
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


def graph_of(matrix: Matrix) -> ScopedGraph:
    """The graph with names: operators in a topological order, loops in that of their heads."""
    order: list[int] = []
    left = list(range(len(matrix)))
    while left:
        free = next(v for v in left if not any(matrix[u][v] & EDGES for u in left))
        order.append(free)
        left.remove(free)
    names = {v: OPERATORS[at] for at, v in enumerate(order)}
    loops = dict(zip([v for v in order if matrix[v][v] & HEAD], LOOPS, strict=False))
    operators = []
    for v in order:
        chain = tuple(loops[h] for h in reversed(enclosing_heads(matrix, v)))
        operators.append(Operator(names[v], StreamScope(chain) if chain else ROOT, matrix[v][v] // SUBTASK))
    pairs = [(u, v, matrix[u][v]) for u in order for v in order]
    return ScopedGraph(
        tuple(operators),
        tuple(_edge(names[u], names[v], bits, FORWARD_ALL) for u, v, bits in pairs if u != v and bits & EDGES),
        tuple(_edge(names[u], names[v], bits, FEEDBACK_ALL) for u, v, bits in pairs if bits & RETURNS),
    )


def _edge(source: str, target: str, bits: int, all_to_all: int) -> Edge:
    return Edge(source, target, Pattern.ALL_TO_ALL if bits & all_to_all else Pattern.POINTWISE)
