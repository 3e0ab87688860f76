"""A log whose beginning is missing is never rejected for it; what does not depend on the beginning is judged."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from nonempty import nonempty
from shares import share
from streamproof.cli.verbs import run
from streamproof.conformance import RunVerdict
from streamproof.conformance.flink import read_run
from streamproof.conformance.validation import validate_paths
from streamproof_specs.flink.scope import outside


def judged(folder: Path, *changes: tuple[str, str], log: str = "jobmanager.log", scratch: Path) -> list[RunVerdict]:
    """The verdicts of all models on a run of which one log is changed."""
    run = Path(shutil.copytree(folder, scratch / folder.name, dirs_exist_ok=True))
    text = (folder / log).read_text()
    for pattern, new in changes:
        text, count = re.subn(pattern, new, text)
        assert count, pattern
    (run / log).write_text(text)
    return validate_paths([run], model="all")


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("v120-lostpart", "failover regions slot_pool"),
        ("v120-ckfail", "checkpoints failover regions slot_pool"),
        ("v120-iterate", "failover regions slot_pool"),
        ("refused-job", "failover regions slot_pool"),
        ("ha-second-jm", "checkpoints"),
        ("adaptive-head", "checkpoints"),
    ],
)
def test_runs_of_other_versions_and_cut_ones_get_the_right_verdict(
    name: str, models: str, flink_versions: Path
) -> None:
    """Accepted by these models; the others have no record, or say what is missing."""
    found = validate_paths([flink_versions / name], model="all")
    assert {v.model for v in found if v.answer == "accepted"} == set(models.split())
    assert not [v.reason for v in found if v.answer not in ("accepted", "inconclusive")]
    if name.startswith("v120"):
        restarts = {"v120-lostpart": 2, "v120-ckfail": 2, "v120-iterate": 1}
        (failover,) = (v for v in found if v.model == "failover")
        assert len(failover.recoveries) == restarts[name]


def test_a_later_execution_graph_is_no_beginning(flink_versions: Path, tmp_path: Path) -> None:
    """The adaptive scheduler builds one for each restart. The restart in the log is judged all the same."""
    folder = flink_versions / "adaptive-head"
    verdicts = {v.model: v for v in validate_paths([folder], model="all")}
    for model in ("failover", "slot_pool", "regions"):
        assert "begins in the middle of the job (line 1 of jobmanager.log)" in (verdicts[model].reason or "")
    tampered = judged(folder, (r".*switched from state CANCELLING to CANCELED\.\n", ""), scratch=tmp_path)
    (failover,) = (v for v in tampered if v.model == "failover")
    assert failover.answer == "rejected"
    assert "in the one before the job is CANCELLING" in (failover.reason or "")


def test_a_later_jobmanager_is_no_beginning(flink_versions: Path, flink_live: Path) -> None:
    """Its process begins in the log, the job does not, unless the log of the first JobManager is there."""
    (verdict,) = validate_paths([flink_versions / "ha-second-jm"])
    assert "no log has the submission of the job" in (verdict.reason or "")
    both = read_run(flink_live / "ha-batch-recovery")
    (job,) = both.jobs
    assert outside(both, job, both.of_job(job)).complete


def test_a_refused_job_is_no_open_question(flink_versions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log has the reason."""
    assert run(["validate", str(flink_versions / "refused-job")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the job was refused because of IllegalStateException: JobInitializationException:" in said


CUT = {
    "live/adaptive-mixed": "jobmanager.log",
    "live/adaptive-taskfail": "jobmanager.log",
    "live/ha-batch-recovery": "jobmanager-2.log",
    "live/speculative2": "jobmanager.log",
    "versions/ha-second-jm": "jobmanager.log",
    "versions/adaptive-head": "jobmanager.log",
    "versions/v120-ckfail": "jobmanager.log",
}


@pytest.mark.parametrize(
    ("name", "places"),
    [*share([(name, 2) for name in CUT], 3), *(pytest.param(name, 24, marks=pytest.mark.long) for name in CUT)],
)
def test_logs_without_their_beginning_are_not_rejected(
    name: str, places: int, flink_live: Path, flink_versions: Path, tmp_path: Path
) -> None:
    """Cut before lines of the JobMaster, spread over the log, and judged by all models."""
    folder = (flink_live if name.startswith("live") else flink_versions) / name.partition("/")[2]
    copy = Path(shutil.copytree(folder, tmp_path / folder.name))
    lines = (folder / CUT[name]).read_text().splitlines(keepends=True)
    own = [at for at, line in enumerate(lines) if re.search(r"ExecutionGraph |JobMaster |CheckpointCoordinator ", line)]
    for at in nonempty(own[:: -(-len(own) // places)]):
        (copy / CUT[name]).write_text("".join(lines[at:]))
        wrong = [v for v in validate_paths([copy], model="all") if v.answer not in ("accepted", "inconclusive")]
        assert not [(at, v.model, v.reason) for v in wrong]


def test_a_missing_number_before_the_newest_part_is_a_gap(flink_logs: Path, tmp_path: Path) -> None:
    """The newest older part has number 1, or the oldest one: with part 3 alone, two parts may be missing behind it."""
    copy = Path(shutil.copytree(flink_logs / "a-taskfail-1", tmp_path / "run"))
    log = copy / "jobmanager.log"
    lines = log.read_text().splitlines(keepends=True)
    middle = next(at for at, line in enumerate(lines) if "to SCHEDULED" in line)
    (copy / "jobmanager.log.3").write_text("".join(lines[:middle]))
    log.write_text("".join(lines[middle + 12 :]))
    (verdict,) = validate_paths([copy])
    assert verdict.answer == "inconclusive"
    assert "rotated log is missing (jobmanager.log.1)" in (verdict.reason or "")
