"""Caching exchanges: what they store is kept until the job is over, and read again without being made again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import runtime_partition_judge
import runtime_region_judge
from batch_jobs import adding, cached, verdicts
from runtime_processes import run
from streamproof.conformance import judge
from streamproof_runtime.errors import JobError
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobs.api import BLOCKING, CACHING, Job
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_specs.failover.runtime import BINDING as FAILOVER
from streamproof_specs.partitions.runtime.binding import BINDING as PARTITIONS
from streamproof_specs.regions.runtime import BINDING as REGIONS

MACHINES = {"partition_lifecycle": PARTITIONS, "failover": FAILOVER, "regions": REGIONS}
CHAIN = """from streamproof_runtime import Job


def job():
    made = Job("chain")
    made.source("numbers", range(40), 2).caching().process("added", lambda _, n: (n + 1,), 2).blocking().collect("all")
    return made
"""


def check(seed: int, folder: Path) -> int:
    """A random job with some caching exchanges is right, and accepted by all machines and judges; their number."""
    job, expected = cached(seed)
    stored = [edge for edge in job.edges if edge.is_stored]
    level = "severe" if seed % 4 == 3 else "heavy"
    outcome = Simulation(job, seed=seed, level=level, eager=seed % 3 == 0).run(100_000)
    assert outcome.finished, (seed, outcome.reason)
    assert {name: Counter(records or ()) for name, records in outcome.results.items()} == expected, seed
    records = [json.loads(line) for line in lines(outcome.entries)]
    if stored:
        assert runtime_partition_judge.accepts(records), seed
        own = [r for r in records if r["process"] == "jobmaster" and "#" not in r["trace"]]
        assert runtime_region_judge.accepts(own), seed
        for model, binding in MACHINES.items():
            assert {v.answer for v in verdicts(outcome, folder, binding, model)} == {"accepted"}, (seed, model)
    return sum(edge.exchange_type == CACHING for edge in stored)


@pytest.mark.long
def test_caching_runs_are_right(tmp_path: Path) -> None:
    """Through failures."""
    assert sum(check(seed, tmp_path) for seed in range(8)) > 5


@pytest.mark.long
def test_many_caching_runs_are_right(tmp_path: Path) -> None:
    """Several hundred."""
    assert sum(check(seed, tmp_path) for seed in range(600)) > 600


def chain(exchange_type: str) -> Job:
    """Numbers that are stored, added to, and stored again."""
    job = Job("chain")
    added = job.source("numbers", range(20), 2).exchanged(exchange_type).process("added", adding(1), 2)
    added.blocking().collect("all")
    return job


def made_again(exchange_type: str, seeds: int) -> tuple[int, int]:
    """How often the sink missed the sums, and how often the numbers were made again, in runs that lose partitions."""
    missed = again = 0
    for seed in range(seeds):
        outcome = Simulation(chain(exchange_type), seed=seed, level="heavy").run(100_000)
        assert Counter(outcome.results["all"]) == Counter(range(1, 21)), seed
        own = [(event, args) for _, process, event, args, *_ in outcome.entries if process == "jobmaster"]
        missed += sum(e == "region_failed" and a.get("missing") == "added>all" for e, a in own)
        again += sum(e == "region_scheduled" and a["tasks"] == ["numbers"] and a["attempt"] > 0 for e, a in own)
    return missed, again


@pytest.mark.long
def test_what_is_cached_is_not_made_again() -> None:
    """If the sums are lost, they are computed from the numbers that are still stored; what was released is made again."""
    missed, again = made_again(CACHING, 70)
    missed_blocking, again_blocking = made_again(BLOCKING, 70)
    assert min(missed, missed_blocking) > 2
    assert again < again_blocking


def test_an_executor_is_killed(tmp_path: Path) -> None:
    """On processes: the result is right, and the log accepted."""
    job = tmp_path / "chain.py"
    job.write_text(CHAIN)
    (tmp_path / "logs").mkdir()
    found = run(job, tmp_path / "logs", executors=2, kills=["tm-1@20"])
    assert (found["wrong"], sorted(found["results"]["all"])) == ("", [*range(1, 41)])
    (log,) = PARTITIONS.runs(tmp_path / "logs")
    for model, binding in MACHINES.items():
        assert {v.answer for v in judge(binding.plan(log, None), model)} == {"accepted"}, model


def test_a_lie_about_a_kept_dataset_is_rejected(tmp_path: Path) -> None:
    """It is not released while the job runs."""
    outcome = Simulation(chain(CACHING)).run()
    log = tmp_path / "run.ndjson"
    for released, answer in (([], "accepted"), (["numbers>added"], "rejected")):
        records = [json.loads(line) for line in lines(outcome.entries)]
        for record in records:
            if record["event"] == "region_finished" and record["args"]["tasks"] == ["added"]:
                record["args"]["released"] = released
        log.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="ascii")
        for model in ("failover", "regions"):
            assert {v.answer for v in judge(MACHINES[model].plan(log, None), model)} == {answer}, (released, model)


def test_a_loop_stores_nothing() -> None:
    """Its operators cannot wait for each other."""
    with pytest.raises(JobError, match=r"numbers|loop"):
        Job().source("numbers", [1]).iterate("Loop", lambda s: (s.caching(), s))
