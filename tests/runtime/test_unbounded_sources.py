"""Unbounded sources: they end when the user stops them, each attempt at the same position, and the job ends as any other."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from batch_jobs import is_prefix, unending, verdicts
from changed_logs import Records, is_accepted, records_of, with_args
from nonempty import nonempty
from runtime_processes import marked, run, started, wait_until
from runtime_runs import credit_verdicts
from streamproof.conformance import judge
from streamproof_runtime.command import Problem, Simulated
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.variants.all_variants import simulated
from streamproof_runtime.variants.stop_variants import MASTERS, SUBTASKS
from streamproof_specs.baton.runtime import BINDING as BATON

TICKS = """
import time

from streamproof_runtime import Job


def tick(number):
    time.sleep(0.0005)
    return number


def job():
    made = Job("ticks")
    made.unbounded_source("ticks", tick).rebalance().process("same", lambda context, n: [n], parallelism=2).collect("all")
    return made
"""


def stopped(seed: int, level: str, variant: str | None = None, **more: Any) -> Outcome:
    """A run in which the sources are stopped at some time."""
    at = (1 + seed % 9) * MILLISECOND // 6
    simulation = Simulation(unending(), seed=seed, level=level, stop_after=at, **simulated(variant), **more)
    return simulation.run(30_000)


@pytest.mark.parametrize(
    ("seeds", "level"), [(range(3), "heavy"), pytest.param(range(3, 300), "severe", marks=pytest.mark.long)]
)
def test_a_stopped_job_has_the_first_records_of_its_sources(seeds: Iterable[int], level: str, tmp_path: Path) -> None:
    """With faults, also after restarts; machines accept the logs."""
    for seed in nonempty(seeds):
        outcome = stopped(seed, level)
        assert outcome.finished, (seed, outcome.reason)
        assert not outcome.lost
        assert is_prefix(outcome), seed
        for found in (
            verdicts(outcome, tmp_path, BATON, "baton"),
            verdicts(outcome, tmp_path),
            credit_verdicts(outcome, tmp_path),
        ):
            assert {v.answer for v in found} <= {"accepted"}, seed


@pytest.mark.long
@pytest.mark.parametrize("variant", [*SUBTASKS, *MASTERS])
def test_each_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By the log, or because the job does not end."""
    for seed in range(200):
        outcome = stopped(seed, "heavy", variant)
        is_rejected = "rejected" in [v.answer for v in verdicts(outcome, tmp_path, BATON, "baton")]
        if is_rejected if variant != "stop-forgotten" else outcome.unfinished:
            print(f"{variant}: run {seed}")
            return
    pytest.fail("not caught")


def changed(records: Records, event: str, **args: Any) -> Records:
    """A copy in which the last event of this name has other arguments; without arguments, without the event."""
    at = max(i for i, r in enumerate(records) if r["event"] == event)
    return with_args(records, at, args) if args else [*records[:at], *records[at + 1 :]]


def test_changed_logs_are_rejected(tmp_path: Path) -> None:
    """One without the stop, and one in which a source ends elsewhere."""
    records = records_of(stopped(1, "none"))
    assert is_accepted(records, tmp_path, BATON, "baton")
    for copy in (
        changed(records, "stop_requested"),
        changed(records, "source_stopped"),
        changed(records, "source_stopped", task="numbers1", position=7),
    ):
        assert not is_accepted(copy, tmp_path, BATON, "baton")


def test_a_checkpoint_keeps_the_position_of_a_stopped_source() -> None:
    """A snapshot after the stop has what the source would have left without it."""
    job = Job("endless")
    job.unbounded_source("numbers", lambda n: n).collect("all")
    for seed in range(4):
        outcome = Simulation(
            job, seed=seed, level="heavy", stop_after=3 * MILLISECOND, checkpoint_interval=MILLISECOND // 5
        ).run(20_000)
        assert outcome.finished, outcome.reason
        assert outcome.results["all"] == [*range(len(outcome.results["all"] or ()))]


def test_on_processes_a_stop_ends_the_job(tmp_path: Path) -> None:
    """Also after a TaskExecutor was killed; the log is accepted."""
    file = tmp_path / "ticks.py"
    file.write_text(TICKS)
    found = run(file, tmp_path, stop_after=2_000, kills=["tm-1@8"])
    assert found["wrong"] == ""
    assert sorted(found["results"]["all"] or ()) == [*range(len(found["results"]["all"] or ()))]
    (log,) = BATON.runs(tmp_path)
    assert {v.answer for v in judge(BATON.plan(log, None), "baton")} == {"accepted"}


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_an_unbounded_job_and_a_second_one_cancels_it(number: signal.Signals, tmp_path: Path) -> None:
    """The first Ctrl-C ends it with its results and 0; SIGTERM, or two Ctrl-C, with 130. Nothing is left of it."""
    (tmp_path / "ticks.py").write_text(TICKS)
    logs = tmp_path / "logs"
    process, mark = started(Path("ticks.py"), tmp_path, "--trace", str(logs), "--json", "out.json")

    def is_running() -> bool:
        return any("record_received" in log.read_text() for log in logs.glob("tm-*.ndjson"))

    wait_until(is_running)
    process.send_signal(number)
    process.communicate()
    assert process.returncode == (0 if number == signal.SIGINT else 130)
    if number == signal.SIGINT:
        results = json.loads((tmp_path / "out.json").read_text())["runs"][0]["results"]
        assert len(results["all"]) > 10
    wait_until(lambda: not marked(mark))


@pytest.mark.long
def test_a_second_ctrl_c_cancels(tmp_path: Path) -> None:
    """While the job ends: a function that takes long keeps it."""
    (tmp_path / "slow.py").write_text(TICKS.replace("0.0005", "0.1"))
    process, mark = started(Path("slow.py"), tmp_path, "--trace", "logs")
    wait_until(lambda: '"started"' in "".join(f.read_text() for f in (tmp_path / "logs").glob("jobmaster.ndjson")))
    process.send_signal(signal.SIGINT)
    wait_until(lambda: "stop_requested" in (tmp_path / "logs" / "jobmaster.ndjson").read_text())
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    wait_until(lambda: not marked(mark))


def test_bad_input_is_refused(tmp_path: Path) -> None:
    """A function that is none, a simulated run that nobody stops, and a stop of a job that ends by itself."""
    with pytest.raises(JobError, match="the function of source a is a list"):
        Job("job").unbounded_source("a", [1])  # type: ignore[arg-type]
    file = tmp_path / "ticks.py"
    file.write_text(TICKS)
    about: dict[str, Any] = {"level": "none", "variant": None, "executors": 2, "slots": 2}
    with pytest.raises(Problem, match="source ticks has no end, and nobody stops a simulated run; add --stop-after 1"):
        Simulated(file, **about)
    file.write_text(TICKS.replace("unbounded_source", "source").replace(", tick)", ", [1])"))
    with pytest.raises(Problem, match="the job has no unbounded source; leave out --stop-after"):
        Simulated(file, **about, stop_after=1)
