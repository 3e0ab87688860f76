"""The reasons for a restart set: each restarted task has one, and each reason follows from another by a rule of FLIP-1."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from streamproof.conformance import RestartReason, validate_paths
from streamproof_models.failover.graph import Exchange
from streamproof_models.failover.regions import pipelined_regions
from streamproof_models.failover.restart import tasks_to_restart
from streamproof_models.failover.small_graphs import job_graphs
from streamproof_models.failover.topology import Topology
from streamproof_specs.failover.flink.recorded_machine import RecordedFailover
from streamproof_specs.failover.flink.restart_reasons import restart_reasons


def expect_tree(model: RecordedFailover, failed: str, tasks: frozenset[str], why: tuple[RestartReason, ...]) -> None:
    """Every task once, in its region; every link is a partition between the two regions, in the direction of its reason."""
    named = [task for reason in why for task in reason.tasks]
    assert sorted(named) == sorted(tasks)
    for reason in why:
        assert len({model.region_of[task] for task in reason.tasks}) <= 1
    for at, reason in enumerate(why):
        if reason.because is None:
            assert (at, reason.reason) == (0, "failed task")
            assert reason.tasks in ((failed,), ())
            continue
        assert reason.because < at
        cause = why[reason.because]
        if reason.reason == "in the region of the failed task":
            assert (at, reason.because, reason.partition) == (1, 0, None)
            assert failed not in reason.tasks
            assert {model.region_of[task] for task in reason.tasks} == {model.region_of[failed]}
            continue
        assert reason.partition is not None
        producer, consumers = model.producing_region[reason.partition], model.consuming_regions[reason.partition]
        ours = {model.region_of[task] for task in reason.tasks}
        theirs = {model.region_of[task] for task in cause.tasks}
        if reason.reason == "its partition is missing":
            assert ours <= {producer}
            assert theirs <= set(consumers)
        else:
            assert reason.reason == "reads what restarts"
            assert theirs <= {producer}
            assert ours <= set(consumers)


@pytest.mark.parametrize(("run", "decisions"), [("b-lostpart-1", 2), ("a-taskfail-1", 2), ("c-disjoint-1", 1)])
def test_recorded_restarts_have_reasons(run: str, decisions: int, flink_logs: Path) -> None:
    """Each restarted task is in the tree."""
    (verdict,) = validate_paths([flink_logs / run])
    assert len(verdict.recoveries) == decisions
    for recovery in verdict.recoveries:
        assert sorted(task for reason in recovery.why for task in reason.tasks) == sorted(recovery.tasks or ())
        assert recovery.why[0].reason == "failed task"


@pytest.mark.parametrize("tasks", [3, 4, pytest.param(5, marks=pytest.mark.long)])
def test_restart_sets_of_small_jobs_have_reasons(tasks: int) -> None:
    """All job graphs of a size, with random lost partitions and tasks that were never scheduled."""
    chance = random.Random(tasks)
    missing = 0
    for graph in job_graphs(tasks, (Exchange.PIPELINED, Exchange.BLOCKING)):
        model = RecordedFailover(graph)
        topology = Topology(graph)
        regions = pipelined_regions(topology)
        names = {task: model.tasks[at] for at, task in enumerate(topology.tasks)}
        failed = chance.choice(topology.tasks)
        partitions = [(edge.dataset, n) for edge in graph.edges for v in graph.vertices if v.name == edge.source
                      for n in range(v.parallelism)]  # fmt: skip
        lost = [p for p in partitions if chance.random() < 0.4]
        created = [t for t in topology.tasks if t != failed and chance.random() < 0.2]
        chosen = frozenset(names[t] for t in tasks_to_restart(regions, failed, lost, created))
        why = restart_reasons(model, names[failed], chosen)
        expect_tree(model, names[failed], chosen, why)
        missing += sum(reason.reason == "its partition is missing" for reason in why)
    assert missing > 1
