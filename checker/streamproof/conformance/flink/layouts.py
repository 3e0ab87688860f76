"""The layout of a log file, chosen by its content, and its lines in the one form that the other modules read.

Each layout in question reads the first lines; the one that recognises most of Flink's messages there is chosen: the
layouts that `log_records` recognises from the line itself, JSON, the pattern that the user gave, those of a configuration
beside the logs, and usual patterns. A line of another layout is translated to the form of `log_records.as_line`.

Of JSON, the fields are found by their names, nested or joined by dots; the names of several layouts may be mixed. A record
is one line, or an object over several lines as JsonLayout writes it by default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from streamproof.base.errors import InputError
from streamproof.base.options import setting
from streamproof.base.records import dataclass
from streamproof.conformance.flink.collectors import origin_of, unwrap, unwrapped
from streamproof.conformance.flink.log_records import Problem, as_line, cleaned, is_translated, read_head
from streamproof.conformance.flink.message_forms import FORMS, resembles
from streamproof.conformance.flink.pattern_layouts import (
    PatternReader,
    compile_pattern,
    stated_patterns,
    usual_patterns,
)

_TIMES: Final = ("@timestamp", "timestamp", "timeMillis", "time", "ts", "datetime", "date", "eventTime")
_LEVELS: Final = ("log.level", "level", "severity", "loglevel", "log_level", "levelname", "levelStr")
_LOGGERS: Final = ("log.logger", "loggerName", "logger_name", "logger", "_logger", "loggername", "category")
_MESSAGES: Final = ("formattedMessage", "message", "msg", "short_message", "rendered_message")
_THREADS: Final = ("process.thread.name", "threadName", "thread_name", "thread", "_thread", "thread.name")
_STACKS: Final = (
    "error.stack_trace", "stack_trace", "stacktrace", "stackTrace", "exception.stacktrace", "_stack_trace",
    "_exception", "exception.stackTrace.full", "thrown.extendedStackTrace", "exception", "throwable", "thrown",
)  # fmt: skip
_KINDS: Final = ("error.type", "exception.exception_class", "exception.class", "thrown.name")
_SAID: Final = ("error.message", "exception.exception_message", "exception.message", "thrown.message")
_JOB: Final = re.compile(r"[0-9a-f]{32}")
_JOB_KEY: Final = "flink-job-id"
_OPENING: Final = re.compile(r"[\[,]?\s*\{")
_DEEPEST: Final = 12
_MOST_LINES: Final = 5000
"""Maximum number of lines of one object."""
_MOST_FRAMES: Final = 2000


def json_line(text: str) -> str | None:
    """The record in a JSON object as a line of `log_records.as_line`, its stack trace after it; None if it is no record."""
    if not text.startswith(("{", "[", ",")):
        return None
    try:
        data = json.loads(text.strip().lstrip("[,").rstrip("],").strip() if text[0] != "{" else text.rstrip(" \t,]"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    flat: dict[str, Any] = {}
    _flatten(data, "", flat, 0)
    message, logger = _first_text(flat, _MESSAGES), _first_text(flat, _LOGGERS)
    ts, level = _time(flat), _first_text(flat, _LEVELS)
    if message is None or not logger or ts is None or level is None:
        return None
    arguments = data.get("arguments")
    if "formattedMessage" not in data and isinstance(arguments, list):
        for one in arguments:
            message = message.replace("{}", str(one), 1)
    job = next((v for k, v in flat.items() if k.endswith(_JOB_KEY) and isinstance(v, str) and _JOB.fullmatch(v)), "")
    stack = _stack(flat, data)
    if stack and stack not in message:
        message = f"{message}\n{stack}"
    return as_line(ts, level.upper(), logger, _first_text(flat, _THREADS) or "", job, message)


def join_objects(lines: Iterable[str | None]) -> Iterator[tuple[str | None, int]]:
    """Lines, with the objects that JsonLayout writes over several lines joined; and how many lines each result has."""
    held: list[str] = []
    for text in lines:
        if held:
            held.append(text or "")
            if (text is not None and text.rstrip().rstrip(",]").rstrip() == "}") or len(held) >= _MOST_LINES:
                yield " ".join(held), len(held)
                held = []
        elif text is not None and len(text) < 8 and _OPENING.fullmatch(text.strip()):
            held = [text]
        else:
            yield text, 1
    if held:
        yield " ".join(held), len(held)


def starts_object(text: str) -> bool:
    """Whether a line begins like a JSON record."""
    return _OPENING.match(text) is not None and (len(text.strip()) < 3 or '"' in text[:8])


def _flatten(data: Mapping[str, Any], prefix: str, into: dict[str, Any], depth: int) -> None:
    for key, value in data.items():
        name = f"{prefix}{key}"
        into.setdefault(name, value)
        if isinstance(value, dict) and depth < _DEEPEST:
            _flatten(value, f"{name}.", into, depth + 1)


def _first_text(flat: Mapping[str, Any], names: Iterable[str]) -> str | None:
    for name in names:
        value = flat.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool) and name in _LEVELS:
            return str(value)
    return None


def _time(flat: Mapping[str, Any]) -> str | None:
    """The time in ISO-8601 form; numbers are seconds, milliseconds or nanoseconds since 1970 by their size."""
    seconds = flat.get("instant.epochSecond")
    if isinstance(seconds, int):
        nanos = flat.get("instant.nanoOfSecond")
        return _since_epoch(seconds * 1000 + (nanos // 1_000_000 if isinstance(nanos, int) else 0))
    for name in _TIMES:
        value = flat.get(name)
        if isinstance(value, str) and value[:4].isdigit() and ("-" in value or ":" in value):
            return value
        if isinstance(value, str) and value.replace(".", "", 1).isdigit() and len(value) < 24:
            value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e20:
            scale = 1000 if value < 1e11 else 1 if value < 1e14 else 1e-3 if value < 1e17 else 1e-6
            return _since_epoch(int(value * scale + 1e-4) if isinstance(value, float) else int(value * scale))
    return None


def _since_epoch(millis: int) -> str | None:
    if not 0 <= millis < 253_402_300_800_000:
        return None
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _stack(flat: Mapping[str, Any], data: Mapping[str, Any]) -> str | None:
    """The stack trace as Java prints it."""
    for name in _STACKS:
        value = flat.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip("\r\n")
        if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
            return "\n".join(value)
    for name in ("thrown", "throwable"):
        if isinstance(data.get(name), dict):
            return "\n".join(_thrown(data[name], "", 0))
    kind, said = _first_text(flat, _KINDS), _first_text(flat, _SAID)
    return f"{kind}: {said}" if kind and said else kind


def _thrown(thrown: Mapping[str, Any], begin: str, depth: int) -> Iterator[str]:
    name = thrown.get("name") or thrown.get("className") or "java.lang.Throwable"
    said = thrown.get("localizedMessage") or thrown.get("message")
    yield f"{begin}{name}: {said}" if isinstance(said, str) else f"{begin}{name}"
    frames = thrown.get("extendedStackTrace") or thrown.get("stepArray") or thrown.get("stackTrace")
    for frame in frames[:_MOST_FRAMES] if isinstance(frames, list) else ():
        if isinstance(frame, dict):
            owner, method = frame.get("class") or frame.get("className"), frame.get("method") or frame.get("methodName")
            file, line = frame.get("file") or frame.get("fileName"), frame.get("line") or frame.get("lineNumber")
            yield f"\tat {owner}.{method}({file}:{line})"
    cause = thrown.get("cause")
    if isinstance(cause, dict) and depth < _DEEPEST:
        yield from _thrown(cause, "Caused by: ", depth + 1)


PROBED: Final = 2000
"""Number of first lines that decide the layout of a file."""
_FIRST: Final = 300
"""Number of lines that decide it if one of Flink's messages about coordination is among them."""
_LONGEST: Final = 1 << 16

_stated: ContextVar[PatternReader | None] = ContextVar("pattern", default=None)


def with_pattern(pattern: str | None) -> AbstractContextManager[None]:
    """Reads logs by a pattern of log4j or logback that the user gives. Raises `InputError` for an unsuitable one."""
    return setting(_stated, None if pattern is None else compile_pattern(pattern))


class JsonReader:
    """Reads records that are JSON objects."""

    def read(self, text: str) -> str | None:
        """The record of one object."""
        return json_line(text)

    def later(self, text: str) -> str | None:
        """A record that begins inside a damaged line."""
        place = text.find(text[:8], 8)
        return json_line(text[place:]) if place > 0 and json_line(text) is None else None

    def begins(self, text: str) -> bool:
        """Whether a line begins like an object with fields."""
        return starts_object(text) and json_line(text) is None and len(text) > 2


_Reader: TypeAlias = PatternReader | JsonReader
"""Reads lines of one layout, in the form of `as_line`."""


@dataclass(frozen=True, slots=True)
class LogLayout:
    """How to read a file's lines. `reader` is None for the layouts of `log_records`; `collected`: the lines have a
    collector's prefix; `events`, `misses` and `heads` are the numbers of messages about coordination, of those that cannot
    be read in full, and of Flink's records among the first lines, `first` the number of the first record's line."""

    reader: _Reader | None = None
    collected: bool = False
    origins: bool = False
    events: int = 0
    misses: int = 0
    heads: int = 0
    first: int = 0

    @property
    def score(self) -> tuple[int, int]:
        """How well the layout reads the lines: messages read without those that cannot be read in full, then heads."""
        return self.events - 3 * self.misses, self.heads

    def lines(
        self, lines: Iterable[bytes], name: str, report: Callable[[Problem], None], origin: str | None
    ) -> Iterator[bytes]:
        """The lines in the one form, one result for each line; an empty one stands for a line that is not read."""
        if self.reader is None and not self.collected and origin is None:
            yield from lines
            return
        ends: list[bytes] = []

        def texts() -> Iterator[str | None]:
            for number, raw in enumerate(lines, 1):
                ends[:] = [b"\n" if raw.endswith(b"\n") else b""]
                yield cleaned(raw, name, number, report)

        inner = unwrap(texts(), origin) if self.collected or origin is not None else texts()
        number = 0
        for text, count in join_objects(inner) if isinstance(self.reader, JsonReader) else ((t, 1) for t in inner):
            yield self._line(text, name, number + 1, report, ends[0])
            yield from (b"" for _ in range(count - 1))
            number += count

    def _line(self, text: str | None, name: str, number: int, report: Callable[[Problem], None], end: bytes) -> bytes:
        if text is None:
            return b""
        if self.reader is None:
            return text.encode(errors="replace") + end
        found = self.reader.read(text)
        cut = found is None and self.reader.begins(text)
        if cut or isinstance(self.reader, PatternReader):
            later = self.reader.later(text)
            if later is not None and _is_record(later):
                report(Problem(name, number, f"a line was cut and another one written into it: {text[:117]}"))
                return later.encode(errors="replace") + end
        if found is not None:
            return found.encode(errors="replace") + (b"\n" if isinstance(self.reader, JsonReader) else end)
        if cut:
            report(Problem(name, number, f"the line has a time but no level and logger: {text[:117]}"))
            return b""
        return text.encode(errors="replace") + end


def given_pattern() -> str | None:
    """The pattern that the user gives, or None."""
    reader = _stated.get()
    return None if reader is None else reader.pattern


def layout_of(folder: Path, lines: Callable[[], Iterator[bytes]], origin: str | None = None) -> LogLayout:
    """The layout of a file with these lines; `folder` may have the configuration of its logger. `origin`: the process
    whose lines are read, of a file with several."""
    found = LogLayout()
    for most in (_FIRST, PROBED):
        raws = list(islice(lines(), most if origin is None else 10 * most))
        found = _best(raws, folder, origin)
        if found.events or len(raws) < most:
            break
    return found


def _best(raws: Sequence[bytes], folder: Path, origin: str | None) -> LogLayout:
    """The layout of some lines, as they are or without the prefixes of a collector."""
    plain = [cleaned(raw[:_LONGEST], "", 0, lambda problem: None) for raw in raws]
    some = [text for text in plain if text]
    found = LogLayout() if origin is not None else _chosen(plain, folder)
    if origin is None and sum(unwrapped(text) != text for text in some) * 2 <= len(some):
        return found
    inner = _chosen(list(unwrap(plain, origin)), folder)
    if origin is None and (not inner.heads or inner.score < found.score):
        return found
    return replace(inner, collected=True, origins=any(origin_of(text) for text in some))


def _chosen(lines: Sequence[str | None], folder: Path) -> LogLayout:
    texts = [text or "" for text in lines]
    stated = _stated.get()
    if stated is not None and (found := _scored(stated, texts)).heads:
        return found
    best = _scored(None, texts)
    for reader in _readers(texts, folder):
        found = _scored(reader, texts)
        if found.score > best.score:
            best = found
    if best.events <= 10 * best.misses and (best.misses or not best.heads):
        mentioning = [text for text in texts if _MENTIONS.search(text)]
        for pattern in usual_patterns(mentioning):
            found = _scored(compiled(pattern), mentioning)
            if found.score > best.score:
                best = found
        best = best if best.reader is None else _scored(best.reader, texts)
    return best


def _readers(texts: Sequence[str], folder: Path) -> Iterator[_Reader]:
    """The readers in question besides the user's pattern: JSON, and those that a file beside the logs names."""
    if any(starts_object(text) for text in texts):
        yield JsonReader()
    yield from _stated_in(folder)


_MENTIONS: Final = re.compile(rf"\b(?:{'|'.join(sorted(FORMS))})\b")


def _scored(reader: _Reader | None, texts: Sequence[str]) -> LogLayout:
    events = misses = heads = first = 0
    lines = ((t, 1) for t in texts) if not isinstance(reader, JsonReader) else join_objects(texts)
    for number, (text, _) in enumerate(lines, 1):
        if not text:
            continue
        line = text if reader is None else reader.read(text)
        head = None if line is None else read_head(line[:_LONGEST])
        if head is not None and (head.flink or head.logger in FORMS):
            heads += 1
            first = first or number
            if any(form.read(head.message) is not None for form in FORMS.get(head.logger, ())):
                events += 1
            elif resembles(head.logger, head.message):
                misses += 1
    return LogLayout(reader, False, False, events, misses, heads, first)


def _is_record(line: str) -> bool:
    head = read_head(line)
    return head is not None and is_translated(line) and (head.flink or head.logger in FORMS)


@lru_cache(maxsize=256)
def _stated_in(folder: Path) -> tuple[PatternReader, ...]:
    found = []
    for pattern in stated_patterns(folder):
        try:
            found.append(compile_pattern(pattern))
        except (InputError, re.error):
            continue
    return tuple(found)


compiled = lru_cache(maxsize=4096)(compile_pattern)
