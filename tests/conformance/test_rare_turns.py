"""Turns that Flink's code allows and no recorded run takes, written into copies of recorded runs: none is rejected."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamproof.conformance.validate import validate_paths

GRAPH = "org.apache.flink.runtime.executiongraph.ExecutionGraph"
MASTER = "org.apache.flink.runtime.jobmaster.JobMaster"


@pytest.fixture
def copied(flink_live: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies a run, to be edited."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(flink_live / name, tmp_path / name))

    return copy


def judged(folder: Path) -> dict[str, Any]:
    """The verdict on the only job of a run."""
    (record,) = validate_paths([folder], model="failover")
    return record


def lines_of(file: Path) -> list[str]:
    """The lines of a log."""
    return file.read_text().splitlines(keepends=True)


# --- a state that cannot be restored

ATTEMPT = r"(\w{32}_\w{32}_\d+_)"


def later_attempts(run: Path) -> None:
    """Makes room for one more restart behind the first one: attempts from 1 on get the next number."""

    def shifted(text: re.Match[str]) -> str:
        number = int(text[2])
        return f"{text[1]}{number + (number > 0)}"

    for file in run.glob("*.log"):
        text = file.read_text()
        for form in (rf"{ATTEMPT}(\d+)", r"(\(\d/\d\)#)(\d+)", r"(attempt #)(\d+)"):
            text = re.sub(form, shifted, text)
        file.write_text(text)


def unrestored(run: Path, answer: str) -> None:
    """Lets restoring the state fail after the first restart; `answer` is what the JobMaster says of the failure,
    nothing if it gives up the job."""
    later_attempts(run)
    lines = lines_of(run / "jobmanager.log")
    at = next(n for n, line in enumerate(lines) if "from state RESTARTING to RUNNING" in line) + 1
    job = re.search(r"- (Job gen \(\w+\))", lines[at - 1])
    assert job
    time, said = lines[at - 1][:23], [f"{MASTER} [] - Trying to recover from a global failure.\n"]
    said += [f"{MASTER} [] - {answer}\n"] if answer else []
    said += [f"{GRAPH} [] - {job[1]} switched from state RUNNING to {'RESTARTING' if answer else 'FAILING'}.\n"]
    reset = [re.search(rf" - (.* \({ATTEMPT})2\) switched from CREATED to SCHEDULED", line) for line in lines]
    for task in (found[1] for found in reset if found):
        said += [
            f"{GRAPH} [] - {task}1) switched from {old} to {new}.\n"
            for old, new in (("CREATED", "CANCELING"), ("CANCELING", "CANCELED"))
        ]
    if answer:
        said.append(f"{GRAPH} [] - {job[1]} switched from state RESTARTING to RUNNING.\n")
    else:
        said.append(f"{GRAPH} [] - {job[1]} switched from state FAILING to FAILED.\n")
    lines[at:] = [f"{time} INFO  {line}" for line in said] + (lines[at:] if answer else [])
    (run / "jobmanager.log").write_text("".join(lines))
    if not answer:
        for file in run.glob("taskmanager-*.log"):
            later = re.compile(rf"{ATTEMPT}[2-9]")
            file.write_text("".join(line for line in lines_of(file) if not later.search(line)))


def test_state_that_cannot_be_restored_is_a_global_failure(copied: Callable[[str], Path]) -> None:
    """`DefaultScheduler.restartTasks` resets the tasks, fails to restore their state, and schedules none of them."""
    run = copied("ckpt-expo")
    unrestored(run, "6 tasks will be restarted to recover from a global failure.")
    record = judged(run)
    assert (record["verdict"], record["reason"], len(record["recoveries"])) == ("accepted", None, 4)


def test_state_that_cannot_be_restored_may_end_the_job(copied: Callable[[str], Path]) -> None:
    """As before, but the restart strategy has given up."""
    run = copied("ckpt-expo")
    unrestored(run, "")
    record = judged(run)
    assert record["verdict"] == "accepted", record["reason"]


def test_a_global_failure_comes_after_the_first_tasks_were_scheduled(copied: Callable[[str], Path]) -> None:
    """Only tasks that were reset may be left unscheduled."""
    run = copied("ckpt-expo")
    lines = lines_of(run / "jobmanager.log")
    at = next(n for n, line in enumerate(lines) if "from state CREATED to RUNNING" in line and GRAPH in line) + 1
    lines.insert(
        at,
        f"{lines[at - 1][:23]} INFO  {MASTER} [] - 6 tasks will be restarted to recover from a global failure.\n",
    )
    (run / "jobmanager.log").write_text("".join(lines))
    record = judged(run)
    assert record["verdict"] == "rejected"
    assert record["reason"].endswith("could be scheduled and was not")
