"""PageRank as a loop without rounds: vertices push what has changed, and the loop ends when no vertex has anything to push.

The loop has no other end than the baton: nobody counts rounds or messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamproof_runtime import Context, Job

EDGES = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 2), (3, 4), (4, 0), (5, 3), (5, 4), (4, 5), (1, 5)]
VERTICES = sorted({vertex for edge in EDGES for vertex in edge})
DAMPING = 0.85
LEAST = 3e-4
"""A vertex keeps smaller changes to itself."""
TOLERANCE = LEAST * len(VERTICES) / (1 - DAMPING)


def job() -> Job:
    """The rank of each vertex; every vertex has an edge out."""
    made = Job("pagerank")
    vertices = made.source("vertices", [(v, [b for a, b in EDGES if a == v]) for v in VERTICES])

    def known(context: Context, record: tuple[int, list[int]]) -> Iterable[Any]:
        context.state["out"] = record[1]
        return pushed(context, (1 - DAMPING) / len(VERTICES))

    def changed(context: Context, record: tuple[int, float]) -> Iterable[Any]:
        return pushed(context, record[1])

    def pushed(context: Context, change: float) -> Iterable[Any]:
        state = context.state
        state["change"] = state.get("change", 0.0) + change
        if "out" not in state or state["change"] < LEAST:
            return
        change, state["change"] = state["change"], 0.0
        state["rank"] = state.get("rank", 0.0) + change
        yield "rank", context.key, state["rank"]
        for neighbour in state["out"]:
            yield "change", neighbour, DAMPING * change / len(state["out"])

    def ranks(loop: Any) -> tuple[Any, Any]:
        rank = loop.process("rank", known, changed, parallelism=2, feedback_key=lambda record: record[0])
        changes = rank.filter(lambda r: r[0] == "change").map(lambda r: r[1:]).key_by(lambda r: r[0])
        return changes, rank.filter(lambda r: r[0] == "rank").map(lambda r: r[1:])

    vertices.key_by(lambda record: record[0]).iterate_with_feedback("Ranks", ranks).collect_latest("ranks")
    return made


def expected() -> dict[str, object]:
    """The ranks by iteration, all vertices at once."""
    rank = {v: 1 / len(VERTICES) for v in VERTICES}
    degree = {v: sum(a == v for a, _ in EDGES) for v in VERTICES}
    for _ in range(200):
        rank = {
            v: (1 - DAMPING) / len(VERTICES) + DAMPING * sum(rank[a] / degree[a] for a, b in EDGES if b == v)
            for v in VERTICES
        }
    return {"ranks": rank}
