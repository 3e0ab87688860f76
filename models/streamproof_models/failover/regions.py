"""Pipelined regions: the tasks that are scheduled, and fail, together.

Tasks joined by an exchange whose consumer must run with its producer are in one region. That alone can leave regions
that wait for each other's data, none of which can be scheduled first; such cycles are merged into one region. Flink 2.3
searches for cycles only among the tasks of one *logical region*, a set of job vertices joined by the same exchanges. A
cycle that leaves a logical region remains (A > B pipelined, A > C > B blocking); the other two options are included for
comparison.

Everything takes time and memory linear in tasks plus groups, for each option.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from streamproof_models.failover.graph import Task
from streamproof_models.failover.topology import Connection, Topology


class Merging(Enum):
    """Where regions that depend on each other in a cycle are merged into one."""

    LOGICAL_REGION = "logical-region"
    """Among the tasks of one logical region, over the exchanges inside it: what Flink 2.3 does."""
    TOPOLOGY = "topology"
    """Everywhere: afterwards the regions never depend on each other in a cycle."""
    NONE = "none"
    """Nowhere."""


@dataclass(frozen=True, slots=True)
class Regions:
    """A division of all tasks into regions, numbered in the order of their first task."""

    topology: Topology = field(repr=False)
    of_task: tuple[int, ...]
    """The region of each task number."""
    members: tuple[tuple[int, ...], ...]
    """The task numbers of each region, ascending."""

    def of(self, task: Task) -> int:
        """The region of a task. Raises `JobGraphError` if the graph has no such task."""
        return self.of_task[self.topology.number(task)]

    def named(self) -> list[list[Task]]:
        """The regions as lists of tasks, each sorted, the list of them sorted too."""
        tasks = self.topology.tasks
        return sorted(sorted(tasks[number] for number in region) for region in self.members)

    def dependencies(self) -> list[set[int]]:
        """For each region, the other regions that read one of its partitions, pair by pair (small graphs)."""
        readers: list[set[int]] = [set() for _ in self.members]
        for connection in self.topology.connections:
            for producers, consumers in connection.groups():
                reading = {self.of_task[consumer] for consumer in consumers}
                for region in {self.of_task[producer] for producer in producers}:
                    readers[region] |= reading
        for region, reading in enumerate(readers):
            reading.discard(region)
        return readers

    def cycles(self) -> list[list[int]]:
        """The sets of two or more regions that wait for each other, ascending: empty if all can be
        scheduled."""
        components = components_of_dependencies(self.of_task, len(self.members), self.topology.connections)
        sets: dict[int, list[int]] = {}
        for region, component in enumerate(components):
            sets.setdefault(component, []).append(region)
        return sorted(members for members in sets.values() if len(members) > 1)


def pipelined_regions(topology: Topology, merging: Merging = Merging.LOGICAL_REGION) -> Regions:
    """The pipelined regions of a job."""
    gluing = [c for c in topology.connections if c.edge.exchange.glues]
    others = [c for c in topology.connections if not c.edge.exchange.glues]
    raw = connected_components(topology, gluing)
    match merging:
        case Merging.NONE:
            return _numbered(topology, raw)
        case Merging.TOPOLOGY:
            together = _cyclic_vertices(topology)
        case Merging.LOGICAL_REGION:
            together = logical_regions(topology)
    inner = [c for c in others if together[c.edge.source] == together[c.edge.target]]
    if not inner:
        return _numbered(topology, raw)
    component = components_of_dependencies(raw, len(raw), inner)
    return _numbered(topology, [component[region] for region in raw])


def logical_regions(topology: Topology) -> dict[str, int]:
    """Vertex name to its logical region: vertices joined by exchanges that glue, whatever the pattern."""
    names = [vertex.name for vertex in topology.graph.vertices]
    index = {name: i for i, name in enumerate(names)}
    sets = _DisjointSets(len(names))
    for edge in topology.graph.edges:
        if edge.exchange.glues:
            sets.join(index[edge.source], index[edge.target])
    return {name: sets.root(i) for name, i in index.items()}


def _cyclic_vertices(topology: Topology) -> dict[str, int]:
    """Vertex name to a set of logical regions that wait for each other in a cycle of edges, or to its only one: a
    cycle of regions never leaves such a set."""
    logical = logical_regions(topology)
    successors: list[list[int]] = [[] for _ in logical]
    for edge in topology.graph.edges:
        successors[logical[edge.source]].append(logical[edge.target])
    components = _strong_components(successors)
    return {name: components[region] for name, region in logical.items()}


class _DisjointSets:
    """A union-find structure over the numbers below `size`; the representative is the least member."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def root(self, item: int) -> int:
        parent = self._parent
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.root(one), self.root(other)))
        self._parent[high] = low


def connected_components(topology: Topology, connections: Sequence[Connection] | None = None) -> list[int]:
    """For each task the least task that some of the connections, by default all, join it to."""
    sets = _DisjointSets(len(topology.tasks))
    for connection in topology.connections if connections is None else connections:
        for producers, consumers in connection.groups():
            hub = producers.start
            for task in producers:
                sets.join(hub, task)
            for task in consumers:
                sets.join(hub, task)
    return [sets.root(task) for task in range(len(topology.tasks))]


def components_of_dependencies(
    region_of: Sequence[int], region_count: int, connections: Sequence[Connection]
) -> list[int]:
    """Region -> a representative of the cycle of regions that wait for each other in which it is, or itself.

    `region_of` has the region of each task, a number below `region_count`. Each group is a separate node between its
    producers' and its consumers' regions, which keeps an all-to-all exchange linear.
    """
    successors: list[list[int]] = [[] for _ in range(region_count)]
    for connection in connections:
        for producers, consumers in connection.groups():
            writing = {region_of[task] for task in producers}
            reading = {region_of[task] for task in consumers}
            if writing == reading and len(writing) == 1:
                continue
            for region in writing:
                successors[region].append(len(successors))
            successors.append(list(reading))
    return _strong_components(successors)[:region_count]


def _strong_components(successors: Sequence[Sequence[int]]) -> list[int]:
    """For each node the root of its strongly connected component (Tarjan's algorithm, without recursion)."""
    size = len(successors)
    entered = [0] * size  # order of first visit, from 1; 0: not yet
    low = [0] * size
    component = [-1] * size
    open_nodes: list[int] = []
    clock = 0
    for start in range(size):
        if entered[start]:
            continue
        path = [(start, 0)]
        while path:
            node, position = path.pop()
            if not entered[node]:
                clock += 1
                entered[node] = low[node] = clock
                open_nodes.append(node)
            descended = False
            for i in range(position, len(successors[node])):
                successor = successors[node][i]
                if not entered[successor]:
                    path += [(node, i), (successor, 0)]
                    descended = True
                    break
                if component[successor] < 0:
                    low[node] = min(low[node], low[successor])
            if descended:
                continue
            if low[node] == entered[node]:
                while True:
                    member = open_nodes.pop()
                    component[member] = node
                    if member == node:
                        break
    return component


def _numbered(topology: Topology, representative: Sequence[int]) -> Regions:
    number = {root: region for region, root in enumerate(dict.fromkeys(representative))}
    of_task = tuple(number[root] for root in representative)
    members: list[list[int]] = [[] for _ in number]
    for task, region in enumerate(of_task):
        members[region].append(task)
    return Regions(topology, of_task, tuple(map(tuple, members)))
