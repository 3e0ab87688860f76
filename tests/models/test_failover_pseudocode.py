"""FLIP-1's printed pseudo-code, run to the letter: where it does not end, and where it ends with something else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations

import pytest

from shares import share
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Partition, Pattern, Vertex
from streamproof_models.failover.named_job_graphs import all_to_all, cyclic_detour, pair, pipelined_pair
from streamproof_models.failover.named_job_graphs import chain as chain_of_three
from streamproof_models.failover.pseudocode import READINGS, Availability, Inside, Outcome, Reading, Scheduled, execute
from streamproof_models.failover.regions import Merging, Regions, pipelined_regions
from streamproof_models.failover.restart import regions_to_restart, tasks_to_restart
from streamproof_models.failover.small_graphs import KINDS, job_graphs
from streamproof_models.failover.topology import Topology

STAYS, RESETS = Scheduled.STAYS, Scheduled.RESETS
FIXED, RESTORED, DISCARDED = Availability.FIXED, Availability.RESTORED, Availability.DISCARDED
LEFT_OUT, COUNTED = Inside.LEFT_OUT, Inside.COUNTED


@cache
def situations(merging: Merging) -> tuple[tuple[Regions, int, frozenset[Partition]], ...]:
    """Every job graph of up to four tasks with pipelined and blocking exchanges, every failure, every loss.

    Smaller graphs come first: by tasks, then by edges, then by the number of lost partitions.
    """
    found = []
    for tasks in range(1, 5):
        for graph in sorted(job_graphs(tasks, KINDS[:2]), key=lambda graph: len(graph.edges)):
            regions = pipelined_regions(Topology(graph), merging)
            blocking = {edge.dataset for edge in graph.edges if edge.exchange is Exchange.BLOCKING}
            losable = [partition for partition in graph.partitions if partition[0] in blocking]
            for lost in chain.from_iterable(combinations(losable, n) for n in range(len(losable) + 1)):
                found += [(regions, failed, frozenset(lost)) for failed in range(len(regions.members))]
    return tuple(found)


def outcomes(reading: Reading, merging: Merging) -> Iterator[tuple[Regions, int, frozenset[Partition], Outcome]]:
    """Every situation with what the pseudo-code does in it."""
    for regions, failed, lost in situations(merging):
        task = regions.topology.tasks[regions.members[failed][0]]
        yield regions, failed, lost, execute(reading, regions, task, lost)


COUNTS = {
    (STAYS, FIXED, LEFT_OUT): (1638, 54, 6388),
    (STAYS, FIXED, COUNTED): (708, 27, 7345),
    (STAYS, RESTORED, LEFT_OUT): (2544, 3892, 1644),
    (STAYS, RESTORED, COUNTED): (911, 2028, 5141),
    (STAYS, DISCARDED, LEFT_OUT): (1258, 0, 6822),
    (STAYS, DISCARDED, COUNTED): (577, 0, 7503),
    (RESETS, FIXED, LEFT_OUT): (3900, 3665, 515),
    (RESETS, FIXED, COUNTED): (1323, 1616, 5141),
    (RESETS, RESTORED, LEFT_OUT): (3900, 3665, 515),
    (RESETS, RESTORED, COUNTED): (1323, 1616, 5141),
    (RESETS, DISCARDED, LEFT_OUT): (3900, 3665, 515),
    (RESETS, DISCARDED, COUNTED): (1323, 1616, 5141),
}
"""Reading to how many of the 8,080 situations end with each region rescheduled once, end with one of them

rescheduled again, and do not end."""


@pytest.mark.parametrize("reading", share(READINGS, 2), ids=str)
def test_every_reading_on_every_small_graph(reading: Reading) -> None:
    """How often the reading ends; and whenever it does, it has rescheduled the right set of regions."""
    once = again = never = 0
    for regions, failed, lost, outcome in outcomes(reading, Merging.LOGICAL_REGION):
        if not outcome.ends:
            never += 1
            continue
        assert set(outcome.rescheduled) == set(regions_to_restart(regions, failed, lost))
        once += outcome.most_often == 1
        again += outcome.most_often > 1
    assert (once, again, never) == COUNTS[reading.scheduled, reading.availability, reading.inside]


NEEDS_A_CYCLE = [r for r in READINGS if r.inside is LEFT_OUT and (r.scheduled is RESETS or r.availability is RESTORED)]


@pytest.mark.parametrize("reading", NEEDS_A_CYCLE, ids=str)
def test_four_readings_end_if_no_regions_wait_for_each_other(reading: Reading) -> None:
    """With cycles merged over the whole topology, these readings end in every situation."""
    assert all(outcome.ends for *_, outcome in outcomes(reading, Merging.TOPOLOGY))


def test_no_other_reading_always_ends_on_acyclic_regions() -> None:
    """Each of the other eight readings fails to end in some situation without a cycle of regions."""
    others = [reading for reading in READINGS if reading not in NEEDS_A_CYCLE]
    assert len(others) == 8
    for reading in others:
        assert not all(outcome.ends for *_, outcome in outcomes(reading, Merging.TOPOLOGY))


def edges(graph: JobGraph) -> str:
    """The edges of a job graph as a short text: `=>` pipelined, `->` otherwise."""
    return ", ".join(f"{e.source}{'=>' if e.exchange.glues else '->'}{e.target}" for e in graph.edges)


PAIR, PIPELINE, DETOUR = "A->B", "A=>B", "A->B, A=>C, B->C"


@pytest.mark.parametrize(
    ("reading", "graph", "losses"),
    [
        (Reading(STAYS, FIXED, LEFT_OUT), PAIR, 1),
        (Reading(STAYS, RESTORED, LEFT_OUT), DETOUR, 0),
        (Reading(STAYS, DISCARDED, LEFT_OUT), PAIR, 0),
        (Reading(RESETS, FIXED, LEFT_OUT), DETOUR, 2),
        (Reading(RESETS, RESTORED, LEFT_OUT), DETOUR, 2),
        (Reading(RESETS, DISCARDED, LEFT_OUT), DETOUR, 2),
        *((reading, PIPELINE, 0) for reading in READINGS if reading.inside is COUNTED),
    ],
    ids=str,
)
def test_the_smallest_graph_on_which_a_reading_does_not_end(reading: Reading, graph: str, losses: int) -> None:
    """The first of all situations, from small to large, in which the recursion runs for ever."""
    regions, _, lost, outcome = next(
        situation for situation in outcomes(reading, Merging.LOGICAL_REGION) if not situation[-1].ends
    )
    assert edges(regions.topology.graph) == graph
    assert len(lost) == losses
    assert set(outcome.cycle) == set(range(len(regions.members)))


def run(reading: Reading, graph: JobGraph, failed: str, *lost: Partition, created: str = "") -> Outcome:
    """The pseudo-code on a graph of single tasks named by letters."""
    regions = pipelined_regions(Topology(graph))
    return execute(reading, regions, (failed, 0), lost, [(name, 0) for name in created])


def test_the_pair_calls_itself_for_ever() -> None:
    """B fails with its input lost: B calls A, A is rescheduled and calls its consumer B, and so on."""
    outcome = run(Reading(STAYS, FIXED), pair(), "B", ("A>B", 0))
    assert (outcome.ends, outcome.cycle, outcome.rescheduled, outcome.calls) == (False, (1, 0), (0,), 3)


def test_the_pipelined_pair_calls_itself_for_ever() -> None:
    """The exchange inside {A, B} is never still available, so the region calls itself before anything else."""
    outcome = run(Reading(RESETS, RESTORED, COUNTED), pipelined_pair(), "A")
    assert (outcome.ends, outcome.cycle, outcome.rescheduled, outcome.calls) == (False, (0,), (), 2)


def test_the_detour_calls_itself_for_ever() -> None:
    """{A, B} and C have lost each other's output: each calls the other, and neither is ever rescheduled."""
    outcome = run(Reading(RESETS, FIXED), cyclic_detour(), "A", ("A>C", 0), ("C>B", 0))
    assert (outcome.ends, outcome.cycle, outcome.rescheduled) == (False, (0, 1), ())


@pytest.mark.parametrize("reading", NEEDS_A_CYCLE, ids=str)
@pytest.mark.parametrize("producers", [1, 2, 5])
def test_a_consumer_is_rescheduled_once_more_than_its_lost_inputs(reading: Reading, producers: int) -> None:
    """B fails with n inputs lost: every producer calls B again while B is still waiting to be rescheduled."""
    regions = pipelined_regions(Topology(all_to_all(producers, 1)))
    outcome = execute(reading, regions, ("B", 0), [("A>B", i) for i in range(producers)])
    assert outcome.rescheduled == (*range(producers), *[producers] * (producers + 1))


def test_the_consumer_of_the_consumer_is_rescheduled_before_it() -> None:
    """A > B > C, B fails with its input lost: B is rescheduled again after C has been."""
    outcome = run(Reading(RESETS, FIXED), chain_of_three(), "B", ("A>B", 0))
    assert outcome.rescheduled == (0, 1, 2, 1)


def diamonds(count: int) -> JobGraph:
    """N0 > {L0, R0} > N1 > {L1, R1} > N2 ..., all blocking."""
    names = [f"{letter}{i}" for i in range(count) for letter in "NLR"] + [f"N{count}"]
    steps = [
        step
        for i in range(count)
        for step in ((f"N{i}", f"L{i}"), (f"N{i}", f"R{i}"), (f"L{i}", f"N{i + 1}"), (f"R{i}", f"N{i + 1}"))
    ]
    return JobGraph(
        tuple(map(Vertex, names)),
        tuple(Edge(a, b, Pattern.POINTWISE, Exchange.BLOCKING, a + b) for a, b in steps),
    )


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_paths_are_followed_one_by_one(count: int) -> None:
    """With n diamonds in a row and nothing lost, the last region is rescheduled 2^n times, unless reset."""
    regions = pipelined_regions(Topology(diamonds(count)))
    staying = execute(Reading(STAYS, FIXED), regions, ("N0", 0))
    assert staying.rescheduled.count(len(regions.members) - 1) == 2**count
    resetting = execute(Reading(RESETS, FIXED), regions, ("N0", 0))
    assert sorted(resetting.rescheduled) == list(range(3 * count + 1))


def test_a_region_that_has_not_been_scheduled_hides_a_lost_partition() -> None:
    """A1 fails, A0's output is lost, B has not started: Flink restarts A0 too, the pseudo-code only A1."""
    regions = pipelined_regions(Topology(all_to_all(2, 1)))
    lost, created = [("A>B", 0)], [("B", 0)]
    for reading in READINGS:
        assert execute(reading, regions, ("A", 1), lost, created).rescheduled == (1,)
    assert tasks_to_restart(regions, ("A", 1), lost, created) == {("A", 0), ("A", 1)}


def test_a_failed_region_that_has_not_been_scheduled_is_left_alone() -> None:
    """Nothing is rescheduled for a failure in a region all of whose tasks are CREATED."""
    outcome = run(Reading(STAYS, FIXED), pair(), "B", ("A>B", 0), created="B")
    assert (outcome.rescheduled, outcome.calls, outcome.most_often) == ((), 1, 0)


def test_an_unknown_partition_is_refused() -> None:
    """Naming a partition that the job does not have is an error."""
    with pytest.raises(JobGraphError, match=r"^the graph has no partition \('nothing', 0\)$"):
        run(Reading(STAYS, FIXED), pair(), "B", ("nothing", 0))
