"""Regions and restart sets on every small job graph: grouped against pair by pair, search against definition.

"Every" means one graph of each isomorphism class with exchanges of all three behaviours, datasets shared or not:
up to four tasks with at most one edge between two vertices, up to three tasks with at most two. To these come
all acyclic graphs of five regions joined by blocking edges, and all single edges of up to four by four tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, combinations, product

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nonempty import nonempty
from shares import share
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, Partition, Pattern, Task, Vertex
from streamproof_models.failover.regions import Merging, Regions, pipelined_regions
from streamproof_models.failover.restart import least_fixpoint, tasks_to_restart
from streamproof_models.failover.small_graphs import KINDS, job_graphs, region_graphs
from streamproof_models.failover.topology import Topology


@cache
def every_graph(most: int = 4) -> tuple[JobGraph, ...]:
    """Every small job graph, see above; with `most` below 4, those of as many tasks and of one region more."""
    single = (job_graphs(tasks, sharing=True) for tasks in range(1, most + 1))
    double = (job_graphs(tasks, sharing=True, parallel_edges=2) for tasks in range(2, min(most, 3) + 1))
    return tuple(chain(*single, *double, region_graphs(most + 1), single_edges()))


TASKS = pytest.mark.parametrize("most", share([3, 4], 2))
"""The most tasks of the graphs of a test."""


def single_edges() -> Iterator[JobGraph]:
    """A > B of more than four and up to eight tasks, with either pattern and exchanges of all three behaviours."""
    for a, b, pattern, exchange in product(range(1, 5), range(1, 5), Pattern, KINDS):
        if a + b > 4:
            yield JobGraph((Vertex("A", a), Vertex("B", b)), (Edge("A", "B", pattern, exchange, "d"),))


def pairs(topology: Topology) -> Iterator[tuple[Task, Task, int]]:
    """All (producer, consumer, index of their edge), spelt out."""
    edges = topology.graph.edges
    for index, (edge, consumers) in enumerate(zip(edges, topology.consumes(), strict=True)):
        for consumer, producers in enumerate(consumers):
            for producer in producers:
                yield (edge.source, producer), (edge.target, consumer), index


def regions_by_pairs(graph: JobGraph, merging: Merging) -> set[frozenset[Task]]:
    """The regions by their definition, edge by edge between tasks, with general graph algorithms."""
    topology = Topology(graph)
    logical, raw = nx.Graph(), nx.Graph()
    logical.add_nodes_from(vertex.name for vertex in graph.vertices)
    logical.add_edges_from((e.source, e.target) for e in graph.edges if e.exchange.glues)
    raw.add_nodes_from(graph.tasks)
    raw.add_edges_from((p, c) for p, c, i in pairs(topology) if graph.edges[i].exchange.glues)
    components = {task: frozenset(part) for part in nx.connected_components(raw) for task in part}
    if merging is Merging.NONE:
        return set(components.values())
    home = {name: number for number, part in enumerate(nx.connected_components(logical)) for name in part}
    waits = nx.DiGraph()
    waits.add_nodes_from(components.values())
    waits.add_edges_from(
        (components[producer], components[consumer])
        for producer, consumer, i in pairs(topology)
        if merging is Merging.TOPOLOGY or home[producer[0]] == home[consumer[0]]
    )
    return {frozenset(chain.from_iterable(part)) for part in nx.strongly_connected_components(waits)}


def test_how_many_graphs() -> None:
    """The exhaustive tests below cover 7,697 job graphs, and on every push 1,632 of them."""
    assert (len(every_graph(4)), len(every_graph(3))) == (7697, 1632)


@TASKS
@pytest.mark.parametrize("merging", Merging)
def test_grouped_regions_are_the_regions_by_pairs(merging: Merging, most: int) -> None:
    """On every small graph the regions computed over groups are those computed over pairs of tasks."""
    for graph in nonempty(every_graph(most)):
        regions = pipelined_regions(Topology(graph), merging).named()
        assert set(map(frozenset, regions)) == regions_by_pairs(graph, merging), graph


def dependencies_by_pairs(regions: Regions) -> list[set[int]]:
    """For each region, the other regions that read from it, pair by pair."""
    found: list[set[int]] = [set() for _ in regions.members]
    for producer, consumer, _ in pairs(regions.topology):
        if regions.of(producer) != regions.of(consumer):
            found[regions.of(producer)].add(regions.of(consumer))
    return found


@TASKS
@pytest.mark.parametrize("merging", Merging)
def test_dependencies_and_cycles(merging: Merging, most: int) -> None:
    """On every small graph the dependencies and their cycles are those of the pairs of tasks."""
    for graph in nonempty(every_graph(most)):
        regions = pipelined_regions(Topology(graph), merging)
        expected = dependencies_by_pairs(regions)
        assert regions.dependencies() == expected, graph
        waits = nx.DiGraph((region, reader) for region, readers in enumerate(expected) for reader in readers)
        cycles = [sorted(part) for part in nx.strongly_connected_components(waits) if len(part) > 1]
        assert regions.cycles() == sorted(cycles), graph


def test_merging_over_the_topology_leaves_no_cycle() -> None:
    """After merging over the whole topology no small graph has regions that wait for each other."""
    assert not any(pipelined_regions(Topology(graph), Merging.TOPOLOGY).cycles() for graph in every_graph())


def test_merging_within_logical_regions_can_leave_a_cycle() -> None:
    """Merging as Flink 2.3 does leaves a cycle in graphs of three tasks already, and in none of two."""
    stuck = [graph for graph in every_graph() if pipelined_regions(Topology(graph)).cycles()]
    assert min(len(graph.tasks) for graph in stuck) == 3
    least = min(stuck, key=lambda graph: (len(graph.tasks), len(graph.edges)))
    assert sorted((e.source, e.target, e.exchange.glues) for e in least.edges) == [
        ("A", "B", False),
        ("A", "C", True),
        ("B", "C", False),
    ]


def subsets(items: list[Partition]) -> Iterator[frozenset[Partition]]:
    """All subsets, smaller ones first."""
    return map(frozenset, chain.from_iterable(combinations(items, size) for size in range(len(items) + 1)))


def losable(graph: JobGraph) -> list[Partition]:
    """The partitions whose availability can matter: those of exchanges that can be read again."""
    rereadable = {edge.dataset for edge in graph.edges if edge.exchange.rereadable}
    return [partition for partition in graph.partitions if partition[0] in rereadable]


Reads = list[tuple[int, int, Partition, bool]]


def reads_by_pairs(regions: Regions) -> Reads:
    """For each pair of tasks: producer's region, consumer's region, the partition, whether it can be read again."""
    edges = regions.topology.graph.edges
    return [
        (regions.of(producer), regions.of(consumer), (edges[i].dataset, producer[1]), edges[i].exchange.rereadable)
        for producer, consumer, i in pairs(regions.topology)
    ]


def closed_sets(count: int, reads: Reads, unavailable: frozenset[Partition]) -> list[frozenset[int]]:
    """All sets of the `count` regions that are closed under rules 2 and 3, found by trying every set."""
    drags: list[set[int]] = [set() for _ in range(count)]
    for producer, consumer, partition, rereadable in reads:
        drags[producer].add(consumer)
        if partition in unavailable or not rereadable:
            drags[consumer].add(producer)
    candidates = chain.from_iterable(combinations(range(count), size) for size in range(count + 1))
    return [frozenset(some) for some in candidates if all(drags[region] <= set(some) for region in some)]


@TASKS
def test_the_restart_set_is_least_monotone_and_idempotent(most: int) -> None:
    """On every small graph, for every failure and loss, the restart set is the least closed one.

    It is closed and inside every other closed set with the failed region. It grows with the lost partitions, and
    contains the restart set of each of its members.
    """
    situations = 0
    for graph in nonempty(every_graph(most)):
        regions = pipelined_regions(Topology(graph))
        reads = reads_by_pairs(regions)
        before: dict[tuple[frozenset[Partition], int], frozenset[Task]] = {}
        for unavailable in subsets(losable(graph)):
            closed = closed_sets(len(regions.members), reads, unavailable)
            for failed, members in enumerate(regions.members):
                restarted = tasks_to_restart(regions, regions.topology.tasks[members[0]], unavailable)
                situations += 1
                before[unavailable, failed] = restarted
                found = frozenset(map(regions.of, restarted))
                assert len(restarted) == sum(len(regions.members[region]) for region in found), graph
                assert found == frozenset.intersection(*(some for some in closed if failed in some)), graph
                for partition in unavailable:
                    assert before[unavailable - {partition}, failed] <= restarted, graph
            for failed in range(len(regions.members)):
                restarted = before[unavailable, failed]
                for region in map(regions.of, restarted):
                    assert before[unavailable, region] <= restarted, graph
    assert situations == {3: 15_346, 4: 225_391}[most]


@TASKS
def test_the_search_is_the_least_fixpoint(most: int) -> None:
    """On every graph of up to three tasks (on every push: two) the search finds what iterating the rules finds.

    Whichever task fails, whatever is lost (partitions that cannot be read twice included), and, with nothing
    lost, whichever task is CREATED.
    """
    graphs = [graph for graph in every_graph(most) if len(graph.tasks) < most]
    assert len(graphs) == {3: 17, 4: 1541}[most]
    for graph in graphs:
        regions = pipelined_regions(Topology(graph))
        for failed in graph.tasks:
            for unavailable in subsets(list(graph.partitions)):
                expected = least_fixpoint(regions, failed, unavailable)
                assert tasks_to_restart(regions, failed, unavailable) == expected, graph
            for created in graph.tasks:
                expected = least_fixpoint(regions, failed, created={created})
                assert tasks_to_restart(regions, failed, created={created}) == expected, graph


@TASKS
def test_merging_never_changes_the_restart_set(most: int) -> None:
    """On every small graph all three ways of merging give the same restart sets."""
    merged = 0
    for graph in every_graph(most):
        ways = [pipelined_regions(Topology(graph), merging) for merging in Merging]
        if len({regions.members for regions in ways}) == 1:
            continue
        merged += 1
        for unavailable in subsets(losable(graph)):
            for failed in graph.tasks:
                assert len({tasks_to_restart(regions, failed, unavailable) for regions in ways}) == 1, graph
    assert merged == {3: 134, 4: 1287}[most]


@st.composite
def larger_graphs(draw: st.DrawFn) -> JobGraph:
    """Job graphs of up to six vertices of parallelism up to five, all exchanges, shared and parallel datasets."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=6))
    vertices = tuple(Vertex(f"V{i}", size) for i, size in enumerate(sizes))
    edges: list[Edge] = []
    for _ in range(draw(st.integers(1, 9))):
        source = draw(st.integers(0, len(sizes) - 2))
        target = f"V{draw(st.integers(source + 1, len(sizes) - 1))}"
        shareable = [e for e in edges if e.source == f"V{source}"]
        if shareable and draw(st.booleans()):
            edges.append(replace(draw(st.sampled_from(shareable)), target=target))
        else:
            kind = draw(st.sampled_from(Pattern)), draw(st.sampled_from(Exchange))
            edges.append(Edge(f"V{source}", target, *kind, f"d{len(edges)}"))
    return JobGraph(vertices, tuple(edges))


@settings(max_examples=300, deadline=None)
@given(graph=larger_graphs(), data=st.data())
@pytest.mark.long
def test_larger_graphs(graph: JobGraph, data: st.DataObject) -> None:
    """On random larger graphs too, regions are those by pairs and restart sets the least fixpoints."""
    topology = Topology(graph)
    regions = pipelined_regions(topology)
    for merging in Merging:
        named = pipelined_regions(topology, merging).named()
        assert set(map(frozenset, named)) == regions_by_pairs(graph, merging)
    failed = data.draw(st.sampled_from(graph.tasks))
    unavailable = data.draw(st.sets(st.sampled_from(graph.partitions), max_size=6))
    created = data.draw(st.sets(st.sampled_from(graph.tasks)))
    expected = least_fixpoint(regions, failed, unavailable, created)
    assert tasks_to_restart(regions, failed, unavailable, created) == expected
