"""Checkpoints of jobs with loops: the log of feedback is complete and replayed, and its logs are judged by three machines."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Container
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import changed_logs
from changed_logs import Records
from runtime_checkpoint_judge import accepts
from runtime_mix import looping, rejections
from runtime_processes import run
from runtime_runs import EXAMPLES
from streamproof.conformance import RunVerdict, judge
from streamproof_runtime.simulator.simulation import Outcome
from streamproof_runtime.variants.loop_checkpoint_variants import SUBTASKS
from streamproof_specs.checkpoints.runtime import binding, loop_logs

FOLLOWED = (
    *("checkpoint_", "region_", "snapshot_", "job_", "record_", "buffers_flushed", "buffers_logged", "loop_opened"),
    *("barrier_", "deployed", "buffers_replayed"),
)
LOGS, REPLAYS = "buffers_logged", "buffers_replayed"


def records_of(outcome: Outcome) -> Records:
    """The events that checkpoints and feedback are about."""
    return [r for r in changed_logs.records_of(outcome) if r["event"].startswith(FOLLOWED)]


def verdicts(records: Records, folder: Path) -> list[RunVerdict]:
    """What the machine of a feedback channel says of each."""
    return changed_logs.verdicts(changed_logs.numbered(records), folder, loop_logs.BINDING, "loop_checkpoint_counts")


def is_accepted(records: Records, folder: Path) -> bool:
    """Whether the machine of checkpoints accepts a log."""
    return changed_logs.is_accepted(records, folder, binding.BINDING, "checkpoints")


def check(seed: int, folder: Path, among: Container[str] | None = None) -> int:
    """A run is right and accepted by all machines, or these; the number of buffers that were replayed."""
    outcome, wrong = looping(seed)
    assert not wrong, (seed, wrong)
    assert not [*rejections(outcome, folder, among)], seed
    assert accepts(records_of(outcome)), seed
    return sum(len(entry[3]["channels"]) for entry in outcome.entries if entry[2] == REPLAYS)


def test_a_loop_goes_on_from_its_log(tmp_path: Path) -> None:
    """With the records that were on the feedback channels; the machines that follow these accept the run."""
    assert check(35, tmp_path, ("checkpoints", "loop_checkpoint_counts", "cyclic")) > 2


@pytest.mark.long
def test_many_loops_go_on_from_their_logs(tmp_path: Path) -> None:
    """Four hundred of them, in all graphs with a name."""
    assert sum(check(seed, tmp_path) for seed in range(400)) > 100


VIOLATED = {
    "not-replayed": r"0 buffers of .+ are replayed; in the model \d+",
    "replayed-twice": r"\d+ buffers of .+ are replayed; in the model \d+",
    "log-not-stored": r"s.back == 0   because  s.back = \d+",
    "replay-unlogged": r"\d+ buffers of .+ are logged; in the model \d+",
}
"""What the log of a variant violates."""
SHOWN = {"not-replayed": 14, "replayed-twice": 14, "log-not-stored": 1, "replay-unlogged": 35}
"""A run that shows it."""


@pytest.mark.parametrize("variant", SHOWN)
def test_variants_are_rejected(variant: str, tmp_path: Path) -> None:
    """By the machine of the channel, by that of checkpoints, and by the second judge."""
    records = records_of(looping(SHOWN[variant], variant)[0])
    found = [v for v in verdicts(records, tmp_path) if v.answer != "accepted"]
    assert {v.answer for v in found} == {"rejected"}
    assert re.fullmatch(VIOLATED[variant], found[0].reason or "")
    assert not is_accepted(records, tmp_path)
    assert not accepts(records)


def test_without_a_log_of_its_own_a_variant_gets_stuck() -> None:
    """A head that waits for the barrier on its feedback does not see it."""
    assert VIOLATED.keys() | {"aligned"} == SUBTASKS.keys()
    assert any(looping(seed, "aligned")[1] for seed in range(5))


def shortened(event: str) -> Callable[[Records], Records]:
    """Leaves out the last buffer of the first event with any."""

    def change(records: Records) -> Records:
        at = next(n for n, r in enumerate(records) if r["event"] == event and r["args"]["channels"])
        args = records[at]["args"]
        less: dict[str, Any] = {name: args[name][:-1] for name in ("channels", "contents")}
        return changed_logs.with_args(records, at, {**args, **less})

    return change


def without(event: str) -> Callable[[Records], Records]:
    """Leaves out all such events of checkpoints that have completed, or of restarts."""

    def change(records: Records) -> Records:
        completed = {r["args"]["checkpoint"] for r in records if r["event"] == "checkpoint_completed"} | {None}
        return [r for r in records if r["event"] != event or r["args"].get("checkpoint") not in completed]

    return change


@pytest.mark.parametrize("change", [shortened(LOGS), shortened(REPLAYS), without(REPLAYS), without(LOGS)])
def test_a_changed_log_is_noticed(change: Callable[[Records], Records], tmp_path: Path) -> None:
    """By the machine of the channel."""
    records = records_of(looping(35)[0])
    assert {v.answer for v in verdicts(records, tmp_path)} == {"accepted"}
    assert "rejected" in {v.answer for v in verdicts(change(records), tmp_path)}


def test_what_says_nothing_of_loops_is_not_judged(tmp_path: Path) -> None:
    """Without the events of its heads a log of a job with loops is inconclusive."""
    found = verdicts([r for r in records_of(looping(35)[0]) if r["event"] != "loop_opened"], tmp_path)
    assert {v.answer for v in found} == {"inconclusive"}


def changed(draw: random.Random, records: Records) -> Records:
    """A copy with one random change of an event about feedback or barriers."""
    places = [
        n for n, r in enumerate(records) if r["event"].startswith(("buffers_logged", REPLAYS, "barrier_", "snap"))
    ]
    at = draw.choice(places)
    if (copy := changed_logs.rearranged(draw, records, at, partial(draw.choice, (-8, -2, -1, 1, 2, 8)))) is not None:
        return copy
    args = dict(records[at]["args"])
    if args.get("channels"):
        args["contents"] = [f"0{content}" for content in args["contents"]]
    else:
        args["checkpoint"] = args.get("checkpoint", 0) + draw.choice((-1, 1))
    return changed_logs.with_args(records, at, args)


@pytest.mark.long
def test_the_independent_judge_agrees(tmp_path: Path) -> None:
    """With the machine of checkpoints, on changed copies."""
    counts = []
    for seed in range(60):
        records = records_of(looping(seed)[0])
        judges = partial(is_accepted, folder=tmp_path), accepts
        counts.append(changed_logs.compared(records, partial(changed, random.Random(seed)), 8, judges, seed))
    assert min(changed_logs.total(counts)) > 20


@pytest.mark.long
def test_a_loop_on_processes_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    """A TaskExecutor is killed while records circulate; every machine accepts the logs."""
    logs = tmp_path / "logs"
    logs.mkdir()
    found = run(EXAMPLES / "doubling.py", logs, records=1, buffers=2, checkpoints=5.0, kills=("tm-1@300",))
    assert not found["wrong"]
    assert found["attempts"] > 1
    for of, model in ((binding.BINDING, "checkpoints"), (loop_logs.BINDING, "loop_checkpoint_counts")):
        assert {v.answer for v in judge(of.plan(logs, None), model)} == {"accepted"}
