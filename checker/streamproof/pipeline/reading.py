"""Input files, and reading a piece of one, record by record, in a Spark worker.

A piece is a byte range of NDJSON, some row groups of Parquet, or a whole file of any other form, so a single huge log
is read by all cores. NOTE(whole-lines): JSON is parsed here, line by line, and not by Spark's own JSON reader, which
takes the first value of a line and silently drops the rest; two processes that wrote into one line would lose events.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, BinaryIO, Literal, cast

import pyarrow
import pyarrow.parquet

from streamproof.base.reading import BLANK_LINES, LINE, json_problem, open_regular, unique
from streamproof.base.records import dataclass

Kind = Literal["events", "verdicts"]
Form = Literal["ndjson", "document", "parquet"]

DOCUMENT = 1 << 28
"""Maximum size of a document of verdicts, unpacked, in bytes."""
_SMALL = 1 << 20  # a task smaller than this costs more to start than to run
_LARGE = 32 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """One input file. `extent` is its size in splittable units: bytes of NDJSON, row groups of Parquet, else 1."""

    path: str
    """The path as given by the user, for tables and messages."""
    file: str
    """The absolute path: a worker of a cluster has its own working folder."""
    kind: Kind
    form: Form
    gzip: bool
    run: str
    """Default run of its events: the file's stem, or the name of its data set folder."""
    origin: str
    """The file, or the data set folder that contains it: two origins with one run name are two different runs."""
    extent: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a source: extent units from `start` up to `end` (see `Source.extent`)."""

    source: Source
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ParsedRecord:
    """A record as parsed, with its position: byte offset in NDJSON, else the record's number from 0."""

    position: int
    data: object


@dataclass(frozen=True, slots=True)
class Broken:
    """Why a record is invalid; position -1 if the rest of the file is unreadable."""

    position: int
    reason: str


def opened(path: str, compressed: bool) -> BinaryIO:
    """The bytes of a file, decompressed when it is gzip."""
    raw = open_regular(path)
    if not compressed:
        return raw
    file = gzip.GzipFile(fileobj=raw)
    file.myfileobj = cast(Any, raw)  # closed with it
    return cast(BinaryIO, file)


def split(sources: Sequence[Source], cores: int) -> list[list[Piece]]:
    """Tasks of roughly equal size: large files are split, small files combined."""
    total = sum(source.bytes for source in sources)
    aim = min(max(total // (4 * cores), _SMALL), _LARGE)
    tasks: list[list[Piece]] = []
    room = 0
    for source in sources:
        parts = max(1, min(source.bytes // aim, source.extent))
        for part in range(parts):
            piece = Piece(source, source.extent * part // parts, source.extent * (part + 1) // parts)
            size = source.bytes // parts
            if not tasks or size > room:
                tasks.append([])
                room = aim
            tasks[-1].append(piece)
            room -= size
    return tasks


def to_json(tasks: list[list[Piece]]) -> str:
    """The tasks as text, for the file in which the driver hands them to Spark's planner."""
    return json.dumps([[asdict(piece) for piece in task] for task in tasks])


def from_json(text: str) -> list[list[Piece]]:
    """Inverse of `to_json`."""
    return [
        [Piece(Source(**piece["source"]), piece["start"], piece["end"]) for piece in task] for task in json.loads(text)
    ]


def objects(piece: Piece) -> Iterator[ParsedRecord | Broken]:
    """The records of a piece, in order, with `Broken` for each invalid one."""
    match piece.source.form:
        case "ndjson":
            return _lines(piece)
        case "document":
            return _document(piece.source)
        case "parquet":
            return _rows(piece)


def line_of(source: Source, offset: int) -> int:
    """The number, from 1, of the line of NDJSON that begins at `offset`."""
    lines = 1
    with opened(source.file, source.gzip) as file:
        left = offset
        while left > 0 and (block := file.read(min(left, _SMALL))):
            lines += block.count(b"\n")
            left -= len(block)
    return lines


def _lines(piece: Piece) -> Iterator[ParsedRecord | Broken]:
    source = piece.source
    position, blank = piece.start, 0
    try:
        with opened(source.file, source.gzip) as file:
            if piece.start:
                # A line belongs to the piece in which it begins. The one around `start` began here only if the byte
                # before it ends a line.
                file.seek(piece.start - 1)
                while rest := file.readline(LINE):
                    position += len(rest)
                    if rest.endswith(b"\n"):
                        break
                position -= 1
            while line := file.readline(LINE + 1):
                if position >= piece.end and not source.gzip:
                    return
                if len(line) > LINE:
                    yield Broken(position, f"this line has more than {LINE:,} bytes")
                elif not line.isspace():
                    blank = 0
                    yield _parsed(position, line)
                elif (blank := blank + 1) > BLANK_LINES:
                    yield Broken(position, f"more than {BLANK_LINES:,} empty lines in a row")
                    return
                position += len(line)
                while len(line) > LINE and not line.endswith(b"\n"):
                    line = file.readline(LINE + 1)
                    position += len(line)
    except (OSError, EOFError, zlib.error) as failure:
        yield Broken(-1, f"cannot be read to its end: {failure}")


def _parsed(position: int, line: bytes) -> ParsedRecord | Broken:
    try:
        return ParsedRecord(position, json.loads(line.rstrip(), object_pairs_hook=unique, parse_constant=_refuse))
    except (ValueError, RecursionError) as failure:
        return Broken(position, f"this line is {json_problem(failure)}")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def _document(source: Source) -> Iterator[ParsedRecord | Broken]:
    try:
        with opened(source.file, source.gzip) as file:
            text = file.read(DOCUMENT + 1)
        if len(text) > DOCUMENT:
            raise ValueError(f"it has more than {DOCUMENT:,} bytes")
        document: Any = json.loads(text, object_pairs_hook=unique, parse_constant=_refuse)
    except (ValueError, RecursionError, OSError, EOFError, zlib.error) as failure:
        yield Broken(-1, f"not a JSON document: {failure}")
        return
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != "streamproof.validate/1":
        yield Broken(-1, f"a document of schema {schema!r}, where streamproof.validate/1 is read")
    elif not isinstance(document.get("verdicts"), list):
        yield Broken(-1, "the document has no list `verdicts`")
    else:
        yield from (ParsedRecord(number, record) for number, record in enumerate(document["verdicts"]))


def _rows(piece: Piece) -> Iterator[ParsedRecord | Broken]:
    wanted = ("run", "trace", "process", "seq", "event", "ts")
    position = 0
    try:
        with pyarrow.parquet.ParquetFile(piece.source.file) as file:
            position = sum(file.metadata.row_group(group).num_rows for group in range(piece.start))
            columns = [name for name in wanted if name in file.schema_arrow.names]
            groups = range(piece.start, piece.end)
            for batch in file.iter_batches(
                row_groups=groups, columns=columns if piece.source.kind == "events" else None
            ):
                for row in batch.to_pylist():
                    yield ParsedRecord(position, row)
                    position += 1
    except (pyarrow.ArrowException, OSError, ValueError) as failure:
        yield Broken(-1, f"cannot be read to its end: {failure}")
