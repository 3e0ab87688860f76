"""The outcome of a check: overall verdict, exit code, JSON, console, progress."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from streamproof import __version__
from streamproof.base.options import peak_bytes, resident_bytes
from streamproof.cli import outputs
from streamproof.report.check_report import CheckReport, Result
from streamproof.report.console import print_check, progress_text, size_text
from streamproof.system import (
    Counts,
    Coverage,
    EvaluationError,
    Exit,
    Finding,
    Kind,
    Loc,
    Progress,
    System,
    TooLarge,
    Verdict,
)
from streamproof.system.verdict import CheckResult, Condition, OutDegree, Seconds
from streamproof.traces.replay import replay_labels

H, V, U, E = Verdict.HOLDS, Verdict.VIOLATED, Verdict.INCONCLUSIVE, Verdict.ERROR


def _report(*findings: tuple[Kind, Verdict], **more: object) -> CheckReport:
    results = tuple(Result(Finding(f"p{at}", kind, verdict)) for at, (kind, verdict) in enumerate(findings))
    return CheckReport("m", "explicit", results, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("findings", "verdict", "code"),
    [
        ((), H, 0),
        (((Kind.INVARIANT, H), (Kind.DEADLOCK, H)), H, 0),
        (((Kind.INVARIANT, V),), V, 12),
        (((Kind.STEP, V),), V, 12),
        (((Kind.REACHABLE, V),), V, 12),
        (((Kind.DEADLOCK, V),), V, 11),
        (((Kind.TERMINATION, V),), V, 13),
        (((Kind.TERMINATION, V), (Kind.DEADLOCK, V)), V, 11),
        (((Kind.TERMINATION, V), (Kind.DEADLOCK, V), (Kind.STEP, V)), V, 12),
        (((Kind.INVARIANT, U), (Kind.DEADLOCK, H)), U, 160),
        (((Kind.INVARIANT, U), (Kind.DEADLOCK, V)), V, 11),
        (((Kind.INVARIANT, V), (Kind.DEADLOCK, E)), E, 75),
    ],
)
def test_overall_verdict(findings: tuple[tuple[Kind, Verdict], ...], verdict: Verdict, code: int) -> None:
    """An error beats a violation, that beats inconclusive; of violations safety, deadlock, termination in this order."""
    report = _report(*findings)
    assert (report.verdict, int(report.exit_code)) == (verdict, code)


def test_error_that_ended_the_check_gives_its_code() -> None:
    """An error outside any property beats what was found before it."""
    assert _report((Kind.INVARIANT, V), error=EvaluationError("x")).exit_code is Exit.EVALUATION
    assert _report((Kind.INVARIANT, H), error=TooLarge("x")).exit_code is Exit.TOO_LARGE


@pytest.mark.parametrize(
    ("verdict", "expected", "surprising"),
    [
        (V, None, False),
        (V, "violated", False),
        (V, "holds", True),
        (H, "violated", True),
        (H, "holds", False),
        (U, "holds", False),
        (E, "violated", False),
    ],
)
def test_surprising(verdict: Verdict, expected: str | None, surprising: bool) -> None:
    """A decided verdict that differs from an expected one surprises; no other does."""
    assert Result(Finding("p", Kind.INVARIANT, verdict), expected).surprising is surprising


def test_nothing_is_never_taken_while_states_are_missing() -> None:
    """Actions and branches are never taken only if every state was expanded; branches count of actions that are taken."""
    whole = Coverage({"go": 2, "no": 0}, branches={("go", "x"): (2, 1), ("go", "y"): (0, 0), ("no", "z"): (0, 0)})
    assert (whole.never, whole.never_branches) == (("no",), (("go", "y"),))
    result = CheckResult(counts=Counts(2, 2, 2), coverage=whole)
    go, no = _report((Kind.INVARIANT, H), result=result).to_json()["coverage"]["actions"]
    assert [(branch["name"], branch["generated"], branch["distinct"]) for branch in go["branches"]] == [
        ("x", 2, 1),
        ("y", 0, 0),
    ]
    assert [branch["name"] for branch in no["branches"]] == ["z"]
    early = replace(whole, complete=False)
    assert (early.never, early.never_branches) == ((), ())


def test_json_of_an_engine_that_counts_nothing() -> None:
    """What was not counted is null or empty, and what took no time took 0 seconds."""
    data = _report((Kind.INVARIANT, H)).to_json()
    assert data["seconds"] == {"total": 0, "compile": 0, "explore": 0, "liveness": 0}
    assert (data["states"], data["levels"], data["out_degree"], data["rates"], data["coverage"]) == (
        None,
        [],
        None,
        None,
        None,
    )
    assert (data["stopped"], data["memory"]) == (None, {"peak_bytes": None})


@pytest.fixture
def report(relay: System) -> CheckReport:
    """A deadlock that was expected, a violation that was not, and a vacuous answer."""
    trace = replay_labels(relay, ["send(1)", "receive[lost=True]"])
    return CheckReport(
        model="relay",
        variant="lossy",
        parameters={"channels": 2},
        engine="explicit",
        properties=(
            Result(Finding("deadlock_free", Kind.DEADLOCK, Verdict.VIOLATED, trace), "violated", "d.itf.json"),
            Result(Finding("one_buffer", Kind.INVARIANT, Verdict.VIOLATED, trace), "holds"),
            Result(Finding("quiet", Kind.STEP, Verdict.HOLDS, None, "all 20 steps were looked at", True)),
        ),
        result=CheckResult(
            seconds=Seconds(1.25, 0.125, 1.0),
            counts=Counts(12, 20, 5, (2, 4, 6), 3, OutDegree(0, 20 / 9, 4)),
            coverage=Coverage(
                {"send": 12, "receive": 8, "reset": 0},
                {"send": 7, "receive": 3},
                {"reset": ("s.wire == 4",)},
                expanded=9,
            ),
        ),
        peak_bytes=45_300_000,
        reproduce="streamproof check relay --variant lossy",
    )


def test_json(report: CheckReport) -> None:
    """The documented keys with their values, and nothing that JSON cannot write."""
    assert json.loads(json.dumps(report.to_json())) == {
        "schema": "streamproof.check/1",
        "version": __version__,
        "model": "relay",
        "variant": "lossy",
        "parameters": {"channels": 2},
        "engine": "explicit",
        "verdict": "violated",
        "exit_code": 12,
        "states": {"distinct": 12, "generated": 20, "depth": 5, "queue": 3},
        "constraint": None,
        "stopped": None,
        "left_out": None,
        "levels": [2, 4, 6],
        "out_degree": {"least": 0, "mean": 2.222222, "most": 4},
        "rates": {"generated": 20, "distinct": 12},
        "seconds": {"total": 1.25, "compile": 0.125, "explore": 1.0, "liveness": 0.0},
        "memory": {"peak_bytes": 45_300_000},
        "properties": [
            {
                "name": "deadlock_free",
                "kind": "deadlock",
                "verdict": "violated",
                "expected": "violated",
                "because": "",
                "vacuous": False,
                "within": None,
                "trace": {"length": 2, "loop": None, "stutters": False, "file": "d.itf.json"},
                "fair": [],
                "sizes": None,
            },
            {
                "name": "one_buffer",
                "kind": "invariant",
                "verdict": "violated",
                "expected": "holds",
                "because": "",
                "vacuous": False,
                "within": None,
                "trace": {"length": 2, "loop": None, "stutters": False, "file": None},
                "fair": [],
                "sizes": None,
            },
            {
                "name": "quiet",
                "kind": "step",
                "verdict": "holds",
                "expected": None,
                "because": "all 20 steps were looked at",
                "vacuous": True,
                "within": None,
                "trace": None,
                "fair": [],
                "sizes": None,
            },
        ],
        "measures": [],
        "coverage": {
            "actions": [
                {"name": "send", "generated": 12, "distinct": 7, "branches": []},
                {"name": "receive", "generated": 8, "distinct": 3, "branches": []},
                {"name": "reset", "generated": 0, "distinct": 0, "branches": []},
            ],
            "never_enabled": ["reset"],
            "never_taken": [],
            "never_true": [{"action": "reset", "text": "s.wire == 4"}],
            "expanded": 9,
            "conjuncts": None,
        },
        "reductions": [],
        "reproduce": "streamproof check relay --variant lossy",
        "error": None,
    }


def test_json_of_an_error() -> None:
    """What ended the check is there with its place; what was not counted is null."""
    error = EvaluationError("n leaves Range(0, 1)", loc=Loc("m.py", 4), remedy="guard it")
    data = _report(error=error).to_json()
    assert data["error"] == {
        "kind": "EvaluationError",
        "message": "n leaves Range(0, 1)",
        "file": "m.py",
        "line": 4,
        "remedy": "guard it",
    }
    assert (data["verdict"], data["exit_code"], data["states"], data["coverage"]) == ("error", 75, None, None)


def test_console(report: CheckReport) -> None:
    """Properties, coverage with the action that was never enabled, counts in TLC's words, the overall verdict."""
    stream = io.StringIO()
    print_check(report, stream)
    assert stream.getvalue() == (
        """\
relay, variant lossy, engine explicit
  channels=2

  property       kind       verdict           expected
  deadlock_free  deadlock   violated          violated
      counterexample of 2 steps: d.itf.json
  one_buffer     invariant  violated          holds     <- not as expected
      counterexample of 2 steps
  quiet          step       holds, vacuously
      all 20 steps were looked at

2 of 3 actions were taken; never enabled: reset
  never true in reset: s.wire == 4

20 states generated, 12 distinct states found, 3 states left on queue, depth 5
20 s/s, 12 ds/s, 40% duplicates, out-degree 0 to 4, 2.22 on average, widest level 6
1.25 s (prepare 0.12 s, explore 1.00 s), peak memory 45.3 MB
vacuously true: quiet
violated: deadlock_free, one_buffer (exit code 12)
reproduce: streamproof check relay --variant lossy
"""
    )


def test_detailed_console(report: CheckReport) -> None:
    """Each action with the conditions of its guard and how often they were true, and the states of each level."""
    conditions = (
        Condition("send", "s.free > 0", Loc("relay.py", 7), 8),
        Condition("send", "s.open", Loc("relay.py", 8), 9),
        Condition("reset", "s.wire == 4", None, 0),
    )
    assert report.result.coverage is not None
    coverage = replace(report.result.coverage, conditions=conditions)
    detailed = replace(report, result=replace(report.result, coverage=coverage))
    stream = io.StringIO()
    print_check(detailed, stream, detailed=True)
    assert """
  action   generated  distinct
  send            12         7
      8 of 9  s.free > 0
      9 of 9  s.open
  receive          8         3
  reset            0         0  <- never enabled
      0 of 9  s.wire == 4  <- never true

20 states generated, 12 distinct states found, 3 states left on queue, depth 5
20 s/s, 12 ds/s, 40% duplicates, out-degree 0 to 4, 2.22 on average, widest level 6
new states per level: 2 4 6
1.25""" in stream.getvalue()
    assert detailed.to_json()["coverage"]["conjuncts"] == [
        {"action": "send", "text": "s.free > 0", "line": 7, "states": 8},
        {"action": "send", "text": "s.open", "line": 8, "states": 9},
        {"action": "reset", "text": "s.wire == 4", "line": None, "states": 0},
    ]


def test_detailed_console_without_time_to_count(report: CheckReport) -> None:
    """Conditions that could not be counted are not passed over in silence."""
    stream = io.StringIO()
    print_check(report, stream, detailed=True)
    assert "  guard conditions not counted: the search had no time or memory left\n" in stream.getvalue()


def test_console_without_counts() -> None:
    """What an engine does not know is left out."""
    stream = io.StringIO()
    print_check(
        _report((Kind.INVARIANT, H), (Kind.STEP, H), result=CheckResult(seconds=Seconds(0.5, 0.1, 0.4))), stream
    )
    assert stream.getvalue() == (
        """\
m, engine explicit

  property  kind       verdict
  p0        invariant  holds
  p1        step       holds

0.50 s (prepare 0.10 s, explore 0.40 s)
holds: 2 of 2 properties
"""
    )


def test_console_of_an_error() -> None:
    """An error is one line with its place, and what to do under it."""
    stream = io.StringIO()
    print_check(_report(error=EvaluationError("n is 2", loc=Loc("m.py", 4), remedy="guard it")), stream)
    assert stream.getvalue().endswith("error: m.py:4: n is 2\n  guard it\n")


def test_console_that_cannot_write_a_character() -> None:
    """A stream in ASCII gets a question mark, not a traceback."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    print_check(_report(parameters={"name": "é"}), stream)
    stream.flush()
    assert b"  name=?\n" in raw.getvalue()


def test_progress_line() -> None:
    """TLC's names, rates since the line before, the share of duplicates."""
    before = Progress(60.0, 10, 500, 1000, 20)
    now = Progress(3725.0, 14, 1000, 4000, 23)
    assert progress_text(now, before, 45_000_000) == (
        "Progress(14) at 01:02:05: 4000 states generated (1 s/s), 1000 distinct states found (0 ds/s), "
        "23 states left on queue, 75% duplicates, 45 MB"
    )
    assert progress_text(Progress(0.0, 1, 0, 0, 0), Progress(0.0, 0, 0, 0, 0), 999) == (
        "Progress(1) at 00:00:00: 0 states generated (0 s/s), 0 distinct states found (0 ds/s), "
        "0 states left on queue, 0% duplicates, 999 B"
    )


def shown_progress(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, seconds: Iterable[float]) -> str:
    """The output for reports at these times, five new states a second."""
    now = 0.0
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(outputs, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(outputs, "resident_bytes", lambda: 1_000_000)
    progress = outputs.EngineProgress()
    for now in seconds:
        progress(Progress(now, 3, int(now * 5), int(now * 10), 1))
    progress.close()
    return stream.getvalue()


def test_progress_once_a_minute_off_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports that come every second give a line a minute, each with the rates of that minute."""
    assert shown_progress(monkeypatch, io.StringIO(), map(float, range(1, 131))) == (
        "Progress(3) at 00:01:00: 600 states generated (10 s/s), 300 distinct states found (5 ds/s), "
        "1 states left on queue, 50% duplicates, 1 MB\n"
        "Progress(3) at 00:02:00: 1200 states generated (10 s/s), 600 distinct states found (5 ds/s), "
        "1 states left on queue, 50% duplicates, 1 MB\n"
    )


def test_progress_in_place_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal one line is rewritten every second, never wider than the terminal, and removed at the end."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    assert shown_progress(monkeypatch, Terminal(), (tenth / 10 for tenth in range(1, 21))) == (
        "\r\x1b[2KProgress(3) at 00:00:01: 10 states gene\r\x1b[2KProgress(3) at 00:00:02: 20 states gene\r\x1b[2K"
    )


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (45_300_000, "45.3 MB"), (999_600_000, "1 GB"), (2 * 10**12, "2 TB")],
)
def test_sizes(count: int, text: str) -> None:
    """Three digits and a unit, in powers of 1000."""
    assert size_text(count) == text


def test_memory_is_measured() -> None:
    """This process uses some megabytes, at its peak not less than now."""
    resident = resident_bytes()
    assert 5_000_000 < resident <= peak_bytes() * 1.01
