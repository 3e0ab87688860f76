"""Region scheduling in recorded runs of Flink: correct runs are never rejected, however their logs were disturbed, and lies
are rejected at their line. Which rules logs show is in `test_recorded_regions.py` and `test_sabotage.py`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from one_lie_of_each_kind import outcomes
from shares import share
from simulated_regions import verdict_on, written
from streamproof.conformance.validation import validate_paths
from synthetic_flink import random_run
from tampering import region_lies

OPEN = {"adaptive-mixed", "adaptive-taskfail", "adsched", "ha-batch-recovery", "rotation-lost"}
"""Runs with a job that the machine does not follow: its scheduler, or its beginning."""


@pytest.fixture(scope="session")
def disturbing(tool_module: Any) -> ModuleType:
    """The disturbing tool, which is a script."""
    module: ModuleType = tool_module("disturb_flink_runs")
    return module


@pytest.mark.parametrize("part", share(range(6), 6))
def test_every_recorded_run_is_accepted(part: int, flink_logs: Path, flink_more: Path, flink_live: Path) -> None:
    """In Flink 1.17 and 2.3, with failures, lost TaskManagers, hybrid exchanges and speculation."""
    runs = sorted(run for folder in (flink_logs, flink_more, flink_live) for run in folder.iterdir())[part::6]
    found = defaultdict(set)
    for verdict in validate_paths(runs, model="regions"):
        found[verdict.run].add(verdict.answer)
    assert len(found) == len(runs)
    assert {run for run, answers in found.items() if answers != {"accepted"}} <= OPEN
    assert not any("rejected" in answers for answers in found.values())


@pytest.mark.parametrize("part", share(range(8), 8))
def test_disturbed_copies_are_not_rejected(
    part: int, disturbing: ModuleType, flink_logs: Path, flink_more: Path, flink_live: Path
) -> None:
    """Ten copies each time; where nothing was taken away the verdict does not change."""
    runs = [flink_logs / name for name in ("a-taskfail-1", "c-disjoint-1", "f-clean-batch-1", "m-job-failed-1")]
    runs += [
        flink_live / name for name in ("adaptive-mixed", "hybrid-full2", "region-cycle", "savepoint", "speculative2")
    ]
    runs += [flink_more / name for name in ("adbatch", "hybrid", "pipe", "rand2", "spec", "stream")]
    found = list(disturbing.outcomes(runs[part * 2 :] + runs[: part * 2], 10, 1000 * part, "regions"))
    bad = [o for o in found if o.rejected or (o.harmless and o.run not in OPEN and set(o.verdicts) != {"accepted"})]
    assert [(o.run, o.seed, o.done, o.verdicts, o.reasons) for o in bad] == []
    assert sum("accepted" in o.verdicts for o in found) > 2


@pytest.mark.parametrize("name", share(region_lies.RUNS, len(region_lies.RUNS), first=3))
def test_lies_about_regions_are_rejected_at_the_line(
    name: str, flink_logs: Path, flink_more: Path, flink_live: Path
) -> None:
    """One edit of each kind that fits the run."""
    folders = {"logs": flink_logs, "more": flink_more, "live": flink_live}
    run = folders[name.partition("/")[0]] / name.partition("/")[2]
    found = outcomes(region_lies, run)
    assert len(found) > 5
    assert [(o.kind, o.what, o.place, o.expected, o.message) for o in found if o.is_missed] == []


@pytest.mark.parametrize("part", share(range(4), 4))
def test_simulated_jobs_are_accepted(part: int, tmp_path: Path) -> None:
    """Random jobs with overlapping failures, which a simulation of the scheduler has run."""
    for seed in range(25 * part, 25 * part + 25):
        run = written(random_run(Random(seed)), tmp_path / str(seed))
        found = verdict_on(run)
        assert (seed, found.answer, found.reason if found.rejection else None) == (seed, "accepted", None)
