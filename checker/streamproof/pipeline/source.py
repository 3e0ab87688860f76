"""The Spark data sources of the two kinds of input: tables `events` and `verdicts`, filled in Arrow batches.

Invalid records are skipped. A piece of a file has one row with its first `problem` and the number of skipped records
(`left_out`), so that finding the invalid lines of ten thousand files is an aggregate like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from streamproof.pipeline.fields import BadRecord
from streamproof.pipeline.reading import Broken, Piece, from_json, objects
from streamproof.pipeline.records import VERDICT_TYPES, EventKey, event_row, verdict_row

_PLACE = {"source": pa.string(), "position": pa.int64(), "problem": pa.string(), "left_out": pa.int64()}
_TIME = pa.timestamp("us", tz="UTC")
_EVENTS = pa.schema(
    {
        **_PLACE,
        "run": pa.string(),
        "named": pa.bool_(),
        "trace": pa.string(),
        "process": pa.string(),
        "event": pa.string(),
        "count": pa.int64(),
        "first_ts": _TIME,
        "last_ts": _TIME,
    }
)
_VERDICTS = pa.schema({**_PLACE, **VERDICT_TYPES})
_BATCH = 8192  # rows that travel together, and event counts that a worker keeps

Row = tuple[Any, ...]


class _Task(InputPartition):
    """The pieces that one Spark task reads."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        super().__init__(None)
        self.pieces = tuple(pieces)


class _PartitionReader(DataSourceReader):
    def __init__(self, source: DataSource, schema: pa.Schema, rows: Callable[[Piece], Iterator[Row]]) -> None:
        self.tasks = from_json(Path(source.options["path"]).read_text(encoding="utf-8"))
        self.schema = schema
        self.rows = rows

    def partitions(self) -> Sequence[InputPartition]:
        # Spark would create a partition of its own for a source without partitions.
        return [_Task(pieces) for pieces in self.tasks] or [_Task(())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Task)
        rows = (row for piece in partition.pieces for row in self.rows(piece))
        while batch := list(islice(rows, _BATCH)):
            arrays = [
                pa.array(column, field.type)
                for column, field in zip(zip(*batch, strict=True), self.schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class EventSource(DataSource):
    """`spark.read.format("streamproof.events").load(tasks.json)`: events counted by kind, in partial sums.

    Each worker counts the events that it reads and returns the counts, so an event never leaves the process that parsed
    it.
    """

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "streamproof.events"

    def schema(self) -> str:
        """Source and problem, then the counts."""
        return _ddl(_EVENTS)

    def reader(self, schema: Any) -> DataSourceReader:
        """Reads the tasks that the file at `path` lists."""
        return _PartitionReader(self, _EVENTS, _event_counts)


class VerdictSource(DataSource):
    """`spark.read.format("streamproof.verdicts").load(tasks.json)`: one row per verdict record."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "streamproof.verdicts"

    def schema(self) -> str:
        """Source and problem, then the verdict."""
        return _ddl(_VERDICTS)

    def reader(self, schema: Any) -> DataSourceReader:
        """Reads the tasks that the file at `path` lists."""
        return _PartitionReader(self, _VERDICTS, _verdicts)


class _Read:
    """The records of a piece as rows, with their positions, and the skipped ones."""

    def __init__(self, piece: Piece, row: Callable[[object], Any]) -> None:
        self.piece, self.row, self.left_out = piece, row, 0
        self.first: tuple[int, str] | None = None

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        for item in objects(self.piece):
            try:
                if isinstance(item, Broken):
                    raise BadRecord(item.reason)
                yield item.position, self.row(item.data)
            except BadRecord as bad:
                self.left_out += 1
                if self.first is None or item.position < 0:  # without a position it is the rest of the file
                    self.first = item.position, str(bad)

    def skipped(self, schema: pa.Schema) -> Iterator[Row]:
        """The row for skipped records, if there are any."""
        if self.first is not None:
            yield (self.piece.source.path, *self.first, self.left_out, *[None] * (len(schema) - len(_PLACE)))


def _event_counts(piece: Piece) -> Iterator[Row]:
    """Counts of valid events, and the skipped ones."""
    counts: dict[EventKey, _Count] = {}
    read = _Read(piece, lambda data: event_row(data, piece.source.run))
    for _, (key, ts) in read:
        count = counts.get(key)
        if count is None:
            if len(counts) == _BATCH:
                yield from _flush(piece, counts)
            counts[key] = count = _Count()
        count.add(ts)
    yield from _flush(piece, counts)
    yield from read.skipped(_EVENTS)


def _flush(piece: Piece, counts: dict[EventKey, _Count]) -> Iterator[Row]:
    for key, count in counts.items():
        yield (piece.source.path, None, None, 0, *key, count.events, count.first, count.last)
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


def _verdicts(piece: Piece) -> Iterator[Row]:
    """Valid verdicts, and the skipped ones."""
    read = _Read(piece, verdict_row)
    for position, row in read:
        yield (piece.source.path, position, None, 0, *row)
    yield from read.skipped(_VERDICTS)


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"`{field.name}` {_ddl_type(field.type)}" for field in schema)


def _ddl_type(kind: pa.DataType) -> str:
    """Spark's name of an Arrow type, for the few types in use here."""
    if pa.types.is_list(kind):
        return f"array<{_ddl_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return "struct<" + ", ".join(f"`{field.name}`: {_ddl_type(field.type)}" for field in kind) + ">"
    names = {pa.string(): "string", pa.int64(): "bigint", pa.bool_(): "boolean", pa.timestamp("us", "UTC"): "timestamp"}
    return names[kind]
