"""Hybrid exchanges: what Flink's scheduler does with them is accepted, on random jobs that a simulation of it has run.

The simulation has the scheduler's own terms, regions that were scheduled and partitions that are tracked, instead of the
machine's, and shares nothing with it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from streamproof.conformance import Event, Plan, RunVerdict, Stream, Task, Unit, judge
from streamproof.conformance.flink import JobGraph as LoggedGraph
from streamproof.conformance.flink.graph import Edge as LoggedEdge
from streamproof.conformance.flink.graph import Vertex as LoggedVertex
from streamproof_specs.failover.flink.decisions import Causes
from streamproof_specs.failover.flink.explain import Shown
from streamproof_specs.failover.flink.jobmanager_log import (
    HIDDEN,
    decisions_at_once,
    decisions_taken,
    translate,
)
from streamproof_specs.failover.flink.recorded_machine import RecordedFailover, recorded_graph, recorded_system

IDS = ("a" * 32, "b" * 32, "d" * 32)
GRAPH = "c" * 32
AT_WORK = ("SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
NEXT = {"SCHEDULED": "DEPLOYING", "DEPLOYING": "INITIALIZING", "INITIALIZING": "RUNNING", "RUNNING": "FINISHED"}
STRATEGY = "org.apache.flink.runtime.scheduler.strategy.PipelinedRegionSchedulingStrategy"
Subtask = tuple[int, int]
Partition = tuple[int, Subtask]
"""The edge that it is read by, and the task that writes it."""


def drawn_edges(rng: random.Random) -> tuple[tuple[int, int, str, str], ...]:
    """The exchanges of a job: source, target, pattern, type."""
    kinds, patterns = ("HYBRID_FULL", "HYBRID_SELECTIVE", "BLOCKING"), ("ALL_TO_ALL", "POINTWISE")
    chain = [(source, source + 1, rng.choice(patterns), rng.choice(kinds)) for source in (0, 1)]
    return tuple(chain + ([(0, 2, rng.choice(patterns), rng.choice(kinds))] if rng.random() < 0.5 else []))


@dataclass
class Scheduler:
    """The default scheduler of one job of three vertices with two tasks each, of which each is a region."""

    rng: random.Random
    edges: tuple[tuple[int, int, str, str], ...]
    events: list[Event] = field(default_factory=list)
    state: dict[Subtask, str] = field(default_factory=lambda: {(v, s): "CREATED" for v in range(3) for s in range(2)})
    number: Counter[Subtask] = field(default_factory=Counter)
    scheduled: set[Subtask] = field(default_factory=set)
    tracked: set[Partition] = field(default_factory=set)
    waiting: set[Subtask] = field(default_factory=set)
    restarts: int = 0
    told: Counter[str] = field(default_factory=Counter)
    """What happened, to know that the runs are worth something."""

    def write(self, event: str, **args: Any) -> None:
        """The next line."""
        self.events.append(Event("job", "jobmanager", len(self.events), event, args, file="jm", line=len(self.events)))

    def turn(self, task: Subtask, new: str, **more: Any) -> None:
        """A transition of the present attempt."""
        old, self.state[task] = self.state[task], new
        self.write("exec.transition", **self.named(task), old=old, new=new, **more)

    def named(self, task: Subtask) -> dict[str, Any]:
        """The arguments that name the present attempt."""
        (vertex, subtask), number = task, self.number[task]
        who = {"task": f"V{vertex}", "parallelism": 2, "graph": GRAPH}
        who |= {"vertex": IDS[vertex], "subtask": subtask, "number": number}
        return {**who, "attempt": f"{GRAPH}_{IDS[vertex]}_{subtask}_{number}"}

    def inputs(self, task: Subtask) -> list[Partition]:
        """The partitions that a task reads."""
        return [
            (at, (source, s))
            for at, (source, target, pattern, _) in enumerate(self.edges)
            for s in (0, 1)
            if target == task[0] and (pattern == "ALL_TO_ALL" or s == task[1])
        ]

    def readers(self, partition: Partition) -> list[Subtask]:
        """The tasks that read a partition."""
        return [task for task in self.state if partition in self.inputs(task)]

    def outputs(self, task: Subtask) -> list[Partition]:
        """The partitions that a task writes."""
        return [(at, task) for at, (source, *_) in enumerate(self.edges) if source == task[0]]

    def start(self) -> None:
        """Schedules every region whose inputs can be consumed, in topological order."""
        for task in self.state:
            consumable = all(
                producer in self.scheduled if self.edges[at][3] != "BLOCKING" else self.state[producer] == "FINISHED"
                for at, producer in self.inputs(task)
            )
            if consumable and task not in self.scheduled:
                self.scheduled.add(task)
                self.turn(task, "SCHEDULED")

    def finish(self, task: Subtask) -> None:
        """A task has finished; what all have consumed is released, although its producer may be at work."""
        self.turn(task, "FINISHED")
        for partition in self.inputs(task):
            if partition in self.tracked and all(self.state[r] == "FINISHED" for r in self.readers(partition)):
                self.tracked.discard(partition)
                self.told["released early"] += self.state[partition[1]] != "FINISHED"
        self.start()

    def risk(self, task: Subtask) -> float:
        """How probably a task fails: most when its readers have finished before it, which decides what is lost."""
        read = [reader for partition in self.outputs(task) for reader in self.readers(partition)]
        return 0.7 if any(self.state[reader] == "FINISHED" for reader in read) else 0.1

    def fail(self, task: Subtask) -> None:
        """Regions to restart: the failed one, producers of what is not tracked, all consumers."""
        self.turn(task, "FAILED", causes=["java.lang.RuntimeException"])
        self.tracked -= set(self.outputs(task))
        chosen, visit = {task}, [task]
        while visit:
            region = visit.pop()
            found = [
                producer
                for at, producer in self.inputs(region)
                if (at, producer) not in self.tracked or self.edges[at][3] == "HYBRID_SELECTIVE"
            ]
            found += [reader for partition in self.outputs(region) for reader in self.readers(partition)]
            kept = [p for at, p in self.inputs(region) if (at, p) in self.tracked and p in found and p not in chosen]
            self.told["read once"] += bool(kept)
            visit += set(found) - chosen
            chosen |= set(found)
        self.waiting = {t for t in chosen if self.state[t] != "CREATED"}
        self.told["producer too"] += any(t[0] < task[0] for t in self.waiting)
        self.told["consumer alone"] += all(t[0] >= task[0] for t in self.waiting) and task[0] > 0
        self.restarts += 1
        self.write("failover.restart", **self.named(task), count=len(self.waiting))
        self.write("job.transition", old="RUNNING", new="RESTARTING")
        for other in sorted(self.waiting):
            if self.state[other] in AT_WORK:
                self.turn(other, "CANCELING")

    def restart(self) -> None:
        """All that were cancelled have ended: their tasks begin anew."""
        for task in self.waiting:
            self.state[task] = "CREATED"
            self.number[task] += 1
            self.tracked -= set(self.outputs(task))
        self.scheduled -= self.waiting
        self.waiting = set()
        self.write("job.transition", old="RESTARTING", new="RUNNING")
        self.start()

    def step(self) -> None:
        """One thing happens."""
        task = self.rng.choice([t for t in self.state if self.state[t] in (*AT_WORK, "CANCELING")])
        state = self.state[task]
        if state == "CANCELING":
            self.turn(task, "CANCELED")
            self.tracked -= set(self.outputs(task))
        elif state != "SCHEDULED" and self.restarts < 2 and not self.waiting and self.rng.random() < self.risk(task):
            self.fail(task)
        elif state == "RUNNING":
            # The report that a producer has finished often comes after those of its readers.
            if (
                any(self.state[r] == "RUNNING" for p in self.outputs(task) for r in self.readers(p))
                and self.rng.random() < 0.9
            ):
                return
            if all(self.state[producer] in ("RUNNING", "FINISHED") for _, producer in self.inputs(task)):
                self.finish(task)
        else:
            self.turn(task, NEXT[state])
            if NEXT[state] == "DEPLOYING":
                self.tracked |= set(self.outputs(task))
                self.write("exec.deploy", **self.named(task), tm="tm-1")

    def run(self) -> Scheduler:
        """The whole job."""
        self.write("job.graph", graph=GRAPH)
        self.write("sched.strategy", strategy=STRATEGY)
        self.write("job.transition", old="CREATED", new="RUNNING")
        self.start()
        while self.waiting or set(self.state.values()) != {"FINISHED"}:
            if self.waiting and not any(self.state[t] == "CANCELING" for t in self.waiting):
                self.restart()
            else:
                self.step()
        self.write("job.transition", old="RUNNING", new="FINISHED")
        return self


def verdict(events: list[Event], edges: tuple[tuple[int, int, str, str], ...]) -> RunVerdict:
    """The verdict on the lines of a JobManager."""
    vertices = tuple(LoggedVertex(i, f"V{at}", 2) for at, i in enumerate(IDS))
    logged = tuple(
        LoggedEdge(IDS[a], IDS[z], pattern, kind, f"{at:032x}") for at, (a, z, pattern, kind) in enumerate(edges)
    )
    recorded = recorded_graph(LoggedGraph("job", "job", vertices, logged, (), True, (), "log"))
    model = RecordedFailover(recorded.graph, decisions_at_once(events), restarts=decisions_taken(events))
    causes = Causes.of(recorded, model, events)
    model.narrow(*causes.needed(events), False)
    lines = translate(recorded, model, causes, Shown(), events)
    main = Task("job", recorded_system(recorded, model), (Stream(lines.observations),), HIDDEN)
    (found,) = judge(Plan("run", (Unit("job", "job", (main,)),), tuple(events)), "failover")
    return found


FEW = (2, 16, 44, 59)
"""Runs with all that is asked for; in the last two, what was released early decides what is restarted."""


@pytest.mark.parametrize("seeds", [FEW, pytest.param(range(400), marks=pytest.mark.long)])
def test_what_the_scheduler_does_is_accepted_and_nothing_else(seeds: Sequence[int]) -> None:
    """Restart sets, the order of scheduling, releases before the producer has finished; lies about the first two."""
    told: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(seed)
        run = Scheduler(rng, drawn_edges(rng)).run()
        told += run.told
        found = verdict(run.events, run.edges)
        assert found.answer == "accepted", (seed, found.reason, found.rejection)
        for at, event in enumerate(run.events):
            if event.event == "failover.restart":
                false_event = replace(event, args={**event.args, "count": event.args["count"] + 1})
                assert (
                    verdict([*run.events[:at], false_event, *run.events[at + 1 :]], run.edges).answer == "rejected"
                ), seed
                break
        scheduled = [n for n, e in enumerate(run.events) if e.args.get("new") == "SCHEDULED"]
        late = next(n for n in scheduled if run.events[n].args["vertex"] == IDS[1])
        early = [e for n, e in enumerate(run.events) if n != late]
        early.insert(scheduled[0], run.events[late])
        assert verdict(early, run.edges).answer == "rejected", seed
    assert told.keys() == {"producer too", "consumer alone", "released early", "read once"}
