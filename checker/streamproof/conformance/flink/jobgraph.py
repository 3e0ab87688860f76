"""The job graph as far as a run's logs tell it.

What tells it, and at which level Flink logs it:

* names and parallelism: every line about a task, `name (i/p)` (INFO);
* edges: `Connecting input ...` of the JobManager (DEBUG); without it, requests for partitions by a thread that bears its
  task's name, requests triggered again, and failures that name a partition;
* exchange types and subpartitions: `Registered ... [BLOCKING, 2 subpartitions]` of the TaskManagers (DEBUG);
* patterns: the number of input channels of each consumer, or of subpartitions of each partition (DEBUG). One producer or
  one consumer makes both patterns alike; such an edge is called ALL_TO_ALL.

Which dataset carries which edge is never logged. It is told here where one assignment alone fits what was seen. A log at
INFO gives vertices and no edges; the graph then says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from streamproof.conformance.events import Event
from streamproof.conformance.flink.graph import Dataset, Edge, JobGraph, Pattern, Vertex, gaps, same_connections
from streamproof.conformance.flink.identifiers import Attempt
from streamproof.conformance.flink.rest import read_rest
from streamproof.conformance.flink.run import FlinkRun
from streamproof.system.errors import InputError

_REQUESTS: Final = ("part.reqlocal", "part.reqremote", "net.partreq.client")
_PATTERNS: Final[tuple[Pattern, ...]] = ("ALL_TO_ALL", "POINTWISE")


def graph_of(run: FlinkRun, job: str) -> JobGraph:
    """The job graph by the REST answer beside the logs if there is one, with datasets by the logs; else by the logs.

    Raises `InputError` if the run does not have the job or its REST answer cannot be read.
    """
    logged = graph_from_log(run, job)
    if job not in run.rest:
        return logged
    stated = read_rest(run.rest[job], job).graph
    carried = _carry(
        stated.edges, logged.datasets, {v.id: v.parallelism for v in stated.vertices}, _readers(run.of_job(job))
    )
    return replace(stated, edges=carried, datasets=logged.datasets)


def graph_from_log(run: FlinkRun, job: str) -> JobGraph:
    """The job graph by the logs alone. Raises `InputError` if the run does not have the job."""
    if job not in run.jobs:
        known = ", ".join(run.jobs) or "none"
        raise InputError(f"the run {run.name} has no job {job}", remedy=f"Jobs in its logs: {known}.")
    events = run.of_job(job)
    vertices = _vertices(events)
    parallelism = {vertex.id: vertex.parallelism for vertex in vertices}
    datasets = _datasets(events)
    readers = _readers(events)
    stated, missing = _stated_edges(events, datasets)
    edges = stated or _seen_edges(datasets, readers)
    if not stated:
        missing.append(
            "edges other than those along which a partition was seen to be requested"
            if edges
            else "the edges (the JobManager logs them at DEBUG: org.apache.flink.runtime.executiongraph)"
        )
    edges = _carry(_with_patterns(edges, events, parallelism), datasets, parallelism, readers)
    missing += gaps(vertices, edges)
    if not vertices:
        missing.append("the vertices")
    return JobGraph(job, run.jobs[job], vertices, edges, datasets, not missing, tuple(missing), "log")


def _vertices(events: Iterable[Event]) -> tuple[Vertex, ...]:
    stated: dict[str, Vertex] = {}
    seen: dict[str, Vertex] = {}
    for event in events:
        args = event.args
        if event.event == "graph.vertex":
            stated.setdefault(args["vertex"], Vertex(args["vertex"], args["task"], None))
        elif "attempt" in args and "task" in args:
            seen[args["vertex"]] = Vertex(args["vertex"], args["task"], args["parallelism"])
        elif "attempt" in args:
            seen.setdefault(args["vertex"], Vertex(args["vertex"], None, None))
    # Stated vertices come first: the JobManager names them in topological order.
    order = list(dict.fromkeys([*stated, *seen]))
    return tuple(max((found[v] for found in (seen, stated) if v in found), key=_detail) for v in order)


def _detail(vertex: Vertex) -> int:
    return (vertex.name is not None) + (vertex.parallelism is not None)


def _datasets(events: Iterable[Event]) -> tuple[Dataset, ...]:
    exchange: dict[str, str] = {}
    producer: dict[str, str] = {}
    parts: dict[str, dict[int, int]] = {}
    for event in events:
        args = event.args
        if "dataset" not in args or "producer" not in args:
            continue
        dataset = args["dataset"]
        producer.setdefault(dataset, Attempt.parse(args["producer"]).vertex)
        if event.event == "part.registered":
            exchange.setdefault(dataset, args["type"])
            parts.setdefault(dataset, {})[args["pnum"]] = args["subparts"]
    return tuple(
        Dataset(dataset, producer[dataset], exchange.get(dataset), parts.get(dataset, {}))
        for dataset in sorted(producer)
    )


def _readers(events: Iterable[Event]) -> dict[str, set[str]]:
    """Vertices known to read a dataset: by their thread, by a repeated request, by a failure to reach it."""
    readers: dict[str, set[str]] = {}
    for event in events:
        args = event.args
        if "dataset" not in args:
            continue
        consumer: str | None = None
        if event.event in _REQUESTS:
            consumer = args.get("by")
        elif event.event in ("gate.retrigger", "exec.transition", "tm.transition", "failover.archive"):
            consumer = args["attempt"]
        if consumer:
            readers.setdefault(args["dataset"], set()).add(Attempt.parse(consumer).vertex)
    return readers


def _stated_edges(events: Iterable[Event], datasets: Sequence[Dataset]) -> tuple[tuple[Edge, ...], list[str]]:
    """Edges that the JobManager states, and which inputs it announced without stating them."""
    produced = {dataset.id: dataset.producer for dataset in datasets}
    announced: dict[str, Mapping[str, Any]] = {}
    edges: dict[tuple[str, int], Edge] = {}
    missing = []
    for event in events:
        args = event.args
        if event.event == "graph.vertex":
            announced[args["vertex"]] = args
        elif event.event == "graph.edge":
            source = args.get("source") or produced.get(args["dataset"])
            if source:
                edge = Edge(source, args["vertex"], dataset=args.get("dataset"), input=args["input"])
                edges[edge.target, args["input"]] = edge
    for vertex, args in announced.items():
        found = sum(1 for target, _ in edges if target == vertex)
        if found != args["inputs"]:
            missing.append(f"{args['inputs'] - found} of the {args['inputs']} inputs of {args['task']}")
    return tuple(edges.values()), missing


def _seen_edges(datasets: Sequence[Dataset], readers: Mapping[str, set[str]]) -> tuple[Edge, ...]:
    return tuple(
        Edge(dataset.producer, reader, exchange=dataset.exchange, dataset=dataset.id)
        for dataset in datasets
        for reader in sorted(readers.get(dataset.id, ()))
    )


def _with_patterns(
    edges: tuple[Edge, ...], events: Iterable[Event], parallelism: Mapping[str, int | None]
) -> tuple[Edge, ...]:
    """Patterns by the number of channels that each input of each consumer has.

    A task creates its gates in the order of its inputs, so the n-th line of an attempt speaks of input n.
    """
    channels: dict[str, list[tuple[int, int]]] = {}
    for event in events:
        if event.event == "gate.created":
            channels.setdefault(event.args["attempt"], []).append((event.args["subtask"], event.args["channels"]))
    inputs: dict[tuple[str, int], set[tuple[int, int]]] = {}
    for attempt, gates in channels.items():
        for place, gate in enumerate(gates):
            inputs.setdefault((Attempt.parse(attempt).vertex, place), set()).add(gate)

    def pattern(edge: Edge) -> Pattern | None:
        producers, consumers = parallelism.get(edge.source), parallelism.get(edge.target)
        if not producers or not consumers:
            return None
        if same_connections(producers, consumers):
            return "ALL_TO_ALL"
        seen = inputs.get((edge.target, edge.input), set()) if edge.input is not None else set()
        fits = [p for p in _PATTERNS if all(len(producers_of(p, producers, consumers, s)) == n for s, n in seen)]
        return fits[0] if seen and len(fits) == 1 else None

    return tuple(replace(edge, pattern=edge.pattern or pattern(edge)) for edge in edges)


def _carry(
    edges: tuple[Edge, ...],
    datasets: Sequence[Dataset],
    parallelism: Mapping[str, int | None],
    readers: Mapping[str, set[str]],
) -> tuple[Edge, ...]:
    """Edges with the dataset that carries each, and what the dataset tells, where just one assignment fits."""
    result = list(edges)
    for source in {edge.source for edge in edges}:
        open_edges = [place for place, edge in enumerate(result) if edge.source == source and edge.dataset is None]
        written = [dataset for dataset in datasets if dataset.producer == source]
        options = {
            place: [dataset for dataset in written if _fits(result[place], dataset, parallelism, readers)]
            for place in open_edges
        }
        taken: dict[int, Dataset] = {}
        while single := [place for place in open_edges if place not in taken and len(options[place]) == 1]:
            taken[single[0]] = options[single[0]][0]
            # One dataset may have several readers only if Flink was seen to let them share it; else it is used up.
            for place in open_edges:
                if place not in taken and result[place].target not in readers.get(taken[single[0]].id, ()):
                    options[place] = [dataset for dataset in options[place] if dataset is not taken[single[0]]]
        for place in open_edges:
            left = [taken[place]] if place in taken else options[place] or written
            exchanges = {dataset.exchange for dataset in left}
            edge = result[place]
            known = exchanges.pop() if len(exchanges) == 1 else None
            result[place] = replace(
                edge,
                dataset=taken[place].id if place in taken else None,
                exchange=edge.exchange or known,
                pattern=edge.pattern or _pattern_by_parts(edge, left, parallelism),
            )
    return tuple(result)


def _fits(edge: Edge, dataset: Dataset, parallelism: Mapping[str, int | None], readers: Mapping[str, set[str]]) -> bool:
    known = readers.get(dataset.id)
    if known and edge.target not in known:
        return False
    if edge.exchange and dataset.exchange and edge.exchange != dataset.exchange:
        return False
    return bool(_patterns_by_parts(edge, dataset, parallelism)) or not dataset.subpartitions


def _pattern_by_parts(edge: Edge, datasets: Sequence[Dataset], parallelism: Mapping[str, int | None]) -> Pattern | None:
    fits = {pattern for dataset in datasets for pattern in _patterns_by_parts(edge, dataset, parallelism)}
    return fits.pop() if len(fits) == 1 else None


def _patterns_by_parts(edge: Edge, dataset: Dataset, parallelism: Mapping[str, int | None]) -> list[Pattern]:
    """The patterns under which the partitions would have the numbers of subpartitions that they have."""
    producers, consumers = parallelism.get(edge.source), parallelism.get(edge.target)
    if not producers or not consumers:
        return list(_PATTERNS)
    allowed = [edge.pattern] if edge.pattern else list(_PATTERNS)
    return [
        pattern
        for pattern in allowed
        if all(
            count == sum(number in producers_of(pattern, producers, consumers, reader) for reader in range(consumers))
            for number, count in dataset.subpartitions.items()
        )
    ]


def producers_of(pattern: Pattern, producers: int, consumers: int, consumer: int) -> range:
    """The producing subtasks that a consuming subtask reads (Flink's `computeVertexToConsumeExecution...`)."""
    if pattern == "ALL_TO_ALL":
        return range(producers)
    if producers >= consumers:
        return range(consumer * producers // consumers, (consumer + 1) * producers // consumers)
    # Producer s serves consumers ceil(s*c/p) .. ceil((s+1)*c/p)-1, hence consumer i reads producer floor(i*p/c).
    producer = consumer * producers // consumers
    return range(producer, producer + 1)


def only_job(run: FlinkRun) -> str:
    """The job of a run that has just one; raises `InputError` naming the jobs otherwise."""
    if len(run.jobs) == 1:
        return next(iter(run.jobs))
    listed = ", ".join(f"{job} ({name})" if name else job for job, name in run.jobs.items())
    raise InputError(
        f"the run {run.name} has {len(run.jobs)} jobs" + (f": {listed}" if listed else ""),
        remedy="Name the job." if listed else "Give the JobManager's log too.",
    )
