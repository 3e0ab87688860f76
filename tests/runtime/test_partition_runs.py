"""The life of stored partitions in the runtime's logs: runs are accepted, a second judge agrees, lies are rejected."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from batch_jobs import about_partitions, narrowed, stored_events, verdicts
from changed_logs import Records, compared, is_accepted, rearranged, total, with_args
from runtime_partition_judge import accepts
from runtime_processes import run
from runtime_runs import EXAMPLES, example
from shares import share
from streamproof.conformance import judge
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.variants.partition_variants import LEDGERS
from streamproof_specs.partitions.runtime.binding import BINDING

ABOUT = ("partition", "release", "regist", "master", "region", "executor", "job", "restarted")


def changed(draw: random.Random, records: Records) -> Records:
    """A copy with one random change: an event left out, doubled, or moved in its process, or an argument that is another."""
    about = [i for i, r in enumerate(records) if i and r["event"].startswith(ABOUT) and r["event"] != "job_started"]
    at = draw.choice(about)
    if (copy := rearranged(draw, records, at, lambda: draw.randint(-12, 12))) is not None:
        return copy
    record = records[at]
    args = dict(record.get("args", {}))
    if not args:
        return [*records[:at], *records[at + 1 :]]
    name = draw.choice(sorted(args))
    args[name] = another(draw, args[name], records)
    return with_args(records, at, args)


def another(draw: random.Random, value: Any, records: Records) -> Any:
    """A value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return max(0, value + draw.choice((-1, 1)))
    if isinstance(value, dict):
        if not value:
            return value
        name = draw.choice(sorted(value))
        less = {k: v for k, v in value.items() if k != name}
        return less if draw.random() < 0.3 else {**value, name: another(draw, value[name], records)}
    if isinstance(value, list):
        if value and draw.random() < 0.5:
            return value[:-1]
        alike = [v for r in records for v in map(r.get("args", {}).get, ("created", "deleted", "tasks")) if v]
        return [*value, draw.choice(draw.choice(alike))] if alike else value
    names = [n for r in records for n in r.get("args", {}).values() if isinstance(n, str)]
    return draw.choice(names)


def both(seed: int, folder: Path, changes: int) -> tuple[int, int]:
    """Both judges give one answer for a run and its changed copies; how many copies were accepted and rejected."""
    draw = random.Random(seed)
    records = stored_events(seed, "severe" if seed % 4 == 3 else "heavy")
    if not records:
        return 0, 0
    judges = partial(is_accepted, folder=folder, binding=BINDING, model="partition_lifecycle"), accepts
    return compared(records, partial(changed, draw), changes, judges, seed)


@pytest.mark.long
def test_the_independent_judge_agrees(tmp_path: Path) -> None:
    """On runs and on changed copies."""
    counts = [both(seed, tmp_path, 5) for seed in range(8)]
    assert min(total(counts)) > 3


@pytest.mark.long
def test_the_independent_judge_agrees_on_many_runs(tmp_path: Path) -> None:
    """On several thousand changed copies."""
    counts = [both(seed, tmp_path, 10) for seed in range(500)]
    assert min(total(counts)) > 500


def released(seed: int, folder: Path, changes: int) -> tuple[int, int, int]:
    """Both judges accept a run, and agree on changed copies; how many TaskExecutors were released, and copies accepted and
    rejected."""
    draw = random.Random(seed)
    records = about_partitions(narrowed(seed))
    found = [r for r in records if r["event"] == "executor_released"]

    def altered(original: Records) -> Records:
        """Also: released sooner, perhaps with something stored; or closed, not lost."""
        kind = draw.randrange(3)
        if kind == 0:
            to = draw.randrange(1, len(original))
            return [*original[:to], draw.choice(found), *original[to:]]
        lost = [n for n, r in enumerate(original) if r["event"] == "executor_lost"]
        if kind == 1 and lost:
            at = draw.choice(lost)
            return with_args(original, at, {**original[at]["args"], "closed": True})
        return changed(draw, original)

    judges = partial(is_accepted, folder=folder, binding=BINDING, model="partition_lifecycle"), accepts
    return len(found), *compared(records, altered, changes if found else 0, judges, seed)


@pytest.mark.long
def test_idle_taskexecutors_are_released_when_they_store_nothing(tmp_path: Path) -> None:
    """Results are right, other ones start when they are needed, and the judges agree."""
    found, *counts = map(sum, zip(*(released(seed, tmp_path, 3) for seed in range(8)), strict=True))
    assert found > 3
    assert min(counts) > 1


@pytest.mark.long
def test_idle_taskexecutors_are_released_in_many_runs(tmp_path: Path) -> None:
    """On more than a thousand changed copies."""
    found, *counts = map(sum, zip(*(released(seed, tmp_path, 30) for seed in range(150)), strict=True))
    assert found > 60
    assert min(counts) > 100


@pytest.mark.parametrize("variant", ["rm-ignores-partitions", "close-connection-early"])
def test_partitions_deleted_with_their_taskexecutor_are_noticed(variant: str, tmp_path: Path) -> None:
    """The log of one of the first runs is rejected by both judges."""
    for seed in range(20):
        records = about_partitions(narrowed(seed, variant, "heavy"))
        answer = is_accepted(records, tmp_path, BINDING, "partition_lifecycle")
        assert answer == accepts(records), seed
        if not answer:
            print(f"{variant}: rejected, run {seed}")
            return
    pytest.fail("not caught")


@pytest.mark.push
@pytest.mark.parametrize("variant", share(sorted(LEDGERS), 3))
def test_each_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By a rejected log, in at most 20 runs."""
    for seed in range(20):
        job = example("sales").job()
        outcome = Simulation(job, seed=seed, level="severe", ledger=LEDGERS[variant]).run(4_000)
        if "rejected" in [v.answer for v in verdicts(outcome, tmp_path, BINDING, "partition_lifecycle")]:
            print(f"{variant}: rejected, run {seed}")
            return
    pytest.fail("not caught")


@pytest.mark.long
def test_a_jobmaster_that_crashes_is_one_of_the_machine(tmp_path: Path) -> None:
    """In simulated runs and on processes its log ends with `crash` and `recover`, and is accepted."""
    crashed = 0
    for seed in range(6):
        outcome = Simulation(example("sales").job(), seed=seed, level="severe").run(100_000)
        assert {v.answer for v in verdicts(outcome, tmp_path, BINDING, "partition_lifecycle")} == {"accepted"}, seed
        crashed += _crashes(tmp_path / "run.ndjson")
    assert crashed
    logs = tmp_path / "logs"
    logs.mkdir()
    assert run(EXAMPLES / "sales.py", logs, executors=3, kills=["jobmaster@22"])["wrong"] == ""
    (log,) = BINDING.runs(logs)
    assert _crashes(log)
    assert {v.answer for v in judge(BINDING.plan(log, None), "partition_lifecycle")} == {"accepted"}


def _crashes(log: Path) -> bool:
    """Whether a behaviour of a log has a crash of its JobMaster."""
    observed = (
        o for case in BINDING.plan(log, None).cases for task in case.tasks for s in task.streams for o in s.observations
    )
    return any(move.action == "crash" for o in observed for moves in o.alternatives for move in moves)


def test_a_lost_jobmaster_costs_partitions() -> None:
    """A TaskExecutor that loses it deletes what it has stored."""
    records = [r for seed in (3, 7, 11, 15, 19, 23) for r in stored_events(seed, "severe")]
    assert sum(len(r["args"]["deleted"]) for r in records if r["event"] == "master_lost") > 2
