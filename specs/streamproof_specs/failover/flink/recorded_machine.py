"""The failover machine of one recorded job: its own job graph, with Flink's names and policies."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import networkx

from streamproof import State, System, require
from streamproof.conformance import Event, compile_model
from streamproof.conformance.flink import JobGraph as LoggedGraph
from streamproof_models.failover.flink import FlinkRules
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Pattern, Vertex
from streamproof_models.failover.machine import ConsumedGroup

MOST_TASKS, MOST_CHANNELS = 10_000, 1_000_000
"""Maximum size of a job in a log or an answer: the machine has variables for each task and partition."""
FOLLOWED = {
    Exchange.PIPELINED,
    Exchange.PIPELINED_BOUNDED,
    Exchange.BLOCKING,
    Exchange.BLOCKING_PERSISTENT,
    Exchange.HYBRID_FULL,
    Exchange.HYBRID_SELECTIVE,
}
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


def longest_chain(groups: Sequence[ConsumedGroup]) -> int:
    """An upper bound on the number of groups in a causal chain, each once and no region twice.

    Such a chain is a simple path between groups and regions. It passes each biconnected component of this graph
    once, in the order of a path in the block tree.
    """
    graph = networkx.Graph((("group", at), r) for at, group in enumerate(groups) for r in _ends(group))
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


def _ends(group: ConsumedGroup) -> set[str]:
    produced, consumers, _ = group
    return {*consumers, *(region for region, _ in produced)}


class RecordedFailover(FlinkRules):
    """The variant `flink` of the machine for a recorded run: its job graph, with Flink's names, and any number of failures.

    The rules are the variant's. Kept otherwise, because no log has it or jobs are large: what tasks have read is omitted;
    a decision loses the tasks that a newer one takes over, instead of versions; the places of decisions are used in turn.
    """

    name = "failover"
    budgeted = False

    def __init__(self, graph: JobGraph, pending: int | None = None, **given: Any) -> None:
        """`pending`: the most decisions that are pending at a time; none: all."""
        self._graph, self.pending = graph, pending
        super().__init__(**given)

    def job_graph(self) -> JobGraph:
        """The run's own."""
        return self._graph

    def task_name(self, vertex: str, subtask: int, parallelism: int) -> str:
        """As in the logs."""
        return task_name(vertex, subtask, parallelism)

    def setup(self) -> None:
        """Omits the channels on which partitions are read, which hold no task up."""
        super().setup()
        self.ends = frozenset(self.channels.values())
        """Producer and consumer of each channel."""
        self.rounds = longest_chain(self.consumed_groups)
        self.channels = {c: ends for c, ends in self.channels.items() if c not in self.partition_of}
        self.inputs = {t: tuple(c for c in self.inputs[t] if c in self.channels) for t in self.tasks}
        self.partition_of = {}
        self.noted = dict.fromkeys(self.tasks, ())
        self.missable = {t: parts for t, parts in self.reads.items() if parts}

    def narrow(self, failing: Collection[str], missable: Collection[tuple[str, str]], globally: bool) -> None:
        """Removes the failures that the log does not contain: of tasks, due to a missing input, of the job as a whole."""
        self.failing = tuple(t for t in self.tasks if t in failing)
        missing = {t: tuple(p for p in parts if (t, p) in missable) for t, parts in self.missable.items()}
        self.missable = {t: parts for t, parts in missing.items() if parts}
        if not globally:
            self.globally = ()

    # --- decisions

    @cached_property
    def places(self) -> int:
        """As many as there may be pending decisions."""
        return self.decisions if self.pending is None else self.pending

    def state(self) -> State:
        """Without versions."""
        return State(**{name: sort for name, sort in super().state().items() if name != "version"})

    def place(self, s):
        """The places in turn."""
        return s.decided % max(self.places, 1)

    def begin_restart(self, s, chosen):
        """As in the machine, in a place that is free; older decisions lose the tasks that this one restarts."""
        newest = self.place(s)
        require(len(s.restarting[newest]) == 0 and len(s.awaiting[newest]) == 0)
        super().begin_restart(s, chosen)
        for k in range(self.places):
            if k != newest:
                s.restarting[k] -= s.restarting[newest]

    def take_over(self, s, k, t):
        """The decision in place `k` restarts task `t`."""
        s.restarting[k].add(t)

    def restarts_task(self, s, k, t):
        """Whether decision `k` restarts `t`: the newest that did."""
        return t in s.restarting[k]


def recorded_system(recorded: RecordedGraph, model: RecordedFailover) -> System:
    """The transition system of a restricted model. Runs of one job graph with the same failures share it."""
    missable = tuple((t, p) for t, parts in model.missable.items() for p in parts)
    key = recorded.graph, model.decisions, model.pending, model.failing, missable, bool(model.globally)
    if key not in _SYSTEMS:
        if len(_SYSTEMS) >= _KEPT:
            del _SYSTEMS[next(iter(_SYSTEMS))]
        _SYSTEMS[key] = compile_model(model)
    return _SYSTEMS[key]


_KEPT = 16
_SYSTEMS: dict[Hashable, System] = {}
"""The systems of the last `_KEPT` models, by all that restricts a model; the models may be large, and are not kept."""
