"""The history of a job in Flink's logs: the known part of its job graph, its regions, and the attempts of its JobMasters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from streamproof.conformance import (
    DrawnAttempt,
    DrawnCheckpoint,
    DrawnEdge,
    DrawnVertex,
    Event,
    Happening,
    JobHistory,
    Since,
)
from streamproof.conformance.flink import JobGraph
from streamproof_models.failover.regions import pipelined_regions
from streamproof_models.failover.topology import Topology
from streamproof_specs.failover.flink.happenings import ENDED
from streamproof_specs.failover.flink.recorded_machine import RecordedGraph

_OUTCOMES = {"ckpt.complete": "completed", **dict.fromkeys(("ckpt.failed", "ckpt.expired", "ckpt.declined"), "failed")}


def job_history(
    graph: JobGraph,
    recorded: RecordedGraph | None,
    events: Iterable[Event],
    happenings: tuple[Happening, ...] = (),
    ends: str | None = None,
) -> JobHistory:
    """The history of one job from its events, in their order. Without `recorded`, the regions are unknown. `ends`: the time
    of the last line of its JobManagers."""
    states: list[Since] = []
    attempts: dict[str, list[Since]] = defaultdict(list)
    first: dict[str, Event] = {}
    place: dict[str, str] = {}
    checkpoints: dict[int, DrawnCheckpoint] = {}
    reported: dict[str, Since] = {}
    for event in events:
        args = event.args
        match event.event:
            case "job.transition":
                states.append((args["new"], event.ts))
            case "exec.transition":
                first.setdefault(args["attempt"], event)
                attempts[args["attempt"]].append((args["new"], event.ts))
            case "tm.transition" if args["new"] in ENDED:
                reported[args["attempt"]] = (args["new"], event.ts)
            case "exec.deploy":
                place[args["attempt"]] = args["tm"]
            case "ckpt.trigger":
                checkpoints[args["checkpoint"]] = DrawnCheckpoint(args["checkpoint"], event.ts)
            case kind if kind in _OUTCOMES:
                begun = checkpoints.get(args["checkpoint"], DrawnCheckpoint(args["checkpoint"], None))
                checkpoints[begun.number] = DrawnCheckpoint(begun.number, begun.begun, event.ts, _OUTCOMES[kind])
    for attempt, end in reported.items():  # the log of the JobManager ends before it knows
        if attempt in attempts and attempts[attempt][-1][0] not in ENDED:
            attempts[attempt].append(end)
    names = {vertex.id: vertex.name or vertex.id for vertex in graph.vertices}
    sizes = {vertex.id: vertex.parallelism or 0 for vertex in graph.vertices}
    for event in first.values():
        vertex = event.args["vertex"]
        names.setdefault(vertex, event.args["task"])
        sizes[vertex] = max(sizes.get(vertex, 0), event.args["subtask"] + 1)
    index = {vertex: at for at, vertex in enumerate(names)}
    regions = _regions(recorded) if recorded is not None else {}
    return JobHistory(
        tuple(DrawnVertex(names[v], sizes[v], regions.get(v, ())) for v in index),
        tuple(
            DrawnEdge(index[edge.source], index[edge.target], edge.exchange, edge.pattern)
            for edge in graph.edges
            if edge.source in index and edge.target in index
        ),
        tuple(states),
        tuple(
            DrawnAttempt(
                attempt,
                index[begun.args["vertex"]],
                begun.args["subtask"],
                begun.args["number"],
                tuple(attempts[attempt]),
                place.get(attempt),
            )
            for attempt, begun in first.items()
        ),
        () if graph.complete else graph.missing,
        happenings,
        tuple(checkpoints.values()),
        ends,
    )


def _regions(recorded: RecordedGraph) -> dict[str, tuple[int, ...]]:
    """Vertex id -> the number of the region of each subtask."""
    topology = Topology(recorded.graph)
    of_task = pipelined_regions(topology).of_task
    return {vertex: tuple(of_task[t] for t in topology.of_vertex[label]) for vertex, label in recorded.label.items()}
