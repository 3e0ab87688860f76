"""Unaligned checkpoints: buffers that barriers overtake are part of the checkpoint; two judges say so of the logs."""

from __future__ import annotations

import random
import re
from functools import partial
from pathlib import Path

import pytest

import changed_logs
from changed_logs import Records
from runtime_checkpoint_judge import accepts
from runtime_mix import crashing, rejections
from runtime_processes import run
from runtime_runs import EXAMPLES, example
from streamproof.conformance import judge
from streamproof_runtime import JobError
from streamproof_runtime.command import Problem, Simulated
from streamproof_runtime.jobmaster.checkpoints import expect_streaming
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.simulator.simulation import Outcome
from streamproof_runtime.subtasks.barriers import Snapshot
from streamproof_runtime.subtasks.unaligned import redistributed
from streamproof_runtime.variants.checkpoint_variants import UNALIGNED
from streamproof_specs.checkpoints.runtime.binding import BINDING

FOLLOWED = (
    "checkpoint_",
    "region_",
    "snapshot_",
    "job_",
    "record_",
    "buffers_flushed",
    "buffers_re",
    "buffers_lo",
    "deployed",
)


def records_of(outcome: Outcome) -> Records:
    """The events that checkpoints are about."""
    return [r for r in changed_logs.records_of(outcome) if r["event"].startswith(FOLLOWED)]


def is_accepted(records: Records, folder: Path) -> bool:
    """Whether the machine of checkpoints accepts a log."""
    return changed_logs.is_accepted(records, folder, BINDING, "checkpoints")


def check(seed: int, folder: Path, among: tuple[str, ...] | None = None) -> int:
    """A run is right and accepted by all machines, or these; the number of buffers that were sent again."""
    outcome, wrong = crashing(seed, unaligned=True)
    assert not wrong, (seed, wrong)
    assert not [*rejections(outcome, folder, among)], seed
    assert accepts(records_of(outcome)), seed
    return sum(len(entry[3]["channels"]) for entry in outcome.entries if entry[2] == "buffers_replayed")


def test_a_run_goes_on_with_the_buffers_under_way(tmp_path: Path) -> None:
    """Its results are right, and its log is accepted."""
    assert check(1, tmp_path, ("checkpoints",)) > 10


@pytest.mark.long
def test_many_runs_go_on_with_the_buffers_under_way(tmp_path: Path) -> None:
    """Hundred of them, accepted by every machine."""
    assert sum(check(seed, tmp_path) for seed in range(100)) > 1_000


@pytest.mark.parametrize(
    "variant", [pytest.param(v, marks=[pytest.mark.long] * (v == "in-flight-forgotten")) for v in UNALIGNED]
)
def test_variants_are_rejected(variant: str, tmp_path: Path) -> None:
    """Buffers are lost, and the log says which."""
    outcome, wrong = crashing(0, variant, unaligned=True)
    assert wrong
    records = records_of(outcome)
    (found, *_) = changed_logs.verdicts(changed_logs.numbered(records), tmp_path, BINDING, "checkpoints")
    assert found.answer == "rejected"
    assert re.fullmatch(
        r"\d+ buffers of .+ were sent before a snapshot, and \d+ received before one or logged", found.reason or ""
    )
    assert not accepts(records)


def changed(draw: random.Random, records: Records) -> Records:
    """A copy with one random change of an event about buffers or snapshots."""
    at = draw.choice([n for n, r in enumerate(records) if r["event"].startswith(("buffers_re", "buffers_lo", "snap"))])
    if (copy := changed_logs.rearranged(draw, records, at, partial(draw.choice, (-8, -2, -1, 1, 2, 8)))) is not None:
        return copy
    args = dict(records[at]["args"])
    if args.get("channels"):
        args |= {name: args[name][: -draw.randint(1, 2)] for name in ("channels", "contents")}
    else:
        args["checkpoint"] = args.get("checkpoint", 0) + draw.choice((-1, 1))
    return changed_logs.with_args(records, at, args)


@pytest.mark.long
def test_the_independent_judge_agrees(tmp_path: Path) -> None:
    """On changed copies."""
    counts = []
    for seed in range(20):
        records = records_of(crashing(seed, unaligned=True)[0])
        judges = partial(is_accepted, folder=tmp_path), accepts
        counts.append(changed_logs.compared(records, partial(changed, random.Random(seed)), 8, judges, seed))
    assert min(changed_logs.total(counts)) > 10


def test_a_subtask_without_a_snapshot_begins_anew() -> None:
    """As a checkpoint may lack it that completes too early: what others have logged for it is not sent again."""
    (region,) = regions(example("readings").job())
    channel = next(iter(region.graph.channels.values()))
    snapshot: Snapshot = (0, {}, {}, {channel.name: [(0, b"")]})
    assert redistributed({channel.target: snapshot}, region.graph) == {channel.target: (0, {}, {}, {})}
    assert redistributed({channel.source: snapshot}, region.graph) == {channel.source: snapshot}


def test_a_loop_is_refused() -> None:
    """With its head."""
    with pytest.raises(JobError, match=r"head of loop .*: barriers overtake no feedback"):
        expect_streaming(regions(example("collatz").job()), unaligned=True)


def test_without_checkpoints_nothing_is_unaligned() -> None:
    """The option alone is refused."""
    with pytest.raises(Problem, match="add --checkpoint-interval"):
        Simulated(EXAMPLES / "readings.py", level="none", variant=None, executors=2, slots=2, unaligned=True)


@pytest.mark.long
def test_a_run_on_processes_goes_on(tmp_path: Path) -> None:
    """A TaskExecutor is killed; the result is right, and the logs are accepted."""
    logs = tmp_path / "logs"
    logs.mkdir()
    more = {"records": 4, "buffers": 2, "checkpoints": 5.0, "unaligned": True}
    found = run(EXAMPLES / "readings.py", logs, kills=("tm-1@300",), **more)
    assert not found["wrong"]
    assert found["attempts"] > 1
    assert {v.answer for v in judge(BINDING.plan(logs, None), "checkpoints")} == {"accepted"}
