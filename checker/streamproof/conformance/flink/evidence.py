"""Evidence about a job's graph in its events, collected in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Final

from streamproof.base.records import dataclass
from streamproof.conformance.event import Event
from streamproof.conformance.flink.graph import Dataset, Edge, Vertex, possible
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
