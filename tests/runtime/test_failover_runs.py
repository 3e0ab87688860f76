"""Batch jobs whose regions fail: results are exactly-once, logs are accepted by failover and baton, variants are caught."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import changed_logs
from batch_jobs import batch, verdicts
from changed_logs import records_of
from runtime_processes import run
from runtime_runs import EXAMPLES, example
from streamproof.conformance import InputError, judge
from streamproof_runtime.errors import JobError
from streamproof_runtime.jobmaster.jobmaster import JobMaster
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.jobs.api import Job, Stream
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.variants.failover_variants import MASTERS
from streamproof_specs.baton.runtime import BINDING as BATON
from streamproof_specs.failover.runtime import BINDING


def check(seed: int, level: str, folder: Path) -> int:
    """A run of a random job is right and accepted; the number of its restarts."""
    job, expected = batch(seed)
    outcome = Simulation(job, seed=seed, level=level).run(100_000)
    assert outcome.finished, (seed, outcome.reason)
    assert not outcome.lost
    assert {name: Counter(records or ()) for name, records in outcome.results.items()} == expected, seed
    found = verdicts(outcome, folder)
    assert [v.answer for v in found] == ["accepted"], (seed, found)
    assert {v.answer for v in verdicts(outcome, folder, BATON, "baton")} <= {"accepted"}, seed
    return outcome.attempts - 1


@pytest.mark.long
def test_random_batch_jobs_are_exactly_once(tmp_path: Path) -> None:
    """With crashes, lost connections and lost partitions at any time."""
    restarts = sum(check(seed, "heavy" if seed % 4 else "none", tmp_path) for seed in range(12))
    assert restarts > 4


@pytest.mark.long
def test_many_random_batch_jobs_are_exactly_once(tmp_path: Path) -> None:
    """Two thousand of them."""
    assert sum(check(seed, "heavy", tmp_path) for seed in range(2000)) > 1000


@pytest.mark.long
def test_only_the_regions_concerned_start_again() -> None:
    """In some run a region fails and a finished one stays finished; in another a producer runs again."""
    counts: set[tuple[int, ...]] = set()
    for seed in range(40):
        simulation = Simulation(example("sales").job(), seed=seed, level="heavy")
        assert simulation.run().finished
        counts.add(tuple(run.attempt for run in simulation.master.machine.runs))
    assert any(c[0] == 0 and max(c) > 0 for c in counts)
    assert any(c[0] > 0 for c in counts)


def caught(variant: str, folder: Path) -> bool:
    """Whether a run of a variant is rejected."""
    for seed in range(200):
        job = example("sales").job()
        outcome = Simulation(job, seed=seed, level="heavy", master_type=MASTERS[variant]).run(1_500)
        if "rejected" in [v.answer for v in verdicts(outcome, folder)]:
            print(f"{variant}: rejected, run {seed}")
            return True
    return False


RARE = ("region-without-backtracking", "no-topological-order", "counter-not-reset")
"""Variants whose tests take the longest: they are in the long tests."""


@pytest.mark.parametrize(
    "variant", [pytest.param(v, marks=[pytest.mark.long] * (v in RARE)) for v in sorted({*MASTERS} - {"stale-cache"})]
)
def test_each_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By a rejected log, in fewer than 200 runs."""
    assert caught(variant, tmp_path)


@pytest.mark.long
def test_tampered_logs_are_rejected(tmp_path: Path) -> None:
    """Each changed attempt, set of regions, partition or decision is rejected, or is no log; so is a missing event."""
    simulation = Simulation(example("sales").job(), seed=56, level="heavy")
    records = records_of(simulation.run())
    assert sum(r["event"] == "restarted" for r in records) > 1
    tampered = 0

    def is_refused(changed: list[dict[str, Any]]) -> bool:
        try:
            return [v.answer for v in changed_logs.verdicts(changed, tmp_path, BINDING, "failover")] == ["rejected"]
        except InputError:
            return True

    assert not is_refused(records)
    for at, record in enumerate(records):
        if "#" in record["trace"] or not record["event"].startswith(("region", "restarted", "partition_lost")):
            continue
        args = record["args"]
        changes: list[dict[str, Any]] = []
        if "attempt" in args:
            changes.append({"attempt": args["attempt"] + 1})
        if args.get("reads"):
            changes.append({"reads": {name: attempt + 1 for name, attempt in args["reads"].items()}})
        if "restarts" in args:
            changes += [{"restarts": args["restarts"][:-1]}, {"restarts": [*args["restarts"], "places"] * 2}]
        if "released" in args:
            changes.append({"released": [*args["released"], "elsewhere"]})
        if record["event"] == "restarted":
            changes.append({"decision": args["decision"] + 1})
            if args["tasks"]:
                changes.append({"tasks": args["tasks"][:-1]})
        for change in changes:
            assert is_refused([*records[:at], {**record, "args": {**args, **change}}, *records[at + 1 :]]), change
            tampered += 1
    assert tampered > 20


@pytest.mark.push
def test_a_killed_executor_restarts_its_regions(tmp_path: Path) -> None:
    """On processes: partitions on disk die with their process; the log of the run is accepted by both machines."""
    found = run(EXAMPLES / "sales.py", tmp_path, executors=3, kills=["tm-1@7"])
    assert found["wrong"] == ""
    assert found["checked"]
    assert found["attempts"] >= 2
    (log,) = BINDING.runs(tmp_path)
    assert [v.answer for v in judge(BINDING.plan(log, None), "failover")] == ["accepted"]
    assert {v.answer for v in judge(BATON.plan(log, None), "baton")} == {"accepted"}
    assert all(f.suffix == ".ndjson" for f in tmp_path.iterdir())


@pytest.mark.long
def test_kills_anywhere_are_survived(tmp_path: Path) -> None:
    """Two kills of different processes after various numbers of events."""
    for first, second in ((1, 2), (3, 9), (12, 4), (20, 20)):
        logs = tmp_path / f"{first}-{second}"
        logs.mkdir()
        assert run(EXAMPLES / "sales.py", logs, executors=3, kills=[f"tm-1@{first}", f"tm-2@{second}"])["wrong"] == ""
        (log,) = BINDING.runs(logs)
        assert [v.answer for v in judge(BINDING.plan(log, None), "failover")] == ["accepted"]


def test_a_loop_may_read_and_write_what_is_stored() -> None:
    """The loop is one region; inside it nothing is stored."""
    job = Job("looped")

    def halved(loop: Stream) -> tuple[Stream, Stream]:
        half = loop.process("half", lambda _, n: (n // 2,))
        return half.filter(lambda n: n > 1), half.filter(lambda n: n <= 1)

    job.source("a", [5, 9, 30]).blocking().iterate("Loop", halved).blocking().collect("all")
    assert [r.operators for r in regions(job)] == [("a",), ("loop", "half"), ("all",)]
    for seed in range(10):
        outcome = Simulation(job, seed=seed, level="heavy").run()
        assert outcome.finished
        assert outcome.results == {"all": [1, 1, 1]}
    with pytest.raises(JobError, match="is in a loop"):
        job.source("b", [1]).iterate("Other", lambda loop: (loop.blocking(), loop))


def test_regions_that_depend_on_each_other_are_one() -> None:
    """A > B pipelined, A > C and C > B blocking: the exchange inside is pipelined."""
    job = Job("cycle")
    a = job.source("a", [1, 2])
    c = a.blocking().process("c", lambda _, n: (n,))
    a.connect(c.blocking(), "b", lambda _, n: (n,), lambda _, n: (n,)).collect("all")
    assert len(regions(job)) == 1
    outcome = Simulation(job, seed=1, level="heavy").run()
    assert sorted(outcome.results["all"]) == [1, 1, 2, 2]
    assert isinstance(Simulation(job).master.machine, JobMaster)
