"""The content of the page of a report, computed from the report's tables: no markup here, no numbers in the template.

The tables may have any number of runs; the page shows the worst of them and names the files with the others.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
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


def facts_of(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """The content of the page from the tables of a report (`pipeline.tables.SCHEMAS` has their columns)."""
    runs = tables["runs"]
    verdicts = Counter(runs["verdict"].to_pylist())
    rows = worst_first(runs.to_pylist())
    kinds = _kinds(tables["events"])
    return {
        "verdicts": [(verdict, verdicts[verdict]) for verdict in SEVERITY if verdicts[verdict]],
        "runs": len(set(runs["run"].to_pylist()) | set(tables["events"]["run"].unique().to_pylist())),
        "checks": sum(count for verdict, count in verdicts.items() if verdict != "not validated"),
        "models": sorted({row["model"] for row in rows if row["model"]}),
        "first_ts": pc.min(runs["first_ts"]).as_py(),
        "last_ts": pc.max(runs["last_ts"]).as_py(),
        "log_events": _sum(tables["events"], "count"),
        "events": {name: _sum(runs, f"events_{name}") for name in ("read", "matched", "ignored", "unknown")},
        "actions": _sum(tables["actions"], "count"),
        "rows": rows[:RUN_ROWS],
        "rows_total": len(rows),
        "sums": {name: sum(row[name] or 0 for row in rows) for name in _SUMMED},  # over all rows
        "findings": sorted(Counter(row["findings"] for row in rows if row["findings"]).items()),
        "rejections": sorted(tables["rejections"].to_pylist(), key=lambda row: (-row["count"], row["kind"])),
        "coverage": _coverage(tables),
        "recoveries": _recoveries(tables["recoveries"]),
        "kinds": kinds[:EVENT_ROWS],
        "kinds_total": len(kinds),
        # An accepted log was read completely; another number of events means that the log has changed since.
        "miscounted": [
            row
            for row in rows
            if row["verdict"] == "accepted"
            and row["log_events"] is not None
            and row["log_events"] != row["events_read"]
        ],
    }


def _sum(table: pa.Table, column: str) -> int:
    total: int | None = pc.sum(table[column]).as_py()
    return total or 0


def _coverage(tables: Mapping[str, pa.Table]) -> tuple[RunCoverage, ...]:
    checked: dict[str, set[str]] = defaultdict(set)
    followed: dict[str, set[str]] = defaultdict(set)
    for row in tables["runs"].select(["model", "run", "machine", "relation"]).to_pylist():
        if row["model"]:
            checked[row["model"]].add(row["run"])
        if row["machine"]:
            followed[row["model"]].add(f"{row['machine']} ({row['relation']})")
    by_model: dict[str, list[Row]] = defaultdict(list)
    for row in tables["coverage"].to_pylist():
        by_model[row["model"]].append(row)
    answer: list[RunCoverage] = []
    for model, actions in sorted(by_model.items()):
        runs = sorted(checked[model], key=natural) if len(checked[model]) <= MATRIX_RUNS else []
        counts = _counts(tables["actions"], model) if runs else {}
        rows = [
            CoverageRow(
                row["action"], row["runs"], row["count"], tuple(counts.get((run, row["action"]), 0) for run in runs)
            )
            for row in sorted(actions, key=lambda row: (-row["runs"], -row["count"], row["action"]))
        ]
        answer.append(RunCoverage(model, tuple(sorted(followed[model])), len(checked[model]), tuple(runs), tuple(rows)))
    return tuple(answer)


def _counts(actions: pa.Table, model: str) -> dict[tuple[str, str], int]:
    mine = actions.filter(pc.equal(actions["model"], model))
    return {(row["run"], row["action"]): row["count"] for row in mine.to_pylist()}


def _recoveries(table: pa.Table) -> dict[str, Any]:
    """Restarts over all runs: sizes, durations, and the remarkable ones."""
    outcomes = Counter(table["outcome"].to_pylist())
    sizes: list[int] = table["size"].to_pylist()
    seconds: list[float] = table["seconds"].drop_null().to_pylist()
    rows = table.to_pylist()
    misannounced = sum(row["announced"] is not None and row["announced"] != row["size"] for row in rows)
    rows.sort(key=lambda row: (row["seconds"] is not None, -(row["seconds"] or 0), natural(row["run"]), row["number"]))
    return {
        "total": len(rows),
        "runs": len({row["run"] for row in rows}),
        "unfinished": outcomes["not recovered"],
        "backwards": outcomes["clock ran backwards"],
        "untimed": outcomes["time not known"],
        "misannounced": misannounced,
        "tasks": sum(sizes),
        "sizes": Spread.of(sizes),
        "size_bins": size_bins(sizes),
        "seconds": Spread.of(seconds),
        "second_bins": second_bins(seconds),
        "rows": rows[:RECOVERY_ROWS],
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
    bars = [
        Bin(f"≤ {duration(high)}", sum(value <= high and (value > low or low == 0) for value in seconds))
        for low, high in pairwise(bounds)
    ]
    return _trimmed(bars)


def _trimmed(bins: list[Bin]) -> tuple[Bin, ...]:
    """The bars without leading and trailing empty ones."""
    full = [index for index, item in enumerate(bins) if item.count]
    return tuple(bins[full[0] : full[-1] + 1]) if full else ()


def _kinds(events: pa.Table) -> list[dict[str, Any]]:
    """The kinds of events: number of events, of runs, and of recording processes."""
    grouped = events.group_by("event").aggregate(
        [("count", "sum"), ("run", "count_distinct"), ("process", "count_distinct")]
    )
    names = {
        "event": "event",
        "count": "count_sum",
        "runs": "run_count_distinct",
        "processes": "process_count_distinct",
    }
    kinds = [{name: row[column] for name, column in names.items()} for row in grouped.to_pylist()]
    return sorted(kinds, key=lambda kind: (-kind["count"], kind["event"]))
