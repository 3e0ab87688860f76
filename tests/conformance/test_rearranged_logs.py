"""Correct runs in other layouts, rotated or copied as logging does it, keep their verdict; lies in such logs are found."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from streamproof.conformance.validate import validate_paths

HEAD = re.compile(rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})")
BEFORE_LOGGER = re.compile(rb"(,\d{3} \w+ +)(org\.apache\S+ +)\[\] - ", re.MULTILINE)
TRACE = b"4bf92f3577b34da6a3ce929d0e0e4736"

Edit = Callable[[bytes], bytes]


@pytest.fixture
def run(flink_logs: Path, tmp_path: Path) -> Path:
    """A recorded run that a test may change."""
    return shutil.copytree(flink_logs / "b-lostpart-1", tmp_path / "b-lostpart-1")


def verdicts(run: Path) -> list[str]:
    """The verdicts of the jobs of a run."""
    return sorted(r["verdict"] for r in validate_paths([run]))


def edit(run: Path, change: Edit) -> None:
    """Changes every log."""
    for log in run.glob("*.log*"):
        log.write_bytes(change(log.read_bytes()))


def timed(change: Callable[[datetime, bytes], bytes]) -> Edit:
    """Writes the times of heads in another form, given the second and the milliseconds."""

    def changed(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        for at, line in enumerate(lines):
            head = HEAD.match(line)
            if head:
                lines[at] = change(datetime.fromisoformat(head[1].decode()), head[2]) + line[head.end() :]
        return b"".join(lines)

    return changed


def without_date(hours: float = 0) -> Edit:
    """Times alone, so many hours later."""
    return timed(lambda at, ms: (at + timedelta(hours=hours)).strftime("%H:%M:%S").encode() + b"," + ms)


TO_MIDNIGHT = 20.678  # the failure comes shortly before midnight, and what follows it after
LAYOUTS = {
    "no date": without_date(),
    "no date, over midnight": without_date(TO_MIDNIGHT),
    "no fraction": timed(lambda at, ms: at.isoformat(sep=" ").encode()),
    "neither": timed(lambda at, ms: at.strftime("%H:%M:%S").encode()),
}


@pytest.mark.parametrize(("process", "kept"), [("taskmanager-1", 0.6), ("taskmanager-2", 0.3), ("taskmanager-2", 0.8)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_taskmanagers_log_that_ends_early_is_cut_in_every_layout(
    layout: str, process: str, kept: float, run: Path
) -> None:
    """What a log would have said after its end is no contradiction, however its times are written."""
    log = run / f"{process}.log"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: int(kept * len(lines))]))
    edit(run, LAYOUTS[layout])
    assert verdicts(run) == ["accepted"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("gone", [b"Received task ", b"to FINISHED", b"Registered "])
def test_a_line_that_is_missing_in_a_taskmanagers_log_is_missed_in_every_layout(
    layout: str, gone: bytes, run: Path
) -> None:
    """The log goes on after the line, so it is not cut."""
    log = run / "taskmanager-1.log"
    data = log.read_bytes()
    at = data.index(gone)
    log.write_bytes(data[: data.rindex(b"\n", 0, at) + 1] + data[data.index(b"\n", at) + 1 :])
    edit(run, LAYOUTS[layout])
    assert verdicts(run) == ["rejected"]


@pytest.mark.parametrize("place", [rb"\1[%s] \2- ", rb"\1\2[%s] - ", rb"\1\g<2>%s - ", rb"\1\2[] - [%s] "])
def test_an_identifier_in_the_context_that_is_no_jobs_is_not_taken_for_one(place: bytes, run: Path) -> None:
    """A trace identifier has the form of a job's."""
    edit(run, lambda data: BEFORE_LOGGER.sub(place % TRACE, data))
    assert verdicts(run) == ["accepted"]


def test_the_execution_graph_says_which_job_not_the_context(flink_live: Path, tmp_path: Path) -> None:
    """A thread keeps the context of another job of the session."""
    run = shutil.copytree(flink_live / "adaptive-mixed", tmp_path / "run")
    before = verdicts(run)
    jobs = re.findall(rb"\(([0-9a-f]{32})\) switched from state CREATED", (run / "jobmanager.log").read_bytes())
    assert len(before) > 1
    edit(run, lambda data: BEFORE_LOGGER.sub(rb"\1\2[%s] - " % jobs[0], data))
    assert verdicts(run) == before
