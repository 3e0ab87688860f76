"""The page: well-formed, self-contained, safe, and true to its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.pipeline.tables import SCHEMAS
from streamproof.report.html import render_report
from streamproof.report.html_facts import Bin, Spread, duration, facts_of, natural, second_bins, size_bins, summary_of
from strict_page import StrictPage

_START = datetime(2026, 11, 21, 3, 27, 2, tzinfo=UTC)


def _row(name: str, **values: Any) -> dict[str, Any]:
    return {column: values.get(column) for column in SCHEMAS[name].names}


def _run(run: str, verdict: str = "accepted", **values: Any) -> dict[str, Any]:
    counts = {"events_read": 10, "events_matched": 7, "events_ignored": 3, "events_unknown": 0, "log_events": 10}
    rest = {"trace": "job", "model": "failover", "actions": 5, "recoveries": 0, "restarted_tasks": 0}
    return _row("runs", **{"run": run, "verdict": verdict, **counts, **rest, **values})


def _tables(**rows: Sequence[Mapping[str, Any]]) -> dict[str, pa.Table]:
    return {name: pa.Table.from_pylist(list(rows.get(name, ())), schema=schema) for name, schema in SCHEMAS.items()}


def _render(tables: Mapping[str, pa.Table], **more: Any) -> str:
    return render_report(summary_of(tables), **{"title": "Runs", "read": ["a.ndjson"], "skipped": [], **more})


def _full(name: str = "B (1/2)") -> dict[str, pa.Table]:
    """Tables with something for every part of the page; `name` stands wherever a log decides the text."""
    return _tables(
        runs=[
            _run(f"run-{name}", trace=name, first_ts=_START, last_ts=_START + timedelta(seconds=75)),
            _run(
                "run-2", "rejected", rejected_kind=name, rejected_event=name, rejected_file=name, rejected_line=7,
                rejected_message=name, variant=name, log_events=None,
            ),
            _run("run-3", "inconclusive", reason=name, model=name),
            _run("run-4", "error", reason=name),
            _run("run-5", "not validated", model=None, events_read=None, events_matched=None, actions=None),
        ],
        events=[_row("events", run="run-2", process=name, event=name, count=4)],
        actions=[_row("actions", run="run-2", model="failover", action=name, count=3)],
        coverage=[
            _row("coverage", model="failover", action=name, runs=1, count=3, never=False),
            _row("coverage", model="failover", action="give_up", runs=0, count=0, never=True),
        ],
        recoveries=[
            _row(
                "recoveries", run="run-2", trace="job", number=1, decided=_START, recovered=_START, seconds=2.5,
                outcome="recovered", failed=name, cause=name, announced=2, size=3, tasks=[name],
            ),
            _row("recoveries", run="run-2", trace="job", number=2, decided=_START, outcome="not recovered", size=1, tasks=[]),
        ],
        rejections=[
            _row(
                "rejections", kind=name, event=name, count=1, example_run="run-2", example_file=name,
                example_line=7, example_message=name,
            )
        ],
    )  # fmt: skip


def test_the_page_is_well_formed_and_fetches_nothing() -> None:
    """Every element closes in order; no script, no style sheet, no picture, no link leaves the page."""
    page = _render(_full())
    read = StrictPage(page)
    assert read.tags[:3] == ["html", "head", "meta"]
    assert "script" not in read.tags
    assert read.fetched == []
    assert {link.removeprefix("#") for link in read.links} <= read.ids
    assert all(link.startswith("#") for link in read.links)
    for request in ("http:", "https:", "url(", "@import", "//"):
        assert request not in page.replace("<!DOCTYPE", "")


@pytest.mark.push
@given(st.text(alphabet=st.sampled_from("<>&\"'/=ab ;{}%"), min_size=1, max_size=20))
def test_no_text_from_a_log_becomes_markup(name: str) -> None:
    """Whatever a task, a file, an action or a message is called, the page has the same elements and shows the text."""
    plain = StrictPage(_render(_full("x"), title="x", skipped=[("x", "x")]))
    hostile = StrictPage(_render(_full(name), title=name, skipped=[(name, name)]))
    assert hostile.tags == plain.tags
    assert name in hostile.text


def test_numbers_of_the_page() -> None:
    """What the headline, the warnings and the tables say is what the tables hold."""
    text = " ".join(" ".join(StrictPage(_render(_full())).text).split())
    for said in (
        "5 runs, 4 verdicts against B (1/2), failover; events from 2026-11-21 03:27:02 UTC to 2026-11-21 03:28:17 UTC",
        "1 rejected 1 error 1 inconclusive 1 not validated 1 accepted",
        "40 events validated",
        "1 of 2 model actions covered",
        "2 restarts, 4 tasks",
        "2.5 s to recover, median",
        "Never taken: give_up",
        "1 restart had not recovered when the log ended. 1 restart was of another number of tasks than announced.",
        "min 1 median 2 p95 3 max 3",
        "4 events of 1 kind",
        "1 file was read.",
    ):
        assert said in text


def test_rejections_are_explained_in_words() -> None:
    """The kinds that validation knows are sentences; with place and message an engineer knows where to look."""
    row = _row(
        "rejections", kind="action", event="exec.deploy", count=3, example_run="r", example_file="jm.log",
        example_line=12, example_message="B is not scheduled\nnearest: schedule(B)",
    )  # fmt: skip
    text = " ".join(StrictPage(_render(_tables(runs=[_run("r")], rejections=[row]))).text)
    said = "No action of the model explains the event exec.deploy 3 runs B is not scheduled\nnearest: schedule(B)"
    assert " ".join(said.split()) in " ".join(text.split())
    assert "for example in r at jm.log:12" in " ".join(text.replace("jm.log :12", "jm.log:12").split())


def test_the_worst_runs_come_first_in_natural_order() -> None:
    """Rejected before inconclusive before accepted, and run 2 before run 10."""
    runs = [_run("run-10"), _run("run-2"), _run("b", "inconclusive"), _run("c", "rejected"), _run("a", "error")]
    assert [row["run"] for row in facts_of(summary_of(_tables(runs=runs)))["rows"]] == [
        "c",
        "a",
        "b",
        "run-2",
        "run-10",
    ]
    assert natural("run-2") < natural("run-10") < natural("run-10b") < natural("runs")


def test_many_runs_are_cut_and_said_to_be() -> None:
    """A page of ten thousand runs shows the worst, bars instead of a matrix, and where the rest is."""
    runs = [_run(f"run-{number}", "rejected" if number == 9_999 else "accepted") for number in range(10_000)]
    coverage = [_row("coverage", model="failover", action="start", runs=2_500, count=2_500, never=False)]
    page = _render(_tables(runs=runs, coverage=coverage))
    assert len(page) < 1_000_000
    text = " ".join(" ".join(StrictPage(page).text).split())
    assert "run-9999" in text
    assert "The first 500, worst verdict first. All 10,000 are in tables/runs.parquet ." in text
    assert "Bars show the share of runs that took the action." in text
    assert "start 2,500 2,500 /10,000" in text


def test_a_long_name_of_an_action_never_taken_wraps_with_its_comma() -> None:
    """In a box that is as wide as the page; a comma after a full box would be outside of it."""
    names = ["give_up_" * 40, "stop"]
    coverage = [_row("coverage", model="failover", action=name, runs=0, count=0, never=True) for name in names]
    page = _render(_tables(coverage=coverage))
    assert f"<code>{names[0]},</code> <code>stop</code>" in page
    assert ".warn code { display: inline-block; max-width: 100%; }" in page


def test_a_log_of_another_length_than_validated_is_pointed_out() -> None:
    """An accepted verdict on another version of the log is worth nothing, and says so."""
    text = " ".join(" ".join(StrictPage(_render(_tables(runs=[_run("r", log_events=12), _run("s")]))).text).split())
    assert (
        "1 accepted run has another number of events in the log given here than validation read: r (12 in the log, 10 read)"
        in text
    )


@pytest.mark.parametrize(
    ("values", "spread"),
    [
        ([], None),
        ([3], Spread(3, 3, 3, 3)),
        ([1, 2, 3, 10], Spread(1, 2.5, 10, 10)),
        (list(range(1, 21)), Spread(1, 10.5, 19, 20)),
        (list(range(1, 101)), Spread(1, 50.5, 95, 100)),
    ],
)
def test_spread(values: list[float], spread: Spread | None) -> None:
    """The median is the usual one; the 95th percentile is a value that occurred."""
    assert Spread.of(values) == spread


@given(st.lists(st.integers(0, 100_000), max_size=50), st.lists(st.floats(0, 1e5), max_size=50))
def test_histograms_count_everything_once(sizes: list[int], seconds: list[float]) -> None:
    """No value falls between two bars or into both."""
    assert sum(item.count for item in size_bins(sizes)) == len(sizes)
    assert sum(item.count for item in second_bins(seconds)) == len(seconds)


def test_histogram_bars() -> None:
    """Few sizes get a bar each, many get bars that double; times get bounds 1, 2, 5, the upper one included."""
    assert size_bins([2, 2, 4]) == (Bin("2", 2), Bin("3", 0), Bin("4", 1))
    assert size_bins([1, 20]) == (Bin("1", 1), Bin("2-3", 0), Bin("4-7", 0), Bin("8-15", 0), Bin("16-31", 1))
    assert second_bins([0.2, 0.2001, 1.0]) == (Bin("≤ 200 ms", 1), Bin("≤ 500 ms", 1), Bin("≤ 1 s", 1))
    assert second_bins([0.0]) == (Bin("≤ 10 ms", 1),)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0004, "0 ms"), (0.85, "850 ms"), (12.34, "12.3 s"), (60, "1 min"), (125.2, "2 min 5 s"), (3840, "1 h 4 min")],
)
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    """Three digits are enough to compare recoveries."""
    assert duration(seconds) == text
