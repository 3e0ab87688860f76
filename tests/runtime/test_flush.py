"""The flush rules: a buffer leaves when it is full, after the timeout, or before an event; runs are right and accepted."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import changed_logs
from batch_jobs import batch
from changed_logs import records_of
from flush_judge import wrong
from runtime_processes import run as run_on_processes
from runtime_runs import EXAMPLES, credit_verdicts, example, verdicts
from streamproof.conformance import judge
from streamproof_models.scopes.topologies import NAMED
from streamproof_runtime import messages as m
from streamproof_runtime.errors import RuntimeFailure
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.jobs import walks
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.records import size
from streamproof_runtime.messages import Message
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.slots.slot_events import SlotEvents
from streamproof_runtime.subtasks.buffers import BYTES
from streamproof_runtime.subtasks.output_buffers import NEVER, OutputBuffers
from streamproof_runtime.subtasks.subtask import Subtask, TaskPlan
from streamproof_runtime.subtasks.termination import BatonSubtask
from streamproof_runtime.taskexecutor.executor import TaskExecutor
from streamproof_runtime.taskexecutor.executor_host import ExecutorSettings
from streamproof_runtime.taskexecutor.partitions import MemoryPartitions
from streamproof_runtime.variants.flush_variants import FLUSHES
from streamproof_specs.baton.runtime import BINDING as BATON
from streamproof_specs.credit.runtime import BINDING as CREDIT

TIMEOUTS = (0, 0.01, 0.05, 0.3, 1, 100, NEVER)
"""In milliseconds of virtual time; a step takes 0.001."""


@pytest.mark.parametrize("timeout", [None, 0, 1, NEVER])
def test_records_keep_their_order_and_are_held_until_they_have_left(timeout: float | None) -> None:
    """Against plain lists: what has left and what waits is what was added, and every buffer that is processed and has a
    record in a buffer that waits is held."""
    for seed in range(60):
        draw = random.Random(seed)
        most = draw.choice((1, 2, 3, 50))
        buffers = OutputBuffers(most, timeout)
        added, left = (defaultdict[str, list[Any]](list) for _ in range(2))
        held = 0
        for number in range(30):
            outputs = [
                (
                    draw.choice("cd"),
                    draw.choice((0, 0, 1)),
                    [(number, "x" * draw.choice((1, 20_000))) for _ in range(draw.randrange(4))],
                )
                for _ in range(draw.randrange(6))
            ]
            for channel, side, values in outputs:
                added[channel] += [(side, value) for value in values]
            leaving = buffers.add(outputs)
            buffers.processed()
            if draw.random() < 0.2:
                leaving += buffers.flush()
                assert not buffers
            for channel, side, values in leaving:
                assert 0 < len(values) <= most
                assert sum(map(size, values[:-1])) < BYTES
                left[channel] += [(side, value) for value in values]
            waiting = {value[0] for c in "cd" for _, value in added[c][len(left[c]) :]}
            for channel in "cd":
                assert added[channel][: len(left[channel])] == left[channel]
            held += 1 - buffers.done()
            assert held == buffers.held == (number + 1 - min(waiting) if waiting else 0)
            assert bool(buffers) == bool(waiting)
            if not timeout:
                assert not waiting


class Alone:
    """The host of a TaskExecutor whose messages to others, and timeouts, are kept."""

    def __init__(self, timeout: float) -> None:
        self.timeout, self.sent, self.due = timeout, list[tuple[str, Message]](), list[tuple[Subtask, float]]()
        self.slot_events = SlotEvents("tm-1", 0, lambda *_: None)

    def send(self, target: str, message: Message) -> None:
        """Keeps it."""
        self.sent.append((target, message))

    def returned(self) -> None:
        """Nothing: the functions of these jobs stay in their process."""

    def event(self, event: str, args: Mapping[str, Any]) -> None:
        """Nothing: it has no log."""

    def create(self, plan: TaskPlan, trace: str) -> Subtask:
        """A subtask that records nothing, with up to 40 records in a buffer."""
        return BatonSubtask(plan, lambda *_: None, lambda _: 0, 40, self.timeout)

    def flush_later(self, subtask: Subtask, delay: float) -> None:
        """Keeps it."""
        self.due.append((subtask, delay))

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """Nothing: no time passes."""

    def woken(self, subtask: Subtask) -> None:
        """Nothing: the test takes the steps."""

    def stopped(self, subtasks: Iterable[Subtask]) -> None:
        """Nothing."""

    def buffers(self) -> list[list[Any]]:
        """The records of the buffers that have left."""
        return [message[4][3] for _, message in self.sent if message[0] == m.DATA and message[4][0] == 0]


def source(timeout: float, records: int, buffers: int = 8) -> tuple[Alone, TaskExecutor, Subtask]:
    """The source of a job whose sink is on another TaskExecutor."""
    job = Job("alone")
    job.source("a", range(records)).collect("b")
    host = Alone(timeout)
    executor = TaskExecutor("tm-1", 1, regions(job), host, MemoryPartitions(), settings=ExecutorSettings(buffers))
    executor.on_message(
        "jobmaster", (m.DEPLOY, 0, 0, {"placement": {"a": "tm-1", "b": "tm-2"}, "reads": {}}, {}, ["pool", 0])
    )
    executor.on_message("jobmaster", (m.START, 0, 0))
    (subtask,) = executor.subtasks
    return host, executor, subtask


def test_a_buffer_waits_for_one_timeout() -> None:
    """The first record sets the timer; full buffers leave before, and what is left when the timer runs out; then another
    timer is set."""
    host, executor, subtask = source(7, 1000)
    assert executor.step(subtask, lambda _: 0)
    assert (host.buffers(), host.due) == ([], [(subtask, 7)])
    assert executor.step(subtask, lambda _: 0)
    assert [len(b) for b in host.buffers()] == [40]
    executor.flush(subtask)
    assert [len(b) for b in host.buffers()] == [40, 24]
    assert len(host.due) == 1
    executor.step(subtask, lambda _: 0)
    assert host.due == [(subtask, 7)] * 2
    executor.on_message("jobmaster", (m.CANCEL, 0, 0))
    executor.flush(subtask)  # of an attempt that is gone
    assert [len(b) for b in host.buffers()] == [40, 24]


def test_without_a_timeout_end_takes_what_is_left_with_it() -> None:
    """No timer is set; the rest leaves in front of END."""
    host, executor, subtask = source(NEVER, 50)
    while executor.step(subtask, lambda _: 0):
        pass
    assert host.due == []
    assert [len(b) for b in host.buffers()] == [40, 10]
    kinds = [message[4][0] for _, message in host.sent if message[0] == m.DATA]
    assert kinds == [0, 0, 1]


def test_a_stalled_sink_stops_the_source_with_a_timeout() -> None:
    """What leaves after the timeout waits for credit as all else, and then the source takes no step."""
    host, executor, subtask = source(1, 100_000, buffers=3)
    for _ in range(200):
        while executor.step(subtask, lambda _: 0):
            pass
        executor.flush(subtask)
    assert [len(b) for b in host.buffers()] == [40] * 3
    assert 100_000 - subtask.left <= 5 * 40


def checked(
    name: str, seed: int, timeout: float | None, variant: str = "", level: str = "heavy"
) -> tuple[str, Outcome]:
    """A run: what is wrong with its result, if anything, and its outcome."""
    kind, right = FLUSHES.get(variant, BatonSubtask), True
    if name in NAMED:
        job = walks.walk(NAMED[name])
        outcome = Simulation(job, seed=seed, level=level, timeout=timeout, subtask_type=kind).run(100_000)
        right = walks.visits(job, outcome.results) == walks.expected(job)
    elif name == "batch":
        job, expected = batch(seed)
        outcome = Simulation(job, seed=seed, level=level, timeout=timeout, subtask_type=kind, eager=seed % 2 == 1).run()
        right = {n: sorted(r or ()) for n, r in outcome.results.items()} == {
            n: sorted(counts.elements()) for n, counts in expected.items()
        }
    else:
        module = example(name)
        outcome = Simulation(module.job(), seed=seed, level=level, timeout=timeout, subtask_type=kind).run(100_000)
        right = outcome.results == module.expected()
    wrong = outcome.reason if not outcome.finished else "records lost" if outcome.lost else ""
    return wrong or ("" if right else "wrong result"), outcome


@pytest.mark.parametrize("timeout", TIMEOUTS)
def test_runs_are_right_and_accepted(timeout: float, tmp_path: Path) -> None:
    """By the baton and by credit, under heavy faults."""
    for name in ("collatz", "shortest_paths", "word_count"):
        fault, outcome = checked(name, int(timeout * 100) % 7, timeout)
        assert not fault, name
        assert {v.answer for v in verdicts(outcome, tmp_path)} == {"accepted"}, name
        assert {v.answer for v in credit_verdicts(outcome, tmp_path)} == {"accepted"}, name


@pytest.mark.long
@pytest.mark.parametrize("timeout", TIMEOUTS)
def test_hundreds_of_runs_are_right_and_accepted(timeout: float, tmp_path: Path) -> None:
    """On the examples, batch jobs and every graph of the catalogue, under severe faults."""
    names = ("collatz", "components", "shortest_paths", "word_count", "sales", "batch", *NAMED)
    for seed in range(300):
        name = names[seed % len(names)]
        fault, outcome = (
            checked(name, seed, timeout, level="severe") if name != "sales" else checked(name, seed, timeout)
        )
        assert not fault, (name, seed)
        found = [*verdicts(outcome, tmp_path), *credit_verdicts(outcome, tmp_path)]
        assert {v.answer for v in found} == {"accepted"}, (name, seed)


@pytest.mark.parametrize("variant", FLUSHES)
def test_each_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By the result, and by the baton's log."""
    by_result = by_log = 0
    for seed in range(30):
        fault, outcome = checked("collatz", seed, 0.05, variant)
        by_result += bool(fault)
        by_log += any(v.answer == "rejected" for v in verdicts(outcome, tmp_path))
        if by_result and by_log:
            break
    assert by_result
    assert by_log


def test_a_variant_without_a_timeout_is_refused() -> None:
    """It would change nothing."""
    job = EXAMPLES / "collatz.py"
    with pytest.raises(RuntimeFailure, match="add --buffer-timeout 1"):
        run_on_processes(job, variant="flush-forgotten")


def tampered(records: list[dict[str, Any]], draw: random.Random) -> list[dict[str, Any]]:
    """A copy with another number of buffers that are done, or a buffer more or less, or unchanged."""
    copy = deepcopy(records)
    at = draw.choice([at for at, r in enumerate(copy) if r["event"] in ("record_processed", "buffers_flushed")])
    args = copy[at]["args"]
    if "done" in args and draw.random() < 0.5:
        args["done"] = max(0, args["done"] + draw.choice((-1, 1, 2)))
    elif args.get("channels"):
        channel = draw.choice(args["channels"])
        if draw.random() < 0.5:
            args["channels"].append(channel)
        else:
            args["channels"].remove(channel)
    return copy


@pytest.mark.parametrize("cases", [12, pytest.param(400, marks=pytest.mark.long)])
def test_two_judges_agree_on_tampered_logs(cases: int, tmp_path: Path) -> None:
    """The machine of the baton and plain counters; most changes are found."""
    answers = Counter[str]()
    for case in range(cases):
        draw = random.Random(case)
        name, timeout = draw.choice(("collatz", "shortest_paths", "word_count")), draw.choice((0.05, 0.3, NEVER))
        fault, outcome = checked(name, case, timeout, level="none")
        assert not fault
        records = records_of(outcome)
        assert wrong(records) is None
        copy = tampered(records, draw)
        (answer,) = {v.answer for v in changed_logs.verdicts(copy, tmp_path, BATON, "baton")}
        assert (answer == "rejected") == (wrong(copy) is not None) == (copy != records), case
        answers[answer] += 1
    assert answers["rejected"] > cases / 2


@pytest.mark.long
def test_a_blocked_connection_delays_but_loses_nothing(tmp_path: Path) -> None:
    """On processes with one buffer for each channel; the machine of credits rejects what was sent without them."""
    found = run_on_processes(EXAMPLES / "word_count.py", tmp_path, variant="blocked-connection", buffers=1, records=2)
    assert not found["wrong"]
    (logs,) = CREDIT.runs(tmp_path)
    assert "rejected" in {v.answer for v in judge(CREDIT.plan(logs, None), "credit")}


@pytest.mark.parametrize(
    "timeout", [2, pytest.param(0, marks=pytest.mark.long), pytest.param(NEVER, marks=pytest.mark.long)]
)
def test_a_run_on_processes_is_right_and_accepted(timeout: float, tmp_path: Path) -> None:
    """With a kill."""
    found = run_on_processes(EXAMPLES / "components.py", tmp_path, timeout=timeout, kills=("tm-1@20",))
    assert not found["wrong"]
    for binding, model in ((BATON, "baton"), (CREDIT, "credit")):
        (logs,) = binding.runs(tmp_path)
        assert {v.answer for v in judge(binding.plan(logs, None), model)} == {"accepted"}
