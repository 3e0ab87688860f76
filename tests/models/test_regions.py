"""Region scheduling: every expected verdict with exact counts, in every job graph of the catalogue; its groups and proofs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from model_verdicts import established
from shares import share
from streamproof import Spec
from streamproof.base.options import SearchOptions
from streamproof.cli.verbs import run
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.failover.graph import Exchange
from streamproof_models.failover.named_job_graphs import JOB_GRAPHS, job_graph
from streamproof_models.failover.regions import Merging
from streamproof_models.failover.topology import Topology
from streamproof_models.regions.machine import RegionScheduling
from streamproof_specs.regions.core import SPEC as CORE_SPEC
from streamproof_specs.regions.properties import SPEC

_HYBRID = {Exchange.BLOCKING: Exchange.HYBRID_FULL}

COUNTS = {
    None: (2654, 8595, 48),
    "no-merging": (1, 1, 1),
    "merge-within-logical-region-only": (1, 1, 1),
    "stale-cache": (192, 303, 28),
    "cached-by-group": (115, 192, 20),
    "deleted-when-fetched": (119, 219, 20),
    "evicted-everywhere": (727, 2030, 21),
    "no-eviction": (227, 438, 17),
    "read-without-lock": (433, 1139, 21),
    "never-deleted": (11, 11, 11),
    "cleared-together": (359, 877, 19),
    "counter-not-reset": (213, 417, 26),
    "released-after-one": (78, 128, 20),
    "releasable-kept": (1439, 3426, 30),
    "task-by-task": (4, 4, 4),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted with."""
CORE = {
    None: (673, 2067, 23),
    "unmerged": (1, 1, 1),
    "flink": (17492, 100903, 29),
    "flink-counter-not-reset": (498, 1674, 19),
    "flink-task-by-task": (498, 1937, 18),
    "flink-without-inputs": (2863, 14556, 24),
}
"""The same of the core and its variants."""
SAFETY = (
    *("acyclic", "together", "inputs_finished", "counted", "current", "fetchable", "bounded"),
    *("server_current", "kept"),
)
CATALOGUE = {
    "pair": (41, 110),
    "chain": (134, 840),
    "diamond": (854, 4888),
    "pipelined-pair": (39, 39),
    "cyclic-region": (1565, 1565),
    "cyclic-detour": (355, 355),
    "all-to-all": (205, 1870),
    "mixed": (94, 304),
    "join": (1476, 11928),
    "tee": (1314, 7752),
    "disjoint": (1235, 1235),
}
"""States of each job graph, scheduled lazily and eagerly."""


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 2), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Every property holds of the model; each omitted rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


def test_two_jobs_share_blob_server_and_caches() -> None:
    """Two jobs in one, with one blob in a cache: neither disturbs the other, also when parts of them fail."""
    result = explore(SPEC.system(topology="disjoint", parallelism=1, failures=2))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == 2918


@pytest.mark.parametrize("variant", [None, *CORE_SPEC.model.variants], ids=str)
def test_every_expected_verdict_of_the_core_is_established(variant: str | None) -> None:
    """The rules that scheduling and the machine for Flink's logs share; the variant `flink` has the restarts of the logs."""
    established(CORE_SPEC, variant, CORE[variant])


@pytest.mark.parametrize("topology", JOB_GRAPHS)
def test_restarts_in_several_steps_keep_the_counters(topology: str) -> None:
    """Whatever restarts, regions are scheduled as a whole, with inputs that are there; hybrid ones are there early."""
    graph = job_graph(topology)
    hybrid = replace(graph, edges=tuple(replace(e, exchange=_HYBRID.get(e.exchange, e.exchange)) for e in graph.edges))
    for given in (topology, hybrid.text):
        result = explore(CORE_SPEC.system("flink", topology=given, parallelism=1, restarts=1))
        hangs = {"acyclic", "ended", "deadlock"} if topology == "cyclic-detour" else set()  # as in Flink
        assert {f.property for f in result.findings if f.verdict is not Verdict.HOLDS} == hangs


@pytest.mark.parametrize("spec", [SPEC, CORE_SPEC], ids=["regions", "core"])
def test_every_property_is_refuted_by_a_variant(spec: Spec) -> None:
    """No property holds whatever the rules are."""
    refuted = {name for expected in spec.expected.values() for name in expected}
    assert refuted == {p.name for p in spec.system().properties} | {"deadlock"}


@pytest.mark.long
def test_the_core_is_proved_for_every_number_of_restarts(tmp_path: Path) -> None:
    """Counters and scheduling with inputs, whatever tasks restart, by induction without a lemma."""
    out = tmp_path / "proof.json"
    words = [
        "prove",
        "region_core",
        "--variant",
        "flink",
        "--any",
        "restarts",
        "--timeout",
        "900",
    ]
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) == 0
    verdicts = {p["name"]: (p["verdict"], p["sizes"]) for p in json.loads(out.read_text())["properties"]}
    proved = ("counted_there", "scheduled_together", "scheduled_with_inputs", "acyclic", "deadlock")
    assert {name: verdicts[name] for name in proved} == dict.fromkeys(proved, ("holds", "any"))


def test_the_antecedent_of_a_step_property_is_about_steps() -> None:
    """States alone do not tell whether it was ever true, when a limit ends the search."""
    result = explore(CORE_SPEC.system("flink"), SearchOptions(max_states=9_000))
    assert result.stopped is not None
    assert result.vacuity("scheduled_together") is None


def test_every_job_graph_of_the_catalogue_is_here() -> None:
    """The counts below are of all of them."""
    assert CATALOGUE.keys() == JOB_GRAPHS.keys()


@pytest.mark.parametrize(
    ("topology", "eager"),
    [
        pytest.param(
            topology, eager, marks=[pytest.mark.long] if lasts or topology in ("join", "diamond", "tee") else []
        )
        for topology in CATALOGUE
        for eager, lasts in ((False, False), (True, topology not in ("mixed", "chain")))
    ],
)
def test_every_property_holds_in_every_job_graph(topology: str, eager: bool) -> None:
    """With one failure, lazily and eagerly."""
    result = explore(SPEC.system(topology=topology, parallelism=1, eager=eager))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == CATALOGUE[topology][eager]


@pytest.mark.parametrize("topology", ["all-to-all", "cyclic-region"])
def test_descriptors_in_the_message_need_no_blob(topology: str) -> None:
    """With small groups nothing is on the blob server, and every property holds."""
    result = explore(SPEC.system(topology=topology, inline=2))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}


@pytest.mark.parametrize("variant", share(["merge-within-logical-region-only", "no-merging"], 2))
def test_a_cycle_of_regions_needs_lazy_scheduling(variant: str) -> None:
    """With all regions scheduled at once the same job graphs finish, as long as there are slots for all tasks."""
    result = explore(SPEC.system(variant, eager=True))
    assert result.finding("scheduled").verdict is result.finding("completed").verdict is Verdict.HOLDS


@pytest.mark.parametrize("topology", JOB_GRAPHS)
def test_the_groups_by_name_are_those_of_the_topology(topology: str) -> None:
    """Every pair of a producer and a consumer is in exactly one group for each edge; regions are not computed anew."""
    model = RegionScheduling(topology=topology, parallelism=2)
    expanded = Topology(model.job_graph())
    pairs = sum(len(read) for edge in expanded.consumes() for read in edge)
    assert sum(len(model.producers[g]) * len(model.consumers[g]) for g in model.groups) == pairs
    assert model.merging is Merging.TOPOLOGY
    assert model.cycles == []
    channels = {(producer, consumer) for producer, consumer in model.channels.values()}
    assert channels == {(p, c) for g in model.groups for p in model.producers[g] for c in model.consumers[g]}
    written = {p for g in model.groups for p in model.partitions_of[g]}
    assert written == model.partitions.keys()


@pytest.mark.long
@pytest.mark.parametrize(
    ("size", "counts"), [("medium", (3680966, 14838777, 88)), ("large", (14823815, 63465443, 106))]
)
def test_larger_sizes_hold(size: str, counts: tuple[int, int, int]) -> None:
    """Two TaskExecutors with two blobs each, and three or four failures: all properties, temporal ones included."""
    result = explore(SPEC.system(**SPEC.model.sizes[size]))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == counts


@pytest.mark.long
@pytest.mark.parametrize("cache", [1, 2])
def test_safety_is_proved_for_every_number_of_failures(tmp_path: Path, cache: int) -> None:
    """The invariants of the page and `deadlock`, for any number of failures and TaskExecutors, with a certificate."""
    out, certificate = tmp_path / "proof.json", tmp_path / "proof.cert"
    words = ["prove", "regions", "-p", f"cache={cache}", "--any", "failures,executors", "--timeout", "900"]
    words += ["--certificate", str(certificate), "--out", str(tmp_path)]
    assert run([*words, "-q", "--json", str(out)]) == 0
    verdicts = {p["name"]: (p["verdict"], p["sizes"]) for p in json.loads(out.read_text())["properties"]}
    assert {name: verdicts[name] for name in (*SAFETY, "deadlock")} == dict.fromkeys(
        (*SAFETY, "deadlock"), ("holds", "any")
    )
    assert run(["verify-certificate", str(certificate)]) == 0


@pytest.mark.long
@pytest.mark.parametrize("variant", ["stale-cache", "evicted-everywhere", "no-eviction", "releasable-kept"])
def test_what_a_variant_breaks_is_not_proved(variant: str, tmp_path: Path) -> None:
    """The prover finds what the search refutes."""
    out = tmp_path / "proof.json"
    broken = [name for name in SPEC.expected[variant] if name in SAFETY]
    words = ["prove", "regions", "--variant", variant, "--any", "failures,executors", "--timeout", "900"]
    words += [word for name in broken for word in ("--property", name)]
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) == 12
    verdicts = {p["name"]: p["verdict"] for p in json.loads(out.read_text())["properties"]}
    assert verdicts == dict.fromkeys(broken, "violated")
