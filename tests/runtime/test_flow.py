"""Flow control: items of a channel never exceed its buffers, keep their order, and all arrive, in every simulated run."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from runtime_runs import example, verdicts
from streamproof_runtime import messages as m
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.records import size
from streamproof_runtime.jobs.scopes import Scope
from streamproof_runtime.messages import Message
from streamproof_runtime.processes.file_partitions import FileSpill
from streamproof_runtime.simulator.simulation import WINDOWS, Simulation
from streamproof_runtime.slots.slot_events import SlotEvents
from streamproof_runtime.subtasks.batons import Baton
from streamproof_runtime.subtasks.buffers import BYTES, RECORDS
from streamproof_runtime.subtasks.flow import BUFFERS, Gate, Outputs
from streamproof_runtime.subtasks.items import END, Item
from streamproof_runtime.subtasks.output_buffers import OutputBuffers
from streamproof_runtime.subtasks.spilling import MemorySpill, Spill, SpillingQueue
from streamproof_runtime.subtasks.subtask import Subtask, TaskPlan
from streamproof_runtime.subtasks.termination import BatonSubtask
from streamproof_runtime.taskexecutor.executor import TaskExecutor
from streamproof_runtime.taskexecutor.executor_host import ExecutorSettings
from streamproof_runtime.taskexecutor.partitions import MemoryPartitions
from streamproof_runtime.variants.flow_variants import FLOWS


@pytest.mark.parametrize(("exclusive", "floating"), [(1, 0), (1, 2), (2, 1), (3, 0), (8, 4)])
def test_a_gate_never_holds_more_than_its_buffers(exclusive: int, floating: int) -> None:
    """Under any interleaving of senders, receiver and delayed messages; all items arrive in order, and at the end every
    floating buffer is in the pool."""
    for seed in range(50):
        draw = random.Random(seed)
        names = ["c", "d"]
        sender, gate = Outputs(names, exclusive), Gate(names, exclusive, floating)
        wire: dict[str, deque[tuple[int, int]]] = {c: deque() for c in names}
        credits: dict[str, deque[int]] = {c: deque() for c in names}
        queued: dict[str, deque[int]] = {c: deque() for c in names}
        taken: dict[str, list[int]] = {c: [] for c in names}
        made = dict.fromkeys(names, 0)
        while sum(map(len, taken.values())) < 60:
            c, step = draw.choice(names), draw.randrange(4)
            leaving: list[tuple[str, Item, int]] = []
            if step == 0 and made[c] < 30 and not sender.is_blocked([c]):
                more = draw.randint(1, min(4, 30 - made[c]))
                sender.offer([(c, (END, made[c] + at)) for at in range(more)])
                leaving = sender.send(c)
                made[c] += more
            elif step == 1 and wire[c]:
                item, backlog = wire[c].popleft()
                gate.receive(c, backlog)
                queued[c].append(item)
            elif step == 2 and queued[c]:
                taken[c].append(queued[c].popleft())
                gate.consume(c)
            elif step == 3 and credits[c]:
                leaving = sender.grant(c, credits[c].popleft())
            for channel, found, backlog in leaving:
                wire[channel].append((found[1], backlog))
            for channel, number, _ in gate.announcements():
                credits[channel].append(number)
            for channel in names:
                assert len(wire[channel]) <= gate.free[channel]
                assert len(queued[channel]) + gate.free[channel] == exclusive + gate.floating[channel]
            assert gate.pool + sum(gate.floating.values()) == floating
        assert taken == {c: list(range(30)) for c in names}
        assert gate.pool == floating, "the last buffers that were consumed were the floating ones"


def test_a_channel_without_a_limit_admits_everything() -> None:
    """Feedback: nothing waits."""
    outputs = Outputs(["c"], 1)
    assert len(outputs.offer([("feedback", (END, n)) for n in range(100)])[0]) == 100
    assert not outputs.is_blocked(["feedback"])


@pytest.mark.parametrize("buffers", WINDOWS)
def test_queues_of_simulated_runs_stay_within_their_buffers(buffers: int) -> None:
    """Under heavy faults, with results that are right: no bounded cycle of channels blocks itself."""
    for name in ("collatz", "components", "shortest_paths"):
        module = example(name)
        for seed in range(5):
            run = Simulation(module.job(), seed=seed, level="heavy", buffers=buffers)
            outcome = run.run()
            assert outcome.finished, outcome.reason
            assert outcome.results == module.expected()
            for host in run.hosts.values():
                assert host.executor.longest[False] <= buffers + run.floating


def test_a_run_with_one_buffer_for_each_channel_is_accepted(tmp_path: Path) -> None:
    """Waiting for credit is an order of steps that the model has."""
    for seed in range(3):
        outcome = Simulation(example("collatz").job(), seed=seed, level="heavy", buffers=1).run()
        assert {v.answer for v in verdicts(outcome, tmp_path)} == {"accepted"}


class Alone:
    """The host of a TaskExecutor whose messages to others are kept."""

    def __init__(self, records: int) -> None:
        self.records, self.sent, self.congested = records, list[tuple[str, Message]](), False
        self.slot_events = SlotEvents("tm-1", 0, lambda *_: None)

    def send(self, target: str, message: Message) -> None:
        """Keeps it."""
        self.sent.append((target, message))

    def returned(self) -> None:
        """Nothing: the functions of these jobs stay in their process."""

    def event(self, event: str, args: Mapping[str, Any]) -> None:
        """Nothing: it has no log."""

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """Nothing: no time passes."""

    def create(self, plan: TaskPlan, trace: str) -> Subtask:
        """A subtask that records nothing."""
        return BatonSubtask(plan, lambda *_: None, lambda _: 0, self.records)

    def is_congested(self, target: str) -> bool:
        """As the test says."""
        return self.congested

    def woken(self, subtask: Subtask) -> None:
        """Nothing: the test takes the steps."""

    def stopped(self, subtasks: Iterable[Subtask]) -> None:
        """Nothing."""


@pytest.mark.parametrize(("buffers", "records"), [(1, 1), (3, 5), (BUFFERS, RECORDS)])
def test_a_stalled_sink_stops_the_source(buffers: int, records: int) -> None:
    """The receiver takes nothing: the source makes what the receiver has buffers for, and one buffer that waits."""
    job = Job("stalled")
    job.source("a", range(100_000)).collect("b")
    host = Alone(records)
    executor = TaskExecutor("tm-1", 1, regions(job), host, MemoryPartitions(), settings=ExecutorSettings(buffers))
    executor.on_message("rm", (m.REQUEST, "0-0", ["rm", 0]))
    executor.on_message("jobmaster", (m.ANSWER, "0-0", True, 1, ["pool", 0]))
    executor.on_message(
        "jobmaster", (m.DEPLOY, 0, 0, {"placement": {"a": "tm-1", "b": "tm-2"}, "reads": {}}, {"a": "0-0"}, ["pool", 1])
    )
    executor.on_message("jobmaster", (m.START, 0, 0))
    (source,) = executor.subtasks
    steps = 0
    while executor.step(source, lambda _: 0):
        steps += 1
        assert steps <= buffers + 1
    left = [message for _, message in host.sent if message[0] == m.DATA]
    assert len(left) == buffers
    assert 100_000 - source.left == (buffers + 1) * records
    executor.on_message("tm-2", (m.CREDIT, 0, 0, "a>b", 1))
    assert executor.step(source, lambda _: 0)
    assert not executor.can_step(source)


def test_without_credits_a_sender_waits_for_its_connection_and_a_receiver_stops_reading() -> None:
    """The rules before Flink 1.5: a sender takes no step while the connection is congested; a receiver with more items in a
    channel than buffers is full until one is taken."""
    job = Job("blocked")
    job.source("a", range(1000)).process("b", lambda _, record: [record]).collect("c")
    host, rules = Alone(1), FLOWS["blocked-connection"]
    executor = TaskExecutor("tm-1", 1, regions(job), host, MemoryPartitions(), settings=ExecutorSettings(2, 1, rules))
    executor.on_message(
        "jobmaster",
        (m.DEPLOY, 0, 0, {"placement": {"a": "tm-2", "b": "tm-1", "c": "tm-2"}, "reads": {}}, {}, ["pool", 0]),
    )
    executor.on_message("jobmaster", (m.START, 0, 0))
    (subtask,) = executor.subtasks
    for number in range(3):
        assert not executor.is_full("tm-2")
        executor.on_message("tm-2", (m.DATA, 0, 0, "a>b", (0, {"a": number + 1}, 0, [number]), 0))
    assert executor.is_full("tm-2")
    assert not executor.is_full("tm-3")
    host.congested = True
    assert not executor.step(subtask, lambda _: 0)
    host.congested = False
    while executor.step(subtask, lambda _: 0):
        pass
    assert not executor.is_full("tm-2")
    assert len([message for _, message in host.sent if message[0] == m.DATA]) == 3


def test_buffers_are_bounded_in_bytes() -> None:
    """Large records travel alone or with few others; order and inputs are kept, and every record is in one buffer."""
    draw = random.Random(7)
    for _ in range(200):
        outputs = [
            (draw.choice("cd"), draw.choice((0, 0, 1)), "x" * draw.choice((1, 10_000, 50_000)))
            for _ in range(draw.randrange(150))
        ]
        made = OutputBuffers(RECORDS).add((c, side, [value]) for c, side, value in outputs)
        for channel in "cd":
            sent = [(side, value) for c, side, values in made if c == channel for value in values]
            assert sent == [(side, value) for c, side, value in outputs if c == channel]
        for _, _, values in made:
            assert 0 < len(values) <= RECORDS
            assert sum(map(size, values[:-1])) < BYTES


@pytest.mark.parametrize(("spill", "limit"), [(MemorySpill, 2), (FileSpill, 1), (FileSpill, 7)])
def test_a_spilling_queue_keeps_the_order_within_its_memory(spill: type[Spill], limit: int) -> None:
    """Against a plain queue, with batons and buffers of all sizes; memory has at most `limit` items."""
    draw = random.Random(limit)
    queue, plain = SpillingQueue(spill(), limit), deque[Item]()
    most = 0
    for step in range(3000):
        if draw.random() < (0.7 if step // 300 % 2 else 0.35) and step < 2500:
            item: Item = (0, {"a": step}, 0, [(step, "x" * draw.choice((1, 40_000)))])
            if step % 5 == 0:
                item = (2, {"a": step}, Baton(Scope(("L",))), True, 0)
            queue.append(item)
            plain.append(item)
        elif plain:
            assert queue[0] == plain[0]
            assert queue.popleft() == plain.popleft()
            queue.read_back()
        assert len(queue) == len(plain)
        assert len(queue.memory) <= limit
        most = max(most, queue.spilled)
    assert most > 50
    while plain:
        assert queue.popleft() == plain.popleft()
        queue.read_back()
    with pytest.raises(IndexError):
        queue.popleft()
