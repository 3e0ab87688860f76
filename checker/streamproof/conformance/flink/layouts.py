"""The layout of a log file, chosen by its content, and its lines in the one form that the other modules read.

Each layout in question reads the first lines; the one that recognises most of Flink's records there is chosen: the
layouts that `log_records` recognises from the line itself, JSON, the pattern that the user gave, those of a configuration
beside the logs, and usual patterns. A line of another layout is translated to the form of `log_records.as_line`. What
stands around the lines is taken off first (`envelopes`), if more records are recognised without it.

Of JSON, the fields are found by their names, nested or joined by dots; the names of several layouts may be mixed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from streamproof.base.errors import InputError
from streamproof.base.options import setting
from streamproof.base.records import dataclass
from streamproof.conformance.flink.envelopes import (
    MOST_ORIGINS,
    Layer,
    Prefix,
    WrappedLine,
    candidates,
    json_fields,
    json_time,
    opened,
)
from streamproof.conformance.flink.log_records import Problem, as_line, cleaned, is_translated, read_head
from streamproof.conformance.flink.message_forms import FORMS, resembles
from streamproof.conformance.flink.pattern_layouts import (
    PatternReader,
    compile_pattern,
    stated_patterns,
    usual_patterns,
)

_LEVELS: Final = (
    "log.level", "level", "severity", "loglevel", "log_level", "levelname", "levelStr", "messageType", "severityText",
    "status", "lvl",
)  # fmt: skip
_LOGGERS: Final = ("log.logger", "loggerName", "logger_name", "logger", "_logger", "loggername", "category", "logger.name",
    "scope.name", "class")  # fmt: skip
MESSAGES: Final = ("formattedMessage", "message", "msg", "short_message", "rendered_message", "@message", "body",
    "body.stringValue")  # fmt: skip
"""Names of the fields that have a record's message."""
_THREADS: Final = ("process.thread.name", "threadName", "thread_name", "thread", "_thread", "thread.name")
_STACKS: Final = (
    "error.stack_trace", "stack_trace", "stacktrace", "stackTrace", "exception.stacktrace", "_stack_trace",
    "_exception", "exception.stackTrace.full", "thrown.extendedStackTrace", "throwableInformation", "exception", "throwable",
    "thrown",
)  # fmt: skip
_KINDS: Final = ("error.type", "exception.exception_class", "exception.class", "thrown.name")
_SAID: Final = ("error.message", "exception.exception_message", "exception.message", "thrown.message")
_JOB: Final = re.compile(r"[0-9a-f]{32}")
_JOB_KEY: Final = "flink-job-id"
_DEEPEST: Final = 12
_MOST_FRAMES: Final = 2000


def json_line(text: str, ts: str | None = None) -> str | None:
    """The record in a JSON object as a line of `log_records.as_line`, its stack trace after it; None if it is no record.

    `ts` is the time of an object without one."""
    flat = json_fields(text)
    if flat is None:
        return None
    message, logger = _first_text(flat, MESSAGES), _first_text(flat, _LOGGERS)
    ts, level = json_time(flat) or ts, _first_text(flat, _LEVELS)
    if message is None or not logger or ts is None or level is None:
        return None
    arguments = flat.get("arguments")
    if "formattedMessage" not in flat and isinstance(arguments, list):
        for one in arguments:
            message = message.replace("{}", str(one), 1)
    job = next((v for k, v in flat.items() if k.endswith(_JOB_KEY) and isinstance(v, str) and _JOB.fullmatch(v)), "")
    stack = _stack(flat)
    if stack and stack not in message:
        message = f"{message}\n{stack}"
    return as_line(ts, level.upper(), logger, _first_text(flat, _THREADS) or "", job, message)


def _first_text(flat: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """The value of the first of some fields, also if it is in an object of a collector's."""
    values = {name: flat[name] for name in names if name in flat} or {
        key: value for name in names for key, value in flat.items() if key.endswith(f".{name}")
    }
    for value in values.values():
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool) and names is _LEVELS:
            return str(value)
    return None


def _stack(flat: Mapping[str, Any]) -> str | None:
    """The stack trace as Java prints it."""
    for name in _STACKS:
        value = flat.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip("\r\n")
        if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
            return "\n".join(value)
    for name in ("thrown", "throwable"):
        if isinstance(flat.get(name), dict):
            return "\n".join(_thrown(flat[name], "", 0))
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

    def read(self, text: str, ts: str | None = None) -> str | None:
        """The record of one object."""
        return json_line(text, ts)

    def later(self, text: str) -> str | None:
        """A record that begins inside a damaged line."""
        place = text.find(text[:8], 8)
        return json_line(text[place:]) if place > 0 and json_line(text) is None else None

    def begins(self, text: str) -> bool:
        """Whether a line begins like an object with fields."""
        return starts_object(text) and json_line(text) is None and len(text) > 2


def starts_object(text: str) -> bool:
    """Whether a line begins like a JSON record."""
    return _OPENING.match(text) is not None and (len(text.strip()) < 3 or '"' in text[:8])


_OPENING: Final = re.compile(r"[\[,]?\s*\{")
_Reader: TypeAlias = PatternReader | JsonReader
"""Reads lines of one layout, in the form of `as_line`."""


@dataclass(frozen=True, slots=True)
class LogLayout:
    """How to read a file's lines. `reader` is None for the layouts of `log_records`; `layers` are around the lines, the
    outermost first, `origins` the processes that they name; `events`, `misses` and `heads` are the numbers of messages
    about coordination, of those that cannot be read in full, and of Flink's records among the first lines, `first` the
    number of the first record's line."""

    reader: _Reader | None = None
    events: int = 0
    misses: int = 0
    heads: int = 0
    first: int = 0
    layers: tuple[Layer, ...] = ()
    origins: frozenset[str] = field(default_factory=frozenset)

    def is_better(self, other: LogLayout) -> bool:
        """Whether it reads more records of the same lines or, of about as many, more messages; those that cannot be read in
        full count as well, since they are messages of Flink's."""
        if 10 * min(self.heads, other.heads) < 9 * max(self.heads, other.heads):
            return self.heads > other.heads
        return (self.events + self.misses, self.events) > (other.events + other.misses, other.events)

    def lines(
        self, lines: Iterable[bytes], name: str, report: Callable[[Problem], None], origin: str | None
    ) -> Iterator[bytes]:
        """The lines in the one form, one result for each line; an empty one stands for a line that is not read."""
        if self.reader is None and not self.layers:
            yield from lines
            return
        end, whole = b"", not all(isinstance(layer, Prefix) for layer in self.layers)

        def texts() -> Iterator[WrappedLine]:
            nonlocal end
            for number, raw in enumerate(lines, 1):
                end = b"\n" if whole or raw.endswith(b"\n") else b""
                yield WrappedLine(cleaned(raw, name, number, report))

        for number, line in enumerate(opened(self.layers, texts()), 1):
            if line.text is None or (origin is not None and line.origin != origin):
                yield b""
            else:
                yield self._line(line, name, number, report, end)

    def _line(self, line: WrappedLine, name: str, number: int, report: Callable[[Problem], None], end: bytes) -> bytes:
        text, _, further = (line.text or "").partition("\n")
        if further and not is_translated(text):
            # A collector may have put several lines into one.
            rest = (self._line(line._replace(text=one), name, number, report, b"") for one in further.split("\n"))
            end = b"".join(b"\n" + one.rstrip(b"\n") for one in rest) + b"\n"
        elif further:
            end = f"\n{further}\n".encode(errors="replace")
        if self.reader is None or is_translated(text):
            return text.encode(errors="replace") + end
        found = self._read(line, text)
        cut = found is None and self.reader.begins(text)
        if cut or isinstance(self.reader, PatternReader):
            later = self.reader.later(text)
            if later is not None and _is_record(later):
                report(Problem(name, number, f"a line was cut and another one written into it: {text[:117]}"))
                return later.encode(errors="replace") + end
        if found is not None:
            return found.encode(errors="replace") + (end or b"\n" if isinstance(self.reader, JsonReader) else end)
        if cut:
            report(Problem(name, number, f"the line has a time but no level and logger: {text[:117]}"))
            return b""
        return text.encode(errors="replace") + end

    def _read(self, line: WrappedLine, text: str) -> str | None:
        if isinstance(self.reader, JsonReader):
            return self.reader.read(text, line.ts)
        return text if self.reader is None else self.reader.read(text)


def given_pattern() -> str | None:
    """The pattern that the user gives, or None."""
    reader = _stated.get()
    return None if reader is None else reader.pattern


def layout_of(folder: Path, lines: Callable[[], Iterator[bytes]]) -> LogLayout:
    """The layout of a file with these lines; `folder` may have the configuration of its logger."""
    found = LogLayout()
    for most in (_FIRST, PROBED):
        raws = list(islice(lines(), most))
        found = _best([WrappedLine(cleaned(raw[:_LONGEST], "", 0, lambda problem: None)) for raw in raws], folder)
        if found.events or len(raws) < most:
            break
    return found


def origins_of(layout: LogLayout, lines: Iterable[bytes]) -> list[str]:
    """The processes that the layers around a file's lines name, in the order of their first line."""
    texts = (WrappedLine(cleaned(raw, "", 0, lambda problem: None)) for raw in lines)
    found: dict[str, None] = {}
    for line in opened(layout.layers, texts):
        if line.origin is not None and len(found) < MOST_ORIGINS:
            found.setdefault(line.origin)
    return list(found)


def _best(lines: Sequence[WrappedLine], folder: Path) -> LogLayout:
    """The layout of some lines, as they are or without what stands around them."""
    best = _chosen(lines, folder)
    inner, layers = lines, tuple[Layer, ...]()
    for _ in range(_MOST_LAYERS):
        for more in candidates(inner):
            within = list(opened(more, inner))
            found = _chosen(within, folder, best.heads)
            known = isinstance(more[0], Prefix) and more[0].is_known and not best.is_better(found)
            if found.heads and (found.is_better(best) or known):
                best, inner, layers = found, within, layers + more
                break
        else:
            break
    mentioning = sum(_MENTIONS.search(line.text or "") is not None for line in inner)
    if best.events <= 10 * best.misses and (best.misses or 10 * best.heads <= mentioning):
        for more in ((), *candidates(inner)) if not best.heads else ((),):
            within = list(opened(more, inner))
            found = _usual(within, best)
            if found.is_better(best):
                best, inner, layers = found, within, layers + more
                break
    return replace(best, layers=layers, origins=frozenset(line.origin for line in inner if line.origin))


_MOST_LAYERS: Final = 4


def _chosen(lines: Sequence[WrappedLine], folder: Path, to_beat: int = 0) -> LogLayout:
    """The best layout of some lines; if none has more than a part of `to_beat` heads, any that has so few."""
    stated = _stated.get()
    if stated is not None and (found := _scored(stated, lines)).heads:
        return found
    best = _scored(None, lines, to_beat)
    readers: tuple[_Reader, ...] = (JsonReader(),) if any(starts_object(line.text or "") for line in lines) else ()
    for reader in (*readers, *_stated_in(folder)):
        found = _scored(reader, lines, max(best.heads, to_beat))
        best = found if found.is_better(best) else best
    return best


def _usual(lines: Sequence[WrappedLine], best: LogLayout) -> LogLayout:
    """The usual pattern that reads most of some lines, if it is better than the best so far."""
    mentioning = [line for line in lines if _MENTIONS.search(line.text or "")]
    before = found = _scored(best.reader, mentioning)
    for pattern in usual_patterns(line.text or "" for line in mentioning):
        one = _scored(compiled(pattern), mentioning)
        found = one if one.is_better(found) else found
    return best if found is before else _scored(found.reader, lines)


_MENTIONS: Final = re.compile(rf"\b(?:{'|'.join(sorted(FORMS))})\b")


def _scored(reader: _Reader | None, lines: Sequence[WrappedLine], to_beat: int = 0) -> LogLayout:
    """A layout with what it reads; of one that has too few heads to be better than a layout with `to_beat`, and than one
    that is as good as that, with what it reads of the first lines."""
    events = misses = heads = first = seen = 0
    layout = LogLayout(reader)
    for number, line in enumerate(lines, 1):
        if 100 * (heads + len(lines) + 1 - number) < 81 * to_beat:
            break
        text = (line.text or "").partition("\n")[0]
        seen += bool(text)
        read = layout._read(line, text) if text else None
        head = None if read is None else read_head(read[:_LONGEST])
        if head is not None and (head.flink or head.logger in FORMS):
            heads += 1
            first = first or seen
            if any(form.read(head.message) is not None for form in FORMS.get(head.logger, ())):
                events += 1
            elif resembles(head.logger, head.message):
                misses += 1
    return LogLayout(reader, events, misses, heads, first)


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
