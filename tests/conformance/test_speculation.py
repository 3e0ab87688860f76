"""Speculative execution: what the scheduler does with attempts that race is accepted, what it never does is rejected.

Random runs come from a simulation of the scheduler that shares nothing with the binding: two tasks, and two that read what
both write, with attempts that are announced, win, lose, fail alone, and fail as the last one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from streamproof.conformance import Event, Plan, RunVerdict, Stream, Task, Unit, judge
from streamproof.conformance.flink import JobGraph as LoggedGraph
from streamproof.conformance.flink.graph import Edge as LoggedEdge
from streamproof.conformance.flink.graph import Vertex as LoggedVertex
from streamproof.conformance.validation import validate_paths
from streamproof_specs.failover.flink.decisions import Causes
from streamproof_specs.failover.flink.explain import Shown
from streamproof_specs.failover.flink.jobmanager_log import HIDDEN, decisions_at_once, decisions_taken, translate
from streamproof_specs.failover.flink.recorded_machine import RecordedFailover, recorded_graph, recorded_system
from streamproof_specs.failover.flink.speculation import Groups
from streamproof_specs.flink.scope import contradicted

IDS = ("a" * 32, "b" * 32)
GRAPH = "c" * 32
AT_WORK = ("SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
NEXT = {"SCHEDULED": "DEPLOYING", "DEPLOYING": "INITIALIZING", "INITIALIZING": "RUNNING", "RUNNING": "FINISHED"}
Subtask = tuple[int, int]


@dataclass
class Scheduler:
    """The scheduler of one job, with what it writes."""

    rng: random.Random
    events: list[Event] = field(default_factory=list)
    announced: Counter[tuple[str, int]] = field(default_factory=Counter)
    attempts: dict[Subtask, list[str]] = field(default_factory=lambda: {(v, s): [] for v in (0, 1) for s in (0, 1)})
    present: dict[Subtask, set[int]] = field(default_factory=lambda: {(v, s): set() for v in (0, 1) for s in (0, 1)})
    restarts: int = 0
    waiting: set[Subtask] = field(default_factory=set)
    told: list[str] = field(default_factory=list)
    """What happened, to know that the runs are worth something."""

    def write(self, event: str, **args: Any) -> None:
        """The next line."""
        self.events.append(Event("job", "jobmanager", len(self.events), event, args, file="jm", line=len(self.events)))

    def turn(self, task: Subtask, number: int, new: str, **more: Any) -> None:
        """A transition of one attempt."""
        old = self.attempts[task][number] if number < len(self.attempts[task]) else "CREATED"
        if number == len(self.attempts[task]):
            self.attempts[task].append(new)
        self.attempts[task][number] = new
        self.write("exec.transition", **self.named(task, number), old=old, new=new, **more)

    def named(self, task: Subtask, number: int) -> dict[str, Any]:
        """The arguments that name an attempt."""
        vertex, subtask = task
        attempt = f"{GRAPH}_{IDS[vertex]}_{subtask}_{number}"
        who = {"task": f"V{vertex}", "parallelism": 2, "attempt": attempt, "graph": GRAPH}
        return {**who, "vertex": IDS[vertex], "subtask": subtask, "number": number}

    def states(self, task: Subtask) -> list[tuple[int, str]]:
        """The present attempts."""
        return [(n, self.attempts[task][n]) for n in sorted(self.present[task])]

    def finished(self, task: Subtask) -> bool:
        """Whether a present attempt has finished."""
        return any(state == "FINISHED" for _, state in self.states(task))

    def begin(self, task: Subtask) -> None:
        """A new attempt."""
        number = len(self.attempts[task])
        self.present[task].add(number)
        self.turn(task, number, "SCHEDULED")

    def start(self) -> None:
        """Everything that can be scheduled is."""
        for task in self.attempts:
            ready = task[0] == 0 or all(self.finished((0, s)) for s in (0, 1))
            if ready and not self.present[task] and task not in self.waiting:
                self.begin(task)

    def may_fail(self, task: Subtask, number: int) -> bool:
        """Whether a failure restarts this task alone, because the output of the others is tracked, or nothing."""
        deployed = AT_WORK[1:]
        others = [state for n, state in self.states(task) if n != number and state in AT_WORK]
        if self.attempts[task][number] not in deployed or (others and not set(others) & set(deployed)):
            return False
        beside = [state for _, state in self.states((0, 1 - task[1]))] if task[0] == 0 else ["FINISHED"]
        return any(state in (*deployed, "FINISHED") for state in beside)

    def fail(self, task: Subtask, number: int) -> None:
        """One attempt fails; the task is restarted if no other may finish."""
        self.turn(task, number, "FAILED", causes=["java.lang.RuntimeException"])
        if any(state in AT_WORK for _, state in self.states(task)):
            self.told.append("alone")
            return
        self.told.append("restart")
        self.restarts += 1
        self.write("failover.restart", **self.named(task, number), count=1)
        if not self.waiting:
            self.write("job.transition", old="RUNNING", new="RESTARTING")
        self.waiting.add(task)

    def restart(self) -> None:
        """The tasks that wait for their restart begin again."""
        for task in self.waiting:
            self.present[task] = set()
        self.waiting.clear()
        self.write("job.transition", old="RESTARTING", new="RUNNING")
        self.start()

    def step(self) -> None:
        """One thing happens."""
        if self.waiting and self.rng.random() < 0.5:
            self.restart()
            return
        choices = [(t, n, s) for t in self.attempts for n, s in self.states(t) if s in (*AT_WORK, "CANCELING")]
        if not choices:
            return
        task, number, state = self.rng.choice(choices)
        if state == "CANCELING":
            self.turn(task, number, "CANCELED")
        elif state == "RUNNING" and len(self.present[task]) < 3 and self.rng.random() < 0.7:
            self.announced[IDS[task[0]], task[1]] += 1
            self.begin(task)
        elif self.restarts < 2 and self.rng.random() < 0.2 and self.may_fail(task, number):
            self.fail(task, number)
        else:
            self.turn(task, number, NEXT[state])
            if NEXT[state] == "DEPLOYING":
                self.write("exec.deploy", **self.named(task, number), tm=f"tm-{number}")
            if NEXT[state] == "FINISHED":
                for other, at in self.states(task):
                    if at in AT_WORK:
                        self.told.append("beaten" if other > number else "overtaken")
                        self.turn(task, other, "CANCELING")
                self.start()

    def run(self) -> Scheduler:
        """The whole job."""
        self.write("job.graph", graph=GRAPH)
        self.write("job.transition", old="CREATED", new="RUNNING")
        self.start()
        while self.waiting or not all(self.finished(t) for t in self.attempts):
            self.step()
        self.write("job.transition", old="RUNNING", new="FINISHED")
        return self


def verdict(events: list[Event], announced: dict[tuple[str, int], int]) -> RunVerdict:
    """The verdict on the lines of a JobManager."""
    vertices = tuple(LoggedVertex(i, f"V{at}", 2) for at, i in enumerate(IDS))
    edges = (LoggedEdge(*IDS, "ALL_TO_ALL", "BLOCKING", "d" * 32),)
    recorded = recorded_graph(LoggedGraph("job", "job", vertices, edges, (), True, (), "log"))
    groups = Groups.of(events, announced)
    at_once, taken = decisions_at_once(groups.events), decisions_taken(groups.events)
    model = RecordedFailover(recorded.graph, at_once, restarts=taken)
    causes = Causes.of(recorded, model, events)
    model.narrow(*causes.needed(groups.events), False)
    lines = translate(recorded, model, causes, Shown(), groups.events)
    main = Task("job", recorded_system(recorded, model), (Stream(groups.restored(lines.observations)),), HIDDEN)
    wrong = [contradicted("job", e, why) for e, why in groups.breaches]  # as the binding does
    (found,) = judge(Plan("run", (Unit("job", "job", (main, *wrong)),), tuple(events)), "failover")
    return found


def changed(event: Event, **args: Any) -> Event:
    """A line with other arguments."""
    return replace(event, args={**event.args, **args})


def lies(run: Scheduler) -> Iterator[tuple[str, list[Event], dict[tuple[str, int], int]]]:
    """What the scheduler never writes, made from what it has written."""
    events, announced = run.events, dict(run.announced)
    for subtask in announced:
        yield "an attempt without an announcement", events, {**announced, subtask: announced[subtask] - 1}
    answered = {e.args["attempt"] for e in events if e.event == "failover.restart"}
    for at, event in enumerate(events):
        new = event.args.get("new")
        if event.event == "failover.restart":
            yield "a failure without its restart", events[:at] + events[at + 1 :], announced
        if event.event != "exec.transition":
            continue
        if new == "CANCELING":
            won = [*events[:at], changed(event, old="RUNNING", new="FINISHED"), *events[at + 1 :]]
            yield "a second attempt finishes", won, announced
        if new == "FAILED" and event.args["attempt"] not in answered:
            args = {key: value for key, value in event.args.items() if key not in ("old", "new", "causes")}
            more = replace(event, event="failover.restart", args={**args, "count": 1}, seq=10_000)
            yield "a restart for an attempt that fails alone", [*events[: at + 1], more, *events[at + 1 :]], announced
        if new == "SCHEDULED" and event.args["number"] > 0:
            name = event.args["attempt"].rpartition("_")[0]
            higher = [
                changed(e, number=e.args["number"] + 1, attempt=f"{name}_{e.args['number'] + 1}")
                if e.args.get("attempt", "").rpartition("_")[0] == name and e.args["number"] >= event.args["number"]
                else e
                for e in events
            ]
            yield "a number is left out", higher, announced
        if new == "FINISHED" and event.args["vertex"] == IDS[0]:
            reader = next((n for n, e in enumerate(events) if e.args.get("vertex") == IDS[1]), None)
            if reader is not None and reader > at and not run.restarts:
                early = [*events[:at], events[reader], *events[at:reader], *events[reader + 1 :]]
                yield "a reader is scheduled early", early, announced


def compare(seeds: range) -> tuple[Counter[str], Counter[str]]:
    """What happened in correct runs, all accepted; how often each kind of lie was told, all rejected."""
    happened: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for seed in seeds:
        run = Scheduler(random.Random(seed)).run()
        happened.update(run.told)
        found = verdict(run.events, run.announced)
        assert found.answer == "accepted", (seed, found.reason, found.rejection)
        kinds = list(lies(run))
        random.Random(seed).shuffle(kinds)
        for kind, events, announced in {kind: (kind, *rest) for kind, *rest in kinds}.values():
            assert verdict(events, announced).answer == "rejected", (seed, kind)
            told[kind] += 1
    return happened, told


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 600), marks=pytest.mark.long)])
def test_what_the_scheduler_does_is_accepted_and_nothing_else(seeds: range) -> None:
    """Attempts win, lose, fail alone and as the last one; six kinds of lies about them."""
    happened, told = compare(seeds)
    assert happened.keys() == {"alone", "restart", "beaten", "overtaken"}
    assert len(told) == 6


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (
            lambda text: text.replace("is detected as a slow vertex", "is looked at"),
            "attempt 1 of B (2/3) begins, but attempt 0 is RUNNING",
        ),
        (
            lambda text: text.replace("_1_0) switched from RUNNING to CANCELING", "_1_0) switched from RUNNING to FINISHED"),
            "attempt 0 of B (2/3) is FINISHED after attempt 1 has finished",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("answers", [True, False], ids=["with-graph", "without-graph"])
def test_lies_about_a_recorded_race(
    edit: Callable[[str], str], reason: str, answers: bool, flink_live: Path, tmp_path: Path
) -> None:
    """In the log itself, at the line; with REST's answer about the job graph and without it."""
    run = race(flink_live, tmp_path / "run", edit, answers=answers)
    (found,) = validate_paths([run])
    assert found.answer == "rejected"
    assert str(found.reason).startswith(reason)


@pytest.mark.parametrize(("answers", "expected"), [(True, "accepted"), (False, "inconclusive")])
def test_a_recorded_race_is_not_rejected(answers: bool, expected: str, flink_live: Path, tmp_path: Path) -> None:
    """The log alone does not tell the job graph; its lines are judged nevertheless."""
    (found,) = validate_paths([race(flink_live, tmp_path / "run", str, answers=answers)])
    assert (found.answer, found.rejection) == (expected, None)
    assert found.matched > 100


def race(runs: Path, copy: Path, edit: Callable[[str], str], *, answers: bool) -> Path:
    """A copy of the recorded run, with an edited JobManager's log, and with REST's answers or without them."""
    copy.mkdir()
    for file in (runs / "speculative2").iterdir():
        if answers or not file.name.startswith("rest"):
            (copy / file.name).write_text(edit(file.read_text()) if file.name == "jobmanager.log" else file.read_text())
    return copy
