"""The verb `run`: results, exit codes, scripts that repeat and shrink runs, bad input."""

from __future__ import annotations

import json
from ast import literal_eval
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof_runtime.command import Simulated
from streamproof_runtime.errors import RuntimeFailure

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WRONG = ("--seed", "71", "--faults", "heavy", "--variant", "status-dropped")


def test_a_failing_run_is_repeated_and_shrunk(streamproof: Any, tmp_path: Path) -> None:
    """The script of a failing run has its digest; the shrunk one fails as well, with fewer faults and choices."""
    job, out = str(EXAMPLES / "shortest_paths.py"), tmp_path / "out"
    done = streamproof("run", job, "--simulate", *WRONG, "--shrink", "--trace", str(out), "--json", str(tmp_path / "a"))
    assert done.code == 12
    first = json.loads((tmp_path / "a").read_text())
    assert first["runs"][0]["wrong"] == "3 records arrived at subtasks that had terminated"
    assert len(first["shrunk"]["faults"]) < len(first["runs"][0]["faults"])
    script = json.loads((out / "seed-71.script.json").read_text())
    shrunk = json.loads((out / "seed-71-shrunk.script.json").read_text())
    assert first["shrunk"]["deviations"] == sum(c > 0 for own in shrunk["choices"].values() for c in own)
    assert first["shrunk"]["deviations"] < sum(c > 0 for own in script["choices"].values() for c in own) // 10
    for name, run in (("seed-71", first["runs"][0]), ("seed-71-shrunk", first["shrunk"])):
        file = str(out / f"{name}.script.json")
        done = streamproof("run", job, "--simulate", "--variant", "status-dropped", "--script", file, "--json", "-")
        assert done.code == 12
        assert json.loads(done.out)["runs"][0]["digest"] == run["digest"]


@pytest.mark.parametrize("where", [("--simulate",), ()])
def test_results_that_nothing_is_expected_of_are_shown(
    streamproof: Any, tmp_path: Path, where: tuple[str, ...]
) -> None:
    """Each by its name, the beginning of a long one; a right result that the file states is not repeated."""
    text = """
from streamproof_runtime import Job
def job():
    j = Job("few")
    few = j.source("n", [1, 2, 3])
    few.map(lambda n: n + 1).collect("all")
    few.process("many", lambda c, n: [10**50] * 9).collect("long")
    return j
"""
    job = tmp_path / "job.py"
    job.write_text(text)
    shown = streamproof("run", str(job), *where).out
    assert "finished; the file does not state what is expected" in " ".join(shown.split())
    assert "\n    all: [2, 3, 4]\n" in shown
    assert "    long: [1000" in shown
    assert " ...\n" in shown
    (record,) = json.loads(streamproof("run", str(job), *where, "--json", "-").out)["runs"]
    assert {name: literal_eval(value) for name, value in record["results"].items()} == {
        "all": [2, 3, 4],
        "long": [10**50] * 27,
    }
    job.write_text(text + "def expected(): return {'all': [2, 3, 4], 'long': [10**50] * 27}\n")
    assert "all: [2" not in streamproof("run", str(job), *where).out


def test_many_seeds_are_counted(streamproof: Any) -> None:
    """Right runs are counted; a stuck one has its own exit code."""
    done = streamproof("run", str(EXAMPLES / "word_count.py"), "--simulate", "--seeds", "5", "--faults", "heavy")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("5 runs: 5 right, 0 wrong; ")
    components = str(EXAMPLES / "components.py")
    done = streamproof(
        "run", components, "--simulate", "--seed", "3", "--faults", "heavy", "--variant", "uncoordinated-heads"
    )
    assert done.code == 11
    assert "stuck: label1 is ATTEMPTING" in done.out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "has no function job()"),
        ("def job(:\n", "SyntaxError"),
        ("def job():\n    return 1\n", "job() returns int, neither a Job nor a list of jobs"),
        ("def job():\n    return 1 // 0\n", "job(): ZeroDivisionError"),
        ("import sys\ndef job():\n    sys.exit(3)\n", "job(): SystemExit: 3"),
        ("class Odd(BaseException):\n    pass\nraise Odd('told')\n", "Odd: told"),
        (
            "from streamproof_runtime import Job\ndef job():\n    Job().source('a', (n for n in (1, 2)))\n",
            "the items of source a are a generator; give a sequence, such as a list",
        ),
        ("from streamproof_runtime import Job\ndef job():\n    return Job()\n", "has no source"),
        (
            "from streamproof_runtime import Job\ndef job():\n    j = Job()\n"
            "    j.source('a', [1], 7).collect('b')\n    return j\n",
            "the job needs 7 slots; there are 6",
        ),
        (
            "import time\nfrom streamproof_runtime import Job\ndef job():\n    j = Job()\n"
            "    j.source('a', [1]).map(lambda r: time.time()).collect('b')\n    return j\n",
            "time.time in a simulated run",
        ),
    ],
    ids=["no-job", "syntax", "type", "raises", "exits", "odd", "generator", "empty", "slots", "clock"],
)
def test_bad_jobs_are_one_message(streamproof: Any, tmp_path: Path, text: str, words: str) -> None:
    """Each mistake is one error with exit code 2, and nothing is written."""
    (tmp_path / "job.py").write_text(text)
    done = streamproof("run", str(tmp_path / "job.py"), "--simulate", "--trace", str(tmp_path / "out"))
    assert done.code == 2
    assert done.out == ""
    assert words in " ".join(done.err.split())
    assert not (tmp_path / "out").exists()


def test_bad_options_are_one_message(streamproof: Any, tmp_path: Path) -> None:
    """Unknown variants and files that are no scripts are refused; other files are never replaced."""
    job = str(EXAMPLES / "word_count.py")
    done = streamproof("run", job, "--simulate", "--variant", "no-such")
    assert done.code == 2
    assert "no variant 'no-such'; there are first-end" in done.err
    for text in (
        "",
        "[]",
        '{"schema": "other"}',
        '{"schema": "streamproof.run-script/1", "faults": [1], "choices": {}}',
    ):
        (tmp_path / "script").write_text(text)
        done = streamproof("run", job, "--simulate", "--script", str(tmp_path / "script"))
        assert done.code == 2
        assert "is not a script of a run" in " ".join(done.err.split())
    fault = {"kind": "crash", "at": 1, "nodes": ["tm-9"]}
    (tmp_path / "script").write_text(
        json.dumps({"schema": "streamproof.run-script/1", "faults": [fault], "choices": {}})
    )
    assert "there is no process 'tm-9'" in " ".join(
        streamproof("run", job, "--simulate", "--script", str(tmp_path / "script")).err.split()
    )
    (tmp_path / "seed-0.ndjson").write_text("mine\n")
    assert streamproof("run", job, "--simulate", "--trace", str(tmp_path)).code == 153
    assert (tmp_path / "seed-0.ndjson").read_text() == "mine\n"
    assert streamproof("run", job, "--simulate", "--trace", str(tmp_path / "new")).code == 0
    assert streamproof("run", job, "--simulate", "--trace", str(tmp_path / "new")).code == 0


_ENDLESS = """
from streamproof_runtime import Job
def again(record):
    while {waits}:
        pass
    return record
def job():
    made = Job()
    made.source("s", [1]).iterate("Loop", lambda loop: (loop.map(again), loop.filter(lambda r: False))).collect("c")
    return made
"""


@pytest.mark.parametrize(
    ("waits", "caught"), share([(True, False), (True, True), (False, False)], 3), ids=["function", "caught", "loop"]
)
def test_a_simulation_without_end_is_ended(
    streamproof: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: bool, caught: bool
) -> None:
    """By the time limit while a user function never returns, although the function takes the interrupt for an error of its
    own, else by the limit of steps, with the exit code of an unfinished run."""
    monkeypatch.setattr("streamproof_runtime.command.LIMIT", 20_000)
    text = _ENDLESS.format(waits=waits)
    if caught:
        caught_all = "        try:\n            while True: pass\n        except BaseException: break\n"
        text = text.replace("        pass\n", caught_all)
    (tmp_path / "job.py").write_text(text)
    command = ("run", str(tmp_path / "job.py"), "--simulate", "--json", str(tmp_path / "a.json"))
    done = streamproof(*command, *(("--seeds", "3", "--timeout", "0.5") if waits else ()))
    assert done.code == 160, done.out
    (run,) = json.loads((tmp_path / "a.json").read_text())["runs"]
    assert run["wrong"] == ("no end after 0.5 s" if waits else "no end after 20,000 steps")
    assert ("steps" in run) is not waits
    if waits:
        assert "seeds after 0 were not run; raise --timeout" in done.out


def test_a_right_run_is_not_shrunk(streamproof: Any) -> None:
    """It is said that there is nothing to shrink; the exit code is that of the run."""
    for more in ((), ("--seeds", "2")):
        done = streamproof("run", str(EXAMPLES / "word_count.py"), "--simulate", "--shrink", *more)
        assert (done.code, done.err) == (0, "")
        assert "no run has failed: there is nothing to shrink" in done.out


def test_shrinking_ends_with_its_time(tmp_path: Path) -> None:
    """Also if every run of it ends: between two of them the limit is asked for."""
    file = tmp_path / "job.py"
    file.write_text((EXAMPLES / "word_count.py").read_text() + "\ndef expected():\n    return {}\n")
    simulated = Simulated(file, level="heavy", variant=None, executors=3, slots=2)
    run = simulated.seed(3)
    answers = iter([False, False, True])
    assert run["wrong"]
    with pytest.raises(RuntimeFailure, match="no more time"):
        simulated.shrunk(run, lambda: next(answers))
    assert [*answers] == []


def test_machines_without_events_are_not_asked(streamproof: Any, tmp_path: Path) -> None:
    """A job of sources alone has no channel: with all models nothing is said of flow control, nor is the answer open."""
    job, log = tmp_path / "job.py", str(tmp_path / "out")
    job.write_text(
        "from streamproof_runtime import Job\ndef job():\n    j = Job()\n    j.source('s', [1])\n    return j\n"
    )
    assert streamproof("run", str(job), "--simulate", "--trace", log).code == 0
    done = streamproof("validate", log, "--model", "all")
    assert (done.code, done.err) == (0, "")
    assert "inconclusive" not in done.out
    done = streamproof("validate", log, "--model", "credit")
    assert done.code == 160
    assert "no attempt has a channel with flow control" in " ".join(done.out.split())
