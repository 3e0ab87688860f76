"""Many runs validated at once, by whatever function the caller brings."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from pyspark import TaskContext

from streamproof.base.errors import Exit, InputError, UsageError
from streamproof.conformance.found_runs import FoundRun
from streamproof.conformance.run_verdict import RunVerdict
from streamproof.pipeline.records import verdict_row
from streamproof.pipeline.reporting import build_report
from streamproof.pipeline.spark_validation import validate_into, validate_many

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def test_records_come_back_in_the_order_of_the_runs(tmp_path: Path) -> None:
    """One record or several per run, each seen with the run's own files."""
    for number in range(5):
        (tmp_path / f"run-{number}").mkdir()
        (tmp_path / f"run-{number}" / "jobs").write_text("x" * number)

    def judge(path: Path) -> list[RunVerdict]:
        return [RunVerdict(path.name, str(job), "m", "accepted") for job in range(len((path / "jobs").read_text()))]

    runs = [tmp_path / f"run-{number}" for number in (3, 0, 1)]
    found = [(verdict.run, verdict.trace) for verdict in validate_many(runs, judge)]
    assert found == [("run-3", "0"), ("run-3", "1"), ("run-3", "2"), ("run-1", "0")]


def test_the_largest_run_is_first(tmp_path: Path) -> None:
    """What has a size is started in the order of sizes, one task for each; verdicts keep the order of the runs."""
    runs = [FoundRun(tmp_path, place, f"run-{place}", size) for place, size in enumerate((3, 1, 9, 5))]

    def judge(run: FoundRun) -> list[RunVerdict]:
        (run.path / f"{TaskContext.get().partitionId()}-{run.name}").touch()
        return [RunVerdict(run.name, "", "m", "accepted")]

    assert [verdict.run for verdict in validate_many(runs, judge)] == ["run-0", "run-1", "run-2", "run-3"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0-run-2", "1-run-3", "2-run-0", "3-run-1"]


def test_a_run_that_raises_becomes_an_error_and_costs_no_other(tmp_path: Path) -> None:
    """The record of a failed run is a complete one, which `report` can read."""

    def judge(path: Path) -> list[RunVerdict]:
        if path.name == "bad":
            raise ValueError("no job in this log")
        return [RunVerdict(path.name, "", "m", "accepted")]

    good, bad = validate_many([tmp_path / "good", tmp_path / "bad"], judge)
    assert good == RunVerdict("good", "", "m", "accepted")
    assert (bad.run, bad.answer, bad.reason) == ("bad", "error", "ValueError: no job in this log")
    assert verdict_row(bad.record())[0] == "bad"


def test_a_killed_worker_is_started_again_and_costs_no_other_run(tmp_path: Path) -> None:
    """A run on which a worker dies once is validated again; one on which it always dies has an error that says so."""

    def judge(path: Path) -> list[RunVerdict]:
        (path.parent / f"{path.name}-{os.getpid()}").touch()
        tries = len(list(path.parent.glob(f"{path.name}-*")))
        if path.name == "always" or (path.name == "once" and tries == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        return [RunVerdict(path.name, "", "m", "accepted")]

    verdicts = validate_many([tmp_path / name for name in ("a", "always", "once", "b")], judge)
    assert [verdict.run for verdict in verdicts] == ["a", "always", "once", "b"]
    assert [verdict.answer for verdict in verdicts] == ["accepted", "error", "accepted", "accepted"]
    assert verdicts[1].reason == "the process that validated it died 3 times; it may have run out of memory"


def test_workers_write_the_verdicts(tmp_path: Path) -> None:
    """Parts that `report` reads have one verdict for every run, that of a run on which workers die included."""

    def judge(path: Path) -> list[RunVerdict]:
        if path.name == "r7":
            os.kill(os.getpid(), signal.SIGKILL)
        return [RunVerdict(path.name, "", "m", "rejected" if path.name == "r3" else "accepted")]

    counts = validate_into(tmp_path / "verdicts", [tmp_path / f"r{number}" for number in range(9)], judge, "local[2]")
    assert counts.record() == {
        "accepted": 7, "rejected": 1, "inconclusive": 0, "error": 1, "unrecorded": 0, "with_findings": 0,
    }  # fmt: skip
    assert counts.exit_code == Exit.REJECTED
    result = build_report([tmp_path / "verdicts"], tmp_path / "out")
    assert (result.runs, result.verdicts["accepted"], result.verdicts["error"]) == (9, 7, 1)


def test_wrong_input_is_the_callers_mistake_and_no_record(tmp_path: Path) -> None:
    """What the validation refuses as input is raised as it would be without Spark, with what to do."""

    def judge(path: Path) -> list[RunVerdict]:
        raise InputError(f"{path.name}: no log was found", remedy="name a folder of logs")

    with pytest.raises(UsageError) as caught:
        validate_many([tmp_path / "empty"], judge)
    assert (caught.value.message, caught.value.remedy) == ("empty: no log was found", "name a folder of logs")


def test_a_record_that_is_no_json_is_an_error_of_its_run(tmp_path: Path) -> None:
    """What cannot be written to a file later fails where it was made."""

    def judge(path: Path) -> list[RunVerdict]:
        return [RunVerdict(path.name, "", "m", "accepted", read=float("nan"))]  # type: ignore[arg-type]

    (verdict,) = validate_many([tmp_path / "r"], judge)
    assert verdict.answer == "error"
    assert (verdict.reason or "").startswith("ValueError: Out of range float values are not JSON compliant")


def test_a_function_that_cannot_travel_is_refused_before_spark_sees_it(tmp_path: Path) -> None:
    """A lock, an open file or a solver held by the function is the caller's mistake, said as such."""
    lock = threading.Lock()

    def judge(path: Path) -> list[RunVerdict]:
        with lock:
            return [RunVerdict(path.name, "", "m", "accepted")]

    with pytest.raises(UsageError, match=r"judge cannot be sent to Spark workers: .*lock"):
        validate_many([tmp_path], judge)


def test_no_runs_no_records() -> None:
    """Nothing to do is done without Spark."""
    assert validate_many([], lambda path: [], master="spark://nowhere:1") == []
