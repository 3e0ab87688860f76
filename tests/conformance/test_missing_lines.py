"""A line that Flink always writes is missing, or names something else: rejected at the line that shows it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from shares import share
from streamproof.conformance import RunVerdict
from streamproof.conformance.validation import validate_paths

LOST = (
    r"[^\n]*\] - (?:Heartbeat of )?TaskManager with id \S+ (?:is no longer reachable|timed out)\.\n"
    r"|[^\n]*(?:Disconnect TaskExecutor|Closing TaskExecutor connection|Mark heartbeat target)[^\n]*\n"
)


def changed(source: Path, folder: Path, log: str, pattern: str, new: str, count: int = 0) -> Path:
    """A copy of a run with one of its logs changed; no line of details follows what is taken away."""
    copy = Path(shutil.copytree(source, folder / source.name))
    text, made = re.subn(pattern, new, (source / log).read_text(), count=count)
    assert made
    (copy / log).write_text(text)
    return copy


def judged(run: Path, model: str) -> RunVerdict:
    """The worst verdict."""
    return max(validate_paths([run], model=model), key=lambda v: v.answer == "rejected")


@pytest.mark.parametrize(
    "name", share(["versions/v120-lostpart", "live/tm12-kill", "live/hybrid-full2", "logs/b-lostpart-1"], 4)
)
def test_tasks_do_not_fail_because_of_a_loss_that_no_line_states(
    name: str, flink_logs: Path, flink_live: Path, flink_versions: Path, tmp_path: Path
) -> None:
    """All lines about the lost TaskManager are gone; the cause of the failures names it."""
    kind, _, run = name.partition("/")
    folder = {"logs": flink_logs, "live": flink_live, "versions": flink_versions}[kind]
    verdict = judged(changed(folder / run, tmp_path, "jobmanager.log", LOST, ""), "failover")
    assert verdict.answer == "rejected"
    assert re.search(r"because TaskManager tm-\d is lost, but no line says that it is lost", verdict.reason or "")


def test_a_partition_that_is_being_released_is_released(flink_logs: Path, tmp_path: Path) -> None:
    """The `ResultPartitionManager` holds its lock from the one line to the other: the next line under it shows the gap."""
    copy = changed(
        flink_logs / "a-pipelined-1", tmp_path, "taskmanager-1.log", r"[^\n]*Released partition [^\n]*\n", "", 1
    )
    verdict = judged(copy, "partition_lifecycle")
    assert verdict.answer == "rejected"
    assert "being released, but no line says that it is released" in (verdict.reason or "")


def test_a_job_is_restored_from_the_savepoint_that_it_starts_from(flink_live: Path, tmp_path: Path) -> None:
    """Not from that of another job."""
    place = r"(located at \S+/savepoint-)9cbf94-02feffe900c1"
    copy = changed(flink_live / "savepoint", tmp_path, "jobmanager.log", place, r"\g<1>aaaaaa-02feffe900c1")
    verdict = judged(copy, "checkpoints")
    assert verdict.answer == "rejected"
    assert "starts from the savepoint savepoint-9cbf94-02feffe900c1, but is restored from savepoint-aaaaaa" in (
        verdict.reason or ""
    )


SEARCHES = (
    r"ExecutionGraph .*\) switched from [A-Z]",
    "switched from",
    r"\.Task .*switched",
    "FAILED|switched from state",
)


@pytest.mark.parametrize(
    ("name", "text"),
    share([(name, text) for name in ("live/savepoint", "logs/b-lostpart-1", "live/adaptive-taskfail")
           for text in SEARCHES], 5),
)  # fmt: skip
def test_what_a_search_has_left_is_not_rejected(
    name: str, text: str, flink_logs: Path, flink_live: Path, tmp_path: Path
) -> None:
    """Lines with a word: a state without the line that goes with it shows it, also if no job is named."""
    kind, _, run = name.partition("/")
    for log in sorted(({"logs": flink_logs, "live": flink_live}[kind] / run).glob("*.log")):
        found = [line for line in log.read_text().splitlines(keepends=True) if re.search(text, line)]
        (tmp_path / log.name).write_text("".join(found))
    assert {v.answer for v in validate_paths([tmp_path], model="all")} <= {"accepted", "inconclusive"}
