"""The failover machine of one recorded job: its own job graph, Flink's names, Flink's choices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from streamproof import Spec, System
from streamproof.conformance.flink import JobGraph as LoggedGraph
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, Pattern, Topology, Vertex
from streamproof_models.failover.machine import Failover
from streamproof_specs.failover import complete_result, no_mixed_versions

FOLLOWED = {Exchange.PIPELINED, Exchange.PIPELINED_BOUNDED, Exchange.BLOCKING, Exchange.BLOCKING_PERSISTENT}
"""Exchange types that the machine knows; the functions on job graphs know all."""


@dataclass(frozen=True, slots=True)
class RecordedGraph:
    """A job graph for the machine, with the way back to Flink's identifiers."""

    graph: JobGraph
    label: Mapping[str, str]
    """Vertex id -> name of the vertex in the machine."""
    dataset: Mapping[str, str]
    """Flink's dataset id -> the machine's dataset name."""
    producers: Mapping[str, int]
    """The machine's dataset name -> parallelism of its producer."""


def recorded_graph(logged: LoggedGraph) -> RecordedGraph:
    """The job graph of a run for the machine.

    Raises:
        ValueError: the graph has gaps, or an exchange type that the machine does not know.
    """
    if not logged.complete:
        raise ValueError("; ".join(logged.missing))
    label: dict[str, str] = {}
    for vertex in logged.vertices:
        name = vertex.name or vertex.id
        taken = name in label.values()
        label[vertex.id] = f"{name} [{vertex.id[:6]}]" if taken else name
    parallelism = {v.id: v.parallelism or 1 for v in logged.vertices}
    edges: list[Edge] = []
    names: dict[str, str] = {}
    producers: dict[str, int] = {}
    for at, edge in enumerate(logged.edges):
        exchange = Exchange(edge.exchange)
        if exchange not in FOLLOWED:
            raise ValueError(
                f"the exchange type {exchange.value} of {label[edge.source]} -> {label[edge.target]} is not followed"
            )
        name = edge.dataset[:8] if edge.dataset else f"{label[edge.source]}>{label[edge.target]}"
        if not edge.dataset and name in producers:
            name = f"{name} ({at})"
        if edge.dataset:
            name = edge.dataset
            names[edge.dataset] = name
        producers[name] = parallelism[edge.source]
        edges.append(Edge(label[edge.source], label[edge.target], Pattern(edge.pattern), exchange, name))
    vertices = tuple(Vertex(label[v.id], parallelism[v.id]) for v in logged.vertices)
    return RecordedGraph(JobGraph(vertices, tuple(edges)), label, names, producers)


def task_name(vertex: str, subtask: int, parallelism: int) -> str:
    """A task as Flink's logs name it."""
    return f"{vertex} ({subtask + 1}/{parallelism})"


class RecordedFailover(Failover):
    """The machine following a recorded run: lenient budgets, Flink's statuses, Flink's region merging and no fence."""

    name = "failover"

    fenced: bool = False
    merging: str = "logical-region"
    overtaking: bool = True
    detailed: bool = True
    lenient: bool = True

    def __init__(self, recorded: RecordedGraph, failed: Collection[str], **given: Any) -> None:
        self._graph, self._failed = recorded.graph, failed
        super().__init__(**given)

    def may_fail(self) -> tuple[str, ...]:
        """Those that did, so that the machine is no larger than the run asks for."""
        return tuple(t for t in self.tasks if t in self._failed)

    def job_graph(self) -> JobGraph:
        """The run's own."""
        return self._graph

    def task_names(self, topology: Topology) -> tuple[str, ...]:
        """As in the logs."""
        sizes = {v.name: v.parallelism for v in topology.graph.vertices}
        return tuple(task_name(v, i, sizes[v]) for v, i in topology.tasks)


def recorded_system(recorded: RecordedGraph, restarts: int, failed: Collection[str]) -> tuple[System, RecordedFailover]:
    """The machine of one job in whose log the tasks `failed` fail and `restarts` decisions are taken, and its model."""
    from streamproof.language.compile import compile_model

    model = RecordedFailover(recorded, failed, restarts=restarts)
    return compile_model(model, (no_mixed_versions, complete_result)), model


__all__ = ["RecordedFailover", "RecordedGraph", "Spec", "recorded_graph", "recorded_system", "task_name"]
