"""The report on many runs: Parquet tables and one HTML page, made by processes of this machine or of a Spark cluster.

Two passes of jobs do the work, and the same functions do it everywhere, so that the results are equal, byte for byte. This
process has the names of the files, and a summary whose size does not depend on the number of runs.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from streamproof.base.errors import InputError
from streamproof.base.files import PAGE, PARQUET, Content, Form, expect_writable, new_folders, write_all
from streamproof.base.records import dataclass, replace
from streamproof.conformance.run_verdict import ANSWERS
from streamproof.explicit.cluster import LocalExecutor
from streamproof.pipeline import reading, tables
from streamproof.pipeline.executors import SparkExecutor
from streamproof.pipeline.grouping import GROUPS, ReadJob, Trouble, group_rows
from streamproof.pipeline.inputs import Inputs, Skipped, discover
from streamproof.pipeline.reading import Source, line_of
from streamproof.pipeline.session import Progress, is_local
from streamproof.report.html import render_report
from streamproof.report.html_facts import Summary
from streamproof.report.run_details import CheckKey

PAGE_NAME = "report.html"
ONE_PROCESS = 4 << 20
"""Size of inputs, in bytes, below which one process makes a report faster than several."""
PART = 128 << 20
"""Bytes of input of one part of the tables."""


@dataclass(frozen=True, slots=True)
class ReportResult:
    """The contents of a report and its path."""

    html: Path
    tables: Mapping[str, Path]
    """Each a file or, of many runs, a folder of files."""
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
    master: str | None = None,
    title: str | None = None,
    progress: Progress | None = None,
    *,
    part_bytes: int = PART,
) -> ReportResult:
    """Reads event logs and verdicts from `inputs` (files, folders, glob patterns) and writes `out/report.html` and
    `out/tables/*.parquet`.

    `master` is a Spark master; None: this machine, without Spark. Equal inputs give equal tables and an equal page. A table
    of rows of runs has one part for each `part_bytes` of input; several parts are files in a folder. An earlier report in
    `out` is replaced file by file, other files are kept. Invalid records are skipped and reported with file and line. Raises
    `InputError` if none is valid, and `SystemFailure` if `out` cannot be written or Spark cannot run; then `out` is
    unchanged.
    """
    expect_writable(out, None)
    for name in tables.SCHEMAS:
        expect_writable(out / "tables" / f"{name}.parquet", PARQUET)
    expect_writable(out / PAGE_NAME, PAGE)
    found = discover(inputs, without=out)
    with ExitStack() as stack:
        folder = stack.enter_context(_shared_folder(out, master))
        maker = _Maker(stack, found, folder, master, progress)
        troubles, summary, drawn, drawable = maker.make(part_bytes)
        found = replace(found, skipped=(*found.skipped, *_left_out(troubles, found.sources)))
        if progress:
            progress(f"writing {out}")
        page = render_report(
            summary,
            title=title or "Conformance report",
            read=[source.path for source in found.sources],
            skipped=[(item.path, item.reason) for item in found.skipped],
            drawn=drawn,
            drawable=drawable,
        )
        _write(summary, folder, maker.parts, page, out)
    return ReportResult(
        html=out / PAGE_NAME,
        tables={name: out / "tables" / f"{name}.parquet" for name in tables.SCHEMAS},
        verdicts={verdict: summary.verdicts[verdict] for verdict in ANSWERS},
        runs=summary.sums["runs"],
        not_validated=summary.verdicts[tables.NOT_VALIDATED],
        events=summary.sums["events"],
        skipped=found.skipped,
    )


@contextmanager
def _shared_folder(out: Path, master: str | None) -> Iterator[str]:
    """A temporary folder for all processes of the report: in that of the report, if they are on several machines."""
    place = out.absolute() if master is not None and not is_local(master) else None
    with (
        new_folders([place] if place else []),
        tempfile.TemporaryDirectory(prefix=".streamproof-", dir=place) as folder,
    ):
        yield folder


class _Maker:
    """Makes the parts of the tables."""

    def __init__(
        self, stack: ExitStack, found: Inputs, folder: str, master: str | None, progress: Progress | None
    ) -> None:
        self.found, self.folder, self.progress = found, folder, progress
        self.bytes = sum(source.bytes for source in found.sources)
        self.where = f" on {master}" if master else ""
        self.executor: LocalExecutor | SparkExecutor = (
            LocalExecutor("report", processes=None if self.bytes > ONE_PROCESS else 1)
            if master is None
            else SparkExecutor(master, stack, doing="making a report")
        )
        self.parts = 1

    def make(self, part_bytes: int) -> tuple[list[Trouble], Summary, dict[CheckKey, Any], int]:
        """The skipped records, the summary, and what to draw of how many drawable verdicts."""
        numbers = f"{len(self.found.of('events'))} event logs and {len(self.found.of('verdicts'))} verdict files"
        pieces = reading.split(self.found.sources, self.executor.processors)
        reads = [ReadJob(number, tuple(some), self.folder) for number, some in enumerate(pieces)]
        troubles = [one for some in self._run(group_rows, reads, f"reading {numbers}{self.where}") for one in some]
        self.parts = min(1 + self.bytes // part_bytes, GROUPS)
        jobs = [tables.TableJob(part, self.parts, len(reads), self.folder) for part in range(self.parts)]
        made = self._run(tables.make_tables, jobs, "making the tables")
        contradictions = sorted((one for part in made for one in part.contradictions), key=tables.place_of)
        if contradictions:
            message, remedy = contradictions[0][1:]
            raise InputError(message, remedy=remedy)
        summary = Summary()
        for part in made:
            summary.add(part.summary)
        return troubles, summary, tables.drawn(self.folder, made), sum(part.drawable for part in made)

    def _run(self, work: Callable[[Any], Any], jobs: Sequence[Any], doing: str) -> list[Any]:
        with self.executor.reporting(self.progress, doing, len(jobs)) as pulse:
            return self.executor.run(work, jobs, pulse)


def _left_out(troubles: Sequence[Trouble], sources: Sequence[Source]) -> list[Skipped]:
    """The skipped records: for each file the first one, and the number of others."""
    known = {source.path: source for source in sources}
    by_source: dict[str, list[Trouble]] = {}
    for trouble in troubles:
        by_source.setdefault(trouble.source, []).append(trouble)
    answer: list[Skipped] = []
    for path, found in sorted(by_source.items()):
        source, first = known[path], min(found, key=lambda trouble: trouble.position)
        count = sum(trouble.left_out for trouble in found)
        more = f" (and {count - 1:,} more)" if count > 1 else ""
        if first.position < 0:
            answer.append(Skipped(path, first.reason))
            continue
        match source.form:
            case "ndjson":
                place = f"{path}:{line_of(source, first.position)}"
            case "parquet":
                place = f"{path}, row {first.position + 1}"
            case "document":
                place = f"{path}, verdicts[{first.position}]"
        answer.append(Skipped(place, first.reason + more))
    return answer


def _write(summary: Summary, folder: str, parts: int, page: str, out: Path) -> None:
    """Moves everything to its place, the page last, so that an existing page matches the tables."""
    files: list[tuple[Path, Content | Sequence[Content], Form]] = []
    for name in tables.SCHEMAS:
        content: list[Content]
        if name in tables.SUMS:
            rows = summary.coverage_rows() if name == "coverage" else summary.rejections.values()
            content = [partial(tables.write_table, tables.table_of(name, rows))]
        else:
            content = [partial(_copy, tables.part_of(folder, name, part)) for part in range(parts)]
        files.append((out / "tables" / f"{name}.parquet", content[0] if len(content) == 1 else content, PARQUET))
    write_all([*files, (out / PAGE_NAME, page, PAGE)])


def _copy(path: Path, file: BinaryIO) -> None:
    with path.open("rb") as part:
        shutil.copyfileobj(part, file, 1 << 20)
