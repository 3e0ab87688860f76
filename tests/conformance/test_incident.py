"""``streamproof incident``: what happened, by recorded runs, logs of a second JobManager, parts of logs, public reports."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import streamproof
from streamproof.base.text import text
from streamproof.cli.verbs import run
from streamproof.conformance import Happening, JobHistory, RunVerdict, validate_paths
from streamproof.conformance.history import seconds_of
from streamproof.conformance.incident import Incident, IncidentEntry, LostWork, grouped, incident_lines, incidents
from streamproof.report.incident_page import incident_page

MODELS = ("failover", "checkpoints")
"""The models that judge what is explained; `incident` itself asks all."""


@cache
def explained(folder: Path) -> tuple[Incident, ...]:
    """The incidents of a run."""
    return incidents(verdict for model in MODELS for verdict in validate_paths([folder], model=model))


def only(folder: Path) -> tuple[Incident, str]:
    """The incident of a run of one job, and its text on one line."""
    (found,) = explained(folder)
    return found, " ".join(text(incident_lines([found]), 10_000).split())


@pytest.fixture
def found(request: pytest.FixtureRequest) -> Any:
    """From an archive and the name of a run: its incident and the text."""
    return lambda archive, run: only(request.getfixturevalue(f"flink_{archive}") / run)


def test_a_lost_taskmanager_with_what_it_held(found: Any) -> None:
    """In the order of events: the loss, the failure with its message, a decision for what ran there, a reader that misses a
    lost result, and the decision that runs its producers again; with times, lost work, and what is by design."""
    incident, said = found("versions", "v120-lostpart")
    kinds = [entry.happening.kind for entry in incident.entries if entry.happening.kind != "job"]
    assert kinds[:3] == ["lost", "failure", "decision"]
    assert kinds.count("decision") == 2
    decisions = [entry for entry in incident.entries if entry.recovery is not None]
    assert [len(entry.recovery.tasks or ()) for entry in decisions if entry.recovery] == [1, 8]
    assert [entry.right for entry in decisions] == [True, True]
    assert decisions[1].discarded is not None
    assert decisions[1].discarded.attempts == 8
    assert [name for name, _ in decisions[1].phases][-1] == "all running again"
    ends = [end for _, end in decisions[1].phases]
    assert ends == sorted(ends)
    assert "it held " in said
    assert (
        "by design: the JobMaster fails the tasks of a lost TaskManager and decides before it forgets the results"
        in said
    )
    assert "which is lost" in said
    assert "by design: a lost partition is noticed only when a reader misses it" in said
    assert "2 restarts; finally the job is FINISHED" in incident.headline


def test_restores_say_how_much_work_is_repeated(found: Any) -> None:
    """Without a checkpoint the running time of each attempt; with one, that since it was triggered, by the logged times."""
    incident, said = found("versions", "v120-ckfail")
    history = next(v.history for v in incident.verdicts if v.history)
    triggered = seconds_of("2026-11-29T07:50:15.037")
    assert triggered is not None
    for number, since, entry in zip((0, 1), (0.0, triggered), [e for e in incident.entries if e.recovery], strict=True):
        work = []
        for attempt in (a for a in history.attempts if a.number == number):
            at = {state: seconds_of(text) or 0.0 for state, text in attempt.states}
            work.append(at.get("CANCELING", at.get("FAILED", 0.0)) - max(at["RUNNING"], since))
        assert entry.discarded == LostWork(8, 0, pytest.approx(sum(work)), pytest.approx(max(work)), number)
        assert min(work) > 0
    restored = [entry for entry in incident.entries if entry.happening.kind == "restored"]
    assert [entry.right for entry in restored] == [True, True]
    assert "no checkpoint is found: what restarts begins without state" in said
    assert "done again: the work of 8 attempts: 5.0 s of running in total, the longest 1.8 s" in said
    assert "checkpoint 1 is restored" in said
    assert (
        "done again: the work of 8 attempts, after checkpoint 1: 3.6 s of running in total, the longest 465 ms" in said
    )
    assert (
        "checkpoint 2 fails: org.apache.flink.runtime.checkpoint.CheckpointException: Checkpoint Coordinator is" in said
    )
    assert "failed task: K (2/3) in the region of the failed task: Source: S (1/2), Source: S (2/2), K (1/3)" in said
    assert "RuntimeException: injected failure: K subtask 1 attempt 0" in incident.headline


def test_a_tail_does_not_show_what_a_lost_taskmanager_had(tmp_path: Path) -> None:
    """No line before the loss speaks of its tasks; nothing is claimed of them. The cause of a suspension is shown."""
    head, job, attempt = "2024-03-04 10:01:20,001 INFO  org.apache.flink.runtime.", "0c" * 16, "3" * 32 + "_" + "b" * 32
    lines = (
        "resourcemanager.active.ActiveResourceManager - Closing TaskExecutor connection tm-3 because: Pod terminated",
        f"executiongraph.ExecutionGraph - S (1/1) ({attempt}_0_1) switched from RUNNING to FAILED on tm-3 @ h (dataPort=1).",
        f"jobmaster.JobMaster - 1 tasks will be restarted to recover the failed task {attempt}_0_1.",
        f"executiongraph.ExecutionGraph - Job orders ({job}) switched from state RUNNING to SUSPENDED.",
    )
    text = "".join(f"{head}{line}\n" for line in lines)
    (tmp_path / "jobmanager.log").write_text(
        f"{text}org.apache.flink.util.FlinkException: stopped.\n", encoding="utf-8"
    )
    _, said = only(tmp_path)
    assert "the log does not show which tasks it had" in said
    assert "the job is SUSPENDED: org.apache.flink.util.FlinkException: stopped." in said


def test_logs_of_a_second_jobmanager(found: Any) -> None:
    """The restored checkpoint is older than the log; decisions are open, with the reason, and restores are judged."""
    incident, said = found("versions", "ha-second-jm")
    assert "checkpoint 10 is restored" in said
    assert "it was triggered before the log begins" in said
    judged = {entry.happening.kind: entry for entry in incident.entries}
    assert judged["restored"].right is True
    assert judged["decision"].right is None
    assert "not judged: no log has the submission of the job" in (judged["decision"].judgement or "")


def test_a_part_of_an_adaptive_log(found: Any) -> None:
    """Each new execution graph is named; nothing is said of what came before."""
    incident, said = found("versions", "adaptive-head")
    assert said.count("the job is RUNNING again, with a new execution graph") == 3
    assert not incident.waits


def test_a_refused_job_has_its_reason(flink_versions: Path) -> None:
    """The headline is the cause that the log gives."""
    headlines = [incident.headline for incident in explained(flink_versions / "refused-job")]
    assert any("JobInitializationException: Could not start the JobMaster" in headline for headline in headlines)


def test_a_loop_that_fails(found: Any) -> None:
    """One restart, as the protocol requires."""
    incident, said = found("versions", "v120-iterate")
    assert [entry.right for entry in incident.entries if entry.recovery] == [True]
    assert "injected failure in loop" in said


def test_finished_work_that_is_discarded(found: Any) -> None:
    """A lost event to an operator fails a task that has finished: by design, with the place of its end."""
    incident, _ = found("public", "event-lost-2.1")
    (lost,) = [entry.happening for entry in incident.entries if entry.happening.kind == "discarded"]
    assert "Source: data[1] (1/2)#0 had FINISHED on tm-1 (node-1) 0.090 s before the JobManager fails it" in lost.text
    assert lost.facts[0].endswith("taskmanager.log:11")
    assert lost.designed is not None
    assert "An OperatorEvent from an OperatorCoordinator to a task was lost" in incident.headline


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("checkpoints-1.12", "checkpoint 1 is restored"),
        (
            "checkpoints-1.9",
            "the job is FAILING: org.apache.flink.util.FlinkRuntimeException: Exceeded checkpoint tolerable",
        ),
        ("excerpt-1.12", "the logs show no state of the job and no failure"),
        ("excerpt-1.20", "Custom Source (1/1)#1 by the TaskManager's log; no log of a JobManager shows the end"),
        ("json-1.11", "CANCELING, waits for its TaskManager to end it: KEYED -> MAP -> Sink: OUT (2/10)"),
        ("single-vertex", "the log shows no failure of the job; finally the job is FINISHED"),
        ("standalone-1.14", "the log shows no failure of the job; finally the job is FINISHED"),
    ],
)
def test_public_reports(flink_public: Path, run: str, said: str) -> None:
    """Nothing is claimed that an excerpt does not show: no task is never scheduled in a part of a log."""
    all_of_them = explained(flink_public / run)
    shown = " ".join(text(incident_lines(all_of_them), 10_000).split())
    assert said in shown
    assert "never scheduled" not in shown
    assert not any(entry.right is False for incident in all_of_them for entry in incident.entries)


def test_a_hang_is_explained(found: Any) -> None:
    """With what waits for what, and that Flink leaves such circles."""
    incident, said = found("live", "region-cycle")
    assert len(incident.hangs) == 1
    assert incident.headline.startswith(
        "it hangs: no task of a circle of regions was ever scheduled: region {Source: A"
    )
    assert "by design: Flink merges regions that wait for each other inside one logical region only" in said
    assert [note.page for note in incident.designed] == ["flink-deviations.md#failover-flip-1-phase-2"]


def test_a_taskmanager_that_is_not_needed_is_no_loss(found: Any) -> None:
    """The JobMaster disconnects one without slots for the job."""
    incident, _ = found("live", "speculative2")
    assert "lost" not in {entry.happening.kind for entry in incident.entries}


def test_a_lost_jobmanager_has_the_taskmanagers_that_miss_it(found: Any) -> None:
    """The JobManager's log ends; the tasks fail and the TaskManagers end by their own logs, and the job's state is old."""
    incident, said = found("logs", "g-jmloss-1")
    assert incident.headline == (
        "it began with: the JobManager is gone: its log ends; no restart; the last known state of the job is RUNNING"
    )
    assert "tm-0 loses its connection to the JobManager" in said
    failures = [e.happening.text for e in incident.entries if e.happening.kind == "failure"]
    assert len(failures) == 4
    assert all("FlinkException: Disconnect from JobManager responsible" in text for text in failures)
    ends = [e.happening for e in incident.entries if "ends itself: " in e.happening.text]
    assert {end.process for end in ends} == {"tm-0", "tm-1"}
    assert all("RegistrationTimeoutException: Could not register" in end.text for end in ends)
    assert not incident.waits
    history = next(v.history for v in incident.verdicts if v.history)
    assert sum(attempt.states[-1][0] == "FAILED" for attempt in history.attempts) == 4


def test_a_taskmanager_that_is_lost_after_the_end_is_named(found: Any) -> None:
    """It is no cause of anything."""
    incident, _ = found("more", "sigstop")
    assert incident.headline == (
        "the log shows no failure of the job; finally the job is FINISHED; after its end: TaskManager tm-0 is silent: its"
        " heartbeat timed out"
    )


@pytest.mark.long
def test_what_many_regions_do_alike_is_said_once(found: Any) -> None:
    """Twelve regions of one lost TaskManager; the JSON has all, and the work of all is added up."""
    incident, said = found("live", "tm12-kill")
    decisions = [entry for entry in incident.entries if entry.happening.kind == "decision"]
    assert len(decisions) == 12
    assert said.count("the JobManager restarts 3 tasks") == said.count("checkpoint 7 is restored") == 1
    assert said.count(" 12 times, the last ") == 3
    assert f"done again: the work of 36 attempts, after checkpoint 7: {_total(decisions)} s of running" in said


def _total(decisions: list[IncidentEntry]) -> str:
    return f"{sum(entry.discarded.seconds for entry in decisions if entry.discarded):.1f}"


def test_restarts_one_after_the_other_are_not_one(found: Any) -> None:
    """The same task fails three times, with the same set: three decisions, each with its own work."""
    incident, said = found("live", "ckpt-expo")
    assert said.count("the JobManager restarts 6 tasks, because K (1/2)") == 3
    lost = [entry.discarded for entry in incident.entries if entry.discarded]
    assert [one.checkpoint for one in lost] == [0, 0, 0]
    assert all(0 < one.longest < 1 for one in lost[1:])


@pytest.mark.parametrize(("shown", "right"), [((), None), (("WARN", 2), True), (("INFO", 2), False)])
def test_the_latest_checkpoint_before_the_log(
    shown: tuple[str, int] | tuple[()], right: bool | None, flink_versions: Path, tmp_path: Path
) -> None:
    """Without a line about the end of checkpoint 2 it is open which one was the latest; with one, it is judged."""
    folder = Path(shutil.copytree(flink_versions / "v120-ckfail", tmp_path / "run"))
    log = folder / "jobmanager.log"
    lines = log.read_text().splitlines(keepends=True)
    at = next(n for n, text in enumerate(lines) if "K (2/3)#1" in text or "attempt 1" in text)
    part = [text for text in lines[at:] if "Failed to trigger or complete checkpoint 2" not in text or "WARN" in shown]
    if "INFO" in shown:
        before = [text for text in lines if "Triggering checkpoint 2 " in text]
        done = [text.replace("checkpoint 1 ", "checkpoint 2 ") for text in lines if "Completed checkpoint 1 " in text]
        part = before + done + part
    log.write_text("".join(part))
    (verdict,) = validate_paths([folder], model="checkpoints")
    (incident,) = incidents([*validate_paths([folder], model="failover"), verdict])
    (restored,) = [entry for entry in incident.entries if entry.happening.kind == "restored"]
    assert restored.right is right
    open_ = "whether checkpoint 1 was the latest one when the job was restored: no line shows how checkpoint 2 ended"
    assert (open_ in (verdict.reason or "")) is (right is None)
    assert (restored.judgement == f"not judged: {open_}") is (right is None)
    assert (verdict.answer == "rejected") is (right is False)


def test_a_rejected_decision_is_wrong_at_its_line(flink_logs: Path, tmp_path: Path) -> None:
    """A false number of tasks: the entry of that line has the message of the rejection, and no entry after it is right."""
    folder = Path(shutil.copytree(flink_logs / "b-lostpart-1", tmp_path / "run"))
    log = folder / "jobmanager.log"
    log.write_text(log.read_text().replace(" 10 tasks will be restarted", " 9 tasks will be restarted"))
    (incident,) = incidents(validate_paths([folder]))
    first, second = [entry for entry in incident.entries if entry.happening.kind == "decision"]
    assert (first.right, second.right) == (None, False)
    assert "the log restarts 9 tasks, the protocol 10" in (second.judgement or "")
    assert not any(entry.right for entry in incident.entries)


def test_every_rejected_line_is_an_entry(flink_logs: Path, tmp_path: Path) -> None:
    """Of the job and of an attempt on a TaskManager: at their places, with the messages of the verdict."""
    folder = Path(shutil.copytree(flink_logs / "b-lostpart-1", tmp_path / "run"))
    for name, old, new in (
        ("taskmanager-1.log", "INITIALIZING to RUNNING", "DEPLOYING to RUNNING"),
        ("jobmanager.log", "from state RUNNING to FINISHED", "from state RESTARTING to FINISHED"),
    ):
        log = folder / name
        log.write_text(log.read_text().replace(old, new, 1))
    verdicts = validate_paths([folder])
    (incident,) = incidents(verdicts)
    wrong = {(e.happening.file, e.happening.line): e.judgement for e in incident.entries if e.right is False}
    rejected = [((event.file, event.line), message) for event, message in verdicts[0].rejected if event is not None]
    assert wrong == dict(reversed(rejected)), "of several messages about a line the first"
    assert {Path(file or "").name for file, _ in wrong} == {"taskmanager-1.log", "jobmanager.log"}


def test_text_of_logs_is_escaped(flink_versions: Path, tmp_path: Path) -> None:
    """Messages with markup and control characters, on the page and on a terminal."""
    folder = Path(shutil.copytree(flink_versions / "v120-ckfail", tmp_path / "run"))
    log = folder / "jobmanager.log"
    log.write_text(log.read_text().replace("injected failure", "<script>alert(1)</script> \x1b[31m&amp;"))
    found = incidents(validate_paths([folder]))
    page = incident_page(found)
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\x1b" not in page
    assert page.count("<h4>Job graph") == 1


def test_a_history_without_times_and_dates_is_explained() -> None:
    """No phases, no lost work, and a page without a time line; the order is that of the lines, past midnight too."""
    happenings = (
        Happening("job", "07:50:09.158", "the job is RUNNING"),
        Happening("failure", None, "A (1/1)#0 fails"),
        Happening("decision", "00:00:10.000", "the JobManager restarts 1 task"),
    )
    history = JobHistory((), (), (("RUNNING", "07:50:09.158"),), (), (), happenings)
    found = incidents([RunVerdict("run", "job", "failover", "inconclusive", "why; more", history=history)])
    assert [entry.happening.kind for entry in found[0].entries] == ["job", "failure", "decision"]
    assert found[0].entries[2].judgement == "not judged: why"
    assert "A (1/1)#0 fails" in incident_page(found)
    json.dumps([incident.record() for incident in found], allow_nan=False)


def test_equal_failures_are_grouped_within_a_burst() -> None:
    """Two failures and two restores, and again after the next failure; the loss of a TaskManager begins another burst."""

    def entry(kind: str, text: str) -> IncidentEntry:
        return IncidentEntry(Happening(kind, None, text))

    first, second = entry("failure", "A (1/2)#0 fails on tm: E"), entry("failure", "A (2/2)#0 fails on tm: E")
    restarts, runs = entry("job", "the job is RESTARTING"), entry("job", "the job is RUNNING")
    restored, lost = entry("restored", "checkpoint 1 is restored"), entry("lost", "TaskManager tm is lost")
    entries = [first, restarts, second, restored, runs, restored, second, lost, second]
    assert grouped(entries) == [[first, second], [restarts], [restored, restored], [runs], [second], [lost], [second]]


def test_the_command_ends_as_validate_does(
    capsys: pytest.CaptureFixture[str], flink_live: Path, flink_logs: Path, tmp_path: Path
) -> None:
    """13 for a hang, 0 for a correct run, 2 for a folder without a job; the JSON has the entries with their judgements."""
    assert run(["incident", str(flink_live / "region-cycle")]) == 13
    capsys.readouterr()
    page = tmp_path / "page.html"
    assert run(["incident", str(flink_logs / "a-taskfail-1"), "--json", "-", "--html", str(page)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], answer["exit_code"]) == ("streamproof.incident/1", 0)
    assert json.loads(json.dumps(streamproof.incident(flink_logs / "a-taskfail-1").record())) == answer
    decisions = [h for h in answer["incidents"][0]["happenings"] if h["kind"] == "decision"]
    assert [decision["right"] for decision in decisions] == [True, True]
    assert "What happened" in page.read_text(encoding="utf-8")
    (tmp_path / "empty").mkdir()
    assert run(["incident", str(tmp_path / "empty")]) == 2
