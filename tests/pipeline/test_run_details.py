"""The drawings of runs in the page: true to the verdict's JSON, safe, small, and open about what they leave out."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.pipeline.fields import BadRecord
from streamproof.pipeline.records import VERDICT_TYPES, verdict_row
from streamproof.pipeline.run_history import history_row
from streamproof.pipeline.tables import SCHEMAS
from streamproof.report.html import render_report
from streamproof.report.html_facts import summary_of
from streamproof.report.job_graph import MOST_VERTICES, drawn_graph
from streamproof.report.run_details import MOST_DETAILED, check_key, most_interesting
from streamproof.report.time_scale import WIDTH, time_scale
from streamproof.report.timeline import timeline
from strict_page import StrictPage

_START = datetime(2026, 11, 21, 3, 27, 2, tzinfo=UTC)


def at(seconds: float) -> str:
    """A time as in a log."""
    return (_START + timedelta(seconds=seconds)).isoformat()


def verdict(name: str = "B", parallelism: int = 2, restarts: int = 1, **changes: Any) -> dict[str, Any]:
    """A rejected run of two vertices, in which a subtask fails at 10, 20, ...; `name` stands where a log decides the text."""
    attempts, decided = [], [10.0 * n for n in range(1, restarts + 1)]
    for begin, end in pairwise([0.0, *decided, None]):
        for vertex in (0, 1):
            for subtask in range(parallelism):
                states = [["SCHEDULED", at(begin + 0.5)], ["DEPLOYING", at(begin + 1)], ["RUNNING", at(begin + 2)]]
                if end is not None and (vertex, subtask) == (1, 0):
                    states.append(["FAILED", at(end)])
                elif end is not None:
                    states += [["CANCELING", at(end)], ["CANCELED", at(end + 0.25)]]
                number = len(attempts) // (2 * parallelism)
                attempts.append(
                    {"vertex": vertex, "subtask": subtask, "number": number, "place": name, "states": states}
                )
    mark = {"at": at(5), "attempt": 1, "file": name, "line": 7, "message": name}
    frontier = {
        "states": [[f"job = {name}"], ["job = other"]],
        "matches": [{"state": 0, "taken": [name], "then": name, "because": name}],
    }
    record = {
        "run": f"run-{name}", "trace": "job", "model": "failover", "variant": None, "parameters": {}, "verdict": "rejected",
        "reason": name, "events": {"read": 9, "matched": 7, "ignored": 2, "unknown": 0},
        "recoveries": [
            {
                "decided": at(t), "recovered": None, "failed": name, "cause": name,
                "announced": 2, "size": 2, "tasks": [name],
                "why": [{"tasks": [name], "reason": name, "partition": name, "because": None}],
            }
            for t in decided
        ],
        "rejection": {
            "index": 3, "at": name, "file": name, "line": 7, "event": name, "message": name, "states": 2, "nearest": name,
            "states_before": [{"job": name}], "frontier": frontier,
        },
        "history": {
            "vertices": [
                {"name": name, "parallelism": parallelism, "regions": [0] * parallelism},
                {"name": f"{name} sink", "parallelism": parallelism, "regions": list(range(1, parallelism + 1))},
            ],
            "edges": [{"source": 0, "target": 1, "exchange": "BLOCKING", "pattern": name}],
            "missing": [name], "states": [["RUNNING", at(0)], ["RESTARTING", at(10)]], "attempts": attempts,
            "total_attempts": len(attempts), "rejected": [mark],
        },
    }  # fmt: skip
    return {**record, **changes}


def page_of(records: Sequence[Mapping[str, Any]], drawable: int = 0) -> str:
    """The page about some verdicts, without events."""
    rows, drawn = [], {}
    for record in records:
        values = dict(zip(VERDICT_TYPES, verdict_row(record), strict=True))
        known = {
            name: values[name]
            for name in SCHEMAS["runs"].names
            if name in values and name not in ("actions", "recoveries")
        }
        counts = {f"events_{name}": values[name] for name in ("read", "matched", "ignored", "unknown")}
        row = {**dict.fromkeys(SCHEMAS["runs"].names), **known, **counts, "actions": 0, "restarted_tasks": 0}
        rows.append({**row, "recoveries": len(values["recoveries"])})
        if values["history"] is not None:
            drawn[check_key(row)] = history(record)
    tables = {
        name: pa.Table.from_pylist(rows if name == "runs" else [], schema=schema) for name, schema in SCHEMAS.items()
    }
    return render_report(summary_of(tables), title="Runs", read=["v.json"], skipped=[], drawn=drawn, drawable=drawable)


def history(record: Mapping[str, Any]) -> Any:
    """What is drawn of a verdict."""
    return json.loads(history_row(record) or "null")


def text_of(page: str) -> str:
    """The text of a page, with single spaces."""
    return " ".join(" ".join(StrictPage(page).text).split())


def test_a_run_has_its_drawings() -> None:
    """The table links to a section with graph, time line, restart, rejected line and the states before the rejection."""
    page = page_of([verdict()])
    read = StrictPage(page)
    assert "#run-1" in read.links
    assert {link.removeprefix("#") for link in read.links} <= read.ids
    assert read.fetched == []
    text = text_of(page)
    for said in (
        "Job graph 3 pipelined regions",
        "Attempts over time by task",
        "B failed (B) : 2 tasks B (B): B",
        "B:7 B",
        "3 events accepted before it; 2 states of the model fit them",
        "B is not possible: B in state 1, after B",
        "state 1 of 2 job = B state 2 of 2",
        "state 2 of 2 job = other no action of the event is known",
        "B sink, parallelism 2",
        "BLOCKING, B",
        "B sink (1/2) attempt 0 on B: SCHEDULED +500 ms, DEPLOYING +1 s, RUNNING +2 s, FAILED +10 s",
    ):
        assert said in text, said


HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><svg onload=x>",
    "\x1b[31mred\x1b[0m",
    "a\u202eb",
    "&lt;b&gt;",
    "{{ 7 * 7 }}",
    "x" * 5000,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_a_log_are_data(name: str) -> None:
    """Markup, control characters and templates in names have no effect: the elements are those of a harmless name."""
    page = page_of([verdict(name)])
    assert StrictPage(page).tags == StrictPage(page_of([verdict("x")])).tags
    assert "<script" not in page
    assert not {"\x1b", "\u202e"} & {*page}
    assert len(page) < 200_000


@settings(max_examples=20)
@given(st.text(alphabet=st.sampled_from("<>&\"'/=ab ;{}%"), min_size=1, max_size=12))
def test_no_name_becomes_markup(name: str) -> None:
    """Whatever vertices, tasks, places and actions are called."""
    assert StrictPage(page_of([verdict(name)])).tags == StrictPage(page_of([verdict("x")])).tags


def test_bars_are_where_the_states_were() -> None:
    """Each bar of a task begins at the position of its state's time and ends at that of the next."""
    data = history(verdict())
    chart = timeline(data["history"], data["restarts"])
    assert chart is not None
    times = {t for a in data["history"]["attempts"] for _, t in a["states"]} | {t for _, t in data["history"]["states"]}
    scale = time_scale(times | {_START.timestamp() + 5})
    assert scale is not None
    rows = [row for row in chart["rows"] if row.label == "2/2"]
    assert [row.title for row in rows] == ["B (2/2), region 1", "B sink (2/2), region 3"]
    drawn = re.findall(r'class="t-(\w+)" d="M([\d.]+) \d+h([\d.]+)', str(rows[0].bar))
    phases = {"SCHEDULED": "waiting", "DEPLOYING": "starting", "RUNNING": "running", "CANCELING": "cancelling"}
    expected = []
    for attempt in data["history"]["attempts"]:
        if (attempt["vertex"], attempt["subtask"]) == (0, 1):
            for (state, t), (_, until) in pairwise([*attempt["states"], ("", None)]):
                if state in phases:
                    x, end = scale.x(t), WIDTH if until is None else scale.x(until)
                    expected.append((phases[state], x, end - x))
    assert [phase for phase, *_ in drawn] == [phase for phase, *_ in expected]
    for (_, x, width), (_, real_x, real_width) in zip(drawn, expected, strict=True):
        assert float(x) == pytest.approx(real_x, abs=0.06)
        assert float(width) == pytest.approx(max(real_width, 1.2), abs=0.06)
    failed = next(row for row in chart["rows"] if row.title.startswith("B sink (1/2)"))
    assert [(m.text, m.style) for m in failed.marks if m.style != "number"] == [("✗", "failed")]
    rejected = next(row for row in chart["rows"] if row.title.startswith("B (2/2)"))
    assert [m.left for m in rejected.marks if m.style == "rejected"] == [scale.x(_START.timestamp() + 5) / 10]
    assert [(m.style, m.left) for m in chart["lines"]] == [
        ("restart", scale.x(_START.timestamp() + 10) / 10),
        ("rejected", scale.x(_START.timestamp() + 5) / 10),
    ]


def test_times_keep_their_order() -> None:
    """On 300 random scales: from 0 to the full width, cuts as long as the gaps that they stand for, ticks outside cuts."""
    rng = random.Random(7)
    for _ in range(300):
        times = [
            rng.choice([1e9, 0.0]) + rng.expovariate(rng.choice([0.01, 1, 100])) for _ in range(rng.randint(2, 40))
        ]
        scale = time_scale(times)
        assert scale is not None
        ordered = sorted(set(times))
        places = [scale.x(t) for t in ordered]
        assert places == sorted(places)
        assert places[0] == 0.0
        assert places[-1] == pytest.approx(WIDTH)
        gaps = {b - a for a, b in pairwise(ordered)}
        assert {cut.seconds for cut in scale.cuts} <= gaps
        for x, _ in scale.ticks():
            assert not any(cut.x + 1e-6 < x < cut.x + cut.width - 1e-6 for cut in scale.cuts)
    assert time_scale([]) is None
    alone = time_scale([5.0, 5.0])
    assert alone is not None
    assert (alone.x(5.0), alone.ticks()) == (0.0, [(0.0, "0")])


@pytest.mark.parametrize(("parallelism", "restarts"), [(125, 3), (500, 0), (10, 319)])
def test_large_jobs_are_drawn_by_vertex(parallelism: int, restarts: int) -> None:
    """A page about 1,000 attempts and more stays small, and says what it leaves out."""
    record = verdict(parallelism=parallelism, restarts=restarts)
    total = len(record["history"]["attempts"])
    page = page_of([record])
    assert len(page) < 150_000
    text = text_of(page)
    assert f"The job has {2 * parallelism:,} tasks with {total:,} attempts. A row shows how many attempts" in text
    if restarts:
        assert (
            "Rows of their own have 2 of the 2 tasks that failed or have a rejected line; the others have none." in text
        )
    assert ("Of these tasks the last 25 attempts are drawn." in text) == (restarts > 25)
    assert ("The first 12 of 319 restarts." in text) == (restarts > 12)


def test_attempts_outside_the_record_are_counted() -> None:
    """Those beyond the maximum, and those without times."""
    record = verdict()
    record["history"]["total_attempts"] = 12_345
    record["history"]["attempts"][0]["states"] = [["SCHEDULED", None]]
    text = text_of(page_of([record]))
    assert "The verdict's JSON has the first 8 of 12,345 attempts; the others are not drawn." in text
    assert "1 attempt has no times in the log and is not drawn." in text


def test_an_edge_that_skips_layers_crosses_no_box() -> None:
    """On random graphs: the points of every path, 20 for each of its curves, are outside all boxes, between its two ends."""
    rng, skipping = random.Random(5), 0
    for _ in range(60):
        count = rng.randint(3, 9)
        vertices = [{"name": f"v{n}", "parallelism": 1, "regions": [n]} for n in range(count)]
        pairs = {(a, b) for a, b in (sorted(rng.sample(range(count), 2)) for _ in range(2 * count))}
        edges = [{"source": a, "target": b, "exchange": "PIPELINED", "pattern": None} for a, b in sorted(pairs)]
        svg = str(drawn_graph(vertices, edges))
        boxes = [
            [float(v) for v in b]
            for b in re.findall(r'class="box" x="([\d.]+)" y="([\d.]+)" width="(\d+)" height="(\d+)"', svg)
        ]
        paths = re.findall(r'class="edge pipelined" d="([^"]+)"', svg)
        assert (len(boxes), len(paths)) == (count, len(edges))
        for path in paths:
            points = list(along(path))
            skipping += "V" in path
            for x, y in points[1:-1]:
                assert not any(left < x < left + w and top < y < top + h for left, top, w, h in boxes), path
    assert skipping > 50


def along(path: str) -> Iterator[tuple[float, float]]:
    """Points along a path of curves and vertical lines."""
    x = y = 0.0
    for kind, numbers in re.findall(r"([MCV])([-\d. e]+)", path):
        values = [float(n) for n in numbers.split()]
        if kind == "C":
            x1, y1, x2, y2, x3, y3 = values
            for n in range(1, 20):
                t = n / 20
                a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
                yield a * x + b * x1 + c * x2 + d * x3, a * y + b * y1 + c * y2 + d * y3
            x, y = x3, y3
        else:
            x, y = (values[0], values[1]) if kind == "M" else (x, values[0])
        yield x, y


def test_a_hang_is_wide_and_axis_labels_differ() -> None:
    """25 s of hanging, then 6 ms in which the job is cancelled; without the hang, labels of milliseconds after seconds."""
    record = verdict(restarts=0)
    record["history"]["states"] = [["RUNNING", at(0)], ["CANCELLING", at(25.6)], ["CANCELED", at(25.606)]]
    record["history"]["attempts"] = [
        {"vertex": 0, "subtask": n, "number": 0, "place": None, "states": [["CANCELING", at(25.601 + n / 1000)]]}
        for n in (0, 1)
    ]
    record["history"]["rejected"] = []
    for hangs in (True, False):
        record["findings"] = [{"kind": "hang", "message": "m"}] if hangs else []
        data = history(record)
        assert data["hangs"] is hangs
        chart = timeline(data["history"], data["restarts"], hangs=data["hangs"])
        assert chart is not None
        labels = [label for _, label in chart["ticks"]]
        assert len(labels) == len(set(labels)) > hangs
        assert (chart["hang"] is None) is not hangs
        assert ("t-hang" in str(chart["rows"][0].bar)) is hangs
        if hangs:
            assert chart["hang"]["width"] == pytest.approx(75)
            assert chart["hang"]["text"] == "hangs for 25.6 s"
            assert "smaller scale" in chart["notes"][-1]
    assert "the job hangs" in text_of(page_of([record]))


def test_taskmanagers_and_checkpoints_have_rows() -> None:
    """When each was lost and came back, one that had no task included; checkpoints that complete and fail, and a restore."""
    record = verdict("tm-0")
    turn = {"facts": [], "file": None, "line": None}
    record["history"]["happenings"] = [
        {"kind": "lost", "at": at(4), "text": "TaskManager tm-9 is lost", "process": "tm-9", **turn},
        {"kind": "returned", "at": at(8), "text": "TaskManager tm-9 registers again", "process": "tm-9", **turn},
        {"kind": "restored", "at": at(10.3), "text": "checkpoint 1 is restored", **turn},
    ]
    record["history"]["checkpoints"] = [
        {"number": 1, "begun": at(3), "ended": at(3.5), "outcome": "completed"},
        {"number": 2, "begun": at(9), "ended": at(9.5), "outcome": "failed"},
        {"number": 3, "begun": at(11), "ended": None, "outcome": "pending"},
    ]
    data = history(record)
    chart = timeline(data["history"], data["restarts"])
    assert chart is not None
    rows = {row.label: row for row in chart["rows"] if row.bar is not None}
    assert rows["tm-9"].title == "tm-9: lost +4 s, returns +8 s"
    assert [(m.text, m.style) for m in rows["tm-9"].marks] == [("✗", "failed"), ("✓", "returned")]
    assert "t-gone" in str(rows["tm-9"].bar)
    assert rows["tm-0"].title == "tm-0: never lost"
    assert "t-gone" not in str(rows["tm-0"].bar)
    assert rows["state"].title == "checkpoints: 1 completed, 1 failed, 1 pending"
    assert [(m.text, m.title) for m in rows["state"].marks] == [
        ("✗", "checkpoint 2 fails +9.5 s"),
        ("↺", "checkpoint 1 is restored +10.3 s"),
    ]
    assert str(rows["state"].bar).count("t-stored") == 1


def test_large_and_impossible_graphs() -> None:
    """At most a number of vertices; a circle, which no job has, is drawn too."""
    vertices = [{"name": f"v{n}", "parallelism": 1, "regions": [n]} for n in range(100)]
    chain = [{"source": n, "target": n + 1, "exchange": None, "pattern": None} for n in range(99)]
    assert str(drawn_graph(vertices, chain)).count('class="box"') == MOST_VERTICES
    circle = [*chain[:2], {"source": 2, "target": 0, "exchange": "PIPELINED", "pattern": None}]
    assert str(drawn_graph(vertices[:3], circle)).count('class="edge') == 3


def test_the_worst_verdicts_are_drawn() -> None:
    """Up to a number, which the page says."""
    rows = [{"run": f"r{n}", "trace": "", "verdict": "accepted" if n else "rejected"} for n in range(99, -1, -1)]
    chosen = most_interesting(rows)
    assert [row["run"] for row in chosen[:3]] == ["r0", "r1", "r2"]
    assert len(chosen) == MOST_DETAILED
    assert "The first 1 of 77 verdicts of which something can be drawn" in text_of(page_of([verdict()], drawable=77))


def test_records_that_make_no_sense_are_refused() -> None:
    """Any part of a verdict replaced by something else is drawn, or refused; nothing else happens."""
    rng, refused, drawn = random.Random(3), 0, 0
    others: list[Any] = [None, -1, 10**6, 3.5, "x", "", [], {}, [[]], True, ["x"], [None], {"a": []}]
    for _ in range(400):
        record = copy.deepcopy(verdict())
        place: Any = record
        key: Any = rng.choice(["history", "rejection", "recoveries", "findings"])
        record.setdefault("findings", [{"kind": "hang", "message": "m"}])
        while isinstance(place[key], dict | list) and place[key] and rng.random() < 0.8:
            place = place[key]
            key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
        place[key] = rng.choice(others)
        try:
            StrictPage(page_of([record]))
            drawn += 1
        except BadRecord:
            refused += 1
    assert min(refused, drawn) > 50
