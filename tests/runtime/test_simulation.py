"""The simulator of the runtime: virtual time, the network, the tape, the fence; equal seeds give equal logs."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from runtime_runs import EXAMPLES, example
from streamproof.conformance import validate_paths
from streamproof_runtime import Job, OutsideSimulation
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobs.job_file import JobFile
from streamproof_runtime.simulator import simulation
from streamproof_runtime.simulator.faults import FULL, Fault
from streamproof_runtime.simulator.fence import fence
from streamproof_runtime.simulator.loop import STEP, EventLoop
from streamproof_runtime.simulator.network import DELAY, Network
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.simulator.tape import NETWORK, SCHEDULE, STREAMS, USER, Tape
from streamproof_runtime.variants.baton_variants import VARIANTS


class Counting:
    """A stepper that takes some steps."""

    def __init__(self, loop: EventLoop, name: str, steps: int, seen: list[str]) -> None:
        self.at, self._loop, self._name, self._left, self._seen = -1, loop, name, steps, seen

    def step(self) -> None:
        """One step."""
        self._seen.append(self._name)
        self._left -= 1
        if not self._left:
            self._loop.sleep(self)


class Mailbox:
    """A node that keeps what it receives."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.got: list[tuple[str, Any]] = []

    def receive(self, peer: str, message: Any) -> None:
        """Keeps it."""
        self.got.append((peer, message))

    def connection_lost(self, peer: str) -> None:
        """Keeps that."""
        self.got.append((peer, "lost"))


def network(seed: int = 0) -> tuple[EventLoop, Network, dict[str, Mailbox]]:
    """Three nodes."""
    tape = Tape(seed)
    loop = EventLoop(tape.stream(SCHEDULE))
    net = Network(loop, tape.stream(NETWORK))
    boxes = {name: Mailbox(name) for name in "abc"}
    net.nodes = dict(boxes)
    return loop, net, boxes


def run_out(loop: EventLoop) -> None:
    """Runs until nothing is left."""
    assert not loop.run(lambda: False, 10_000)


def test_time_is_virtual_and_an_integer_from_0() -> None:
    """Timers run in the order of time, then of setting; time jumps to them; a step takes its time."""
    loop = EventLoop(Tape(0).stream(SCHEDULE))
    seen: list[str] = []
    loop.call_at(7 * STEP, seen.append, "late")
    loop.call_at(5 * STEP, seen.append, "first")
    loop.call_at(5 * STEP, seen.append, "second")
    loop.wake(Counting(loop, "step", 5, seen))
    assert loop.now == 0
    run_out(loop)
    assert seen == ["step"] * 5 + ["first", "second", "late"]
    assert loop.now == 7 * STEP


def test_the_tape_chooses_who_steps() -> None:
    """Ready steppers interleave by the tape; a script of zeros always takes the first."""
    orders = set()
    for seed in range(20):
        loop, seen = EventLoop(Tape(seed).stream(SCHEDULE)), []  # type: tuple[EventLoop, list[str]]
        for name in "xyz":
            loop.wake(Counting(loop, name, 2, seen))
        run_out(loop)
        assert sorted(seen) == list("xxyyzz")
        orders.add("".join(seen))
    assert len(orders) > 10
    loop, seen = EventLoop(Tape(0, {}).stream(SCHEDULE)), []
    for name in "xy":
        loop.wake(Counting(loop, name, 2, seen))
    run_out(loop)
    assert seen == ["x", "x", "y", "y"]


def test_a_connection_is_fifo_and_connections_overtake_each_other() -> None:
    """Messages of one connection arrive in order; those of two arrive in different orders under different seeds."""
    firsts = set()
    for seed in range(20):
        loop, net, boxes = network(seed)
        for n in range(5):
            net.send("a", "c", n)
            net.send("b", "c", n)
        run_out(loop)
        for peer in "ab":
            assert [m for p, m in boxes["c"].got if p == peer] == list(range(5))
        assert loop.now >= DELAY
        firsts.add(boxes["c"].got[0][0])
    assert firsts == {"a", "b"}


def test_a_lost_connection_loses_what_is_under_way_and_both_ends_learn_of_it_once() -> None:
    """A message sent before the loss never arrives; one sent after learning of it does; other connections are not touched."""
    for seed in range(20):
        loop, net, boxes = network(seed)
        net.send("a", "b", "before")
        net.send("c", "b", "other")
        net.disconnect("a", "b")
        net.send("a", "b", "not yet known")
        run_out(loop)
        assert sorted(boxes["b"].got) == [("a", "lost"), ("c", "other")]
        assert boxes["a"].got == [("b", "lost")]
        net.send("a", "b", "after")
        run_out(loop)
        assert boxes["b"].got[-1] == ("a", "after")


def test_a_partition_holds_messages_back() -> None:
    """No message arrives during a partition; all arrive after it, in order."""
    loop, net, boxes = network()
    net.held_until[frozenset("ab")] = 50 * DELAY
    for n in range(3):
        net.send("a", "b", n)
    loop.call_at(49 * DELAY, lambda: boxes["a"].got.append(("b", len(boxes["b"].got))))
    run_out(loop)
    assert boxes["a"].got == [("b", 0)]
    assert [m for _, m in boxes["b"].got] == [0, 1, 2]


def test_streams_are_separate_and_a_tape_replays() -> None:
    """More draws of one stream leave the others; the recorded choices as a script give the same choices, then zeros."""
    one, two = Tape(5), Tape(5)
    draw = two.stream(NETWORK)
    for _ in range(100):
        draw(9)
    a, b = one.stream(USER), two.stream(USER)
    first = [a(1000) for _ in range(5)]
    assert first == [b(1000) for _ in range(5)]
    again = Tape(0, one.recorded).stream(USER)
    assert [again(1000) for _ in range(7)] == [*first, 0, 0]
    assert set(one.recorded) == set(STREAMS)


@pytest.mark.parametrize(
    "leak",
    [
        lambda: time.time(),
        lambda: time.sleep(0),
        lambda: random.random(),
        lambda: os.urandom(1),
        lambda: threading.Thread(target=int).start(),
        lambda: subprocess.run(["true"]),
        lambda: __import__("socket").socket(),
    ],
    ids=["clock", "sleep", "random", "entropy", "thread", "process", "socket"],
)
def test_what_leaves_the_simulation_raises(leak: Any) -> None:
    """A user function that uses a clock, entropy, a thread, a process or a socket ends the run, and the fence with it."""
    job = Job()
    job.source("numbers", [1]).process("leak", lambda _, r: [leak() and r]).collect("all")
    with pytest.raises(OutsideSimulation):
        Simulation(job).run()
    assert time.time() > 0
    assert random.random() < 1


def test_the_fence_holds_for_the_thread_of_the_run_alone() -> None:
    """A thread that the process had before, such as one of Spark's, sleeps and reads the clock while a run is fenced."""
    up, over = threading.Event(), threading.Event()
    seen: list[object] = []

    def outside() -> None:
        up.wait()
        try:
            time.sleep(0)
            seen.extend([time.time() > 0, os.urandom(1) != b""])
        except OutsideSimulation as error:
            seen.append(error)
        over.set()

    thread = threading.Thread(target=outside)
    thread.start()
    with fence():
        up.set()
        over.wait()
        with pytest.raises(OutsideSimulation):
            time.sleep(0)
    thread.join()
    assert seen == [True, True]


def test_user_functions_choose_by_the_tape() -> None:
    """`Context.choose` gives the same choices under the same seed, and others under another."""

    def chosen(seed: int) -> Any:
        job = Job()
        job.source("numbers", list(range(20))).process("choose", lambda c, _: [c.choose(100)]).collect("all")
        return Simulation(job, seed=seed).run().results["all"]

    assert chosen(1) == chosen(1) != chosen(2)
    with fence():
        assert 0 <= random.Random(1).random() < 1


def test_a_run_is_stuck_if_nothing_happens_for_long_not_if_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that takes several times as long is not stuck; one whose loop never ends is, after that time without a step."""
    monkeypatch.setattr(simulation, "STUCK", 600_000)
    outcome = Simulation(example("shortest_paths").job()).run()
    assert outcome.finished
    assert outcome.time > 3 * simulation.STUCK
    outcome = Simulation(example("collatz").job(), subtask_type=VARIANTS["scope-kept"]).run()
    assert outcome.reason.startswith("stuck: ")


def test_a_run_replays_from_its_tape_and_its_faults() -> None:
    """The recorded choices and faults of a run, without its seed, give the same log."""
    module = example("components")
    for seed in range(5):
        first = Simulation(module.job(), seed=seed, level="heavy").run()
        again = Simulation(module.job(), script=first.choices, faults_given=first.faults).run()
        assert again.digest == first.digest
        assert again.time == first.time


_DIGESTS = """
import sys
sys.path.insert(0, sys.argv[1])
import collatz, components
from streamproof_runtime.simulator.simulation import Simulation
for module in (collatz, components):
    for seed in range(10):
        print(Simulation(module.job(), seed=seed, level="heavy").run().digest)
"""


def test_processes_with_different_hash_seeds_give_the_same_digests() -> None:
    """Every seed, run in two processes with different PYTHONHASHSEED, gives the same log."""
    printed = [
        subprocess.run(
            [sys.executable, "-c", _DIGESTS, str(EXAMPLES)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for seed in ("0", "4242")
    ]
    assert printed[0] == printed[1]
    assert len(set(printed[0])) == 20


_MANY = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import collatz, components, shortest_paths, word_count
from streamproof_runtime.simulator.simulation import Simulation
whole = hashlib.sha256()
for module in (collatz, components, shortest_paths, word_count):
    expected = module.expected()
    for seed in range(500):
        run = Simulation(module.job(), seed=seed, level="heavy").run()
        assert run.finished and not run.lost and run.results == expected, (module.__name__, seed, run.reason)
        whole.update(run.digest.encode())
print(whole.hexdigest())
"""


@pytest.mark.long
def test_two_thousand_seeds_with_heavy_faults_twice() -> None:
    """2,000 runs have the expected results, and the same logs in two processes with different PYTHONHASHSEED."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", _MANY, str(EXAMPLES)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "77")
    }
    assert len(printed) == 1


@pytest.mark.parametrize(
    ("job", "what"), [("sales", "cannot store partitions"), ("pagerank", "cannot store its feedback")]
)
def test_what_cannot_be_stored_on_a_full_disk_is_made_again(job: str, what: str, tmp_path: Path) -> None:
    """When there is space again, the job goes on to the right result, and the log is accepted by all machines."""
    file, log = JobFile(EXAMPLES / f"{job}.py"), tmp_path / "run.ndjson"
    disks = [Fault(FULL, 0, (f"tm-{i}",), 8 * MILLISECOND) for i in (1, 2, 3)]
    outcome = Simulation(file.job(), seed=3, faults_given=disks).run()
    reasons = {str(entry[3].get("reason")) for entry in outcome.entries if entry[2] == "failed"}
    assert outcome.finished
    assert file.wrong(outcome.results) == ""
    assert outcome.attempts > 2
    assert any(what in reason and "No space left" in reason for reason in reasons)
    log.write_text("".join(lines(outcome.entries)), encoding="ascii")
    assert {verdict.answer for verdict in validate_paths([log], model="all")} == {"accepted"}
