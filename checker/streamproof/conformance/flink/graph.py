"""The job graph of a run, as far as it is known: vertices, edges, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from streamproof.system.records import dataclass

Pattern = Literal["POINTWISE", "ALL_TO_ALL"]
"""How subtasks are connected: each consumer with some producers, or with all."""

Origin = Literal["rest", "log"]
"""Where the graph comes from: the REST API, which states it, or the logs, from which it is gathered."""

_POINTWISE: Final = ("FORWARD", "RESCALE")
MOST_PARALLELISM: Final = 1 << 15
"""Flink's own limit, of the number of key groups."""
_ALL_TO_ALL: Final = (
    "REBALANCE",
    "HASH",
    "BROADCAST",
    "SHUFFLE",
    "GLOBAL",
    "CUSTOM",
    "REDISTRIBUTE",
    "HASH PARTITION",
    "RANGE PARTITION",
    "CUSTOM PARTITION",
)


@dataclass(frozen=True, slots=True)
class Vertex:
    """A job vertex. `name` and `parallelism` are None where only the identifier is known."""

    id: str
    name: str | None
    parallelism: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """`target` reads what `source` writes.

    `exchange` is Flink's partition type (`BLOCKING`, `PIPELINED_BOUNDED`, ...), `dataset` the intermediate dataset that
    carries the edge, `ship` the strategy that the REST API states, `input` the place among the target's inputs. None
    is unknown.
    """

    source: str
    target: str
    pattern: Pattern | None = None
    exchange: str | None = None
    dataset: str | None = None
    ship: str | None = None
    input: int | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """An intermediate dataset: what a vertex writes, whoever reads it.

    `subpartitions` are those of each partition seen (all equal for ALL_TO_ALL), by producing subtask.
    """

    id: str
    producer: str
    exchange: str | None
    subpartitions: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobGraph:
    """Vertices and edges of one job.

    `complete` says that every vertex and edge is there with parallelism, pattern and exchange, so that regions and
    restart sets can be computed. If it is False, `missing` says in sentences what is not known.
    """

    job: str
    name: str
    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]
    datasets: tuple[Dataset, ...]
    complete: bool
    missing: tuple[str, ...]
    origin: Origin

    def vertex(self, vertex: str) -> Vertex:
        """The vertex with this identifier; raises `KeyError` if there is none."""
        for found in self.vertices:
            if found.id == vertex:
                return found
        raise KeyError(f"job {self.job} has no vertex {vertex}")


def pattern_of(ship: str | None) -> Pattern | None:
    """How a ship strategy connects subtasks (as Flink's job graph generators decide); None for one not known."""
    match (ship or "").upper():
        case strategy if strategy in _POINTWISE:
            return "POINTWISE"
        case strategy if strategy in _ALL_TO_ALL:
            return "ALL_TO_ALL"
        case _:
            return None


def same_connections(producers: int, consumers: int) -> bool:
    """Whether POINTWISE and ALL_TO_ALL connect these subtasks alike: so it is if either side has one subtask."""
    return producers == 1 or consumers == 1


def possible(parallelism: int) -> int | None:
    """A parallelism as a log or an answer claims it; None for one that no job of Flink's has."""
    return parallelism if parallelism <= MOST_PARALLELISM else None


def producers_of(pattern: Pattern, producers: int, consumers: int, consumer: int) -> range:
    """The producing subtasks that a consuming subtask reads; all numbers from 0, parallelism from 1."""
    if pattern == "ALL_TO_ALL":
        return range(producers)
    if producers >= consumers:
        return range(consumer * producers // consumers, (consumer + 1) * producers // consumers)
    # Producer s serves the consumers from ceil(s*c/p) up to ceil((s+1)*c/p), so consumer i reads producer floor(i*p/c).
    producer = consumer * producers // consumers
    return range(producer, producer + 1)


def gaps(vertices: tuple[Vertex, ...], edges: tuple[Edge, ...]) -> list[str]:
    """What these vertices and edges leave open, in sentences."""
    names = {vertex.id: vertex.name or vertex.id for vertex in vertices}
    missing = [f"the parallelism of {names[vertex.id]!r}" for vertex in vertices if vertex.parallelism is None]
    for edge in edges:
        ends = f"the edge from {names.get(edge.source, edge.source)!r} to {names.get(edge.target, edge.target)!r}"
        if edge.pattern is None:
            missing.append(f"how {ends} connects subtasks")
        if edge.exchange is None:
            missing.append(f"the exchange type of {ends}")
        missing += [f"the vertex {end}" for end in (edge.source, edge.target) if end not in names]
    return missing
