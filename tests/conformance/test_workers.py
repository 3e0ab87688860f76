"""Several processes give the verdicts of one: the same records, warnings, events and errors, in the same order."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streamproof.conformance.validation import LARGE, fitting_workers, validate_paths
from streamproof.system import InputError

COUNTER = '''
import os, signal, sys, time
from pathlib import Path
from streamproof import Model, Range, State, action
from streamproof.conformance import EventLog


class Counter(Model):
    """A counter."""

    def state(self):
        return State(n=Range(0, 9))

    @action
    def up(self, s):
        """One more."""
        s.n = min(9, s.n + 1)


class Marked(EventLog):
    """Notes which run it reads, and dies of one that says so."""

    def plan(self, run, job_graph):
        with open(run.parent / "order.txt", "a") as order:
            order.write(run.stem + "\\\\n")
        print("reading", run.stem)
        if run.stem == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        if run.stem == "faulty":
            raise ZeroDivisionError("of the binding")
        if run.stem.startswith("slow"):
            (run.parent / f"{run.stem}.pid").write_text(str(os.getpid()))
            time.sleep(100)
        return super().plan(run, job_graph)


BINDING = Marked(Counter)
'''


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with a binding, and with logs of which each is longer than the one before."""
    (tmp_path / "counter.py").write_text(COUNTER.replace("\\\\", "\\"))
    for at, name in enumerate(("a", "b", "c", "d")):
        log(tmp_path / f"{name}.ndjson", 10 * at + 1)
    return tmp_path


def log(file: Path, events: int, event: str = "up") -> None:
    """An event log."""
    line = {"trace": "t", "process": "p", "event": event}
    file.write_text("".join(json.dumps({**line, "seq": n}) + "\n" for n in range(events)))


def validated(*words: str | Path) -> tuple[int, str, str]:
    """What the program says: its exit code and its output. A process of its own, because one with threads is not forked."""
    command = [sys.executable, "-m", "streamproof", "validate", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.long
def test_two_processes_give_the_verdicts_of_one(flink_logs: Path, tmp_path: Path) -> None:
    """Of recorded runs, against all models; with their events and the share of them that was judged."""
    outcomes = []
    for workers in ("1", "2"):
        events = tmp_path / workers
        report = validated(
            flink_logs, "--model", "all", "--workers", workers, "--events", events, "--coverage", "--json", "-"
        )
        outcomes.append((report, {file.name: file.read_bytes() for file in events.iterdir()}))
    assert outcomes[0] == outcomes[1]
    assert len(json.loads(outcomes[0][0][1])["verdicts"]) > 40


def test_several_processes_give_the_verdicts_of_one(logs: Path) -> None:
    """Of event logs, with their events and the share of them that was judged."""
    model, outcomes = f"{logs / 'counter.py'}:BINDING", []
    for workers in ("1", "3"):
        events = logs / workers
        code, said, _ = validated(
            logs, "--model", model, "--workers", workers, "--events", events, "--coverage", "--json", "-"
        )
        verdicts = said[said.index("{") :]  # the binding prints
        outcomes.append((code, verdicts, {file.name: file.read_bytes() for file in events.iterdir()}))
    assert outcomes[0] == outcomes[1]
    document = json.loads(outcomes[0][1])
    assert [(v["run"], v["verdict"]) for v in document["verdicts"]] == [(name, "accepted") for name in "abcd"]
    assert document["coverage"] == {"up": {"read": 64, "judged": 64}}


def test_the_largest_run_is_first_and_results_keep_their_order(logs: Path) -> None:
    """By their sizes; what a binding prints does not mix with the answers."""
    program = f"""
from pathlib import Path
from streamproof.conformance.found_runs import ValidationRequest, found_runs
from streamproof.conformance.validation import judge_in_processes
request = ValidationRequest(model={str(logs / "counter.py")!r} + ":BINDING")
judged = judge_in_processes(found_runs([Path({str(logs)!r})], request), request, 1)
print(*(v.run for one in judged for v in one.verdicts))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "a b c d\n"
    assert (logs / "order.txt").read_text().split() == ["d", "c", "b", "a"]


def test_a_process_that_dies_costs_its_own_run_alone(logs: Path) -> None:
    """The run has the verdict `error`, which says why; the others have theirs."""
    log(logs / "deadly.ndjson", 99)
    code, said, _ = validated(logs, "--model", f"{logs / 'counter.py'}:BINDING", "--workers", "2", "--json", "-")
    verdicts = json.loads(said[said.index("{") :])["verdicts"]
    assert (code, [v["verdict"] for v in verdicts]) == (153, [*["accepted"] * 4, "error"])
    assert verdicts[-1]["reason"] == "the process that validated it ended (-9); it may have been out of memory"


def test_the_error_is_that_of_the_first_run(logs: Path) -> None:
    """As with one process, whichever run is judged first."""
    log(logs / "b.ndjson", 3, "down")
    log(logs / "d.ndjson", 99, "sideways")
    model = f"{logs / 'counter.py'}:BINDING"
    named = sorted(logs.glob("*.ndjson"))
    with pytest.raises(InputError) as alone:
        validate_paths(named, model=model)
    code, _, said = validated(named[0], *map(str, named[1:]), "--model", model, "--workers", "3")
    assert code == 2
    assert said.endswith(f"streamproof: error: {alone.value}\n")
    assert str(alone.value).startswith(f"{logs / 'b.ndjson'}:1: ")
    in_folder = {workers: validate_paths([logs], model=model, workers=workers) for workers in (1, 3)}
    assert in_folder[1] == in_folder[3]
    assert [v.answer for v in in_folder[1]] == ["accepted", "error", "accepted", "error"]
    assert in_folder[1][1].reason == alone.value.one_line


def test_what_a_binding_raises_is_reported_as_by_one_process(logs: Path) -> None:
    """With the line of the binding, whichever process meets it; the runs before it are judged."""
    log(logs / "faulty.ndjson", 2)
    model = f"{logs / 'counter.py'}:BINDING"
    said = {workers: validated(logs, "--model", model, "--workers", workers)[::2] for workers in ("1", "3")}
    assert said["1"][0] == said["3"][0] == 150
    for _, text in said.values():
        assert re.search(r"counter\.py:\d+: unexpected ZeroDivisionError: of the binding\n", text)
        assert "Traceback" not in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_behind(logs: Path, number: int) -> None:
    """An interrupt ends all processes, and so does a kill that nobody can react to; nothing is half written."""
    slow = [logs / f"slow{k}.pid" for k in (1, 2)]
    for file in slow:
        log(file.with_suffix(".ndjson"), 200)
    command = [sys.executable, "-m", "streamproof", "validate", str(logs), "--model", f"{logs / 'counter.py'}:BINDING"]
    more = ["--workers", "2", "--json", str(logs / "out.json"), "--events", str(logs / "events")]
    with subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        until(lambda: all(file.exists() and file.read_text() for file in slow))
        running.send_signal(number)
        _, err = running.communicate(timeout=60)
    pids = [int(file.read_text()) for file in slow]
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert running.returncode == (-9 if number == signal.SIGKILL else 130)
    assert number == signal.SIGKILL or err.endswith("\nstreamproof: error: interrupted\n")
    assert not (logs / "out.json").exists()
    assert not [file for file in logs.glob("events/*") if not file.name.endswith(".ndjson")]


def until(condition: Callable[[], bool]) -> None:
    """Waits for a condition, at most a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_runs_of_one_name_keep_their_events(logs: Path) -> None:
    """Several files, or folders, of one name get numbers: each has its verdicts and its file of events."""
    for at, folder in enumerate((logs / "x", logs / "y")):
        folder.mkdir()
        log(folder / "a.ndjson", at + 2)
    (logs / "a-2.ndjson").write_bytes((logs / "b.ndjson").read_bytes())
    model, outcomes = f"{logs / 'counter.py'}:BINDING", []
    for workers in ("1", "3"):
        events = logs / f"events{workers}"
        paths = (logs / "x", logs / "a-2.ndjson", logs / "y", logs / "a.ndjson")
        done = validated(*paths, "--model", model, "--workers", workers, "--events", events, "--json", "-")
        verdicts = json.loads(done[1][done[1].index("{") :])["verdicts"]
        assert [(v["run"], v["events"]["matched"]) for v in verdicts] == [("a", 2), ("a-2", 11), ("a-3", 3), ("a-4", 1)]
        outcomes.append({file.name: file.read_bytes() for file in events.iterdir()})
    assert outcomes[0] == outcomes[1]
    assert {name: data.count(b"\n") for name, data in outcomes[0].items()} == {
        "a.ndjson": 2, "a-2.ndjson": 11, "a-3.ndjson": 3, "a-4.ndjson": 1
    }  # fmt: skip


def test_runs_of_flink_in_folders_of_one_name(flink_logs: Path, tmp_path: Path) -> None:
    """Two runs, though both folders are called alike."""
    for outer, run in (("x", "a-taskfail-1"), ("y", "a-pipelined-1")):
        shutil.copytree(flink_logs / run, tmp_path / "logs" / outer / "run")
    validated(tmp_path / "logs", "--events", tmp_path / "events")
    assert sorted(file.name for file in (tmp_path / "events").iterdir()) == ["run-2.ndjson", "run.ndjson"]


def test_a_program_with_threads_is_not_forked(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the same verdicts from one process."""
    monkeypatch.setattr("os.fork", lambda: pytest.fail("forked"))
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert len(validate_paths([logs], model=f"{logs / 'counter.py'}:BINDING", workers=2)) == 4
    finally:
        end.set()
        thread.join()


def test_small_logs_take_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one large run, which cannot be shared; with more than that, one process for each processor."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2})
    assert [fitting_workers(sizes) for sizes in ([], [1000] * 9, [10 * LARGE], [LARGE, 9 * LARGE])] == [1, 1, 1, 3]
