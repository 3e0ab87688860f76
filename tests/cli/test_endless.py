"""Models that never end to be read, or are too large: limits on time hold from the first line of the model on."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof import supervisor

HANGS = 120.0
"""Seconds after which a program counts as one that does not end."""

HEAD = (
    "import itertools\nfrom streamproof import ANY, Array, Bool, Model, Queue, Range, Record, Set"
    ", State, action, invariant, require\n"
)


def model(body: str, *, setup: str = "pass", domain: str = "range(2)", state: str = "x=Range(0, 3)") -> str:
    """A model with an action, parts of which are given."""
    return f"""{HEAD}
class M(Model):
    check_deadlock = False
    def setup(self):
        {setup}
    def state(self):
        return State({state})
    @action(i={domain})
    def go(self, s, i):
        require(s.x == i)
        {body}
    @invariant
    def small(self, s):
        return s.x < 4
"""


ENDLESS = {
    "at import": HEAD + "while True:\n    pass\n",
    "at import, swallowing": HEAD
    + "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass\n",
    "at import, in native code": HEAD + "sum(itertools.count())\n",
    "in setup": model("s.x = 0", setup="self.sum = sum(iter(int, 1))"),
    "in a helper": model("s.x = forever()") + "def forever():\n    while True:\n        pass\n",
    "initial states": model("s.x = 0", state="x=Range(0, 4999998, init=ANY)"),
}  # fmt: skip
HARD = {"at import, swallowing", "at import, in native code", "in setup"}
"""Those that only another process can end, after some seconds of grace."""


PROGRAM = ["-m", "streamproof"]
HASTY = [
    "-c",
    "from streamproof import __main__, supervisor; supervisor.GRACE, supervisor.LONG = 0.5, 0.5; __main__.program()",
]
"""The program, with less patience than usual."""


def program(folder: Path, *words: str, how: Sequence[str] = PROGRAM, **more: Any) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    return subprocess.run(
        [sys.executable, *how, *words],
        cwd=folder, capture_output=True, text=True, timeout=HANGS, check=False, **more,
    )  # fmt: skip


@pytest.mark.parametrize("verb", share(["check", "simulate", "prove"], 3))
@pytest.mark.parametrize("which", [w for w in ENDLESS if w not in HARD])
def test_a_time_limit_covers_reading_the_model(tmp_path: Path, verb: str, which: str) -> None:
    """What was cut is named, and the exit code is that of an inconclusive run."""
    (tmp_path / "m.py").write_text(ENDLESS[which])
    option = "--timeout" if verb == "prove" else "--time-limit"
    done = program(tmp_path, verb, "m.py", option, "1")
    assert done.returncode == 160, done.stderr
    assert "Traceback" not in done.stderr
    if which != "initial states":
        assert "time limit of 1 s reached while reading the model" in done.stderr


@pytest.mark.parametrize("which", share(sorted(HARD), 3))
def test_what_does_not_react_to_a_time_limit_is_killed(tmp_path: Path, which: str) -> None:
    """Code that swallows every exception, or never comes back to Python, ends too."""
    (tmp_path / "m.py").write_text(ENDLESS[which])
    done = program(tmp_path, "check", "m.py", "--time-limit", "1", how=HASTY)
    assert done.returncode == 160, done.stderr
    assert "time limit of 1 s reached while reading the model" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_time_limit_is_in_the_json(tmp_path: Path) -> None:
    """The JSON of a run that ended before anything was decided has the exit code and the reason."""
    (tmp_path / "m.py").write_text(ENDLESS["in a helper"])
    done = program(tmp_path, "check", "m.py", "--time-limit", "1", "--json", "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    assert (done.returncode, document["exit_code"]) == (160, 160)
    assert "while reading the model" in document["error"]["message"]


@pytest.mark.parametrize("how", [HASTY, pytest.param(PROGRAM, marks=pytest.mark.long)], ids=["hasty", "usual"])
def test_what_takes_long_is_said(tmp_path: Path, how: Sequence[str]) -> None:
    """A model whose reading takes long is no silent program: however loaded the machine is, the program is given the time."""
    (tmp_path / "m.py").write_text(ENDLESS["at import"])
    command = [sys.executable, *how, "check", "m.py"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:
        assert select.select([running.stderr], [], [], HANGS)[0], "nothing is said"
        assert running.stderr.readline() == "streamproof: reading the model ...\n"  # type: ignore[union-attr]
        running.send_signal(signal.SIGTERM)
        assert running.wait(HANGS) == 130


@pytest.mark.parametrize(
    ("computed", "waited", "said"),
    [
        (supervisor.LONG - 0.1, supervisor.VERY_LONG - 0.1, False),
        (supervisor.LONG + 0.1, 0.0, True),
        (0.0, supervisor.VERY_LONG + 0.1, True),
    ],
)
def test_a_step_is_slow_by_its_processor_time_or_by_the_clock(
    computed: float, waited: float, said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before either limit nothing is said, and what was said is not said again. Both clocks are the test's."""
    printed: list[str] = []
    now = {"monotonic": 1000.0, "computed": 7.0}
    monkeypatch.setattr(supervisor, "_print", printed.append)
    monkeypatch.setattr(supervisor, "time", types.SimpleNamespace(monotonic=lambda: now["monotonic"]))
    monkeypatch.setattr(supervisor._Supervisor, "computed", lambda self: now["computed"])
    watching = supervisor._Supervisor(0, 0, 0)
    watching.receive(b"doing\t\t0\treading the model\t\n")
    now["monotonic"] += waited
    now["computed"] += computed
    for _ in range(2):
        watching.report_slow()
    assert printed == ["streamproof: reading the model ...\n"] * said


@pytest.mark.parametrize(
    ("domain", "why"),
    [
        ("range(10**8)", "the domain of go(i) has more than 200,000 values"),
        ("itertools.count()", "is empty after its first use"),
        ("(n for n in itertools.count())", "is empty after its first use"),
    ],
)
def test_domains_have_a_largest_size(tmp_path: Path, domain: str, why: str) -> None:
    """A parameter of a million values is refused at its line, with the cap; one that has no end, as any iterator."""
    (tmp_path / "m.py").write_text(model("s.x = 0", domain=domain))
    done = program(tmp_path, "check", "m.py")
    assert (done.returncode, done.stdout) == (150, "")
    assert "m.py:10: " in done.stderr
    assert why in done.stderr


def test_the_instances_of_an_action_are_counted_before_they_are_read(tmp_path: Path) -> None:
    """Three domains of a thousand values, each of them small enough, are a thousand million instances."""
    text = model("s.x = 0", domain="range(1000), j=range(1000), k=range(1000)")
    (tmp_path / "m.py").write_text(text.replace("s, i)", "s, i, j, k)"))
    done = program(tmp_path, "check", "m.py")
    assert (done.returncode, done.stdout) == (150, "")
    assert "m.py:11: action go has more than 2,000,000 combinations of values" in done.stderr


@pytest.mark.parametrize(
    "sort", ["Set(Range(0, 10**12), ANY)", "Queue(Bool(), 10**9, ANY)", "Record(a=Set(Range(0, 40)), init=ANY)"]
)
def test_first_values_are_counted_before_they_are_made(tmp_path: Path, sort: str) -> None:
    """Whatever the sort, and so are the values of a domain."""
    (tmp_path / "m.py").write_text(model("s.x = s.x", state=f"x={sort}"))
    done = program(tmp_path, "check", "m.py")
    assert (done.returncode, done.stdout) == (150, "")
    assert "m.py:9: a variable of " in done.stderr
    assert "has more than 5,000,000 first values" in done.stderr
    (tmp_path / "m.py").write_text(model("s.x = 0", domain=sort.replace(", ANY", "").replace(", init=ANY", "")))
    done = program(tmp_path, "check", "m.py")
    assert (done.returncode, done.stdout) == (150, "")
    assert "m.py:10: the domain of go(i) has more than 200,000 values" in done.stderr


@pytest.mark.parametrize("size", ["10**7", "10**12"])
def test_the_size_of_a_variable_is_checked_before_it_is_built(tmp_path: Path, size: str) -> None:
    """Ten million parts are too large, and a million million as soon."""
    (tmp_path / "m.py").write_text(model("s.x[0] = 0", state=f"x=Array({size}, Bool())"))
    done = program(tmp_path, "check", "m.py")
    assert done.returncode == 152
    assert "m.py:9: a variable of Array(Range(0, " in done.stderr


@pytest.mark.parametrize("seconds", share(["0.4", "1", "2"], 3))
def test_proofs_for_every_size_end_with_their_time(tmp_path: Path, seconds: str) -> None:
    """Wherever the time goes, into reading, comparing or proving, the answer is inconclusive."""
    proof = "prove credit -p channels=12 --any exclusive,floating,depth -q --timeout"  # takes half a minute
    done = program(tmp_path, *proof.split(), seconds)
    assert done.returncode == 160, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("base", ["BaseException", "GeneratorExit"])
def test_any_exception_at_import_is_an_error_of_the_model(tmp_path: Path, base: str) -> None:
    """Those that are no `Exception` too."""
    (tmp_path / "m.py").write_text(f"class X({base}):\n    pass\nraise X('no')\n")
    done = program(tmp_path, "check", "m.py")
    assert (done.returncode, done.stdout) == (150, "")
    assert done.stderr == "streamproof: error: m.py:3: X: no\n  correct the model\n"


@pytest.mark.parametrize(
    ("closed", "code"), [("<&-", 12), ("2>&-", 12), (">&-", 141), (">&- 2>&-", 141), ("<&- >&- 2>&-", 141)]
)
def test_closed_standard_streams(folder: Path, closed: str, code: int) -> None:
    """Without an output the program ends as at a closed pipe; without input or messages it does its work."""
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m streamproof check counter.py -q {closed}"],
        cwd=folder, capture_output=True, text=True, timeout=HANGS, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, "")
    if ">&-" not in closed.replace("2>&-", ""):
        assert "violated: low" in done.stdout


def test_a_worker_that_is_killed_is_explained(folder: Path) -> None:
    """The system kills what takes too much memory: the program says so, with the code for that."""
    (folder / "killed.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    done = program(folder, "check", "killed.py")
    assert done.returncode == 152
    assert done.stderr.startswith("streamproof: error: killed (SIGKILL)")


@pytest.mark.parametrize("stopped", [False, True])
def test_nothing_survives_the_program(stopped: bool, folder: Path) -> None:
    """Whoever kills the program, without a chance to clean up, has ended what it was doing, also what Ctrl-Z has stopped."""
    (folder / "sleeps.py").write_text(
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        "open('pids', 'w').write(f'{os.getpid()} {child.pid}')\n"
        "os.rename('pids', 'ready')\n"
        "time.sleep(1000)\n"
    )
    process = subprocess.Popen([sys.executable, "-m", "streamproof", "check", "sleeps.py"], cwd=folder)
    while not (folder / "ready").exists():
        assert process.poll() is None
    pids = [int(pid) for pid in (folder / "ready").read_text().split()]
    if stopped:
        process.send_signal(signal.SIGTSTP)
        while {*map(_state, (process.pid, *pids))} != {"T"}:
            assert process.poll() is None
    process.kill()
    process.wait()
    for pid in pids:
        while _alive(pid):
            pass
    assert not any(map(_alive, pids))


def test_a_stopped_program_goes_on(folder: Path) -> None:
    """Ctrl-Z and `fg`: the answer is the same, and nothing is left."""
    (folder / "waits.py").write_text(
        "import os, time\nopen('ready', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
        + (folder / "counter.py").read_text()
    )
    process = subprocess.Popen([sys.executable, "-m", "streamproof", "check", "waits.py", "-q"], cwd=folder)
    while not (folder / "ready").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGTSTP)
    while _state(process.pid) != "T":
        assert process.poll() is None
    (folder / "go").touch()
    process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=HANGS) == 12


def test_what_is_called_at_the_end_has_a_limit(folder: Path) -> None:
    """It is ended when it takes too long; the answer is there, with its exit code."""
    (folder / "late.py").write_text(
        "import atexit, time\natexit.register(time.sleep, 10**6)\n" + (folder / "counter.py").read_text()
    )
    done = program(folder, "check", "late.py", "-q", how=HASTY)
    assert (done.returncode, "violated: low" in done.stdout) == (12, True)
    assert done.stderr == "streamproof: functions registered with atexit take too long\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("words", ["check counter.py --json -", "prove counter.py -q --json -"])
def test_a_pipe_that_nobody_reads_holds_nothing_up(words: str, number: int, folder: Path) -> None:
    """An interrupt ends a program that cannot write its answer, and nobody has to kill it."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writing, b" " * 4096)
    with subprocess.Popen(
        [sys.executable, "-m", "streamproof", *words.split()],
        cwd=folder, stdout=writing, stderr=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stderr is not None
        said = []
        for line in program.stderr:
            said.append(line)
            if line.startswith("reproduce: "):
                program.send_signal(number)
        assert program.wait(timeout=HANGS) == 130
    os.close(reading)
    os.close(writing)
    assert said.count("streamproof: error: interrupted\n") == 1


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _alive(pid: int) -> bool:
    return _state(pid) not in ("", "Z")


def test_a_model_that_ignores_ctrl_c_is_killed(tmp_path: Path) -> None:
    """Once is enough; the program ends, and says so."""
    (tmp_path / "m.py").write_text("open('ready', 'w').close()\n" + ENDLESS["at import, swallowing"])
    process = subprocess.Popen(
        [sys.executable, "-m", "streamproof", "check", "m.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "ready").exists():
        assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    error = process.communicate(timeout=HANGS)[1]
    assert process.returncode == 130
    assert error.endswith("streamproof: error: interrupted while reading the model\n")
