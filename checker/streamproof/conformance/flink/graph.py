"""The job graph of a run, as far as it is known: vertices, edges, missing parts; the evidence about it in the events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final, Literal

from streamproof.base.records import dataclass
from streamproof.conformance.event import Event
from streamproof.conformance.flink.identifiers import Attempt

_REQUESTS: Final = ("part.reqlocal", "part.reqremote", "net.partreq.client")
_NAMING_INPUT: Final = ("gate.retrigger", "exec.transition", "tm.transition", "failover.archive")
_NETWORK: Final = ("part.registered", "gate.created")


@dataclass(slots=True)
class GraphEvidence:
    """Evidence about a job graph.

    `vertices` are in topological order if the JobManager named them, else in the order of appearance. `stated` edges
    are logged by the JobManager, by target and input; `announced` is the logged number of inputs of a vertex. `readers`
    are vertices that requested a dataset. `channels` has, for a vertex and an input, the number of channels of each
    consuming subtask; `gates` the number of input gates that tasks of a vertex created.
    """

    vertices: dict[str, Vertex] = field(default_factory=dict)
    stated: dict[tuple[str, int], Edge] = field(default_factory=dict)
    announced: dict[str, int] = field(default_factory=dict)
    datasets: dict[str, Dataset] = field(default_factory=dict)
    readers: dict[str, set[str]] = field(default_factory=dict)
    channels: dict[tuple[str, int], dict[int, int]] = field(default_factory=dict)
    gates: dict[str, int] = field(default_factory=dict)


def gather(events: Iterable[Event]) -> GraphEvidence:
    """The evidence in the events of one job, process by process."""
    found = GraphEvidence()
    parts: dict[str, dict[int, int]] = {}
    producers: dict[str, str] = {}
    exchanges: dict[str, str] = {}
    created: dict[str, list[int]] = {}
    by_dataset: list[tuple[str, str, int]] = []
    networking: set[str] = set()
    ran: dict[str, set[str]] = {}
    for event in events:
        args = event.args
        match event.event:
            case "graph.vertex":
                found.announced[args["vertex"]] = args["inputs"]
                found.vertices.setdefault(args["vertex"], Vertex(args["vertex"], args["task"], None))
            case "graph.edge" if "source" in args:
                edge = Edge(args["source"], args["vertex"], input=args["input"])
                found.stated[args["vertex"], args["input"]] = edge
            case "graph.edge":
                by_dataset.append((args["dataset"], args["vertex"], args["input"]))
            case "gate.created":
                created.setdefault(args["attempt"], []).append(args["channels"])
            case "part.registered":
                exchanges.setdefault(args["dataset"], args["type"])
                parts.setdefault(args["dataset"], {})[args["pnum"]] = args["subparts"]
            case "tm.submit":
                ran.setdefault(args["vertex"], set()).add(event.process)
        if event.event in _NETWORK:
            networking.add(event.process)
        _note_vertex(found, event)
        if "producer" in args:
            producers.setdefault(args["dataset"], Attempt.parse(args["producer"]).vertex)
        consumer = args.get("by") if event.event in _REQUESTS else None
        if event.event in _NAMING_INPUT and "dataset" in args:
            consumer = args.get("attempt")
        if consumer:
            found.readers.setdefault(args["dataset"], set()).add(Attempt.parse(consumer).vertex)
    found.datasets = {
        dataset: Dataset(dataset, producers[dataset], exchanges.get(dataset), parts.get(dataset, {}))
        for dataset in sorted(producers)
    }
    for dataset, target, number in by_dataset:
        if dataset in producers:
            found.stated[target, number] = Edge(producers[dataset], target, dataset=dataset, input=number)
    for text, gates in created.items():
        attempt = Attempt.parse(text)
        found.gates[attempt.vertex] = max(len(gates), found.gates.get(attempt.vertex, 0))
        for place, count in enumerate(gates):
            # A task creates its input gates in the order of its inputs.
            found.channels.setdefault((attempt.vertex, place), {})[attempt.subtask] = count
    for vertex, processes in ran.items():
        # A task without input gates, in a process that logs them, has no inputs.
        if vertex not in found.gates and processes & networking:
            found.gates[vertex] = 0
    return found


def _note_vertex(found: GraphEvidence, event: Event) -> None:
    args = event.args
    if "attempt" not in args:
        return
    vertex = args["vertex"]
    if "task" in args:
        found.vertices[vertex] = Vertex(vertex, args["task"], possible(args["parallelism"]))
    else:
        found.vertices.setdefault(vertex, Vertex(vertex, None, None))


Pattern = Literal["POINTWISE", "ALL_TO_ALL"]
"""Distribution patterns: each consumer reads some producers, or all."""

Origin = Literal["rest", "log"]
"""The source of the graph: the REST API, which states it, or the logs, from which it is inferred."""

MOST_PARALLELISM: Final = 1 << 15
"""Flink's limit: the number of key groups."""
_SHIPPED: Final[Mapping[str, Pattern]] = {
    **dict.fromkeys(("FORWARD", "RESCALE"), "POINTWISE"),
    **dict.fromkeys(("REBALANCE", "HASH", "BROADCAST", "SHUFFLE", "GLOBAL", "CUSTOM", "REDISTRIBUTE"), "ALL_TO_ALL"),
    **dict.fromkeys(("HASH PARTITION", "RANGE PARTITION", "CUSTOM PARTITION"), "ALL_TO_ALL"),
}
"""The distribution patterns of ship strategies."""


@dataclass(frozen=True, slots=True)
class Vertex:
    """A job vertex. `name` and `parallelism` are None if only the identifier is known."""

    id: str
    name: str | None
    parallelism: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge: `target` reads the output of `source`.

    `exchange` is Flink's partition type (`BLOCKING`, `PIPELINED_BOUNDED`, ...), `dataset` the intermediate dataset of
    the edge, `ship` the strategy from the REST API, `input` the position among the target's inputs. None: unknown.
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
    """An intermediate dataset: the output of a vertex.

    `subpartitions` are those of each partition seen (all equal for ALL_TO_ALL), by producing subtask.
    """

    id: str
    producer: str
    exchange: str | None
    subpartitions: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobGraph:
    """Vertices and edges of one job.

    `complete`: every vertex and edge is known with parallelism, pattern and exchange, so that pipelined regions and
    restart sets can be computed. Otherwise `missing` describes the unknown parts.
    """

    job: str
    name: str
    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]
    datasets: tuple[Dataset, ...]
    complete: bool
    missing: tuple[str, ...]
    origin: Origin


def pattern_of(ship: str | None) -> Pattern | None:
    """The distribution pattern of a ship strategy (as in Flink's job graph generators); None if unknown."""
    return _SHIPPED.get((ship or "").upper())


def same_connections(producers: int, consumers: int) -> bool:
    """Whether POINTWISE and ALL_TO_ALL coincide for these subtasks: if either side has one subtask."""
    return producers == 1 or consumers == 1


def possible(parallelism: int) -> int | None:
    """A parallelism from a log or an answer; None if it exceeds Flink's limit."""
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
    """The unknown parts of these vertices and edges, in sentences."""
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
