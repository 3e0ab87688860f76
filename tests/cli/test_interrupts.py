"""Ctrl-C at any moment of any verb: it ends, says so, and leaves no process and no half-written file behind."""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from shares import share

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "checker" / "streamproof" / "__main__.py"
HANDLED = 1 + PROGRAM.read_text().splitlines().index("    _signal.signal(_signal.SIGINT, _interrupted)")
"""The line of the program that sets the first handler of Ctrl-C."""
HANGS = 60.0
"""Seconds after which an interrupted program counts as one that does not end."""
SHORT, LONG = 2.0, 10.0
"""Seconds of a verb that are of interest, for those that take longer, in few and in many trials."""
MARK = "STREAMPROOF_TEST_MARK"
"""An environment variable that everything has which a program under test has started."""

MODEL = '''
from streamproof import Model, Range, State, action, invariant, lemma, require


class Wide(Model):
    """Counters that go round, one by one."""

    size: int = 12

    def state(self):
        return State(a=Range(0, self.size), b=Range(0, self.size), c=Range(0, self.size))

    @action
    def first(self, s):
        s.a = 0 if s.a == self.size else s.a + 1

    @action
    def second(self, s):
        s.b = 0 if s.b == self.size else s.b + 1

    @action
    def third(self, s):
        s.c = 0 if s.c == self.size else s.c + 1

    @invariant
    def apart(self, s):
        return s.a + s.b + s.c < 3 * self.size
'''

SLOW = '''
from streamproof import Array, Model, Range, State, action, invariant, require


class Slow(Model):
    """Counters whose rules are so large that their code takes most of a minute to compile."""

    size: int = 40
    few: int = 30

    def setup(self):
        self.indices = range(self.few)

    def state(self):
        return State(x=Array(range(self.size), Range(0, 9)), y=Range(0, 9))

    @action(i="indices", j="indices")
    def go(self, s, i, j):
        require(s.x[i] < 9)
        total = 0
        for k in range(self.size):
            total += s.x[k] * (i + k) if s.x[k] > s.x[j] else s.x[j] * k
        s.y = total % 10
        s.x[i] += 1

    @invariant
    def small(self, s):
        return s.y < 10
'''
ENDS = 5.0
"""Seconds within which the program ends after a signal, in every stage."""
LOADED = 5.0
"""More such seconds on a loaded machine; what does not end takes a minute."""

VERBS = {
    "models": "models failover",
    "check": "check wide.py -p size=40 --out out --json answer.json",
    "check-certificate": "check failover --certificate proof.cert --out out",
    "check-bmc": "check wide.py --engine bmc --depth 30 --out out",
    "check-slow": "check slow.py --tier compiled",
    "check-slow-auto": "check slow.py --json answer.json",
    "simulate-slow": "simulate slow.py --walks 2000 --seed 1",
    "check-agree": "check wide.py --agree --json answer.json",
    "compare": "compare cyclic --json answer.json",
    "prove": "prove failover --out out --json answer.json",
    "prove-any": "prove credit --any exclusive,floating,depth --json answer.json",
    "sweep": "sweep credit -p channels=2 -p depth=2..3 -p floating=0..2 -p exclusive=1..2 --out out",
    "simulate": "simulate failover --walks 2000 --seed 1 --out out",
    "replay": "replay trace.itf.json",
    "export": "export failover --format promela --out out",
    "validate": "validate logs/a-taskfail-1 logs/b-lostpart-1 --events events --json answer.json",
    "verify-certificate": "verify-certificate given.cert --model failover",
    "counterexamples": "counterexamples --out out",
    "counterexamples-check": f"counterexamples --check --out {ROOT / 'counterexamples'}",
    "completion": "completion bash",
}
SPARK = {
    "report": "report events --out out",
    "validate-spark": "validate logs/a-taskfail-1 logs/b-lostpart-1 --master local[2] --events events",
}


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of one run: its exit code, whether the signal met it alive, and what it wrote to standard error."""

    code: int
    seconds: float
    met: bool
    error: str
    after: float
    """Seconds from the signal to the end."""


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the verbs read."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "wide.py").write_text(MODEL)
    (folder / "slow.py").write_text(SLOW)
    for member in ("a-taskfail-1", "b-lostpart-1"):
        packed = ROOT / "tests" / "data" / "flink" / "logs.tar.xz"
        subprocess.run(["tar", "xf", packed, "-C", folder, f"logs/{member}"], check=True)
    for words in (
        "check wide.py -p size=3 --out traces -q",
        "check failover --certificate given.cert -q",
        "validate logs/a-taskfail-1 --events events",
    ):
        subprocess.run(
            [sys.executable, "-m", "streamproof", *words.split()], cwd=folder, capture_output=True, check=False
        )
    (folder / "traces" / "apart.itf.json").rename(folder / "trace.itf.json")
    return folder


def run(words: str, inputs: Path, folder: Path, after: float) -> Ended:
    """One run in a folder of its own, interrupted so many seconds after it was ready for that."""
    folder.mkdir()
    for item in inputs.iterdir():
        if item.name not in ("streamproof-out", "traces"):
            (folder / item.name).symlink_to(item)
    mark = secrets.token_hex(8)
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "streamproof", *words.split()],
        cwd=folder,
        env={**os.environ, MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    met = False
    signalled = float("inf")
    try:
        while process.poll() is None and not listens(process.pid):
            time.sleep(0.005)
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            signalled = time.monotonic()
            process.send_signal(signal.SIGINT)
            met = True
        error = process.communicate(timeout=HANGS)[1]
        ended = time.monotonic() - signalled
    finally:
        process.kill()
        process.wait()
    left = marked(mark)
    assert not left, f"{words}: left behind after {after} s: {left}"
    return Ended(process.returncode, time.monotonic() - begun, met, error, ended)


def listens(pid: int) -> bool:
    """Whether the program handles signals by now: before that, the interpreter is being loaded."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (signal.SIGCHLD - 1) & 1)
    return False


def marked(mark: str) -> list[str]:
    """The command lines of the processes that have the mark in their environment."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                if f"{MARK}={mark}".encode() in (place / "environ").read_bytes():
                    found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    return found


def written(folder: Path) -> set[str]:
    """The files that a run has made."""
    files = (Path(where) / name for where, _, names in os.walk(folder) for name in names)
    return {str(file.relative_to(folder)) for file in files if not file.is_symlink()}


def interrupt(words: str, inputs: Path, tmp_path: Path, times: int, most: float, seed: int) -> None:
    """Interrupt a verb so many times, at random fractions of the time that it takes, or of its first seconds."""
    whole = run(words, inputs, tmp_path / "whole", most)
    names = None if whole.met else written(tmp_path / "whole")
    seconds = min(whole.seconds, most)
    chance = random.Random(seed)
    for number in range(times):
        folder = tmp_path / f"interrupted-{number}"
        after = seconds * (number + chance.random()) / times
        ended = run(words, inputs, folder, after)
        place = f"{words}, after {after:.3f} of {seconds:.3f} s:\n{ended.error}"
        of_its_own = not ended.met or (not whole.met and ended.code == whole.code)
        assert ended.code == 130 or of_its_own, f"{ended.code}: {place}"
        assert ended.after < ENDS + LOADED, place
        assert "Traceback" not in ended.error, place
        assert "Exception ignored" not in ended.error, place
        if ended.code == 130:
            assert "interrupted" in ended.error, place
        for name in written(folder):
            assert names is None or name in names or name.endswith(".pyc") or name.startswith("streamproof-out"), (
                f"{name}: {place}"
            )
            if name.endswith(".json"):
                json.loads((folder / name).read_text())


@pytest.mark.push
@pytest.mark.parametrize("verb", share(VERBS, 24, first=14))
def test_ctrl_c_ends_a_verb(verb: str, inputs: Path, tmp_path: Path) -> None:
    """Twice in the course of the verb."""
    interrupt(VERBS[verb], inputs, tmp_path, 2, SHORT, seed=1)


COMPILING = "streamproof: compiling the search ...\n"


@pytest.mark.parametrize(
    ("tier", "few", "number", "before"),
    [
        ("compiled", "24", signal.SIGTERM, "interrupted after 0 states in 0 levels, while compiling the search"),
        pytest.param(
            *(
                "auto",
                "30",
                signal.SIGINT,
                r"interrupted after [1-9]\d* states in \d levels, while compiling the search",
            ),
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_signal_ends_the_compilation(tier: str, few: str, number: int, before: str, tmp_path: Path) -> None:
    """Compiling this model takes many seconds; what generated Python has found before is the result."""
    (tmp_path / "slow.py").write_text(SLOW)
    command = [sys.executable, "-m", "streamproof", "check", "slow.py", "-p", f"few={few}", "--tier", tier]
    command += ["--json", "a.json"]
    environment = {**os.environ, "STREAMPROOF_CACHE": ""}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        assert COMPILING in iter(running.stderr.readline, "")
        signalled = time.monotonic()
        running.send_signal(number)
        shown, error = running.communicate(timeout=HANGS)
    assert time.monotonic() - signalled < ENDS + LOADED
    assert running.returncode == 130
    assert re.search(before, " ".join(shown.split())), shown
    assert error == "streamproof: interrupted; the results found so far are above\n"
    document = json.loads((tmp_path / "a.json").read_text())
    assert (document["exit_code"], document["stopped"]) == (130, "interrupted")


@pytest.mark.long
def test_a_time_limit_ends_the_compilation(tmp_path: Path) -> None:
    """The end of the limit does not wait for the compiler either."""
    (tmp_path / "slow.py").write_text(SLOW)
    done = subprocess.run(
        [sys.executable, "-m", "streamproof", "check", "slow.py", "--timeout", "8"],
        cwd=tmp_path, env={**os.environ, "STREAMPROOF_CACHE": ""}, capture_output=True, text=True, timeout=HANGS, check=False,
    )  # fmt: skip
    assert done.returncode == 160, done.stderr
    assert "time_limit is 8 s" in done.stdout or "time limit of 8 s reached while" in done.stderr


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    """As a job in the background of a script: Ctrl-C is for the others, SIGTERM ends it."""
    (tmp_path / "m.py").write_text("open('ready', 'w').close()\nimport time\nwhile True:\n    time.sleep(0.1)\n")
    command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-m", "streamproof", "check", "m.py"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:
        while not (tmp_path / "ready").exists():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.5)
        running.send_signal(signal.SIGTERM)
        assert running.communicate(timeout=HANGS)[1] == "streamproof: error: interrupted while reading the model\n"
        assert running.returncode == 130


def test_tests_of_interrupts_end_where_ctrl_c_is_ignored() -> None:
    """`make test` in the background: the tests set the signals that they need."""
    test = ROOT / "tests" / "unit" / "test_explicit_limits.py"
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"{test}::test_an_interrupt_gives_what_was_found_so_far"]
    done = subprocess.run(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, *words],
        cwd=ROOT, capture_output=True, text=True, timeout=HANGS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("times", [5, pytest.param(200, marks=pytest.mark.long)])
def test_ctrl_c_while_the_program_is_loaded(times: int, tmp_path: Path) -> None:
    """At any time; until the program has its handler, the interpreter may report where it was."""
    chance = random.Random(times)
    program = Path(sys.executable).parent / "streamproof"
    begun = time.monotonic()
    subprocess.run([program, "models"], capture_output=True, check=True)
    whole = time.monotonic() - begun
    codes = []
    for _ in range(times):
        process = subprocess.Popen([program, "models"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(whole * chance.random())
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=HANGS)[1]
        codes.append(process.returncode)
        ours = re.findall(rf'File "{re.escape(str(ROOT))}/checker/streamproof/(.+)", line (\d+)', error)
        assert all(file == "__main__.py" and int(line) <= HANDLED for file, line in ours), error
        if process.returncode == 130:
            assert re.search(r"streamproof: error: interrupted( while [a-z ]+)?\n\Z", error)
            assert "Traceback" not in error
    assert 130 in codes


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("verb", SPARK)
def test_ctrl_c_ends_a_verb_on_spark(verb: str, inputs: Path, tmp_path: Path) -> None:
    """Three times in the course of the verb; the virtual machine of Java ends too."""
    interrupt(SPARK[verb], inputs, tmp_path, 3, LONG, seed=1)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("verb", [*VERBS, *SPARK])
def test_ctrl_c_ends_a_verb_at_any_time(verb: str, inputs: Path, tmp_path: Path) -> None:
    """Fifty times in the course of the verb."""
    interrupt({**VERBS, **SPARK}[verb], inputs, tmp_path, 50, LONG, seed=2)
