"""Job graphs: vertices with a parallelism, joined by edges with an exchange type.

A *job graph* has vertices, each standing for as many *tasks* as its parallelism, and edges, each saying
that the tasks of one vertex read what the tasks of another write. What one producer task writes into one
*dataset* is a *partition*; several edges may read one dataset, which is written once all the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

Task: TypeAlias = tuple[str, int]
"""A parallel instance of a vertex: (vertex name, subtask counted from 0)."""

Partition: TypeAlias = tuple[str, int]
"""What one producer task writes into one dataset: (dataset name, subtask of the producer)."""


class JobGraphError(ValueError):
    """An invalid job graph, or an unknown task or partition; the message is one sentence."""


class Pattern(Enum):
    """Which producer subtasks a consumer subtask reads."""

    POINTWISE = "POINTWISE"
    """A contiguous share, so that shares are as even as integer division allows (`Connection`)."""
    ALL_TO_ALL = "ALL_TO_ALL"
    """Every one."""


class Exchange(Enum):
    """The exchange type of a partition between producer and consumer, with Flink's names.

    FLIP-1 uses other words. Its *pipelined* and *blocking* results are `PIPELINED` and `BLOCKING`. Its
    *caching* result keeps everything sent, on disk if need be, and can be read while it is written:
    `HYBRID_FULL`. Its *memory-only caching* result is a caching result that may be dropped at any time for
    lack of memory: an exchange `HYBRID_FULL` whose partitions the environment may make unavailable at any
    time, or, if they are never relied on, `HYBRID_SELECTIVE`.
    """

    PIPELINED = "PIPELINED"
    PIPELINED_BOUNDED = "PIPELINED_BOUNDED"
    PIPELINED_APPROXIMATE = "PIPELINED_APPROXIMATE"
    BLOCKING = "BLOCKING"
    BLOCKING_PERSISTENT = "BLOCKING_PERSISTENT"
    HYBRID_FULL = "HYBRID_FULL"
    HYBRID_SELECTIVE = "HYBRID_SELECTIVE"

    @property
    def glues(self) -> bool:
        """Whether the consumer must run together with the producer, which puts both into one region."""
        return self in (Exchange.PIPELINED, Exchange.PIPELINED_BOUNDED)

    @property
    def rereadable(self) -> bool:
        """Whether a restarted consumer can read an available partition again from its start."""
        return not self.glues and self is not Exchange.HYBRID_SELECTIVE

    @property
    def hybrid(self) -> bool:
        """Whether the consumer may read a partition while it is written, or after."""
        return self in (Exchange.HYBRID_FULL, Exchange.HYBRID_SELECTIVE)


@dataclass(frozen=True, slots=True)
class Vertex:
    """An operator (or chain of operators) of a job with its number of parallel tasks, at least 1."""

    name: str
    parallelism: int = 1

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks of this vertex in subtask order."""
        return tuple((self.name, subtask) for subtask in range(self.parallelism))


@dataclass(frozen=True, slots=True)
class Edge:
    """`target` reads the dataset that `source` writes. Edges naming the same dataset share it."""

    source: str
    target: str
    pattern: Pattern
    exchange: Exchange
    dataset: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"


@dataclass(frozen=True, slots=True)
class JobGraph:
    """A valid job graph: an acyclic multigraph of vertices and edges; vertices may be listed in any order.

    Raises:
        JobGraphError: a name is empty or used twice, a parallelism is below 1, an edge joins an unknown
            vertex or a vertex with itself, edges form a cycle, or edges share a dataset without agreeing
            on its producer, pattern and exchange.
    """

    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...] = ()

    def __post_init__(self) -> None:
        _check_vertices(self.vertices)
        _check_edges(self.vertices, self.edges)
        _check_acyclic(self.edges)

    @classmethod
    def of_text(cls, text: str) -> JobGraph:
        """The graph that `text` describes. Raises `JobGraphError`."""
        try:
            data = json.loads(text)
            vertices = tuple(Vertex(str(name), parallelism) for name, parallelism in data["vertices"])
            edges = tuple(Edge(s, t, Pattern(p), Exchange(x), d) for s, t, p, x, d in data["edges"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise JobGraphError(f"{text[:40]!r} is no job graph as text ({type(error).__name__}: {error})") from None
        return cls(vertices, edges)

    @property
    def text(self) -> str:
        """As JSON on one line, which `of_text` reads."""
        edges = [[e.source, e.target, e.pattern.value, e.exchange.value, e.dataset] for e in self.edges]
        vertices = [[v.name, v.parallelism] for v in self.vertices]
        return json.dumps({"vertices": vertices, "edges": edges}, separators=(",", ":"), ensure_ascii=False)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks, vertex after vertex."""
        return tuple(task for vertex in self.vertices for task in vertex.tasks)

    @property
    def datasets(self) -> dict[str, Vertex]:
        """Every dataset with the vertex that writes it, in the order of the edges."""
        vertices = {vertex.name: vertex for vertex in self.vertices}
        return {edge.dataset: vertices[edge.source] for edge in self.edges}

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """All partitions, dataset after dataset."""
        return tuple(
            (dataset, subtask) for dataset, producer in self.datasets.items() for subtask in range(producer.parallelism)
        )


def _check_vertices(vertices: tuple[Vertex, ...]) -> None:
    seen: set[str] = set()
    for vertex in vertices:
        if not vertex.name:
            raise JobGraphError("a vertex has an empty name; give every vertex a name")
        if vertex.name in seen:
            raise JobGraphError(f"two vertices are named {vertex.name!r}; names must differ")
        seen.add(vertex.name)
        parallelism = vertex.parallelism
        if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
            raise JobGraphError(
                f"vertex {vertex.name!r} has parallelism {parallelism!r}; it must be a whole number from 1 up"
            )


def _check_edges(vertices: tuple[Vertex, ...], edges: tuple[Edge, ...]) -> None:
    names = {vertex.name for vertex in vertices}
    written: dict[str, Edge] = {}
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in names:
                raise JobGraphError(f"edge {edge} joins {end!r}, which is not a vertex of the graph")
        if edge.source == edge.target:
            raise JobGraphError(f"edge {edge} joins a vertex with itself; a job graph is acyclic")
        if not edge.dataset:
            raise JobGraphError(f"edge {edge} names no dataset; give the data it carries a name")
        first = written.setdefault(edge.dataset, edge)
        if (first.source, first.pattern, first.exchange) != (edge.source, edge.pattern, edge.exchange):
            raise JobGraphError(
                f"edges {first} and {edge} share dataset {edge.dataset!r} but differ in producer, pattern "
                "or exchange; name two datasets or make them agree"
            )


def _check_acyclic(edges: tuple[Edge, ...]) -> None:
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for edge in edges:
        sorter.add(edge.target, edge.source)
    try:
        sorter.prepare()
    except CycleError as error:
        around: list[str] = error.args[1][:-1]
        first = around.index(min(around))
        cycle = " -> ".join([*around[first:], *around[: first + 1]])
        raise JobGraphError(f"edges form a cycle, {cycle}; a job graph is acyclic") from None
