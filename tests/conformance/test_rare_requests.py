"""Requests for a subpartition that come before its partition is there, as Flink's code allows: none is rejected."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamproof.conformance.validation import validate_paths

Line = dict[str, Any]

ASKED = "abeb695673c9cbbbecced50f4390a7bf"
"""A channel whose consumer asks once."""
NEVER = "66b53f6479178746fe8ae6a010ce9638"
"""A channel cancelled before its partition was there."""


def rewritten(run: Path, channel: str, change: Callable[[Line], list[Line]]) -> Line:
    """The verdict on a channel each record of which was replaced, once all numbers were spread by a hundred."""
    for file in run.glob("*.ndjson"):
        found: list[Line] = []
        for r in map(json.loads, file.read_text().splitlines()):
            r["seq"], r["args"]["q0"] = r["seq"] * 100, r["args"]["q0"] * 100
            found += change(r) if r["trace"] == channel else [r]
        found.sort(key=lambda r: r["seq"])
        file.write_text("".join(json.dumps(r) + "\n" for r in found))
    (verdict,) = [v for v in validate_paths([run], model="credit_channel") if v.trace == channel]
    return verdict.record()


def like(record: Line, event: str, begins: int, *without: str) -> Line:
    """Another record of the same thread: it begins so much later and ends right after."""
    args = {name: value for name, value in record["args"].items() if name not in without}
    return record | {"event": event, "seq": begins + 5, "args": args | {"q0": begins}}


def asked_again(record: Line) -> list[Line]:
    """The consumer is told that there is no such partition, and asks again."""
    if record["event"] != "c.request":
        return [record]
    names = ("initial", "task", "partition")
    return [
        record,
        like(record, "c.partition_not_found", record["seq"] + 20, *names),
        like(record, "c.retrigger", record["seq"] + 40, *names),
    ]


@pytest.mark.parametrize("recorded", [True, False])
def test_a_partition_that_is_not_found_is_asked_for_again(recorded: bool, flink_agent: Path, tmp_path: Path) -> None:
    """Flink 2.3 accepts the first request and lets it time out; in 1.17 the call fails, and leaves no record."""

    def change(record: Line) -> list[Line]:
        if not recorded or record["event"] != "p.request":
            return asked_again(record)
        return [like(record, "p.request", record["args"]["q0"] - 80, "queue", "backlog_now"), record]

    run = Path(shutil.copytree(flink_agent / "failure", tmp_path / "run"))
    record = rewritten(run, ASKED, change)
    assert record["verdict"] == "accepted", record["reason"]


def test_a_request_that_failed_is_cancelled(flink_live: Path, tmp_path: Path) -> None:
    """In Flink 1.17 a channel that is given up before its partition is there leaves no record of the request."""
    run = Path(shutil.copytree(flink_live / "agent-cancel", tmp_path / "run"))
    record = rewritten(run, NEVER, lambda r: [] if r["event"] == "p.request" else [r])
    assert record["verdict"] == "accepted", record["reason"]


def test_the_first_request_must_fail_before_the_second(flink_agent: Path, tmp_path: Path) -> None:
    """Nothing is asked for again once something was received."""

    def change(record: Line) -> list[Line]:
        again = like(record, "c.retrigger", record["seq"] + 20)
        return [record, again] if record["event"] == "c.recv" and record["args"]["seq"] == 3 else [record]

    record = rewritten(Path(shutil.copytree(flink_agent / "failure", tmp_path / "run")), ASKED, change)
    assert record["verdict"] == "rejected"
    assert record["reason"] == "the channel cannot request the subpartition (again)"
