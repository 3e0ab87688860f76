"""Classification of input files by content: event logs, verdicts and others.

File names only give the run of a log that does not name its own: a log is recognised by its first bytes, plain or
gzip-compressed, in any folder.
"""

from __future__ import annotations

import glob
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import pyarrow
import pyarrow.parquet

from streamproof.base.errors import InputError, Loc
from streamproof.base.options import bytes_text
from streamproof.base.reading import bounded_lines, expect_unicode, open_regular
from streamproof.base.records import dataclass
from streamproof.pipeline.fields import BadRecord
from streamproof.pipeline.reading import DOCUMENT, Broken, Form, Kind, Piece, Source, objects, opened
from streamproof.pipeline.records import event_row, verdict_row

_EMPTY = "empty"
_HEAD = 65536  # bytes looked at before a file is left alone
_RECORDS = 1000  # verdicts looked at before a file is refused
_DOCUMENT = re.compile(rb'"schema"\s*:\s*"streamproof\.validate/')
_LOG_SUFFIXES = (".ndjson", ".jsonl", ".ndjson.gz", ".jsonl.gz")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A skipped file, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Inputs:
    """The results, in the order of the paths."""

    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...]

    def of(self, kind: Kind) -> tuple[Source, ...]:
        """The sources of one kind."""
        return tuple(source for source in self.sources if source.kind == kind)


def discover(inputs: Sequence[Path], *, without: Path | None = None) -> Inputs:
    """Finds and classifies every file named by `inputs` (files, folders, glob patterns), each once.

    Files under `without` (the folder of the report) are not inputs. A file given individually must be usable; in
    folders and patterns, files of other kinds, unreadable ones, and unknown versions are skipped. Raises `InputError`
    for a missing path, for an unusable file given individually, for a document of verdicts above `DOCUMENT` bytes, and if no
    usable file is left.
    """
    if not inputs:
        raise InputError("no inputs given", remedy="name event logs, verdict files, or folders that hold them")
    sources: dict[str, Source] = {}
    skipped: dict[str, Skipped] = {}
    damaged: list[InputError] = []
    for given in inputs:
        empty = True
        for path, explicit in _files(given, without):
            empty = False
            key = os.path.realpath(path)
            if key in sources or key in skipped:
                continue
            try:
                expect_unicode(path)
                found = _classify(path)
                if isinstance(found, Source) and found.form == "document":
                    _expect_whole(found)
                if isinstance(found, Source) and found.kind == "verdicts" and found.form != "parquet":
                    _expect_verdict(found)
            except InputError as problem:
                if explicit or isinstance(problem, TooLargeDocument):
                    raise
                damaged.append(problem)
                at = f"line {problem.loc.line}: " if problem.loc else ""
                shown = path.encode(errors="backslashreplace").decode()
                place, _, reason = problem.message.removeprefix(path).partition(": ")
                known = problem.message.startswith(path)
                found = Skipped(shown + place if known else shown, at + (reason if known else problem.message))
            if isinstance(found, Source):
                sources[key] = found
            elif explicit and found.reason != _EMPTY:
                raise InputError(f"{path}: {found.reason}", remedy=_EXPECTED)
            else:
                skipped[key] = found
        if empty:
            raise InputError(f"{given}: no file in this folder", remedy=_EXPECTED)
    if damaged and not sources:
        raise damaged[0]
    if not sources:
        reasons = "; ".join(f"{item.path}: {item.reason}" for item in list(skipped.values())[:3])
        raise InputError(
            f"nothing to report on in {', '.join(str(given) for given in inputs)} ({reasons})", remedy=_EXPECTED
        )
    ordered = sorted(sources.values(), key=lambda source: source.path)
    return Inputs(tuple(ordered), tuple(sorted(skipped.values(), key=lambda item: item.path)))


class TooLargeDocument(InputError):
    """A document of verdicts that cannot be read whole: leaving it out would hide all of its runs."""


def _expect_whole(source: Source) -> None:
    """Raises `TooLargeDocument` for a document that is too large to be read whole: none of its verdicts would be reported."""
    size = source.bytes
    if source.gzip:
        size = 0
        with (
            suppress(OSError, EOFError, zlib.error),
            opened(source.file, True) as file,
        ):  # damage is reported by the reader
            while size <= DOCUMENT and (block := file.read(1 << 20)):
                size += len(block)
    if size > DOCUMENT:
        raise TooLargeDocument(
            f"{source.path}: a document of verdicts has at most {bytes_text(DOCUMENT)}",
            remedy="give its verdicts line by line, which has no limit: jq -c '.verdicts[]' FILE > verdicts.ndjson",
        )


_EXPECTED = (
    "Give event logs (NDJSON or Parquet with trace, process, seq, event) or verdicts "
    "(the output of `streamproof validate --json`, as JSON, NDJSON or Parquet)."
)


def _files(given: Path, without: Path | None) -> Iterator[tuple[str, bool]]:
    """The files of one argument, and whether they were given individually."""
    text = str(given)
    if given.is_dir():
        yield from ((path, False) for path in _walk(text, without))
    elif given.exists():
        yield text, True
    elif glob.has_magic(text):
        matches = sorted(glob.glob(text, recursive=True))
        if not matches:
            raise InputError(f"{text}: no file matches this pattern")
        for match in matches:
            if os.path.isdir(match):
                yield from ((path, False) for path in _walk(match, without))
            else:
                yield match, False
    else:
        raise InputError(f"{text}: no such file or folder")


def _walk(folder: str, without: Path | None) -> Iterator[str]:
    excluded = os.path.realpath(without) if without else None

    def refuse(failure: OSError) -> None:
        raise InputError(f"{failure.filename}: cannot list this folder: {failure.strerror}") from failure

    for where, folders, names in os.walk(folder, onerror=refuse):
        # Data set writers use names that begin with `_` or `.` for markers and checksums.
        folders[:] = sorted(
            name for name in folders if name[0] not in "._" and os.path.realpath(os.path.join(where, name)) != excluded
        )
        if os.path.realpath(where) == excluded:
            folders.clear()
            continue
        yield from (os.path.join(where, name) for name in sorted(names) if name[0] not in "._")


def _classify(path: str) -> Source | Skipped:
    try:
        size = os.path.getsize(path)
        with open_regular(path) as file:
            magic = file.read(4)
        if not magic:
            return Skipped(path, _EMPTY)
        if magic == b"PAR1":
            return _parquet(path, size)
        compressed = magic[:2] == b"\x1f\x8b"
        with opened(path, compressed) as file:
            return _json(path, size, compressed, file)
    except (OSError, EOFError, zlib.error) as failure:
        raise InputError(f"{path}: cannot be read: {failure}") from failure


def _json(path: str, size: int, compressed: bool, file: BinaryIO) -> Source | Skipped:
    head = file.read(_HEAD)
    if not head.strip():
        return Skipped(path, _EMPTY if len(head) < _HEAD else f"its first {_HEAD:,} bytes are blank")
    if not head.lstrip().startswith(b"{"):
        return _not_json(path, head, "neither JSON lines nor Parquet")
    run, origin = _run(path)

    def source(kind: Kind, form: Form) -> Source:
        extent = size if form == "ndjson" and not compressed else 1
        return Source(path, os.path.abspath(path), kind, form, compressed, run, origin, extent, size)

    file.seek(0)
    lines = [_object(line) for line in _first_lines(file)]
    record = next((line for line in lines if line is not None), None)
    if record is None:
        if _DOCUMENT.search(head):
            return source("verdicts", "document")
        return _not_json(path, head, "JSON that is neither an event log nor verdicts")
    schema = record.get("schema")
    match schema:
        case "streamproof.validate/1":
            return source("verdicts", "document")
        case "streamproof.verdict/1":
            return source("verdicts", "ndjson")
        case str() if schema.startswith(("streamproof.validate/", "streamproof.verdict/")):
            raise InputError(f"{path}: written in {schema}, which this version does not read (it reads version 1)")
        case str():
            return Skipped(path, f"JSON of another kind ({schema})")
    if "verdict" in record and "run" in record:
        return source("verdicts", "ndjson")
    if "event" in record:
        _expect_event(path, head, lines)
        return source("events", "ndjson")
    if "resourceSpans" in record:
        return Skipped(path, "spans of OpenTelemetry, which `streamproof validate --events DIR` writes as an event log")
    return Skipped(path, "JSON that is neither an event log nor verdicts")


def _not_json(path: str, head: bytes, reason: str) -> Skipped:
    """The message for a damaged log: its name is a log's, but its first line is not."""
    if path.endswith(_LOG_SUFFIXES):
        before = head[: len(head) - len(head.lstrip())].count(b"\n")
        raise InputError(
            "this line is not a JSON object",
            loc=Loc(path, before + 1),
            remedy="remove the line, or the rest of a line that was cut off when the process died",
        )
    return Skipped(path, reason)


def _first_lines(file: BinaryIO) -> Iterator[bytes]:
    """The first line and the lines that begin in the inspected bytes."""
    for line in bounded_lines(file):
        if line.strip():
            yield line
        if file.tell() >= _HEAD:
            return


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _expect_event(path: str, head: bytes, lines: Sequence[dict[str, Any] | None]) -> None:
    """Raises `InputError` if none of the first lines is an event, before workers read the others."""
    problem = ""
    for record in lines:
        try:
            event_row(record, "")
            return
        except BadRecord as bad:
            problem = problem or str(bad)
    before = head[: len(head) - len(head.lstrip())].count(b"\n")
    raise InputError(problem, loc=Loc(path, before + 1), remedy="none of the first lines is an event")


def _expect_verdict(source: Source) -> None:
    """Raises `InputError` if none of the first records is a verdict, before Spark starts."""
    problem = ""
    for record in islice(objects(Piece(source, 0, source.extent)), _RECORDS):
        try:
            if isinstance(record, Broken):
                raise BadRecord(record.reason)
            verdict_row(record.data)
            return
        except BadRecord as bad:
            place = f", verdicts[{record.position}]" if source.form == "document" and record.position >= 0 else ""
            problem = problem or f"{place}: {bad}"
    if problem:
        raise InputError(f"{source.path}{problem}", remedy="none of the first records is a verdict")


def _parquet(path: str, size: int) -> Source | Skipped:
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            columns: list[str] = file.schema_arrow.names
            groups: int = file.metadata.num_row_groups
    except pyarrow.ArrowException as failure:
        raise InputError(f"{path}: cannot be read as Parquet: {failure}") from failure
    run, origin = _run(path)
    if {"run", "model", "verdict", "events"} <= set(columns):
        return Source(path, os.path.abspath(path), "verdicts", "parquet", False, run, origin, groups, size)
    if {"trace", "process", "seq", "event"} <= set(columns):
        return Source(path, os.path.abspath(path), "events", "parquet", False, run, origin, groups, size)
    return Skipped(path, f"Parquet of something else (its columns: {', '.join(columns[:8])})")


def _run(path: str) -> tuple[str, str]:
    """The run from a file's name, and the file or data set folder that gives it."""
    place = Path(path)
    for folder in place.parents:
        if folder.name.startswith("run="):  # a data set partitioned by run
            return unquote(folder.name.removeprefix("run=")), str(folder)
    for folder in place.parents:
        if folder.suffix in {".parquet", ".ndjson", ".jsonl"}:  # a data set of part files
            return folder.stem, str(folder)
    return Path(place.name.removesuffix(".gz")).stem, path
