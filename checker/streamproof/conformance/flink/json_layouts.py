"""Log records as JSON objects: log4j2's JsonTemplateLayout and JsonLayout, ECS, logstash, GELF, Google Cloud, logback.

The fields are found by their names, nested or joined by dots; the names of several layouts may be mixed. A record is one
line, or an object over several lines as JsonLayout writes it by default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from streamproof.conformance.flink.log_lines import as_line

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
    """The record in a JSON object as a line of `log_lines.as_line`, its stack trace after it; None if it is no record."""
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
