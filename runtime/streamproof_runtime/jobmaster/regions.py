"""Pipelined regions: the parts of a job between its blocking exchanges. Each is a job of its own, deployed as a whole.

Where a blocking exchange leaves a region, a *writer* beside each producer stores its output as a partition; where it enters
one, a *reader* beside each stored partition is a source of the region. So the protocols inside a region know nothing of
partitions. Regions that depend on each other in a cycle are one region, in which the exchange is pipelined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs import pipelines
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.co_location import SlotSharing, slot_sharing
from streamproof_runtime.jobs.functions import forward
from streamproof_runtime.jobs.graph import ExecutionGraph
from streamproof_runtime.jobs.operators import (
    CACHING,
    MEMORY_ONLY,
    PIPELINED,
    Edge,
    Exchange,
    Operator,
    Pipe,
    cluster_dataset,
)
from streamproof_runtime.jobs.pipelines import in_pipelines
from streamproof_runtime.jobs.scopes import Scope


@dataclass(slots=True)
class Region:
    """A region: its operators in the order of the job, and its datasets, each with the operator that makes or reads it."""

    number: int
    operators: tuple[str, ...]
    graph: ExecutionGraph
    reads: dict[str, str] = field(default_factory=dict)
    writes: dict[str, str] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    """The datasets of caching exchanges, which are not released before the end of the job."""
    in_memory: frozenset[str] = frozenset()
    """Those of them that are stored in memory only."""
    promotes: frozenset[str] = frozenset()
    """The datasets that become cluster partitions."""
    takes: dict[str, str] = field(default_factory=dict)
    """The cluster partitions that it reads, each with the operator that does."""
    several: bool = False
    """Whether the job has other regions."""
    plans: dict[str, Any] = field(default_factory=dict)
    """The plans of its subtasks, once a TaskExecutor has made them."""
    sharing: SlotSharing = field(default_factory=SlotSharing)
    """Who shares slots in the job."""
    pipelines: dict[str, Any] = field(default_factory=dict)
    """Of the first region: what the log says of the job, if its regions are of subtasks."""


def dataset(edge: Edge) -> str:
    """The name of what a blocking exchange stores."""
    return f"{edge.source}>{edge.target}"


def regions(job: Job, offset: int = 0) -> tuple[Region, ...]:
    """The regions of a job, each after those whose output it reads, numbered from `offset` on. Raises `JobError` for names
    that clash, for operators that cannot be co-located, and, if regions are of subtasks, for loops and for stored exchanges
    inside a region."""
    whole, job = job, in_pipelines(job) if job.regions_of_subtasks else job
    about = pipelines.record(whole, job) if whole.regions_of_subtasks else {}
    group, sharing = _groups(job), slot_sharing(job)
    for operator in job.operators.values() if about else ():
        if operator.promotes or operator.takes:
            raise JobError(
                f"{operator.name} is a cluster partition, of which there are no parts; leave out regions_of_subtasks"
            )
    for edge in job.edges if about else ():
        if edge.is_stored and group[edge.source] == group[edge.target]:
            raise JobError(
                f"{edge.target} reads what {edge.source} stores, and both are in one region; leave out regions_of_subtasks"
            )
    for name, first in sharing.beside.items():
        if group[name] != group[first]:
            raise JobError(
                f"{name} and {first} are co-located, but what is between them is stored: they do not run at the same time; "
                "make the exchange pipelined, or take them out of their co-location group"
            )
    members: dict[str, list[str]] = {}
    for name in job.operators:
        members.setdefault(group[name], []).append(name)
    if len(members) < 2 and not any(o.promotes or o.takes for o in job.operators.values()):
        return (Region(offset, tuple(job.operators), ExecutionGraph(job), sharing=sharing, pipelines=about),)
    ordered: list[str] = []
    while len(ordered) < len(members):
        ordered.append(
            next(
                g
                for g in members
                if g not in ordered and all(group[e.source] in (*ordered, g) for e in job.edges if group[e.target] == g)
            )
        )
    found = tuple(_region(job, number, members[g], sharing) for number, g in enumerate(ordered, offset))
    for region in found:
        region.several = len(found) > 1
    found[0].pipelines = about
    names = [task for region in found for task in region.graph.tasks]
    if len(set(names)) < len(names):
        raise JobError("operators named A_to_B and B_from_A clash with the partitions of A>B; rename them")
    return found


def regions_of_session(jobs: Sequence[Job]) -> list[tuple[Region, ...]]:
    """The regions of each job of a session, numbered one after the other. Raises as `regions`."""
    found: list[tuple[Region, ...]] = []
    for job in jobs:
        found.append(regions(job, sum(map(len, found))))
    return found


def _region(job: Job, number: int, operators: Iterable[str], sharing: SlotSharing) -> Region:
    own = tuple(operators)
    made = Job(job.name)
    reads, writes = {}, {}
    for edge in job.edges:
        if edge.target in own and edge.source not in own:
            reads[dataset(edge)] = edge.target
            reader = f"{edge.target}_from_{edge.source}"
            made.add(Operator(reader, Scope(), job.operators[edge.source].parallelism, items=(), reads=dataset(edge)))
            made.edges.append(replace(edge, source=reader, exchange_type=PIPELINED))
    takes, promotes = {}, {}
    for name in own:
        operator = job.operators[name]
        if operator.takes:
            dataset_of, reader = cluster_dataset(operator.takes), f"{name}_from_cluster"
            takes[dataset_of] = name
            made.add(Operator(reader, Scope(), operator.parallelism, items=(), reads=dataset_of))
            made.edges.append(Edge(reader, name, Scope(), Exchange.FORWARD, None, [Pipe(())]))
        made.add(operator)
        if operator.promotes:
            promotes[cluster_dataset(operator.promotes)] = name
    for edge in job.edges:
        if edge.source in own and edge.target in own:
            made.edges.append(edge)
        elif edge.source in own:
            writes[dataset(edge)] = edge.source
            _store(made, dataset(edge), job.operators[edge.source])
    for name in promotes.values():
        _store(made, cluster_dataset(name), job.operators[name])
    in_memory = frozenset(dataset(edge) for edge in job.edges if edge.exchange_type == MEMORY_ONLY)
    kept = in_memory.union(dataset(edge) for edge in job.edges if edge.exchange_type == CACHING)
    graph = ExecutionGraph(made)
    stores = writes | promotes
    return Region(number, own, graph, reads, stores, kept, in_memory, frozenset(promotes), takes, sharing=sharing)


def _store(made: Job, stored: str, source: Operator) -> None:
    """Adds the writer of what an operator stores."""
    writer = stored.replace(">", "_to_")
    made.add(Operator(writer, Scope(), source.parallelism, ((forward, None),), writes=stored))
    made.edges.append(Edge(source.name, writer, source.scope, Exchange.FORWARD, None, [Pipe(())]))


def _groups(job: Job) -> dict[str, str]:
    """Each operator with the first one of its region."""
    group = {name: name for name in job.operators}

    def join(one: str, other: str) -> None:
        old, new = group[other], group[one]
        for name, found in group.items():
            if found == old:
                group[name] = new

    for edge in job.edges:
        if not edge.is_stored:
            join(edge.source, edge.target)
    while True:
        after = {g: {group[e.target] for e in job.edges if group[e.source] == g} - {g} for g in set(group.values())}
        reached = {g: _reached(after, g) for g in after}
        cycle = next(((a, b) for a in group.values() for b in reached[a] if a != b and a in reached[b]), None)
        if cycle is None:
            return group
        join(*cycle)


def _reached(after: dict[str, set[str]], start: str) -> list[str]:
    found, new = {start}, [start]
    while new:
        more = [g for g in sorted(after[new.pop()]) if g not in found]
        found.update(more)
        new += more
    return sorted(found)


def job_graph(all_regions: Sequence[Region]) -> dict[str, Any]:
    """The operators of a job, and the exchanges between them, for the log; feedback is left out."""
    exchanges = [
        [edge.source, edge.target, "PIPELINED"]
        for region in all_regions
        for edge in region.graph.job.edges
        if {edge.source, edge.target} <= {*region.operators} and not edge.feedback
    ]
    exchanges += [
        [*name.split(">"), "HYBRID_FULL" if name in region.kept else "BLOCKING"]
        for region in all_regions
        for name in region.reads
    ]
    found: dict[str, Any] = {
        "operators": [name for region in all_regions for name in region.operators],
        "exchanges": exchanges,
    }
    in_memory = sorted(name for region in all_regions for name in region.reads if name in region.in_memory)
    found |= all_regions[0].pipelines
    return {**found, "memory_only": in_memory} if in_memory else found
