"""Models that end the program, write to its channels, fork, or set handlers: each as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from shares import share

MODEL = """
import os, signal, sys
from streamproof import *
{first}
class M(Model):
    def setup(self):
        pass
        {setup}
    def state(self):
        return State(x=Range(0, 9))
    @action
    def inc(self, s):
        require(s.x < 9)
        s.x += 1
    @invariant
    def bad(self, s):
        return s.x < 5
"""
PROGRAM = (sys.executable, "-m", "streamproof", "check", "m.py")


def check(
    folder: Path, first: str = "", setup: str = "pass", *options: str, start: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """The outcome of `check` on a model whose file and `setup` do this."""
    (folder / "m.py").write_text(MODEL.format(first=first, setup=setup), encoding="utf-8")
    return subprocess.run(
        [*start, *PROGRAM, *options], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize(
    ("first", "setup"), [("os._exit(0)", "pass"), ("", "os._exit(0)"), ("os.closerange(0, 100)", "pass")]
)
def test_a_program_that_is_ended_from_within_has_no_answer(first: str, setup: str, tmp_path: Path) -> None:
    """Exit code 0 without a verdict would count as "holds"."""
    done = check(tmp_path, first, setup)
    assert (done.returncode, done.stdout) == (150, "")
    assert "the program ended itself with exit code " in done.stderr


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("os._exit(1)", "the program ended itself with exit code 1"),
        ("os.kill(os.getpid(), 11)", "the process crashed (SIGSEGV)"),
        ("sys.modules['streamproof.explicit.exploration'] = None", "unexpected ModuleNotFoundError: "),
    ],
)
def test_what_fails_where_the_memory_is_limited_fails_for_lack_of_it(first: str, said: str, tmp_path: Path) -> None:
    """Libraries say so in many ways: they end the program, crash, or raise what they raise for a file that is missing."""
    limit = ("bash", "-c", 'ulimit -v 60000000; exec "$@"', "-")
    done = check(tmp_path, first, "pass", "--tier", "compiled", start=limit)
    assert done.returncode == 152, done
    assert said in done.stderr
    assert (
        "probably a library could not allocate memory: the limit of 61.4 GB on the address space (ulimit -v)"
        in done.stderr
    )


def test_what_is_called_at_the_end_does_not_change_the_answer(tmp_path: Path) -> None:
    """The exit code is settled before functions that a model has registered run."""
    done = check(tmp_path, "import atexit; atexit.register(lambda: os._exit(0))")
    assert done.returncode == 12
    assert "violated: bad" in done.stdout


@pytest.mark.parametrize(
    "first",
    share(
        [
            "os.write(1, b'one')",
            "os.system('echo two')",
            "import atexit; atexit.register(lambda: print('three'))",
            "sys.__stdout__.close()",
            "os.close(1)",
            "os.fork()",
        ],
        3,
    ),
)
def test_standard_output_is_for_answers_alone(first: str, tmp_path: Path) -> None:
    """The JSON document is whole, and the only one."""
    done = check(tmp_path, first, "pass", "--json", "-")
    assert done.returncode == 12
    assert json.loads(done.stdout)["exit_code"] == 12


@pytest.mark.parametrize(
    "first",
    [
        "class E(Exception):\n    def __str__(self):\n        raise RuntimeError('no')\nraise E()",
        "raise ValueError('long' * 10**6)",
    ],
)
def test_odd_exceptions_are_the_models(first: str, tmp_path: Path) -> None:
    """An exception without a text, or with a very long one, is named with its line."""
    done = check(tmp_path, first)
    assert done.returncode == 150
    assert "m.py:" in done.stderr
    assert len(done.stderr) < 5000


@pytest.mark.parametrize(
    "first",
    share(
        [
            "sys.setrecursionlimit(60)",
            "def hook(event, given):\n    if event == 'open': raise RuntimeError('no')\nsys.addaudithook(hook)",
            "import builtins; builtins.len = lambda x: 3",
            "import builtins; del builtins.isinstance",
            "import builtins; builtins.open = builtins.print = None",
            "import builtins; builtins.__import__ = None",
            "sys.path.clear(); sys.meta_path.clear()",
            "sys.modules.clear()",
            "sys.modules[__name__] = None",
            "class Meta(type(Model)):\n    def __getattribute__(c, n):\n        if n == '__mro__': raise ValueError\n"
            "        return super().__getattribute__(n)\nclass Model(Model, metaclass=Meta): pass",
            "Q = Bool()\nfor _ in range(400): Q = Array(1, Q)\nRange = lambda *_: Q",
        ],
        3,
    ),
)
def test_a_model_that_harms_the_program_is_no_defect_of_it(first: str, tmp_path: Path) -> None:
    """One message, with the model's line where there is one, that blames neither side for sure."""
    done = check(tmp_path, first, "pass", "-q")
    assert done.returncode == 150, done
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    assert done.stderr.count("streamproof: error: ") == 1


def test_a_file_whose_name_is_no_text(tmp_path: Path) -> None:
    """It is refused: traces and pages could not name it."""
    (tmp_path / os.fsdecode(b"n\xff.py")).write_text(MODEL.format(first="", setup="pass"))
    done = subprocess.run([*PROGRAM[:-1], b"n\xff.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'n\\udcff.py': this file name is not valid UTF-8" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_a_closed_terminal_leaves_no_process(number: int, tmp_path: Path) -> None:
    """A worker in native code ends with the program."""
    (tmp_path / "m.py").write_text(
        MODEL.format(first="print('reading', os.getpid(), file=sys.stderr, flush=True)", setup="9**9**9")
    )
    # Whatever started the tests may ignore the signal, as nohup does.
    default_handler = partial(signal.signal, number, signal.SIG_DFL)
    with subprocess.Popen(
        PROGRAM, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=default_handler
    ) as program:
        assert program.stderr is not None
        worker = int(program.stderr.readline().split()[1])
        program.send_signal(number)
        assert program.wait(timeout=120) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
