"""Regions of subtasks in the runtime's logs: the recorded parts of operators are those of the recorded job.

The pipelined regions of the job's tasks are those of the failover machine. A part may join several of them, since readers of
stored partitions do, but none may be cut: its tasks restart together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from streamproof.conformance import Event, Observation, Unit
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Pattern, Vertex
from streamproof_models.failover.regions import Merging, pipelined_regions
from streamproof_models.failover.topology import Topology
from streamproof_specs.runtime.logs import JOBMASTER
from streamproof_specs.runtime.sessions import rejected

MOST = 4_096
"""Largest number of subtasks of a job whose pipelines are judged."""


def wrong_pipelines(events: Iterable[Event]) -> tuple[Unit, ...]:
    """A rejected case for each JobMaster whose parts of operators are not those of the job that it recorded."""
    found = []
    for event in events:
        if event.process == JOBMASTER and event.event == "job_started" and "parts" in event.args:
            try:
                why = next(_contradictions(event.args), "")
            except (AttributeError, KeyError, TypeError, ValueError, JobGraphError) as error:
                why = f"the pipelines of the job are no pipelines: {error}"
            if why:
                found.append(rejected(event.trace, [Observation(event, impossible=why)]))
    return tuple(found)


def _contradictions(args: Any) -> Iterator[str]:
    vertices = tuple(Vertex(str(name), parallelism) for name, parallelism in args["vertices"])
    if sum(vertex.parallelism for vertex in vertices) > MOST:
        yield f"the job has more than {MOST:,} subtasks"
        return
    edges = tuple(
        Edge(
            source, target, Pattern(pattern), Exchange.BLOCKING if stored else Exchange.PIPELINED, f"{source}>{target}"
        )
        for source, target, pattern, stored in args["streams"]
    )
    topology = Topology(JobGraph(vertices, edges))
    part_of: dict[int, str] = {}
    for part, (operator, first, parallelism) in args["parts"].items():
        own = [topology.number((operator, number)) for number in range(first, first + parallelism)]
        yield from (f"{operator} {number} is in two parts" for number in own if number in part_of)
        part_of.update(dict.fromkeys(own, part))
    missing = (task for number, task in enumerate(topology.tasks) if number not in part_of)
    yield from (f"subtask {number} of {name} is in no part" for name, number in missing)
    if sorted(args["parts"]) != sorted(args["operators"]):
        yield "the operators are other ones than the parts"
    recorded = {(source, target): kind == "PIPELINED" for source, target, kind in args["exchanges"]}
    expected = {
        (part_of[producer], part_of[consumer]): connection.edge.exchange is Exchange.PIPELINED
        for connection in topology.connections
        for producers, consumers in connection.groups()
        for producer in producers
        for consumer in consumers
    }
    if recorded != expected:
        pair = sorted(recorded.items() ^ expected.items())[0][0]
        yield f"the exchange from {pair[0]} to {pair[1]} is not that of the job"
    region_of = _together(args["operators"], recorded)
    for tasks in pipelined_regions(topology, Merging.NONE).members:
        regions = {region_of[part_of[task]] for task in tasks}
        for one, other in combinations(sorted(regions), 2):
            yield f"{one} and {other} are one pipelined region, and restart apart"


def _together(operators: Iterable[str], exchanges: dict[tuple[str, str], bool]) -> dict[str, str]:
    """Each operator with the first one of its region."""
    found = {name: name for name in operators}
    for (source, target), is_pipelined in exchanges.items():
        if is_pipelined:
            old, new = found[target], found[source]
            found = {name: new if first == old else first for name, first in found.items()}
    return found
