"""The machine that follows recorded jobs: its restart sets are those of the failover machine, on random job graphs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.conformance.flink import JobGraph as LoggedGraph
from streamproof.conformance.flink.graph import Edge as LoggedEdge
from streamproof.conformance.flink.graph import Vertex as LoggedVertex
from streamproof_models.failover.machine import Failover
from streamproof_specs.failover.flink.recorded_machine import RecordedFailover, recorded_graph

EXCHANGES = ("BLOCKING", "BLOCKING", "HYBRID_FULL", "PIPELINED_BOUNDED")


@st.composite
def logged_graphs(draw: st.DrawFn) -> LoggedGraph:
    """Job graphs as a reader of logs gives them: up to five vertices of up to four subtasks, any edges forwards."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    vertices = tuple(LoggedVertex(f"{at:032x}", f"V{at}", size) for at, size in enumerate(sizes))
    edges = []
    for target in range(1, len(sizes)):
        for source in draw(st.sets(st.integers(0, target - 1))):
            pattern = draw(st.sampled_from(("POINTWISE", "ALL_TO_ALL")))
            exchange = draw(st.sampled_from(EXCHANGES))
            dataset = f"{len(edges):032x}" if draw(st.booleans()) else None
            edges.append(LoggedEdge(vertices[source].id, vertices[target].id, pattern, exchange, dataset))
    return LoggedGraph("j", "job", vertices, tuple(edges), (), True, (), "log")


@pytest.mark.long
@settings(max_examples=300)
@given(logged_graphs(), st.data())
def test_restart_sets_are_those_of_the_failover_machine(logged: LoggedGraph, data: st.DataObject) -> None:
    """Whatever failed, was lost, and was named: searching along exchanges finds the same regions as the machine's rule."""
    model = RecordedFailover(recorded_graph(logged).graph, restarts=1)
    status = st.sampled_from(("NONE", "PRODUCING", "STORED", "GONE", "RELEASED"))
    state = SimpleNamespace(partition={p: data.draw(status) for p in model.partitions})
    failed = data.draw(st.sampled_from(model.tasks))
    named = data.draw(st.sampled_from((None, *model.partitions)))
    defined = Failover.regions_to_restart(model, state, failed, named)
    assert model.regions_to_restart(state, failed, named) == defined


def test_a_chain_of_causes_may_be_long() -> None:
    """Up to a maker, down to its readers, up again: the search turns as often as the graph can make it."""
    ids = [f"{at:032x}" for at in range(6)]
    # 0 -> 1 <- 2 -> 3 <- 4 -> 5: each exchange is entered once, in turn against and along its direction.
    edges = tuple(
        LoggedEdge(ids[a], ids[z], "ALL_TO_ALL", "BLOCKING") for a, z in ((0, 1), (2, 1), (2, 3), (4, 3), (4, 5))
    )
    vertices = tuple(LoggedVertex(i, f"V{at}", 1) for at, i in enumerate(ids))
    logged = LoggedGraph("j", "job", vertices, edges, (), True, (), "log")
    model = RecordedFailover(recorded_graph(logged).graph, restarts=1)
    lost = SimpleNamespace(partition=dict.fromkeys(model.partitions, "NONE"))
    kept = SimpleNamespace(partition=dict.fromkeys(model.partitions, "STORED"))
    assert [*model.regions_to_restart(lost, "V0 (1/1)", None).values()] == [True] * 6
    assert [*model.regions_to_restart(kept, "V0 (1/1)", None).values()] == [True, True, False, False, False, False]


def test_vertices_of_one_name_are_told_apart() -> None:
    """The second of two vertices with the same name bears its identifier."""
    vertices = (LoggedVertex("a" * 32, "Map", 1), LoggedVertex("b" * 32, "Map", 2))
    recorded = recorded_graph(LoggedGraph("j", "job", vertices, (), (), True, (), "log"))
    assert recorded.task("a" * 32, 0) == "Map (1/1)"
    assert recorded.task("b" * 32, 1) == "Map [bbbbbb] (2/2)"
    assert recorded.task("b" * 32, 2) is None


@pytest.mark.parametrize(
    ("exchange", "complete", "message"),
    [
        ("HYBRID_SELECTIVE", True, r"exchanges of type HYBRID_SELECTIVE \(A -> B\) are not followed"),
        ("BLOCKING", False, "the job graph is not known well enough: something"),
    ],
)
def test_graphs_that_cannot_be_followed_say_why(exchange: str, complete: bool, message: str) -> None:
    """An exchange that the machine does not have, a graph with gaps."""
    vertices = (LoggedVertex("a" * 32, "A", 1), LoggedVertex("b" * 32, "B", 1))
    edges = (LoggedEdge("a" * 32, "b" * 32, "ALL_TO_ALL", exchange),)
    missing = () if complete else ("something",)
    with pytest.raises(ValueError, match=message):
        recorded_graph(LoggedGraph("j", "job", vertices, edges, (), complete, missing, "log"))
