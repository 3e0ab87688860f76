"""Correct runs are never rejected, however their logs were disturbed on the way: accepted, or inconclusive. Where nothing was
taken away the verdict is that on the undisturbed run.

`tools/disturb_flink_runs.py` says which disturbances there are. Two are left out because no logging does them: lines of one
thread in another order (a thread writes one line after the other), and records of the credit agent in another order (it
numbers and writes them under one lock). Lines of two threads change places only where neither could have waited for the
other.
"""

from __future__ import annotations

import shutil
from datetime import timedelta
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shares import share
from streamproof.conformance.validation import validate_paths

UNREAD = "json-layout"
"""A run in a layout that is not read: no verdict at all."""

SMALL = ("logs/f-clean-batch-1", "logs/a-taskfail-1", "logs/c-disjoint-1", "logs/m-job-failed-1", "logs/g-jmloss-1")
LIVE = (
    "adaptive-mixed", "adaptive-taskfail", "agent-cancel", "ckpt-expo", "ha-batch-recovery", "hybrid-full2", "region-cycle",
    "rotation-lost", "savepoint", "speculative2",
)  # fmt: skip


@pytest.fixture(scope="session")
def tool(tool_module: Any) -> ModuleType:
    """The disturbing tool, which is a script."""
    module: ModuleType = tool_module("disturb_flink_runs")
    return module


@cache
def undisturbed(run: Path) -> list[str]:
    """The verdicts on a run as it was recorded."""
    return sorted(v.answer for v in validate_paths([run]))


def wrong(tool: ModuleType, runs: list[Path], copies: int, seed: int) -> list[str]:
    """What was rejected of so many disturbed copies, with what had been done to them, and what got another verdict although
    all that was recorded is still there. Where too few are accepted the disturbances say nothing."""
    where = {run.name: run for run in runs}
    found = list(tool.outcomes(runs, copies, seed))
    bad = [o for o in found if o.rejected or (o.harmless and sorted(o.verdicts) != undisturbed(where[o.run]))]
    accepted = sum("accepted" in o.verdicts for o in found)
    said = [f"{o.run}, seed {o.seed}: {o.done}: {o.verdicts} {o.reasons}" for o in bad]
    return said if 3 * accepted >= copies else [*said, f"{accepted} of {copies} copies are accepted"]


@pytest.mark.parametrize("part", share(range(0, 100, 10), 10))
def test_a_hundred_disturbed_copies_of_small_runs_are_not_rejected(
    part: int, tool: ModuleType, flink_logs: Path, flink_live: Path
) -> None:
    """Ten copies each time, of runs that are judged in a fraction of a second; each part begins with another run."""
    live, small = [flink_live / name for name in LIVE], [flink_logs.parent / name for name in SMALL]
    runs = [*chain.from_iterable(zip(live[::2], live[1::2], small, strict=True))]
    turn = part % len(runs)
    assert wrong(tool, runs[turn:] + runs[:turn], 10, 100 * part) == []


PARTIAL = (
    "live/adaptive-mixed", "live/adaptive-taskfail", "more/adsched", "versions/adaptive-head", "live/ha-batch-recovery",
    "versions/ha-second-jm", "live/speculative2", "more/spec", "live/savepoint", "more/info2", "live/ckpt-expo",
    "more/global", "versions/v120-ckfail", "versions/v120-lostpart", "versions/refused-job", "logs/a-taskfail-1",
)  # fmt: skip
"""Adaptive and rescaled jobs, high availability, speculation, sessions."""


@pytest.mark.parametrize(
    ("first", "copies"),
    [*share([(70_000 + n, 4) for n in range(0, 24, 4)], 3),
     *(pytest.param(80_000 + n, 200, marks=pytest.mark.long) for n in range(0, 2000, 200))],
)  # fmt: skip
def test_copies_that_lack_a_beginning_a_middle_or_a_process_are_not_rejected(
    first: int,
    copies: int,
    tool: ModuleType,
    flink_logs: Path,
    flink_more: Path,
    flink_live: Path,
    flink_versions: Path,
) -> None:
    """By no model; whatever else was done to them."""
    folders = {"logs": flink_logs, "more": flink_more, "live": flink_live, "versions": flink_versions}
    runs = [folders[kind] / name for kind, _, name in (run.partition("/") for run in PARTIAL)]
    turn = first % len(runs)
    found = list(tool.outcomes(runs[turn:] + runs[:turn], copies, first, "all", tool.PARTIAL))
    assert [(o.run, o.seed, o.done, o.reasons) for o in found if o.rejected] == []
    assert any("accepted" in o.verdicts for o in found)


@pytest.mark.parametrize("kind", ["silence", "search", "merge"])
@pytest.mark.parametrize(
    ("first", "copies"),
    [(90_000, 4), *(pytest.param(91_000 + n, 80, marks=pytest.mark.long) for n in range(0, 240, 80))],
)
def test_filtered_and_merged_copies_are_not_rejected(
    first: int,
    copies: int,
    kind: str,
    tool: ModuleType,
    flink_logs: Path,
    flink_more: Path,
    flink_live: Path,
    flink_versions: Path,
) -> None:
    """By no model: a logger is off, only lines that name a job are left, files are joined in any order."""
    folders = {"logs": flink_logs, "more": flink_more, "live": flink_live, "versions": flink_versions}
    runs = [folders[place] / name for place, _, name in (run.partition("/") for run in PARTIAL)]
    turn = first % len(runs)
    found = list(tool.outcomes(runs[turn:] + runs[:turn], copies, first, "all", [getattr(tool, kind)]))
    assert [(o.run, o.seed, o.done, o.reasons) for o in found if o.rejected] == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_disturbed_copies_of_all_runs_are_not_rejected(
    part: int,
    tool: ModuleType,
    flink_logs: Path,
    flink_more: Path,
    flink_credit: Path,
    flink_agent: Path,
    flink_live: Path,
) -> None:
    """A hundred copies each time, of every recorded run."""
    folders = (flink_logs, flink_more, flink_credit, flink_agent, flink_live)
    runs = [run for folder in folders for run in sorted(folder.iterdir()) if run.name != UNREAD]
    # Parts begin at different runs, so that all come up equally often.
    turn = part * 100 % len(runs)
    assert wrong(tool, runs[turn:] + runs[:turn], 100, 10_000 + 100 * part) == []


def changed(run: Path, folder: Path) -> Path:
    """A copy of a run to be changed."""
    return Path(shutil.copytree(run, folder / run.name))


def verdicts(run: Path) -> list[str]:
    """The verdicts of the jobs or channels of a run, sorted."""
    return sorted(v.answer for v in validate_paths([run]))


def test_an_older_part_of_a_jobmanagers_log_that_ends_within_a_line_leaves_the_job_open(
    flink_logs: Path, tmp_path: Path
) -> None:
    """What is missing between two parts is no mistake of Flink's; the reason says where the log has its gap."""
    run = changed(flink_logs / "c-disjoint-1", tmp_path)
    lines = (run / "jobmanager.log").read_bytes().splitlines(keepends=True)
    middle = next(n for n, line in enumerate(lines) if b"to SCHEDULED" in line) + 3
    (run / "jobmanager.log.1").write_bytes(b"".join(lines[:middle])[:-20])
    (run / "jobmanager.log").write_bytes(b"".join(lines[middle + 40 :]))
    (verdict,) = validate_paths([run])
    assert verdict.answer == "inconclusive"
    assert f"a part of the JobManager's rotated log is cut (line {middle} of jobmanager.log.1)" in (
        verdict.reason or ""
    )


def test_attempts_within_a_gap_of_a_taskmanagers_log_are_not_missed(flink_logs: Path, tmp_path: Path) -> None:
    """The lines of an attempt are all in the part of a rotated log that is missing; its neighbours have theirs."""
    run = changed(flink_logs / "b-delfile-1", tmp_path)
    lines = (run / "taskmanager-1.log").read_bytes().splitlines(keepends=True)
    gone = [n for n, line in enumerate(lines) if b"D -> D-sink: Writer (1/2)#0" in line]
    (run / "taskmanager-1.log.1").write_bytes(b"".join(lines[: gone[0]])[:-20])
    (run / "taskmanager-1.log").write_bytes(b"".join(lines[gone[-1] + 1 :]))
    assert verdicts(run) == ["accepted"]
    # In one file the same gap is a lie.
    (run / "taskmanager-1.log").write_bytes(b"".join([*lines[: gone[0]], *lines[gone[-1] + 1 :]]))
    (run / "taskmanager-1.log.1").unlink()
    assert verdicts(run) == ["rejected"]


def test_a_clock_that_no_message_bounds_is_not_compared(flink_logs: Path, tmp_path: Path, tool: ModuleType) -> None:
    """The JobManager's log ends before the first task of a TaskManager whose clock is behind."""
    run = changed(flink_logs / "m-job-failed-1", tmp_path)
    master, worker = run / "jobmanager.log", run / "taskmanager-1.log"
    first = worker.read_bytes().split(b"Received task ")[1].partition(b"#")[0]
    head = master.read_bytes().partition(b"Deploying " + first)[0]
    head = head[: head.rindex(b"%s" % first)]
    master.write_bytes(head[: head.rindex(b"\n") + 1])
    late = (tool.moved(record, timedelta(seconds=-5)) for record in tool.records(worker.read_bytes()))
    worker.write_bytes(b"".join(late))
    assert "rejected" not in verdicts(run)


def test_the_clock_of_a_taskmanager_without_tasks_is_not_compared(
    flink_live: Path, tmp_path: Path, tool: ModuleType
) -> None:
    """A collector has dated the JobManager's log 55 s later; it ends before the slots of that TaskManager are requested."""
    run = changed(flink_live / "speculative2", tmp_path)
    (run / "taskmanager-2.log").unlink()
    master = run / "jobmanager.log"
    parts = [tool.moved(record, timedelta(seconds=55)) for record in tool.records(master.read_bytes()[:35_026])]
    master.write_bytes(b"".join(parts))
    assert {v.answer for v in validate_paths([run], model="slot_pool")} <= {"accepted", "inconclusive"}


@pytest.mark.parametrize("name", share(["x-agent-credit-1", "n-agent"], 2))
def test_one_end_of_a_channel_says_nothing_of_it(name: str, flink_logs: Path, flink_live: Path, tmp_path: Path) -> None:
    """A process's trace is missing, in two files, or without its first half."""
    source = flink_logs / name if name.startswith("x") else flink_live / name.removeprefix("n-")
    run = changed(source, tmp_path)
    trace = next(
        f
        for f in sorted(run.iterdir())
        if ("trace" in f.name and b"addCredit" in f.read_bytes()) or b'"p.credit_add"' in f.read_bytes()
    )
    whole = verdicts(run)
    lines = trace.read_bytes().splitlines(keepends=True)
    stem, _, ending = trace.name.partition(".")
    later = run / f"{stem}-later.{ending}"
    trace.write_bytes(b"".join(lines[: len(lines) // 2]))
    later.write_bytes(b"".join(lines[len(lines) // 2 :]))
    assert verdicts(run) == whole
    trace.unlink()
    assert "rejected" not in verdicts(run)
    later.unlink()
    assert set(verdicts(run)) == {"accepted", "inconclusive"}
