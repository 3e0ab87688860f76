"""Regions are scheduled lazily or eagerly: results are right, a second judge agrees with the machine, lies are rejected."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import changed_logs
from batch_jobs import batch, verdicts
from changed_logs import Records
from runtime_processes import run
from runtime_region_judge import accepts
from runtime_runs import EXAMPLES, example
from shares import share
from streamproof.conformance import judge
from streamproof.conformance.found_runs import ALL, ValidationRequest, bindings_for, readings_under
from streamproof_runtime.event_log import lines
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.variants.failover_variants import MASTERS
from streamproof_specs.baton.runtime import BINDING as BATON
from streamproof_specs.failover.runtime import BINDING as FAILOVER
from streamproof_specs.regions.runtime import BINDING

STREAMING = ("collatz", "components", "word_count")
"""Jobs without blocking exchanges."""


def own_events(seed: int, *, eager: bool, job: Any = None, level: str = "heavy") -> Records:
    """The JobMaster's own events of a run of a job, by default a random one, with faults."""
    found = Simulation(job or batch(seed)[0], seed=seed, level=level, eager=eager).run(100_000)
    records = map(json.loads, lines(found.entries))
    return [r for r in records if r["process"] == "jobmaster" and "#" not in r["trace"]]


def is_accepted(records: Records, folder: Path) -> bool:
    """Whether the machine accepts a log."""
    return changed_logs.is_accepted(records, folder, BINDING, "regions")


def check(seed: int, folder: Path) -> int:
    """A run of a random job that is scheduled eagerly is right and accepted by all machines; the number of its restarts."""
    job, expected = batch(seed)
    outcome = Simulation(job, seed=seed, level="heavy" if seed % 4 else "none", eager=True).run(100_000)
    assert outcome.finished, (seed, outcome.reason)
    assert {name: Counter(records or ()) for name, records in outcome.results.items()} == expected, seed
    for binding, model in ((BINDING, "regions"), (FAILOVER, "failover")):
        assert [v.answer for v in verdicts(outcome, folder, binding, model)] == ["accepted"], seed
    assert {v.answer for v in verdicts(outcome, folder, BATON, "baton")} <= {"accepted"}, seed
    return outcome.attempts - 1


@pytest.mark.long
def test_eager_runs_are_right(tmp_path: Path) -> None:
    """Readers wait for their partitions, also through failures."""
    assert sum(check(seed, tmp_path) for seed in (0, 7, 34, 65, 77)) > 10


@pytest.mark.long
def test_many_eager_runs_are_right(tmp_path: Path) -> None:
    """A thousand of them."""
    assert sum(check(seed, tmp_path) for seed in range(1000)) > 200


def test_eager_regions_are_deployed_before_their_inputs_are_finished() -> None:
    """Only where scheduling is eager do descriptors follow later."""
    for eager in (False, True):
        records = own_events(0, eager=eager, job=example("sales").job(), level="none")
        first = [r["event"] for r in records].index("region_finished")
        deployed = sum(r["event"] == "region_deployed" for r in records[:first])
        assert (deployed == 4) is eager
        assert any(r["event"] == "region_updated" for r in records) is eager


def changed(draw: random.Random, records: Records) -> Records:
    """A copy with one random change: an event left out, doubled or moved, or an argument that is another one."""
    at = draw.randrange(1, len(records))
    if (copy := changed_logs.rearranged(draw, records, at, lambda: draw.randint(-3, 3))) is not None:
        return copy
    record = records[at]
    args = dict(record.get("args", {}))
    if not args or record["event"] == "job_started":
        return [*records[:at], *records[at + 1 :]]
    name = draw.choice(sorted(args))
    args[name] = another(draw, args[name], records[0]["args"])
    return changed_logs.with_args(records, at, args)


def another(draw: random.Random, value: Any, job: dict[str, Any]) -> Any:
    """A value of the same kind."""
    datasets = [f"{a}>{b}" for a, b, _ in job["exchanges"]] or ["none"]
    if isinstance(value, int):
        return value + draw.choice((-1, 1))
    if isinstance(value, dict):
        if any(isinstance(v, str) for v in value.values()):  # where subtasks run is no part of the machine
            return value
        if value and draw.random() < 0.7:
            name = draw.choice(sorted(value))
            return {**value, name: value[name] + draw.choice((-1, 1))}
        return {**value, draw.choice(datasets): 0}
    if isinstance(value, list):
        names = datasets if any(">" in v for v in value) or draw.random() < 0.3 else job["operators"]
        return value[:-1] if value and draw.random() < 0.5 else [*value, draw.choice(names)]
    return draw.choice(datasets if ">" in value else job["operators"])


def both(seed: int, folder: Path, changes: int) -> tuple[int, int]:
    """Both judges give one answer for a run and its changed copies; how many copies were accepted and rejected."""
    draw = random.Random(seed)
    job = example(draw.choice(STREAMING)).job() if seed % 5 == 4 else None
    records = own_events(seed, eager=seed % 3 == 0, job=job, level=draw.choice(("heavy", "severe")))
    judges = partial(is_accepted, folder=folder), accepts
    return changed_logs.compared(records, partial(changed, draw), changes, judges, seed)


def test_the_independent_judge_agrees(tmp_path: Path) -> None:
    """On runs and on changed copies."""
    counts = [both(seed, tmp_path, 10) for seed in range(10)]
    assert min(changed_logs.total(counts)) > 10


@pytest.mark.long
def test_the_independent_judge_agrees_on_many_runs(tmp_path: Path) -> None:
    """On ten thousand changed copies."""
    counts = [both(seed, tmp_path, 20) for seed in range(600)]
    assert min(changed_logs.total(counts)) > 1000


def test_lies_about_regions_are_rejected(tmp_path: Path) -> None:
    """Ten kinds of changes to each event that can have them."""
    kinds: Counter[str] = Counter()
    for eager in (False, True):
        records = own_events(56 if not eager else 3, eager=eager, job=example("sales").job())
        assert is_accepted(records, tmp_path)
        for at, record in enumerate(records):
            for kind, copies in lies(records, at, record["event"], record.get("args", {})):
                assert not is_accepted(copies, tmp_path), (eager, kind, record)
                kinds[kind] += 1
    assert len(kinds) == 10
    assert kinds.total() > 60


def test_the_events_for_the_default_model_have_the_name_of_the_run(tmp_path: Path) -> None:
    """Also where they are read by its binding for the runtime's logs; those for another model state the model."""
    outcome = Simulation(example("sales").job(), seed=7).run(100_000)
    file = tmp_path / "run.ndjson"
    file.write_text("".join(lines(outcome.entries)), encoding="ascii")
    (readings,) = readings_under(file, ValidationRequest(model=ALL))
    kinds = {reading.model: reading.kind for reading in readings}
    assert (kinds.pop("failover"), len(kinds) >= 4) == ("", True)
    assert all(kind == f".{model}" for model, kind in kinds.items())


@pytest.mark.parametrize("name", share(STREAMING, 2))
def test_all_machines_judge_a_job_without_blocking_exchanges(name: str, tmp_path: Path) -> None:
    """An event of its region that is doubled, or left out, is noticed by one that `--model all` asks."""
    outcome = Simulation(example(name).job(), seed=7, level="heavy").run(100_000)
    records = changed_logs.records_of(outcome)
    file = tmp_path / "run.ndjson"
    kinds: Counter[str] = Counter()
    places = [at for at, record in enumerate(records) if record["event"].startswith("region_")]
    failed = max(
        (at for at in places if records[at]["event"] == "region_failed"), default=0
    )  # perhaps before it was running
    for at in (None, *places):
        for again in (0, 2):
            copies = records if at is None else [*records[:at], *[records[at]] * again, *records[at + 1 :]]
            file.write_text("".join(json.dumps(r) + "\n" for r in changed_logs.numbered(copies)), encoding="ascii")
            bindings = dict(bindings_for(file, requested=True))
            assert {"failover", "regions"} <= bindings.keys()
            accepted = (changed_logs.is_accepted(copies, tmp_path, bindings[m], m) for m in ("failover", "regions"))
            kind = records[at or 0]["event"]
            assert all(accepted) is (at is None or (kind == "region_running" and not again and at < failed)), (
                at,
                again,
            )
            kinds[kind] += 1
    assert len(kinds) > 4


def lies(records: Records, at: int, event: str, args: dict[str, Any]) -> list[tuple[str, Records]]:
    """Copies of a log that lie about one event."""

    def told(**change: Any) -> Records:
        return [*records[:at], {**records[at], "args": {**args, **change}}, *records[at + 1 :]]

    found = []
    if event == "region_scheduled":
        found.append(("another attempt", told(attempt=args["attempt"] + 1)))
        found.append(("half a region", told(tasks=args["tasks"][1:])))
        found.append(("scheduled twice", [*records[: at + 1], *records[at:]]))
        found.append(("deployed unscheduled", [*records[:at], *records[at + 1 :]]))
    if event == "region_finished":
        found.append(("released what it does not read", told(released=[*args["released"], args["tasks"][0]])))
        if args["released"]:
            found.append(("never released", told(released=args["released"][:-1])))
    for name, kind in (("descriptors", "stale descriptor"), ("reads", "another attempt is read")):
        if args.get(name):
            found.append((kind, told(**{name: {key: number + 1 for key, number in args[name].items()}})))
    if event == "region_failed":
        found.append(("an operator is not restarted", told(restarts=args["restarts"][:-1])))
    if event == "restarted" and args["tasks"]:
        found.append(("never started again", [*records[:at], *records[at + 1 :]]))
    return found


EXPECTED = {
    "counter-not-reset": 200,
    "stale-cache": 200,
    "no-topological-order": 5,
    "no-downstream-restart": 200,
    "restart-all": 50,
    "attempt-reuse": 50,
}
"""Variants of scheduling and failover that this machine catches, with the number of runs in which it does at the latest."""


@pytest.mark.parametrize("variant", share(sorted(EXPECTED), 2))
def test_each_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By a rejected log."""
    for seed in range(EXPECTED[variant]):
        job = example("sales").job()
        outcome = Simulation(job, seed=seed, level="heavy", master_type=MASTERS[variant]).run(1_500)
        if "rejected" in [v.answer for v in verdicts(outcome, tmp_path, BINDING, "regions")]:
            print(f"{variant}: rejected, run {seed}")
            return
    pytest.fail("not caught")


def test_a_killed_executor_is_survived_by_eager_regions(tmp_path: Path) -> None:
    """On processes."""
    found = run(EXAMPLES / "sales.py", tmp_path, executors=3, kills=["tm-1@7"], eager=True)
    assert found["wrong"] == ""
    assert found["attempts"] >= 2
    (log,) = BINDING.runs(tmp_path)
    assert [v.answer for v in judge(BINDING.plan(log, None), "regions")] == ["accepted"]
    assert [v.answer for v in judge(FAILOVER.plan(log, None), "failover")] == ["accepted"]
