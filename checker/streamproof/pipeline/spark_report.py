"""The report on many runs: Parquet tables and one HTML page, made by Spark and written atomically."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from streamproof.base.files import PAGE, PARQUET, Content, Form, expect_writable, write_all
from streamproof.base.records import dataclass, replace
from streamproof.conformance.run_verdict import ANSWERS
from streamproof.pipeline import reading, tables
from streamproof.pipeline.inputs import Inputs, Skipped, discover
from streamproof.pipeline.reading import Kind
from streamproof.pipeline.session import LOCAL, Progress, reporting, spark_failures, spark_session
from streamproof.pipeline.source import EventSource, VerdictSource
from streamproof.report.html import render_report
from streamproof.report.run_details import CheckKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PAGE_NAME = "report.html"


@dataclass(frozen=True, slots=True)
class ReportResult:
    """The contents of a report and its path."""

    html: Path
    tables: Mapping[str, Path]
    verdicts: Mapping[str, int]
    """The number of verdict records of each verdict; all four are present."""
    runs: int
    not_validated: int
    """Logs without a verdict."""
    events: int
    """Number of events in the given logs."""
    skipped: tuple[Skipped, ...]


def build_report(
    inputs: Sequence[Path],
    out: Path,
    master: str = LOCAL,
    title: str | None = None,
    progress: Progress | None = None,
) -> ReportResult:
    """Reads event logs and verdicts from `inputs` (files, folders, glob patterns) and writes `out/report.html` and
    `out/tables/*.parquet`.

    Equal inputs give equal tables and an equal page. An earlier report in `out` is replaced file by file, other files
    are kept. Invalid records are skipped and reported with file and line. Raises `InputError` if none is valid, and
    `SystemFailure` if `out` cannot be written or Spark cannot run; then `out` is unchanged.
    """
    expect_writable(out, None)
    for name in tables.SCHEMAS:
        expect_writable(out / "tables" / f"{name}.parquet", PARQUET)
    expect_writable(out / PAGE_NAME, PAGE)
    found = discover(inputs, without=out)
    with spark_session(master) as spark:
        collected, left_out, drawn, drawable = _collect(spark, found, master, progress)
    found = replace(found, skipped=(*found.skipped, *left_out))
    if progress:
        progress(f"writing {out}")
    page = render_report(
        collected,
        title=title or "Conformance report",
        read=[source.path for source in found.sources],
        skipped=[(item.path, item.reason) for item in found.skipped],
        drawn=drawn,
        drawable=drawable,
    )
    _write(collected, page, out)
    return _result(collected, out, found)


def _collect(
    spark: SparkSession, found: Inputs, master: str, progress: Progress | None
) -> tuple[dict[str, pa.Table], list[Skipped], dict[CheckKey, Any], int]:
    """The tables, the skipped records, and what to draw (see `tables.histories`)."""
    spark.dataSource.register(EventSource)
    spark.dataSource.register(VerdictSource)
    cores = spark.sparkContext.defaultParallelism
    doing = f"reading {len(found.of('events'))} event logs and {len(found.of('verdicts'))} verdict files on {master}"
    with tempfile.TemporaryDirectory(prefix="streamproof-") as folder, spark_failures(doing):

        def load(kind: Kind) -> DataFrame:
            plan = Path(folder, f"{kind}.json")
            plan.write_text(reading.to_json(reading.split(found.of(kind), cores)), encoding="utf-8")
            return spark.read.format(f"streamproof.{kind}").load(str(plan))

        trouble = F.when(F.col("problem").isNotNull(), F.struct("position", "problem")).alias("trouble")
        read_events = events = tables.counted(load("events")).persist()
        read_verdicts = verdicts = load("verdicts").select("*", trouble).persist()
        try:
            with reporting(spark, progress, doing):
                left_out = [*tables.left_out(events, found.sources), *tables.left_out(verdicts, found.sources)]
            events, verdicts = events.where("trouble IS NULL"), verdicts.where("trouble IS NULL")
            with reporting(spark, progress, "making the tables"):
                tables.refuse_merged_runs(events, found.sources)
                checked = tables.checks(verdicts)
                made = tables.tabulate(events, checked)
                collected = {name: tables.collect(name, table) for name, table in made.items()}
                return collected, left_out, *tables.histories(checked)
        finally:
            read_events.unpersist()
            read_verdicts.unpersist()


def _write(collected: Mapping[str, pa.Table], page: str, out: Path) -> None:
    """Moves everything to its place, the page last, so that an existing page matches the tables."""
    files: list[tuple[Path, Content, Form]] = [
        (out / "tables" / f"{name}.parquet", partial(_write_table, table), PARQUET) for name, table in collected.items()
    ]
    write_all([*files, (out / PAGE_NAME, page, PAGE)])


def _write_table(table: pa.Table, file: BinaryIO) -> None:
    marked = table.replace_schema_metadata({**(table.schema.metadata or {}), b"schema": b"streamproof.report"})
    pq.write_table(marked, file, compression="zstd")


def _result(collected: Mapping[str, pa.Table], out: Path, found: Inputs) -> ReportResult:
    verdicts: list[str] = collected["runs"]["verdict"].to_pylist()
    events: int | None = pc.sum(collected["events"]["count"]).as_py()
    runs = set(collected["runs"]["run"].to_pylist()) | set(collected["events"]["run"].unique().to_pylist())
    return ReportResult(
        html=out / PAGE_NAME,
        tables={name: out / "tables" / f"{name}.parquet" for name in collected},
        verdicts={verdict: verdicts.count(verdict) for verdict in ANSWERS},
        runs=len(runs),
        not_validated=verdicts.count(tables.NOT_VALIDATED),
        events=events or 0,
        skipped=found.skipped,
    )
