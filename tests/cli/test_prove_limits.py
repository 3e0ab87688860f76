"""``streamproof prove`` without a limit given: it ends, says what it is doing until then, and what to try next."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof import interrupts
from streamproof.cli import ticking
from streamproof.cli.answer import Request
from streamproof.cli.prove import SECONDS
from streamproof.symbolic.solver import Effort

CREDITS = '''
from streamproof import Model, Range, State, action, invariant, require, terminal


class Credits(Model):
    """The sender sends one record for each free buffer that it knows of."""

    records: int = 1000
    buffers: int = 2

    def state(self):
        count = Range(0, self.records)
        return State(sent=count, wire=count, filled=count, consumed=count, announced=count, heard=count)

    def credit(self, s):
        return self.buffers + s.heard - s.sent

    @action
    def send(self, s):
        require(s.sent < self.records)
        require(self.credit(s) > 0)
        s.sent += 1
        s.wire += 1

    @action
    def arrive(self, s):
        require(s.wire > 0)
        s.wire -= 1
        s.filled += 1

    @action
    def consume(self, s):
        require(s.filled > 0)
        s.filled -= 1
        s.consumed += 1
        s.announced += 1

    @action
    def hear(self, s):
        require(s.announced > 0)
        s.announced -= 1
        s.heard += 1

    @invariant
    def no_overrun(self, s):
        return s.wire + s.filled <= self.buffers

    @terminal
    def done(self, s):
        return s.heard == self.records


class Lossy(Credits, variant="lossy"):
    """Announcements can be lost."""

    @action
    def lose(self, s):
        require(s.announced > 0)
        s.announced -= 1


class Endless(Credits, variant="endless"):
    """Its end is declared none, and is too far for a search."""

    @terminal
    def done(self, s):
        return s.sent > self.records
'''


class Terminal(io.StringIO):
    """Standard error of somebody who is looking."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.fixture
def credits(folder: Path) -> None:
    """The model, in the working folder."""
    (folder / "credits.py").write_text(CREDITS, encoding="utf-8")


@pytest.mark.long
def test_deadlock_freedom_follows_from_discovered_books(streamproof: Any, credits: None) -> None:
    """The two conservation laws are found, and with them everything is proved at k=1, whatever the limits are."""
    done = streamproof("prove", "credits.py", "-q", "--json", "-")
    answer = json.loads(done.out)
    assert (done.code, answer["k"]) == (0, {"no_overrun": 1, "deadlock": 1})
    assert [(found["text"], found["source"]) for found in answer["discovered"]] == [
        ("consumed - announced - heard == 0", "conservation law"),
        ("sent - wire - filled - consumed == 0", "conservation law"),
    ]


@pytest.mark.long
def test_books_that_one_action_breaks_are_bounds(streamproof: Any, credits: None) -> None:
    """Where announcements are lost, no more were made and heard than records consumed: enough for what still holds."""
    chosen = ("--variant", "lossy", "--property", "no_overrun", "-q", "--json", "-")
    answer = json.loads(streamproof("prove", "credits.py", *chosen).out)
    assert (answer["verdict"], answer["k"]) == ("holds", {"no_overrun": 1})
    assert ("consumed - announced - heard >= 0", "conserved by all actions but one") in [
        (found["text"], found["source"]) for found in answer["discovered"]
    ]


@pytest.mark.long
def test_what_is_open_in_the_end_says_what_decides_it(streamproof: Any, credits: None) -> None:
    """A deadlock 240 steps away is found by no engine in that time; there are few states, so `check` will find it."""
    chosen = ("--variant", "endless", "-p", "records=60", "--property", "deadlock", "--timeout", "8", "-q")
    done = streamproof("prove", "credits.py", *chosen)
    assert done.code == 160
    assert "use streamproof check for open properties: the model has only 595 reachable states" in done.out
    assert "out of time after 8 s: no violation in the first " in done.out


@pytest.mark.parametrize(
    "words",
    [
        "prove baton_channels --property baton.nothing_lost --engine induction --k 1 --depth 1 --timeout 600",
        "simulate baton_channels --walks 1 --time-limit 600",
    ],
)
def test_a_result_is_reported_though_its_engine_used_up_the_time(
    words: str, streamproof: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The properties of a composition are listed once more for the answer: by then no time need be left."""
    original_answer = Request.answer

    def late(*args: Any, **more: Any) -> Any:
        interrupts._run.deadline = time.monotonic() - 1  # the end of the verb puts back what was before
        return original_answer(*args, **more)

    monkeypatch.setattr(Request, "answer", late)
    done = streamproof(*words.split(), "-q")
    assert "time limit" not in done.err
    assert "reproduce: streamproof" in done.out
    assert interrupts.left() == float("inf")


def test_limits_are_told(streamproof: Any) -> None:
    """The help says how long a run may take when nothing is said."""
    text = " ".join(streamproof("prove", "--help").out.split())
    assert f"inf for never. [default: {SECONDS:g}, with --rank 60 for each property]" in text


@pytest.mark.parametrize("option", share(["--timeout", "--query-timeout"], 2))
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("credits.py", "-p", "records=3"), 0),
        (("reference.ewd840", "--any", "n"), 0),
        (("reference.ewd840", "--property", "end_is_detected", "--rank", "token_at"), 160),
    ],
    ids=["instance", "every size", "rank"],
)
def test_there_may_be_no_limit(streamproof: Any, credits: None, words: tuple[str, ...], code: int, option: str) -> None:
    """`inf` is none, for a run and for a query, and is what the command shown has."""
    done = streamproof("prove", *words, option, "inf", "-q")
    assert (done.code, done.err) == (code, "")
    assert f"{option} inf" in " ".join(done.out.split())


def test_the_seconds_go_on_during_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two reports of the solver, the line on the terminal is written again with the time that has gone by."""
    seen = Terminal()
    monkeypatch.setattr("sys.stderr", seen)
    monkeypatch.setattr(ticking, "EVERY", 0.02)
    with ticking.Ticking(live=True) as progress:
        progress(Effort(1.0, "induction of strength 2", 2, 7, 3))
        while "2 s: " not in seen.getvalue():
            time.sleep(0.01)
    shown = [line.partition(":")[0] for line in seen.getvalue().split("\r\x1b[2K") if line]
    assert shown.index("1 s") < shown.index("2 s")
    assert len(shown) > 3


def test_nothing_is_shown_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard error that is no terminal stays empty."""
    seen = io.StringIO()
    monkeypatch.setattr("sys.stderr", seen)
    with ticking.Ticking(live=True) as progress:
        progress("searching")
    assert seen.getvalue() == ""
