"""The main thread of the JobMaster: every expected verdict with exact counts; its units of work are those of the library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from model_verdicts import established
from shares import share
from streamproof.cli.verbs import run
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.failover.deployment import Deployment, Place, ShuffleDescriptor
from streamproof_models.failover.named_job_graphs import all_to_all
from streamproof_models.failover.regions import pipelined_regions
from streamproof_models.failover.restart import tasks_to_restart
from streamproof_models.failover.topology import Topology
from streamproof_specs.main_thread.properties import SPEC

COUNTS = {
    None: (2180, 3010, 88),
    "edge-by-edge": (344, 655, 87),
    "uncached": (322, 659, 71),
    "ungrouped": (2028, 2871, 98),
    "longest-runnable": (22630, 39998, 115),
    "one-runnable": (29701, 48393, 136),
    "not-cancelled": (34107, 55368, 135),
    "forgiving": (267, 432, 86),
    "no-timeouts": (1435, 2245, 78),
    "heartbeat-thread": (4397, 7229, 201),
    "offloaded": (13395, 18601, 219),
    "offloaded-unchecked": (12730, 17861, 219),
    "one-by-one": (5111, 7330, 111),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted with."""
CURED = {"offloaded", "one-by-one"}
"""Variants with the work of Flink 1.12 that have all properties."""


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 9), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """The default rules have all properties; each variant violates what is expected of it, and nothing else."""
    established(SPEC, variant, COUNTS[variant])


def test_every_property_is_refuted_by_a_variant() -> None:
    """No property holds whatever the rules are, and two cures need no smaller amount of work."""
    refuted = {name for expected in SPEC.expected.values() for name in expected}
    assert refuted == {p.name for p in SPEC.system().properties}
    assert set(SPEC.model.variants) - set(SPEC.expected) == CURED


@pytest.mark.parametrize(
    ("size", "counts"),
    [
        pytest.param("medium", (271594, 494650, 164), marks=pytest.mark.long),
        pytest.param("large", (337196, 648014, 215), marks=pytest.mark.long),
    ],
)
def test_larger_sizes_hold(size: str, counts: tuple[int, int, int]) -> None:
    """Four executors, of which two or three crash."""
    result = explore(SPEC.system(**SPEC.model.sizes[size]))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == counts


@pytest.mark.long
@pytest.mark.parametrize("variant", [None, "offloaded"], ids=str)
def test_safety_is_proved_for_every_size(variant: str | None, tmp_path: Path) -> None:
    """For any parallelism, interval and reserve, with a certificate that the verifier accepts."""
    out, certificate = tmp_path / "proof.json", tmp_path / "proof.cert"
    words = ["prove", "main_thread", "--any", "parallelism,interval,reserve", "--certificate", str(certificate)]
    words += ["--variant", variant] if variant else []
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) == 0
    verdicts = {p["name"]: (p["verdict"], p["sizes"]) for p in json.loads(out.read_text())["properties"]}
    names = ("no_false_alarm", "no_needless_failover", "deployed_where_registered")
    assert verdicts == dict.fromkeys(names, ("holds", "any"))
    assert run(["verify-certificate", str(certificate), "-q"]) == 0


@pytest.mark.parametrize(("parallelism", "holds"), share([(3, True), (1, True), (2, True), (4, False), (5, False)], 3))
def test_edge_by_edge_fails_from_some_parallelism_on(parallelism: int, holds: bool) -> None:
    """The square of the parallelism reaches a time-out that grows with the parallelism: then the job never runs."""
    result = explore(SPEC.system("edge-by-edge", crashes=0, hangs=0, parallelism=parallelism))
    assert (result.finding("settles").verdict is Verdict.HOLDS) == holds


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5, 8])
def test_units_of_work_are_those_of_the_library(parallelism: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Descriptors that a deployment of all tasks makes, and tasks that a restart visits, as the benchmark has them."""
    topology = Topology(all_to_all(parallelism, parallelism))
    plan = Deployment(topology, [Place("t", "h", 1)] * len(topology.tasks))
    made = 0
    serialised = ShuffleDescriptor.serialised

    def counted(descriptor: ShuffleDescriptor) -> bytes:
        nonlocal made
        made += 1
        return serialised(descriptor)

    monkeypatch.setattr(ShuffleDescriptor, "serialised", counted)
    for task in topology.tasks:
        plan.inputs(task)
    [edge] = topology.connections
    grouped, alone = (SPEC.model.build(v, parallelism=parallelism) for v in (None, "edge-by-edge"))
    assert made == grouped.deployment == edge.descriptors
    made = 0
    for task in topology.tasks:
        plan.edge_by_edge(task)
    assert made == alone.deployment == alone.restart == edge.pairs
    lost = [(edge.edge.dataset, subtask) for subtask in range(parallelism)]
    assert len(tasks_to_restart(pipelined_regions(topology), ("B", 0), lost)) == grouped.restart
