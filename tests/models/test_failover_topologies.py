"""The catalogue of job graphs: its regions, and what FLIP-1 says of its example job."""

from __future__ import annotations

import pytest

from streamproof_models.failover.graph import Task
from streamproof_models.failover.named_job_graphs import JOB_GRAPHS, cyclic_region, diamond, pipelined_pair
from streamproof_models.failover.regions import Merging, pipelined_regions
from streamproof_models.failover.restart import tasks_to_restart
from streamproof_models.failover.topology import Topology

REGIONS = {
    "pair": "A0|B0",
    "chain": "A0|B0|C0",
    "diamond": "A0|B0|C0|D0",
    "pipelined-pair": "A0 B0",
    "cyclic-region": "A0 A1 B0 B1",
    "cyclic-detour": "A0 B0|C0",
    "all-to-all": "A0|A1|B0|B1",
    "mixed": "A0 B0|C0",
    "join": "B0|C0|D0|E0",
    "tee": "A0|B0|C0|D0",
    "disjoint": "A0 B0|C0 D0",
}


def written(region_lists: list[list[Task]]) -> str:
    """Regions as a short text: tasks apart by blanks, regions by bars."""
    return "|".join(" ".join(f"{name}{subtask}" for name, subtask in region) for region in region_lists)


def test_every_topology_has_an_expectation() -> None:
    """The table of expected regions covers exactly the catalogue."""
    assert set(REGIONS) == set(JOB_GRAPHS)


@pytest.mark.parametrize("name", REGIONS)
def test_regions_of_the_catalogue(name: str) -> None:
    """Each job graph at its default size has the regions that its description promises."""
    assert written(pipelined_regions(Topology(JOB_GRAPHS[name]())).named()) == REGIONS[name]


def test_only_the_detour_cannot_be_scheduled() -> None:
    """Merging as Flink 2.3 does leaves regions that wait for each other in `cyclic-detour` and nowhere else."""
    stuck = {name: pipelined_regions(Topology(make())).cycles() for name, make in JOB_GRAPHS.items()}
    assert {name: cycles for name, cycles in stuck.items() if cycles} == {"cyclic-detour": [[0, 1]]}


def test_merging_everywhere_leaves_no_cycle() -> None:
    """Merging over the whole topology leaves no job graph of the catalogue stuck."""
    for make in JOB_GRAPHS.values():
        assert pipelined_regions(Topology(make()), Merging.TOPOLOGY).cycles() == []


def test_without_merging_the_cyclic_region_is_stuck() -> None:
    """Without merging the regions {Ai, Bi} of `cyclic-region` all wait for each other."""
    regions = pipelined_regions(Topology(cyclic_region(3)), Merging.NONE)
    assert written(regions.named()) == "A0 B0|A1 B1|A2 B2"
    assert regions.cycles() == [[0, 1, 2]]


def test_a_single_pipeline_of_many_fails_alone() -> None:
    """In a pointwise pipelined job a failure restarts the one pipeline that it is in."""
    regions = pipelined_regions(Topology(pipelined_pair(3)))
    assert tasks_to_restart(regions, ("B", 1)) == {("A", 1), ("B", 1)}


@pytest.mark.parametrize(
    ("unavailable", "restarted"),
    [
        (set(), "C"),
        ({("B>C", 0)}, "BCD"),
        ({("B>C", 0), ("B>D", 0)}, "BCD"),
        ({("B>D", 0)}, "C"),
        ({("B>C", 0), ("A>B", 0)}, "ABCD"),
        ({("A>B", 0)}, "C"),
    ],
)
def test_the_job_of_flip_1(unavailable: set[tuple[str, int]], restarted: str) -> None:
    """C fails: B runs again if C's input is lost, D with B, and A only if B runs again and its input is lost."""
    regions = pipelined_regions(Topology(diamond()))
    assert tasks_to_restart(regions, ("C", 0), unavailable) == {(name, 0) for name in restarted}
