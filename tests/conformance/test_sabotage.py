"""Logs show what the machines that follow them would do wrong: an action that is gone, a guard that is left out, a variant.

`docs/validated.md` has the whole table, which `tools/sabotage.py` writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nonempty import nonempty
from other_machines import varied
from sabotage import (
    PAGE,
    RUNS,
    SOURCES,
    guards,
    judged_with,
    sabotaged,
    section,
    without_action,
)
from shares import share
from streamproof.conformance import validate_paths
from streamproof_models.credit_channel import Unpaid
from streamproof_specs.credit_channel.flink.recorded_machine import RecordedChannel

NOT_NEEDED: dict[str, set[str]] = {
    "TaskAttempt": {"ignore", "reject", "withdraw", "disconnect"},
    "RecordedFailover": {"untrack"},
    "SlotViews": {"forget", "unregister"},
}
"""Actions that leave no line and explain nothing that another one does not explain in these runs, by machine."""


@pytest.fixture(scope="session")
def recorded(flink_logs: Path, flink_more: Path, flink_live: Path, flink_credit: Path, flink_versions: Path) -> Any:
    """The folder of a recorded run."""
    folders = {
        "logs": flink_logs,
        "more": flink_more,
        "live": flink_live,
        "credit": flink_credit,
        "versions": flink_versions,
    }
    return lambda run: folders[run.partition("/")[0]] / run.partition("/")[2]


@pytest.mark.parametrize("model", share(RUNS, 12))
def test_no_action_can_be_left_out(model: str, recorded: Any) -> None:
    """Each action that a run takes is needed: without it the run is rejected."""
    results = sabotaged(SOURCES[model], map(recorded, RUNS[model]), lies=False, lines=0, with_variants=False)
    for found in nonempty(results):
        assert found.actions
        needless = {action for action, shown in found.actions.items() if not shown}
        assert needless == NOT_NEEDED.get(found.machine.__name__, set()), found.machine


def test_a_machine_without_an_action_rejects(recorded: Any) -> None:
    """Sabotage is seen, and is gone afterwards."""
    run = recorded("credit/d-2x2-e1-f1")
    assert {v.answer for v in validate_paths([run], model="credit_channel")} == {"accepted"}
    with judged_with(without_action("add_credit")) as seen:
        assert "rejected" in {v.answer for v in validate_paths([run], model="credit_channel")}
    assert RecordedChannel in seen.machines
    assert (RecordedChannel, "add_credit") not in seen.taken
    with varied(RecordedChannel, Unpaid):
        assert "rejected" in {v.answer for v in validate_paths([run], model="credit_channel")}
    assert {v.answer for v in validate_paths([run], model="credit_channel")} == {"accepted"}


def test_guards_are_those_of_all_functions_that_a_machine_has() -> None:
    """Its own, the inherited ones, and those that it calls by super; each conjunct of a condition."""
    found = {where: guard for guard, where in guards(RecordedChannel)}
    assert {"RareCalls.on_buffer", "InputChannel.on_buffer", "RecordedChannel.request_answered"} <= found.keys()
    assert "Reader.cancel" not in found, "RareCalls has its own"


LISTED = PAGE.read_text(encoding="utf-8")


@pytest.mark.push
@pytest.mark.parametrize(
    "name", [n if n == "checkpoints" else pytest.param(n, marks=pytest.mark.long) for n in SOURCES]
)
def test_the_page_is_the_tools(name: str, tmp_path: Path) -> None:
    """What the page says is noticed is noticed, by the same logs, and the reasons for the rest are those."""
    rows, text = section(sabotaged(SOURCES[name], SOURCES[name].runs(tmp_path)))
    assert [row for row in LISTED.splitlines() if row.startswith(f"| {name} |")] == rows
    assert text.strip() in LISTED
