"""Slots in recorded runs of Flink: correct runs are never rejected, however their logs were disturbed; lies about slots are
rejected at their line."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from one_lie_of_each_kind import outcomes
from shares import share
from streamproof.conformance.validation import validate_paths
from tampering import slot_lies

OPEN = {"region-cycle", "rotation-lost"}
"""A run without slots, and one whose beginning is missing."""
SMALL = ("a-taskfail-1", "c-disjoint-1", "e-slots-1", "f-clean-batch-1", "g-jmloss-1", "m-job-failed-1")
LIVE = (
    "adaptive-mixed", "adaptive-taskfail", "agent-cancel", "ckpt-expo", "ha-batch-recovery", "hybrid-full2", "rotation-lost",
    "savepoint", "speculative2",
)  # fmt: skip
TAMPERED = {
    "logs": ("b-lostpart-1", "b117-lostpart-1", "c-disjoint-1", "e-slots-1", "g-jmloss-1"),
    "live": ("ckpt-expo", "debug-stream-kill", "tm12-kill"),
}


@pytest.fixture(scope="session")
def disturbing(tool_module: Any) -> ModuleType:
    """The disturbing tool, which is a script."""
    module: ModuleType = tool_module("disturb_flink_runs")
    return module


def answers(*paths: Path) -> dict[str, set[str]]:
    """The verdicts on slots by run."""
    found = defaultdict(set)
    for verdict in validate_paths(paths, model="slot_pool"):
        found[verdict.run].add(verdict.answer)
    return dict(found)


@pytest.mark.parametrize("part", share(range(6), 6))
def test_every_recorded_run_is_accepted(part: int, flink_logs: Path, flink_more: Path, flink_live: Path) -> None:
    """Under every scheduler, in Flink 1.17 and 2.3, at INFO and DEBUG, after losses of either kind of process."""
    runs = sorted(run for folder in (flink_logs, flink_more, flink_live) for run in folder.iterdir())[part::6]
    found = answers(*runs)
    assert len(found) == len(runs)
    assert {run for run, verdicts in found.items() if verdicts != {"accepted"}} <= OPEN
    assert not any("rejected" in verdicts for verdicts in found.values())


@pytest.mark.long
@pytest.mark.parametrize("part", share(range(8), 8))
def test_disturbed_copies_are_not_rejected(
    part: int, disturbing: ModuleType, flink_logs: Path, flink_more: Path, flink_live: Path
) -> None:
    """Twelve copies each time; where nothing was taken away the verdict does not change."""
    runs = [flink_logs / name for name in SMALL] + [flink_live / name for name in LIVE]
    runs += [flink_more / name for name in ("adbatch", "hybrid", "sigstop", "spec", "stream")]
    found = list(disturbing.outcomes(runs[part * 2 :] + runs[: part * 2], 12, 1000 * part, "slot_pool"))
    bad = [o for o in found if o.rejected or (o.harmless and o.run not in OPEN and set(o.verdicts) != {"accepted"})]
    assert [(o.run, o.seed, o.done, o.verdicts, o.reasons) for o in bad] == []
    assert sum("accepted" in o.verdicts for o in found) > 4


@pytest.mark.parametrize(
    ("folder", "name"), share([(folder, name) for folder, names in TAMPERED.items() for name in names], 8, first=3)
)
def test_lies_about_slots_are_rejected_at_the_line(folder: str, name: str, flink_logs: Path, flink_live: Path) -> None:
    """One edit of each kind that fits the run."""
    run = (flink_logs if folder == "logs" else flink_live) / name
    found = outcomes(slot_lies, run)
    assert len(found) > 10
    assert [(o.kind, o.what, o.place, o.expected, o.message) for o in found if not o.hit] == []


@pytest.mark.long
def test_every_lie_about_slots_is_rejected_at_its_line(flink_logs: Path, flink_live: Path) -> None:
    """All edits at all places. A slot that is dropped twice may have been offered again by a TaskManager without a log."""
    runs = [flink_logs / name for name in TAMPERED["logs"]] + [flink_live / name for name in TAMPERED["live"]]
    missed = []
    for run in runs:
        for edit in slot_lies.edits(run):
            found = slot_lies.outcome(run, edit)
            if not found.hit and not (edit.kind == "released twice" and found.verdict == "accepted"):
                missed.append((run.name, edit.kind, edit.what, found.place, found.message))
    assert missed == []


def changed(source: Path, folder: Path, names: str, pattern: bytes, new: bytes) -> Path:
    """A copy of a run with a pattern replaced in some logs."""
    run = folder / source.name
    run.mkdir()
    for file in source.iterdir():
        data = file.read_bytes()
        (run / file.name).write_bytes(re.sub(pattern, new, data) if file.match(names) else data)
    return run


@pytest.mark.parametrize("gone", ["taskmanager-1.log", "taskmanager-*.log", "jobmanager.log"])
def test_a_process_without_a_log_is_not_judged(gone: str, flink_logs: Path, tmp_path: Path) -> None:
    """The slots are followed as far as the other logs tell; without a JobManager's log the job is left open."""
    run = changed(flink_logs / "b-lostpart-1", tmp_path, gone, b"(?s).*", b"")
    for log in run.glob(gone):
        log.unlink()
    assert answers(run)["b-lostpart-1"] == {"inconclusive" if gone.startswith("job") else "accepted"}


def test_a_sample_of_the_lines_at_debug_is_no_evidence(flink_logs: Path, tmp_path: Path) -> None:
    """Every second line of the slot pool is missing."""
    run = changed(
        flink_logs / "b-lostpart-1",
        tmp_path,
        "jobmanager.log",
        rb"(?m)^[^\n]*DEBUG [^\n]*slotpool[^\n]*\n([^\n]*DEBUG [^\n]*slotpool[^\n]*\n)",
        rb"\1",
    )
    assert answers(run)["b-lostpart-1"] == {"inconclusive"}


def test_times_without_dates_may_go_over_midnight(flink_more: Path, tmp_path: Path) -> None:
    """The run lasts a few seconds, of which some are after midnight."""
    for source in (flink_more / "adbatch").glob("*.log"):
        moved = re.sub(
            r"(?m)^\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d)",
            lambda m: f"{datetime.fromisoformat('2026-01-01 ' + m[1]) + timedelta(seconds=46_326):%H:%M:%S}",
            source.read_text(),
        )
        (tmp_path / source.name).write_text(moved)
    assert any("\n00:00:0" in log.read_text() for log in tmp_path.glob("*.log"))
    assert list(answers(tmp_path).values()) == [{"accepted"}]


def test_a_slot_with_a_task_is_freed_in_two_lines(flink_live: Path, tmp_path: Path) -> None:
    """The first one fails the task, the second one follows when it has left; without the failure it is a lie."""
    source = flink_live / "ckpt-expo"
    log = (source / "taskmanager-1.log").read_text()
    task = re.search(r"Received task (.*?)#0 \((\w+)\), deploy into slot with allocation id (\w+)\.", log)
    assert task is not None
    received = next(line for line in log.splitlines() if task[0] in line)
    free = next(line for line in log.splitlines() if "Free slot TaskSlot" in line and task[3] in line)
    at, name = received[:23], f"{task[1]}#0 ({task[2]})"
    failed = f"{at} INFO  org.apache.flink.runtime.taskmanager.Task [] - Attempting to fail task externally {name}."
    head, _, rest = log.partition(received + "\n")
    until, final, _ = rest.partition(next(s for s in rest.splitlines() if "Un-registering" in s and task[2] in s))
    first, second = at + free[23:], (at + free[23:]).replace("state:ACTIVE", "state:RELEASING")
    (tmp_path / "jobmanager.log").write_text((source / "jobmanager.log").read_text())
    for lines, expected in (([failed, at + final[23:], second], {"accepted"}), ([until + final], {"rejected"})):
        (tmp_path / "taskmanager-1.log").write_text("\n".join([head + received, first, *lines, ""]))
        (found,) = answers(tmp_path).values()
        assert found == expected
