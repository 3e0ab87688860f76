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
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.co_location import SlotSharing, slot_sharing
from streamproof_runtime.jobs.functions import forward
from streamproof_runtime.jobs.graph import ExecutionGraph
from streamproof_runtime.jobs.operators import CACHING, MEMORY_ONLY, PIPELINED, Edge, Exchange, Operator, Pipe
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
    sharing: SlotSharing = field(default_factory=SlotSharing)
    """Who shares slots in the job."""


def dataset(edge: Edge) -> str:
    """The name of what a blocking exchange stores."""
    return f"{edge.source}>{edge.target}"


def regions(job: Job) -> tuple[Region, ...]:
    """The regions of a job, each after those whose output it reads. Raises `JobError` for names that clash, and for
    operators that cannot be co-located."""
    group, sharing = _groups(job), slot_sharing(job)
    for name, first in sharing.beside.items():
        if group[name] != group[first]:
            raise JobError(
                f"{name} and {first} are co-located, but what is between them is stored: they do not run at the same time; "
                "make the exchange pipelined, or take them out of their co-location group"
            )
    members: dict[str, list[str]] = {}
    for name in job.operators:
        members.setdefault(group[name], []).append(name)
    if len(members) < 2:
        return (Region(0, tuple(job.operators), ExecutionGraph(job), sharing=sharing),)
    ordered: list[str] = []
    while len(ordered) < len(members):
        ordered.append(
            next(
                g
                for g in members
                if g not in ordered and all(group[e.source] in (*ordered, g) for e in job.edges if group[e.target] == g)
            )
        )
    found = tuple(_region(job, number, members[g], sharing) for number, g in enumerate(ordered))
    names = [task for region in found for task in region.graph.tasks]
    if len(set(names)) < len(names):
        raise JobError("operators named A_to_B and B_from_A clash with the partitions of A>B; rename them")
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
    for name in own:
        made.add(job.operators[name])
    for edge in job.edges:
        if edge.source in own and edge.target in own:
            made.edges.append(edge)
        elif edge.source in own:
            writes[dataset(edge)] = edge.source
            writer, parallelism = f"{edge.source}_to_{edge.target}", job.operators[edge.source].parallelism
            made.add(Operator(writer, Scope(), parallelism, ((forward, None),), writes=dataset(edge)))
            made.edges.append(Edge(edge.source, writer, edge.scope, Exchange.FORWARD, None, [Pipe(())]))
    in_memory = frozenset(dataset(edge) for edge in job.edges if edge.exchange_type == MEMORY_ONLY)
    kept = in_memory.union(dataset(edge) for edge in job.edges if edge.exchange_type == CACHING)
    return Region(number, own, ExecutionGraph(made), reads, writes, kept, in_memory, sharing)


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


def job_graph(all_regions: Sequence[Region]) -> dict[str, list[Any]]:
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
    found: dict[str, list[Any]] = {
        "operators": [name for region in all_regions for name in region.operators],
        "exchanges": exchanges,
    }
    in_memory = sorted(name for region in all_regions for name in region.reads if name in region.in_memory)
    return {**found, "memory_only": in_memory} if in_memory else found
