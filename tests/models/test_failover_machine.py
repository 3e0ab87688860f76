"""The failover machine: every expected verdict, exact counts, and its decisions against the functions on job graphs."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations
from types import SimpleNamespace
from typing import Any

import pytest

from model_verdicts import established
from shares import share
from streamproof import UsageError
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.symbolic.proof import prove
from streamproof.system import Kind, Verdict
from streamproof_models.failover.graph import Exchange, JobGraph
from streamproof_models.failover.machine import Failover
from streamproof_models.failover.named_job_graphs import JOB_GRAPHS
from streamproof_models.failover.regions import Merging, pipelined_regions
from streamproof_models.failover.restart import tasks_to_restart
from streamproof_models.failover.small_graphs import job_graphs
from streamproof_models.failover.topology import Topology
from streamproof_specs.failover.properties import SPEC

COUNTS = {
    None: (1433, 2447, 30),
    "restart-all": (680, 1445, 19),
    "individual": (59, 96, 11),
    "region-without-backtracking": (66, 82, 15),
    "no-downstream-restart": (2223, 3625, 31),
    "no-downstream-restart-kept": (2157, 3537, 28),
    "no-versioning": (1406, 2412, 30),
    "no-fence": (2589, 4159, 31),
    "early-release": (2407, 4357, 32),
    "no-merging": (1, 1, 1),
    "merge-within-logical-region-only": (1, 1, 1),
    "stop-at-created": (1433, 2447, 30),
    "attempt-reuse": (544, 1034, 28),
    "no-topological-order": (3009, 5358, 29),
    "unnoticed-loss": (96, 111, 19),
    "eager-scheduling": (659, 1111, 22),
    "no-fence-eager": (1615, 2892, 23),
    "literal-pseudocode": (74, 90, 16),
    "lost-executors": (4245, 7786, 34),
    "flink": (8857, 17059, 46),
    "eager-deployment": (11118, 26873, 35),
    "kept-results": (1361, 2473, 27),
}
"""Distinct states, generated states and depth of the machine and each variant at its default parameters."""


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 4), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Every property of the machine and of each variant gets the verdict that is expected, with the exact counts."""
    established(SPEC, variant, COUNTS[variant])


def test_every_property_is_violated_by_some_variant() -> None:
    """No property is vacuous: each safety and liveness property of the spec is refuted in at least one variant."""
    refuted = {name for verdicts in SPEC.expected.values() for name, v in verdicts.items() if v == "violated"}
    assert refuted == {p.name for p in SPEC.system().properties}


@pytest.mark.parametrize("topology", share(sorted(JOB_GRAPHS), 2))
def test_the_machine_is_sound_on_every_job_graph_of_the_catalogue(topology: str) -> None:
    """With one failure and one lost partition every property holds on every named job graph."""
    properties = [p.name for p in SPEC.system().properties if p.name != "finishes_after_restart"]
    result = explore(SPEC.system(topology=topology), SearchOptions(properties=properties))
    assert {f.property for f in result.findings if f.verdict is not Verdict.HOLDS} == set()
    assert result.complete


@pytest.mark.parametrize(("executors", "topology"), [(1, "pair"), (2, "pair"), (2, "diamond"), (3, "chain")])
def test_losing_an_executor_is_survived(executors: int, topology: str) -> None:
    """An executor is lost with its tasks and partitions: first its tasks restart, then its partitions are forgotten."""
    result = explore(SPEC.system("lost-executors", topology=topology, executors=executors))
    assert {f.property for f in result.findings if f.verdict is not Verdict.HOLDS} == set()


def _not_holding(variant: str | None, **parameters: object) -> set[str]:
    result = explore(SPEC.system(variant, **parameters))
    return {f.property for f in result.findings if f.verdict is not Verdict.HOLDS}


def test_no_fence_is_harmless_where_schedulers_leave_no_gap() -> None:
    """On a chain no task can be left CREATED beside a failing consumer, so the missing fence does not show there."""
    assert _not_holding("no-fence", topology="chain") == set()


def test_a_scheduler_without_delay_needs_a_second_input_to_fall_into_the_gap() -> None:
    """With eager scheduling the missing fence is harmless on the diamond and shows on the join; the fence mends both."""
    assert _not_holding("no-fence-eager", topology="diamond") == set()
    assert _not_holding("no-fence-eager", topology="join") == {"consistent_result", "survives"}
    assert _not_holding("eager-scheduling", topology="join") == set()


def test_what_flink_does_is_harmless_on_a_chain_and_may_hang_on_pipelined_exchanges() -> None:
    """Without a second reader nothing is read that a decision replaces. If a task withdraws and the failure of its peer never
    comes, nobody restarts it: the JobMaster relies on it."""
    assert _not_holding("flink", topology="chain") == set()
    assert _not_holding("flink", topology="pipelined-pair") == {"deadlock", "ends"}
    assert _not_holding("flink", topology="mixed") == {"deadlock", "ends", "consistent_result", "survives"}


@pytest.mark.parametrize("topology", share(sorted(JOB_GRAPHS), 3))
def test_stopping_at_created_regions_is_harmless(topology: str) -> None:
    """With the fence, the search may stop at regions never scheduled on every named job graph."""
    assert _not_holding("stop-at-created", topology=topology) <= {"finishes_after_restart"}


@pytest.mark.long
@pytest.mark.parametrize("topology", share(["mixed", "diamond", "all-to-all", "tee"], 4))
def test_properties_follow_by_induction(topology: str) -> None:
    """With the lemmas, every invariant, step property and deadlock freedom is proved by induction, whatever is reachable."""
    system = SPEC.system(topology=topology)
    provable = [p.name for p in system.properties if p.kind not in (Kind.REACHABLE, Kind.TEMPORAL, Kind.TERMINATION)]
    proof = prove(system, properties=provable)
    assert {f.property: f.verdict for f in proof.findings} == dict.fromkeys(provable, Verdict.HOLDS)


@pytest.mark.parametrize("topology", sorted(JOB_GRAPHS))
def test_every_lemma_is_an_invariant(topology: str) -> None:
    """No lemma is false in a reachable state: each would otherwise prove too much."""
    system = SPEC.system(topology=topology)
    result = explore(replace(system, properties=system.lemmas))
    assert [f.property for f in result.findings if f.verdict is not Verdict.HOLDS] == []
    assert result.complete


@pytest.mark.long
def test_three_failures_and_three_losses() -> None:
    """The medium size, exactly."""
    result = explore(SPEC.system(**Failover.sizes["medium"]))
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == (916567, 2154709, 62)
    assert {f.property for f in result.findings if f.verdict is not Verdict.HOLDS} == set()


class _OnGraph(Failover):
    """The machine on a job graph of one's own."""

    def __init__(self, graph: JobGraph, merging: Merging) -> None:
        self._graph, self.merging = graph, merging
        super().__init__()

    def job_graph(self) -> JobGraph:
        """The given one."""
        return self._graph


def _subsets(items: tuple[str, ...]) -> chain[tuple[str, ...]]:
    return chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))


@pytest.mark.parametrize("merging", [Merging.LOGICAL_REGION, Merging.TOPOLOGY], ids=lambda m: m.value)
def test_decisions_equal_the_functions_on_every_small_graph(merging: Merging) -> None:
    """On every job graph of up to 4 tasks, for every failure, loss and named partition: one restart set, two definitions."""
    compared = 0
    for size in (1, 2, 3, 4):
        for graph in job_graphs(size, (Exchange.PIPELINED, Exchange.BLOCKING)):
            machine = _OnGraph(graph, merging)
            topology = Topology(graph)
            regions = pipelined_regions(topology, merging)
            name = dict(zip(machine.tasks, topology.tasks, strict=True))
            single = {v.name for v in graph.vertices if v.parallelism == 1}
            dataset = {e.dataset: e.source for e in graph.edges if not e.exchange.glues}
            partition = {
                (d if source in single else f"{d}#{i}"): (d, i)
                for d, source in dataset.items()
                for i in range(
                    1 if source in single else next(v for v in graph.vertices if v.name == source).parallelism
                )
            }
            assert set(partition) == set(machine.partitions)
            for lost in _subsets(tuple(machine.partitions)):
                state = SimpleNamespace(partition={p: "NONE" if p in lost else "STORED" for p in machine.partitions})
                for task in machine.tasks:
                    for named in (None, *machine.partitions):
                        gone = {partition[p] for p in lost} | ({partition[named]} if named else set())
                        restarts = machine.regions_to_restart(state, task, named)
                        mine = {name[t] for r, tasks in machine.regions.items() if restarts[r] for t in tasks}
                        assert mine == tasks_to_restart(regions, name[task], gone)
                        compared += 1
    assert compared == 52853


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"parallelism": 0}, "parallelism is 1 or more"),
        ({"failures": -1}, "failures is 0 or more"),
        ({"losses": -1}, "losses is 0 or more"),
        ({"restarts": -1}, "restarts is 0 or more"),
        ({"variant": "lost-executors", "executors": 0}, "executors is 1 or more"),
        ({"variant": "lost-executors", "executor_losses": -2}, "executor_losses is 0 or more"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(given: dict[str, Any], allowed: str) -> None:
    """A parameter outside its limits is wrong usage, and the message says what is allowed."""
    with pytest.raises(UsageError) as caught:
        Failover.system(**given)
    assert (caught.value.remedy, int(caught.value.exit_code)) == (allowed, 2)
