"""Recorded runs that were tampered with are rejected at the tampered line, for every kind of edit in every kind of run."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = 2
"""Edits of each kind that are tried in each run; the tool itself tries all."""


@pytest.fixture(scope="session")
def tool() -> ModuleType:
    """The tampering tool, which is a script."""
    spec = importlib.util.spec_from_file_location("tamper_flink_logs", ROOT / "tools" / "tamper_flink_logs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def check(tool: ModuleType, run: Path) -> set[str]:
    """Tries a sample of the edits that fit a run, spread over it; returns their kinds."""
    edits = defaultdict(list)
    for edit in tool.edits(run):
        edits[edit.kind].append(edit)
    for kind, found in edits.items():
        for edit in found[:: max(1, len(found) // SAMPLE)][:SAMPLE]:
            outcome = tool.outcome(run, edit)
            legal = edit.may_be_legal and outcome.verdict == "accepted"
            assert outcome.hit or legal, (kind, edit.what, outcome.place, outcome.expected, outcome.message)
    return set(edits)


@pytest.mark.parametrize(
    "name", ["a-taskfail-1", "b-lostpart-1", "b-delfile-1", "c-disjoint-1", "d-credit-3", "m-job-failed-1"]
)
def test_tampered_runs_are_rejected_at_the_line(name: str, tool: ModuleType, flink_logs: Path) -> None:
    """Decisions, failures, attempts, the order of scheduling, the job's lines, the TaskManagers' logs: each is caught."""
    assert len(check(tool, flink_logs / name)) >= 24


@pytest.mark.parametrize("name", ["rand2", "stream", "global", "pipe"])
def test_tampered_runs_with_rare_turns_are_rejected_at_the_line(
    name: str, tool: ModuleType, flink_more: Path
) -> None:
    """The same where failures overlap, the whole job fails, and executors are lost."""
    assert len(check(tool, flink_more / name)) >= 24


def test_the_documented_table_is_the_tools(tool: ModuleType) -> None:
    """The users' page lists every kind of edit; all but exchanged neighbours are rejected at their line every time."""
    page = (ROOT / "docs" / "how-to-validate-flink.md").read_text()
    rows = re.findall(r"^\| ([^|]+?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    documented = {kind: tuple(map(int, counts)) for kind, *counts in rows}
    source = Path(tool.__file__ or "").read_text()
    assert documented.keys() <= set(re.findall(r'"((?:TaskManager: )?[A-Za-z][^"{}]{8,60})"', source)) | {
        f"cause names {whose}" for whose in ("another subtask's partition", "another vertex's partition")
    }
    assert len(documented) >= 27
    for kind, (made, hit, near, missed) in documented.items():
        assert made > 0
        assert (hit, near, missed) == (made, 0, 0) or (kind == "neighbours exchanged" and near == 0)
