"""Job graphs: what is refused and how, the mapping of subtasks, the groups, the exchange types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Pattern, Vertex
from streamproof_models.failover.topology import Connection, Topology


def edge(
    source: str, target: str, dataset: str = "d", exchange: Exchange = Exchange.BLOCKING, pattern: str = "POINTWISE"
) -> Edge:
    """An edge, blocking and pointwise unless stated otherwise."""
    return Edge(source, target, Pattern[pattern], exchange, dataset)


def pointwise(producers: int, consumers: int, pattern: str = "POINTWISE") -> Connection:
    """The connection of one edge from A to B."""
    graph = JobGraph((Vertex("A", producers), Vertex("B", consumers)), (edge("A", "B", pattern=pattern),))
    return Topology(graph).connections[0]


A, B, C = Vertex("A"), Vertex("B"), Vertex("C")


@pytest.mark.parametrize(
    ("vertices", "edges", "message"),
    [
        ((Vertex(""),), (), "a vertex has an empty name; give every vertex a name"),
        ((A, A), (), "two vertices are named 'A'; names must differ"),
        ((Vertex("A", 0),), (), "vertex 'A' has parallelism 0; it must be a whole number from 1 up"),
        ((Vertex("A", True),), (), "vertex 'A' has parallelism True; it must be a whole number from 1 up"),
        ((A,), (edge("A", "B"),), "edge A -> B joins 'B', which is not a vertex of the graph"),
        ((A,), (edge("A", "A"),), "edge A -> A joins a vertex with itself; a job graph is acyclic"),
        ((A, B), (edge("A", "B", ""),), "edge A -> B names no dataset; give the data it carries a name"),
        (
            (A, B, C),
            (edge("A", "C"), edge("B", "C")),
            "edges A -> C and B -> C share dataset 'd' but differ in producer, pattern or exchange; "
            "name two datasets or make them agree",
        ),
        (
            (A, B, C),
            (edge("A", "B", "1"), edge("B", "C", "2"), edge("C", "B", "3")),
            "edges form a cycle, B -> C -> B; a job graph is acyclic",
        ),
    ],
)
def test_a_wrong_graph_is_refused_in_one_sentence(
    vertices: tuple[Vertex, ...], edges: tuple[Edge, ...], message: str
) -> None:
    """The sentence says what is wrong with the graph and names the culprit."""
    with pytest.raises(JobGraphError) as caught:
        JobGraph(vertices, edges)
    assert str(caught.value) == message


def test_a_job_graph_error_is_a_value_error() -> None:
    """Callers that know nothing of this package catch the error as a ValueError."""
    assert issubclass(JobGraphError, ValueError)


def test_tasks_and_partitions_in_order() -> None:
    """Tasks come vertex after vertex; a dataset read by two vertices is written once."""
    graph = JobGraph((Vertex("A", 2), B, C), (edge("A", "B"), edge("A", "C")))
    assert graph.tasks == (("A", 0), ("A", 1), ("B", 0), ("C", 0))
    assert graph.partitions == (("d", 0), ("d", 1))


@pytest.mark.parametrize(
    ("producers", "consumers", "reads"),
    [
        (1, 1, [[0]]),
        (1, 3, [[0], [0], [0]]),
        (3, 1, [[0, 1, 2]]),
        (2, 3, [[0], [0], [1]]),
        (3, 2, [[0], [1, 2]]),
        (3, 5, [[0], [0], [1], [1], [2]]),
        (5, 3, [[0], [1, 2], [3, 4]]),
        (4, 4, [[0], [1], [2], [3]]),
    ],
)
def test_pointwise_shares(producers: int, consumers: int, reads: list[list[int]]) -> None:
    """Who reads whom in a pointwise edge, worked out by hand from the division rule."""
    graph = JobGraph((Vertex("A", producers), Vertex("B", consumers)), (edge("A", "B"),))
    assert Topology(graph).consumes() == [reads]


@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from(["POINTWISE", "ALL_TO_ALL"]))
def test_groups_divide_producers_and_consumers(producers: int, consumers: int, pattern: str) -> None:
    """Groups come in order, cover each producer and each consumer once, and each member knows its group."""
    connection = pointwise(producers, consumers, pattern)
    groups = list(connection.groups())
    assert len(groups) == connection.group_count
    assert [task for group, _ in groups for task in group] == list(connection.producers)
    assert [task for _, group in groups for task in group] == list(connection.consumers)
    for number, (writing, reading) in enumerate(groups):
        assert {connection.group_of_producer(task) for task in writing} == {number}
        assert {connection.group_of_consumer(task) for task in reading} == {number}


def test_an_all_to_all_edge_takes_constant_memory() -> None:
    """The one group of an all-to-all edge of a million by a million subtasks is two intervals."""
    everyone = edge("A", "B", pattern="ALL_TO_ALL")
    connection = Connection(everyone, range(1_000_000), range(1_000_000, 2_000_000))
    assert list(connection.groups()) == [(range(1_000_000), range(1_000_000, 2_000_000))]


def test_unknown_tasks_and_partitions_are_named() -> None:
    """Asking for a task or a partition that the graph lacks says which."""
    topology = Topology(JobGraph((A, B), (edge("A", "B"),)))
    with pytest.raises(JobGraphError, match=r"^the graph has no task \('B', 1\)$"):
        topology.number(("B", 1))
    with pytest.raises(JobGraphError, match=r"^the graph has no partition \('e', 0\)$"):
        topology.check_partition(("e", 0))


def test_what_each_exchange_means() -> None:
    """Two exchanges glue regions together, four can be read again, the selective hybrid does neither."""
    glue = {exchange.name for exchange in Exchange if exchange.glues}
    rereadable = {exchange.name for exchange in Exchange if exchange.rereadable}
    assert glue == {"PIPELINED", "PIPELINED_BOUNDED"}
    assert rereadable == {"BLOCKING", "BLOCKING_PERSISTENT", "HYBRID_FULL", "PIPELINED_APPROXIMATE"}
