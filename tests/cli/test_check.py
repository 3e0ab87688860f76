"""`streamproof check` on models outside the repository: verdicts, exit codes, files, JSON."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

VAST = '''
from streamproof import Model, Range, State, action, require


class Vast(Model):
    """More states than anybody waits for."""

    def state(self):
        return State(a=Range(0, 99), b=Range(0, 99), c=Range(0, 99), d=Range(0, 99))

    @action(x=range(100))
    def set_a(self, s, x):
        s.a = x

    @action(x=range(100))
    def set_b(self, s, x):
        s.b = x

    @action(x=range(100))
    def set_c(self, s, x):
        s.c = x

    @action(x=range(100))
    def set_d(self, s, x):
        s.d = x
'''


def test_a_violation_is_shown_with_its_shortest_trace(streamproof: Any, golden: Callable[[str, str], None]) -> None:
    """The counterexample, the table and the counts are as in the golden file; the exit code is 12."""
    done = streamproof("check", "counter.py")
    assert (done.code, done.err) == (12, "")
    golden("check_counter", done.out)


def test_a_model_that_holds_ends_with_zero(streamproof: Any, golden: Callable[[str, str], None]) -> None:
    """At a smaller size the invariant holds and nothing but the outcome is printed."""
    done = streamproof("check", "counter.py", "--size", "small")
    assert (done.code, done.err) == (0, "")
    golden("check_counter_small", done.out)


def test_traces_are_kept_and_outdated_ones_removed(streamproof: Any, folder: Path) -> None:
    """ITF and text are written per property with a trace; a later run removes what does not hold any more."""
    streamproof("check", "counter.py")
    out = folder / "streamproof-out" / "counter"
    assert sorted(p.name for p in out.iterdir()) == [
        ".streamproof.json",
        "full.itf.json",
        "full.txt",
        "low.itf.json",
        "low.txt",
    ]
    assert json.loads((out / "low.itf.json").read_text())["#meta"]["property"] == "low"
    assert (out / "low.txt").read_text().startswith("Counterexample: low is violated after step 3\n")
    streamproof("check", "counter.py", "--size", "small")
    assert sorted(p.name for p in out.iterdir()) == [".streamproof.json", "full.itf.json", "full.txt"]


def test_a_file_of_somebody_else_is_never_replaced(streamproof: Any, folder: Path) -> None:
    """A file in the folder that streamproof did not write stops the check before it starts, and stays."""
    (folder / "mine").mkdir()
    (folder / "mine" / "low.txt").write_text("my notes")
    done = streamproof("check", "counter.py", "--out", "mine")
    assert (done.code, done.out) == (153, "")
    assert done.err == (
        "streamproof: error: mine/low.txt exists and was not written by streamproof as a trace\n"
        "  name another place, or remove it\n"
    )
    assert [p.name for p in (folder / "mine").iterdir()] == ["low.txt"]
    assert (folder / "mine" / "low.txt").read_text() == "my notes"


def test_the_default_folder_is_done_without_where_it_cannot_be(streamproof: Any, folder: Path) -> None:
    """Nobody asked for the default folder: where a file is in its place, the check warns and goes on."""
    (folder / "streamproof-out").write_text("a file")
    done = streamproof("check", "counter.py", "-q")
    assert done.code == 12
    assert done.err == (
        "streamproof: warning: streamproof-out/counter cannot be written: streamproof-out is not a folder;"
        " counterexamples are printed, but not saved\n"
    )
    assert "counterexample of 3 steps\n" in done.out


def test_json_on_standard_output_stands_alone(streamproof: Any) -> None:
    """With `--json -` standard output is one document; what people read goes to standard error."""
    done = streamproof("check", "counter.py", "--json", "-")
    document = json.loads(done.out)
    assert done.code == document["exit_code"] == 12
    assert (document["schema"], document["model"], document["variant"], document["parameters"]) == (
        "streamproof.check/1",
        "counter",
        None,
        {"limit": 3},
    )
    assert (document["engine"], document["verdict"]) == ("explicit", "violated")
    assert document["states"] == {"distinct": 4, "generated": 4, "depth": 4, "queue": 0}
    assert [(p["name"], p["kind"], p["verdict"], p["expected"], p["trace"]) for p in document["properties"]] == [
        (
            "low",
            "invariant",
            "violated",
            None,
            {"length": 3, "loop": None, "stutters": False, "file": "streamproof-out/counter/low.itf.json"},
        ),
        ("grows", "step", "holds", None, None),
        (
            "full",
            "reachable",
            "holds",
            None,
            {"length": 3, "loop": None, "stutters": False, "file": "streamproof-out/counter/full.itf.json"},
        ),
    ]
    assert document["reproduce"] == "streamproof check counter.py"
    assert "Counterexample: low is violated" in done.err


def test_coverage_in_full(streamproof: Any, golden: Callable[[str, str], None]) -> None:
    """With `--coverage` every action is listed with its guard's conditions, and the JSON has their counts."""
    done = streamproof("check", "counter.py", "--coverage", "-q", "--json", "answer.json")
    golden("check_coverage", done.out)
    coverage = json.loads(Path("answer.json").read_text())["coverage"]
    assert coverage["conjuncts"] == [{"action": "increment", "text": "s.n < self.limit", "line": 23, "states": 3}]
    assert (coverage["expanded"], coverage["never_true"]) == (4, [])


def test_bmc_covers_nothing(streamproof: Any) -> None:
    """`--coverage` of an engine that counts no states is refused."""
    done = streamproof("check", "counter.py", "--engine", "bmc", "--coverage")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("streamproof: error: bmc has no --coverage: it visits no states\n")


def test_json_in_a_file_tells_of_errors_too(streamproof: Any, folder: Path) -> None:
    """A malformed model ends with 150, one message, and a document that says the same."""
    (folder / "bad.py").write_text(
        "from streamproof import Model, Range, State\n\n\nclass Bad(Model):\n    def state(self):\n"
        "        return State(n=Range(0, 1))\n"
    )
    done = streamproof("check", "bad.py", "--json", "answer.json")
    document = json.loads((folder / "answer.json").read_text())
    assert (done.code, document["exit_code"], document["verdict"], document["states"]) == (150, 150, "error", None)
    assert done.err.startswith("streamproof: error: bad.py:4: Bad has no actions\n")
    assert (document["error"]["kind"], document["error"]["line"]) == ("ModelError", 4)


def test_properties_parameters_and_variants_are_chosen(streamproof: Any) -> None:
    """The words of the command line come back in the line that reproduces the result."""
    arguments = (
        "--variant",
        "jumping",
        "--size",
        "medium",
        "-p",
        "limit=7",
        "--property",
        "grows",
        "--property",
        "low",
    )
    document = json.loads(streamproof("check", "counter.py", *arguments, "--json", "-", "-q").out)
    assert (document["variant"], document["parameters"]) == ("jumping", {"limit": 7})
    assert [(p["name"], p["verdict"]) for p in document["properties"]] == [("low", "violated"), ("grows", "holds")]
    assert document["properties"][0]["trace"]["length"] == 1
    assert document["reproduce"] == (
        "streamproof check counter.py --variant jumping --size medium -p limit=7 --property low --property grows"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (("two.py:Stops",), 11, "violated: deadlock (exit code 11)"),
        (("two.py:Overflows",), 75, "error: two.py:25: s.n leaves Range(0, 2) in increment() (new s.n = 3)"),
        (
            ("failover", "--variant", "literal-pseudocode", "--property", "termination"),
            13,
            "violated: termination (exit code 13)",
        ),
        (("counter.py", "--max-states", "2", "--property", "grows"), 160, "inconclusive: grows (exit code 160)"),
        (("counter.py", "--max-depth", "1", "--property", "grows"), 160, "inconclusive: grows (exit code 160)"),
        (("counter.py", "--engine", "bmc", "--property", "low"), 12, "violated: low (exit code 12)"),
        (
            ("counter.py", "--engine", "bmc", "--depth", "0", "--property", "low"),
            160,
            "inconclusive: low (exit code 160)",
        ),
        (("counter.py:Counter",), 12, "violated: low (exit code 12)"),
        (("counter:Counter", "-p", "limit=2"), 0, "holds: 3 of 3 properties"),
    ],
)
def test_exit_codes(streamproof: Any, arguments: tuple[str, ...], code: int, line: str) -> None:
    """Each verdict has its exit code, and the line that says so."""
    done = streamproof("check", *arguments, "-q")
    assert (done.code, line in done.out.splitlines()) == (code, True), done.out


def test_a_mistake_of_the_model_is_shown_with_the_way_to_it(
    streamproof: Any, golden: Callable[[str, str], None], folder: Path
) -> None:
    """The behaviour that leads to the mistake is printed and kept; undecided properties point to it."""
    done = streamproof("check", "two.py:Overflows")
    assert (done.code, done.err) == (75, "")
    golden("check_overflows", done.out)
    assert (folder / "streamproof-out" / "overflows" / "evaluation_error.itf.json").is_file()


def test_an_expected_verdict_stands_beside_the_one_found(streamproof: Any) -> None:
    """A variant is refuted as its specification says; at other parameters nothing is expected of it."""
    arguments = ("check", "failover", "--variant", "attempt-reuse", "--property", "fresh_attempts", "--json", "-", "-q")
    document = json.loads(streamproof(*arguments).out)
    assert [(p["verdict"], p["expected"]) for p in document["properties"]] == [("violated", "violated")]
    document = json.loads(streamproof(*arguments, "-p", "failures=0", "-p", "losses=0").out)
    assert [(p["verdict"], p["expected"]) for p in document["properties"]] == [("holds", None)]


def test_the_state_graph_is_drawn(streamproof: Any, folder: Path) -> None:
    """`--dot` writes the reachable states and steps; the state that breaks an invariant is red."""
    assert streamproof("check", "counter.py", "--dot", "graph.dot", "-q").code == 12
    text = (folder / "graph.dot").read_text()
    assert text.count(" -> ") == 3
    assert [line.split()[0] for line in text.splitlines() if "#f8d0d0" in line] == ["s3"]


def test_the_whole_state_is_shown_on_request(streamproof: Any) -> None:
    """`--full` repeats the state after every step."""
    assert streamproof("check", "counter.py").out.count("n = ") < streamproof(
        "check", "counter.py", "--full"
    ).out.count("n = ")


def test_an_edited_file_is_read_again(streamproof: Any, folder: Path) -> None:
    """Two checks within one second see two versions of a file of the same length."""
    assert streamproof("check", "counter.py", "-q").code == 12
    path = folder / "counter.py"
    path.write_text(path.read_text().replace("s.n < 3", "s.n < 4"))
    assert streamproof("check", "counter.py", "-q").code == 0


def test_a_file_may_import_its_neighbours(streamproof: Any, folder: Path) -> None:
    """A model's file finds modules in its own folder, wherever the program is started."""
    (folder / "sub").mkdir()
    (folder / "sub" / "neighbour_limits.py").write_text("LIMIT = 2\n")
    text = (folder / "counter.py").read_text().replace("limit: int = 3", "limit: int = LIMIT")
    (folder / "sub" / "near.py").write_text(f"from neighbour_limits import LIMIT\n{text}")
    assert streamproof("check", "sub/near.py", "-q").code == 0


STATUS_LINES = re.compile(r"\r\x1b\[2K(Progress\([^\r]*)?")


def _on_a_terminal(folder: Path, *words: str, ignoring: bool = False) -> tuple[subprocess.Popen[str], int]:
    """The program with a terminal for standard error, and the other end of the terminal; `ignoring`: the caller ignores
    Ctrl-C."""
    terminal, error = os.openpty()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignoring else signal.default_int_handler)
    try:
        started = subprocess.Popen(
            [sys.executable, "-m", "streamproof", *words],
            cwd=folder,
            env=os.environ | {"TERM": "xterm"},
            stdout=subprocess.PIPE,
            stderr=error,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    os.close(error)
    return started, terminal


def _read_until(terminal: int, end: str | None) -> str:
    """What is written to a terminal, until `end` is part of it; all that is still written if that is None."""
    read = b""
    with suppress(OSError):  # EIO: nothing has the terminal open any more
        while end is None or end.encode() not in read:
            read += os.read(terminal, 1000)
    if end is None:
        os.close(terminal)
    return read.decode()


def test_ctrl_c_ends_with_what_is_known(folder: Path) -> None:
    """An interrupted search prints its counts so far and ends with 130, in the JSON too."""
    (folder / "vast.py").write_text(VAST)
    started, terminal = _on_a_terminal(folder, "check", "vast.py", "--json", "answer.json")
    err = _read_until(terminal, "Progress(")
    started.send_signal(signal.SIGINT)
    out, _ = started.communicate(timeout=60)
    err += _read_until(terminal, None)
    assert started.returncode == 130, err
    assert STATUS_LINES.sub("", err) == "streamproof: interrupted; the results found so far are above\r\n"
    assert " states generated, " in out
    assert "(exit code 130)" in out
    document = json.loads((folder / "answer.json").read_text())
    assert (document["exit_code"], document["verdict"]) == (130, "inconclusive")


def test_a_program_that_ignores_ctrl_c_names_what_ends_it(folder: Path) -> None:
    """A line above the first progress names the signal that ends a program whose caller ignores Ctrl-C; it does."""
    (folder / "vast.py").write_text(VAST)
    started, terminal = _on_a_terminal(folder, "check", "vast.py", ignoring=True)
    err = _read_until(terminal, "Progress(")
    remedy = f"streamproof: the caller of this program made it ignore Ctrl-C; to end it early: kill {started.pid}\r\n"
    assert err.startswith(remedy)
    started.send_signal(signal.SIGINT)
    err += _read_until(terminal, "Progress(")
    started.send_signal(signal.SIGTERM)
    started.communicate(timeout=60)
    err += _read_until(terminal, None)
    assert started.returncode == 130, err
    interrupted = "streamproof: interrupted; the results found so far are above\r\n"
    assert STATUS_LINES.sub("", err) == remedy + interrupted


def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    """`streamproof ... | head -1` writes nothing to standard error."""
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m streamproof models | head -1; echo ${{PIPESTATUS[0]}}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[0].startswith("baton ")
    # The reader may have read everything before it left; then there was no pipe to break.
    assert done.stdout.splitlines()[1] in ("0", "141")


def test_a_full_disk_is_a_system_failure(folder: Path) -> None:
    """Output that cannot be written ends with 153 and one message."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "streamproof", "models", "counter.py"],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 153
    assert done.stderr.startswith("streamproof: error: No space left on device\n")


def test_less_memory_than_the_process_holds_is_refused(streamproof: Any) -> None:
    """Nothing can be searched then, and nothing is claimed."""
    done = streamproof("check", "counter.py", "--memory", "5")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("streamproof: error: memory limit of 5B is too low: this process already uses ")


def test_a_search_that_is_cut_short_claims_no_coverage(streamproof: Any) -> None:
    """An action that was not taken and a condition that was not true until then may be later: no claim is made."""
    words = ("check", "counter.py", "-p", "limit=5", "--max-depth", "1", "--coverage", "-q", "--json", "-")
    done = streamproof(*words)
    coverage = json.loads(done.out)["coverage"]
    assert done.code == 160
    assert (coverage["never_enabled"], coverage["never_true"]) == ([], [])
    assert "never" not in done.err
    assert "0 of 1 actions were taken in the part that was searched" in streamproof(*words[:6], "-q").out


def test_a_long_reason_that_properties_share_is_printed_once(streamproof: Any) -> None:
    """The others refer to the first one; the JSON has it for each."""
    words = ("check", "counter.py", "-p", "limit=9", "--max-states", "1", "-q", "--json", "a.json")
    done = streamproof(*words)
    assert done.code == 160
    assert done.out.count("stopped after") == 1
    assert "\n      as for low\n" in done.out
    reasons = {p["because"] for p in json.loads(Path("a.json").read_text())["properties"]}
    assert len(reasons) == 1
