"""The share of events that some machine judges, and why the others are not judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamproof.conformance import JudgedEvents
from streamproof.conformance.validation import validate_paths
from streamproof_specs.flink.unjudged import UNJUDGED


def counted(*runs: Path) -> JudgedEvents:
    """The events of some runs."""
    found = JudgedEvents()
    validate_paths(runs, model="all", coverage=found)
    return found


def reasons_are_known(found: JudgedEvents) -> None:
    """Every family of which not all events are judged has a reason, in the report, too."""
    assert {
        name for name in found.read if found.judged[name] < found.read[name] and found.why_not(name) is None
    } == set()
    for name, record in found.record().items():
        assert ("why_not" in record) == (record["judged"] < record["read"]), name


def test_most_events_of_runs_at_debug_are_judged(flink_logs: Path, flink_live: Path) -> None:
    """Of a batch job that fails, and one under the adaptive scheduler."""
    found = counted(flink_logs / "a-taskfail-1", flink_live / "adaptive-taskfail")
    reasons_are_known(found)
    assert found.percent > 75
    assert found.why_not("buf.pool") == UNJUDGED["buf.pool"]
    assert found.why_not("slot.tm.alloc") is None


@pytest.mark.long
def test_at_least_four_fifths_of_all_recorded_events_are_judged(flink_logs: Path, flink_live: Path) -> None:
    """Of twenty runs at DEBUG and fifteen of live clusters, most of them at INFO."""
    found = counted(flink_logs, flink_live)
    reasons_are_known(found)
    assert found.percent >= 80


@pytest.mark.long
def test_failures_of_the_whole_job_and_sessions_have_their_reasons(flink_more: Path, flink_versions: Path) -> None:
    """A report of a failure of the whole job is judged with its decision; a session has a job that was refused."""
    found = counted(flink_more / "global", flink_more / "hybrid", flink_versions / "refused-job")
    reasons_are_known(found)
    assert (found.read["failover.global"], found.judged["failover.global"]) == (1, 1)
    assert found.why_not("net.partreq") == UNJUDGED["part."]
