"""Runs on processes: right results, logs that are accepted, kills, bounded memory, nothing left behind, bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runtime_processes import PROGRAM, marked, run, started, wait_until
from runtime_runs import EXAMPLES, JOBS, example
from streamproof.conformance import judge
from streamproof_runtime.errors import RuntimeFailure
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.subtasks.flow import BUFFERS
from streamproof_runtime.subtasks.spilling import IN_MEMORY
from streamproof_specs.baton.runtime import BINDING

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found by /proc")

WALK = """
from streamproof_runtime.jobs.walks import walk

def job():
    return walk({graph!r}, records=4, steps=6)
"""

BLOCKED = """
import os, threading
from streamproof_runtime import Job

def job():
    made = Job("blocked")

    def block(context, record):
        open("blocked-" + str(os.getpid()), "w").close()
        threading.Event().wait()

    made.source("numbers", [1]).process("block", block).collect("all")
    return made
"""
"""A job whose user function never returns: it leaves a file with the number of its process when it begins."""


def answers(logs: Path) -> dict[str, str]:
    """The verdict on each attempt of the run in a folder."""
    (run,) = BINDING.runs(logs)
    return {v.trace: v.answer for v in judge(BINDING.plan(run, None), "baton")}


def written(folder: Path, text: str) -> Path:
    """A job file."""
    file = folder / "job.py"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "name", [n if n == "shortest_paths" else pytest.param(n, marks=pytest.mark.long) for n in JOBS]
)
def test_results_are_those_of_the_simulation(name: str, tmp_path: Path) -> None:
    """And those of the plain computation; the log of the run is accepted, and every event is in the log of its process."""
    found = run(EXAMPLES / f"{name}.py", tmp_path)
    assert found["wrong"] == ""
    assert found["checked"]
    assert found["attempts"] == 1
    assert 0 < found["longest_queue"] <= BUFFERS
    simulated = Simulation(example(name).job()).run()
    assert simulated.finished
    if name != "pagerank":  # its sums depend on the order of records, within the tolerance of the example
        assert found["results"] == simulated.results
    assert set(answers(tmp_path).values()) == {"accepted"}
    names = {"jobmaster.ndjson", "rm.ndjson", "tm-1.0.ndjson", "tm-2.0.ndjson"}
    assert {f.name for f in tmp_path.iterdir()} == names
    events = [json.loads(line) for log in tmp_path.iterdir() for line in log.read_text().splitlines()]
    placement = next(e["args"]["placement"] for e in events if e["event"] == "deployed")
    for executor in ("tm-1", "tm-2"):
        log = (tmp_path / f"{executor}.0.ndjson").read_text().splitlines()
        processes = {json.loads(line)["process"] for line in log}
        assert {placement.get(process, process) for process in processes} <= {executor, f"{executor}.0"}


def test_a_killed_process_is_replaced_and_the_result_is_right(tmp_path: Path) -> None:
    """Two kills of one TaskExecutor, each after some of its events: its log ends there, and all attempts are accepted."""
    found = run(EXAMPLES / "components.py", tmp_path, kills=["tm-1@9", "tm-1@14"])
    assert found["wrong"] == ""
    assert found["attempts"] >= 3
    assert all(kill["happened"] for kill in found["kills"])
    lines = {f.name: f.read_text().count('"clock"') for f in tmp_path.iterdir()}
    assert (lines["tm-1.0.ndjson"], lines["tm-1.1.ndjson"]) == (9, 14)
    assert len(answers(tmp_path)) >= 3
    assert set(answers(tmp_path).values()) == {"accepted"}


@pytest.mark.long
@pytest.mark.parametrize("name", ["pagerank", "components", "shortest_paths"])
def test_each_loop_survives_two_kills_anywhere(name: str, tmp_path: Path) -> None:
    """Of different processes, after various numbers of events; whatever is cut short, results are right, and every machine
    accepts the logs."""
    for first, second in (("tm-1@1", "tm-2@2"), ("tm-1@5", "tm-2@9"), ("tm-1@12", "tm-2@4"), ("jobmaster@6", "tm-1@8")):
        logs = tmp_path / f"{first}-{second}"
        logs.mkdir()
        kills = [first, second]
        found = run(EXAMPLES / f"{name}.py", logs, executors=3, kills=kills)
        assert found["wrong"] == ""
        assert set(answers(logs).values()) == {"accepted"}
        assert all(kill["happened"] for kill in found["kills"])
    command = [str(PROGRAM), "validate", "--model", "all", *map(str, tmp_path.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "rejected" not in done.stdout


def test_a_torn_last_line_is_not_read(tmp_path: Path) -> None:
    """Any prefix of the log of a killed process is accepted, in bytes; a line torn elsewhere is an error."""
    run(EXAMPLES / "word_count.py", tmp_path, kills=["tm-1@6"])
    log = tmp_path / "tm-1.0.ndjson"
    whole = log.read_bytes()
    start = whole.rstrip(b"\n").rindex(b"\n") + 1
    for end in (start, start + 1, (start + len(whole)) // 2, len(whole) - 1):
        log.write_bytes(whole[:end])
        assert set(answers(tmp_path).values()) == {"accepted"}
    log.write_bytes(whole[: start - 20] + whole[start:])
    with pytest.raises(Exception, match=r"tm-1\.0\.ndjson:"):
        answers(tmp_path)


def test_a_tampered_log_of_one_process_is_rejected(tmp_path: Path) -> None:
    """A run whose logs have one changed phase, one event moved to another channel, or one log too few."""
    run(EXAMPLES / "shortest_paths.py", tmp_path)
    log = max((tmp_path / f"tm-{n}.0.ndjson" for n in (1, 2)), key=lambda f: f.stat().st_size)
    lines = log.read_text().splitlines(keepends=True)
    for old, new in (('"phase":"RUNNING"', '"phase":"TERMINATED"'), ('"held":0', '"held":1')):
        at = next(at for at, line in enumerate(lines) if old in line)
        log.write_text("".join([*lines[:at], lines[at].replace(old, new), *lines[at + 1 :]]))
        assert "rejected" in answers(tmp_path).values()
    log.unlink()
    assert "rejected" in answers(tmp_path).values()


SLOW_SINK = """
import time
from collections.abc import Sequence
from streamproof_runtime import Job

class Texts(Sequence):
    def __init__(self, numbers=range(1500)):
        self.numbers = numbers
    def __len__(self):
        return len(self.numbers)
    def __getitem__(self, at):
        return Texts(self.numbers[at]) if isinstance(at, slice) else str(at) * (100_000 // len(str(at)))

def job():
    made = Job("slow_sink")

    def slow(context, text):
        time.sleep(0.001)
        context.state["n"] = n = context.state.get("n", 0) + 1
        return [n] if n == 1500 else []

    made.source("texts", Texts()).process("slow", slow).collect("counts")
    return made

def expected():
    return {"counts": [1500]}
"""


def test_memory_is_bounded_with_a_slow_sink(tmp_path: Path) -> None:
    """A source of 150 MB, with a receiver that is slower: no process has more than the buffers of the channel."""
    found = run(written(tmp_path, SLOW_SINK))
    assert found["wrong"] == ""
    assert found["longest_queue"] <= BUFFERS
    assert found["peak_bytes"] < 80_000_000


@pytest.mark.long
def test_memory_is_not_bounded_without_flow_control(tmp_path: Path) -> None:
    """The same job with buffers for all of its records: the test above can fail."""
    found = run(written(tmp_path, SLOW_SINK), buffers=2000)
    assert found["wrong"] == ""
    assert found["peak_bytes"] > 100_000_000


AMPLIFIED = """
from streamproof_runtime import Job

def job():
    made = Job("amplified")

    def around(loop):
        doubled = loop.process("double", lambda _, r: [(r[0] - 1, r[1])] * 2)
        return doubled.filter(lambda r: r[0]), doubled.filter(lambda r: not r[0]).map(lambda r: 1)

    def count(context, one):
        records = context.state.setdefault("records", [0])
        records[0] += 1
        return ()

    made.source("one", [(14, "x" * 8000)]).iterate("Loop", around).process("count", count).collect("none")
    return made
"""
"""A record becomes 16,384, of which half are in the feedback channel at once: some 65 MB."""


def test_feedback_spills_to_disk(tmp_path: Path) -> None:
    """More feedback than a process has memory for: it waits on disk, in files that nothing is left of."""
    found = run(written(tmp_path, AMPLIFIED), executors=2, slots=1)
    assert found["wrong"] == ""
    assert found["longest_feedback_queue"] > 10 * IN_MEMORY
    assert found["peak_bytes"] < 60_000_000
    assert {f.name for f in tmp_path.iterdir()} <= {"job.py", "__pycache__"}


@pytest.mark.long
def test_jobs_fail_for_good_with_their_reason(tmp_path: Path) -> None:
    """A user function that raises, records that cannot be sent, and no restart left."""
    text = "from streamproof_runtime import Job\ndef job():\n    made = Job('bad')\n    "
    stream = "made.source('a', [1]).process('b', lambda _, r: [{}]).collect('c')\n    return made\n"
    for outputs, words in (
        ("1 / 0", "b: ZeroDivisionError: division by zero"),
        ("object()", "has a value of type object"),
    ):
        found = run(written(tmp_path, text + stream.format(outputs)))
        assert words in found["wrong"]
    found = run(EXAMPLES / "word_count.py", kills=["tm-1@1"], restarts=0)
    assert "no restart is left after 0" in found["wrong"]


@pytest.mark.parametrize("killed", ["supervisor", "launcher", "jobmaster"])
def test_nothing_is_left_after_a_kill_of_any_process(killed: str, tmp_path: Path) -> None:
    """While a user function never returns: no process, and no file but the logs."""
    process, mark = started(written(tmp_path, BLOCKED), tmp_path, "--trace", "logs")
    wait_until(lambda: list(tmp_path.glob("blocked-*")))
    workers = [pid for pid, line in marked(mark).items() if "streamproof_runtime.processes.worker" in line]
    assert len(workers) == 4
    (launcher,) = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in workers}
    master = min(workers)  # started first
    os.kill({"supervisor": process.pid, "launcher": launcher, "jobmaster": master}[killed], signal.SIGKILL)
    logs = {"jobmaster.ndjson", "rm.ndjson", "tm-1.0.ndjson", "tm-2.0.ndjson"}
    if killed == "jobmaster":  # another one waits for the TaskExecutor that is blocked
        wait_until((tmp_path / "logs" / "jobmaster.1.ndjson").exists)
        os.kill(process.pid, signal.SIGINT)
        logs.add("jobmaster.1.ndjson")
    process.communicate()
    wait_until(lambda: not marked(mark))
    assert {f.name for f in tmp_path.iterdir()} - {"job.py", "logs", "__pycache__"} == {
        f.name for f in tmp_path.glob("blocked-*")
    }
    assert {f.name for f in (tmp_path / "logs").iterdir()} == logs
    assert set(answers(tmp_path / "logs").values()) == {"accepted"}
    assert process.returncode == {"jobmaster": 130}.get(killed, process.returncode)


@pytest.mark.push
def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    """With the exit code of an interrupted run, also while a user function never returns."""
    process, mark = started(written(tmp_path, BLOCKED), tmp_path)
    wait_until(lambda: list(tmp_path.glob("blocked-*")))
    os.kill(process.pid, signal.SIGINT)
    assert "interrupted" in process.communicate()[1]
    assert process.returncode == 130
    wait_until(lambda: not marked(mark))


def cli(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`streamproof run` in a folder."""
    return subprocess.run([PROGRAM, "run", *arguments], capture_output=True, text=True, cwd=folder, check=False)


def test_the_command_line_writes_logs_and_replaces_only_its_own(tmp_path: Path) -> None:
    """The logs of an earlier run are replaced; another file of such a name stays, and the run does not begin."""
    words = str(EXAMPLES / "word_count.py")
    found = cli(tmp_path, words, "--taskmanagers", "2", "--kill", "tm-2@1", "--trace", "logs", "--json", "run.json")
    assert (found.returncode, found.stderr) == (0, "")
    assert "the result is as expected" in found.stdout
    assert "tm-2@1: killed" in found.stdout
    (record,) = json.loads((tmp_path / "run.json").read_text())["runs"]
    assert record["kills"] == [{"kill": "tm-2@1", "happened": True}]
    assert (tmp_path / "logs" / "tm-2.1.ndjson").exists()
    (tmp_path / "logs" / "tm-7.0.ndjson").write_text("mine\n")
    before = {f.name: f.read_bytes() for f in (tmp_path / "logs").iterdir()}
    found = cli(tmp_path, words, "--trace", "logs")
    assert found.returncode == 153
    assert "tm-7.0.ndjson exists and was not written by streamproof" in found.stderr
    assert {f.name: f.read_bytes() for f in (tmp_path / "logs").iterdir()} == before
    (tmp_path / "logs" / "tm-7.0.ndjson").unlink()
    assert cli(tmp_path, words, "--taskmanagers", "1", "--trace", "logs").returncode == 0
    assert {f.name for f in (tmp_path / "logs").iterdir()} == {"jobmaster.ndjson", "rm.ndjson", "tm-1.0.ndjson"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["no.py"], 2, "does not exist"),
        (["empty.py"], 2, "empty.py has no function job()"),
        (["broken.py"], 2, "broken.py:1: ZeroDivisionError"),
        (["JOB", "--kill", "tm-4@3"], 2, "no process 'tm-4' to kill; there are tm-1, tm-2, tm-3, jobmaster, rm"),
        (["JOB", "--kill", "tm-1@soon"], 2, "is no kill; write NAME@SECONDSs or NAME@EVENTS"),
        (["JOB", "--kill", "tm-1@0"], 2, "is no kill"),
        (["JOB", "--seeds", "3"], 2, "--seeds is for simulated runs\n  add --simulate"),
        (["JOB", "--simulate", "--kill", "tm-1@3"], 2, "--kill is for runs on processes\n  leave out --simulate"),
        (["JOB", "--taskmanagers", "1", "--slots", "1"], 2, "the job needs 2 slots; there are 1"),
        (["JOB", "--variant", "none"], 2, "no variant 'none'; there are"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], code: int, words: str, tmp_path: Path) -> None:
    """One message, before any process starts."""
    (tmp_path / "empty.py").touch()
    (tmp_path / "broken.py").write_text("1 / 0\n")
    given = [str(EXAMPLES / "word_count.py") if a == "JOB" else a for a in arguments]
    found = cli(tmp_path, *given, "--trace", "logs")
    assert found.returncode == code
    assert words in found.stderr
    assert not (tmp_path / "logs").exists()


def test_without_ports_there_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the operating system refuses is reported with a way out."""
    from streamproof_runtime.processes import cluster

    def refused() -> Any:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(cluster, "listening", refused)
    with pytest.raises(RuntimeFailure, match=r"no port .* can be opened: Operation not permitted; .* add --simulate"):
        run(EXAMPLES / "word_count.py")
