"""The event log: the events recorded by an implementation, one per line, and its two file forms.

An event records that `process` did `event` with `args` as its `seq`-th event; `trace` names the behaviour (one job, one
test run). `ts` is a wall-clock time without significance for the order; `clock` is a vector clock that defines one.
`state` is the part of the state that the process recorded, if any. `after` is for calls that overlap. `refused` marks an
event that was asked for and not possible, `picks` has choices of the action, `parameters` sizes of the implementation.

Files: newline-delimited JSON (`.ndjson`, `.jsonl`, with `.gz` compressed), and Parquet with the same columns
(`event_table`); spans of OpenTelemetry are read as events (`otlp`). A log that violates the
schema is rejected with file and line, because a partially understood log supports no verdict.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from itertools import chain
from pathlib import Path
from sys import intern
from typing import Any, BinaryIO, Final

from streamproof.base.errors import InputError, Loc
from streamproof.base.files import EVENTS, Form, write
from streamproof.base.options import setting
from streamproof.base.reading import LINE, MOST, Excess, Lines, bounded_lines, json_problem, open_regular
from streamproof.base.text import visible_json
from streamproof.conformance import event_table
from streamproof.conformance.event import Event
from streamproof.conformance.event_table import COLUMNS, REQUIRED, EventLineReader, json_value, record
from streamproof.conformance.otlp import is_otlp, otlp_events

Value = str | int | bool | None | list[Any] | dict[str, Any]
"""Values of arguments and state: JSON without fractional numbers, which are not in any sort."""

_FIELDS: Final = frozenset(COLUMNS)
_USUAL: Final = frozenset({*REQUIRED, "args", "clock", "state"})
_OBJECT: Final = (dict, type(None))


def read_events(path: str | os.PathLike[str], *, without_torn_line: bool = False) -> list[Event]:
    """Reads a whole event log, in the order of the file.

    `without_torn_line` leaves out a last line of newline-delimited JSON that has no end: for logs of which each line is
    written before the event has an effect, by a process that may be killed while it writes. The log may then be empty.

    Raises `InputError` (file, line, remedy) for a file that is missing, unreadable, without events, or not an event
    log, and for a duplicate `seq` of a process in one trace.
    """
    file = Path(path)
    kept = _KEPT.get()
    if kept is not None and (file, without_torn_line) in kept:
        return [*kept[file, without_torn_line]]
    events = list(_iterate(file, without_torn_line))
    if not events and not without_torn_line:
        raise InputError(f"{file}: the file has no events", remedy="give a log with one event per line")
    _refuse_repetition(events)
    if kept is not None:
        kept[file, without_torn_line] = (*events,)
    return events


_KEPT: ContextVar[dict[tuple[Path, bool], tuple[Event, ...]] | None] = ContextVar("event logs", default=None)


def logs_read_once() -> AbstractContextManager[None]:
    """Within it, each event log is read once: for several bindings of the same files."""
    return setting(_KEPT, {})


def write_ndjson(events: Iterable[Event], path: str | os.PathLike[str], form: Form = EVENTS) -> int:
    """Writes events as newline-delimited JSON, compressed if the name ends in `.gz`; returns their number.

    `form` is the form of file by which older ones are recognised. The file is written atomically. Raises `SystemFailure` if
    it cannot be written, or exists and is not an event log.
    """
    target = Path(path)
    count = 0

    def fill(stream: BinaryIO) -> None:
        nonlocal count
        # mtime 0: the same events give the same bytes.
        packed = gzip.GzipFile(fileobj=stream, mode="wb", mtime=0, filename="") if target.suffix == ".gz" else None
        sink = packed or stream
        for event in events:
            sink.write(event_line(event).encode())
            count += 1
        if packed:
            packed.close()

    write(target, fill, form)
    return count


def event_line(event: Event) -> str:
    """An event as a line of newline-delimited JSON."""
    return visible_json(json.dumps(record(event), ensure_ascii=False, separators=(",", ":"))) + "\n"


def first_event_fields(path: Path) -> dict[str, Any]:
    """The fields of the first event of a log, plain, compressed or Parquet, without any check; nothing if it has none.

    Raises `InputError` for a damaged Parquet file.
    """
    try:
        with open_regular(path) as stream:
            magic = stream.peek(4)
            if _is_parquet(path, magic):
                return next(event_table.rows(path, only_first=True), ({}, 0))[0]
            plain = gzip.GzipFile(fileobj=stream) if magic[:2] == b"\x1f\x8b" else stream
            found = json.loads(plain.readline(1 << 20))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def may_have_event(path: Path, event: str, text: str = "") -> bool:
    """Whether an event of this name is in a log, plain or Parquet; of a plain one, whether a line has its name
    and this text.

    Raises `InputError` for a damaged Parquet file, and `OSError`.
    """
    with open_regular(path) as stream:
        if not _is_parquet(path, stream.peek(4)):
            name, more = f'"{event}"'.encode(), text.encode()
            return any(name in line and more in line for line in bounded_lines(stream, path.name))
    return event_table.has_event(path, event)


def _is_parquet(file: Path, head: bytes) -> bool:
    return head[:4] == b"PAR1" or file.suffix == ".parquet"


def _iterate(file: Path, without_torn_line: bool) -> Iterator[Event]:
    try:
        with open_regular(file) as stream:
            magic = stream.peek(4)
            if _is_parquet(file, magic):
                for fields, row in event_table.rows(file):
                    yield _event(fields, str(file), row)
            elif magic[:2] == b"\x1f\x8b":
                with gzip.GzipFile(fileobj=stream) as unpacked:
                    yield from events_in(unpacked, file, without_torn_line=without_torn_line)
            else:
                yield from events_in(stream, file, without_torn_line=without_torn_line)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{file}: the compressed file is damaged ({error})", remedy="copy it again from its source"
        ) from error
    except Excess as error:
        raise InputError(f"{file}: {error}", remedy="remove what is not an event") from None
    except OSError as error:
        raise InputError(
            f"{file}: cannot be read: {error.strerror or error}", remedy="check the path and its rights"
        ) from error


def events_in(stream: Lines, file: Path, *, without_torn_line: bool = False) -> Iterator[Event]:
    """The events in the lines of a stream, each when it is read, of spans all at the end; `file` is for messages. Raises as
    `read_events`, but for repetitions, and `Excess`."""
    parsed = _json_lines(stream, str(file), without_torn_line)
    first = next(parsed, None)
    if first is None:
        return
    given = chain([first], parsed)
    if is_otlp(first[0]):
        yield from otlp_events(given, str(file), file.name.partition(".")[0])
        return
    origin = str(file)
    for data, number in given:
        yield _plain_event(data, origin, number) or _event(data, origin, number)


def _json_lines(stream: Lines, name: str, without_torn_line: bool) -> Iterator[tuple[object, int]]:
    """The value of each line, with its number. Spans may also be one document of many lines."""
    read = EventLineReader()
    lines = enumerate(bounded_lines(stream, Path(name).name), 1)
    nothing_before = True
    for number, raw in lines:
        if raw.isspace() or (without_torn_line and len(raw) <= LINE and not raw.endswith(b"\n")):
            continue
        if len(raw) > LINE:
            raise InputError(f"the line has more than {LINE:,} bytes", loc=Loc(name, number))
        fractions = read.fractions
        try:
            if nothing_before and raw.strip() == b"{":
                document = json_value(_joined(raw, lines))
                if is_otlp(document):
                    yield document, number
                    return
            data = read.value(raw)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"the line is {json_problem(error)}",
                loc=Loc(name, number),
                remedy="give one JSON object per line, nothing else",
            ) from error
        nothing_before = False
        if fractions != read.fractions and isinstance(data, dict):
            data = _WithFraction(data)
        yield data, number


def _joined(first: bytes, lines: Iterator[tuple[int, bytes]]) -> bytes:
    """The rest of a file as one text. Raises `ValueError` if it is too large."""
    found, size = [first], len(first)
    for _, line in lines:
        found.append(line)
        size += len(line)
        if size > MOST:
            raise ValueError(f"the document has more than {MOST:,} bytes")
    return b"".join(found)


def begins_like_spans(path: Path) -> bool:
    """Whether a file, compressed by gzip or not, begins like one of OpenTelemetry's spans, whatever its name."""
    try:
        with open_regular(path) as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            head = (gzip.GzipFile(fileobj=file) if packed else file).read(4096)
    except (OSError, EOFError, zlib.error):
        return False  # reading it would report the error
    return head.lstrip().startswith(b"{") and b'"resourceSpans"' in head


class _WithFraction(dict[str, Any]):
    """An object in which a number is not whole."""


def _plain_event(data: object, name: str, number: int) -> Event | None:
    """The event of an object with the usual fields alone, if nothing is wrong with it; else None, and `_event` decides."""
    if type(data) is not dict or not data.keys() <= _USUAL:
        return None
    get: Callable[[str], Any] = data.get
    trace, process, seq, event = get("trace"), get("process"), get("seq"), get("event")
    args, clock, state = get("args"), get("clock"), get("state")
    fits = type(trace) is type(process) is type(event) is str and event and type(seq) is int and seq >= 0
    if not fits or type(args) not in _OBJECT or type(clock) not in _OBJECT or type(state) not in _OBJECT:
        return None
    for count in clock.values() if clock else ():
        if type(count) is not int or count < 0:
            return None
    # A log has few names, each of which is kept once.
    return Event(intern(trace), intern(process), seq, intern(event), args or {}, None, clock, state, name, number)


def _event(data: object, name: str, number: int) -> Event:
    """The event described by a JSON object; any violation of the schema is an error."""

    def refuse(message: str, remedy: str = "") -> InputError:
        return InputError(message, loc=Loc(name, number), remedy=remedy)

    if not isinstance(data, dict):
        raise refuse(
            "an event must be a JSON object", 'For example {"trace": "t", "process": "p", "seq": 1, "event": "e"}.'
        )
    for key in REQUIRED:
        if key not in data:
            raise refuse(f"the event lacks the field {key!r}", f"each event needs {', '.join(REQUIRED)}")
    for key in data:
        if key not in _FIELDS:
            raise refuse(f"the event has the unknown field {key!r}", f"known fields are {', '.join(COLUMNS)}")
    for key in ("trace", "process", "event"):
        if not isinstance(data[key], str):
            raise refuse(f"{key!r} must be text, got {data[key]!r}")
    if not data["event"]:
        raise refuse("'event' is empty", "name what happened")
    seq = data["seq"]
    if not _is_int(seq) or seq < 0:
        raise refuse(f"'seq' must be a whole number from 0, got {seq!r}", "it counts the events of one process")
    args = data.get("args")
    state = data.get("state")
    clock = data.get("clock")
    ts, run = data.get("ts"), data.get("run")
    if run is not None and not isinstance(run, str):
        raise refuse(f"'run' must be text, got {run!r}")
    if ts is not None and not isinstance(ts, str):
        raise refuse(f"'ts' must be text, got {ts!r}", "write ISO-8601, for example 2026-11-21T03:17:55.749")
    for key, value in (("args", args), ("state", state), *((name, data.get(name)) for name in ("picks", "parameters"))):
        if value is not None and not isinstance(value, dict):
            raise refuse(f"{key!r} must be a JSON object, got {value!r}")
        path = _fraction(value, key)
        if path:
            raise refuse(f"{path} is a fractional number", "values are text, whole numbers, truth values and lists")
    if clock is not None and not (
        isinstance(clock, dict) and all(_is_int(count) and count >= 0 for count in clock.values())
    ):
        raise refuse(f"'clock' must give a whole number for each process, got {clock!r}")
    after = data.get("after")
    if after is not None and not (_is_int(after) and -1 <= after < seq):
        raise refuse(
            f"'after' must be a smaller 'seq', or -1, got {after!r}", "it is the last event that preceded the call"
        )
    origin, line = data.get("file"), data.get("line")
    if (origin is not None and not isinstance(origin, str)) or (line is not None and not _is_int(line)):
        raise refuse("'file' must be text and 'line' a whole number")
    if origin is None:
        origin, line = name, number
    refused = data.get("refused")
    if refused is not None and not isinstance(refused, bool):
        raise refuse(f"'refused' must be true or false, got {refused!r}")
    more = after, refused or None, data.get("picks"), data.get("parameters")
    return Event(
        data["trace"], data["process"], seq, data["event"], args or {}, ts, clock, state, origin, line, run, *more
    )


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _fraction(value: object, path: str) -> str | None:
    """Path of the first fractional number inside a JSON value."""
    match value:
        case float():
            return path
        case dict():
            children = ((item, f"{path}.{key}") for key, item in value.items())
        case list():
            children = ((item, f"{path}[{index}]") for index, item in enumerate(value))
        case _:
            return None
    return next((found for item, where in children if (found := _fraction(item, where))), None)


def _refuse_repetition(events: list[Event]) -> None:
    latest: dict[tuple[str, str], int] = {}
    for event in events:
        about = event.trace, event.process
        if event.seq <= latest.get(about, -1):
            break
        latest[about] = event.seq
    else:
        return
    seen: set[tuple[str, str, int]] = set()
    for event in events:
        if event.key in seen:
            raise InputError(
                f"process {event.process!r} uses seq {event.seq} twice in trace {event.trace!r}",
                loc=event.loc,
                remedy="number the events of each process 0, 1, 2, ... in the order in which they happened",
            )
        seen.add(event.key)
