"""Runs of live clusters: each gets the right verdict, and what Flink cannot do is still rejected in them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from streamproof.base.errors import Exit
from streamproof.cli.verbs import run
from streamproof.conformance.validation import validate_paths

ADAPTIVE = (
    "the job runs under the adaptive scheduler: that each restart ends all attempts and begins them anew is judged,"
)
SEVERAL = "more than one JobMaster ran the job (jobmanager, jobmanager-2): the machine follows one"
VERDICTS: dict[str, list[tuple[str, int, str | None]]] = {
    "adaptive-mixed": [("accepted", 1, None), ("inconclusive", 1, ADAPTIVE)],
    "adaptive-taskfail": [("inconclusive", 1, ADAPTIVE)],
    "agent": [("accepted", 1, None)],
    "agent-cancel": [("accepted", 0, "the job is CANCELLING")],
    "ckpt-expo": [("accepted", 3, None)],
    "debug-stream-kill": [("accepted", 3, None)],
    "ha-batch-recovery": [("inconclusive", 0, SEVERAL)],
    "hybrid-full2": [("accepted", 2, None)],
    "hybrid-selective": [("accepted", 20, "the job is FAILING")],
    "json-layout": [("accepted", 1, None)],
    "region-cycle": [("accepted", 0, "no task of a circle of regions was ever scheduled: region {")],
    "rotation-lost": [("inconclusive", 0, "the JobManager's log begins in the middle of the job")],
    "savepoint": [("accepted", 0, None), ("accepted", 0, "the log ends while the job is RUNNING")],
    "speculative2": [("accepted", 0, None)],
    "tm12-kill": [("accepted", 12, None)],
}
"""Verdict, number of restarts and beginning of the reason of each job."""


def judged(folder: Path, model: str = "failover") -> list[dict[str, Any]]:
    """The verdict records of a run."""
    return [verdict.record() for verdict in validate_paths([folder], model=model)]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long) if n == "tm12-kill" else n for n in sorted(VERDICTS)]
)
def test_runs_of_live_clusters_get_the_right_verdict(name: str, flink_live: Path) -> None:
    """Two threads in either order, a second JobManager, schedulers by job, lost files: none is a reason to reject."""
    found = sorted((r["verdict"], len(r["recoveries"]), r["reason"] or "") for r in judged(flink_live / name))
    expected = sorted((verdict, restarts, reason or "") for verdict, restarts, reason in VERDICTS[name])
    assert [f[:2] for f in found] == [e[:2] for e in expected]
    assert all(said.startswith(reason) for (*_, said), (*_, reason) in zip(found, expected, strict=True))


def test_a_hang_is_a_finding_of_an_accepted_run(flink_live: Path, tmp_path: Path) -> None:
    """In the outcome, its totals and the JSON; the exit code is 0, or 13 on request."""
    found = tmp_path / "found.json"
    arguments = ["validate", str(flink_live / "region-cycle"), "--json", str(found)]
    with redirect_stdout(StringIO()) as out:
        assert run([*arguments, "--fail-on-finding"]) == Exit.LIVENESS
        assert run(arguments) == Exit.HOLDS
    assert out.getvalue().count("hang: no task of a circle of regions was ever scheduled") == 2
    assert out.getvalue().count("1 job: 1 accepted, 1 hang") == 2
    (verdict,) = json.loads(found.read_text())["verdicts"]
    (finding,) = verdict["findings"]
    assert (verdict["verdict"], finding["kind"]) == ("accepted", "hang")
    assert finding["message"] in verdict["reason"]
    assert run(["validate", str(flink_live / "speculative2"), "--fail-on-finding"]) == Exit.HOLDS


def test_a_rotated_file_of_library_lines_is_not_damaged(flink_live: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file in which only the RPC library speaks belongs to its process like any other part of the log."""
    judged(flink_live / "rotation-lost")
    assert capsys.readouterr().err == ""


# --- what is still rejected

HYBRID_LIES = [
    (
        r"\n[^\n]* C \(1/2\) [^\n]*_0_0\) switched from CREATED to SCHEDULED\.",
        "",
        "C-sink: Writer (1/2) is scheduled before its input is there: C (1/2) attempt 0 is CREATED",
    ),
    (r"2 tasks will be restarted", "4 tasks will be restarted", "the log restarts 4 tasks, the protocol 2"),
    (r"( B \(1/2\) [^\n]*) to FINISHED", r"\1 to FAILED", "the failure of B (1/2)"),
]
"""Edits of a run with hybrid exchanges, and the beginning of the reason."""


@pytest.mark.parametrize(("line", "instead", "reason"), HYBRID_LIES)
def test_lies_about_hybrid_exchanges(line: str, instead: str, reason: str, copied: Callable[[str], Path]) -> None:
    """A consumer that was never scheduled, another restart set, a failure without one."""
    run = copied("hybrid-full2")
    text, count = re.subn(line, instead, (run / "jobmanager.log").read_text(), count=1)
    assert count == 1
    (run / "jobmanager.log").write_text(text)
    (record,) = judged(run)
    assert (record["verdict"], record["reason"].startswith(reason)) == ("rejected", True), record["reason"]


def test_a_hybrid_consumer_waits_for_the_scheduling_of_its_producer(copied: Callable[[str], Path]) -> None:
    """The first consumer is scheduled before what it reads."""
    run = copied("hybrid-full2")
    scheduled = r" from CREATED to SCHEDULED"
    moved(run / "jobmanager.log", rf" Source: A \(2/2\) .*{scheduled}", rf" B \(1/2\) .*{scheduled}")
    (record,) = judged(run)
    assert record["verdict"] == "rejected"
    assert record["reason"] == "B (1/2) is scheduled before its input is there: Source: A (2/2) attempt 0 is CREATED"


def test_a_read_once_input_restarts_its_producers(copied: Callable[[str], Path]) -> None:
    """The second restart: a failed writer of 1/2 takes along what it has read, which cannot be read again."""
    run = copied("hybrid-selective")
    log = run / "jobmanager.log"
    text = log.read_text()
    counts = [int(n) for n in re.findall(r"(\d+) tasks will be restarted", text)]
    log.write_text(text.replace(f" {counts[0]} tasks will be", f" {counts[0] - 2} tasks will be", 1))
    (record,) = judged(run)
    assert record["verdict"] == "rejected"
    assert f"the log restarts {counts[0] - 2} tasks, the protocol {counts[0]}: " in record["reason"]


@pytest.fixture
def copied(flink_live: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies a run, to be edited."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(flink_live / name, tmp_path / name))

    return copy


def moved(file: Path, line: str, behind: str) -> None:
    """Moves the line that matches one pattern behind the one that matches another."""
    lines = file.read_text().splitlines(keepends=True)
    taken = lines.pop(next(n for n, text in enumerate(lines) if re.search(line, text)))
    lines.insert(next(n for n, text in enumerate(lines) if re.search(behind, text)) + 1, taken)
    file.write_text("".join(lines))


CANCELED = r"Writer \(1/2\)#12 .* from CANCELING to CANCELED"


@pytest.mark.parametrize(
    ("line", "behind"),
    [
        (r"Writer \(1/2\)#12 .* from CREATED to DEPLOYING", CANCELED),
        (r"Attempting to cancel task C-sink: Writer \(1/2\)#12", CANCELED),
        (r"Received task C-sink: Writer \(1/2\)#12", r"Writer \(1/2\)#12 .* from CREATED to DEPLOYING"),
        (CANCELED, r"final execution state CANCELED to JobManager for task C-sink: Writer \(1/2\)#12"),
    ],
)
def test_lines_of_one_thread_stay_ordered(line: str, behind: str, copied: Callable[[str], Path]) -> None:
    """The task's own transitions, and what one thread waits for from the other, are not written in another order."""
    run = copied("hybrid-selective")
    moved(run / "taskmanager-0.log", line, behind)
    (record,) = judged(run)
    assert record["verdict"] == "rejected"
    assert "Writer (1/2)#12" in record["reason"] or "Writer (1/2) attempt 12" in record["reason"]


def test_a_replayed_attempt_must_have_finished(copied: Callable[[str], Path]) -> None:
    """A second JobMaster cannot take an attempt for finished that failed."""
    run = copied("ha-batch-recovery")
    for name in ("jobmanager.log", "taskmanager-0.log"):
        text = (run / name).read_text()
        text = re.sub(r"( B \(1/3\).* from RUNNING to )FINISHED", r"\1FAILED", text)
        text = re.sub(r"(final execution state )FINISHED( to JobManager for task B \(1/3\))", r"\1FAILED\2", text)
        (run / name).write_text(text)
    (record,) = judged(run)
    assert (record["verdict"], record["rejection"]["line"]) == ("rejected", 887)
    assert record["reason"] == "B (1/3)#0 is FAILED on tm-0, not FINISHED"


def test_an_attempt_of_its_own_graph_is_not_replayed(copied: Callable[[str], Path]) -> None:
    """From CREATED to FINISHED goes only what another JobMaster ran."""
    run = copied("ckpt-expo")
    file = run / "jobmanager.log"
    file.write_text(re.sub(r"from CREATED to SCHEDULED", "from CREATED to FINISHED", file.read_text(), count=1))
    (record,) = judged(run)
    assert record["verdict"] == "rejected"


def test_a_batch_job_beside_an_adaptive_one_is_judged(copied: Callable[[str], Path]) -> None:
    """A decision with a wrong number is found, though another job of the session is out of reach."""
    run = copied("adaptive-mixed")
    file = run / "jobmanager.log"
    file.write_text(file.read_text().replace("1 tasks will be restarted", "2 tasks will be restarted"))
    assert sorted(r["verdict"] for r in judged(run)) == ["inconclusive", "rejected"]


# --- channels


@pytest.mark.parametrize(("name", "channels"), [("agent", 8), ("agent-cancel", 6)])
def test_channels_of_cancelled_and_failed_tasks_are_accepted(name: str, channels: int, flink_live: Path) -> None:
    """A released reader that a notification queues again sends what credit allows; each late buffer is cancelled again."""
    assert [r["verdict"] for r in judged(flink_live / name, "credit_channel")] == ["accepted"] * channels


LATE = "e4be261290f285b6decd95845b8a352a"
"""A channel with one late buffer: released with credit 2."""
NEVER = "66b53f6479178746fe8ae6a010ce9638"
"""A channel cancelled before its partition was there."""
Line = dict[str, Any]


def rewritten(run: Path, channel: str, change: Callable[[list[Line]], list[Line]], spread: int = 100) -> dict[str, Any]:
    """The verdict on a channel whose producer's records were changed, once their numbers were spread."""
    for file in run.glob("*.ndjson"):
        lines: list[Line] = [json.loads(text) for text in file.read_text().splitlines()]
        if any(r["trace"] == channel and r["event"] == "p.request" for r in lines):
            for r in lines:
                r["seq"], r["args"]["q0"] = r["seq"] * spread, r["args"]["q0"] * spread
            lines = change(lines)
            file.write_text("".join(json.dumps(r) + "\n" for r in lines))
    (found,) = [r for r in judged(run, "credit_channel") if r["trace"] == channel]
    return found


def late(lines: list[Line], event: str) -> Line:
    """The last record of the channel with that name."""
    return [r for r in lines if r["trace"] == LATE and r["event"] == event][-1]


def again(lines: list[Line], record: Line, times: int = 1, **args: Any) -> list[Line]:
    """The record so many times more, right behind itself, with other arguments."""
    at = lines.index(record)
    more: list[Line] = []
    for n in range(1, times + 1):
        values = {name: value(n) if callable(value) else value for name, value in args.items()}
        changed = record["args"] | {"q0": record["seq"] + 2 * n - 1} | values
        more.append(record | {"seq": record["seq"] + 2 * n, "args": changed})
    return [*lines[: at + 1], *more, *lines[at + 1 :]]


def test_late_buffers_are_bounded_by_the_credit(copied: Callable[[str], Path]) -> None:
    """With two credits at the release two late buffers are possible, a third is not."""
    folder = copied("agent-cancel")
    whole = shutil.copytree(folder, folder.with_name("whole"))
    more = {"seq": lambda n: 2 + n, "credits": lambda n: 1 - n}

    def change(times: int) -> Callable[[list[Line]], list[Line]]:
        return lambda lines: again(lines, late(lines, "p.send"), times, **more)

    assert rewritten(folder, LATE, change(1))["verdict"] == "accepted"
    found = rewritten(whole, LATE, change(2))
    assert (found["verdict"], found["reason"]) == ("rejected", "a buffer is sent without credit")


def test_requests_to_cancel_are_bounded_by_late_messages(copied: Callable[[str], Path]) -> None:
    """The consumer cancels once when it releases and once for each message that comes later."""
    found = rewritten(copied("agent-cancel"), LATE, lambda lines: again(lines, late(lines, "p.cancel")))
    assert found["verdict"] == "rejected"
    assert found["reason"] == "a request to cancel arrives that nothing called for: 2 came, and 1 message was sent late"


def test_a_reader_that_is_registered_and_not_queued_is_silent(copied: Callable[[str], Path]) -> None:
    """The second request to cancel takes a queued reader out of the queue and leaves it registered: it never sends again."""

    def change(lines: list[Line]) -> list[Line]:
        first, cancel = late(lines, "p.send"), late(lines, "p.cancel")
        first["args"]["next"] = "DATA_BUFFER"
        at = lines.index(cancel)
        args = first["args"] | {"q0": cancel["seq"] + 1, "seq": 3, "credits": 0, "next": "NONE"}
        return [*lines[: at + 1], first | {"seq": cancel["seq"] + 2, "args": args}, *lines[at + 1 :]]

    found = rewritten(copied("agent-cancel"), LATE, change)
    assert found["verdict"] == "rejected"
    assert found["reason"].startswith("the reader is registered as available and in no queue")


def test_nothing_is_sent_after_the_connection_is_closed(copied: Callable[[str], Path]) -> None:
    """A reader that is released with its connection, not by a request to cancel, sends nothing more."""
    found = rewritten(
        copied("agent-cancel"),
        LATE,
        lambda lines: [r for r in lines if r["trace"] != LATE or r["event"] != "p.cancel"],
    )
    assert (found["verdict"], found["reason"]) == ("rejected", "the producer's end is released with its connection")


def test_a_reader_that_was_created_is_released(copied: Callable[[str], Path]) -> None:
    """A request to cancel releases nothing only where the partition was not there yet."""

    def change(lines: list[Line]) -> list[Line]:
        for r in lines:
            if r["trace"] == NEVER and r["event"] == "p.request":
                r["args"] |= {"queue": 0, "backlog_now": 0}
        return lines

    found = rewritten(copied("agent-cancel"), NEVER, change, spread=1)
    assert (found["verdict"], found["reason"]) == ("rejected", "the reader was not released")
