"""A JobMaster that is lost is replaced: the job begins anew, with the right result, and logs that are accepted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import changed_logs
from batch_jobs import batch, verdicts
from runtime_processes import run
from runtime_region_judge import accepts
from runtime_runs import EXAMPLES, JOBS, example
from streamproof.conformance import InputError, judge
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobmaster.jobmaster import JobMaster
from streamproof_runtime.jobmaster.master_host import Host, Timing
from streamproof_runtime.jobmaster.regions import Region
from streamproof_runtime.jobs.job_file import JobFile
from streamproof_runtime.simulator.faults import CRASH, Fault
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_specs.baton.runtime import BINDING as BATON
from streamproof_specs.failover.runtime import BINDING as FAILOVER
from streamproof_specs.regions.runtime import BINDING as REGIONS

BINDINGS = ((FAILOVER, "failover"), (REGIONS, "regions"), (BATON, "baton"))
LOST = [Fault(CRASH, 300_000, ("jobmaster",), MILLISECOND)]


def check(seed: int, folder: Path) -> int:
    """A run of a random batch job is right, and accepted if its JobMaster was lost; how often it was."""
    job, expected = batch(seed)
    simulation = Simulation(job, seed=seed, level="severe", eager=seed % 2 == 1)
    outcome = simulation.run(100_000)
    assert outcome.finished, (seed, outcome.reason)
    assert not outcome.lost
    assert {name: Counter(records or ()) for name, records in outcome.results.items()} == expected, seed
    for binding, model in BINDINGS if simulation.master.incarnation else ():
        assert {v.answer for v in verdicts(outcome, folder, binding, model)} <= {"accepted"}, (seed, model)
    return simulation.master.incarnation


@pytest.mark.long
def test_batch_jobs_survive_their_jobmaster(tmp_path: Path) -> None:
    """Beside crashes of TaskExecutors and all other faults."""
    assert sum(check(seed, tmp_path) for seed in range(12)) > 3


@pytest.mark.long
def test_many_batch_jobs_survive_their_jobmaster(tmp_path: Path) -> None:
    """A thousand of them."""
    assert sum(check(seed, tmp_path) for seed in range(1000)) > 400


def test_loops_survive_their_jobmaster() -> None:
    """Their results are as expected."""
    sessions = 0
    for name in JOBS:
        file = JobFile(EXAMPLES / f"{name}.py")
        for seed in range(4):
            simulation = Simulation(file.job(), seed=seed, level="severe")
            outcome = simulation.run()
            assert (outcome.finished, outcome.lost) == (True, 0), (name, seed, outcome.reason)
            assert file.wrong(outcome.results) == "", (name, seed)
            sessions += simulation.master.incarnation
    assert sessions > 4


def test_each_jobmaster_has_a_trace_and_attempts_of_its_own() -> None:
    """The later one begins after all attempts of the lost one, and a run repeats."""
    first, again = (Simulation(example("sales").job(), seed=5, faults_given=LOST).run() for _ in range(2))
    assert first.digest == again.digest
    records = [json.loads(line) for line in lines(first.entries)]
    started = {r["trace"]: r["args"]["first_attempt"] for r in records if r["event"] == "job_started"}
    assert started == {"sales": 0, "sales@1": 1}
    attempts = {r["trace"]: r["args"]["attempt"] for r in records if r["event"] == "region_scheduled"}
    assert attempts == {"sales": 0, "sales@1": 1}


def test_all_jobmasters_of_a_log_have_one_job_graph(tmp_path: Path) -> None:
    """Another one is refused, as is a JobMaster without a beginning, or with two."""
    outcome = Simulation(example("sales").job(), seed=5, faults_given=LOST).run()
    records = [json.loads(line) for line in lines(outcome.entries)]
    at = next(n for n, r in enumerate(records) if r["trace"] == "sales@1")
    other = {**records[at], "args": {**records[at]["args"], "exchanges": records[at]["args"]["exchanges"][1:]}}
    for change, words in (
        ([other], "has another job graph"),
        ([], "is not after the beginning of job sales@1"),
        ([records[at], {**records[at], "seq": 1_000}], "begins a second time"),
    ):
        log = tmp_path / "run.ndjson"
        log.write_text("".join(json.dumps(r) + "\n" for r in [*records[:at], *change, *records[at + 1 :]]))
        for binding in (FAILOVER, REGIONS):
            with pytest.raises(InputError, match=words):
                binding.plan(log, None)


def own(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events of JobMasters that belong to no attempt."""
    return [r for r in records if r["process"] == "jobmaster" and "#" not in r["trace"]]


def tampered(records: Sequence[dict[str, Any]], folder: Path) -> dict[str, list[str]]:
    """The verdicts of each machine on changed records."""
    log = folder / "run.ndjson"
    log.write_text("".join(json.dumps(r) + "\n" for r in records))
    return {model: [v.answer for v in judge(binding.plan(log, None), model)] for binding, model in BINDINGS}


@pytest.mark.parametrize("name", ["sales", "components"])
def test_a_jobmaster_must_begin_after_the_attempts_of_the_earlier_ones(name: str, tmp_path: Path) -> None:
    """A log in which it does not is rejected, although its attempts are in order for each JobMaster alone; one in which it
    begins with any larger number is accepted."""
    crash = Fault(CRASH, 700_000, ("tm-1",), MILLISECOND)
    again = Fault(CRASH, 3_000_000, ("jobmaster",), MILLISECOND)
    seed = {"sales": 4, "components": 3}[name]
    outcome = Simulation(example(name).job(), seed=seed, slots=1, faults_given=[crash, again]).run()
    records = [json.loads(line) for line in lines(outcome.entries)]
    (first,) = (r["args"]["first_attempt"] for r in records if r["event"] == "job_started" and "@1" in r["trace"])
    assert first == 2

    def later(by: int) -> list[dict[str, Any]]:
        """All attempts of the second JobMaster, with another number."""
        changed = json.loads(json.dumps(records))
        at = next(n for n, r in enumerate(changed) if r["trace"].endswith("@1"))
        for record in changed[at:]:
            base, sign, number = record["trace"].rpartition("#")
            if sign and int(number) >= first:
                record["trace"] = f"{base}#{int(number) + by}"
            args = record.get("args", {})
            of, at_, attempt = str(args.get("partition", "")).rpartition("@")
            if at_ and int(attempt) >= first:
                args["partition"] = f"{of}@{int(attempt) + by}"
            if args.get("reader", -1) >= first:
                args["reader"] += by
            if record["trace"].endswith("@1"):
                for key in ("first_attempt", "attempt"):
                    if key in args:
                        args[key] += by
                for key in ("reads", "descriptors"):
                    args.update({key: {k: v + by for k, v in args[key].items()}} if key in args else {})
        return list(changed)

    models = {model for _, model in BINDINGS}
    for by in (0, 1, 5):
        answers = tampered(later(by), tmp_path)
        assert all(set(answers[model]) == {"accepted"} for model in models)
    below = own(later(-1))
    assert [accepts(own(later(by))) for by in (0, 1, 5)] == [True] * 3
    assert not accepts(below)
    below_answers = tampered(below, tmp_path)
    assert all("rejected" in below_answers[model] for model in models)
    for record in records:
        if record["event"] == "job_started" and record["trace"].endswith("@1"):
            record["args"]["first_attempt"] = 0
    answers = tampered(records, tmp_path)
    assert all("rejected" in answers[model] for model in models)
    assert not accepts(own(records))


@pytest.mark.parametrize("name", ["sales", "components"])
def test_attempts_are_those_of_the_jobmaster(name: str, tmp_path: Path) -> None:
    """An attempt under a number that was never scheduled, a region whose attempt has not finished, and a JobMaster with
    none before it are lies, wherever the lines are; an attempt that nobody recorded further is none."""
    crash = Fault(CRASH, 700_000, ("tm-1",), MILLISECOND)
    seed = {"sales": 4, "components": 3}[name]
    outcome = Simulation(example(name).job(), seed=seed, slots=1, faults_given=[crash]).run()
    records = changed_logs.records_of(outcome)
    traces = sorted({r["trace"] for r in records if r["trace"].endswith("#1")})
    assert traces

    def answers(copies: Sequence[dict[str, Any]]) -> set[str]:
        return {a for found in tampered(changed_logs.numbered(copies), tmp_path).values() for a in found}

    assert answers(records) == {"accepted"}
    for trace in traces:
        of = [r for r in records if r["trace"] == trace]
        elsewhere = trace.replace("#1", "#7")
        assert answers([*records, *({**r, "trace": elsewhere} for r in of)]) == {"accepted", "rejected"}
        assert answers([{**r, "trace": elsewhere} if r in of else r for r in records]) == {"accepted", "rejected"}
        assert answers([r for r in records if r["trace"] != trace]) == {"accepted", "rejected"}
        assert answers([r for r in records if r["trace"] != trace or r["event"] != "finished"]) > {"rejected"}
    assert "rejected" in answers([{**r, "trace": f"{name}@1"} if r["trace"] == name else r for r in records])
    until = next(at for at, r in enumerate(records) if r["event"] == "region_finished")
    for cut in (until - 1, until, until + 1):
        assert answers(records[:cut]) == {"accepted"}


class Unfenced(JobMaster):
    """Begins with attempt 0 again."""

    def __init__(self, regions: Sequence[Region], host: Host, timing: Timing, first_attempt: int = 0) -> None:
        super().__init__(regions, host, timing)


def test_attempts_are_not_used_twice() -> None:
    """Else TaskExecutors take a deployment of the new JobMaster for an old one."""
    outcome = Simulation(example("sales").job(), seed=5, faults_given=LOST, master_type=Unfenced).run(20_000)
    assert not outcome.finished


@pytest.mark.push
def test_a_killed_jobmaster_is_replaced(tmp_path: Path) -> None:
    """On processes, with a TaskExecutor killed as well, and the JobMaster twice."""
    kills = ["jobmaster@12", "jobmaster@6", "tm-1@9"]
    found = run(EXAMPLES / "sales.py", tmp_path, executors=3, kills=kills)
    assert found["wrong"] == ""
    assert found["checked"]
    assert [kill["happened"] for kill in found["kills"]][:2] == [True, True]
    assert found["attempts"] >= 3
    names = {f"jobmaster{part}.ndjson" for part in ("", ".1", ".2")}
    assert {f.name for f in tmp_path.glob("jobmaster*")} == names
    for binding, model in BINDINGS:
        (log,) = binding.runs(tmp_path)
        assert {v.answer for v in judge(binding.plan(log, None), model)} == {"accepted"}, model
