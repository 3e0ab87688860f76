"""The failover machine of one recorded job: its own job graph, with Flink's names and policies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import networkx

from streamproof import Array, Range, State, System, action, require
from streamproof.conformance import Event, compile_model
from streamproof.conformance.flink import JobGraph as LoggedGraph
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Pattern, Vertex
from streamproof_models.failover.machine import Failover, grouped
from streamproof_models.failover.regions import Merging

MOST_TASKS, MOST_CHANNELS = 10_000, 1_000_000
"""Maximum size of a job in a log or an answer: the machine has variables for each task and partition."""
FOLLOWED = {
    Exchange.PIPELINED,
    Exchange.PIPELINED_BOUNDED,
    Exchange.BLOCKING,
    Exchange.BLOCKING_PERSISTENT,
    Exchange.HYBRID_FULL,
}
"""Exchange types that the machine supports; the functions on job graphs support all."""
STARTED = ("SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
"""States of an attempt that occupies a slot and is not being cancelled."""


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

    made: tuple[tuple[str, str], ...]
    readers: tuple[str, ...]


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


def _ends(link: _Link) -> set[str]:
    return {*link.readers, *(maker for maker, _ in link.made)}


class RecordedFailover(Failover):
    """The machine for a recorded run: unbounded failure budgets, Flink's statuses, Flink's region merging and no fencing.

    What tasks have read is omitted, because no log has it. Restart sets are computed along exchanges instead of partitions,
    with the same result.
    """

    name = "failover"

    active = STARTED
    merging = Merging.LOGICAL_REGION

    def __init__(self, graph: JobGraph, **given: Any) -> None:
        self._graph = graph
        self.globally: tuple[str, ...] = ()
        super().__init__(**given)

    def job_graph(self) -> JobGraph:
        """The run's own."""
        return self._graph

    def task_name(self, vertex: str, subtask: int, parallelism: int) -> str:
        """As in the logs."""
        return task_name(vertex, subtask, parallelism)

    def setup(self) -> None:
        """Adds the exchanges between regions, and the tasks that may notice the loss of their peers; omits channels."""
        super().setup()
        self.attempts = self.decisions
        self.ends = frozenset(self.channels.values())
        """Producer and consumer of each channel."""
        self._read_early()
        pipelined = [ends for c, ends in self.channels.items() if c not in self.partition_of]
        self.pipelined_inputs = grouped(self.tasks, ((consumer, producer) for producer, consumer in pipelined))
        connected = {t for ends in pipelined for t in ends} | {t for c in self._early for t in self.channels[c]}
        self.connected = tuple(t for t in self.tasks if t in connected)
        self.links = self._links()
        self.rounds = longest_chain(self.links)
        self.released_together = {r: self._by_consumers(r) for r in self.regions}
        self.failing = self.tasks
        self.missable = {t: parts for t, parts in self.reads.items() if parts}
        self.channels = {}
        self.inputs = dict.fromkeys(self.tasks, ())

    def _read_early(self) -> None:
        """Hybrid partitions, which are read while they are written: their consumers wait for the scheduling of the
        producers (`DefaultInputConsumableDecider`), not for their end."""
        hybrid = {e.dataset for e in self._graph.edges if e.exchange is Exchange.HYBRID_FULL}
        self.early = tuple(p for p in self.partitions if p.rpartition("#")[0] in hybrid or p in hybrid)
        self._early = tuple(c for c, p in self.partition_of.items() if p in self.early)
        region, early = self.region_of, set(self._early)
        across = [(c, a, z) for c, (a, z) in self.channels.items() if region[a] != region[z]]
        self.upstream = grouped(self.tasks, ((z, a) for c, a, z in across if c not in early))
        self.begun_before = grouped(self.tasks, ((z, a) for c, a, z in across if c in early))
        """Task -> the producers of its hybrid inputs."""

    def narrow(
        self, failing: Collection[str], missable: Collection[tuple[str, str]], globally: bool, at_once: int
    ) -> None:
        """Removes the failures that the log does not contain: of tasks, due to a missing input, of the job as a whole.

        `at_once` is the most decisions of the log between two times at which none was pending. The places of decisions are
        used in turn, so that each one is free again when its turn comes.
        """
        self.decisions = at_once
        self.failing = tuple(t for t in self.tasks if t in failing)
        missing = {t: tuple(p for p in parts if (t, p) in missable) for t, parts in self.missable.items()}
        self.missable = {t: parts for t, parts in missing.items() if parts}
        self.globally = ("job",) if globally else ()

    def _links(self) -> tuple[_Link, ...]:
        """The exchanges between regions."""
        grouped: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for part, maker in self.producing_region.items():
            readers = tuple(sorted(r for r in self.consuming_regions[part] if r != maker))
            if readers:
                grouped.setdefault(readers, []).append((maker, part))
        return tuple(_Link(tuple(made), readers) for readers, made in grouped.items())

    def _by_consumers(self, region: str) -> dict[tuple[str, ...], tuple[str, ...]]:
        """The partitions that a region reads, by all the regions that read them: these are released together."""
        parts = dict.fromkeys(p for t in self.regions[region] for p in self.reads[t])
        by = [(self.consuming_regions[p], p) for p in parts]
        return grouped((consumers for consumers, _ in by), by)

    def state(self) -> State:
        """Without the budgets of failures and losses, and without versions, because newer decisions take tasks away."""
        omitted = ("failures_left", "losses_left", "version")
        kept = {name: sort for name, sort in super().state().items() if name not in omitted}
        return State(**{**kept, "attempt": Array(self.tasks, Range(0, self.attempts))})

    # --- scheduling

    def is_ready(self, s, tasks):
        """As in the machine; the producers of hybrid inputs have been scheduled."""
        begun = all(s.status[a] != "CREATED" for t in tasks for a in self.begun_before[t])
        return begun and super().is_ready(s, tasks)

    def has_finished(self, s, t):
        """Whether task `t` is FINISHED, restarted or not."""
        return s.status[t] == "FINISHED"

    def take_up(self, s, tasks):
        """Tasks wait for their slots."""
        for t in tasks:
            s.status[t] = "SCHEDULED"

    @action(t="tasks")
    def deploy(self, s, t):
        """The task's slot is assigned and the task sent to its TaskExecutor; the JobMaster tracks its output from now on."""
        require(s.status[t] == "SCHEDULED")
        s.status[t] = "DEPLOYING"
        self.mark_output(s, t, "PRODUCING")

    @action(t="tasks")
    def initialize(self, s, t):
        """The TaskExecutor has accepted the task."""
        require(s.status[t] == "DEPLOYING")
        s.status[t] = "INITIALIZING"

    def run(self, s, t):
        """The task runs."""
        require(s.job == "RUNNING" and s.status[t] == "INITIALIZING")
        s.status[t] = "RUNNING"

    def finish(self, s, t):
        """The task finishes; reports of different tasks may be reordered, so a producer only needs to be active."""
        require(s.job == "RUNNING" and s.status[t] == "RUNNING")
        require(all(s.status[p] in (*self.active, "FINISHED") for p in self.pipelined_inputs[t]))
        s.status[t] = "FINISHED"
        for p in self.outputs[t]:
            if p not in self.early or s.partition[p] != "RELEASED":
                s.partition[p] = "STORED"
        for consumers, parts in self.released_together[self.region_of[t]].items():
            if all(s.status[u] == "FINISHED" for r in consumers for u in self.regions[r]):
                for p in parts:
                    if s.partition[p] in ("STORED", "GONE") or (p in self.early and s.partition[p] == "PRODUCING"):
                        s.partition[p] = "RELEASED"

    # --- failures

    @action(t="failing")
    def fail(self, s, t):
        """A task fails of itself."""
        require(s.job == "RUNNING" and s.status[t] in self.active)
        require(s.decided < self.decisions)
        self.fail_over(s, t)

    @action(t="missable", p=lambda m, t: m.missable[t])
    def miss(self, s, t, p):
        """A task finds its input partition missing and fails, naming it."""
        super().miss(s, t, p)

    def notices(self, s, t, p):
        """As in the machine; a task can also be INITIALIZING."""
        producer = self.partitions[p]
        waits = self.region_of[t] == self.region_of[producer] and s.status[producer] in self.active
        return s.status[t] in ("INITIALIZING", "RUNNING") and s.partition[p] != "STORED" and not waits

    @action(t="failing")
    def give_up(self, s, t):
        """A task fails and the restart strategy allows no further attempt: the job fails."""
        require(s.job == "RUNNING" and s.status[t] in self.active)
        s.status[t] = "FAILED"
        s.job = "FAILED"

    def lose(self, s, p):
        """A stored partition is lost; nobody notices yet."""
        require(s.job == "RUNNING" and s.partition[p] == "STORED")
        s.partition[p] = "GONE"

    @action(p="partitions")
    def untrack(self, s, p):
        """The JobMaster learns that a partition is lost with its TaskExecutor."""
        require(s.partition[p] in ("PRODUCING", "STORED", "GONE"))
        s.partition[p] = "NONE"

    @action(t="connected")
    def withdraw(self, s, t):
        """A task is CANCELED without a cancel call: its peers have gone before the JobManager knew."""
        require(s.job == "RUNNING" and s.status[t] in self.active)
        self.end(s, t, "CANCELED")

    @action(g="globally")
    def fail_globally(self, s, g):
        """A global failure: everything restarts, including tasks never scheduled."""
        require(s.job == "RUNNING" and s.decided < self.decisions)
        for t in self.tasks:
            if s.status[t] == "CREATED":
                s.status[t] = "CANCELING"
        self.begin_restart(s, dict.fromkeys(self.tasks, True))

    def begin_restart(self, s, chosen):
        """As in the machine, in the next place for a decision; an older decision loses the tasks that this one restarts."""
        s.restarting[s.decided].clear()
        s.awaiting[s.decided].clear()
        for t in self.tasks:
            if chosen[t] and s.status[t] != "CREATED":
                s.restarting[s.decided].add(t)
                if s.status[t] in (*self.active, "CANCELING"):
                    s.status[t] = "CANCELING"
                    s.awaiting[s.decided].add(t)
        for k in range(self.decisions):
            if k != s.decided:
                s.restarting[k] -= s.restarting[s.decided]
        s.decided = 0 if s.decided + 1 == self.decisions else s.decided + 1

    @action(k="decisions")
    def restart(self, s, k):
        """As in the machine."""
        require(s.job == "RUNNING" and len(s.restarting[k]) > 0 and len(s.awaiting[k]) == 0)
        for t in self.tasks:
            if t in s.restarting[k]:
                self.reset(s, t)
        s.restarting[k].clear()

    def reset(self, s, t):
        """A new attempt of `t`. The condition is always true; without it the tracker checks the domain at every restart."""
        s.status[t] = "CREATED"
        if s.attempt[t] < self.attempts:
            s.attempt[t] += 1
        self.mark_output(s, t, "NONE")

    def regions_to_restart(self, s, failed, missing):
        """As in the machine, exchange by exchange: if one of its regions restarts, so does every producer whose output is
        lost, and with any producer every consumer. So no exchange needs a second visit."""
        marked = {r: r == self.region_of[failed] for r in self.regions}
        for _ in range(self.rounds):
            for link in self.links:
                touched = any(marked[r] for r in link.readers) or any(marked[maker] for maker, _ in link.made)
                for maker, part in link.made:
                    marked[maker] = marked[maker] or (touched and self.is_lost(s, part, missing))
                spread = any(marked[maker] for maker, _ in link.made)
                for r in link.readers:
                    marked[r] = marked[r] or spread
        return marked


def recorded_system(recorded: RecordedGraph, model: RecordedFailover) -> System:
    """The transition system of a restricted model. Runs of one job graph with the same failures share it."""
    missable = tuple((t, p) for t, parts in model.missable.items() for p in parts)
    return _system(recorded.graph, model.attempts, model.failing, missable, bool(model.globally), model.decisions)


@lru_cache(maxsize=16)
def _system(
    graph: JobGraph,
    restarts: int,
    failing: tuple[str, ...],
    missable: tuple[tuple[str, str], ...],
    globally: bool,
    at_once: int,
) -> System:
    model = RecordedFailover(graph, restarts=restarts)
    model.narrow(failing, missable, globally, at_once)
    return compile_model(model)
