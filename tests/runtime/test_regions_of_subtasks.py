"""Pointwise exchanges, and regions of subtasks: independent pipelines are deployed, fail and restart alone."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import changed_logs
from batch_jobs import adding, of_subtasks, verdicts
from changed_logs import records_of
from nonempty import nonempty
from runtime_processes import run
from runtime_runs import credit_verdicts
from streamproof.conformance import judge
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, Pattern, Vertex
from streamproof_models.failover.topology import Topology
from streamproof_models.scopes.subtasks import Subtasks
from streamproof_models.scopes.text import parse
from streamproof_runtime.errors import JobError
from streamproof_runtime.jobmaster.regions import Region, regions
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.graph import ExecutionGraph
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.variants.failover_variants import PIPELINES as VARIANTS
from streamproof_specs.baton.runtime import BINDING as BATON
from streamproof_specs.failover.runtime import BINDING as FAILOVER
from streamproof_specs.partitions.runtime.binding import BINDING as PARTITIONS
from streamproof_specs.regions.runtime import BINDING as REGIONS
from streamproof_specs.slots.runtime.binding import BINDING as SLOTS

JUDGES = {
    "failover": FAILOVER,
    "regions": REGIONS,
    "baton": BATON,
    "partition_lifecycle": PARTITIONS,
    "slot_pool": SLOTS,
}
PIPELINES = """
from streamproof_runtime import Job


def job():
    made = Job("pipelines", regions_of_subtasks=True)
    numbers = made.source("numbers", range(40), parallelism=2)
    doubled = numbers.rescale().process("double", lambda context, n: [2 * n], parallelism=4)
    doubled.blocking().collect("all")
    return made


def expected():
    return {"all": [2 * n for n in range(40)]}
"""


def pipelines() -> Job:
    """The job of the file."""
    made: dict[str, Any] = {}
    exec(PIPELINES, made)
    job: Job = made["job"]()
    return job


@pytest.mark.parametrize("sizes", [(1, 3), (2, 3), (3, 2), (4, 4), (5, 2), (3, 7), (7, 4)])
def test_shares_are_those_of_the_models(sizes: tuple[int, int]) -> None:
    """The channels of a rescaled stream in the runtime, in the text of its graph, and in the failover model's job graphs."""
    n, m = sizes
    job = Job("wide")
    job.source("a", (), n).rescale().process("b", adding(0), m)
    graph = ExecutionGraph(job)
    own = {(c.source, c.target) for c in graph.channels.values()}
    assert own == {(link.source, link.target) for link in Subtasks(parse(str(graph))).links.values()}
    edge = Edge("a", "b", Pattern.POINTWISE, Exchange.PIPELINED, "d")
    consumed = Topology(JobGraph((Vertex("a", n), Vertex("b", m)), (edge,))).consumes()[0]
    names = [[o + str(i) if size > 1 else o for i in range(size)] for o, size in (("a", n), ("b", m))]
    assert own == {(names[0][i], names[1][j]) for j, producers in enumerate(consumed) for i in producers}


def parts(region: Region) -> set[tuple[str, int]]:
    """The tasks of a region, without readers and writers."""
    operators = [o for o in region.graph.job.operators.values() if not o.reads and not o.writes]
    return {(o.part_of or o.name, o.first + i) for o in operators for i in range(o.parallelism)}


def test_pipelines_are_as_small_as_readers_allow() -> None:
    """Against plain sets, on random jobs: no pipelined exchange, and no reader, crosses regions; and unless a stored
    pointwise exchange needs whole pipelines, no region has two parts."""
    split = 0
    for seed in range(150):
        job, _ = of_subtasks(seed)
        found = [parts(region) for region in regions(job)]
        assert sorted(t for own in found for t in own) == sorted(
            (o.name, i) for o in job.operators.values() for i in range(o.parallelism)
        )
        split += len(found) > len({o.name for o in job.operators.values()})
        graph = ExecutionGraph(job)
        task = {t: (o.name, graph.number[t]) for t, o in graph.operator_of.items()}
        together = [{task[c.source], task[c.target]} for c in graph.channels.values() if not c.edge.is_stored]
        for edge, source in product(job.edges, graph.tasks):
            together.append(
                {
                    task[c.target]
                    for c in graph.channels.values()
                    if c.edge is edge and c.source == source and edge.is_stored
                }
            )
        assert all(any(pair <= region for region in found) for pair in together)
        if not any(e.is_stored and e.exchange.value in ("forward", "rescale") for e in job.edges):
            for own in found:
                reached = {min(own)}
                while more := {t for pair in together if pair & reached for t in pair} - reached:
                    reached |= more
                assert reached == own, seed
    assert split > 10


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 300), marks=pytest.mark.long)])
def test_runs_are_right_and_accepted(seeds: range, tmp_path: Path) -> None:
    """With heavy faults, by all machines."""
    for seed in nonempty(seeds):
        job, expected = of_subtasks(seed)
        outcome = Simulation(job, seed=seed, level="heavy", eager=seed % 2 == 1).run(100_000)
        assert outcome.finished, (seed, outcome.reason)
        assert {name: Counter(records or ()) for name, records in outcome.results.items()} == expected, seed
        found = credit_verdicts(outcome, tmp_path)
        for model, binding in JUDGES.items():
            found += verdicts(outcome, tmp_path, binding, model)
        stored = any(edge.is_stored for edge in job.edges)
        wrong = [
            v for v in found if v.answer != "accepted" and (stored or v.reason != "no partition has been deployed")
        ]
        assert wrong == [], seed


def test_pipelines_restart_alone(tmp_path: Path) -> None:
    """On processes: the pipeline beside that of the killed TaskExecutor does not start again."""
    file = tmp_path / "pipelines.py"
    file.write_text(PIPELINES)
    assert [r.operators for r in regions(pipelines())] == [
        ("numbers_0", "double_0"),
        ("numbers_1", "double_1"),
        ("all",),
    ]
    found = run(file, tmp_path, executors=3, kills=["tm-3@3"])
    assert found["wrong"] == ""
    failed = [r for r in map(json.loads, (tmp_path / "jobmaster.ndjson").open()) if r["event"] == "region_failed"]
    assert {"numbers_1", "numbers_0"} & {t for r in failed for t in r["args"]["restarts"]} == {"numbers_1"}
    (log,) = FAILOVER.runs(tmp_path)
    assert {v.answer for v in judge(FAILOVER.plan(log, None), "failover")} == {"accepted"}
    assert {v.answer for v in judge(BATON.plan(log, None), "baton")} == {"accepted"}
    counts = set()
    for seed in range(30):
        simulation = Simulation(pipelines(), seed=seed, level="heavy")
        assert simulation.run().finished
        counts.add(tuple(r.attempt for r in simulation.master.machine.runs))
    assert any(one != other for one, other, _ in counts)


def test_restarting_the_siblings_is_rejected(tmp_path: Path) -> None:
    """The variant that restarts all pipelines of an operator; and logs with other parts of operators."""
    for seed in range(40):
        outcome = Simulation(pipelines(), seed=seed, level="heavy", master_type=VARIANTS["restarts-siblings"]).run(
            20_000
        )
        if "rejected" in [v.answer for v in verdicts(outcome, tmp_path)]:
            break
    else:
        pytest.fail("not caught")
    records = records_of(Simulation(pipelines()).run())
    started = records[0]["args"]
    for name, value in (
        ("parts", {**started["parts"], "double_1": ["double", 3, 1]}),
        ("streams", [["numbers", "double", "ALL_TO_ALL", False], *started["streams"][1:]]),
        ("vertices", [["numbers", 3], *started["vertices"][1:]]),
        ("parts", 7),
    ):
        copy = changed_logs.with_args(records, 0, {**started, name: value})
        for binding, model in ((FAILOVER, "failover"), (REGIONS, "regions")):
            assert not changed_logs.is_accepted(copy, tmp_path, binding, model), name


def test_what_cannot_be_is_refused() -> None:
    """A rescaled stream in a loop, and regions of subtasks of a job with a loop."""
    job = Job("looped", regions_of_subtasks=True)
    job.source("a", [1]).iterate("Loop", lambda loop: (loop.filter(lambda n: False), loop)).collect("all")
    with pytest.raises(JobError, match="the regions of a job with loops"):
        regions(job)
    with pytest.raises(JobError, match="by rescale, and it is in a loop"):
        Job("other").source("a", [1]).rescale().iterate("Loop", lambda loop: (loop, loop))
