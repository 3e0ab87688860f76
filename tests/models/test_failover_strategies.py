"""The strategies: what each restarts of the same job, and how backtracking treats its inputs."""

from __future__ import annotations

import pytest

from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Pattern, Vertex
from streamproof_models.failover.named_job_graphs import chain, pipelined_pair
from streamproof_models.failover.regions import Regions, pipelined_regions
from streamproof_models.failover.restart import Strategy, regions_to_restart, tasks_to_restart
from streamproof_models.failover.topology import Topology


def line(*exchanges: Exchange) -> Regions:
    """The regions of A > B > C ..., one task each, datasets d0, d1, ..."""
    names = "ABCDE"[: len(exchanges) + 1]
    edges = (Edge(names[i], names[i + 1], Pattern.POINTWISE, x, f"d{i}") for i, x in enumerate(exchanges))
    return pipelined_regions(Topology(JobGraph(tuple(map(Vertex, names)), tuple(edges))))


@pytest.mark.parametrize(
    ("strategy", "restarted"),
    [
        (Strategy.BACKTRACKING, "ABCDE"),
        (Strategy.ALL, "ABCDE"),
        (Strategy.INDIVIDUAL, "C"),
        (Strategy.REGION, "CD"),
        (Strategy.NO_DOWNSTREAM, "ABCD"),
        (Strategy.NO_BACKTRACKING, "CDE"),
    ],
)
def test_what_each_strategy_restarts(strategy: Strategy, restarted: str) -> None:
    """A > B > C => D > E (=> pipelined), C fails, the outputs of A and B are lost."""
    blocking = Exchange.BLOCKING
    regions = line(blocking, blocking, Exchange.PIPELINED, blocking)
    found = tasks_to_restart(regions, ("C", 0), {("d0", 0), ("d1", 0)}, strategy=strategy)
    assert found == {(name, 0) for name in restarted}


@pytest.mark.parametrize("strategy", Strategy)
def test_no_strategy_restarts_created_tasks(strategy: Strategy) -> None:
    """Tasks in state CREATED are left out, the failed one included."""
    regions = pipelined_regions(Topology(pipelined_pair()))
    everything = regions.topology.graph.tasks
    assert tasks_to_restart(regions, ("A", 0), created=everything, strategy=strategy) == frozenset()


def test_the_search_goes_through_created_tasks() -> None:
    """C restarts although B, between it and the failed A, is CREATED."""
    regions = pipelined_regions(Topology(chain()))
    assert tasks_to_restart(regions, ("A", 0), created={("B", 0)}) == {("A", 0), ("C", 0)}


@pytest.mark.parametrize("exchange", [x for x in Exchange if not x.glues])
def test_an_available_input_is_recomputed_only_if_it_cannot_be_read_again(exchange: Exchange) -> None:
    """With everything available, a failing consumer takes its producer along on HYBRID_SELECTIVE alone."""
    producer_restarts = ("A", 0) in tasks_to_restart(line(exchange), ("B", 0))
    assert producer_restarts == (exchange is Exchange.HYBRID_SELECTIVE)


def test_regions_are_found_breadth_first() -> None:
    """The regions come in the order in which the search reaches them: first the failed one."""
    regions = line(Exchange.BLOCKING, Exchange.BLOCKING)
    assert regions_to_restart(regions, 1, {("d0", 0)}) == [1, 0, 2]


def test_strategies_without_regions_are_refused_for_regions() -> None:
    """Asking which regions the individual strategy restarts is an error that says what to call."""
    with pytest.raises(ValueError, match=r"^strategy 'individual' does not work on regions; use tasks_to_restart$"):
        regions_to_restart(line(Exchange.BLOCKING), 0, strategy=Strategy.INDIVIDUAL)


@pytest.mark.parametrize(
    ("failed", "unavailable", "created", "message"),
    [
        (("Z", 0), set(), set(), "the graph has no task ('Z', 0)"),
        (("A", 0), {("d7", 0)}, set(), "the graph has no partition ('d7', 0)"),
        (("A", 0), set(), {("A", -1)}, "the graph has no task ('A', -1)"),
    ],
)
def test_unknown_names_are_refused(
    failed: tuple[str, int], unavailable: set[tuple[str, int]], created: set[tuple[str, int]], message: str
) -> None:
    """A failed task, partition or CREATED task that the job does not have is an error naming it."""
    with pytest.raises(JobGraphError) as caught:
        tasks_to_restart(line(Exchange.BLOCKING), failed, unavailable, created)
    assert str(caught.value) == message
