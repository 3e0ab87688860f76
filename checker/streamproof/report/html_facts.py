"""The content of the page of a report, computed from the report's tables: no markup here, no numbers in the template.

The tables may have any number of runs; the page shows the worst of them and names the files with the others.
"""

from __future__ import annotations

import math
import statistics
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamproof.base.records import dataclass
from streamproof.report.rows import SEVERITY, Row, duration, natural, worst_first

RUN_ROWS = 500
MATRIX_RUNS = 60
RECOVERY_ROWS = 40
EVENT_ROWS = 60
SKIPPED_ROWS = 20
MISCOUNTED = 5

_SUMMED = ("events_read", "events_matched", "events_ignored", "actions", "recoveries", "restarted_tasks", "log_events")


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """One action of a model: number of runs that took it, total count, and (for few runs) the count in each."""

    action: str
    runs: int
    count: int
    cells: tuple[int, ...]

    @property
    def never(self) -> bool:
        """Whether no run took the action."""
        return self.count == 0


@dataclass(frozen=True, slots=True)
class RunCoverage:
    """Actions of one model against the runs validated against it. `runs` is empty if there are too many."""

    model: str
    followed: tuple[str, ...]
    """The machines that followed the runs, with their relations to the model."""
    checked: int
    runs: tuple[str, ...]
    rows: tuple[CoverageRow, ...]

    @property
    def never(self) -> tuple[str, ...]:
        """The actions that no run took."""
        return tuple(row.action for row in self.rows if row.never)

    @property
    def taken(self) -> int:
        """Number of actions taken by some run."""
        return sum(not row.never for row in self.rows)


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar of a histogram."""

    label: str
    count: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Minimum, median, 95th percentile (nearest rank) and maximum of some values."""

    least: float
    median: float
    p95: float
    most: float

    @staticmethod
    def of(values: Iterable[float]) -> Spread | None:
        """The spread of `values`; None without values."""
        ordered = sorted(values)
        if not ordered:
            return None
        rank = math.ceil(0.95 * len(ordered))
        return Spread(ordered[0], statistics.median(ordered), ordered[rank - 1], ordered[-1])


@dataclass(slots=True)
class Summary:
    """What the page needs of the tables of some runs. Its size depends on the names of actions and kinds of events: of
    the runs it has numbers, some rows, and eight bytes for each restart."""

    verdicts: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)
    """Sums of columns, and numbers of rows and runs."""
    models: set[str] = field(default_factory=set)
    spans: list[datetime] = field(default_factory=list)
    """The first and the last time of an event, in this order, if there are any."""
    rows: list[Row] = field(default_factory=list)
    """The worst rows of the table of runs."""
    miscounted: list[Row] = field(default_factory=list)
    """The first accepted runs of which another number of events was read."""
    checked: Counter[str] = field(default_factory=Counter)
    """The number of runs validated against each model."""
    few: dict[str, set[str]] = field(default_factory=dict)
    """Their names, if they are few: see `MATRIX_RUNS`."""
    followed: dict[str, set[str]] = field(default_factory=dict)
    cells: dict[str, dict[tuple[str, str], int]] = field(default_factory=dict)
    """The counts of each run and action of models with few runs."""
    coverage: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """Number of runs and total count of each model and action."""
    rejections: dict[tuple[str, str | None], Row] = field(default_factory=dict)
    """Rows of the table of rejections."""
    kinds: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Number of events, runs, and processes of runs, of each kind of event."""
    outcomes: Counter[str] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    seconds: array[float] = field(default_factory=lambda: array("d"))
    restarts: list[Row] = field(default_factory=list)
    """The most remarkable restarts."""

    def add(self, other: Summary) -> None:
        """Adds the summary of other runs."""
        for name in ("verdicts", "findings", "sums", "checked", "outcomes", "sizes"):
            getattr(self, name).update(getattr(other, name))
        self.models |= other.models
        spans = [*self.spans, *other.spans]
        self.spans = [min(spans), max(spans)] if spans else []
        self.rows = worst_first([*self.rows, *other.rows])[:RUN_ROWS]
        self.miscounted = worst_first([*self.miscounted, *other.miscounted])[:MISCOUNTED]
        for model, machines in other.followed.items():
            self.followed.setdefault(model, set()).update(machines)
        for model in other.checked:
            self.few[model] = self.few.get(model, set()) | other.few.get(model, set())
            self.cells[model] = self.cells.get(model, {}) | other.cells.get(model, {})
            if self.checked[model] > MATRIX_RUNS:
                self.few[model], self.cells[model] = set(), {}
        for key, counts in other.coverage.items():
            self.coverage[key] = _added(self.coverage.get(key, (0, 0)), counts)
        for kind, numbers in other.kinds.items():
            self.kinds[kind] = _added(self.kinds.get(kind, (0, 0, 0)), numbers)
        for place, row in other.rejections.items():
            known = self.rejections.get(place, row)
            first = min(known, row, key=lambda row: row["example_run"])
            self.rejections[place] = {**first, "count": row["count"] + (known["count"] if known is not row else 0)}
        self.seconds.extend(other.seconds)
        self.restarts = sorted([*self.restarts, *other.restarts], key=_remarkable)[:RECOVERY_ROWS]

    def coverage_rows(self) -> list[Row]:
        """The rows of the table of coverage."""
        return [
            {"model": model, "action": action, "runs": runs, "count": count, "never": count == 0}
            for (model, action), (runs, count) in self.coverage.items()
        ]


def _added(some: tuple[int, ...], more: tuple[int, ...]) -> Any:
    return tuple(a + b for a, b in zip(some, more, strict=True))


def summary_of(tables: Mapping[str, pa.Table]) -> Summary:
    """The summary of the tables of some runs (`pipeline.tables.SCHEMAS` has their columns)."""
    runs, events, restarts = tables["runs"], tables["events"], tables["recoveries"]
    rows = worst_first(runs.to_pylist())
    names = set(runs["run"].to_pylist()) | set(events["run"].unique().to_pylist())
    found = Summary(
        verdicts=Counter(row["verdict"] for row in rows),
        findings=Counter(row["findings"] for row in rows if row["findings"]),
        sums=Counter({name: sum(row[name] or 0 for row in rows) for name in (*_SUMMED, "events_unknown")}),
        models={row["model"] for row in rows if row["model"]},
        rows=rows[:RUN_ROWS],
        outcomes=Counter(restarts["outcome"].to_pylist()),
        sizes=Counter(restarts["size"].to_pylist()),
        seconds=array("d", restarts["seconds"].drop_null().to_pylist()),
        restarts=sorted(restarts.to_pylist(), key=_remarkable)[:RECOVERY_ROWS],
        coverage={(row["model"], row["action"]): (row["runs"], row["count"]) for row in tables["coverage"].to_pylist()},
        rejections={(row["kind"], row["event"]): row for row in tables["rejections"].to_pylist()},
    )
    first, last = pc.min(runs["first_ts"]).as_py(), pc.max(runs["last_ts"]).as_py()
    found.spans = [] if first is None else [first, last]
    # An accepted log was read completely; another number of events means that the log has changed since.
    miscounted = [
        row
        for row in rows
        if row["verdict"] == "accepted" and row["log_events"] is not None and row["log_events"] != row["events_read"]
    ]
    found.miscounted = miscounted[:MISCOUNTED]
    found.sums.update(
        {
            "runs": len(names),
            "rows": len(rows),
            "miscounted": len(miscounted),
            "events": _sum(events, "count"),
            "taken": _sum(tables["actions"], "count"),
            "restarted_runs": len(set(restarts["run"].to_pylist())),
            "misannounced": sum(
                row["announced"] is not None and row["announced"] != row["size"]
                for row in restarts.select(["announced", "size"]).to_pylist()
            ),
        }
    )
    checked: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row["model"]:
            checked[row["model"]].add(row["run"])
        if row["machine"]:
            found.followed.setdefault(row["model"], set()).add(f"{row['machine']} ({row['relation']})")
    for model, own in checked.items():
        found.checked[model] = len(own)
        if len(own) <= MATRIX_RUNS:
            found.few[model], found.cells[model] = own, _counts(tables["actions"], model)
    grouped = events.group_by(["event", "run", "process"]).aggregate([("count", "sum")])
    kinds = grouped.group_by("event").aggregate([("count_sum", "sum"), ("run", "count_distinct"), ("run", "count")])
    for row in kinds.to_pylist():
        found.kinds[row["event"]] = (row["count_sum_sum"], row["run_count_distinct"], row["run_count"])
    return found


def facts_of(summary: Summary) -> dict[str, Any]:
    """The content of the page."""
    first_ts, last_ts = summary.spans or (None, None)
    names = ("event", "count", "runs", "processes")
    ordered = sorted(summary.kinds.items(), key=lambda item: (-item[1][0], item[0]))
    kinds = [dict(zip(names, (kind, *numbers), strict=True)) for kind, numbers in ordered]
    sums = summary.sums
    return {
        "verdicts": [(verdict, summary.verdicts[verdict]) for verdict in SEVERITY if summary.verdicts[verdict]],
        "runs": sums["runs"],
        "checks": sum(count for verdict, count in summary.verdicts.items() if verdict != "not validated"),
        "models": sorted(summary.models),
        "first_ts": first_ts,
        "last_ts": last_ts,
        "log_events": sums["events"],
        "events": {name: sums[f"events_{name}"] for name in ("read", "matched", "ignored", "unknown")},
        "actions": sums["taken"],
        "rows": summary.rows,
        "rows_total": sums["rows"],
        "sums": {name: sums[name] for name in _SUMMED},
        "findings": sorted(summary.findings.items()),
        "rejections": sorted(
            summary.rejections.values(), key=lambda row: (-row["count"], row["kind"], row["event"] or "")
        ),
        "coverage": _coverage(summary),
        "recoveries": _recoveries(summary),
        "kinds": kinds[:EVENT_ROWS],
        "kinds_total": len(kinds),
        "miscounted": summary.miscounted,
        "miscounted_total": sums["miscounted"],
    }


def _sum(table: pa.Table, column: str) -> int:
    total: int | None = pc.sum(table[column]).as_py()
    return total or 0


def _coverage(summary: Summary) -> tuple[RunCoverage, ...]:
    by_model: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for (model, action), (runs, count) in summary.coverage.items():
        by_model[model].append((action, runs, count))
    answer: list[RunCoverage] = []
    for model, actions in sorted(by_model.items()):
        names = sorted(summary.few.get(model, ()), key=lambda run: (natural(run), run))
        counts = summary.cells.get(model, {})
        rows = [
            CoverageRow(action, runs, count, tuple(counts.get((run, action), 0) for run in names))
            for action, runs, count in sorted(actions, key=lambda row: (-row[1], -row[2], row[0]))
        ]
        followed = tuple(sorted(summary.followed.get(model, ())))
        answer.append(RunCoverage(model, followed, summary.checked[model], tuple(names), tuple(rows)))
    return tuple(answer)


def _counts(actions: pa.Table, model: str) -> dict[tuple[str, str], int]:
    mine = actions.filter(pc.equal(actions["model"], model))
    return {(row["run"], row["action"]): row["count"] for row in mine.to_pylist()}


def _remarkable(row: Row) -> tuple[Any, ...]:
    """Sort key of restarts: without a time first, then the slowest."""
    return row["seconds"] is not None, -(row["seconds"] or 0), natural(row["run"]), row["run"], row["number"]


def _recoveries(summary: Summary) -> dict[str, Any]:
    """Restarts over all runs: sizes, durations, and the remarkable ones."""
    sizes = sorted(summary.sizes.elements())
    return {
        "total": len(sizes),
        "runs": summary.sums["restarted_runs"],
        "unfinished": summary.outcomes["not recovered"],
        "backwards": summary.outcomes["clock ran backwards"],
        "untimed": summary.outcomes["time not known"],
        "misannounced": summary.sums["misannounced"],
        "tasks": sum(sizes),
        "sizes": Spread.of(sizes),
        "size_bins": size_bins(sizes),
        "seconds": Spread.of(summary.seconds),
        "second_bins": second_bins(summary.seconds),
        "rows": summary.restarts,
    }


def size_bins(sizes: Sequence[int]) -> tuple[Bin, ...]:
    """One bar per size if that is readable, else bars of doubling width."""
    if not sizes:
        return ()
    counts = Counter(sizes)
    most = max(counts)
    if most - min(counts) < 16:
        return tuple(Bin(str(size), counts[size]) for size in range(min(counts), most + 1))
    bins: list[Bin] = []
    low, high = 0, 1
    while low <= most:
        label = str(low) if high == low + 1 else f"{low}-{high - 1}"
        bins.append(Bin(label, sum(count for size, count in counts.items() if low <= size < high)))
        low, high = high, high * 2
    return _trimmed(bins)


def second_bins(seconds: Sequence[float]) -> tuple[Bin, ...]:
    """Bars with bounds 1, 2, 5, 10, ..., as recovery times spread over orders of magnitude; upper bounds are inclusive."""
    if not seconds:
        return ()
    bounds = [0.0]
    exponent = -2
    while bounds[-1] < max(seconds) or len(bounds) == 1:
        bounds += [step * 10.0**exponent for step in (1, 2, 5)]
        exponent += 1
    ordered = sorted(seconds)
    below = [0, *(bisect_right(ordered, bound) for bound in bounds[1:])]
    bars = [
        Bin(f"≤ {duration(high)}", most - least)
        for high, (least, most) in zip(bounds[1:], pairwise(below), strict=True)
    ]
    return _trimmed(bars)


def _trimmed(bins: list[Bin]) -> tuple[Bin, ...]:
    """The bars without leading and trailing empty ones."""
    full = [index for index, item in enumerate(bins) if item.count]
    return tuple(bins[full[0] : full[-1] + 1]) if full else ()
