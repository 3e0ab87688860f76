"""Inference of the job graph from a run's logs.

Sources, with Flink's log level:

* names and parallelism: every line about a task, `name (i/p)` (INFO);
* edges: `Connecting input ...` of the JobManager (DEBUG); otherwise partition requests by a thread with its task's name,
  requests triggered again, and failures that name a partition;
* exchange types and subpartitions: `Registered ... [BLOCKING, 2 subpartitions]` of the TaskManagers (DEBUG);
* patterns: the number of input channels of each consumer, or of subpartitions of each partition (DEBUG). With one
  producer or one consumer the patterns coincide; such an edge is called ALL_TO_ALL.

The dataset of an edge is never logged. It is inferred if exactly one assignment fits the log. A log at INFO gives
vertices and hardly an edge; the graph is then incomplete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from streamproof.base.errors import InputError
from streamproof.conformance.flink.graph import (
    Dataset,
    Edge,
    GraphEvidence,
    JobGraph,
    Pattern,
    Vertex,
    gaps,
    gather,
    producers_of,
    same_connections,
)
from streamproof.conformance.flink.rest import read_rest
from streamproof.conformance.flink.run import FlinkRun

_PATTERNS: Final[tuple[Pattern, ...]] = ("ALL_TO_ALL", "POINTWISE")


def graph_of(run: FlinkRun, job: str) -> JobGraph:
    """The job graph from the REST answer beside the logs if there is one, with datasets from the logs; else from the logs.

    Raises `InputError` for an unknown job or an unreadable REST answer.
    """
    if job not in run.jobs:
        known = ", ".join(run.jobs) or "none"
        raise InputError(f"the run {run.name} has no job {job}", remedy=f"jobs in its logs: {known}")
    found = gather(run.of_job(job))
    if job not in run.rest:
        return _from_evidence(run, job, found)
    answer = read_rest(run.rest[job], job)
    stated = answer.graph
    if answer.state == "UNKNOWN":  # a plan describes its vertices in other words than the logs
        names = {vertex.id: vertex.name for vertex in found.vertices.values() if vertex.name}
        stated = replace(stated, vertices=tuple(replace(v, name=names.get(v.id, v.name)) for v in stated.vertices))
    edges = _carry(stated.edges, found, _parallelism(stated.vertices))
    logged = _parallelism(tuple(found.vertices.values()))
    missing = [
        *stated.missing,
        *(
            f"the parallelism of {v.name!r}, which is {v.parallelism:,} in the REST answer and {other:,} in the logs"
            for v in stated.vertices
            if v.parallelism is not None and (other := logged.get(v.id)) is not None and other != v.parallelism
        ),
    ]
    datasets = tuple(found.datasets.values())
    return replace(stated, edges=edges, datasets=datasets, complete=not missing, missing=tuple(missing))


def _from_evidence(run: FlinkRun, job: str, found: GraphEvidence) -> JobGraph:
    vertices = tuple(found.vertices.values())
    parallelism = _parallelism(vertices)
    edges = tuple(found.stated.values()) if found.announced else _seen_edges(found)
    edges = _carry(_with_patterns(edges, found, parallelism), found, parallelism)
    alone = len(vertices) == 1 and not found.datasets and _is_whole(run, job)
    missing = [*(() if alone else _missing_inputs(edges, vertices, found)), *gaps(vertices, edges)]
    if not vertices:
        missing.append("the vertices")
    datasets = tuple(found.datasets.values())
    return JobGraph(job, run.jobs[job], vertices, edges, datasets, not missing, tuple(missing), "log")


def _is_whole(run: FlinkRun, job: str) -> bool:
    """Whether a log has a job from its submission until it is FINISHED: all of its vertices have run."""
    ended = {e.process: e.seq for e in run.of_job(job) if e.event == "job.transition" and e.args["new"] == "FINISHED"}
    return any(run.processes[process].submitted.get(job, seq) < seq for process, seq in ended.items())


def _parallelism(vertices: Sequence[Vertex]) -> dict[str, int | None]:
    return {vertex.id: vertex.parallelism for vertex in vertices}


def _seen_edges(found: GraphEvidence) -> tuple[Edge, ...]:
    """Edges inferred from partition requests, where the JobManager did not log them."""
    edges = [
        Edge(dataset.producer, reader, dataset=dataset.id)
        for dataset in found.datasets.values()
        for reader in sorted(found.readers.get(dataset.id, ()))
    ]
    # The only input of a vertex is input 0; several inputs cannot be distinguished.
    return tuple(replace(edge, input=0) if found.gates.get(edge.target) == 1 else edge for edge in edges)


def _missing_inputs(edges: Sequence[Edge], vertices: Sequence[Vertex], found: GraphEvidence) -> list[str]:
    """The inputs without an edge, by the number that the JobManager logged or else by the input gates created."""
    missing = []
    untold = 0
    for vertex in vertices:
        expected = found.announced.get(vertex.id, found.gates.get(vertex.id))
        known = sum(1 for edge in edges if edge.target == vertex.id)
        if expected is None:
            untold += 1
        elif known < expected:
            missing.append(f"{expected - known} of the {expected} inputs of {vertex.name or vertex.id!r}")
    if not found.announced:
        # A dataset without a reader implies a consumer that no log names, because it was never scheduled.
        carried = {edge.dataset for edge in edges}
        names = {vertex.id: vertex.name or vertex.id for vertex in vertices}
        missing += [
            f"who reads the dataset {dataset.id} of {names.get(dataset.producer, dataset.producer)!r}"
            for dataset in found.datasets.values()
            if dataset.id not in carried
        ]
    if untold:
        seen = "edges other than those along which a partition was requested" if edges else "the edges"
        missing.append(f"{seen} (the JobManager logs them at DEBUG: org.apache.flink.runtime.executiongraph)")
    return missing


def _with_patterns(
    edges: tuple[Edge, ...], found: GraphEvidence, parallelism: Mapping[str, int | None]
) -> tuple[Edge, ...]:
    """Patterns by the number of channels of each consumer's input."""

    def pattern(edge: Edge) -> Pattern | None:
        producers, consumers = parallelism.get(edge.source), parallelism.get(edge.target)
        if not producers or not consumers:
            return None
        if same_connections(producers, consumers):
            return "ALL_TO_ALL"
        seen = found.channels.get((edge.target, edge.input), {}) if edge.input is not None else {}
        fits = [
            p for p in _PATTERNS if all(len(producers_of(p, producers, consumers, s)) == n for s, n in seen.items())
        ]
        return fits[0] if len(fits) == 1 else None

    return tuple(replace(edge, pattern=edge.pattern or pattern(edge)) for edge in edges)


def _carry(edges: tuple[Edge, ...], found: GraphEvidence, parallelism: Mapping[str, int | None]) -> tuple[Edge, ...]:
    """Edges with their datasets, where exactly one assignment fits, and with the properties of the datasets."""
    result = list(edges)
    for source in dict.fromkeys(edge.source for edge in edges):
        written = [dataset for dataset in found.datasets.values() if dataset.producer == source]
        options = {
            place: [dataset for dataset in written if _fits(edge, dataset, found.readers, parallelism)]
            for place, edge in enumerate(result)
            if edge.source == source
        }
        if len(written) == len(options):
            _eliminate(options)
        elif not any(dataset.subpartitions for dataset in written):
            # At INFO not all datasets are logged, so elimination is unsound.
            options = {
                place: [d for d in left if result[place].target in found.readers.get(d.id, ())]
                for place, left in options.items()
            }
        for place, left in options.items():
            edge = result[place]
            # Several candidate datasets may still agree in type or pattern.
            exchanges = {dataset.exchange for dataset in left}
            fits = {pattern for dataset in left for pattern in _patterns_by_parts(edge, dataset, parallelism)}
            result[place] = replace(
                edge,
                dataset=edge.dataset or (left[0].id if len(left) == 1 else None),
                exchange=edge.exchange or (exchanges.pop() if len(exchanges) == 1 else None),
                pattern=edge.pattern or (fits.pop() if len(fits) == 1 else None),
            )
    return tuple(result)


def _eliminate(options: dict[int, list[Dataset]]) -> None:
    """With as many datasets as edges, each dataset belongs to one edge: a dataset with one possible edge excludes others."""
    settled: set[int] = set()
    while (place := next((p for p, left in options.items() if len(left) == 1 and p not in settled), -1)) >= 0:
        settled.add(place)
        for rival in options.keys() - settled:
            options[rival] = [dataset for dataset in options[rival] if dataset is not options[place][0]]


def _fits(edge: Edge, dataset: Dataset, readers: Mapping[str, set[str]], parallelism: Mapping[str, int | None]) -> bool:
    """Whether the dataset may belong to the edge."""
    if edge.dataset:
        return edge.dataset == dataset.id
    if dataset.id in readers and edge.target not in readers[dataset.id]:
        return False
    if edge.exchange and dataset.exchange and edge.exchange != dataset.exchange:
        return False
    return not dataset.subpartitions or bool(_patterns_by_parts(edge, dataset, parallelism))


def _patterns_by_parts(edge: Edge, dataset: Dataset, parallelism: Mapping[str, int | None]) -> list[Pattern]:
    """The patterns that are consistent with the partitions' numbers of subpartitions."""
    producers, consumers = parallelism.get(edge.source), parallelism.get(edge.target)
    if not producers or not consumers:
        return list(_PATTERNS)
    return [
        pattern
        for pattern in ([edge.pattern] if edge.pattern else _PATTERNS)
        if all(
            count == sum(number in producers_of(pattern, producers, consumers, reader) for reader in range(consumers))
            for number, count in dataset.subpartitions.items()
        )
    ]
