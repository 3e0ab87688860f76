"""A sweep over every scoped graph up to a size, for models with a parameter `topology` that accepts graphs as text."""

from __future__ import annotations

from collections.abc import Iterator

from streamproof import Generated, Sample, Sweep
from streamproof_models.scopes.enumeration import Bounds, scoped_graphs


def scoped_samples(
    operators: int, loops: int, depth: int, parallelism: int, sources: int, joins: int | None, feedback: int | None
) -> Iterator[Sample]:
    """Every graph within the bounds with at least one edge, by number of operators, then of loops.

    Raises `ValueError`.
    """
    if operators < 2:
        raise ValueError(f"operators is {operators}, the least is 2: one to send and one to receive")
    for graph in scoped_graphs(Bounds(operators, loops, depth, parallelism, sources, feedback, joins)):
        if not graph.edges:
            continue
        size = {
            "operators": len(graph.operators),
            "loops": len(graph.scopes),
            "depth": max((scope.level for scope in graph.scopes), default=0),
            "edges": len(graph.edges) + len(graph.feedback),
            "subtasks": sum(operator.parallelism for operator in graph.operators),
        }
        yield Sample(str(graph), size)


EVERY_GRAPH = Generated(
    "topology",
    "graphs",
    scoped_samples,
    {"operators": 4, "loops": 2, "depth": 2, "parallelism": 1, "sources": 1, "joins": None, "feedback": 1},
    by="operators",
    about={
        "operators": "Largest number of operators of a generated graph.",
        "loops": "Largest number of loops.",
        "depth": "Largest nesting of loops.",
        "parallelism": "Largest number of subtasks of an operator.",
        "sources": "Largest number of sources.",
        "joins": "Largest number of inputs of operators beyond their first, in total.",
        "feedback": "Largest number of feedback edges of a loop.",
    },
)


def every_graph(*properties: str) -> Sweep:
    """The sweep over them that decides these properties, or all."""
    return Sweep({}, properties, generated=EVERY_GRAPH)
