"""The failover machine of one recorded job: its own job graph, Flink's names, Flink's choices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from streamproof import System, action, require
from streamproof.conformance.events import Event
from streamproof.conformance.flink import JobGraph as LoggedGraph
from streamproof.language.compile import compile_model
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Pattern, Topology, Vertex
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
    size: Mapping[str, int]
    """Vertex id -> parallelism."""
    dataset: Mapping[str, str]
    """Flink's dataset id -> the machine's dataset name."""
    source: Mapping[str, str]
    """The machine's dataset name -> id of the vertex that writes it."""

    def task(self, vertex: str, subtask: int) -> str | None:
        """The task as the logs name it; None for one that the graph does not have."""
        if vertex not in self.label or not 0 <= subtask < self.size[vertex]:
            return None
        return task_name(self.label[vertex], subtask, self.size[vertex])

    def task_of(self, event: Event) -> str | None:
        """The task that an event about an attempt speaks of."""
        return self.task(event.args["vertex"], event.args["subtask"])

    def partition(self, dataset: str, number: int) -> str | None:
        """The machine's name of a partition; None where the dataset is not known to carry an edge."""
        name = self.dataset.get(dataset)
        if name is None:
            return None
        return f"{name}#{number}" if self.size[self.source[name]] > 1 else name


def recorded_graph(logged: LoggedGraph) -> RecordedGraph:
    """The job graph of a run for the machine.

    Raises:
        ValueError: the graph has gaps, or an exchange type that the machine does not know.
    """
    if not logged.complete:
        raise ValueError(f"the job graph is not known well enough: {'; '.join(logged.missing)}")
    label: dict[str, str] = {}
    for vertex in logged.vertices:
        name = vertex.name or vertex.id
        label[vertex.id] = f"{name} [{vertex.id[:6]}]" if name in label.values() else name
    size = {v.id: v.parallelism or 1 for v in logged.vertices}
    edges: list[Edge] = []
    names: dict[str, str] = {}
    source: dict[str, str] = {}
    for at, edge in enumerate(logged.edges):
        exchange = Exchange(edge.exchange)
        ends = f"{label[edge.source]} -> {label[edge.target]}"
        if exchange not in FOLLOWED:
            raise ValueError(f"exchanges of type {exchange.value} ({ends}) are not followed")
        name = edge.dataset or ends
        if edge.dataset:
            names[edge.dataset] = name
        elif name in source:
            name = f"{name} ({at})"
        source[name] = edge.source
        edges.append(Edge(label[edge.source], label[edge.target], Pattern(edge.pattern), exchange, name))
    try:
        graph = JobGraph(tuple(Vertex(label[v.id], size[v.id]) for v in logged.vertices), tuple(edges))
    except JobGraphError as error:
        raise ValueError(f"the job graph makes no sense: {error}") from None
    return RecordedGraph(graph, label, size, names, source)


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

    def __init__(self, recorded: RecordedGraph, failed: Collection[str], globally: bool, **given: Any) -> None:
        self._graph, self._failed = recorded.graph, failed
        self.globally = ("job",) if globally else ()
        super().__init__(**given)

    def setup(self) -> None:
        """Adds which tasks may notice by themselves that the tasks they are connected to are gone."""
        super().setup()
        self.connected = tuple(t for t in self.tasks if any(t in self.channel_ends[c] for c in self.pipelined))

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

    def attach(self, s: Any, c: str) -> None:
        """A stored input is there once its producer has finished, also when the JobManager has meanwhile forgotten it: an
        executor that it holds for lost may still serve."""
        producer = self.channel_ends[c][0]
        if c not in self.partition_of or s.status[producer] == "FINISHED":
            s.read[c] = s.attempt[producer] + 1

    def delivered(self, s: Any, c: str) -> Any:
        """Whether everything on channel `c` can have been read."""
        if c not in self.partition_of:
            return super().delivered(s, c)
        return s.read[c] > 0 or s.status[self.channel_ends[c][0]] == "FINISHED"

    @action(t="connected")
    def withdraw(self, s: Any, t: str) -> None:
        """A task ends as cancelled though nobody asked it to: what it is connected to has gone before the JobManager knew."""
        require(self.free(s))
        require(self.started(s, t))
        self.stop(s, t)

    @action(g="globally")
    def fail_globally(self, s: Any, g: str) -> None:
        """A failure that is no task's: everything restarts, also what was never scheduled."""
        require(self.free(s))
        require(s.decided < self.decisions)
        for t in self.tasks:
            if s.status[t] == "CREATED":
                s.status[t] = "CANCELED"
        self.begin(s, dict.fromkeys(self.tasks, True))


def recorded_system(
    recorded: RecordedGraph, restarts: int, failed: Collection[str], globally: bool = False
) -> tuple[System, RecordedFailover]:
    """The machine of one job, and its model.

    In the log the tasks `failed` fail, `restarts` decisions are taken, and perhaps the job fails as a whole.
    """
    model = RecordedFailover(recorded, failed, globally, restarts=restarts)
    return compile_model(model, (no_mixed_versions, complete_result)), model
