"""Processes that stand still, block, have no space left or end by an error: the result is right, or the cause is told."""

from __future__ import annotations

import os
import random
import resource
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from streamproof_runtime.errors import RuntimeFailure
from streamproof_runtime.jobmaster.jobmaster import JobMaster
from streamproof_runtime.jobmaster.master_host import Timing
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.jobs.job_file import JobFile
from streamproof_runtime.processes import links
from streamproof_runtime.processes.cluster import Cluster, ClusterOutcome, Settings
from streamproof_runtime.processes.real_executor import RealExecutor

SLOW = """
import time
from streamproof_runtime import Job

def job():
    made = Job("slow")

    def wait(context, n):
        time.sleep(0.02)
        return (n,)

    made.source("numbers", range(100)).rebalance().process("wait", wait).collect("all")
    return made

def expected():
    return {"all": [*range(100)]}
"""
BATCH = """
from streamproof_runtime import Job

def job():
    made = Job("batch", mode="batch")

    def add(context, record):
        context.state["sum"] = context.state.get("sum", 0) + record[1]
        return [(record[0], context.state["sum"])]

    numbers = made.source("numbers", range(2000), parallelism=2).rebalance()
    large = numbers.process("large", lambda _, n: ((n % 5, n, "x" * 1000),), 2).key_by(lambda r: r[0])
    large.process("add", add, 2).collect_latest("sums")
    return made

def expected():
    return {"sums": {n: sum(range(n, 2000, 5)) for n in range(5)}}
"""


class Trouble:
    """A run on processes, in which something happens when the launching process tells of an event."""

    def __init__(self, folder: Path, text: str, **settings: Any) -> None:
        (folder / "given.py").write_text(text)
        self.told: list[str] = []
        self.file = JobFile(folder / "given.py")
        self.when: dict[str, Callable[[], None]] = {}
        self._cluster = Cluster(Settings(folder / "given.py", 2, 4, **{"seconds": 300, **settings}), [], self._tell)

    def _tell(self, text: str) -> None:
        self.told.append(text)
        for words in [words for words in self.when if words in text]:
            self.when.pop(words)()

    def process(self, name: str) -> int:
        """The number of a process."""
        return self._cluster._children[name].process.pid

    def run(self) -> ClusterOutcome:
        """The run."""
        return self._cluster.run()


@pytest.mark.parametrize(
    "name", ["jobmaster", *(pytest.param(name, marks=pytest.mark.long) for name in ("rm", "tm-1"))]
)
def test_a_process_that_stands_still_is_replaced(name: str, tmp_path: Path) -> None:
    """The job, which waits for that, goes on."""
    waits = f"while n == 50 and not Path({str(tmp_path / 'noticed')!r}).exists():\n            time.sleep(0.02)"
    text = SLOW.replace("time.sleep(0.02)", waits).replace("import time", "import time\nfrom pathlib import Path")
    trouble = Trouble(tmp_path, text, beat=0.1, restarts=1000)
    trouble.when["started"] = lambda: os.kill(trouble.process(name), signal.SIGSTOP)
    noticed = f"{name} has ended: killed by SIGKILL, after 3 s without a sign of life"
    trouble.when[noticed] = (tmp_path / "noticed").touch
    outcome = trouble.run()
    assert trouble.file.wrong(outcome.results) == ""
    assert noticed in trouble.told


@pytest.mark.long
@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
@pytest.mark.parametrize("name", ["jobmaster", "rm", "tm-1"])
def test_a_process_is_killed_or_frozen_at_any_moment(name: str, number: int, part: int, tmp_path: Path) -> None:
    """Ten moments from the start of the job to after its end, most of them before it: the result is right."""
    struck = 0
    for seed in range(10 * part, 10 * part + 10):
        trouble = Trouble(tmp_path, SLOW, beat=0.1, restarts=1000)

        def strike(trouble: Trouble = trouble) -> None:
            nonlocal struck
            with suppress(KeyError, ProcessLookupError):  # the job may have ended
                os.kill(trouble.process(name), number)
                struck += 1

        timer = threading.Timer(random.Random(f"{name} {number} {seed}").uniform(0, 2.5), strike)
        trouble.when["started"] = timer.start
        outcome = trouble.run()
        timer.cancel()
        assert (seed, trouble.file.wrong(outcome.results)) == (seed, "")
    assert struck >= 3


def test_a_user_function_may_block_longer_than_a_proof_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While peers connect to its TaskExecutor, and while it connects to them."""
    blocks = SLOW.replace("time.sleep(0.02)", "time.sleep(4 if n == 0 else 0)")
    blocks = blocks.replace(
        "import time", "import time\nfrom streamproof_runtime.processes import links\nlinks.PATIENCE = 1.0"
    )
    monkeypatch.setattr(links, "PATIENCE", links.PATIENCE)
    outcome = Trouble(tmp_path, blocks, restarts=0).run()
    assert (outcome.reason, outcome.results) == ("", {"all": [*range(100)]})


def test_a_user_function_may_block_longer_than_heartbeats_may_be_missing(tmp_path: Path) -> None:
    """Neither the JobMaster nor the ResourceManager takes its TaskExecutor for lost."""
    blocks = SLOW.replace("time.sleep(0.02)", "time.sleep(6 if n == 0 else 0)")
    outcome = Trouble(tmp_path, blocks, restarts=0, beat=0.1).run()
    assert (outcome.reason, outcome.results) == ("", {"all": [*range(100)]})


@pytest.mark.long
def test_a_blocked_function_that_is_to_stop_is_left_behind(tmp_path: Path) -> None:
    """A restart does not wait for it: its TaskExecutor, which answers nothing, is lost."""
    marker = tmp_path / "blocked"
    once = f"Path({str(marker)!r}).write_text(str(os.getpid())) and time.sleep(1000)"
    once = f"n or Path({str(marker)!r}).exists() or {once}"
    blocks = SLOW.replace("time.sleep(0.02)", once).replace("import time", "import os, time\nfrom pathlib import Path")
    trouble = Trouble(tmp_path, blocks, beat=0.1, restarts=1000)

    def kill_the_other() -> None:
        while not marker.exists() or not marker.read_text():
            time.sleep(0.02)
        (other,) = {trouble.process(name) for name in ("tm-1", "tm-2")} - {int(marker.read_text())}
        os.kill(other, signal.SIGKILL)

    trouble.when["started"] = kill_the_other
    assert trouble.run().results == {"all": [*range(100)]}


def limit(trouble: Trouble, size: int) -> None:
    """No file of the TaskExecutors may become larger than this."""
    for name in ("tm-1", "tm-2"):
        resource.prlimit(trouble.process(name), resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_a_full_disk_ends_the_attempt_and_not_its_process(tmp_path: Path) -> None:
    """The message says what is missing; with space the next attempt goes on."""
    trouble = Trouble(tmp_path, BATCH)
    trouble.when["registered: tm-2"] = lambda: limit(trouble, 100_000)
    trouble.when["registered: tm-1"] = lambda: limit(trouble, 100_000)
    trouble.when["attempt 0: failed"] = lambda: limit(trouble, resource.RLIM_INFINITY)
    outcome = trouble.run()
    assert trouble.file.wrong(outcome.results) == ""
    assert any("cannot store partitions: [Errno 27] File too large" in text for text in trouble.told)
    assert not any("has ended" in text for text in trouble.told)


@pytest.mark.long
def test_a_full_disk_is_the_reason_of_a_failed_job(tmp_path: Path) -> None:
    """With its error."""
    trouble = Trouble(tmp_path, BATCH, restarts=1)
    trouble.when["registered: tm-2"] = trouble.when["registered: tm-1"] = lambda: limit(trouble, 100_000)
    outcome = trouble.run()
    assert outcome.reason.startswith("no restart is left after 1: large_to_add")
    assert outcome.reason.endswith("cannot store partitions: [Errno 27] File too large")


def test_a_job_without_slots_fails(tmp_path: Path) -> None:
    """After a time, with the number of slots that it requires."""
    (tmp_path / "given.py").write_text(SLOW)
    events: list[tuple[str, Any]] = []

    class Host:
        """Neither a TaskExecutor nor a ResourceManager answers."""

        checkpoint_store = None

        def slot_events(self, *_: Any) -> tuple[str, int]:
            return "pool", 0

        def event(self, event: str, args: Any, trace: str = "") -> None:
            events.append((event, args))

        def send(self, *_: Any) -> None: ...

        def call_later(self, *_: Any) -> None: ...

    class Coordinator(JobMaster):
        """Without checkpoints to look for."""

        coordinator: Any = staticmethod(lambda *_: type("None", (), {"settings": dict, "abort": lambda *_: None})())

    host: Any = Host()
    master = Coordinator(regions(JobFile(tmp_path / "given.py").job()), host, Timing(restarts=1, slot_beats=3))
    master.start()
    for beat in range(20):
        master.on_timer("heartbeat", beat)
        for number in [*master.pending]:
            master.on_timer("restart", number)
    assert master.is_over
    assert master.errors == ["no restart is left after 1: 3 slots are required, and 0 are there after 0.015 s"]
    assert [event for event, _ in events].count("region_scheduled") == 2


def test_an_error_of_the_runtime_names_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends by an error says by which one."""
    monkeypatch.setattr(RealExecutor, "returned", RealExecutor.returned)
    broken = SLOW.replace(
        "import time", "import time\nfrom streamproof_runtime.processes.real_executor import RealExecutor"
    )
    broken += "\ndef fail(self):\n    raise LookupError('nothing')\n\nRealExecutor.returned = fail\n"
    trouble = Trouble(tmp_path, broken, restarts=1)
    outcome = trouble.run()
    assert outcome.reason.startswith("no restart is left after 1: connection ")
    assert outcome.reason.endswith("has ended: exit code 70, LookupError: nothing (given.py:20)")


@pytest.mark.long
def test_a_function_that_ends_its_process_has_its_exit_code_in_the_reason(tmp_path: Path) -> None:
    """And is told at once."""
    ending = SLOW.replace("time.sleep(0.02)", "__import__('os')._exit(9)")
    trouble = Trouble(tmp_path, ending, restarts=1)
    assert trouble.run().reason.endswith("has ended: exit code 9")
    assert any("has ended: exit code 9" in text for text in trouble.told)


@pytest.mark.long
def test_too_many_deaths_are_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the error of the last one."""
    monkeypatch.setattr("streamproof_runtime.processes.cluster.DEATHS", 0)
    ending = SLOW.replace("time.sleep(0.02)", "__import__('os')._exit(9)")
    with pytest.raises(RuntimeFailure, match=r"tm-\d has ended 1 times \(exit code 9\)"):
        Trouble(tmp_path, ending).run()
