"""What holds under every scheduler is judged in every run, those included that the failover machine does not follow."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from streamproof.conformance import Event
from streamproof.conformance.validation import validate_paths
from streamproof_specs.failover.flink.adaptive import REASON, restart_breaches
from streamproof_specs.failover.flink.every_scheduler import deployed_to_lost, never

JOB = r"(Job \S+ \([0-9a-f]{32}\) switched from state )"


def edited(run: Path, file: str, pattern: str, changed: str) -> int:
    """Changes the last place of a log that matches; returns its line."""
    path = run / file
    text = path.read_text()
    *_, found = re.finditer(pattern, text)
    path.write_text(text[: found.start()] + found.expand(changed) + text[found.end() :])
    return text.count("\n", 0, found.start()) + 1


@pytest.fixture
def copied(flink_logs: Path, flink_live: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies a run, to be edited."""

    def copy(name: str) -> Path:
        source = flink_logs / name if (flink_logs / name).exists() else flink_live / name
        return Path(shutil.copytree(source, tmp_path / name))

    return copy


def rejected(run: Path) -> tuple[int, str]:
    """The line at which a run is rejected, and why."""
    (verdict,) = validate_paths([run])
    record = verdict.record()
    assert record["verdict"] == "rejected", record["reason"]
    return record["rejection"]["line"], record["reason"]


def test_a_failing_job_does_not_end_in_canceled(copied: Callable[[str], Path]) -> None:
    """It is failed in the end, unless a line says that it is being cancelled."""
    run = copied("m-job-failed-1")
    line = edited(run, "jobmanager.log", JOB + "FAILING to FAILED", r"\1FAILING to CANCELED")
    assert rejected(run) == (line, "a job never switches from FAILING to CANCELED")


@pytest.mark.parametrize("name", ["m-job-failed-1", "a-taskfail-1", "hybrid-full2", "speculative2"])
def test_a_job_that_is_over_has_switched_to_its_final_state(name: str, copied: Callable[[str], Path]) -> None:
    """The Dispatcher says that it is FINISHED or FAILED, but the line of the execution graph is gone."""
    run = copied(name)
    edited(run, "jobmanager.log", r"\n[^\n]* Job \S+ \(\w+\) switched from state \w+ to (?:FINISHED|FAILED)\.", "")
    at, why = rejected(run)
    assert "no line says that it switched to that" in why
    assert re.search(r"Dispatcher .* reached terminal state", (run / "jobmanager.log").read_text().splitlines()[at - 1])


@pytest.mark.parametrize("name", ["adaptive-taskfail", "speculative2", "hybrid-full2"])
def test_what_is_over_stays_over_under_every_scheduler(name: str, copied: Callable[[str], Path]) -> None:
    """A job does not leave its final state, also where the machine does not follow the scheduler."""
    run = copied(name)
    line = edited(run, "jobmanager.log", JOB + r"(\w+) to FINISHED", r"\1FINISHED to RUNNING")
    never = "a job never switches from FINISHED to RUNNING"
    assert rejected(run) == (line, never if name == "adaptive-taskfail" else "the job was RUNNING, not FINISHED")


@pytest.mark.parametrize("name", ["adaptive-taskfail", "hybrid-full2"])
def test_no_task_is_at_work_when_the_job_has_finished(name: str, copied: Callable[[str], Path]) -> None:
    """The line that a task has finished is gone, so that it still runs when the job is FINISHED."""
    run = copied(name)
    edited(run, "jobmanager.log", r"\n[^\n]* switched from RUNNING to FINISHED\.", "")
    assert "RUNNING" in rejected(run)[1]


@pytest.mark.parametrize(
    ("name", "log", "task"),
    [
        ("adaptive-taskfail", "jobmanager.log", "K (1/2)"),
        ("ha-batch-recovery", "jobmanager-2.log", "C (1/2)"),
        ("ha-batch-recovery", "jobmanager.log", "B (2/3)"),
    ],
)
def test_a_task_runs_once_at_a_time_also_in_runs_that_are_not_followed(
    name: str, log: str, task: str, copied: Callable[[str], Path]
) -> None:
    """A second attempt of a subtask is RUNNING beside the first one; without it nothing is rejected."""
    run = copied(name)
    assert {verdict.answer for verdict in validate_paths([run])} == {"inconclusive"}
    lines = (run / log).read_text().splitlines(keepends=True)
    own = re.compile(rf"- {re.escape(task)} \((\w+_\d+)_(\d+)\) switched from (\w+) to (\w+)")
    end, last = next((at, m) for at, line in enumerate(lines) if (m := own.search(line)) and m[4] == "RUNNING")
    attempt = f"{last[1]}_{last[2]}"
    second = [
        re.sub(r"^(\S+ \S+),\d{3}", r"\1,999", line.replace(attempt, f"{last[1]}_{int(last[2]) + 1}"))
        for line in lines[: end + 1]
        if (m := own.search(line)) and f"{m[1]}_{m[2]}" == attempt
    ]
    (run / log).write_text("".join([*lines[: end + 1], *second, *lines[end + 1 :]]))
    line, why = rejected(run)
    assert line == end + 2
    assert why == f"attempt {int(last[2]) + 1} of {task} begins, but attempt {last[2]} is RUNNING"


ADAPTIVE_LIES = [
    (
        r"\n[^\n]* K \(1/2\) [^\n]* from CANCELING to CANCELED\.",
        "",
        "the job is CANCELED, but K (1/2) attempt 0 is CANCELING",
    ),
    (
        r"\n[^\n]* switched from state CANCELLING to CANCELED\.",
        "",
        "an execution graph begins, but in the one before the job is CANCELLING",
    ),
    (
        r"(3297c9e07fa8fc92295f21ea97da8eb1_[0-9a-f]{32}_[01])_1",
        r"\1_0",
        "Source: S (1/2) attempt 0 begins after attempt 0",
    ),
    (
        r"(3297c9e07fa8fc92295f21ea97da8eb1_[0-9a-f]{32}_[01])_1",
        r"\1_2",
        "Source: S (1/2) attempt 2 begins after attempt 0",
    ),
    (
        r"([0-9a-f]{32}_bc764cd8ddf7a0cff126f51c16239658_0)_0",
        r"\1_1",
        "Source: S (1/2) attempt 1 begins as the first one of its task",
    ),
    (r"(K \(2)/2(\) \(3297)", r"\1/3\2", "K has the parallelism 2 in this execution graph"),
    (
        r"( K \(1/2\) [^\n]* from RUNNING to )CANCELING",
        r"\1FINISHED",
        "K (1/2) attempt 0 is FINISHED, but the job is CANCELLING",
    ),
]  # fmt: skip
"""Edits of a run under the adaptive scheduler, and the reason."""


@pytest.mark.parametrize(("line", "instead", "why"), ADAPTIVE_LIES)
def test_a_restart_under_the_adaptive_scheduler_ends_everything(
    line: str, instead: str, why: str, copied: Callable[[str], Path]
) -> None:
    """Before the next execution graph begins, with new attempts; whatever parallelism it has."""
    run = copied("adaptive-taskfail")
    text = (run / "jobmanager.log").read_text()
    edited_text, count = re.subn(line, instead, text)
    assert count
    (run / "jobmanager.log").write_text(edited_text)
    assert rejected(run)[1] == why


FIRST, SECOND, LATER = "3297c9e07fa8fc92295f21ea97da8eb1", "d" * 32, "e" * 32
"""The second execution graph of the run, one that is dropped before it, and one that is dropped after that."""


def with_dropped(run: Path, graphs: Sequence[str]) -> None:
    """Before the second execution graph of a run there are others whose slots are gone when they are to be reserved."""
    log = run / "jobmanager.log"
    lines = log.read_text().splitlines(keepends=True)
    begin = next(at for at, line in enumerate(lines) if f"Created execution graph {FIRST}" in line)
    end = next(at for at in range(begin, len(lines)) if "switched from state CREATED to RUNNING" in lines[at]) + 1
    kept = [line for line in lines[begin:end] if "deploy" not in line.lower()]
    # No line repeats another one, which would be a duplicate.
    timed = [re.sub(r"^(\S+ \S+),\d{3}", rf"\1,00{at}", line) for at in range(len(graphs)) for line in kept]
    dropped = [line.replace(FIRST, graphs[at // len(kept)]) for at, line in enumerate(timed)]
    log.write_text("".join([*lines[:begin], *dropped, *lines[begin:]]))


@pytest.mark.parametrize("graphs", [[SECOND], [SECOND, LATER]])
def test_a_graph_without_slots_is_dropped_and_counts_no_attempts(
    graphs: list[str], copied: Callable[[str], Path]
) -> None:
    """Its attempts remain SCHEDULED without a further line, and the next graph has the same numbers."""
    run = copied("adaptive-taskfail")
    with_dropped(run, graphs)
    (verdict,) = validate_paths([run])
    assert (verdict.answer, verdict.reason) == ("inconclusive", REASON)


def test_a_suspended_jobmaster_remembers_no_attempts(copied: Callable[[str], Path]) -> None:
    """Its successor in the same process numbers them from 0. A graph that deployed a task is not dropped silently."""

    def line(seq: int, event: str, **args: object) -> Event:
        return Event("job", "jm", seq, event, args, line=seq)

    def attempt(seq: int, graph: str, number: int, new: str) -> Event:
        of = {"vertex": "v", "subtask": 0, "task": "v", "parallelism": 1}
        return line(seq, "exec.transition", graph=graph, number=number, new=new, **of)

    def told(*between: Event, number: int) -> list[str]:
        begin = [attempt(1, "a", 0, "SCHEDULED"), line(2, "job.transition", old="CREATED", new="RUNNING")]
        run = [attempt(3, "a", 0, "DEPLOYING"), *between, attempt(9, "b", number, "SCHEDULED")]
        return [why for _, why in restart_breaches([*begin, *run])]

    stop = line(4, "job.transition", old="RUNNING", new="SUSPENDED")
    gone = attempt(5, "a", 0, "CANCELED")
    cancelling = line(4, "job.transition", old="RUNNING", new="CANCELLING")
    cancelled = line(6, "job.transition", old="CANCELLING", new="CANCELED")
    terminal = line(7, "sched.adaptive", new="SUSPENDED")
    assert told(stop, gone, number=0) == told(cancelling, gone, cancelled, number=1) == []
    assert told(cancelling, gone, cancelled, terminal, number=0) == []
    assert told(number=0)[0] == "an execution graph begins, but of the one before v (1/1) attempt 0 is DEPLOYING"
    assert told(stop, gone, number=1) == ["v (1/1) attempt 1 begins as the first one of its task"]
    assert told(cancelling, gone, cancelled, number=0) == ["v (1/1) attempt 0 begins after attempt 0"]


def adaptive_job(rng: random.Random) -> list[Event]:
    """A job of two vertices under a simulated adaptive scheduler, which counts attempts as a `VertexAttemptNumberStore`."""
    found: list[Event] = []
    counts: dict[tuple[str, int], int] = {}

    def line(event: str, **args: object) -> None:
        found.append(Event("job", "jm", len(found), event, args, line=len(found)))

    for graph in range(rng.randint(2, 6)):
        size = rng.randint(1, 3)
        tasks = [(v, n) for v in ("A", "B") for n in range(size)]

        def switch(task: tuple[str, int], new: str, graph: int = graph, size: int = size) -> None:
            of = {"graph": f"g{graph}", "vertex": task[0], "task": task[0], "subtask": task[1], "parallelism": size}
            line("exec.transition", number=counts.get(task, 0), new=new, **of)

        for task in tasks:
            switch(task, "SCHEDULED")
        line("job.transition", old="CREATED", new="RUNNING")
        if rng.random() < 0.3:
            continue  # the slots are gone
        running = [task for task in tasks if rng.random() < 0.8]
        for task in tasks:
            switch(task, "DEPLOYING")
        for task in running:
            switch(task, "RUNNING")
        suspended = rng.random() < 0.2
        line("job.transition", old="RUNNING", new="SUSPENDED" if suspended else "CANCELLING")
        for task in rng.sample(tasks, len(tasks)):
            if not suspended:
                switch(task, "CANCELING")
            switch(task, "CANCELED")
        if suspended:
            counts.clear()
            continue
        line("job.transition", old="CANCELLING", new="CANCELED")
        for task in tasks:
            counts[task] = counts.get(task, 0) + 1
    return found


def test_numbers_of_attempts_in_simulated_adaptive_jobs() -> None:
    """Of 1,000 jobs that drop graphs, change their parallelism and lose their leader no line is rejected, also without their
    beginning, and every change of the number of an attempt's first line is."""
    rng = random.Random(20)
    for _ in range(1000):
        job = adaptive_job(rng)
        assert list(restart_breaches(job)) == []
        at = rng.choice([n for n, e in enumerate(job) if e.args["new"] == "SCHEDULED"])
        begun = next(n for n, e in enumerate(job) if e.event == "exec.transition" and e.args["graph"] != "g0")
        assert list(restart_breaches(job[rng.randrange(begun) :])) == []
        false_event = replace(job[at], args={**job[at].args, "number": job[at].args["number"] + rng.choice([-1, 1, 2])})
        assert (at, True) in {
            (e.seq, "begins" in why) for e, why in restart_breaches([*job[:at], false_event, *job[at + 1 :]])
        }


def test_a_task_runs_where_it_was_deployed(copied: Callable[[str], Path]) -> None:
    """A deployment is said to go to another TaskManager than the one whose log has the attempt."""
    run = copied("b-lostpart-1")
    text = (run / "jobmanager.log").read_text()
    places = sorted(set(re.findall(r"Deploying .* to (\S+) @ ", text)))
    false_events = 0
    for found in list(re.finditer(r"(Deploying .* to )(\S+)( @ )", text))[::3]:
        other = next(tm for tm in places if tm != found[2])
        (run / "jobmanager.log").write_text(text[: found.start(2)] + other + text[found.end(2) :])
        line, why = rejected(run)
        assert line == text.count("\n", 0, found.start()) + 1 or "TaskManager of the attempt" in why
        false_events += 1
    assert false_events > 5


def test_a_disconnected_taskmanager_gets_no_tasks() -> None:
    """Unless it registers again before the job ends; a log that ends before proves nothing."""

    def line(seq: int, event: str, **args: str) -> Event:
        return Event("job", "jm", seq, event, args, line=seq)

    lost = [line(1, "jm.disconnect", tm="tm-1"), line(2, "rm.close", tm="tm-1"), line(3, "exec.deploy", tm="tm-1")]
    back, end = line(4, "rm.register", tm="tm-1"), line(5, "job.transition", old="RUNNING", new="FINISHED")
    assert [(e.line, why.split(",")[0]) for e, why in deployed_to_lost([*lost, end], "job")] == [
        (3, "the task is deployed to tm-1")
    ]
    for correct in (
        [*lost, back, end],
        lost,
        [lost[0], lost[2], end],
        [lost[1], lost[2], end],
        [*lost[:2], back, lost[2], end],
    ):
        assert not list(deployed_to_lost(correct, "job"))


def test_states_of_a_job() -> None:
    """Final states are final; a job that is failing may be cancelled, but a line says so."""
    assert never("FAILING", "CANCELED")
    assert never("FINISHED", "SUSPENDED")
    assert not never("FAILING", "CANCELLING")
    assert not never("CANCELLING", "FAILING")
    assert not never("RUNNING", "SUSPENDED")
