"""Failure budgets of jobs: a job survives so many failures of each operator, or of all, and its log shows that."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import changed_logs
from batch_jobs import batch, verdicts
from changed_logs import records_of, with_args
from runtime_processes import run
from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.variants.all_variants import master_type
from streamproof_runtime.variants.failover_variants import BUDGETS
from streamproof_specs.failover.runtime import BINDING

FAILING = """
from streamproof_runtime import Job


def job():
    made = Job("failing", max_failures_per_task=2)
    made.source("numbers", [1, 2]).process("divide", lambda context, n: [1 // 0]).collect("all")
    return made
"""


def budgeted(seed: int, per_task: int | None, in_all: int | None, **more: Any) -> Outcome:
    """A run of a random job with heavy faults and a budget."""
    job, expected = batch(seed)
    job.max_failures_per_task, job.max_failures = per_task, in_all
    outcome = Simulation(job, seed=seed, level="heavy", **more).run(20_000)
    if outcome.finished:
        assert {name: Counter(found or ()) for name, found in outcome.results.items()} == expected, seed
    return outcome


def counted(outcome: Outcome, per_task: int | None, in_all: int | None) -> bool:
    """A second opinion, of plain counters: whether the failures of a log are within the budget, but for the last one of a job
    that was given up for its budget."""
    charged: Counter[str] = Counter()
    for record in records_of(outcome):
        if record["event"] in ("region_failed", "job_failed"):
            args = record["args"]
            charged[args["task"]] += "missing" not in args
            is_above = per_task is not None and max(charged.values()) > per_task
            is_above |= in_all is not None and charged.total() > in_all
            if is_above is not ("budget" in args):
                return False
    return True


def test_a_failing_function_exceeds_the_budget_of_its_operator(tmp_path: Path) -> None:
    """In the simulator and on processes: the message has the operator, the count and the limit; the logs are accepted."""
    file = tmp_path / "failing.py"
    file.write_text(FAILING)
    about = "divide has failed 3 times; its budget is 2 times (max_failures_per_task): divide: ZeroDivisionError"
    made: dict[str, Any] = {}
    exec(FAILING, made)
    outcome = Simulation(made["job"]()).run()
    assert outcome.reason.startswith(about)
    assert [v.answer for v in verdicts(outcome, tmp_path)] == ["accepted"]
    logs = tmp_path / "logs"
    logs.mkdir()
    found = run(file, logs)
    assert found["wrong"].startswith(about)
    (log,) = BINDING.runs(logs)
    (verdict,) = changed_logs.judge(BINDING.plan(log, None), "failover")
    assert verdict.answer == "accepted"


@pytest.mark.parametrize(("per_task", "in_all"), [(0, None), (1, 2), (None, 1)])
def test_runs_with_budgets_are_accepted(per_task: int | None, in_all: int | None, tmp_path: Path) -> None:
    """Jobs end with the right result or for their budget, as a plain count says, too; changed counts are rejected."""
    ends = Counter[str]()
    for seed in range(5 if in_all else 3):
        outcome = budgeted(seed, per_task, in_all)
        assert [v.answer for v in verdicts(outcome, tmp_path)] == ["accepted"], seed
        assert counted(outcome, per_task, in_all), seed
        records = records_of(outcome)
        at = next((i for i, r in enumerate(records) if r["event"] == "job_failed"), -1)
        ends["failed" if at >= 0 else "finished"] += 1
        if at >= 0:
            args = records[at]["args"]
            without = {"task": args["task"]}
            for change in ({**args, "count": args["count"] + 1}, {**args, "limit": args["limit"] + 1}, without):
                copy = with_args(records, at, change)
                assert not changed_logs.is_accepted(copy, tmp_path, BINDING, "failover"), (seed, change)
    assert ends.total()


@pytest.mark.long
@pytest.mark.parametrize("variant", BUDGETS)
def test_each_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By a rejected log, and by plain counters."""
    for seed in range(300):
        outcome = budgeted(seed, 1, None, master_type=master_type(variant))
        if [v.answer for v in verdicts(outcome, tmp_path)] == ["rejected"]:
            print(f"{variant}: rejected, run {seed}")
            assert not counted(outcome, 1, None)
            return
    pytest.fail("not caught")


@pytest.mark.parametrize("number", [-1, True, 1.5])
def test_a_budget_is_a_number_of_failures(number: Any) -> None:
    """Anything else is refused."""
    with pytest.raises(JobError, match="give a number of failures"):
        Job("job", max_failures=number)
