"""Checkpoint lines of Flink: recorded runs, runs with lies, and behaviours of the detailed model written as lines."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import streamproof_models.checkpoints.variants  # noqa: F401  (declaring a variant registers it)
from shares import share
from streamproof.cli.verbs import run
from streamproof.conformance import Event, Plan, RunVerdict, Unit, judge, validate_paths
from streamproof.language.declare.spec import compile_model
from streamproof.system import Interpreter, Step, System
from streamproof_models.checkpoints.machine import Checkpoints
from streamproof_specs.checkpoints.flink.binding import followed
from tampering import checkpoint_lies

RUNS = {
    "tm12-kill": 76,
    "ckpt-expo": 39,
    "savepoint": 16,
    "agent": 27,
    "adaptive-taskfail": 28,
    "debug-stream-kill": 61,
    "v120-ckfail": 50,
}
"""Recorded runs with checkpoints, and the number of their lines that the machine follows."""


RunOf: TypeAlias = Callable[[str], Path]


@pytest.fixture
def run_of(flink_live: Path, flink_versions: Path) -> RunOf:
    """The folder of a recorded run."""
    return lambda name: (flink_versions if name.startswith("v") else flink_live) / name


@pytest.mark.parametrize(("name", "matched"), [*RUNS.items(), ("h-2x2-e2-f2-ckpt", 21), ("i-2x2-e0-f4-ckpt", 23)])
def test_recorded_runs_are_accepted(name: str, matched: int, run_of: RunOf, flink_credit: Path) -> None:
    """Every line about a checkpoint is followed, also where several jobs or schedulers are in a log."""
    folder = run_of(name) if name in RUNS else flink_credit / name
    verdicts = validate_paths([folder], model="checkpoints")
    assert {v.answer for v in verdicts} == {"accepted"}
    assert sum(v.matched for v in verdicts) == matched


def test_a_run_without_checkpoints_is_inconclusive(flink_logs: Path) -> None:
    """Nothing is accepted of which nothing was recorded."""
    (verdict,) = validate_paths([flink_logs / "b-lostpart-1"], model="checkpoints")
    assert (verdict.answer, verdict.reason) == ("inconclusive", "no line of the run speaks of a checkpoint")


def test_all_models_judge_a_run(flink_live: Path, flink_logs: Path) -> None:
    """Run by run, one verdict of each model; a model of which a run has no record is inconclusive."""
    runs = [flink_live / "ckpt-expo", flink_logs / "b-lostpart-1"]
    found = [(v.run, v.model, v.answer) for v in validate_paths(runs, model="all")]
    assert [run for run, _, _ in found] == sorted([run for run, _, _ in found], reverse=True)
    assert {each for each in found if each[1] in ("failover", "checkpoints")} == {
        ("ckpt-expo", "failover", "accepted"),
        ("ckpt-expo", "checkpoints", "accepted"),
        ("b-lostpart-1", "failover", "accepted"),
        ("b-lostpart-1", "checkpoints", "inconclusive"),
    }
    usual = [(v.run, v.model, v.answer) for v in validate_paths(runs)]
    assert usual == [each for each in found if each[1] == "failover"]


def test_a_run_without_any_record_counts_beside_one_of_its_name(
    flink_logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only a model without records beside one with records is left out; another run of the same name is not."""
    empty = tmp_path / "b-lostpart-1"
    empty.mkdir()
    lines = (flink_logs / "b-lostpart-1" / "jobmanager.log").read_text().splitlines(keepends=True)[:100]
    (empty / "jobmanager.log").write_text("".join(line for line in lines if "337d69de" not in line))
    both = validate_paths([flink_logs / "b-lostpart-1", empty], model="all")
    assert [(v.model, v.unrecorded) for v in both if not v.trace] == [
        ("checkpoints", True),
        *((model, False) for model in ("failover", "checkpoints", "partition_lifecycle", "regions", "slot_pool")),
    ]
    paths = [str(flink_logs / "b-lostpart-1"), str(empty)]
    assert run(["validate", paths[0], "--model", "all"]) == 0
    assert run(["validate", *paths]) == run(["validate", *paths, "--model", "all"]) == 160


def test_all_models_with_a_job_graph(flink_logs: Path) -> None:
    """The job graph is for the models that read one; the others judge the run all the same."""
    folder = flink_logs / "b-lostpart-1"
    (graph,) = folder.glob("rest-*.json")
    found = {(v.model, v.answer) for v in validate_paths([folder], model="all", job_graph=graph)}
    assert found == {
        ("checkpoints", "inconclusive"),
        *((model, "accepted") for model in ("failover", "partition_lifecycle", "regions", "slot_pool")),
    }


# --- lies


@pytest.mark.push
@pytest.mark.parametrize("name", share(list(RUNS), 8))
def test_lies_are_rejected_at_the_line(name: str, run_of: RunOf) -> None:
    """Two edits of each kind that fits the run."""
    kinds = defaultdict(list)
    for edit in checkpoint_lies.edits(run_of(name)):
        kinds[edit.kind].append(edit)
    assert len(kinds) >= 4
    for kind, edits in kinds.items():
        for edit in edits[:: max(1, len(edits) - 1)][:2]:
            found = checkpoint_lies.outcome(run_of(name), edit)
            assert found.hit, (kind, found.what, found.place, found.expected, found.message)


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_every_lie_is_rejected_at_its_line(name: str, run_of: RunOf) -> None:
    """All edits at all places."""
    found = [checkpoint_lies.outcome(run_of(name), e) for e in checkpoint_lies.edits(run_of(name))]
    assert [(o.kind, o.what, o.place, o.expected) for o in found if not o.hit] == []


def test_every_kind_of_lie_fits_some_run(run_of: RunOf) -> None:
    """Each kind of lie fits at least two of the runs."""
    kinds = Counter(kind for name in RUNS for kind in {e.kind for e in checkpoint_lies.edits(run_of(name))})
    assert len(kinds) == 8
    assert min(kinds.values()) >= 2


@pytest.mark.parametrize("name", share(list(RUNS), 4))
def test_parts_of_a_log_are_not_rejected(name: str, run_of: RunOf, tmp_path: Path) -> None:
    """A log that begins in the middle of the job, or ends early, is still one of a correct run."""
    folder = shutil.copytree(run_of(name), tmp_path / name)
    log = folder / "jobmanager.log"
    lines = log.read_text().splitlines(keepends=True)
    places = [at for at, line in enumerate(lines) if re.search(checkpoint_lies.LINE, line)]
    validated = 0
    for at in places[:: max(1, len(places) // 8)]:
        for part in (lines[:at], lines[at:], lines[at + 1 :]):
            log.write_text("".join(part))
            verdicts = validate_paths([folder], model="checkpoints")
            assert not [v.reason for v in verdicts if v.answer == "rejected"]
            validated += sum(v.answer == "accepted" for v in verdicts)
    assert validated


@pytest.fixture(scope="module")
def two_jobs(flink_live: Path, tmp_path_factory: pytest.TempPathFactory, tool_module: Any) -> Path:
    """Two jobs with failures in one session: the JobManagers' logs of two runs, merged by time."""
    tool = tool_module("disturb_flink_runs")
    records = [tool.records((flink_live / name / "jobmanager.log").read_bytes()) for name in ("ckpt-expo", "tm12-kill")]

    def at(record: bytes) -> datetime:
        return datetime.fromisoformat(record[:19].decode())

    first, second = (next(at(r) for r in found if b" - Submitting job '" in r) for found in records)
    own = [(r[:23], 0, n, r) for n, r in enumerate(records[0])]
    later = [tool.moved(r, first - second) for r in records[1] if b"ClusterEntrypoint" not in r]
    folder = tmp_path_factory.mktemp("two_jobs")
    merged = sorted([*own, *((r[:23], 1, n, r) for n, r in enumerate(later))])
    (folder / "jobmanager.log").write_bytes(b"".join(record for *_, record in merged))
    return folder


def test_restores_of_two_jobs_in_one_session_are_distinguished(two_jobs: Path) -> None:
    """The line without a job belongs to the one that restarts; lies about restores are rejected at their lines."""
    assert [v.answer for v in validate_paths([two_jobs], model="checkpoints")] == ["accepted"] * 2
    kinds = defaultdict(list)
    for edit in checkpoint_lies.edits(two_jobs):
        if edit.kind.startswith("restored"):
            kinds[edit.kind].append(edit)
    assert len(kinds) == 4
    for kind, edits in kinds.items():
        for edit in (edits[0], edits[len(edits) // 2]):
            found = checkpoint_lies.outcome(two_jobs, edit)
            assert found.hit, (kind, found.what, found.place, found.expected, found.message)


HEAD = "2026-11-22 12:00:{:02},000 INFO  org.apache.flink.runtime.{:<54} [] - {}\n"
JOB, OTHER = "a" * 32, "b" * 32


def excerpt(folder: Path, *messages: str, job: str = JOB) -> RunVerdict:
    """The verdict on lines of a JobManager: the message alone for those of the coordinator, `class: message` for others."""
    lines = []
    for second, text in enumerate(messages):
        logger, _, message = text.rpartition(":: ")
        named = message.replace("JOB", job).replace("OTHER", OTHER)
        lines.append(HEAD.format(second, logger or "checkpoint.CheckpointCoordinator", named))
    (folder / "jobmanager.log").write_text("".join(lines))
    return next(v for v in validate_paths([folder], model="checkpoints") if v.trace == job)


def triggered(number: int) -> str:
    """A line about the beginning of a checkpoint."""
    return f"Triggering checkpoint {number} (type=CheckpointType{{name='Checkpoint'}}) @ 1795354482496 for job JOB."


def completed(number: int) -> str:
    """A line about its end."""
    return f"Completed checkpoint {number} for job JOB (99 bytes, checkpointDuration=1 ms, finalizationTime=1 ms)."


def restored(number: int, job: str = "JOB") -> str:
    """A line about a restore from it."""
    return f"Restoring job {job} from Checkpoint {number} @ 1795354482496 for {job} located at file:/x/chk-{number}."


GRAPH = "executiongraph.ExecutionGraph:: Created execution graph cccccccccccccccccccccccccccccccc for job JOB."
SUBMITTED = "dispatcher.StandaloneDispatcher:: Submitting job 'gen' (JOB)."
RUNNING = "executiongraph.ExecutionGraph:: Job gen (JOB) switched from state RESTARTING to RUNNING."
VERSION = "entrypoint.ClusterEntrypoint::  Starting StandaloneSessionClusterEntrypoint (Version: {}, Scala: 2.12)"


@pytest.mark.parametrize(
    ("lines", "answer", "reason"),
    [
        # What the log has completed, its missing beginning does not explain.
        ((triggered(505), completed(505), restored(504)), "rejected", "the latest one is checkpoint 505"),
        ((completed(505), restored(504)), "inconclusive", "right only if it is a savepoint"),
        ((completed(505), restored(504), restored(505)), "rejected", "the latest one is checkpoint 504"),
        ((restored(504), completed(503)), "rejected", "checkpoint 503 completes, but it is not pending"),
        ((triggered(505), restored(504), triggered(506), completed(506)), "inconclusive", "how checkpoint 505 ends"),
        ((completed(505), restored(505)), "accepted", None),
        ((restored(504), triggered(505), completed(505), restored(505)), "accepted", None),
        # A job that is submitted, or built, later in the log.
        ((restored(3), SUBMITTED, GRAPH), "rejected", "which is submitted later in this log"),
        ((VERSION.format("2.3.0"), restored(3), GRAPH), "rejected", "whose execution graph is built later"),
        # A checkpoint that a restart aborts has no line before 1.16.
        (
            (triggered(1), completed(1), triggered(2), RUNNING, restored(1)),
            "inconclusive",
            "Flink writes one from 1.16 on",
        ),
        ((VERSION.format("1.12.2"), triggered(1), completed(1), triggered(2), RUNNING, restored(1)), "accepted", None),
        (
            (VERSION.format("1.16.0"), triggered(1), completed(1), triggered(2), RUNNING, restored(1)),
            "rejected",
            "a line about its end is missing",
        ),
        # Another JobMaster may have completed checkpoints after this one was suspended, and not before.
        ((SUBMITTED, GRAPH, triggered(1), completed(1), restored(3)), "rejected", "the latest one is checkpoint 1"),
        (
            (
                SUBMITTED,
                GRAPH,
                triggered(1),
                completed(1),
                RUNNING.replace("RUNNING.", "SUSPENDED."),
                GRAPH,
                restored(3),
            ),
            "accepted",
            None,
        ),
    ],
)
def test_what_is_missing_explains_nothing_else(
    lines: tuple[str, ...], answer: str, reason: str | None, tmp_path: Path
) -> None:
    """The beginning of a log, the lines of an older version, those of another JobMaster."""
    found = excerpt(tmp_path, *lines)
    assert found.answer == answer, found.reason
    assert reason is None or reason in (found.reason or "")


def test_lines_of_an_older_flink_that_are_not_read_leave_the_run_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three of four lines about checkpoints have another format: the one that is read decides nothing."""
    old = "Triggering checkpoint {} @ 1558107787056 for job JOB."
    lines = (old.format(65), completed(65), old.format(66), "Discarding checkpoint 66 of job JOB.")
    found = excerpt(tmp_path, *lines)
    assert found.answer == "inconclusive"
    assert "3 of 4 lines of the kind that is followed" in (found.reason or "")
    assert run(["validate", str(tmp_path), "--model", "checkpoints"]) == 160
    assert "jobmanager.log:4: the line looks like ckpt.failed" in capsys.readouterr().err


# --- the detailed model


def behaviour(system: System, chance: random.Random, length: int) -> Iterator[Step]:
    """The steps of a random walk in which faults are rare."""
    interpreter = Interpreter(system)
    state = chance.choice(list(interpreter.initial_states()))
    for _ in range(length):
        steps = list(interpreter.steps(state))
        if not steps:
            return
        rare = [1 if step.instance.action in ("fail", "expire", "lose") else 15 for step in steps]
        (step,) = chance.choices(steps, rare)
        yield step
        state = step.state


def lines_of(system: System, chance: random.Random, length: int) -> list[Event]:
    """The checkpoint lines of a walk. The line of a beginning may come after that of the end."""
    written: list[Event] = []

    def write(family: str, checkpoint: int, **more: str) -> None:
        args = {"checkpoint": checkpoint, **more} if checkpoint else {}
        written.append(Event("job", "jobmanager", len(written), family, args))

    at = {name: system.index[name] for name in ("checkpoint", "restored", "attempt")}
    before = next(Interpreter(system).initial_states())
    delayed = 0
    for step in behaviour(system, chance, length):
        after = step.state
        changes = {
            c: new
            for c, (old, new) in enumerate(zip(before[at["checkpoint"]], after[at["checkpoint"]], strict=True), 1)
            if old != new
        }
        for c, new in sorted(changes.items(), key=lambda change: change[1] != "COMPLETED"):
            if delayed == c and new == "COMPLETED":
                write("ckpt.trigger", c, kind="CheckpointType")
                delayed = 0
            if new == "PENDING" and chance.random() < 0.3:
                delayed = c
            elif new != "NONE":
                families = {"PENDING": "ckpt.trigger", "COMPLETED": "ckpt.complete", "ABORTED": "ckpt.failed"}
                write(families[new], c, **({"kind": "CheckpointType"} if new == "PENDING" else {}))
        if delayed and step.instance.action == "trigger_tasks":
            write("ckpt.trigger", delayed, kind="CheckpointType")
            delayed = 0
        if after[at["attempt"]] != before[at["attempt"]]:
            write("ckpt.restore" if after[at["restored"]] else "ckpt.none", after[at["restored"]])
        before = after
    return written


def verdict(events: Sequence[Event]) -> RunVerdict:
    """The verdict on lines of one job."""
    case = Unit("job", "", (followed("job", events, 3),))
    return judge(Plan("walk", (case,), tuple(events)), "checkpoints")[0]


MODELS = [
    {},
    {"concurrent": 2, "failures": 2, "faults": 2},
    {"ids": 3, "concurrent": 3, "retained": 2, "failures": 3, "faults": 3},
]


@pytest.mark.parametrize(
    ("number", "seeds"),
    [(0, 20), (1, 20), (2, 20), *(pytest.param(n, 1500, marks=pytest.mark.long) for n in range(3))],
)
def test_walks_of_the_detailed_model_are_accepted(number: int, seeds: int) -> None:
    """Every walk of `checkpoints`, written as lines, is a behaviour of what the lines show."""
    system = compile_model(Checkpoints(**MODELS[number]))
    lines = restores = late = 0
    for seed in range(seeds):
        chance = random.Random(seed)
        events = lines_of(system, chance, 150)
        found = verdict(events)
        assert found.rejection is None, (seed, found.reason)
        lines += len(events)
        restores += sum(e.event == "ckpt.restore" for e in events)
        pairs = [(a, b) for a, b in pairwise(events) if (a.event, b.event) == ("ckpt.failed", "ckpt.trigger")]
        late += sum(a.args["checkpoint"] == b.args["checkpoint"] for a, b in pairs)
    assert lines > 4 * seeds
    assert restores
    assert late


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        ("completes-after-failure", "is pending: a line about its end is missing"),
        ("subsumed-kept", "completes after a later one"),
        ("unchecked-attempt", "ids rise"),
    ],
)
def test_walks_of_variants_are_rejected(variant: str, reason: str) -> None:
    """A defect that the lines show is found by them."""
    parameters = {"ids": 3, "concurrent": 2, "failures": 2, "faults": 1}
    system = compile_model(Checkpoints.build(variant, **parameters))
    found = (verdict(lines_of(system, random.Random(seed), 150)).reason for seed in range(150))
    assert any(reason in (text or "") for text in found)
