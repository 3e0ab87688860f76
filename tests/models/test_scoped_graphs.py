"""The generator of scoped graphs makes every one of a size, and none twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, product

import networkx as nx
import pytest

from shares import share
from streamproof_models.scopes.enumeration import Bounds, graphs_of, scoped_graphs
from streamproof_models.scopes.graph import ROOT, Edge, Operator, Pattern, ScopedGraph, ScopeError, StreamScope
from streamproof_models.scopes.rules import validate
from streamproof_models.scopes.text import parse


def drawn(graph: ScopedGraph) -> nx.DiGraph:
    """The graph with a node for each operator, loop and edge, so that names say nothing and kinds everything."""
    made = nx.DiGraph()
    for operator in graph.operators:
        made.add_node(operator.name, kind=f"operator {operator.parallelism}")
    for scope in graph.scopes:
        made.add_node(str(scope), kind="loop")
        if scope.level > 1:
            made.add_edge(str(scope), str(scope.unnest()))
    for operator in graph.operators:
        if operator.scope != ROOT:
            made.add_edge(operator.name, str(operator.scope))
    for kind, edges in (("edge", graph.edges), ("feedback", graph.feedback)):
        for edge in edges:
            node = (kind, edge)
            made.add_node(node, kind=f"{kind} {edge.pattern.value}")
            made.add_edge(edge.source, node)
            made.add_edge(node, edge.target)
    return made


def classes(graphs: Iterator[ScopedGraph]) -> list[nx.DiGraph]:
    """One of each isomorphism class."""
    found: dict[tuple[object, ...], list[nx.DiGraph]] = defaultdict(list)
    alike = nx.algorithms.isomorphism.categorical_node_match("kind", None)
    for graph in graphs:
        one = drawn(graph)
        others = found[sizes(one)]
        if not any(nx.is_isomorphic(one, other, alike) for other in others):
            others.append(one)
    return list(chain.from_iterable(found.values()))


def sizes(graph: nx.DiGraph) -> tuple[object, ...]:
    """What isomorphic graphs have in common, to compare fewer of them."""
    return tuple(sorted((kind, graph.in_degree(node), graph.out_degree(node)) for node, kind in graph.nodes("kind")))


def tried(count: int, loops: int, parallelism: int, sources: int) -> Iterator[ScopedGraph]:
    """Whatever can be written down with so many operators and is valid; connected by the single source, or by being so."""
    scopes = [StreamScope(chained) for chained in [(), ("L",), ("M",), ("L", "M")] if len(chained) <= loops]
    scopes = scopes if loops > 1 else scopes[:2]
    names = "abcd"[:count]
    for homes in product(scopes, repeat=count - 1):
        if loops == 1 and StreamScope(("L", "M")) in homes:
            continue
        for widths in product(range(1, parallelism + 1), repeat=count):
            operators = tuple(
                Operator(name, scope, wide) for name, scope, wide in zip(names, (ROOT, *homes), widths, strict=True)
            )
            yield from wired(operators, sources)


def wired(operators: tuple[Operator, ...], sources: int) -> Iterator[ScopedGraph]:
    """Every valid graph of these operators, edges going from earlier to later ones."""
    pairs = [(a, b) for a, b in product(operators, repeat=2)]
    before = [(a, b) for a, b in pairs if operators.index(a) < operators.index(b)]
    back = [(a, b) for a, b in pairs if b.scope != ROOT]
    for edges in product(*(ways(a, b) for a, b in before)):
        forward = tuple(e for e in edges if e is not None)
        for returning in product(*(ways(a, b) for a, b in back)):
            graph = ScopedGraph(operators, forward, tuple(e for e in returning if e is not None))
            loops = {e.target for e in graph.feedback}
            if len(graph.scopes) != len(loops) or len(graph.feedback) != len(loops) or len(graph.sources) > sources:
                continue
            try:
                yield validate(graph)
            except ScopeError:
                continue


def ways(one: Operator, other: Operator) -> list[Edge | None]:
    """How two operators can be connected, or not."""
    patterns = [Pattern.POINTWISE] * (one.parallelism == other.parallelism)
    patterns += [Pattern.ALL_TO_ALL] * (one.parallelism * other.parallelism > 1)
    return [None, *(Edge(one.name, other.name, pattern) for pattern in patterns)]


@pytest.mark.parametrize(
    ("count", "loops", "parallelism", "number"),
    [(1, 2, 2, 2), (2, 2, 2, 13), (3, 2, 1, 15), pytest.param(4, 1, 1, 84, marks=pytest.mark.long)],
)
def test_what_is_generated_is_what_there_is(count: int, loops: int, parallelism: int, number: int) -> None:
    """Trying everything that can be written down, and putting isomorphic graphs together, gives the same classes."""
    generated = graphs_of(count, Bounds(count, loops=loops, parallelism=parallelism))
    assert len(generated) == number
    assert len(classes(iter(generated))) == number
    every = [*classes(tried(count, loops, parallelism, sources=1))]
    assert len(every) == number
    alike = nx.algorithms.isomorphism.categorical_node_match("kind", None)
    for one in map(drawn, generated):
        assert sum(nx.is_isomorphic(one, other, alike) for other in every) == 1


@pytest.mark.parametrize(
    ("bounds", "numbers"),
    share(
        [
            (Bounds(6, loops=0), [1, 1, 3, 16, 164, 3341]),
            (Bounds(5), [1, 2, 15, 183, 3601]),
            (Bounds(5, feedback=None), [1, 2, 17, 256, 6254]),
            (Bounds(5, depth=1), [1, 2, 13, 144, 2730]),
            (Bounds(6, joins=0), [1, 2, 11, 66, 410, 2453]),
            (Bounds(5, joins=1), [1, 2, 15, 139, 1322]),
            (Bounds(3, parallelism=2), [2, 13, 387]),
            (Bounds(3, sources=2), [1, 2, 17]),
        ],
        2,
    ),
    ids=str,
)
def test_numbers_of_graphs(bounds: Bounds, numbers: list[int]) -> None:
    """As many as expected; without loops, the acyclic graphs with one source, whose numbers are known."""
    assert [len(graphs_of(k + 1, bounds)) for k in range(bounds.operators)] == numbers


def test_bounds_leave_out_what_is_larger() -> None:
    """Those with a smaller bound are the ones of all that keep it."""
    every = graphs_of(4, Bounds(4, feedback=None))
    flat = [g for g in every if all(scope.level < 2 for scope in g.scopes)]
    assert set(graphs_of(4, Bounds(4, depth=1, feedback=None))) == set(flat)
    once = [g for g in every if len(g.feedback) == len(g.scopes)]
    assert set(graphs_of(4, Bounds(4))) == set(once)
    trees = [g for g in once if len(g.edges) == len(g.operators) - 1]
    assert set(graphs_of(4, Bounds(4, joins=0))) == set(trees)


def test_every_graph_can_be_written_and_read() -> None:
    """Each is valid, has a text of its own, and is what its text says; small ones come first."""
    graphs = list(scoped_graphs(Bounds(4, feedback=None)))
    assert [parse(str(graph)) for graph in graphs] == graphs
    assert len({str(graph) for graph in graphs}) == len(graphs) == 276
    assert [len(graph.operators) for graph in graphs] == sorted(len(graph.operators) for graph in graphs)
    assert [str(graph) for graph in graphs[:5]] == [
        "a",
        "a b; a>b",
        "a L:b; a>b; b~b",
        "a b c; a>b a>c",
        "a b c; a>b b>c",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"operators": 0}, "operators is 0; 1 to 11 are possible"),
        ({"operators": 3, "loops": -1}, "loops is -1, the least is 0"),
        ({"operators": 3, "parallelism": 0}, "parallelism is 0, the least is 1"),
        ({"operators": 3, "feedback": 0}, "feedback is 0, the least is 1: every loop has a feedback edge"),
        ({"operators": 3, "joins": -1}, "joins is -1, the least is 0"),
    ],
)
def test_bounds_that_are_refused(given: dict[str, int], message: str) -> None:
    """Bounds that no graph keeps are told."""
    with pytest.raises(ValueError, match=message):
        Bounds(**given)
