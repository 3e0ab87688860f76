"""Restart oracle cases: from one decoded JSON case to the regions and the restart set.

A case describes a job graph, the execution state of every task, the partitions that the availability
checker denies, the failed task and the cause of the failure. `answer` says what Flink 2.3 restarts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, TypeVar

from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Partition, Pattern, Task, Vertex
from streamproof_models.failover.regions import pipelined_regions
from streamproof_models.failover.restart import tasks_to_restart
from streamproof_models.failover.topology import Topology

Case = Mapping[str, Any]
"""A decoded case: keys `vertices`, `edges`, `states`, `unavailable`, `failed` and, optionally, `cause`."""

_E = TypeVar("_E", Pattern, Exchange)


class Answer(TypedDict):
    """Regions and tasks to restart, all sorted by vertex name, then subtask."""

    regions: list[list[list[str | int]]]
    restart: list[list[str | int]]


def answer(case: Case) -> Answer:
    """The pipelined regions of the case's job, and the tasks to restart.

    A partition that the cause names as unreadable counts as unavailable. One that the job does not have,
    which an exception can name as well, changes nothing.

    Raises:
        JobGraphError: the case lacks a field, or describes no valid job graph, task, partition or state.
    """
    try:
        return _answer(case)
    except KeyError as error:
        raise JobGraphError(f"the case lacks the field {error.args[0]!r}") from None


def _answer(case: Case) -> Answer:
    graph = job_graph(case)
    topology = Topology(graph)
    regions = pipelined_regions(topology)
    restart = tasks_to_restart(
        regions, _pair(case["failed"]), unavailable_partitions(case, graph), created_tasks(case, graph)
    )
    return {
        "regions": [[[name, subtask] for name, subtask in region] for region in regions.named()],
        "restart": [[name, subtask] for name, subtask in sorted(restart)],
    }


def job_graph(case: Case) -> JobGraph:
    """The job graph of a case, edges in the order of their ids as listed."""
    return JobGraph(
        tuple(Vertex(vertex["name"], vertex["parallelism"]) for vertex in case["vertices"]),
        tuple(
            Edge(
                edge["from"],
                edge["to"],
                _member(Pattern, edge["pattern"]),
                _member(Exchange, edge["exchange"]),
                edge["dataset"],
            )
            for edge in case["edges"]
        ),
    )


def unavailable_partitions(case: Case, graph: JobGraph) -> set[Partition]:
    """The partitions that the checker denies, and the one that the cause names if the job has it."""
    unavailable = {_pair(partition) for partition in case["unavailable"]}
    named = case.get("cause", {}).get("partition")
    if named is not None and _pair(named) in set(graph.partitions):
        unavailable.add(_pair(named))
    return unavailable


def created_tasks(case: Case, graph: JobGraph) -> set[Task]:
    """The tasks in state CREATED. Every task must have a state."""
    created: set[Task] = set()
    for vertex in graph.vertices:
        states = case["states"].get(vertex.name, [])
        if len(states) != vertex.parallelism:
            raise JobGraphError(
                f"vertex {vertex.name!r} has {vertex.parallelism} tasks, "
                f"but the case gives states of {len(states)} of them"
            )
        created |= {(vertex.name, subtask) for subtask, state in enumerate(states) if state == "CREATED"}
    return created


def _pair(value: Any) -> tuple[str, int]:
    match value:
        case [str(name), int(index)]:
            return name, index
        case _:
            raise JobGraphError(f"{value!r} is not a pair of a name and a number")


def _member(kind: type[_E], name: str) -> _E:
    try:
        return kind[name]
    except KeyError:
        known = ", ".join(kind.__members__)
        raise JobGraphError(f"{name!r} is not a valid {kind.__name__.lower()}; known are {known}") from None
