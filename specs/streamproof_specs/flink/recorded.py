"""The failover machine of one recorded job: its own job graph, with Flink's names and policies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import networkx

from streamproof import WEAK, System, action, require
from streamproof.conformance import Event, compile_model
from streamproof.conformance.flink import JobGraph as LoggedGraph
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Pattern, Topology, Vertex
from streamproof_models.failover.machine import Failover

MOST_TASKS, MOST_CHANNELS = 10_000, 1_000_000
"""Maximum size of a job in a log or an answer: the machine has variables for each task and partition."""
FOLLOWED = {Exchange.PIPELINED, Exchange.PIPELINED_BOUNDED, Exchange.BLOCKING, Exchange.BLOCKING_PERSISTENT}
"""Exchange types that the machine supports; the functions on job graphs support all."""


@dataclass(frozen=True, slots=True)
class RecordedGraph:
    """A job graph for the machine, with the mapping to Flink's identifiers."""

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
        """The task by its name in the logs; None for an unknown one."""
        if vertex not in self.label or not 0 <= subtask < self.size[vertex]:
            return None
        return task_name(self.label[vertex], subtask, self.size[vertex])

    def task_of(self, event: Event) -> str | None:
        """The task of an event about an attempt."""
        return self.task(event.args["vertex"], event.args["subtask"])

    def partition(self, dataset: str, number: int) -> str | None:
        """The machine's name of a partition; None if the dataset's edge is unknown."""
        name = self.dataset.get(dataset)
        if name is None:
            return None
        return f"{name}#{number}" if self.size[self.source[name]] > 1 else name


def recorded_graph(logged: LoggedGraph) -> RecordedGraph:
    """The job graph of a run for the machine.

    Raises:
        ValueError: the graph is incomplete, or has an unsupported exchange type.
    """
    if not logged.complete:
        raise ValueError(f"the job graph is not known well enough: {'; '.join(logged.missing)}")
    sizes = {v.id: v.parallelism or 1 for v in logged.vertices}
    tasks = sum(sizes.values())
    channels = sum(
        (a * b if edge.pattern == "ALL_TO_ALL" else max(a, b))
        for edge in logged.edges
        for a, b in [(sizes.get(edge.source, 1), sizes.get(edge.target, 1))]
    )
    if tasks > MOST_TASKS or channels > MOST_CHANNELS:
        raise ValueError(
            f"the job has {tasks:,} tasks and {channels:,} channels, which are more than the {MOST_TASKS:,} and"
            f" {MOST_CHANNELS:,} that are followed"
        )
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


def without_edges(logged: LoggedGraph) -> RecordedGraph | None:
    """The tasks alone of a job with unknown edges; None if the parallelism of a vertex is unknown, too."""
    if not logged.vertices or any(v.parallelism is None for v in logged.vertices):
        return None
    return recorded_graph(replace(logged, edges=(), complete=True, missing=()))


def task_name(vertex: str, subtask: int, parallelism: int) -> str:
    """A task's name in Flink's logs."""
    return f"{vertex} ({subtask + 1}/{parallelism})"


@dataclass(frozen=True, slots=True)
class _Link:
    """Consuming regions of the same partitions, and these partitions with the producing regions."""

    made: tuple[tuple[int, str], ...]
    readers: tuple[int, ...]


def longest_chain(links: Sequence[_Link]) -> int:
    """An upper bound on the number of exchanges in a causal chain, each once and no region twice.

    Such a chain is a simple path between exchanges and regions. It passes each biconnected component of this graph
    once, in the order of a path in the block tree.
    """
    graph = networkx.Graph((("link", at), r) for at, link in enumerate(links) for r in _ends(link))
    tree = networkx.Graph()
    weight: dict[Any, int] = {}
    for number, block in enumerate(networkx.biconnected_components(graph)):
        weight["block", number] = sum(isinstance(node, tuple) for node in block)
        tree.add_edges_from((("block", number), ("node", node)) for node in block)

    def farthest(start: Any) -> tuple[int, Any]:
        length = {start: weight.get(start, 0)}
        for node, child in networkx.dfs_edges(tree, start):
            length[child] = length[node] + weight.get(child, 0)
        return max(((n, node) for node, n in length.items()), key=lambda found: found[0])

    parts = (next(iter(part)) for part in networkx.connected_components(tree))
    return max((farthest(farthest(start)[1])[0] for start in parts), default=0)


def _ends(link: _Link) -> set[int]:
    return {*link.readers, *(maker for maker, _ in link.made)}


class RecordedFailover(Failover):
    """The machine for a recorded run: unbounded failure budgets, Flink's statuses, Flink's region merging and no fencing.

    The read positions of tasks are omitted, because no log has them. Restart sets are computed along exchanges instead
    of channels, with the same result.
    """

    name = "failover"

    fenced: bool = False
    keeping: bool = False
    merging: str = "logical-region"
    detailed: bool = True
    lenient: bool = True

    def __init__(self, graph: JobGraph, **given: Any) -> None:
        self._graph = graph
        self.globally: tuple[str, ...] = ()
        super().__init__(**given)

    def setup(self) -> None:
        """Adds the exchanges between regions, and the tasks that may notice the loss of their peers."""
        super().setup()
        pipelined = [self.channel_ends[c] for c in self.pipelined]
        self.connected = tuple(t for t in self.tasks if any(t in ends for ends in pipelined))
        self.upstream = {t: tuple(dict.fromkeys(p for p, r in pipelined if r == t)) for t in self.tasks}
        self.links = self._links()
        self.rounds = longest_chain(self.links)
        self.releasing = {
            r: {near: tuple(p for p in parts if self.near[p] == near) for near in {self.near[p]: None for p in parts}}
            for r, parts in enumerate(self.read_by_region)
        }
        self.inputs = dict.fromkeys(self.tasks, ())
        self.channels = ()

    def narrow(self, failing: Collection[str], missable: Collection[str], globally: bool) -> None:
        """Removes the failures that the log does not contain: of tasks, due to a missing input, of the job as a whole."""
        self.failing = tuple(t for t in self.tasks if t in failing)
        self.missable = tuple(c for c in self.stored_channels if c in missable)
        self.globally = ("job",) if globally else ()

    def _links(self) -> tuple[_Link, ...]:
        """The exchanges between regions."""
        readers: dict[str, set[int]] = {}
        for channel, part in self.partition_of.items():
            at = self.region_of[self.channel_ends[channel][1]]
            if at != self.region_of[self.producer_of[part]]:
                readers.setdefault(part, set()).add(at)
        grouped: dict[tuple[int, ...], list[tuple[int, str]]] = {}
        for part, regions in readers.items():
            maker = self.region_of[self.producer_of[part]]
            grouped.setdefault(tuple(sorted(regions)), []).append((maker, part))
        return tuple(_Link(tuple(made), regions) for regions, made in grouped.items())

    def involved(self, s: Any, t: str, named: str | None) -> Any:
        """As in the machine, exchange by exchange: if one of its regions is marked, every producer whose output is lost
        is marked, and with any producer every consumer. So no exchange needs a second visit."""
        marked = [r == self.region_of[t] for r in range(len(self.regions))]
        for _ in range(self.rounds):
            for link in self.links:
                touched = any(marked[r] for r in link.readers) or any(marked[maker] for maker, _ in link.made)
                for maker, part in link.made:
                    marked[maker] = marked[maker] or (touched and self.unavailable(s, part, named))
                spread = any(marked[maker] for maker, _ in link.made)
                for r in link.readers:
                    marked[r] = marked[r] or spread
        return marked

    def job_graph(self) -> JobGraph:
        """The run's own."""
        return self._graph

    def task_names(self, topology: Topology) -> tuple[str, ...]:
        """As in the logs."""
        sizes = {v.name: v.parallelism for v in topology.graph.vertices}
        return tuple(task_name(v, i, sizes[v]) for v, i in topology.tasks)

    @action(t="tasks", fairness=WEAK)
    def finish(self, s: Any, t: str) -> None:
        """The task finishes; reports of different tasks may be reordered, so a producer only needs to be active."""
        require(self.free(s))
        require(s.status[t] == "RUNNING")
        require(all(s.status[p] == "FINISHED" or self.started(s, p) for p in self.upstream[t]))
        s.status[t] = "FINISHED"
        for p in self.outputs[t]:
            s.partition[p] = "STORED"
        self.release_inputs(s, t)

    def release_inputs(self, s: Any, t: str) -> None:
        """As in the machine; partitions with the same consumers are released together."""
        for near, parts in self.releasing[self.region_of[t]].items():
            if all(s.status[u] == "FINISHED" for u in near):
                for p in parts:
                    if s.partition[p] in ("STORED", "GONE"):
                        s.partition[p] = "RELEASED"

    @action(t="connected")
    def withdraw(self, s: Any, t: str) -> None:
        """A task is CANCELED without a cancel call: its peers have gone before the JobManager knew."""
        require(self.free(s))
        require(self.started(s, t))
        self.stop(s, t)

    @action(g="globally")
    def fail_globally(self, s: Any, g: str) -> None:
        """A global failure: everything restarts, including tasks never scheduled."""
        require(self.free(s))
        require(s.decided < self.decisions)
        for t in self.tasks:
            if s.status[t] == "CREATED":
                s.status[t] = "CANCELING"
        self.begin(s, dict.fromkeys(self.tasks, True))


def recorded_system(recorded: RecordedGraph, model: RecordedFailover) -> System:
    """The transition system of a restricted model. Runs of one job graph with the same failures share it."""
    return _system(recorded.graph, model.decisions, model.failing, model.missable, model.globally)


@lru_cache(maxsize=16)
def _system(
    graph: JobGraph, decisions: int, failing: tuple[str, ...], missable: tuple[str, ...], globally: tuple[str, ...]
) -> System:
    model = RecordedFailover(graph, restarts=decisions)
    model.narrow(failing, missable, bool(globally))
    return compile_model(model)
