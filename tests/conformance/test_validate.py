"""Verdicts on recorded runs of Flink: what is accepted, what is left open and why, what a rejection says."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof.conformance.found_runs import binding_for
from streamproof.conformance.validation import validate_paths
from streamproof.system import InputError, UsageError

LOGS = [
    "a-pipelined-1",
    "a-taskfail-1",
    "a-taskfail-2",
    "b-delfile-1",
    "b-lostpart-1",
    "b-lostpart-2",
    "b117-lostpart-1",
    "c-disjoint-1",
    "d-credit-1",
    "d-credit-3",
    "e-slots-1",
    "f-clean-batch-1",
    "f-clean-batch-2",
    "g-jmloss-1",
    "i117-bulk-1",
    "i117-stream-1",
    "k-insufficient-buffers-1",
    "m-job-failed-1",
    "x-agent-credit-1",
    "x-agent-lostpart-1",
]

Edit = Callable[[str], str | None]
"""What becomes of a line; None where it goes."""


def only(path: Path, **options: Any) -> dict[str, Any]:
    """The verdict on a run with one job."""
    (verdict,) = validate_paths([path], **{"model": "failover", **options})
    return verdict.record()


def edited(run: Path, target: Path, edit: Edit, *, files: str = "*.log", rest: bool = True) -> Path:
    """A copy of a run with its logs edited line by line."""
    copy = target / run.name
    shutil.copytree(run, copy)
    if not rest:
        for answer in copy.glob("rest-*.json"):
            answer.unlink()
    for log in copy.glob(files):
        lines = (edit(line) for line in log.read_text().splitlines(keepends=True))
        log.write_text("".join(line for line in lines if line is not None))
    return copy


def at_info(line: str) -> str | None:
    """As if the level had been INFO; lines under a DEBUG record stay, which does no harm."""
    return None if re.search(r"^\S+ \S+ +DEBUG ", line) else line


@pytest.mark.parametrize("name", share(LOGS, 2))
def test_a_recorded_run_is_accepted(name: str, flink_logs: Path) -> None:
    """Flink 2.3 and 1.17 did nothing that the protocol does not allow, on either side."""
    record = only(flink_logs / name)
    assert (record["verdict"], record["rejection"]) == ("accepted", None)


@pytest.mark.parametrize(
    "name", share(["rand2", "pipe", "stream", "global", "cancel", "sigstop", "adbatch", "hybrid", "spec"], 3)
)
def test_a_run_with_rare_turns_is_accepted(name: str, flink_more: Path) -> None:
    """Random failures, lost and paused executors, failures of the whole job, cancelled jobs, an adaptive batch job, a hybrid
    exchange, attempts that race."""
    assert only(flink_more / name)["verdict"] == "accepted"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "adsched",
            "the job runs under the adaptive scheduler: that each restart ends all attempts and begins them anew is judged, "
            "not when it restarts and to which parallelism, since that depends on offered slots and timers, of which the log "
            "has no lines",
        ),
    ],
)
def test_what_the_machine_does_not_have_is_left_open(name: str, reason: str, flink_more: Path) -> None:
    """The verdict is open, says what it is about, and the attempts have been followed all the same."""
    record = only(flink_more / name)
    assert (record["verdict"], record["reason"]) == ("inconclusive", reason)
    assert record["events"]["matched"] > 50


def test_a_record_counts_what_was_followed(flink_logs: Path) -> None:
    """Events of the JobManager and of the TaskManagers, actions of the machine, behaviours: the job and ten attempts."""
    record = only(flink_logs / "a-taskfail-1")
    assert record["events"] == {"read": 412, "matched": 171, "ignored": 241, "unknown": 529}
    assert record["behaviours"] == 11
    assert record["title"] == "batch-diamond (job graph from the REST answer)"
    assert record["actions"] == {
        "schedule": 10,
        "deploy": 10,
        "initialize": 10,
        "run": 10,
        "fail": 2,
        "restart": 2,
        "finish": 8,
        "complete": 1,
    }


def test_restart_sets_are_named(flink_logs: Path) -> None:
    """First the lost task alone, then, with the lost partitions known, all but the one that was not scheduled."""
    first, second = only(flink_logs / "b-lostpart-1")["recoveries"]
    (early,) = first.pop("designed")
    assert "decides before it forgets the results on it" in early["text"]
    assert "only when a reader misses it" in second["designed"][0]["text"]
    assert first == {
        "decided": "2026-11-21T03:19:12.322",
        "recovered": "2026-11-21T03:19:22.461",
        "failed": "C -> C-sink: Writer (2/2)#0",
        "cause": "org.apache.flink.runtime.jobmaster.JobMasterException",
        "announced": 1,
        "size": 1,
        "tasks": ["C -> C-sink: Writer (2/2)"],
        "why": [{"tasks": ["C -> C-sink: Writer (2/2)"], "reason": "failed task", "partition": None, "because": None}],
    }
    assert (second["announced"], second["size"], len(second["tasks"])) == (10, 10, 10)


def test_jobs_of_one_cluster_get_a_verdict_each(flink_more: Path) -> None:
    """Two jobs ran side by side, logged at INFO; the REST answers give their graphs."""
    records = [verdict.record() for verdict in validate_paths([flink_more / "info2"])]
    assert [(r["title"].partition(" ")[0], r["verdict"]) for r in records] == [("one", "accepted"), ("two", "accepted")]


# --- what the logs leave open


def test_at_info_the_edges_are_missing(flink_logs: Path, tmp_path: Path) -> None:
    """Without REST answer and DEBUG lines the graph is not known; the reason says so and what to give."""
    record = only(edited(flink_logs / "b-lostpart-1", tmp_path, at_info, rest=False))
    assert record["verdict"] == "inconclusive"
    assert record["reason"].startswith("the job graph is not known well enough: ")
    assert record["reason"].endswith(" beside the logs as rest-JOB.json, or use validate --job-graph FILE")


def test_a_job_graph_can_be_given(flink_logs: Path, tmp_path: Path) -> None:
    """With the REST answer named on the command line the same logs are judged."""
    run = flink_logs / "b-lostpart-1"
    record = only(edited(run, tmp_path, at_info, rest=False), job_graph=run / "rest-337d69de.json")
    assert (record["verdict"], record["title"]) == ("accepted", "batch-diamond (job graph given)")


def test_what_does_not_need_the_graph_is_rejected_without_it(flink_logs: Path, tmp_path: Path) -> None:
    """A decision that answers no failure is wrong in any graph."""

    def edit(line: str) -> str | None:
        return None if "(2/2)" in line and "INITIALIZING to FAILED" in line else at_info(line)

    record = only(edited(flink_logs / "b-lostpart-1", tmp_path, edit, rest=False))
    assert record["verdict"] == "rejected"
    assert record["rejection"]["event"] == "failover.restart"
    assert "which did not fail just before" in record["reason"]


def test_taskmanagers_alone_tell_too_little(flink_logs: Path, tmp_path: Path) -> None:
    """Without the JobManager's log there are no decisions to judge."""
    copy = edited(flink_logs / "a-taskfail-1", tmp_path, lambda line: line)
    (copy / "jobmanager.log").unlink()
    record = only(copy)
    assert record["verdict"] == "inconclusive"
    assert record["reason"].startswith("no JobManager's log speaks of this job")
    assert record["events"]["matched"] > 50


def test_taskmanagers_alone_can_be_wrong(flink_logs: Path, tmp_path: Path) -> None:
    """A task that runs again after it has finished is rejected with no JobManager at hand."""

    def edit(line: str) -> str:
        again = line.replace("RUNNING to FINISHED", "INITIALIZING to RUNNING")
        return line + again if "RUNNING to FINISHED" in line and "B (1/2)#0" in line else line

    copy = edited(flink_logs / "a-taskfail-1", tmp_path, edit, files="taskmanager-*.log")
    (copy / "jobmanager.log").unlink()
    record = only(copy)
    assert record["verdict"] == "rejected"
    assert re.fullmatch(r"B \(1/2\)#0 is FINISHED on \S+, not INITIALIZING", record["reason"])


@pytest.mark.parametrize(
    ("length", "note"),
    [(250, "the log ends while the job is RUNNING"), (380, "the log ends before the failure of B (2/2) is answered")],
)
def test_a_log_that_ends_early_is_accepted_as_far_as_it_goes(
    length: int, note: str, flink_logs: Path, tmp_path: Path
) -> None:
    """A copy cut off in the middle of the job is a prefix of an accepted run; a note says that the job is not over."""
    copy = edited(flink_logs / "a-taskfail-1", tmp_path, lambda line: line)
    log = copy / "jobmanager.log"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:length]))
    record = only(copy)
    assert (record["verdict"], record["reason"]) == ("accepted", note)


def test_a_log_that_begins_late_is_left_open(flink_logs: Path, tmp_path: Path) -> None:
    """Rotated logs of which the first is gone: what was before is not known."""
    copy = edited(flink_logs / "a-taskfail-1", tmp_path, lambda line: line)
    log = copy / "jobmanager.log"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[200:]))
    record = only(copy)
    assert record["verdict"] == "inconclusive"
    assert record["reason"].startswith("the JobManager's log begins in the middle of the job (line ")


def test_a_damaged_line_is_no_fault_of_flinks(flink_logs: Path, tmp_path: Path) -> None:
    """What cannot be read may have been the line that is missed further down."""

    def edit(line: str) -> str:
        return line.replace("RUNNING to FINISHED.", "RUNNI") if " B (1/2) (" in line else line

    record = only(edited(flink_logs / "a-taskfail-1", tmp_path, edit, files="jobmanager.log"))
    assert record["verdict"] == "inconclusive"
    assert re.match(r"\S+jobmanager\.log:\d+ could not be read; otherwise rejected: ", record["reason"])


def test_a_log_without_warnings_is_enough(flink_logs: Path, tmp_path: Path) -> None:
    """Neither stack traces nor the TaskManagers' words about failures: what a failure was for stays open."""

    def edit(line: str) -> str | None:
        return line if re.match(r"\S+ \S+ (\[[^]]*\] )?INFO ", line) else None

    for name in ("b-lostpart-1", "b-lostpart-2", "a-taskfail-1"):
        assert only(edited(flink_logs / name, tmp_path, edit))["verdict"] == "accepted"


def test_a_lost_jobmanager_is_no_fault(flink_logs: Path) -> None:
    """Its log just ends; the TaskManagers end their tasks later."""
    record = only(flink_logs / "g-jmloss-1")
    assert (record["verdict"], record["reason"]) == ("accepted", "the log ends while the job is RUNNING")


def test_processes_may_have_any_name(flink_logs: Path, tmp_path: Path) -> None:
    """What a process is, its log tells; the file's name does not matter."""
    copy = edited(flink_logs / "a-taskfail-1", tmp_path, lambda line: line)
    (copy / "jobmanager.log").rename(copy / "flink-me-standalonesession-0-host.log")
    (copy / "taskmanager-0.log").rename(copy / "flink-me-taskexecutor-0-host.log")
    assert only(copy)["verdict"] == "accepted"


# --- what a rejection says


def test_a_wrong_count_names_the_tasks(flink_logs: Path, tmp_path: Path) -> None:
    """The protocol's set is listed, with what the log restarts besides, and the line that would have been right."""
    run = edited(
        flink_logs / "b-lostpart-1", tmp_path, lambda line: line.replace("10 tasks will be", "2 tasks will be")
    )
    record = only(run)
    rejection = record["rejection"]
    assert (record["verdict"], rejection["kind"], rejection["event"]) == ("rejected", "state", "failover.restart")
    assert (Path(rejection["file"]).name, rejection["line"]) == ("jobmanager.log", 1023)
    assert rejection["message"].startswith(
        "the log restarts 2 tasks, the protocol 10: B (1/4), B (2/4), B (3/4), B (4/4), "
    )
    assert rejection["nearest"].startswith("10 tasks will be restarted to recover the failed task ")
    assert rejection["index"] == rejection["prefix"] > 100
    assert rejection["candidates"][0]["because"] == rejection["message"]
    assert rejection["candidates"][0]["action"].startswith("lose(p=")
    assert len(rejection["states_before"]) == min(rejection["states"], 3)
    assert rejection["states_before"][0]["job"] == "RUNNING"


def test_events_are_in_a_file_called_as_the_run(flink_logs: Path, tmp_path: Path) -> None:
    """Whoever reads events and verdicts together finds the same name in both, spaces and all."""
    run = edited(flink_logs / "f-clean-batch-1", tmp_path / "my runs", lambda line: line)
    named = run.rename(run.parent / "first run (ok)")
    (verdict,) = validate_paths([named], events_dir=tmp_path / "events")
    assert [path.stem for path in (tmp_path / "events").iterdir()] == [verdict.run] == ["first run (ok)"]


def test_an_early_consumer_is_told_in_flinks_words(flink_logs: Path, tmp_path: Path) -> None:
    """A sentence first, then the machine's own condition; the nearest event that would have been accepted."""
    copy = edited(flink_logs / "f-clean-batch-1", tmp_path, lambda line: line)
    log = copy / "jobmanager.log"
    lines = log.read_text().splitlines(keepends=True)
    late = next(at for at, line in enumerate(lines) if " B (1/2) " in line and "CREATED to SCHEDULED" in line)
    done = next(at for at, line in enumerate(lines) if "A (2/2)" in line and "RUNNING to FINISHED" in line)
    first = min(done, next(at for at, line in enumerate(lines) if "A (1/2)" in line and "RUNNING to FINISHED" in line))
    lines.insert(first, lines.pop(late))
    log.write_text("".join(lines))
    rejection = only(copy)["rejection"]
    assert rejection["line"] == first + 1
    assert rejection["message"].startswith("B (1/2) is scheduled before its input is there: Source: A-source -> A (")
    assert rejection["candidates"][0]["action"].startswith("schedule(r=B (1/2)")
    assert " [self.is_ready(s, self.regions[r])" in rejection["candidates"][0]["because"]
    assert re.fullmatch(r".* attempt 0 switches from \w+ to \w+", rejection["nearest"])
    assert 1 <= len(rejection["expected"]) <= 8


# --- what is refused


def test_another_jobs_graph_is_refused(flink_logs: Path) -> None:
    """The graph must be that of the job in the logs."""
    with pytest.raises(InputError, match="the answer is about job 337d69de"):
        only(flink_logs / "a-taskfail-1", job_graph=flink_logs / "b-lostpart-1" / "rest-337d69de.json")


def test_another_jobs_graph_is_refused_among_several(flink_more: Path, flink_logs: Path) -> None:
    """With several jobs in the run it must be that of one of them."""
    with pytest.raises(InputError, match="which the run info2 does not have"):
        validate_paths([flink_more / "info2"], job_graph=flink_logs / "b-lostpart-1" / "rest-337d69de.json")


def test_a_graph_of_one_of_several_jobs_is_used_for_it(flink_more: Path) -> None:
    """The other job's graph comes from where it came before."""
    graph = next((flink_more / "info2").glob("rest-*.json"))
    job = json.loads(graph.read_text())["jid"]
    titles = {v.trace: v.title for v in validate_paths([flink_more / "info2"], job_graph=graph)}
    assert titles.pop(job).endswith(" (job graph given)")
    assert [title.partition(" ")[2] for title in titles.values()] == ["(job graph from the REST answer)"]


def test_a_graph_that_is_none_is_refused(flink_logs: Path, tmp_path: Path) -> None:
    """A file that is no REST answer."""
    broken = tmp_path / "graph.json"
    broken.write_text("{}")
    with pytest.raises(InputError, match="jid"):
        only(flink_logs / "a-taskfail-1", job_graph=broken)


def test_a_model_without_logs_is_refused() -> None:
    """The message names those that have some."""
    with pytest.raises(UsageError, match="no model or binding 'tetris'"):
        binding_for("tetris")


def test_events_are_written_beside_the_verdicts(flink_logs: Path, tmp_path: Path) -> None:
    """One file per run, in the order in which the run is judged."""
    from streamproof.conformance.events import read_events

    only(flink_logs / "d-credit-1", events_dir=tmp_path / "events")
    events = read_events(tmp_path / "events" / "d-credit-1.ndjson")
    assert sum(e.event == "exec.transition" for e in events) == 20
