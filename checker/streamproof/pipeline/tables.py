"""From rows of events and verdicts to the tables of a report. Only aggregates reach the driver.

Verdicts are counted per check: one run validated against two models is two rows of `runs`. Recoveries belong to the run
and not to a check, so a recovery in two checks counts once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from streamproof.base.errors import InputError
from streamproof.pipeline.inputs import Skipped
from streamproof.pipeline.reading import Source, line_of
from streamproof.report.run_details import CHECK, CheckKey, check_key, most_interesting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NOT_VALIDATED = "not validated"
"""The verdict shown for a log without a verdict."""

_TEXT, _COUNT, _TIME = pa.string(), pa.int64(), pa.timestamp("us", tz="UTC")


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

_ORDER: dict[str, tuple[str, ...]] = {
    "runs": ("run", "trace", "model", "variant", "parameters"),
    "events": ("run", "process", "event"),
    "actions": ("run", "model", "action"),
    "coverage": ("model", "action"),
    "recoveries": ("run", "trace", "decided", "number", "failed", "size"),
    "rejections": ("kind", "event"),
}


def counted(events: DataFrame) -> DataFrame:
    """The partial counts of `source.EventSource` summed per source, run, trace, process and kind, with their time span;
    `trouble` is the first problem of a source, and `left_out` the number of skipped records."""
    return events.groupBy("source", "run", "named", "trace", "process", "event").agg(
        F.sum("count").alias("count"),
        F.min("first_ts").alias("first_ts"),
        F.max("last_ts").alias("last_ts"),
        F.min(F.when(F.col("problem").isNotNull(), F.struct("position", "problem"))).alias("trouble"),
        F.sum("left_out").alias("left_out"),
    )


def left_out(rows: DataFrame, sources: Sequence[Source]) -> list[Skipped]:
    """The skipped records: for each file the first one and the number of others; `rows` have `source`, `trouble` and
    `left_out`."""
    bad = rows.where("trouble IS NOT NULL").groupBy("source")
    found = bad.agg(F.min("trouble").alias("trouble"), F.sum("left_out").alias("left_out")).orderBy("source").collect()
    places = {source.path: source for source in sources}
    return [_left_out(places[row.source], row.trouble.position, row.trouble.problem, row.left_out) for row in found]


def _left_out(source: Source, position: int, problem: str, count: int) -> Skipped:
    more = f" (and {count - 1:,} more)" if count > 1 else ""
    if position < 0:
        return Skipped(source.path, problem)
    match source.form:
        case "ndjson":
            return Skipped(f"{source.path}:{line_of(source, position)}", f"{problem}{more}")
        case "parquet":
            return Skipped(f"{source.path}, row {position + 1}", f"{problem}{more}")
        case "document":
            return Skipped(f"{source.path}, verdicts[{position}]", f"{problem}{more}")


def refuse_merged_runs(events: DataFrame, sources: Sequence[Source]) -> None:
    """Raises `InputError` if two logs would count as one run only because their files have the same name.

    `events` are the `counted` ones.
    """
    # Logs that state their run may be many; of those that do not there may be one, parts of one data set excepted.
    suspects = (
        events.where("NOT named")
        .groupBy("run")
        .agg(F.count_distinct("source").alias("files"))
        .where("files > 1")
        .join(events.where("NOT named").select("run", "source").distinct(), "run")
    )
    origin = {source.path: source.origin for source in sources}
    seen: dict[str, str] = {}
    for row in suspects.select("run", "source").orderBy("run", "source").toLocalIterator():
        other = seen.setdefault(row.run, origin[row.source])
        if other != origin[row.source]:
            raise InputError(
                f"two event logs for run {row.run!r}: {other} and {origin[row.source]}",
                remedy="give one of them, or rename one file: a log is a run, named as the file is",
            )


def checks(verdicts: DataFrame) -> DataFrame:
    """The verdict records without duplicates. Raises `InputError` if two records contradict each other."""
    same = verdicts.groupBy(*CHECK).agg(
        F.count_distinct("digest").alias("versions"),
        F.min(F.struct("source", "position", "verdict")).alias("a"),
        F.max(F.struct("source", "position", "verdict")).alias("b"),
    )
    clash = same.where("versions > 1").orderBy(*CHECK).head()
    if clash is not None:
        raise InputError(
            f"two different verdicts of model {clash.model} on run {clash.run}: "
            f"{clash.a.verdict} in {clash.a.source} and {clash.b.verdict} in {clash.b.source}",
            remedy="give one of the two, or rename a run if they are different runs",
        )
    return verdicts.dropDuplicates([*CHECK, "digest"])


def tabulate(events: DataFrame, verdicts: DataFrame) -> Mapping[str, DataFrame]:
    """The tables of a report, by name, from `counted` events and `checks`."""
    actions = verdicts.select("run", "model", F.explode("actions").alias("a")).select("run", "model", "a.*")
    recoveries = verdicts.select("run", "trace", F.explode("recoveries").alias("r")).select("run", "trace", "r.*")
    elapsed = F.expr("(unix_micros(recovered) - unix_micros(decided)) / 1e6")
    return {
        "runs": _runs(events, verdicts),
        "events": events.groupBy("run", "process", "event").agg(F.sum("count").alias("count")),
        "actions": actions.groupBy("run", "model", "action").agg(F.sum("count").alias("count")),
        "coverage": _coverage(actions, verdicts),
        "recoveries": recoveries.distinct()
        .withColumn("seconds", F.when(elapsed >= 0, elapsed))
        .withColumn(
            "outcome",
            F.when(F.col("decided").isNull(), "time not known")
            .when(F.col("recovered").isNull(), "not recovered")
            .when(elapsed < 0, "clock ran backwards")
            .otherwise("recovered"),
        ),
        "rejections": _rejections(verdicts),
    }


def histories(verdicts: DataFrame) -> tuple[dict[CheckKey, Any], int]:
    """What to draw of the most interesting verdicts of `checks`, and the number of those of which something can be drawn."""
    drawable = verdicts.where("history IS NOT NULL")
    keys = [row.asDict() for row in drawable.select(*CHECK, "verdict").toLocalIterator()]
    chosen = {check_key(row) for row in most_interesting(keys)}
    runs = sorted({key[0] for key in chosen})
    rows = drawable.where(F.col("run").isin(runs)).select(*CHECK, "history").toLocalIterator() if runs else ()
    found = {check_key(row.asDict()): row.history for row in rows}
    return {key: json.loads(found[key]) for key in sorted(chosen, key=str)}, len(keys)


def collect(name: str, table: DataFrame) -> pa.Table:
    """One finished table on the driver, with the columns, types and order of `SCHEMAS`."""
    schema = SCHEMAS[name]
    rows = table.select(*schema.names).toArrow().cast(schema)
    return rows.sort_by([(column, "ascending") for column in _ORDER[name]])


def _runs(events: DataFrame, verdicts: DataFrame) -> DataFrame:
    logs = events.groupBy("run", "trace").agg(
        F.sum("count").alias("log_events"),
        F.count_distinct("process").alias("log_processes"),
        F.min("first_ts").alias("first_ts"),
        F.max("last_ts").alias("last_ts"),
    )
    total = "aggregate(transform({0}, x -> x.{1}), 0L, (a, b) -> a + b)"
    results = verdicts.select(
        *CHECK, "verdict", "reason", "findings", "machine", "relation",
        *(F.col(name).alias(f"events_{name}") for name in ("read", "matched", "ignored", "unknown")),
        F.expr(total.format("actions", "count")).alias("actions"),
        F.size("recoveries").alias("recoveries"),
        F.expr(total.format("recoveries", "size")).alias("restarted_tasks"),
        *(F.col(f"rejection.{name}").alias(f"rejected_{name}") for name in ("kind", "event", "file", "line", "message")),
    )  # fmt: skip
    # Events without a job (an empty trace) in a validated run, and all events of a run whose verdict names no job,
    # belong to a validated run; the log of a second job without a verdict does not.
    judged = verdicts.groupBy("run").agg(F.max(F.expr("trace = ''")).alias("as_a_whole"))
    joined = results.join(logs, ["run", "trace"], "full").join(judged, "run", "left")
    left_out = F.expr("verdict IS NULL AND NOT (as_a_whole IS NOT NULL AND (as_a_whole OR trace = ''))")
    return joined.where(F.col("verdict").isNotNull() | left_out).withColumn(
        "verdict", F.coalesce("verdict", F.lit(NOT_VALIDATED))
    )


def _coverage(actions: DataFrame, verdicts: DataFrame) -> DataFrame:
    declared = verdicts.select("model", F.explode("model_actions").alias("action"))
    known = declared.union(actions.select("model", "action")).distinct()
    taken = (
        actions.where("count > 0")
        .groupBy("model", "action")
        .agg(F.count_distinct("run").alias("runs"), F.sum("count").alias("count"))
    )
    return (
        known.join(taken, ["model", "action"], "left")
        .fillna(0, ["runs", "count"])
        .withColumn("never", F.col("count") == 0)
    )


def _rejections(verdicts: DataFrame) -> DataFrame:
    first = F.min(F.struct("run", "trace", *(f"rejection.{name}" for name in ("index", "file", "line", "message"))))
    return (
        verdicts.where("verdict = 'rejected'")
        .groupBy(F.coalesce("rejection.kind", F.lit("not stated")).alias("kind"), F.col("rejection.event").alias("event"))
        .agg(F.count("*").alias("count"), first.alias("first"))
        .select(
            "kind", "event", "count",
            *(F.col(f"first.{name}").alias(f"example_{name}") for name in ("run", "file", "line", "message")),
        )
    )  # fmt: skip
