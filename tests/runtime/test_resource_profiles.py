"""Resource profiles of slots: groups get slots with what they need; what nobody has is refused, or fails with a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batch_jobs import verdicts
from changed_logs import is_accepted, records_of, with_args
from nonempty import nonempty
from runtime_processes import run
from streamproof.conformance import judge
from streamproof_runtime.command import Problem, Simulated
from streamproof_runtime.errors import JobError, RuntimeFailure
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.simulator.faults import Fault
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.slots.resources import parse
from streamproof_runtime.variants.slot_variants import RESOURCES
from streamproof_specs.slots.runtime.binding import BINDING

SPECIAL = """
from streamproof_runtime import Job


def job():
    made = Job("special")
    numbers = made.source("numbers", range(20), parallelism=2)
    trained = numbers.rebalance().process("train", lambda context, n: [n + 1]).slot_sharing_group("training", {"gpu": 1})
    trained.rebalance().process("check", lambda context, n: [n]).slot_sharing_group("plain").collect("all")
    return made


def expected():
    return {"all": [*range(1, 21)]}
"""
PROFILES = {"tm-2": {"gpu": 1, "memory": 512}}


def special() -> Job:
    """The job of the file."""
    made: dict[str, Any] = {}
    exec(SPECIAL, made)
    job: Job = made["job"]()
    return job


def simulated(seed: int, level: str = "heavy", **more: Any) -> Outcome:
    """A run in which only slots of one TaskExecutor have what is needed."""
    return Simulation(special(), seed=seed, level=level, resources=PROFILES, **more).run(50_000)


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 300), marks=pytest.mark.long)])
def test_a_group_gets_what_it_needs(seeds: range, tmp_path: Path) -> None:
    """With faults: the result is right, the log is accepted, and the subtask is at the only place where it can be."""
    for seed in nonempty(seeds):
        outcome = simulated(seed, "severe" if seed % 3 == 2 else "heavy")
        assert outcome.finished, (seed, outcome.reason)
        assert sorted(outcome.results["all"]) == [*range(1, 21)], seed
        assert {v.answer for v in verdicts(outcome, tmp_path, BINDING, "slot_pool")} == {"accepted"}, seed
        places = [r["args"]["placement"] for r in records_of(outcome) if r["event"] == "deployed"]
        assert {place["train"] for place in places} == {"tm-2"}, seed


def test_slots_with_other_profiles_are_rejected(tmp_path: Path) -> None:
    """The variant that gives any slot, and a log in which the TaskExecutor has less."""
    for seed in range(20):
        outcome = simulated(seed, slot_rules=RESOURCES["resources-ignored"])
        if "rejected" in [v.answer for v in verdicts(outcome, tmp_path, BINDING, "slot_pool")]:
            break
    else:
        pytest.fail("not caught")
    records = records_of(simulated(0, "none"))
    assert is_accepted(records, tmp_path, BINDING, "slot_pool")
    for profiles in ({"tm-2": {"gpu": 0}}, {"tm-1": {"gpu": 1}}, {"tm-2": 7}, 7):
        copy = records
        for at, record in enumerate(records):
            if record["event"] == "slots_declared":
                copy = with_args(copy, at, {**record["args"], "profiles": profiles})
        assert not is_accepted(copy, tmp_path, BINDING, "slot_pool"), profiles


def test_on_processes_a_group_gets_what_it_needs(tmp_path: Path) -> None:
    """Its TaskExecutor is killed, and replaced by one with the same resources."""
    file = tmp_path / "special.py"
    file.write_text(SPECIAL)
    found = run(file, tmp_path, executors=3, resources=["tm-2:gpu=1"], kills=["tm-2@3"])
    assert found["wrong"] == ""
    (log,) = BINDING.runs(tmp_path)
    assert {v.answer for v in judge(BINDING.plan(log, None), "slot_pool")} == {"accepted"}


def test_a_request_that_cannot_be_met_fails_the_job() -> None:
    """The TaskExecutor with the resources is gone for good: the message has what is required, what is there, and the time."""
    job = special()
    job.max_failures = 2
    gone = [Fault("crash", 1_000, ("tm-2",), 10**12)]
    outcome = Simulation(job, faults_given=gone, resources=PROFILES, slot_beats=10).run(50_000)
    assert not outcome.finished
    assert "4 slots are required, 1 of them with gpu=1, and 3 are there after 0.05 s" in outcome.reason


def test_what_nobody_has_is_refused(tmp_path: Path) -> None:
    """With the resources and their number; so are resources that are none."""
    file = tmp_path / "special.py"
    file.write_text(SPECIAL)
    about: dict[str, Any] = {"level": "none", "variant": None, "executors": 3, "slots": 2}
    with pytest.raises(Problem, match=r"the job needs 1 slot with gpu=1; there are 0; give more TaskExecutors"):
        Simulated(file, **about, resources=["tm-1:memory=512"])
    for given in ("tm-1", "tm-1:gpu", "tm-1:gpu=0.5", "tm-9:gpu=1"):
        with pytest.raises(RuntimeFailure):
            parse([given], ["tm-1"])
    with pytest.raises(RuntimeFailure, match="given twice"):
        parse(["tm-1:a=1", "tm-1:b=1"], ["tm-1"])
    source = Job("job").source("a", [1])
    for wrong in ({"gpu": 0}, {"gpu": True}, {"": 1}, {"gpu": 0.5}, 7):
        with pytest.raises(JobError, match="the resources of slot sharing group g"):
            source.slot_sharing_group("g", wrong)  # type: ignore[arg-type]
    source.slot_sharing_group("g", {"gpu": 1})
    with pytest.raises(JobError, match="needs other resources elsewhere"):
        source.slot_sharing_group("g", {"gpu": 2})
