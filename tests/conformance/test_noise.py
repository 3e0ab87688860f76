"""Correct runs are never rejected, however their logs were disturbed on the way: accepted, or inconclusive. Where nothing was
taken away the verdict is that on the undisturbed run.

`tools/disturb_flink_runs.py` says which disturbances there are. Two are left out because no logging does them: lines of one
thread in another order (a thread writes one line after the other), and records of the credit agent in another order (it
numbers and writes them under one lock). Lines of two threads change places only where neither could have waited for the
other.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from streamproof.conformance.validate import validate_paths

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
    return sorted(r["verdict"] for r in validate_paths([run]))


def wrong(tool: ModuleType, runs: list[Path], copies: int, seed: int) -> list[str]:
    """What was rejected of so many disturbed copies, with what had been done to them, and what got another verdict although
    all that was recorded is still there. Where too few are accepted the disturbances say nothing."""
    where = {run.name: run for run in runs}
    found = list(tool.outcomes(runs, copies, seed))
    bad = [o for o in found if o.rejected or (o.harmless and sorted(o.verdicts) != undisturbed(where[o.run]))]
    accepted = sum("accepted" in o.verdicts for o in found)
    said = [f"{o.run}, seed {o.seed}: {o.done}: {o.verdicts} {o.reasons}" for o in bad]
    return said if 3 * accepted >= copies else [*said, f"{accepted} of {copies} copies are accepted"]


@pytest.mark.parametrize("part", range(4))
def test_a_hundred_disturbed_copies_of_small_runs_are_not_rejected(
    part: int, tool: ModuleType, flink_logs: Path, flink_live: Path
) -> None:
    """Twenty-five copies each time, of runs that are judged in a fraction of a second."""
    runs = [flink_live / name for name in LIVE] + [flink_logs.parent / name for name in SMALL]
    assert wrong(tool, runs, 25, 1000 * part) == []


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
