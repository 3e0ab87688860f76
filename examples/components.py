"""Connected components as a loop: every vertex takes the least label that it hears of, and passes it on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamproof_runtime import Context, Job

EDGES = [(1, 2), (2, 3), (4, 5), (5, 6), (6, 4), (7, 8), (9, 9)]
VERTICES = sorted({vertex for edge in EDGES for vertex in edge})


def job() -> Job:
    """The least vertex of the component of each vertex."""
    made = Job("components")
    neighbours = {v: sorted({b for a, b in EDGES if a == v} | {a for a, b in EDGES if b == v}) for v in VERTICES}
    vertices = made.source("vertices", list(neighbours.items()), parallelism=2)

    def known(context: Context, record: tuple[int, list[int]]) -> Iterable[Any]:
        context.state["neighbours"] = record[1]
        return taken(context, min(record[0], context.state.get("heard", record[0])))

    def heard(context: Context, record: tuple[int, int]) -> Iterable[Any]:
        context.state["heard"] = min(record[1], context.state.get("heard", record[1]))
        return taken(context, context.state["heard"])

    def taken(context: Context, label: int) -> Iterable[Any]:
        state = context.state
        if "neighbours" not in state or label >= state.get("label", label + 1):
            return
        state["label"] = label
        yield "label", context.key, label
        for neighbour in state["neighbours"]:
            yield "heard", neighbour, label

    def labels(loop: Any) -> tuple[Any, Any]:
        label = loop.process("label", known, heard, parallelism=2, feedback_key=lambda record: record[0])
        back = label.filter(lambda r: r[0] == "heard").map(lambda r: r[1:]).key_by(lambda r: r[0])
        return back, label.filter(lambda r: r[0] == "label").map(lambda r: r[1:])

    vertices.key_by(lambda record: record[0]).iterate_with_feedback("Labels", labels).collect_latest("labels")
    return made


def expected() -> dict[str, object]:
    """The labels by merging the ends of each edge."""
    label = {v: v for v in VERTICES}
    for _ in VERTICES:
        for a, b in EDGES:
            label[a] = label[b] = min(label[a], label[b])
    return {"labels": label}
