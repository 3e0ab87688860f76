"""Logs show what the machines that follow them would do wrong: an action that is gone, a guard that is left out, a variant.

`docs/validated.md` has the whole table, which `tools/sabotage.py` writes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lies import MACHINES
from nonempty import nonempty
from sabotage import PAGE, RUNS, Found, guards, judged_with, sabotaged, short_runs, varied, without_action
from shares import share
from streamproof.conformance import validate_paths
from streamproof_models.credit_channel import Unpaid
from streamproof_specs.credit_channel.flink.recorded_machine import RecordedChannel

NOT_NEEDED: dict[str, set[str]] = {
    "TaskAttempt": {"ignore", "reject", "withdraw"},
}
"""Actions that leave no line and explain nothing that another one does not explain in these runs, by machine."""


@pytest.fixture(scope="session")
def recorded(flink_logs: Path, flink_more: Path, flink_live: Path, flink_credit: Path) -> Any:
    """The folder of a recorded run."""
    folders = {"logs": flink_logs, "more": flink_more, "live": flink_live, "credit": flink_credit}
    return lambda run: folders[run.partition("/")[0]] / run.partition("/")[2]


@pytest.mark.parametrize("model", share(RUNS, 3))
def test_no_action_can_be_left_out(model: str, recorded: Any) -> None:
    """Each action that a run takes is needed: without it the run is rejected."""
    results = sabotaged(MACHINES[model], map(recorded, RUNS[model]), most=0, moved=0, with_variants=False)
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
    found = {where: text for _, where, text in guards(RecordedChannel)}
    assert {"RareCalls.on_buffer", "InputChannel.on_buffer", "RecordedChannel.request_answered"} <= found.keys()
    assert "Reader.cancel" not in found, "RareCalls has its own"


@pytest.mark.long
@pytest.mark.parametrize("model", share(re.findall(r"--machine (\w+)", PAGE.read_text(encoding="utf-8")), 3))
def test_the_table_is_the_tools(model: str, tmp_path: Path) -> None:
    """What the page says is noticed is noticed."""
    page = PAGE.read_text(encoding="utf-8")
    most, moved = map(int, re.search(r"--most (\d+) --moved (\d+)", page).groups())  # type: ignore[union-attr]
    runs, most = short_runs(model, tmp_path), 0 if model == "runtime" else most
    results: list[Found] = sabotaged(MACHINES[model], runs, most, moved)
    for found in nonempty(results):
        counts = [f"{sum(map(bool, p.values()))} of {len(p)}" for p in (found.actions, found.guards, found.variants)]
        assert f"| `{found.machine.__name__}` | {' | '.join(counts)} |" in re.sub(
            r"(`) \| [a-z ]+ (\|)", r"\1 \2", page
        )
