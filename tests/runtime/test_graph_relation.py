"""The machines that follow the regions of a recorded job are the models, for its graph: each rule is one of theirs, argument
by argument, so that each step is one of theirs in every state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shares import share
from streamproof import Model
from streamproof.conformance import compile_model
from streamproof.system import Instance
from streamproof_models.failover.budgets import FailureBudgets
from streamproof_models.failover.graph import Exchange, JobGraph, Vertex
from streamproof_models.failover.machine import Failover
from streamproof_models.failover.named_job_graphs import JOB_GRAPHS, job_graph
from streamproof_models.failover.variants import EagerDeployment, KeptResults
from streamproof_models.regions.machine import RegionScheduling
from streamproof_specs.failover.runtime import BudgetedJob, EagerRuntimeJob, RuntimeJob
from streamproof_specs.regions.runtime import ScheduledJob


def rules(model: Model) -> set[Instance]:
    """Every action with every argument: its condition and its effect."""
    return {*compile_model(model, without_properties=True).instances}


def own(machine: type[Model], model: type[Model]) -> set[str]:
    """The functions that a machine has in place of the model's."""
    return {name for name in vars(machine) if callable(getattr(model, name, None)) and not name.startswith("_")}


def test_the_machines_override_what_is_listed() -> None:
    """The graph, and what of it differs."""
    assert own(ScheduledJob, RegionScheduling) == {"job_graph", "lost_together"}
    assert own(RuntimeJob, Failover) == {"job_graph", "releasable"}
    assert own(EagerRuntimeJob, EagerDeployment) == set()
    assert own(BudgetedJob, FailureBudgets) == {"permits"}


@pytest.mark.parametrize(
    ("topology", "eager"), share(((name, eager) for eager in (False, True) for name in JOB_GRAPHS), 6)
)
def test_the_rules_of_scheduling_are_those_of_the_model(topology: str, eager: bool) -> None:
    """With all sets of partitions that can be unavailable; a log has some."""
    model = RegionScheduling(topology=topology, parallelism=1, eager=eager)
    graph, lost, expected = model.job_graph(), [*model.lost_together()], rules(model)
    assert rules(ScheduledJob(graph, lost, eager=eager)) == expected
    assert rules(ScheduledJob(graph, lost[::2], eager=eager)) <= expected


@pytest.mark.parametrize("topology", share(JOB_GRAPHS, 6))
def test_the_rules_of_failover_are_those_of_the_model(topology: str) -> None:
    """Or of its variant in which regions are scheduled with their producers."""
    graph = job_graph(topology)
    assert rules(RuntimeJob(graph)) == rules(Failover(topology=topology))
    assert rules(EagerRuntimeJob(graph)) == rules(EagerDeployment(topology=topology))


@pytest.mark.parametrize("topology", share(JOB_GRAPHS, 6))
def test_the_rules_of_caching_are_those_of_its_variant(topology: str) -> None:
    """Where every exchange that can be read again is a caching one. Each operator of a recorded graph is one task."""
    given = job_graph(topology)
    caching = {True: Exchange.HYBRID_FULL, False: Exchange.PIPELINED}
    operators = tuple(Vertex(v.name) for v in given.vertices)
    graph = JobGraph(operators, tuple(replace(e, exchange=caching[e.exchange.rereadable]) for e in given.edges))

    class Caching(KeptResults):
        """The variant, for the same graph."""

        def job_graph(self) -> JobGraph:
            return graph

    assert rules(RuntimeJob(graph)) == rules(Caching())
