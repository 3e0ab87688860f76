"""What logs show of slots is what `slot_pool` allows: its walks, written as lines, are accepted, and defects in lines are
rejected."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

import streamproof_models.slots.pool_variants  # noqa: F401  (declaring a variant registers it)
from shares import share
from streamproof import System
from streamproof.conformance import Event, Plan, RunVerdict, compile_model, judge
from streamproof.conformance.flink import FlinkRun, Process
from streamproof.system.interpreter import Interpreter
from streamproof_models.slots.pool import SlotPool
from streamproof_specs.flink.process_facts import ProcessFacts
from streamproof_specs.slots.flink.binding import slots_of

JOB, GRAPH, VERTEX = "a" * 32, "b" * 32, "c" * 32
TASK = {"graph": GRAPH, "vertex": VERTEX, "task": "A", "parallelism": 1}


@dataclass
class Writer:
    """Writes the steps of `slot_pool` as lines of a JobManager and a TaskManager."""

    lines: dict[str, list[Event]] = field(default_factory=lambda: {"jobmanager": [], "taskmanager": []})
    slots: int = 0
    tasks: int = 0
    requests: int = 0
    alloc: dict[int, str] = field(default_factory=dict)
    """The identifier of the allocation that has a number of the model."""
    deployed: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The task in a slot on the TaskManager, and on the JobMaster."""
    held: dict[int, dict[str, Any]] = field(default_factory=dict)
    request: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.jm("job.graph", graph=GRAPH, job=JOB)
        self.jm("job.transition", name="walk", job=JOB, old="CREATED", new="RUNNING")

    def jm(self, family: str, **args: Any) -> None:
        """A line of the JobManager."""
        events = self.lines["jobmanager"]
        events.append(Event(JOB, "jobmanager", len(events), family, args))

    def te(self, family: str, **args: Any) -> None:
        """A line of the TaskManager."""
        events = self.lines["taskmanager"]
        events.append(Event(JOB, "taskmanager", len(events), family, args))

    def step(self, action: str, a: int, before: Any, after: Any) -> None:
        """The lines of one step about allocation `a`; `before` and `after` give the value of a variable for it."""
        old, new = before("te"), after("te")
        match action:
            case "start_allocation":
                self.slots += 1
                self.alloc[a] = f"{self.slots:032x}"
                self.jm("slot.rm.alloc", alloc=self.alloc[a], tm="tm-0", job=JOB)
                self.jm("slot.rm.pending", alloc=self.alloc[a])
            case "receive_request":
                self.te("slot.tm.request", alloc=self.alloc[a], job=JOB)
                if new == "ALLOCATED":
                    self.te("slot.tm.alloc", alloc=self.alloc[a])
            case "receive_ack" | "receive_available" | "receive_slot_report":
                self.manager(action, a, before("rm"), after("rm"))
            case "offer" | "offer_again":
                self.te("slot.tm.offer", job=JOB)
            case "receive_offer":
                self.jm("slot.jm.offers", offers=[self.alloc[a]], tm="tm-0")
                if before("jm") == "ABSENT" and after("jm") == "FREE":
                    self.jm("slot.jm.match", alloc=self.alloc[a])
            case "receive_answer" if before("answer") == "ACCEPTED":
                if new == "ACTIVE":
                    self.te("slot.tm.activate", alloc=self.alloc[a])
            case "receive_answer" | "receive_free":
                self.free(a, old)
            case "receive_held" if before("held") != "HELD" and old in ("ACTIVE", new) and old != "ALLOCATED":
                if old == "ACTIVE":
                    self.free(a, old)
            case "receive_timeout" if before("timer") == "VALID":
                self.free(a, old)
            case "reserve":
                self.requests += 1
                self.request[a] = f"{self.requests:032x}"
                self.jm("slot.jm.reserve", alloc=self.alloc[a], req=self.request[a])
            case "deploy":
                self.tasks += 1
                attempt = f"{GRAPH}_{VERTEX}_{a}_{self.tasks}"
                task = {"attempt": attempt, "subtask": a, "number": self.tasks, **TASK}
                self.deployed[a] = self.held[a] = task
                self.jm("exec.deploy", **task, tm="tm-0", alloc=self.alloc[a])
                self.te("slot.tm.activate", alloc=self.alloc[a])
                self.te("tm.submit", **task, alloc=self.alloc[a])
            case "finish":
                self.te("tm.final", **self.deployed.pop(a), new="FINISHED")
                self.returned(a, "FINISHED")
            case "abandon" | "release_idle" | "receive_failure" if before("jm") != "ABSENT":
                self.drop(a, before("jm"))
            case "stop_task":
                self.te("tm.final", **self.deployed.pop(a), new="FAILED")
                self.te("slot.tm.free", alloc=self.alloc[a], state="RELEASING", index=a, job=JOB)
            case "disconnect":
                self.drop(a, before("jm"))
                self.jm("jm.disconnect", tm="tm-0", why="TaskManager with id tm-0 is no longer reachable.")
                self.te("tm.closejm", job=JOB)
                if a in self.deployed:
                    self.te("tm.failext", **self.deployed[a], what="fail")
                    self.te("tm.final", **self.deployed.pop(a), new="FAILED")

    def manager(self, action: str, a: int, old: str, new: str) -> None:
        """The ResourceManager's lines."""
        if (old, new) == ("PENDING", "ALLOCATED"):
            self.jm("slot.rm.complete", alloc=self.alloc[a])
        elif new == "UNUSED" and old != new:
            if action != "receive_ack":
                self.jm("slot.rm.freeing", alloc=self.alloc[a], report=action == "receive_slot_report")
            self.jm("slot.rm.freed", alloc=self.alloc[a])

    def free(self, a: int, state: str) -> None:
        """The TaskManager frees a slot."""
        if state != "ABSENT":
            self.te("slot.tm.free", alloc=self.alloc[a], state=state, index=a, job=JOB)
            if a in self.deployed and state != "RELEASING":
                self.te("tm.failext", **self.deployed[a], what="fail")

    def returned(self, a: int, end: str) -> None:
        """The JobMaster's task ends, and its slot can be reserved again."""
        if a in self.held:
            self.jm("exec.transition", **self.held.pop(a), old="RUNNING", new=end)
        self.jm("slot.jm.release", req=self.request[a])
        self.jm("slot.jm.freereserved", alloc=self.alloc[a])

    def drop(self, a: int, state: str) -> None:
        """The JobMaster gives a slot up."""
        if state == "RESERVED":
            self.returned(a, "FAILED")
        self.jm("slot.jm.releasing", alloc=self.alloc[a])


def walk(system: System, seed: int, length: int) -> Writer:
    """The lines of a random walk in which failures are rare."""
    chance, interpreter, writer = random.Random(seed), Interpreter(system), Writer()
    state = chance.choice(list(interpreter.initial_states()))
    for _ in range(length):
        steps = list(interpreter.steps(state))
        if len(state[system.index["te"]]) > 1:
            # A lost connection is one of all slots in lines, and of one slot in the model.
            steps = [s for s in steps if s.instance.action != "disconnect"]
        if not steps:
            break
        rare = ("expire", "disconnect", "offer_again", "lose_free", "lose_available", "send_held", "send_slot_report")
        rare += ("cancel_request", "abandon", "release_idle")
        (step,) = chance.choices(steps, [1 if s.instance.action in rare else 8 for s in steps])
        a = dict(step.instance.args).get("a")
        if isinstance(a, int):
            after = step.state

            def of(values: Any, name: str, a: int = a) -> Any:
                return values[system.index[name]][a]

            writer.step(step.instance.action, a, lambda name, s=state: of(s, name), lambda name, s=after: of(s, name))
        state = step.state
    return writer


def verdict(writer: Writer) -> RunVerdict:
    """The verdict on the lines of a walk."""
    events = tuple(e for lines in writer.lines.values() for e in lines)
    processes = {
        "jobmanager": Process("jobmanager", "jobmanager", None, ("jobmanager.log",), (0,)),
        "taskmanager": Process("taskmanager", "taskmanager", "tm-0", ("taskmanager.log",), (0,)),
    }
    counts = Counter(e.event for e in events)
    run = FlinkRun("walk", events, counts, {}, (), processes, {JOB: "walk"}, {GRAPH: JOB}, version="2.3.0")
    return judge(Plan("walk", (slots_of(run, ProcessFacts.of(run), JOB),), events), "slot_pool")[0]


MODELS = [{}, {"failures": 4}, {"allocations": 2, "slots": 2, "demand": 2, "failures": 3}]


@pytest.mark.parametrize(
    ("number", "seeds"),
    [(0, 5), (1, 5), (2, 4), *(pytest.param(n, 1500, marks=pytest.mark.long) for n in range(3))],
)
def test_walks_of_the_slot_pool_are_accepted(number: int, seeds: int) -> None:
    """Every walk of `slot_pool`, written as lines, is a behaviour of what the lines show."""
    system = compile_model(SlotPool(**MODELS[number]))
    seen = Counter[str]()
    for seed in range(seeds):
        writer = walk(system, seed, 250)
        found = verdict(writer)
        assert found.rejection is None, (seed, found.reason)
        seen.update(e.event for lines in writer.lines.values() for e in lines)
    assert seen["slot.tm.free"] > seeds
    assert seen["tm.submit"] > seeds
    assert seen["tm.failext"] > 0
    assert {"slot.jm.freereserved", "slot.jm.releasing", "slot.rm.freed"} <= seen.keys()


@pytest.mark.parametrize(
    ("variant", "reason"),
    share(
        [
            ("freed-with-task", "for it and RELEASING on its TaskManager"),
            ("pending-freed", "is PENDING for the ResourceManager, not ALLOCATED"),
        ],
        2,
    ),
)
def test_walks_of_variants_are_rejected(variant: str, reason: str) -> None:
    """A defect that lines show is found by them. Those of the other variants are in messages and in what never happens."""
    system = compile_model(SlotPool.build(variant, failures=2))
    reasons = (verdict(walk(system, seed, 150)).reason or "" for seed in range(20))
    assert any(reason in text for text in reasons)


@pytest.mark.parametrize("offers", [1, 2])
def test_an_offer_that_is_repeated_may_arrive_after_the_slot_was_returned(offers: int) -> None:
    """The answer to the first one came too late for the TaskExecutor; the JobMaster accepts both. One offer counts once."""
    slot, writer = "1" * 32, Writer()
    writer.jm("slot.rm.alloc", alloc=slot, tm="tm-0", job=JOB)
    writer.te("slot.tm.request", alloc=slot, job=JOB)
    writer.te("slot.tm.alloc", alloc=slot)
    for _ in range(offers):
        writer.te("slot.tm.offer", job=JOB)
    for last in (False, True):
        writer.jm("slot.jm.offers", offers=[slot], tm="tm-0")
        writer.jm("slot.jm.match", alloc=slot)
        if not last:
            writer.jm("slot.jm.releasing", alloc=slot)
    found = verdict(writer)
    assert (found.rejection is None) is (offers == 2), found.reason
