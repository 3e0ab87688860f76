"""Sessions: jobs on one cluster, one after the other, of which later ones read what earlier ones have promoted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from changed_logs import Records, is_accepted, rearranged, records_of, with_args
from changed_logs import verdicts as judged
from cluster_partition_judge import accepts, refusal
from runtime_processes import run as run_processes
from runtime_runs import EXAMPLES
from session_jobs import is_right, ran
from shares import share
from streamproof.conformance import judge
from streamproof.conformance.found_runs import bindings_for
from streamproof_runtime import JobError
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.variants import all_variants
from streamproof_specs.partitions.runtime.binding import BINDING

MODEL = "partition_lifecycle"


@pytest.mark.parametrize(
    ("seeds", "level"), [(range(10), "heavy"), pytest.param(range(400), "severe", marks=pytest.mark.long)]
)
def test_sessions_are_right_and_accepted(seeds: range, level: str, tmp_path: Path) -> None:
    """By the machine with the relation *same*, and by a judge without a machine; most finish."""
    finished = 0
    for seed in seeds:
        outcome = ran(seed, level)
        assert is_right(outcome), (seed, outcome.reason)
        finished += outcome.finished
        records = records_of(outcome)
        found = judged(outcome, tmp_path, BINDING, MODEL)
        assert [v.answer for v in found] == ["accepted"] * len(found), seed
        assert refusal(records) == "", seed
    assert finished > len(seeds) // 2


@pytest.mark.parametrize("variant", share(sorted(all_variants.FAMILIES["cluster partitions"]), 2))
def test_each_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By both judges, in one of the first runs."""
    for seed in range(20):
        records = records_of(ran(seed, "severe", variant))
        answer = is_accepted(records, tmp_path, BINDING, MODEL)
        assert answer == accepts(records), seed
        if not answer:
            return
    pytest.fail("not caught")


def test_later_jobs_that_store_are_judged(tmp_path: Path) -> None:
    """By all machines: events of TaskExecutors have the trace of the first job, and datasets of two jobs have one name."""
    chosen: list[Job] = []
    for number in range(3):
        job = Job(f"job{number}", mode="batch")
        source = job.cluster_source(f"kept{number - 1}", 2) if number else job.source("numbers", range(9), 2)
        made = source.key_by(lambda n: n).process("add", lambda c, n: [n + 1], 2)
        made.promote(f"kept{number}")
        chosen.append(job)
    chosen[-1].cluster_source("kept0", 2).collect("all")
    first, *later = chosen
    log = tmp_path / "run.ndjson"
    for seed in range(3):
        outcome = Simulation(first, later=later, seed=seed, level="light").run(100_000)
        assert not outcome.finished or Counter(outcome.results["job2"]["all"]) == Counter(range(1, 10))
        log.write_text("".join(lines(outcome.entries)), encoding="ascii")
        for model, binding in bindings_for(log, requested=True):
            assert {v.answer for v in judge(binding.plan(log, None), model)} == {"accepted"}, (seed, model)


@cache
def run() -> Records:
    """The events of a run without faults, without those of subtasks and slots."""
    return [r for r in records_of(ran(3, "none")) if "#" not in r["trace"] and "/" not in r["trace"]]


def at(records: Records, event: str) -> int:
    """The place of the first event of a name."""
    return next(n for n, r in enumerate(records) if r["event"] == event)


def without(event: str) -> Callable[[Records], Records]:
    """A lie: an event is left out."""
    return lambda records: [r for n, r in enumerate(records) if n != at(records, event)]


def with_other(event: str, **args: Any) -> Callable[[Records], Records]:
    """A lie: an event with other arguments."""
    return lambda records: with_args(records, at(records, event), {**records[at(records, event)]["args"], **args})


def deleted_with_job(records: Records) -> Records:
    """A TaskExecutor deletes what it has promoted when it loses the JobMaster."""
    promoted = records[at(records, "partitions_promoted")]
    where = next(
        n
        for n, r in enumerate(records)
        if r["event"] == "master_lost"
        and r["process"] == promoted["process"]
        and n > at(records, "partitions_promoted")
    )
    args = records[where]["args"]
    return with_args(records, where, {**args, "deleted": [*args["deleted"], *promoted["args"]["promoted"]]})


LIES: dict[str, Callable[[Records], Records]] = {
    "a promotion is left out": without("partitions_promoted"),
    "the request of a promotion is left out": without("promotion_requested"),
    "the answer of the ResourceManager is left out": without("cluster_partition_located"),
    "another attempt is located": with_other("cluster_partition_located", attempt=1),
    "it is located elsewhere": with_other("cluster_partition_located", executors=["tm-3", "tm-3"]),
    "a partition is released twice": lambda records: [*records, records[at(records, "cluster_partition_released")]],
    "a release deletes nothing": with_other("cluster_partition_released", deleted=[]),
    "a later job does not read to the end": lambda records: [
        r for r in records if r["event"] != "partition_consumed" or r["args"]["reader"] == 0
    ],
    "it is deleted with its job": deleted_with_job,
}


@pytest.mark.parametrize("lie", LIES)
def test_both_judges_reject_a_lie(lie: str, tmp_path: Path) -> None:
    """About the life of a cluster partition."""
    records = run()
    assert is_accepted(records, tmp_path, BINDING, MODEL)
    assert accepts(records)
    changed = LIES[lie](records)
    assert not is_accepted(changed, tmp_path, BINDING, MODEL)
    assert not accepts(changed)


def twice(first: Job, name: str = "other", parallelism: int = 2) -> list[Job]:
    """A session of a job and one that reads its cluster partition."""
    other = Job(name)
    other.cluster_source("doubled", parallelism).collect("all")
    return [first, other]


def promoting(name: str) -> Job:
    """A job that promotes numbers."""
    job = Job(name)
    job.source("numbers", [1, 2], 2).promote("doubled")
    return job


@pytest.mark.parametrize(
    ("session", "message"),
    [
        (lambda: twice(promoting("one"), "one"), "two jobs of the session are named one"),
        (lambda: twice(promoting("one"), parallelism=3), "with parallelism 3; job one stores it with 2"),
        (lambda: [*twice(promoting("one"))[1:], promoting("one")], "which no job before it promotes"),
        (lambda: [promoting("one"), promoting("two")], "jobs one and two both promote doubled"),
    ],
)
def test_sessions_that_cannot_be_are_refused(session: Callable[[], list[Job]], message: str) -> None:
    """With the names of the jobs."""
    first, *later = session()
    with pytest.raises(JobError, match=message):
        Simulation(first, later=later)


def on_processes(folder: Path, *kills: str) -> dict[str, Any]:
    """The example on processes, some of which are killed; every machine accepts its log."""
    folder.mkdir()
    outcome = run_processes(EXAMPLES / "session.py", folder, executors=3, kills=kills)
    for model, binding in bindings_for(folder, requested=True):
        (log,) = binding.runs(folder)
        assert {v.answer for v in judge(binding.plan(log, None), model)} == {"accepted"}, model
    return outcome


def test_a_session_runs_on_processes(tmp_path: Path) -> None:
    """Each job has a JobMaster of its own."""
    assert on_processes(tmp_path / "logs")["wrong"] == ""
    assert len([*(tmp_path / "logs").glob("jobmaster*")]) == 3


@pytest.mark.long
@pytest.mark.parametrize("kill", ["tm-1@12", "jobmaster@20", "jobmaster@60", "tm-2@0.4s", "rm@3", "tm-1@30", "tm-3@40"])
def test_a_session_survives_kills_or_says_what_is_lost(kill: str, tmp_path: Path) -> None:
    """What was promoted is lost with its process only."""
    wrong = on_processes(tmp_path / "logs", kill)["wrong"]
    assert wrong == "" or wrong.startswith("cluster partition counts is lost")


@pytest.mark.long
def test_what_the_machine_accepts_of_changed_logs_the_second_judge_accepts(tmp_path: Path) -> None:
    """Events of all kinds are left out, doubled, moved, or have another argument."""
    kept = refused = 0
    for seed in range(60):
        draw = random.Random(seed)
        outcome = ran(seed, draw.choice(("none", "heavy", "severe")))
        records = [r for r in records_of(outcome) if "#" not in r["trace"] and "/" not in r["trace"]]
        for _ in range(4):
            where = draw.randrange(1, len(records))
            changed = rearranged(draw, records, where, lambda: draw.randint(-8, 8))  # noqa: B023
            args = dict(records[where].get("args", {}))
            if changed is None and args:
                args[draw.choice(sorted(args))] = draw.choice((None, -1, {}, [], "x", 7, ["tm-3", "tm-3"]))
                changed = with_args(records, where, args)
            if changed is not None and is_accepted(changed, tmp_path, BINDING, MODEL):
                assert refusal(changed) == "", seed
                kept += 1
            elif changed is not None:
                refused += 1
    assert min(kept, refused) > 40
