"""Event logs as Parquet tables: one row for each event, for queries by Spark and other tools.

| column | type |
|---|---|
| `trace`, `process`, `event` | text |
| `seq` | 64-bit integer: the number of the event in its process |
| `clock` | map of text to 64-bit integer: the vector clock |
| `args`, `state`, `picks`, `parameters` | JSON text, because each kind of event has other fields |
| `ts`, `file`, `line`, `run`, `after`, `refused` | as in `Event` |

All but the first four may be null. Pages and the footer have checksums, which are verified when the
table is read.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from streamproof.base.errors import InputError, Loc
from streamproof.base.files import PARQUET, write
from streamproof.base.optional import expect_pyarrow
from streamproof.base.reading import json_problem, open_regular, unique
from streamproof.conformance.event import Event

SCHEMA: Final = "streamproof.events"
"""Name of the event log's schema, kept in the metadata of Parquet files."""
VERSION: Final = 1
"""Version of the schema. It increases when a field changes its meaning or a required one is added."""
REQUIRED: Final = ("trace", "process", "seq", "event")
COLUMNS: Final = (
    "trace",
    "process",
    "seq",
    "event",
    "args",
    "ts",
    "clock",
    "state",
    "file",
    "line",
    "run",
    "after",
    "refused",
    "picks",
    "parameters",
)
OBJECTS: Final = ("args", "clock", "state", "picks", "parameters")
"""Columns that are objects in JSON."""
_NUMBERS: Final = ("seq", "line", "after")
_BATCH: Final = 65_536
"""Rows that are held in memory."""


def record(event: Event) -> dict[str, Any]:
    """The fields of an event that are present, as JSON has them."""
    values: dict[str, Any] = {column: getattr(event, column) for column in COLUMNS}
    return {
        column: dict(value) if column in OBJECTS else value for column, value in values.items() if value is not None
    }


class EventLineReader:
    """Reads JSON texts one after the other; `fractions` counts the numbers in them that are not whole."""

    def __init__(self) -> None:
        self.fractions = 0
        self._decode = json.JSONDecoder(
            object_pairs_hook=unique, parse_constant=_no_constant, parse_float=self._fraction
        ).decode

    def _fraction(self, text: str) -> float:
        self.fractions += 1
        return float(text)

    def value(self, text: str | bytes) -> Any:
        """The value of a text. Raises `ValueError`, also for a key that occurs twice in one object."""
        if isinstance(text, bytes):
            plain = text[:1] == b"{" and text[1:2] not in (b"", b"\0")
            text = text.decode("utf-8" if plain else json.detect_encoding(text), "surrogatepass")
        if text.startswith("\ufeff"):
            return json.loads(text)  # which says what is wrong
        return self._decode(text)


def json_value(text: str | bytes) -> Any:
    """The value of a JSON text. Raises `ValueError`, also for a key that occurs twice in one object."""
    return EventLineReader().value(text)


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def write_parquet(events: Iterable[Event], path: str | os.PathLike[str]) -> int:
    """Writes events as Parquet; returns their number.

    The file is written atomically. Raises `SystemFailure` if it cannot be written, or exists and is not an event log, and
    `InputError` for events with numbers of more than 64 bits or text that is not Unicode.
    """
    expect_pyarrow("Parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    clock = pa.map_(pa.string(), pa.int64())
    types = {**dict.fromkeys(_NUMBERS, pa.int64()), "clock": clock, "refused": pa.bool_()}
    schema = pa.schema(
        [pa.field(c, types.get(c, pa.string()), nullable=c not in REQUIRED) for c in COLUMNS],
        metadata={"schema": SCHEMA, "version": str(VERSION)},
    )
    count = 0

    def fill(stream: BinaryIO) -> None:
        nonlocal count
        table = io.BytesIO()
        with pq.ParquetWriter(table, schema, compression="zstd", write_page_checksum=True) as writer:
            rest = iter(events)
            while batch := list(islice(rest, _BATCH)):
                try:
                    rows_of_batch = pa.Table.from_pylist([_row(event) for event in batch], schema=schema)
                except (OverflowError, ValueError, pa.ArrowException) as error:
                    raise InputError(
                        f"{path}: events {count + 1:,} to {count + len(batch):,} cannot be columns: {error}",
                        remedy="keep the log as newline-delimited JSON",
                    ) from error
                writer.write_table(rows_of_batch)
                count += len(batch)
        stream.write(_sealed(table.getvalue()))

    write(Path(path), fill, PARQUET)
    return count


def _row(event: Event) -> dict[str, Any]:
    row = record(event)
    for column in ("args", "state", "picks", "parameters"):
        if column in row:
            row[column] = json.dumps(row[column], ensure_ascii=False, separators=(",", ":"))
    if "clock" in row:
        row["clock"] = [*row["clock"].items()]
    return row


def rows(file: Path, *, only_first: bool = False) -> Iterator[tuple[dict[str, Any], int]]:
    """The fields that are present in each row, and the row's number from 1; `only_first`: of the first row.

    Raises `InputError` for a damaged file, a table without the required columns, and another version of the schema.
    """
    name, row = str(file), 0
    with _opened(file) as parquet:
        for batch in parquet.iter_batches(batch_size=1 if only_first else _BATCH):
            for data in batch.to_pylist():
                row += 1
                yield {key: _cell(value, key, name, row) for key, value in data.items() if value is not None}, row
                if only_first:
                    return


def has_event(file: Path, event: str) -> bool:
    """Whether a table has an event of this name. Raises `InputError` as `rows`."""
    with _opened(file) as parquet:
        return any(event in batch[0].to_pylist() for batch in parquet.iter_batches(columns=["event"]))


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """An open table, with a check of its footer and its columns; whatever Parquet's reader raises is an `InputError`."""
    expect_pyarrow(f"{file}: Parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        _expect_seal(file)
        with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
            _refuse_columns(parquet.schema_arrow, str(file))
            yield parquet
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(
            f"{file}: the Parquet file is damaged ({reason})", remedy="copy it again from its source"
        ) from error


_SEAL: Final = b"streamproof footer "
"""In front of the footer, which no checksum of Parquet covers: this, and the SHA-256 of the footer in hexadecimal digits."""
_SEALED: Final = len(_SEAL) + 64
_END: Final = 8
"""Bytes behind the footer: its length, and PAR1."""


def _sealed(table: bytes) -> bytes:
    """A Parquet file with a seal. Positions in it are absolute and before the seal, so that it stays a Parquet file."""
    footer = len(table) - _END - int.from_bytes(table[-_END:-4], "little")
    seal = _SEAL + hashlib.sha256(table[footer:]).hexdigest().encode()
    return table[:footer] + seal + table[footer:]


def _expect_seal(file: Path) -> None:
    """Raises `ValueError` for a footer that was changed; files of others have no seal."""
    with open_regular(file) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - _END))
        footer = size - _END - int.from_bytes(stream.read(4), "little")
        if footer >= _SEALED:
            stream.seek(footer - _SEALED)
            seal, content = stream.read(_SEALED), stream.read()
            if seal.startswith(_SEAL) and seal[len(_SEAL) :] != hashlib.sha256(content).hexdigest().encode():
                raise ValueError("its footer was changed")


def _refuse_columns(schema: Any, name: str) -> None:
    metadata: Mapping[bytes, bytes] = schema.metadata or {}
    version = metadata.get(b"version", str(VERSION).encode()).decode(errors="replace")
    if metadata.get(b"schema") == SCHEMA.encode() and version != str(VERSION):
        raise InputError(f"{name}: the log has version {version} of {SCHEMA}, this program reads version {VERSION}")
    remedy = f"an event log has the columns {', '.join(COLUMNS)}"
    missing = [column for column in REQUIRED if column not in schema.names]
    if missing:
        raise InputError(f"{name}: the Parquet file lacks the column {missing[0]!r}", remedy=remedy)
    twice = next((column for at, column in enumerate(schema.names) if column in schema.names[:at]), None)
    if twice is not None:
        raise InputError(f"{name}: the Parquet file has the column {twice!r} twice", remedy=remedy)


def _cell(value: Any, column: str, name: str, row: int) -> Any:
    """The value of a cell; of a column of objects it is a map or JSON text."""
    if column not in OBJECTS:
        return value
    if isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        try:
            return unique(value)
        except ValueError as error:
            raise InputError(f"column {column!r}: {error}", loc=Loc(name, row)) from error
    if not isinstance(value, str):
        raise InputError(f"column {column!r} must hold JSON text or a map", loc=Loc(name, row))
    try:
        return json_value(value)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"column {column!r} does not hold JSON: it is {json_problem(error)}", loc=Loc(name, row)
        ) from error
