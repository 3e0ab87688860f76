"""Components, breadth-first search and cycles of directed graphs, against a graph library, by Python and by compiled code."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.base.options import TUNING
from streamproof.explicit import state_graph
from streamproof.explicit.state_graph import Digraph


def graph(*successors: tuple[int, ...]) -> Digraph:
    """A graph from the successors of each state, for Python."""
    edges = array("i", [number for targets in successors for number in (*targets, -1)])
    return Digraph.parse(edges, len(successors))


def compiled(plain: Digraph, few_edges: int = TUNING.few_edges) -> Digraph:
    """The same graph, for compiled code from so many edges on."""
    return Digraph(np.array(plain.offsets, dtype=np.int64), np.array(plain.targets, dtype=np.int32), few_edges)


def ways(plain: Digraph) -> Iterator[Digraph]:
    """The same graph in NumPy arrays: kernels of the first are compiled, those of the second run as Python."""
    for few in (-1, len(plain.targets)):
        yield compiled(plain, few)


def find_cycle(plain: Digraph) -> list[int] | None:
    """The cycle, which is the same by Python and by compiled code."""
    found = plain.cycle()
    assert [way.cycle() for way in ways(plain)] == [found, found]
    return found


@pytest.mark.parametrize(
    ("successors", "cycle"),
    [
        pytest.param(((),), None, id="one state"),
        pytest.param(((0,),), [0], id="self-loop"),
        pytest.param(((1,), (2,), ()), None, id="line"),
        pytest.param(((1, 2), (3,), (3,), ()), None, id="diamond"),
        pytest.param(((1,), (2,), (0,)), [0, 1, 2], id="ring"),
        pytest.param(((1,), (2,), (3,), (1, 3)), [1, 2, 3], id="first state on a cycle, not the shortest cycle"),
        pytest.param(((1,), (2, 3), (1,), (1,)), [1, 2], id="shortest way round"),
        pytest.param(((1, 2), (4,), (3,), (2, 1), (5,), (4,)), [2, 3], id="between two cycles is not on one"),
        pytest.param(((1, 1), (2, 2), ()), None, id="two equal edges are no cycle"),
    ],
)
def test_small_graphs(successors: tuple[tuple[int, ...], ...], cycle: list[int] | None) -> None:
    """The cycle starts at the first state on any, and is the shortest through it."""
    assert find_cycle(graph(*successors)) == cycle


def test_states_that_were_not_expanded_have_no_successors() -> None:
    """A cut search stores the edges of the expanded states; a broken-off list belongs to the next one."""
    parsed = Digraph.parse(array("i", [1, 2, -1, 0]), 4)
    assert [list(parsed.successors(k)) for k in range(4)] == [[1, 2], [0], [], []]
    assert find_cycle(parsed) == [0, 1]


def test_a_long_line_and_a_long_ring() -> None:
    """A hundred thousand states in a row need no recursion."""
    line = [(k + 1,) for k in range(99_999)]
    assert find_cycle(graph(*line, ())) is None
    ring = find_cycle(graph(*line, (50_000,)))
    assert ring is not None
    assert (ring[0], len(ring)) == (50_000, 50_000)


@given(st.lists(st.lists(st.integers(0, 11), max_size=3), min_size=12, max_size=12))
def test_random_graphs(successors: list[list[int]]) -> None:
    """Found exactly when a strongly connected component has a cycle; real edges; first state first; shortest round."""
    found = find_cycle(graph(*map(tuple, successors)))
    reference = nx.DiGraph((k, t) for k, targets in enumerate(successors) for t in targets)
    cyclic = [
        c for c in nx.strongly_connected_components(reference) if len(c) > 1 or reference.has_edge(*(tuple(c) * 2))
    ]
    if found is None:
        assert not cyclic
        return
    first = min(state for component in cyclic for state in component)
    assert found[0] == first
    assert all(b in successors[a] for a, b in zip(found, [*found[1:], found[0]], strict=True))
    back = (
        1
        if first in successors[first]
        else min(
            nx.shortest_path_length(reference, t, first) + 1
            for t in successors[first]
            if nx.has_path(reference, t, first)
        )
    )
    assert len(found) == back


def test_edges_to_forgotten_states_are_left_out() -> None:
    """After an interruption in the middle of a batch the stored edges may name states that were taken back."""
    graph = Digraph.parse(array("i", [1, 2, -1, 5, 0, -1]), 3)
    assert [list(graph.successors(k)) for k in range(3)] == [[1, 2], [0], []]
    assert find_cycle(graph) is not None


@given(st.lists(st.lists(st.integers(0, 11), max_size=3), min_size=12, max_size=12))
def test_components(successors: list[list[int]]) -> None:
    """Those of the library, numbered in topological order; parallel edges and loops are no trouble."""
    plain = graph(*map(tuple, successors))
    count, number = plain.components()
    reference = nx.DiGraph((k, t) for k, targets in enumerate(successors) for t in targets)
    reference.add_nodes_from(range(12))
    expected = {frozenset(c) for c in nx.strongly_connected_components(reference)}
    assert {frozenset(k for k in range(12) if number[k] == own) for own in range(count)} == expected
    assert all(number[k] <= number[t] for k, targets in enumerate(successors) for t in targets)
    for way in ways(plain):
        fast_count, fast = way.components()
        assert (fast_count, list(fast)) == (count, list(number))


@given(
    st.lists(st.lists(st.integers(0, 11), max_size=2), min_size=12, max_size=12),
    st.lists(st.integers(0, 11), min_size=1, max_size=4, unique=True),
)
def test_nodes_within_reach(successors: list[list[int]], entries: list[int]) -> None:
    """Those of the library, nearest first, each by a shortest path."""
    first, second = (w.reached(np.array(entries, dtype=np.int32)) for w in ways(graph(*map(tuple, successors))))
    assert [x.tolist() for x in first] == [x.tolist() for x in second]
    order, before = first
    reference = nx.DiGraph((k, t) for k, targets in enumerate(successors) for t in targets)
    reference.add_nodes_from(range(12))
    expected = nx.multi_source_dijkstra_path_length(reference, set(entries))
    distance: dict[int, int] = {}
    for node in order.tolist():
        distance[node] = 0 if before[node] < 0 else 1 + distance[int(before[node])]
        assert before[node] < 0 or node in successors[before[node]]
    assert distance == expected
    assert list(distance.values()) == sorted(distance.values())
    assert all(before[node] == -1 for node in range(12) if node not in distance)


@given(st.lists(st.lists(st.integers(0, 11), max_size=2), min_size=12, max_size=12), st.sets(st.integers(0, 11)))
def test_paths(successors: list[list[int]], goals: set[int]) -> None:
    """A shortest path to the nearest goal, the same by Python and by compiled code."""
    reference = nx.DiGraph((k, t) for k, targets in enumerate(successors) for t in targets)
    reference.add_nodes_from(range(12))
    distance = nx.single_source_shortest_path_length(reference, 0)
    near = [distance[g] for g in goals if g in distance]
    if 0 in goals or not near:
        return
    marked = np.isin(np.arange(12), list(goals))
    paths = [way.path(0, marked) for way in ways(graph(*map(tuple, successors)))]
    assert paths[0] == paths[1]
    assert len(paths[0]) == min(near)
    assert paths[0][-1] in goals
    assert all(b in successors[a] for a, b in zip([0, *paths[0]], paths[0], strict=False))


def test_the_compiler_is_not_loaded_for_few_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of edges decides."""
    ring = compiled(graph((1,), (2,), (0,)))
    monkeypatch.setattr(state_graph, "_compiled", lambda: pytest.fail("loaded"))
    assert ring.cycle() == [0, 1, 2]
    with pytest.raises(pytest.fail.Exception):
        compiled(ring, 2).cycle()


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where compiled code cannot be loaded, Python does the same on the same arrays."""

    def missing() -> None:
        raise ImportError("no llvmlite")

    ring = compiled(graph((1,), (2, 3), (1,), ()))
    expected = ring.cycle(), list(ring.components()[1])
    monkeypatch.setattr(state_graph, "_compiled", missing)
    ring = compiled(ring, -1)
    assert (ring.cycle(), list(ring.components()[1])) == expected


@pytest.mark.parametrize(("offsets", "targets"), [(np.int32, np.int32), (np.int64, np.int64)])
def test_arrays_of_another_width_are_refused(offsets: type, targets: type) -> None:
    """Compiled code reads memory as it is told to."""
    with pytest.raises(AssertionError, match="must be"):
        Digraph(np.array([0, 1], dtype=offsets), np.array([0], dtype=targets), few_edges=-1).components()


@pytest.mark.parametrize("seed", range(4))
def test_no_lasso_has_fewer_steps(seed: int) -> None:
    """On sparse graphs, by distances between all nodes; with little work a lasso that is not called shortest."""
    rng, shorter, unproved = Random(seed), 0, 0
    for _ in range(100):
        drawn = nx.gnp_random_graph(rng.randint(2, 30), 0.06, seed=rng.randrange(1 << 30), directed=True)
        depth = nx.single_source_shortest_path_length(drawn, 0)
        order = sorted(depth, key=lambda node: depth[node])
        names = {node: at for at, node in enumerate(order)}
        plain = graph(*(tuple(names[to] for to in drawn.successors(node)) for node in order))
        levels = [list(depth.values()).count(d) for d in range(max(depth.values()) + 1)]
        ways_round = [
            depth[node] + 1 + back
            for node in order
            for to in drawn.successors(node)
            if (back := dict(nx.single_source_shortest_path_length(drawn, to)).get(node)) is not None
        ]
        first = plain.cycle()
        found = plain.lasso(levels, 10_000)
        assert [way.lasso(levels, 10_000) for way in ways(plain)] == [found, found]
        assert (found is None) == (not ways_round)
        if found is None or first is None:
            continue
        cycle, proved = found
        assert proved
        assert all(to in plain.successors(node) for node, to in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        steps = depth[order[cycle[0]]] + len(cycle)
        assert steps == min(ways_round)
        shorter += steps < depth[order[first[0]]] + len(first)
        unproved += plain.lasso(levels, 1) == (first, False)
    assert shorter
    assert unproved
