"""The generator of small job graphs: complete and without repetition, against published and brute-force counts."""

from __future__ import annotations

from itertools import product

import networkx as nx
import pytest

from shares import share
from streamproof_models.failover.graph import Exchange, JobGraph, Pattern
from streamproof_models.failover.small_graphs import KINDS, job_graphs, region_graphs


@pytest.mark.parametrize(("regions", "count"), [(0, 1), (1, 1), (2, 2), (3, 6), (4, 31), (5, 302), (6, 5984)])
def test_region_graphs_are_the_unlabelled_acyclic_digraphs(regions: int, count: int) -> None:
    """The number of region graphs of each size is that of OEIS A003087."""
    assert sum(1 for _ in region_graphs(regions)) == count


def as_digraph(graph: JobGraph) -> nx.DiGraph:
    """A job graph as a labelled digraph of vertices and datasets, for a general isomorphism test."""
    sizes = {vertex.name: vertex.parallelism for vertex in graph.vertices}
    digraph = nx.DiGraph()
    for name, size in sizes.items():
        digraph.add_node(name, label=size)
    for edge in graph.edges:
        targets = [sizes[other.target] for other in graph.edges if other.dataset == edge.dataset]
        matters = sizes[edge.source] > 1 and max(targets) > 1
        pattern = edge.pattern if matters else Pattern.ALL_TO_ALL
        digraph.add_node(edge.dataset, label=(edge.exchange, pattern))
        digraph.add_edge(edge.source, edge.dataset)
        digraph.add_edge(edge.dataset, edge.target)
    return digraph


def classes(digraphs: list[nx.DiGraph]) -> list[nx.DiGraph]:
    """One digraph of each isomorphism class."""
    found: dict[str, list[nx.DiGraph]] = {}
    for digraph in digraphs:
        nodes = [
            (repr(data["label"]), digraph.in_degree(n), digraph.out_degree(n)) for n, data in digraph.nodes.items()
        ]
        alike = found.setdefault(repr(sorted(nodes)), [])
        if not any(nx.is_isomorphic(digraph, other, lambda a, b: a["label"] == b["label"]) for other in alike):
            alike.append(digraph)
    return [digraph for alike in found.values() for digraph in alike]


def brute_force(
    parallelisms: tuple[int, ...], sharing: bool, exchanges: tuple[Exchange, ...] = KINDS
) -> list[nx.DiGraph]:
    """All digraphs over vertices 0, 1, ... in topological order, each pair joined at most once.

    With `sharing`, edges of one producer, exchange and pattern also in every division into datasets.
    """
    pairs = [(i, j) for i in range(len(parallelisms)) for j in range(i + 1, len(parallelisms))]
    tags = range(max(1, len(parallelisms) - 1)) if sharing else (0,)
    options = [None, *product(exchanges, Pattern, tags)]
    found = []
    for choice in product(options, repeat=len(pairs)):
        digraph = nx.DiGraph()
        for vertex, parallelism in enumerate(parallelisms):
            digraph.add_node(vertex, label=parallelism)
        for (source, target), option in zip(pairs, choice, strict=True):
            if option is not None:
                dataset = (source, option) if sharing else (source, target, option)
                digraph.add_edge(source, dataset)
                digraph.add_edge(dataset, target)
        for node in [node for node in digraph if isinstance(node, tuple)]:
            (source,) = digraph.predecessors(node)
            exchange, pattern, _ = node[-1]
            matters = parallelisms[source] > 1 and max(parallelisms[t] for t in digraph.successors(node)) > 1
            digraph.nodes[node]["label"] = (exchange, pattern if matters else Pattern.ALL_TO_ALL)
        found.append(digraph)
    return found


@pytest.mark.parametrize("sharing", share([False, True], 2))
def test_job_graphs_of_three_tasks_are_complete(sharing: bool) -> None:
    """Trying every labelled graph of three tasks finds the generated classes, no fewer and no more."""
    generated = [as_digraph(graph) for graph in job_graphs(3, sharing=sharing)]
    compositions = [(3,), (1, 2), (2, 1), (1, 1, 1)]
    tried = [digraph for parallelisms in compositions for digraph in brute_force(parallelisms, sharing)]
    assert len(generated) == (72 if sharing else 60)
    assert len(classes(generated)) == len(generated)
    assert len(classes(generated + classes(tried))) == len(generated)
    assert len(classes(tried)) == len(generated)


def test_shared_datasets_of_five_tasks_are_complete() -> None:
    """Of five tasks in three vertices with blocking edges, sharing datasets, none is missing or there twice.

    Here one dataset can have a reader for which the pattern is irrelevant and another for which it is not.
    """
    blocking = (Exchange.BLOCKING,)
    graphs = [graph for graph in job_graphs(5, blocking, sharing=True) if len(graph.vertices) == 3]
    generated = [as_digraph(graph) for graph in graphs]
    compositions = [c for c in product(range(1, 4), repeat=3) if sum(c) == 5]
    tried = classes([d for c in compositions for d in brute_force(c, True, blocking)])
    assert len(generated) == len(classes(generated)) == len(tried) == len(classes(generated + tried))


@pytest.mark.parametrize(
    ("tasks", "sharing", "parallel_edges", "count"),
    [
        (2, False, 1, 5),
        (2, False, 2, 11),
        (3, False, 2, 930),
        (3, True, 2, 1452),
        (4, False, 1, 2887),
        (4, True, 1, 5794),
    ],
)
def test_how_many_job_graphs(tasks: int, sharing: bool, parallel_edges: int, count: int) -> None:
    """The number of classes of each size does not change unnoticed."""
    assert sum(1 for _ in job_graphs(tasks, sharing=sharing, parallel_edges=parallel_edges)) == count
