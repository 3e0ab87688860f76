"""The Spark data sources of the two kinds of input: tables `events` and `verdicts`, filled in Arrow batches.

What cannot be understood becomes a row with a `problem`, so that finding the first bad line of ten thousand files is an
aggregate like any other and costs no second pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from streamproof.pipeline.reading import Broken, Piece, from_json, objects
from streamproof.pipeline.records import EVENT_TYPES, VERDICT_TYPES, BadRecord, event_row, verdict_row

_PLACE = {"source": pa.string(), "position": pa.int64(), "problem": pa.string()}

Row = tuple[Any, ...]


class _Task(InputPartition):
    """The pieces that one Spark task reads."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        super().__init__(None)
        self.pieces = tuple(pieces)


class _Reader(DataSourceReader):
    def __init__(self, tasks: list[list[Piece]], schema: pa.Schema, row: Callable[[object, Piece], Row], size: int):
        self.tasks = tasks
        self.schema = schema
        self.row = row
        self.size = size

    def partitions(self) -> Sequence[InputPartition]:
        return [_Task(pieces) for pieces in self.tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Task)
        rows: list[Row] = []
        for piece in partition.pieces:
            for row in self._rows(piece):
                rows.append(row)
                if len(rows) == self.size:
                    yield self._batch(rows)
                    rows = []
        yield self._batch(rows)

    def _rows(self, piece: Piece) -> Iterator[Row]:
        """Rows up to the first problem: what follows a broken line would only be more of the same."""
        blank = (None,) * (len(self.schema) - len(_PLACE))
        path = piece.source.path
        for item in objects(piece):
            if isinstance(item, Broken):
                yield (path, item.position, item.reason, *blank)
                return
            try:
                yield (path, item.position, None, *self.row(item.data, piece))
            except BadRecord as bad:
                yield (path, item.position, str(bad), *blank)
                return

    def _batch(self, rows: list[Row]) -> pa.RecordBatch:
        columns = zip(*rows, strict=True) if rows else [()] * len(self.schema)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class EventSource(DataSource):
    """`spark.read.format("streamproof.events").load(tasks.json)`: one row per event."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "streamproof.events"

    def schema(self) -> str:
        """Place and problem, then `EVENT_TYPES`."""
        return _ddl(_schema(EVENT_TYPES))

    def reader(self, schema: Any) -> DataSourceReader:
        """Reads the tasks that the file at `path` lists."""
        return _Reader(_tasks(self), _schema(EVENT_TYPES), _event, 16384)


class VerdictSource(DataSource):
    """`spark.read.format("streamproof.verdicts").load(tasks.json)`: one row per verdict record."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "streamproof.verdicts"

    def schema(self) -> str:
        """Place and problem, then `VERDICT_TYPES`."""
        return _ddl(_schema(VERDICT_TYPES))

    def reader(self, schema: Any) -> DataSourceReader:
        """Reads the tasks that the file at `path` lists."""
        return _Reader(_tasks(self), _schema(VERDICT_TYPES), _verdict, 256)


def _event(data: object, piece: Piece) -> Row:
    return event_row(data, piece.source.run)


def _verdict(data: object, piece: Piece) -> Row:
    return verdict_row(data)


def _tasks(source: DataSource) -> list[list[Piece]]:
    return from_json(Path(source.options["path"]).read_text(encoding="utf-8"))


def _schema(types: dict[str, pa.DataType]) -> pa.Schema:
    return pa.schema({**_PLACE, **types})


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"`{field.name}` {_ddl_type(field.type)}" for field in schema)


def _ddl_type(kind: pa.DataType) -> str:
    """Spark's name of an Arrow type, of the few types in use here."""
    if pa.types.is_list(kind):
        return f"array<{_ddl_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return "struct<" + ", ".join(f"`{field.name}`: {_ddl_type(field.type)}" for field in kind) + ">"
    names = {pa.string(): "string", pa.int64(): "bigint", pa.bool_(): "boolean", pa.timestamp("us", "UTC"): "timestamp"}
    return names[kind]
