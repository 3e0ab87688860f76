"""Logs of correct runs that lack all lines of a kind: the level of a logger is higher, a search kept the lines of one job, or
several processes wrote one file. A missing line contradicts nothing there; the same line missing alone is still a lie."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from shares import share
from streamproof.conformance.validation import validate_paths

HEAD = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} +(?P<level>\w+) +(?P<logger>[\w.$]+) ")
JOB = re.compile(r"Submitting job '.*' \((\w{32})\)")


def records(file: Path) -> list[str]:
    """The records of a log, each with its further lines."""
    return re.split(r"(?m)^(?=\d{4}-\d\d-\d\d )", file.read_text())[1:]


def changed(folder: Path, scratch: Path, keep: Callable[[str], bool]) -> Path:
    """A copy of a run with some of its records."""
    run = Path(shutil.copytree(folder, scratch / folder.name))
    for file in run.glob("*.log"):
        file.write_text("".join(filter(keep, records(file))))
    return run


def answers(run: Path, model: str) -> set[str]:
    """The verdicts on a run."""
    return {v.answer for v in validate_paths([run], model=model)}


@pytest.mark.parametrize(
    ("name", "logger", "model"),
    share(
        [
            ("v120-ckfail", "runtime.taskmanager.Task", "failover"),
            ("v120-lostpart", "runtime.taskmanager.Task", "failover"),
            ("v120-iterate", "runtime.jobmaster.JobMaster", "failover"),
            ("ha-batch-recovery", "runtime.taskexecutor.TaskExecutor", "slot_pool"),
            ("u117-2x2-e1-f2", "runtime.taskexecutor.slot.TaskSlotTableImpl", "slot_pool"),
            ("ckpt-expo", "runtime.checkpoint.CheckpointCoordinator", "checkpoints"),
        ],
        2,
    ),
)
def test_a_logger_at_warn_contradicts_nothing(
    name: str, logger: str, model: str, flink_versions: Path, flink_live: Path, flink_credit: Path, tmp_path: Path
) -> None:
    """Its lines at INFO are all missing."""
    folder = next(root / name for root in (flink_versions, flink_live, flink_credit) if (root / name).is_dir())

    def keep(record: str) -> bool:
        head = HEAD.match(record)
        return head is None or head["level"] != "INFO" or not head["logger"].endswith(logger)

    assert answers(folder, model) == {"accepted"}
    assert answers(changed(folder, tmp_path, keep), model) == {"inconclusive"}


@pytest.mark.parametrize(("text", "model"), [("Triggering checkpoint", "checkpoints"), ("switched from", "failover")])
def test_a_search_that_left_out_all_lines_of_a_kind_contradicts_nothing(
    text: str, model: str, flink_live: Path, tmp_path: Path
) -> None:
    """Others follow them: that checkpoints complete, that tasks end."""
    run = changed(flink_live / "ckpt-expo", tmp_path, lambda record: text not in record)
    assert answers(run, model) == {"inconclusive"}


def test_a_single_missing_line_is_still_a_lie(flink_versions: Path, tmp_path: Path) -> None:
    """The logger has written other lines."""
    tampered = changed(
        flink_versions / "v120-iterate", tmp_path, lambda r: " tasks will be restarted to recover the failed" not in r
    )
    assert answers(tampered, "failover") == {"rejected"}


@pytest.mark.parametrize("model", ["failover", "slot_pool", "checkpoints"])
@pytest.mark.parametrize("name", ["savepoint", "ckpt-expo", "b117-lostpart-1", "a-taskfail-1"])
def test_the_lines_with_the_identifier_of_a_job_contradict_nothing(
    name: str, model: str, flink_live: Path, flink_logs: Path, tmp_path: Path
) -> None:
    """Lines about tasks and slots do not name their job, nor does the one that there is no checkpoint."""
    folder = next(root / name for root in (flink_live, flink_logs) if (root / name).is_dir())
    jobs = JOB.findall((folder / "jobmanager.log").read_text())
    assert jobs
    for job in jobs:
        run = changed(folder, tmp_path / job, lambda record, job=job: job in record.partition("\n")[0])
        assert answers(run, model) <= {"accepted", "inconclusive"}
        for log in run.glob("taskmanager-*.log"):
            log.unlink()
        assert answers(run, model) <= {"accepted", "inconclusive"}


@pytest.mark.parametrize("name", share(["b117-lostpart-1", "f-clean-batch-1"], 2, first=1))
def test_several_taskmanagers_in_one_file_contradict_nothing(name: str, flink_logs: Path, tmp_path: Path) -> None:
    """Lines that one process writes one after the other are apart, once the files are merged by their times."""
    logs = sorted((flink_logs / name).glob("*.log"))
    merged = sorted((r for file in logs for r in records(file)), key=lambda record: record[:23])
    (tmp_path / "all.log").write_text("".join(merged))
    assert answers(tmp_path, "slot_pool") == {"inconclusive"}


def test_a_taskmanager_that_logs_few_lines_about_slots_excuses_no_lie(flink_logs: Path, tmp_path: Path) -> None:
    """Flink 1.17 at INFO: slots are freed, but no line says that they were allocated; a decision to restart is missing."""
    tampered = changed(flink_logs / "b117-lostpart-1", tmp_path, lambda r: " 1 tasks will be restarted" not in r)
    assert answers(tampered, "failover") == {"rejected"}


def test_rotated_files_in_any_order_in_one_file_contradict_nothing(flink_live: Path, tmp_path: Path) -> None:
    """Of all processes, concatenated in an order of their names or any other."""
    files = sorted((flink_live / "rotation-lost").glob("*.log*"))
    rng = Random(1)
    for at in range(12):
        rng.shuffle(files)
        (tmp_path / f"{at}").mkdir()
        (tmp_path / f"{at}" / "all.log").write_bytes(b"".join(file.read_bytes() for file in files))
        for model in ("failover", "slot_pool", "partition_lifecycle"):
            assert answers(tmp_path / f"{at}", model) == {"inconclusive"}


@pytest.mark.parametrize("order", share(permutations(range(3)), 3, whole=True))
def test_a_rotated_log_in_any_order_in_one_file_contradicts_nothing(
    order: tuple[int, ...], flink_logs: Path, tmp_path: Path
) -> None:
    """Three parts of the JobManager's log; a lie in them is not accepted."""
    run = Path(shutil.copytree(flink_logs / "b-lostpart-1", tmp_path / "run"))
    lines = records(run / "jobmanager.log")
    third = len(lines) // 3
    parts = ["".join(lines[at:end]) for at, end in ((0, third), (third, 2 * third), (2 * third, None))]
    text = "".join(parts[at] for at in order)
    (run / "jobmanager.log").write_text(text)
    assert answers(run, "failover") <= {"accepted", "inconclusive"}
    assert answers(run, "slot_pool") == ({"accepted"} if order == (0, 1, 2) else {"inconclusive"})
    (run / "jobmanager.log").write_text(text.replace(" 10 tasks will be", " 9 tasks will be"))
    assert answers(run, "failover") == ({"rejected"} if order == (0, 1, 2) else {"inconclusive"})


def test_the_lines_at_debug_of_one_process_are_dropped(flink_live: Path, tmp_path: Path) -> None:
    """A TaskManager whose level is DEBUG writes there that a slot is free."""
    run = Path(shutil.copytree(flink_live / "debug-stream-kill", tmp_path / "run"))
    log = run / "taskmanager-1.log"
    log.write_text("".join(r for r in records(log) if " DEBUG " not in r.partition("\n")[0]))
    assert answers(run, "slot_pool") == {"inconclusive"}


def test_a_partition_may_be_listed_for_release_if_no_list_is_logged(flink_logs: Path, tmp_path: Path) -> None:
    """The logger of the lists is off, and one partition alone would need one."""
    run = changed(flink_logs / "m-job-failed-1", tmp_path, lambda r: "TaskExecutorPartitionTrackerImpl" not in r)
    assert answers(run, "partition_lifecycle") == {"inconclusive"}


@pytest.mark.parametrize("seed", share(range(4), 4))
@pytest.mark.parametrize("lost", [0.3, 0.7, 0.95])
def test_some_lines_at_debug_are_dropped(lost: float, seed: int, flink_logs: Path, tmp_path: Path) -> None:
    """What the missing ones would say is open."""
    rng = Random(seed)
    run = changed(flink_logs / "a-taskfail-1", tmp_path, lambda r: " DEBUG " not in r[:40] or rng.random() > lost)
    for model in ("failover", "slot_pool", "partition_lifecycle"):
        assert answers(run, model) <= {"accepted", "inconclusive"}
