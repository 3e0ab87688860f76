"""The first pass of a report: the records of some pieces of input, as rows grouped by run, in two files.

Rows are divided by a hash of their run into `GROUPS` groups. A file has the rows of one job, sorted by group, with the places
where the groups begin, so that the second pass reads a group without the rest of the file. Events are counted here: an event
never leaves the process that parsed it. Invalid records are skipped and reported.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamproof.base.records import dataclass
from streamproof.pipeline.fields import BadRecord
from streamproof.pipeline.reading import Broken, Kind, Piece, objects
from streamproof.pipeline.records import VERDICT_TYPES, EventKey, event_row, verdict_row

GROUPS = 256
"""Number of groups of runs, which is the maximum number of parts of a table."""
_BATCH = 65_536  # rows that a process keeps as Python objects
_TIME = pa.timestamp("us", tz="UTC")
COLUMNS: dict[Kind, pa.Schema] = {
    "events": pa.schema(
        {
            **dict.fromkeys(("run", "trace", "process", "event"), pa.string()),
            "origin": pa.string(),  # null if the events name their run
            "count": pa.int64(),
            "first_ts": _TIME,
            "last_ts": _TIME,
        }
    ),
    "verdicts": pa.schema({**VERDICT_TYPES, "source": pa.string(), "position": pa.int64()}),
}
"""The columns of the files."""


Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ReadJob:
    """Pieces of input, and where their rows go."""

    number: int
    pieces: tuple[Piece, ...]
    folder: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """The skipped records of a piece: the first one, and how many they are. Position -1: the rest of the file."""

    source: str
    position: int
    reason: str
    left_out: int


def group_rows(job: ReadJob) -> list[Trouble]:
    """Writes the rows of a job. Returns the skipped records."""
    troubles: list[Trouble] = []
    readers: dict[Kind, Callable[[Piece, list[Trouble]], Iterator[Row]]] = {
        "events": _event_rows,
        "verdicts": _verdict_rows,
    }
    for kind, rows in readers.items():
        pieces = [piece for piece in job.pieces if piece.source.kind == kind]
        if pieces:
            read = (row for piece in pieces for row in rows(piece, troubles))
            _write(file_of(job.folder, kind, job.number), _table(read, COLUMNS[kind]))
    return troubles


def file_of(folder: str, kind: Kind, number: int) -> Path:
    """The file of a job."""
    return Path(folder, f"{kind}-{number}.arrow")


def rows_of(folder: str, kind: Kind, jobs: int, groups: range) -> pa.Table:
    """The rows of some groups, those of all jobs."""
    parts = [COLUMNS[kind].empty_table()]
    for number in range(jobs):
        path = file_of(folder, kind, number)
        if path.exists():
            with pa.memory_map(str(path)) as mapped:
                table = pa.ipc.open_file(mapped).read_all()
            starts = json.loads(table.schema.metadata[b"starts"])
            part = table.slice(starts[groups.start], starts[groups.stop] - starts[groups.start])
            parts.append(part.replace_schema_metadata(None))
    return pa.concat_tables(parts)


def _table(rows: Iterator[Row], schema: pa.Schema) -> pa.Table:
    parts: list[pa.Table] = []
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            parts.append(_columns(batch, schema))
            batch = []
    return pa.concat_tables([*parts, _columns(batch, schema)])


def _columns(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    if not rows:
        return schema.empty_table()
    arrays = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _write(path: Path, table: pa.Table) -> None:
    groups = pa.array([zlib.crc32(run.encode()) % GROUPS for run in table["run"].to_pylist()], pa.int64())
    sizes = {found["values"]: found["counts"] for found in groups.value_counts().to_pylist()}
    starts = [0, *accumulate(sizes.get(group, 0) for group in range(GROUPS))]
    table = table.take(pc.array_sort_indices(groups)).combine_chunks()
    table = table.replace_schema_metadata({"starts": json.dumps(starts)})
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)


class _Read:
    """The records of a piece as rows, with their positions; the skipped ones are added to `troubles` at the end."""

    def __init__(self, piece: Piece, row: Callable[[object], Any], troubles: list[Trouble]) -> None:
        self.piece, self.row, self.troubles = piece, row, troubles

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        left_out, first = 0, None
        for item in objects(self.piece):
            try:
                if isinstance(item, Broken):
                    raise BadRecord(item.reason)
                yield item.position, self.row(item.data)
            except BadRecord as bad:
                left_out += 1
                if first is None or item.position < 0:  # without a position it is the rest of the file
                    first = item.position, str(bad)
        if first is not None:
            self.troubles.append(Trouble(self.piece.source.path, *first, left_out))


def _event_rows(piece: Piece, troubles: list[Trouble]) -> Iterator[Row]:
    """Counts of events, in partial sums."""
    counts: dict[EventKey, _Count] = {}
    for _, (key, ts) in _Read(piece, lambda data: event_row(data, piece.source.run), troubles):
        count = counts.get(key)
        if count is None:
            if len(counts) == _BATCH:
                yield from _flush(piece, counts)
            counts[key] = count = _Count()
        count.add(ts)
    yield from _flush(piece, counts)


def _flush(piece: Piece, counts: dict[EventKey, _Count]) -> Iterator[Row]:
    for (run, named, *key), count in counts.items():
        yield (run, *key, None if named else piece.source.origin, count.events, count.first, count.last)
    counts.clear()


class _Count:
    """The number of events, and the first and last time."""

    __slots__ = ("events", "first", "last")

    def __init__(self) -> None:
        self.events = 0
        self.first: datetime | None = None
        self.last: datetime | None = None

    def add(self, ts: datetime | None) -> None:
        self.events += 1
        if ts is not None:
            if self.first is None or ts < self.first:
                self.first = ts
            if self.last is None or ts > self.last:
                self.last = ts


def _verdict_rows(piece: Piece, troubles: list[Trouble]) -> Iterator[Row]:
    for position, row in _Read(piece, verdict_row, troubles):
        yield (*row, piece.source.path, position)
