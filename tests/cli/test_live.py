"""The live view of `run`: what it shows, on a terminal and elsewhere, and that neither a run nor a terminal suffers."""

from __future__ import annotations

import json
import os
import pty
import signal
import termios
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from runtime_processes import MARK, PROGRAM, marked, wait_until
from streamproof.report.live_view import LiveView, frame
from streamproof_runtime.command import Simulated
from streamproof_runtime.live import Board
from streamproof_runtime.processes.cluster import Cluster, Settings
from streamproof_runtime.processes.kills import Kill

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HOSTILE = """
import sys
from streamproof_runtime import Job

def job():
    made = Job("hostile")

    def bad(record):
        print("said \\x1b[2J", file=sys.stderr)
        raise ValueError("\\x1b]0;title\\x07 [red]")

    made.source("numbers", [1]).map(bad).collect("all")
    return made
"""
ENDLESS = """
import threading
from streamproof_runtime import Job

def job():
    made = Job("endless")
    made.source("numbers", [1]).process("block", lambda c, r: threading.Event().wait()).collect("all")
    return made
"""


def snapshots(name: str = "sales", **more: Any) -> list[dict[str, Any]]:
    """What a view of a simulated run gets."""
    settings = {"level": "heavy", "variant": None, "executors": 3, "slots": 2, **more}
    found: list[Any] = []
    Simulated(EXAMPLES / f"{name}.py", **settings).seed(7, found.append)
    return found


def rendered(snapshot: dict[str, Any], height: int = 60) -> str:
    """The text of a frame."""
    console = Console(record=True, width=140, file=StringIO(), force_terminal=True)
    console.print(frame(snapshot, height))
    return console.export_text()


def test_a_frame_shows_tasks_buffers_credits_and_events() -> None:
    """Every task has a line with its state and attempt; counts are those of the run; each event appears in its time."""
    found = snapshots()
    assert len(found) > 10
    last = found[-1]
    text = rendered(last)
    assert text.startswith("seed 7: DONE, ")
    rows = {row.split()[0]: row.split() for row in text.splitlines()}
    assert {task["task"] for task in last["tasks"]} <= rows.keys()
    for task in last["tasks"]:
        assert rows[task["task"]][1:4] == [task["executor"], "TERMINATED", str(task["attempt"])]
    assert max(task["attempt"] for task in last["tasks"]) > 0
    assert "job_finished" in text.splitlines()[-1]
    seen = {task["state"] for snapshot in found for task in snapshot["tasks"]}
    assert {"CREATED", "DEPLOYED", "RUNNING", "TERMINATED"} <= seen
    assert any("crash" in event or "disconnect" in event for _, event in last["events"])
    for snapshot in found:
        for task in snapshot["tasks"]:
            assert task.get("records", 0) >= 0 <= task["rate"]
            if "buffers" in task and task["capacity"]:
                assert 0 <= task["buffers"] <= task["capacity"]


def test_a_frame_shows_the_resource_manager() -> None:
    """Its slots are those of the TaskExecutors that have registered; while it is down, another one is starting."""
    found = snapshots(level="severe", executors=2)
    samples = [snapshot["manager"] for snapshot in found]
    assert None in samples
    assert max(sample["slots"] for sample in samples if sample) == 4
    for sample in filter(None, samples):
        assert sample["slots"] == 2 * sample["executors"]
        assert sample["allocated"] + sample["requested"] <= sample["slots"]
    busy = max(found, key=lambda snapshot: (snapshot["manager"] or {}).get("allocated", 0))
    sample = busy["manager"]
    slots = f"{sample['allocated']} of {sample['slots']} slots allocated"
    assert f"ResourceManager: {sample['executors']} TaskExecutors; {slots}, " in rendered(busy)
    assert "ResourceManager: starting" in rendered(next(s for s in found if s["manager"] is None))


@pytest.mark.parametrize("name", ["jobmaster", "rm", "tm-1"])
def test_a_lost_process_is_not_shown_as_if_it_were_there(name: str) -> None:
    """Until the process that replaces it reports."""
    board = Board()
    master = {"status": "RUNNING", "attempts": 1, "executors": {"tm-1": 2}, "regions": []}
    manager = {"executors": 1, "slots": 2, "allocated": 2, "requested": 0, "required": 2}
    board.master(master)
    board.manager(manager)
    board.lost(name)
    text = rendered(board.snapshot(1.0, "job"))
    assert text.startswith("job: JobMaster lost, 1 attempt") is (name == "jobmaster")
    assert ("ResourceManager: starting" in text) is (name == "rm")
    board.master(master)
    board.manager(manager)
    text = rendered(board.snapshot(2.0, "job"))
    assert text.startswith("job: RUNNING, 1 attempt, 2.0 s")
    assert "ResourceManager: 1 TaskExecutor; 2 of 2 slots allocated, 0 requested, 2 required" in text


def test_buffers_and_credits_are_in_balance() -> None:
    """A subtask without credit whose buffers wait is blocked, and only then."""
    tasks = [task for snapshot in snapshots("pagerank") for task in snapshot["tasks"] if "waiting" in task]
    assert {task["state"] == "BLOCKED" for task in tasks if task["waiting"] and task["state"] != "ATTEMPTING"} <= {True}
    assert all(task["waiting"] for task in tasks if task["state"] == "BLOCKED")


def test_a_frame_fits_the_terminal() -> None:
    """Tasks that are over make way for those at work."""
    last = snapshots()[-1]
    tasks = [
        {**task, "state": "RUNNING" if number == 20 else task["state"]} for number, task in enumerate(last["tasks"])
    ]
    text = rendered({**last, "tasks": tasks}, height=20)
    assert len(text.splitlines()) <= 20
    assert tasks[20]["task"] in text
    assert f"and {len(tasks) - 3} more" in text


def test_names_cannot_command_the_terminal() -> None:
    """Escape sequences and markup in any text are shown, not obeyed."""
    evil = "\x1b[31m[red]\u202e"
    last = snapshots("word_count")[-1]
    tasks = [{**task, "task": evil, "executor": evil, "state": evil} for task in last["tasks"]]
    changed = {**last, "title": evil, "status": evil, "tasks": tasks, "events": [(0.0, evil)], "executors": {evil: 2}}
    console = Console(record=True, width=200, file=StringIO(), force_terminal=True)
    console.print(frame(changed, 60))
    text = console.export_text(styles=True)
    assert "\x1b[31m" not in text
    assert "\u202e" not in text
    assert text.count("\\x1b[31m[red]\\u202e") > len(tasks)
    plain = StringIO()
    with LiveView(plain) as view:
        view(changed)
    assert "\x1b" not in plain.getvalue()
    assert "\\x1b[31m[red]" in plain.getvalue()


def test_a_view_changes_no_run(streamproof: Any, tmp_path: Path) -> None:
    """A simulated run has the same steps and the same log; without a terminal its view is plain lines."""
    job = str(EXAMPLES / "sales.py")
    runs = []
    for options in ((), ("--live",)):
        done = streamproof("run", job, "--simulate", "--seed", "4", "--faults", "heavy", *options, "--json", "-")
        assert done.code == 0
        runs.append(json.loads(done.out)["runs"])
        assert ("job_finished" in done.err) is bool(options)
    assert runs[0] == runs[1]
    assert done.err.startswith("live view of seed 4, as lines: this is not a terminal\n")
    assert "\x1b" not in done.err
    (tmp_path / "job.py").write_text(HOSTILE)
    done = streamproof("run", str(tmp_path / "job.py"), "--simulate", "--live")
    assert done.code == 12
    assert "\x1b" not in done.out + done.err
    assert "ValueError: \\x1b]0;title\\x07 [red]" in done.out


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.mark = os.urandom(8).hex()
        self.before: Any = None
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            more = {MARK: self.mark, "TERM": "xterm", "COLUMNS": "140", "LINES": "40"}
            environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
            os.execve(PROGRAM, [str(PROGRAM), *arguments], {**environment, **more})
        self.before = termios.tcgetattr(self.end)
        self.text = ""

    def until(self, words: str) -> None:
        """Reads until words appear, or the program has closed the terminal."""
        while words not in self.text:
            try:
                data = os.read(self.end, 1 << 16)
            except OSError:  # how Linux says that nobody is at the other end
                return
            self.text += data.decode("utf-8", "replace")

    def close(self) -> int:
        """Reads the rest; returns the exit code. The terminal must be as before."""
        self.until("\0")
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert termios.tcgetattr(self.end) == self.before
        os.close(self.end)
        for command in ("\x1b[?25l", "\x1b[?1049h", "\x1b[?1l"):  # no hidden cursor, no other screen, no mode
            assert command not in self.text
        assert self.text.endswith("\n")
        wait_until(lambda: not marked(self.mark))
        return code


def test_what_is_reported_is_shown() -> None:
    """Also if no process reports a sample after it."""
    received: list[str] = []
    shown: list[Any] = []
    settings = Settings(EXAMPLES / "components.py", executors=3, slots=2, live=True)
    kill = Kill("tm-1", events=12)
    assert Cluster(settings, [kill], received.append, shown.append).run().finished
    assert kill.is_done
    assert "tm-1 has ended: killed by SIGKILL" in received
    assert [text for _, text in shown[-1]["events"]] == received


processes = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found by /proc")


@processes
def test_a_run_on_a_terminal(tmp_path: Path) -> None:
    """A kill is seen, the last frame and the verdict stay, and what processes print appears above, escaped."""
    file = tmp_path / "job.py"
    source = (EXAMPLES / "components.py").read_text()
    file.write_text(source.replace("    def known", "    print('made', '\\x1b[2J')\n\n    def known", 1))
    terminal = Terminal(tmp_path, "run", "job.py", "--live", "--kill", "tm-1@12")
    assert terminal.close() == 0
    text = terminal.text
    assert "records/s" in text
    assert "made \\x1b[2J" in text
    assert "\x1b[2J" not in text
    assert "tm-1 has ended: killed by SIGKILL" in text
    assert "TERMINATED" in text.rpartition("records/s")[0]
    assert "the result is as expected" in text.splitlines()[-3]


@processes
@pytest.mark.parametrize("sent", ["\x03", pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_interrupt_leaves_the_terminal_as_it_was(sent: str | signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C typed, or SIGTERM, while a user function never returns: no process is left."""
    (tmp_path / "job.py").write_text(ENDLESS)
    terminal = Terminal(tmp_path, "run", "job.py", "--live")
    terminal.until("started")
    time.sleep(0.5)  # frames are drawn meanwhile
    if isinstance(sent, str):
        os.write(terminal.end, sent.encode())
    else:
        os.kill(terminal.pid, sent)
    assert terminal.close() == 130
    assert "interrupted" in terminal.text


@pytest.mark.long
@processes
def test_kill_9_of_the_program_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    """Nothing of the terminal was changed, so that nobody has to restore it."""
    (tmp_path / "job.py").write_text(ENDLESS)
    terminal = Terminal(tmp_path, "run", "job.py", "--live")
    terminal.until("started")
    os.kill(terminal.pid, signal.SIGKILL)
    terminal.text += "\n"
    assert terminal.close() == -signal.SIGKILL
