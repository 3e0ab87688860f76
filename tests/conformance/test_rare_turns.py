"""Turns that Flink's code allows and no recorded run takes, written into copies of recorded runs: none is rejected."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamproof.conformance.validation import validate_paths

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
    (verdict,) = validate_paths([folder], model="failover")
    return verdict.record()


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
    head = f"{lines[at - 1][:23]} INFO  {MASTER} [] - "
    lines[at:at] = [
        f"{head}Trying to recover from a global failure.\n",
        f"{head}6 tasks will be restarted to recover from a global failure.\n",
    ]
    (run / "jobmanager.log").write_text("".join(lines))
    record = judged(run)
    assert record["verdict"] == "rejected"
    assert record["reason"].endswith("could be scheduled and was not")


# --- speculative execution

RACING = "0a448493b4782967b150582570326227_1"
"""The task of which two attempts race."""
READER = "bbc463b4be55a8f4cce55a339ff60677_ea632d67b7d595e5b851708ae9ad79d6_0_0"


def first_attempt_wins(run: Path) -> None:
    """Exchanges the two attempts from where both are RUNNING."""

    def exchanged(line: str) -> str:
        line = re.sub(rf"({RACING}_)([01])\b", lambda m: f"{m[1]}{1 - int(m[2])}", line)
        return re.sub(r"(B \(2/3\)#)([01])\b", lambda m: f"{m[1]}{1 - int(m[2])}", line)

    for name in ("jobmanager.log", "taskmanager-2.log"):
        lines = lines_of(run / name)
        ends = re.compile(rf"{RACING}_1\) switched from RUNNING to FINISHED")
        at = next(n for n, line in enumerate(lines) if ends.search(line))
        (run / name).write_text("".join([*lines[:at], *map(exchanged, lines[at:])]))


def asks_for(run: Path, number: int) -> None:
    """The reader asks once more for what one of the two attempts wrote."""
    file = run / "taskmanager-2.log"
    lines = lines_of(file)
    at = next(n for n, line in enumerate(lines) if f"{READER}) switched from DEPLOYING" in line)
    gate = "org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate"
    partition = f"{'a' * 32}#1@{READER[:32]}_{RACING}_{number}"
    said = f"C (1/2)#0 ({READER}): Retriggering partition request {partition}:0."
    file.write_text("".join([*lines[:at], f"{lines[at][:23]} DEBUG {gate} [] - {said}\n", *lines[at:]]))


@pytest.mark.parametrize(("number", "verdict"), [(0, "accepted"), (1, "rejected")])
def test_what_the_faster_attempt_wrote_is_asked_for(number: int, verdict: str, copied: Callable[[str], Path]) -> None:
    """Of attempts that race the one that finishes is the present one, also if it was the first."""
    run = copied("speculative2")
    first_attempt_wins(run)
    asks_for(run, number)
    record = judged(run)
    assert record["verdict"] == verdict
    if verdict == "rejected":
        assert record["reason"].endswith("when C (1/2) was deployed the present one was 0")


# --- a JobMaster without a log


def test_attempts_of_a_jobmaster_without_a_log_are_judged_alone(copied: Callable[[str], Path]) -> None:
    """The first JobMaster's log is missing, and the end of a TaskManager's: the second one did not deploy its attempts."""
    run = copied("ha-batch-recovery")
    (run / "jobmanager.log").unlink()
    file = run / "taskmanager-0.log"
    lines = lines_of(file)
    at = next(n for n, line in enumerate(lines) if "Received task C (1/2)#0" in line)
    file.write_text("".join(lines[: at + 30]))
    assert judged(run)["verdict"] == "inconclusive"
