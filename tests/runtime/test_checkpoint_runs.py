"""Checkpoints of the runtime: restarts go on from the latest one, results are right, logs are judged alike by two judges."""

from __future__ import annotations

import errno
import json
import os
import random
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

import changed_logs
from changed_logs import Records
from runtime_checkpoint_judge import accepts
from runtime_mix import MICROSECOND, crashes, crashing, readings
from runtime_processes import run
from runtime_runs import EXAMPLES, credit_verdicts, example, verdicts
from shares import share
from streamproof.conformance import judge
from streamproof_runtime import Job, JobError
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobmaster.checkpoint_store import MemoryCheckpoints
from streamproof_runtime.jobmaster.checkpoints import expect_streaming
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.processes.checkpoint_files import FileCheckpoints, checkpoint_files
from streamproof_runtime.simulator.faults import Fault
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.subtasks.barriers import Snapshot
from streamproof_runtime.variants.checkpoint_variants import MASTERS, SUBTASKS
from streamproof_specs.checkpoints.runtime.binding import BINDING

DISTANCES = (-40, -8, -2, -1, 1, 2, 8, 40)
"""By which an event is moved."""
FOLLOWED = ("checkpoint_", "region_", "snapshot_", "job_finished", "record_", "buffers_flushed")


def outcome_of(seed: int, variant: str = "") -> tuple[bool, Outcome]:
    """Whether a run with checkpoints has the right result, and its outcome."""
    outcome, wrong = crashing(seed, variant)
    return not wrong, outcome


def restored(outcome: Outcome) -> list[int]:
    """The checkpoints from which attempts began."""
    return [e[3]["checkpoint"] for e in outcome.entries if e[2] == "checkpoint_restored"]


def is_accepted(records: Records, folder: Path) -> bool:
    """Whether the machine accepts a log."""
    return changed_logs.is_accepted(records, folder, BINDING, "checkpoints")


def records_of(outcome: Outcome) -> Records:
    """The events that checkpoints are about, without clocks, and the graphs."""
    found = map(json.loads, lines(outcome.entries))
    kept = (r for r in found if r["event"].startswith(FOLLOWED) or r["event"] in ("job_started", "deployed"))
    return [{name: value for name, value in record.items() if name != "clock"} for record in kept]


def check(seed: int, folder: Path) -> int:
    """A run is right, and all machines accept it; how often it went on from a checkpoint."""
    is_right, outcome = outcome_of(seed)
    assert is_right, (seed, outcome.reason)
    assert is_accepted(records_of(outcome), folder), seed
    assert accepts(records_of(outcome)), seed
    assert {v.answer for v in verdicts(outcome, folder)} == {"accepted"}, seed
    assert {v.answer for v in credit_verdicts(outcome, folder)} == {"accepted"}, seed
    return sum(c > 0 for c in restored(outcome))


def test_runs_with_checkpoints_are_right(tmp_path: Path) -> None:
    """They go on from checkpoints, and every machine accepts their logs."""
    assert check(1, tmp_path) > 0


@pytest.mark.long
def test_many_runs_with_checkpoints_are_right(tmp_path: Path) -> None:
    """Five hundred of them."""
    assert sum(check(seed, tmp_path) for seed in range(500)) > 300


class Full(MemoryCheckpoints):
    """A store that has no room for every second checkpoint."""

    def save(self, checkpoint: int, snapshots: Mapping[str, Snapshot]) -> None:
        """Fails for odd ones."""
        if checkpoint % 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().save(checkpoint, snapshots)


@pytest.mark.long
def test_a_checkpoint_that_cannot_be_stored_is_aborted(tmp_path: Path) -> None:
    """The one before stays the latest, and the log is accepted; both judges agree on what is not such a log."""
    module = readings()
    simulation = Simulation(module.job(), seed=13, faults_given=crashes(13), checkpoint_interval=200 * MICROSECOND)
    simulation.records = 1
    simulation.master.checkpoint_store = Full()
    outcome = simulation.run(100_000)
    assert outcome.results == module.expected()
    records = records_of(outcome)
    aborted = [n for n, r in enumerate(records) if "cannot be stored" in r.get("args", {}).get("reason", "")]
    assert aborted
    assert not any(c % 2 for c in restored(outcome))
    assert is_accepted(records, tmp_path)
    assert accepts(records)
    place = aborted[0]
    completed = {**records[place], "event": "checkpoint_completed"}
    answers = []
    for changed_to in ([completed], [], [records[place]] * 2):
        false_records = [*records[:place], *changed_to, *records[place + 1 :]]
        answers.append(is_accepted(false_records, tmp_path))
        assert answers[-1] == accepts(false_records)
    assert answers[1:] == [False, False]


def test_a_torn_checkpoint_does_not_count() -> None:
    """However much of the second one has been written, the first one is read; and the third one replaces the first."""
    files = checkpoint_files()
    snapshots = {task: (n, {("k", n): {"sum": n}}, {0: 1}) for n, task in enumerate(("a0", "b0"))}
    store = FileCheckpoints(files)
    assert store.latest() == (0, {})
    store.save(4, snapshots)
    FileCheckpoints(files).save(5, snapshots)
    newest = max(files, key=lambda file: FileCheckpoints([file, file]).latest()[0])
    whole = os.pread(newest.fileno(), 1 << 16, 0)
    for length in range(len(whole) + 1):
        newest.truncate(0)
        os.pwrite(newest.fileno(), whole[:length], 0)
        assert FileCheckpoints(files).latest() == (5 if length == len(whole) else 4, snapshots)
    newest.truncate(len(whole) - 1)
    FileCheckpoints(files).save(6, snapshots)
    assert FileCheckpoints(files).latest()[0] == 6
    assert FileCheckpoints(files[::-1]).latest()[0] == 6
    for file in files:
        file.close()


def test_a_restart_does_less_with_checkpoints() -> None:
    """The sources go on from where they were."""
    module = readings()
    made = []
    for interval in (0, 50 * MICROSECOND):
        crash = [Fault("crash", 700 * MICROSECOND, (f"tm-{n}",), 300 * MICROSECOND) for n in (1, 2, 3)]
        outcome = Simulation(module.job(), seed=2, faults_given=crash, checkpoint_interval=interval).run(100_000)
        assert outcome.results == module.expected()
        assert outcome.attempts > 1
        made.append(sum(e[2] == "record_produced" for e in outcome.entries))
    assert made[1] < made[0]


def changed(draw: random.Random, records: Records) -> Records:
    """A copy with one random change: an event left out, doubled or moved, or a number that is another one."""
    places = [i for i, r in enumerate(records) if i and not r["event"].startswith(("record_", "deployed"))]
    if draw.random() < 0.2:
        places = [i for i, r in enumerate(records) if r["event"].startswith("record_")]
    at = draw.choice(places)
    if (copy := changed_logs.rearranged(draw, records, at, partial(draw.choice, DISTANCES))) is not None:
        return copy
    record = records[at]
    args = dict(record.get("args", {}))
    if "checkpoint" in args:
        args["checkpoint"] += draw.choice((-1, 1))
    elif "channel" in args:
        args["channel"] = draw.choice([r["args"]["channel"] for r in records if "channel" in r.get("args", {})])
    else:
        return [*records[:at], *records[at + 1 :]]
    return changed_logs.with_args(records, at, args)


def both(seed: int, folder: Path, changes: int) -> tuple[int, int]:
    """Both judges give one answer for changed copies of a run; how many they accept and reject."""
    draw = random.Random(seed)
    judges = partial(is_accepted, folder=folder), accepts
    return changed_logs.compared(records_of(outcome_of(seed)[1]), partial(changed, draw), changes, judges, seed)


@pytest.mark.parametrize(("seeds", "least"), share([((4,), 0), ((1, 2, 4), 2)], 2))
def test_the_independent_judge_agrees(tmp_path: Path, seeds: Sequence[int], least: int) -> None:
    """On changed copies, of which some are runs, too."""
    counts = [both(seed, tmp_path, 8) for seed in seeds]
    assert min(changed_logs.total(counts)) > least


@pytest.mark.long
def test_the_independent_judge_agrees_on_many_runs(tmp_path: Path) -> None:
    """On two thousand copies."""
    counts = [both(seed, tmp_path, 20) for seed in range(100)]
    assert min(changed_logs.total(counts)) > 100


VIOLATED = {
    "unaligned": r"\d+ buffers of .+ were sent before a snapshot, and \d+ received before one",
    "held-forgotten": r".+ took its snapshot while it held \d+ buffers, which are in none",
    "barrier-forwarded-early": r"\d+ buffers of .+ were sent before a snapshot, and \d+ received before one",
    "completes-partly": r"checkpoint \d+: not all subtasks have acknowledged it",
    "restores-older": r"the job goes on from checkpoint \d+; the latest completed one is checkpoint \d+",
    "forgets-checkpoints": r"the job goes on from no checkpoint; the latest completed one is checkpoint \d+",
    "completes-before-stored": r"the job goes on from no checkpoint; the latest completed one is checkpoint \d+",
    "completes-after-failure": r"checkpoint \d+ is pending: it is aborted before",
}
"""What the first rejected log of a variant violates."""
RARE = ("restores-older", "completes-partly", "held-forgotten", "completes-before-stored", "barrier-forwarded-early")
"""Variants whose tests take the longest: they are in the long tests."""


@pytest.mark.parametrize(
    "variant", [pytest.param(v, marks=[pytest.mark.long] * (v in RARE)) for v in (*SUBTASKS, *MASTERS)]
)
def test_variants_are_rejected(variant: str, tmp_path: Path) -> None:
    """The log of one of the first runs shows the rule that is broken; the second judge agrees."""
    for seed in range(30):
        records = records_of(outcome_of(seed, variant)[1])
        answers = changed_logs.verdicts(changed_logs.numbered(records), tmp_path, BINDING, "checkpoints")
        if found := [v for v in answers if v.answer != "accepted"]:
            assert re.fullmatch(VIOLATED[variant], found[0].reason or ""), found[0].reason
            assert found[0].answer == "rejected"
            assert not accepts(records)
            return
    pytest.fail(f"30 runs of {variant} were accepted")


def test_jobs_that_cannot_have_checkpoints_are_refused() -> None:
    """With the operators."""
    with pytest.raises(JobError, match="from sales to valid is stored"):
        expect_streaming(regions(example("sales").job()))
    parts = Job("parts")
    for name in "ab":
        parts.source(name, range(3)).process(f"p_{name}", lambda _, n: [n]).collect(f"all_{name}")
    with pytest.raises(JobError, match="there is nothing between a and b"):
        expect_streaming(regions(parts))
    pipelines = Job("pipelines", regions_of_subtasks=True)
    pipelines.source("a", range(3), 2).rescale().process("b", lambda _, n: [n], 2)
    with pytest.raises(JobError, match=r"between a_0 and a_1: .*; leave out regions_of_subtasks, or leave out the"):
        expect_streaming(regions(pipelines))


def test_a_run_on_processes_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    """The JobMaster is killed after a checkpoint has completed, and then a TaskExecutor."""
    file, logs = tmp_path / "slow.py", tmp_path / "logs"
    text = (EXAMPLES / "readings.py").read_text().replace("lambda n: (n % SENSORS, n)", "slowly")
    text = text.replace("range(400)", "range(4_000)")
    file.write_text(f"{text}\n\ndef slowly(n):\n    import time\n    time.sleep(2e-4)\n    return n % SENSORS, n\n")
    logs.mkdir()
    found = run(file, logs, records=16, buffers=2, checkpoints=20.0, kills=("jobmaster@40", "tm-1@1000"))
    assert not found["wrong"]
    assert found["attempts"] > 2
    began = [json.loads(line) for line in (logs / "jobmaster.1.ndjson").read_text().splitlines()]
    assert min(r["args"]["checkpoint"] for r in began if r["event"] == "checkpoint_restored") > 0
    assert {v.answer for v in judge(BINDING.plan(logs, None), "checkpoints")} == {"accepted"}


@pytest.mark.long
def test_every_event_of_a_followed_job_is_matched(tmp_path: Path) -> None:
    """Also two snapshots of one subtask with the same number, of different attempts."""
    repeated = 0
    for seed in range(6):
        outcome, log = outcome_of(seed)[1], tmp_path / f"{seed}.ndjson"
        log.write_text("".join(lines(outcome.entries)))
        plan = BINDING.plan(log, None)
        repeated += len(plan.events) - len({e.key for e in plan.events})
        assert [v.matched for v in judge(plan, "checkpoints")] == [v.read for v in judge(plan, "checkpoints")]
    assert repeated
