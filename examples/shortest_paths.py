"""Shortest paths from one vertex as a loop: the head passes distances on, and vertices behind it relax their edges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamproof_runtime import Context, Job, Stream

START = "a"
EDGES = [
    ("a", "b", 4),
    ("a", "c", 1),
    ("c", "b", 2),
    ("b", "d", 5),
    ("c", "d", 8),
    ("d", "e", 3),
    ("e", "a", 1),
    ("f", "a", 1),
]


def job() -> Job:
    """The distance of each vertex that can be reached."""
    made = Job("shortest_paths")

    def relaxed(context: Context, record: tuple[str, int]) -> Iterable[Any]:
        vertex, distance = record
        if distance < context.state.get("distance", distance + 1):
            context.state["distance"] = distance
            yield "distance", vertex, distance
            for _, target, length in (e for e in EDGES if e[0] == vertex):
                yield "offer", target, distance + length

    def paths(offers: Stream) -> tuple[Stream, Stream]:
        vertices = offers.key_by(lambda r: r[0]).process("relax", relaxed, parallelism=3)
        back = vertices.filter(lambda r: r[0] == "offer").map(lambda r: r[1:])
        return back, vertices.filter(lambda r: r[0] == "distance").map(lambda r: r[1:])

    made.source("start", [(START, 0)]).iterate("Paths", paths).collect_latest("distances")
    return made


def expected() -> dict[str, object]:
    """The distances by relaxing all edges again and again."""
    distance = {START: 0}
    for _ in EDGES:
        for a, b, length in EDGES:
            if a in distance:
                distance[b] = min(distance.get(b, distance[a] + length), distance[a] + length)
    return {"distances": distance}
