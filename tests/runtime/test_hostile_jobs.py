"""Jobs that a careless or hostile user writes: a right result, or one message with its place; never a wrong verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamproof_runtime import Job
from streamproof_runtime.command import Problem, Simulated
from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs.functions import key_text, own
from streamproof_runtime.jobs.job_file import JobFile
from streamproof_runtime.simulator.simulation import Simulation

HEAD = "from streamproof_runtime import Job\n"
SMALL = "def job():\n    made = Job()\n    made.source('s', [1]).collect('c')\n    return made\n"


def file(folder: Path, text: str) -> Path:
    """A job file."""
    made = folder / "given.py"
    made.write_text(HEAD + text)
    return made


def simulated(path: Path) -> Simulated:
    """Its simulated runs."""
    return Simulated(path, level="none", variant=None, executors=3, slots=2)


@pytest.mark.parametrize(
    ("expected", "found", "wrong"),
    [
        ("1.0", float("nan"), "result['x'] is nan, not 1 within 0.5"),
        ("float('nan')", 1.0, "result['x'] is 1, not nan within 0.5"),
        ("float('nan')", float("nan"), ""),
        ("float('inf')", float("inf"), ""),
        ("float('inf')", 1e300, "result['x'] is 1e+300, not inf within 0.5"),
        ("[1.0, (2.0, 'a')]", [1.2, (2, "a")], ""),
        ("[1.0, (2.0, 'a')]", [1.2, (3, "a")], "result['x'][1][0] is 3, not 2 within 0.5"),
        ("[1.0]", [1.0, 1.0], "result['x'] is [1.0, 1.0], not [1.0]"),
        ("[1.0]", (1.0,), "result['x'] is (1.0,), not [1.0]"),
    ],
)
def test_results_are_compared(expected: str, found: Any, wrong: str, tmp_path: Path) -> None:
    """NaN is no other number; a tolerance holds inside lists and tuples."""
    text = f"TOLERANCE = 0.5\ndef job(): ...\ndef expected(): return {{'x': {expected}}}\n"
    assert JobFile(file(tmp_path, text)).wrong({"x": found}) == wrong


ORDERED = """
from streamproof_runtime import Job
def job():
    j = Job("ordered")
    numbers = j.source("n", [1, 2], parallelism={})
    more = numbers.rebalance().process("more", lambda c, n: (n,), parallelism={})
    {}more.collect("all")
    return j
def expected():
    return {{"all": [1, 2]}}
"""


@pytest.mark.parametrize(
    ("text", "has_order"),
    [
        (ORDERED.format(1, 1, ""), True),
        (ORDERED.format(1, 2, ""), False),
        (ORDERED.format(2, 1, ""), False),
        (ORDERED.format(1, 1, 'more.map(lambda n: n).union(j.source("m", [])).collect("both"); '), True),
        (ORDERED.format(1, 1, 'more = more.map(lambda n: n).union(j.source("m", [])); '), False),
    ],
)
def test_an_order_that_depends_on_the_run_is_not_compared(text: str, has_order: bool, tmp_path: Path) -> None:
    """The elements are, each as often as it occurs; the order too where one subtask reads one other."""
    job = JobFile(file(tmp_path, text))
    assert job.wrong({"all": [1, 2]}) == ""
    assert job.wrong({"all": [2, 1]}) == ("result['all'][0] is 2, not 1" if has_order else "")
    for other in ([2, 2], [1], [1, 2, 2], (2, 1), [2, True]):
        assert job.wrong({"all": other})


def test_equal_keys_have_one_text() -> None:
    """Numbers of all kinds, and sets in any order; what has no such text is refused."""
    for same in ((1, 1.0, True), (0, -0.0, False), ((1, "a"), (1.0, "a")), (2**70, float(2**70))):
        assert len({*map(key_text, same)}) == 1, same
    for plain in (1, "a", b"a", None, 1.5, (), (1,), (1, ("a", None))):
        assert key_text(plain) == repr(plain)
    assert len({*map(key_text, (1, "1", b"1", (1,), frozenset((1,)), 1.5, None))}) == 7
    for key in ([1], {1: 2}, object(), (1, [2])):
        with pytest.raises(TypeError, match="is no key; keys are numbers, text"):
            key_text(key)


_KEYED = """
from streamproof_runtime import Job
from streamproof_runtime.simulator.simulation import Simulation
job = Job()
words = [(frozenset(("alpha", "beta", "gamma")), 1), (frozenset(("gamma", "beta", "alpha")), 1), (1, 1), (1.0, 1)] * 4
summed = job.source("s", words, 3).key_by(lambda p: p[0]).reduce("k", lambda a, b: (a[0], a[1] + b[1]), 3)
summed.map(lambda pair: (str(pair[0])[:1], pair[1])).collect_latest("sums")
outcome = Simulation(job, seed=3).run()
print(outcome.digest, *sorted(outcome.results["sums"].items()))
"""


def test_a_key_goes_to_one_subtask_in_every_process() -> None:
    """With every hash seed; equal keys are summed together."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", _KEYED],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.partition(" ")[2]
        for seed in ("0", "3")
    }
    assert printed == {"('1', 8) ('f', 8)\n"}


def test_no_two_receivers_share_a_record() -> None:
    """A function that changes what it has received, or made, changes nothing for others, nor for the next attempt."""
    items = [[n] for n in range(5)]
    for seed in range(4):
        job = Job()
        added = job.source("s", items).map(lambda r: (r.append("chained"), r)[1])
        changed = added.broadcast().process("m", lambda c, r: ((r.append(c.subtask), r)[1],), parallelism=2)
        changed.map(lambda r: tuple(r)).collect("all")
        counts = job.source("t", [["x", 1]] * 3).key_by(lambda r: r[0])
        summed = counts.reduce("sum", lambda a, b: (a.__setitem__(1, a[1] + b[1]), a)[1])
        summed.map(lambda r: (r.append("chained"), tuple(r))[1]).collect("sums")
        outcome = Simulation(job, seed=seed, level="heavy").run()
        assert sorted(outcome.results["all"]) == [(n, "chained", s) for n in range(5) for s in range(2)]
        assert outcome.results["sums"] == [("x", n, "chained") for n in (1, 2, 3)]
    assert items == [[n] for n in range(5)]


def test_a_copy_is_equal_and_shares_nothing_that_changes() -> None:
    """Of plain values there is none."""
    plain = (1, "a", 2.0, None, b"b", True)
    assert own(plain) is plain
    nested = ([1], {"a": {2}}, (3, [4]))
    copy = own(nested)
    assert copy == nested
    assert not {id(copy[0]), id(copy[1]["a"]), id(copy[2][1])} & {id(nested[0]), id(nested[1]["a"]), id(nested[2][1])}


@pytest.mark.parametrize("parallelism", [0, -2, 2.5, "2", True, None, 10**8])
def test_a_parallelism_is_a_small_number(parallelism: Any) -> None:
    """Anything else is refused at once."""
    with pytest.raises(JobError, match=r"operator s has parallelism .*; give a number from 1 to 4,096"):
        Job().source("s", [1], parallelism=parallelism)


@pytest.mark.parametrize("name", ["", "a#1", "a/b", "a@1", "a b", "\x1b[31m", "-", 7, None])
def test_the_name_of_a_job_is_plain(name: Any) -> None:
    """The traces of a log have it, with #, / and @ behind it."""
    with pytest.raises(JobError, match="cannot name a job"):
        Job(name)


def test_messages_have_the_line_of_the_job_file(tmp_path: Path) -> None:
    """Of an error while it is read, while the job is built, and in a user function."""
    for text, words in (
        ("1 // 0\n", "given.py:2: ZeroDivisionError: "),
        ("def job():\n    return 1 // 0\n", "given.py:3: job(): ZeroDivisionError: "),
        ("def job():\n    Job().source('s', [], 0)\n", "given.py:3: operator s has parallelism 0"),
    ):
        with pytest.raises(Problem) as error:
            simulated(file(tmp_path, text))
        assert words in str(error.value)
    divide = "def divide(n):\n    return 1 // n\n"
    run = simulated(file(tmp_path, divide + SMALL.replace(".collect", ".map(lambda n: divide(0)).collect"))).seed(0)
    assert run["wrong"] == "s: ZeroDivisionError: integer division or modulo by zero (given.py:3)"


@pytest.mark.parametrize(
    "leak",
    [
        "from time import time as leak",
        "from random import expovariate\ndef leak(): return expovariate(1)",
        "from secrets import token_hex as leak",
        "from random import SystemRandom\nleak = SystemRandom().random",
        "from os import urandom\ndef leak(): return urandom(1)",
    ],
)
def test_what_a_job_file_has_imported_cannot_leave_the_simulation(leak: str, tmp_path: Path) -> None:
    """By whatever name."""
    body = (
        "def job():\n    made = Job()\n    made.source('s', [0]).map(lambda _: leak()).collect('c')\n    return made\n"
    )
    runs = simulated(file(tmp_path, f"{leak}\n{body}"))
    with pytest.raises(Problem, match="in a simulated run"):
        runs.seed(0)
    assert runs.file.module.leak()


def test_a_shrunk_run_keeps_the_choices_of_every_stream(tmp_path: Path) -> None:
    """A run that fails because of the buffers of the gates, or of the slots, still fails when it is shrunk."""
    runs = simulated(file(tmp_path, SMALL))
    run = next(r for r in map(runs.seed, range(20)) if r["choices"]["memory"] != [0] and r["choices"]["slots"][0])
    kept, own_run = run["choices"], runs._run

    def failing(*args: Any, **more: Any) -> dict[str, Any]:
        found = own_run(*args, **more)
        memory, slots = found["choices"]["memory"], found["choices"]["slots"]
        found["wrong"] = "wrong" if (memory, slots[:1]) == (kept["memory"], kept["slots"][:1]) else ""
        return found

    runs._run = failing  # type: ignore[method-assign]
    shrunk = runs.shrunk(run)
    assert shrunk["wrong"]
    assert shrunk["deviations"] == 2


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "flood", "at": 1, "nodes": ["tm-1"]},
        {"kind": "crash", "at": -1, "nodes": ["tm-1"]},
        {"kind": "crash", "at": "1", "nodes": ["tm-1"]},
        {"kind": "slow", "at": 1, "nodes": ["tm-1", "tm-2"], "factor": 0},
        {"kind": "crash", "at": 1},
        7,
    ],
)
def test_a_script_with_other_faults_is_refused(fault: Any, tmp_path: Path) -> None:
    """And one with a choice below 0."""
    runs = simulated(file(tmp_path, SMALL))
    for faults, choices in (([fault], {}), ([], {"schedule": [-1]})):
        text = json.dumps({"schema": "streamproof.run-script/1", "faults": faults, "choices": choices})
        with pytest.raises(Problem, match="is not a script of a run"):
            runs.script(tmp_path / "script.json", text)
