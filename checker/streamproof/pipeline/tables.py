"""The second pass of a report: from the rows of a part of the runs to that part of the tables.

Verdicts are counted per check: one run validated against two models is two rows of `runs`. Recoveries belong to the run
and not to a check, so a recovery in two checks counts once. All rows of a run are in one part, so whatever is counted by run
is the sum over the parts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamproof.base.records import dataclass
from streamproof.pipeline.grouping import GROUPS, rows_of
from streamproof.report.html_facts import Summary, summary_of
from streamproof.report.run_details import CHECK, CheckKey, check_key, most_interesting

NOT_VALIDATED = "not validated"
"""The verdict shown for a log without a verdict."""

_TEXT, _COUNT, _TIME = pa.string(), pa.int64(), pa.timestamp("us", tz="UTC")
_MICROSECOND = timedelta(microseconds=1)

Row = dict[str, Any]


def _columns(kind: pa.DataType, *names: str) -> dict[str, pa.DataType]:
    return dict.fromkeys(names, kind)


SCHEMAS: dict[str, pa.Schema] = {
    name: pa.schema(columns)
    for name, columns in {
        "runs": {
            **_columns(_TEXT, "run", "trace", "model", "variant", "parameters", "verdict", "reason"),
            **_columns(_COUNT, "events_read", "events_matched", "events_ignored", "events_unknown"),
            **_columns(_COUNT, "actions", "recoveries", "restarted_tasks", "log_events", "log_processes"),
            **_columns(_TIME, "first_ts", "last_ts"),
            **_columns(_TEXT, "rejected_kind", "rejected_event", "rejected_file"),
            "rejected_line": _COUNT,
            **_columns(_TEXT, "rejected_message", "findings", "machine", "relation"),
        },
        "events": {**_columns(_TEXT, "run", "process", "event"), "count": _COUNT},
        "actions": {**_columns(_TEXT, "run", "model", "action"), "count": _COUNT},
        "coverage": {**_columns(_TEXT, "model", "action"), **_columns(_COUNT, "runs", "count"), "never": pa.bool_()},
        "recoveries": {
            **_columns(_TEXT, "run", "trace"),
            "number": _COUNT,
            **_columns(_TIME, "decided", "recovered"),
            "seconds": pa.float64(),
            **_columns(_TEXT, "outcome", "failed", "cause"),
            **_columns(_COUNT, "announced", "size"),
            "tasks": pa.list_(_TEXT),
        },
        "rejections": {
            **_columns(_TEXT, "kind", "event"),
            "count": _COUNT,
            **_columns(_TEXT, "example_run", "example_file"),
            "example_line": _COUNT,
            "example_message": _TEXT,
        },
    }.items()
}
"""The tables and their columns: names, order and types are a stable interface."""

SUMS = ("coverage", "rejections")
"""The tables that are sums over all runs; the others have rows of single runs, in as many parts as there are."""

_ORDER: dict[str, tuple[str, ...]] = {
    "runs": ("run", "trace", "model", "variant", "parameters"),
    "events": ("run", "process", "event"),
    "actions": ("run", "model", "action"),
    "coverage": ("model", "action"),
    "recoveries": ("run", "trace", "decided", "number", "failed", "size"),
    "rejections": ("kind", "event"),
}


Contradiction = tuple[CheckKey, str, str]
"""Where two inputs contradict each other, a message, and a remedy."""


@dataclass(frozen=True, slots=True)
class TableJob:
    """A part of the runs."""

    part: int
    parts: int
    jobs: int
    """Number of jobs of the first pass."""
    folder: str

    @property
    def groups(self) -> range:
        """The groups of its runs."""
        return range(GROUPS * self.part // self.parts, GROUPS * (self.part + 1) // self.parts)


@dataclass(frozen=True, slots=True)
class TablePart:
    """What the driver needs to know of a part. Its tables are in files, and so is what to draw of its runs."""

    summary: Summary
    drawable: int
    """Number of the verdicts of which something can be drawn."""
    interesting: tuple[Row, ...]
    """The most interesting of them, without what to draw."""
    contradictions: tuple[Contradiction, ...]
    """The first two logs of one run, and the first two verdicts that contradict each other."""


def make_tables(job: TableJob) -> TablePart:
    """Writes the tables of a part."""
    events = rows_of(job.folder, "events", job.jobs, job.groups)
    read = rows_of(job.folder, "verdicts", job.jobs, job.groups)
    rows = [row for batch in read.drop_columns(["history"]).to_batches(1024) for row in batch.to_pylist()]
    for number, row in enumerate(rows):
        row["number"] = number
    verdicts, contradiction = _without_repetitions(rows)
    contradictions = (*_merged_runs(events), *contradiction)
    tables = tabulate(events, verdicts)
    for name in SCHEMAS.keys() - {*SUMS}:
        with part_of(job.folder, name, job.part).open("wb") as file:
            write_table(tables[name], file)
    has_history = pc.is_valid(read["history"]).to_pylist()
    drawable = [
        {name: row[name] for name in (*CHECK, "verdict", "number")} for row in verdicts if has_history[row["number"]]
    ]
    interesting = tuple(dict(row) for row in most_interesting(drawable))
    chosen = {check_key(row): read["history"][row["number"]].as_py() for row in interesting}
    for place, row in enumerate(interesting):
        history_of(job.folder, job.part, place).write_text(chosen[check_key(row)], encoding="utf-8")
        row |= {"part": job.part, "place": place}
    return TablePart(summary_of(tables), len(drawable), interesting, contradictions)


def part_of(folder: str, name: str, part: int) -> Path:
    """The file of a part of a table."""
    return Path(folder, f"{name}-{part:05}.parquet")


def history_of(folder: str, part: int, place: int) -> Path:
    """The file with what to draw of one of the most interesting verdicts of a part."""
    return Path(folder, f"history-{part}-{place}.json")


def write_table(table: pa.Table, file: BinaryIO) -> None:
    """Writes a table as Parquet."""
    marked = table.replace_schema_metadata({**(table.schema.metadata or {}), b"schema": b"streamproof.report"})
    pq.write_table(marked, file, compression="zstd")


def table_of(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """A table with the columns, types and order of `SCHEMAS`."""
    table = pa.Table.from_pylist(list(rows), schema=SCHEMAS[name])
    return table.sort_by([(column, "ascending") for column in _ORDER[name]])


def tabulate(events: pa.Table, verdicts: Sequence[Row]) -> dict[str, pa.Table]:
    """The tables of a part, by name, from the counts of events and the verdicts on their runs; those of `SUMS` are the
    part's share."""
    counted = events.group_by(["run", "process", "event"]).aggregate([("count", "sum")])
    actions: dict[tuple[str, str, str], int] = defaultdict(int)
    for row in verdicts:
        for item in row["actions"]:
            actions[row["run"], row["model"], item["action"]] += item["count"]
    rows: dict[str, Iterable[Row]] = {
        "runs": _runs(events, verdicts),
        "actions": (
            dict(zip(("run", "model", "action", "count"), (*key, n), strict=True)) for key, n in actions.items()
        ),
        "coverage": _coverage(actions, verdicts),
        "recoveries": _recoveries(verdicts),
        "rejections": _rejections(verdicts),
    }
    tables = {name: table_of(name, found) for name, found in rows.items()}
    tables["events"] = (
        counted.rename_columns({"count_sum": "count"})
        .select(SCHEMAS["events"].names)
        .cast(SCHEMAS["events"])
        .sort_by([(column, "ascending") for column in _ORDER["events"]])
    )
    return {name: tables[name] for name in SCHEMAS}


def _merged_runs(events: pa.Table) -> list[Contradiction]:
    """Two logs that would count as one run only because their files have the same name: the first such run."""
    # Logs that state their run may be many; of those that do not there may be one, parts of one data set excepted.
    found = events.filter(pc.is_valid(events["origin"])).group_by(["run", "origin"]).aggregate([])
    origins: dict[str, list[str]] = defaultdict(list)
    for row in found.to_pylist():
        origins[row["run"]].append(row["origin"])
    several = sorted((run, sorted(where)) for run, where in origins.items() if len(where) > 1)
    remedy = "give one of them, or rename one file: a log is a run, named as the file is"
    return [((run,), f"two event logs for run {run!r}: {a} and {b}", remedy) for run, (a, b, *_) in several[:1]]


def _without_repetitions(rows: Sequence[Row]) -> tuple[list[Row], list[Contradiction]]:
    """The verdicts, each once, and the first two that contradict each other."""
    versions: dict[CheckKey, dict[str, Row]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: (row["source"], row["position"])):
        versions[check_key(row)].setdefault(row["digest"], row)
    clashes = [key for key, found in versions.items() if len(found) > 1]
    verdicts = [next(iter(found.values())) for found in versions.values()]
    if not clashes:
        return verdicts, []
    key = min(clashes, key=_ordered)
    a, *_, b = versions[key].values()
    message = f"two different verdicts of model {a['model']} on run {a['run']}: "
    message += f"{a['verdict']} in {a['source']} and {b['verdict']} in {b['source']}"
    return verdicts, [(key, message, "give one of the two, or rename a run if they are different runs")]


def place_of(contradiction: Contradiction) -> tuple[Any, ...]:
    """Sort key of contradictions: those of logs, which have a shorter place, first."""
    return len(contradiction[0]), *_ordered(contradiction[0])


def _ordered(key: Iterable[Any]) -> tuple[Any, ...]:
    """A sort key in which nulls are first."""
    return tuple((value is not None, value) for value in key)


def _runs(events: pa.Table, verdicts: Sequence[Row]) -> list[Row]:
    grouped = events.group_by(["run", "trace"]).aggregate(
        [("count", "sum"), ("process", "count_distinct"), ("first_ts", "min"), ("last_ts", "max")]
    )
    logs = {
        (row["run"], row["trace"]): {
            "log_events": row["count_sum"],
            "log_processes": row["process_count_distinct"],
            "first_ts": row["first_ts_min"],
            "last_ts": row["last_ts_max"],
        }
        for row in grouped.to_pylist()
    }
    rows = []
    as_a_whole: dict[str, bool] = defaultdict(bool)
    checked = set()
    for row in verdicts:
        run, trace = row["run"], row["trace"]
        as_a_whole[run] |= trace == ""
        checked.add((run, trace))
        rejection = row["rejection"] or {}
        rows.append(
            {name: row[name] for name in (*CHECK, "verdict", "reason", "findings", "machine", "relation")}
            | {f"events_{name}": row[name] for name in ("read", "matched", "ignored", "unknown")}
            | {"actions": sum(item["count"] for item in row["actions"])}
            | {"recoveries": len(row["recoveries"]), "restarted_tasks": sum(item["size"] for item in row["recoveries"])}
            | {f"rejected_{name}": rejection.get(name) for name in ("kind", "event", "file", "line", "message")}
            | logs.get((run, trace), {})
        )
    # Events without a job (an empty trace) in a validated run, and all events of a run whose verdict names no job,
    # belong to a validated run; the log of a second job without a verdict does not.
    for (run, trace), log in logs.items():
        if (run, trace) not in checked and not (run in as_a_whole and (as_a_whole[run] or trace == "")):
            rows.append({"run": run, "trace": trace, "verdict": NOT_VALIDATED, **log})
    return rows


def _recoveries(verdicts: Sequence[Row]) -> list[Row]:
    found: dict[tuple[Any, ...], Row] = {}
    for row in verdicts:
        for item in row["recoveries"]:
            key = (row["run"], row["trace"], *((name, item[name]) for name in item if name != "tasks"), *item["tasks"])
            if key not in found:
                seconds = _seconds(item["decided"], item["recovered"])
                elapsed = None if seconds is None or seconds < 0 else seconds
                outcome = (
                    "time not known" if item["decided"] is None
                    else "not recovered" if seconds is None
                    else "clock ran backwards" if seconds < 0
                    else "recovered"
                )  # fmt: skip
                found[key] = {"run": row["run"], "trace": row["trace"], **item, "seconds": elapsed, "outcome": outcome}
    return list(found.values())


def _seconds(begin: datetime | None, end: datetime | None) -> float | None:
    return None if begin is None or end is None else (end - begin) // _MICROSECOND / 1e6


def _coverage(actions: Mapping[tuple[str, str, str], int], verdicts: Sequence[Row]) -> list[Row]:
    rows: dict[tuple[str, str], Row] = {}

    def of(model: str, action: str) -> Row:
        return rows.setdefault((model, action), {"model": model, "action": action, "runs": 0, "count": 0})

    for row in verdicts:
        for action in row["model_actions"]:
            of(row["model"], action)
    for (_, model, action), count in actions.items():
        row = of(model, action)
        row["runs"] += count > 0
        row["count"] += count
    return [{**row, "never": row["count"] == 0} for row in rows.values()]


def _rejections(verdicts: Sequence[Row]) -> list[Row]:
    found: dict[tuple[str, str | None], list[tuple[Any, ...]]] = defaultdict(list)
    for row in verdicts:
        if row["verdict"] == "rejected":
            rejection = row["rejection"] or {}
            place = (rejection.get(name) for name in ("index", "file", "line", "message"))
            kind = rejection.get("kind")
            key = ("not stated" if kind is None else kind, rejection.get("event"))
            found[key].append((row["run"], row["trace"], *place))
    rows = []
    for (kind, event), places in found.items():
        run, _, _, file, line, message = min(places, key=_ordered)
        example = {"example_run": run, "example_file": file, "example_line": line, "example_message": message}
        rows.append({"kind": kind, "event": event, "count": len(places), **example})
    return rows


def drawn(folder: str, parts: Sequence[TablePart]) -> dict[CheckKey, Any]:
    """What to draw of the most interesting verdicts of all parts."""
    chosen = most_interesting([row for part in parts for row in part.interesting])
    return {
        key: json.loads(history_of(folder, row["part"], row["place"]).read_text(encoding="utf-8"))
        for key, row in sorted(((check_key(row), row) for row in chosen), key=lambda pair: _ordered(pair[0]))
    }
