"""Recorded Flink logs in the layouts, wrappings and archives in which people have them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

RECORDED = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d),(?P<ms>\d{3}) (?:\[(?P<thread>.*)\] )?(?P<level>[A-Z]+) +"
    r"(?P<logger>[\w.$]+) +\[\] - (?P<message>.*)"
)


class Line(NamedTuple):
    """One record of a recorded log."""

    date: str
    time: str
    ms: str
    thread: str
    level: str
    logger: str
    message: str
    detail: tuple[str, ...]

    @property
    def millis(self) -> int:
        """Milliseconds since 1970, the time taken as UTC."""
        return int(datetime.fromisoformat(f"{self.date}T{self.time}.{self.ms}+00:00").timestamp() * 1000 + 0.5)

    @property
    def stamp(self) -> str:
        """The time in ISO-8601 form."""
        return f"{self.date}T{self.time}.{self.ms}Z"

    @property
    def short(self) -> str:
        """The name of the logger's class."""
        return self.logger.rpartition(".")[2]


def records(log: Path) -> Iterator[Line]:
    """The records of a recorded log."""
    head: re.Match[str] | None = None
    detail: list[str] = []

    def finished() -> Line:
        assert head is not None
        date, time, ms, thread, level, logger, message = head.groups()
        return Line(date, time, ms, thread or "main", level, logger, message, tuple(detail))

    for text in log.read_text().splitlines():
        found = RECORDED.fullmatch(text)
        if found is None:
            detail.append(text)
            continue
        if head is not None:
            yield finished()
        head, detail = found, []
    if head is not None:
        yield finished()


def _json(make: Callable[[Line], dict[str, Any]], **options: Any) -> Callable[[Line], str]:
    return lambda line: json.dumps(make(line), **options)


def _ecs(line: Line) -> dict[str, Any]:
    stack = {"error.stack_trace": "\n".join(line.detail)} if line.detail else {}
    return {"@timestamp": line.stamp, "ecs.version": "1.2.0", "log.level": line.level, "message": line.message,
            "process.thread.name": line.thread, "log.logger": line.logger} | stack  # fmt: skip


def _ecs_nested(line: Line) -> dict[str, Any]:
    return {"@timestamp": line.stamp, "log": {"level": line.level, "logger": line.logger}, "message": line.message,
            "process": {"thread": {"name": line.thread}}, "error": {"stack_trace": list(line.detail)}}  # fmt: skip


def _logstash(line: Line) -> dict[str, Any]:
    stack = {"stack_trace": "\n".join(line.detail)} if line.detail else {}
    return {"@timestamp": line.stamp.replace("Z", "+00:00"), "@version": "1", "message": line.message,
            "logger_name": line.logger, "thread_name": line.thread, "level": line.level} | stack  # fmt: skip


def _json_layout(line: Line) -> dict[str, Any]:
    return {"instant": {"epochSecond": line.millis // 1000, "nanoOfSecond": line.millis % 1000 * 1_000_000},
            "thread": line.thread, "level": line.level, "loggerName": line.logger,
            "message": "\n".join((line.message, *line.detail)), "endOfBatch": False,
            "loggerFqcn": "org.apache.logging.slf4j.Log4jLogger", "threadId": 1, "threadPriority": 5}  # fmt: skip


def _gelf(line: Line) -> dict[str, Any]:
    return {"version": "1.1", "host": "h", "short_message": line.message, "full_message": "\n".join(line.detail),
            "_exception": "\n".join(line.detail), "timestamp": line.millis / 1000, "level": 6, "_logger": line.logger,
            "_thread": line.thread}  # fmt: skip


def _logback(line: Line) -> dict[str, Any]:
    cut = line.message.find(" ")
    message, arguments = ("{}" + line.message[cut:], [line.message[:cut]]) if cut > 0 else (line.message, [])
    if "{}" in line.message:
        message, arguments = line.message, []
    return {"sequenceNumber": 0, "timestamp": line.millis, "nanoseconds": line.millis % 1000 * 1_000_000,
            "level": line.level, "threadName": line.thread, "loggerName": line.logger,
            "context": {"name": "default", "properties": {}}, "mdc": {}, "message": message, "arguments": arguments,
            "throwable": None, "stack_trace": "\n".join(line.detail)}  # fmt: skip


def _cloud(line: Line) -> dict[str, Any]:
    return {"timestamp": line.stamp, "severity": line.level, "message": "\n".join((line.message, *line.detail)),
            "logger": line.logger, "thread": line.thread}  # fmt: skip


JSON: dict[str, Callable[[Line], str]] = {
    "ecs": _json(_ecs),
    "ecs nested": _json(_ecs_nested),
    "logstash": _json(_logstash),
    "json layout": _json(_json_layout, indent=2),
    "json layout in one line": _json(_json_layout, separators=(",", ":")),
    "gelf": _json(_gelf),
    "logback": _json(_logback),
    "cloud": _json(_cloud),
}
"""Layouts of JSON, by the program or the standard that defines each."""

PATTERNS: dict[str, tuple[str, str]] = {
    "pipes": (
        "%d{ISO8601} | %-5p | %t | %c | %m%n",
        "{date}T{time},{ms} | {level:5} | {thread} | {logger} | {message}",
    ),
    "day first": (
        "%d{dd/MM/yyyy HH:mm:ss.SSS} %highlight{%p} %c{1}:%L - %m%n%xEx",
        "{day}/{month}/{year} {time}.{ms} {level} {short}:123 - {message}",
    ),
    "month name": (
        "%d{dd MMM yyyy HH:mm:ss,SSS} [%t] %-5level %logger{36} -- %msg%n",
        "{day} Nov {year} {time},{ms} [{thread}] {level:5} {logger} -- {message}",
    ),
    "level first": ("[%p] [%d] (%t) <%c> %m%n", "[{level}] [{date} {time},{ms}] ({thread}) <{logger}> {message}"),
    "logger first": ("%c{1.} %p %d{UNIX_MILLIS} %x - %m%n", "{abbreviated} {level} {millis}  - {message}"),
    "spring": (
        "%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %5p 77 --- [%15.15t] %-40.40logger{39} : %m%n%wEx",
        "{date}T{time}.{ms}Z {level:>5} 77 --- [{thread:>15}] {cut:40} : {message}",
    ),
    "thread last": ("%d %p %c{1} - %m [%t]%n%ex", "{date} {time},{ms} {level} {short} - {message} [{thread}]"),
    "key values": (
        'time="%d{ISO8601}{UTC}" level=%p logger=%c job=%X{flink-job-id} msg=%m%n',
        'time="{date}T{time},{ms}" level={level} logger={logger} job= msg={message}',
    ),
}
"""Patterns, each with the same layout as a format of Python."""


def by_pattern(layout: str) -> Callable[[Line], str]:
    """Writes records in the layout of a pattern, their stack traces on the lines after them."""

    def written(line: Line) -> str:
        year, month, day = line.date.split("-")
        text = layout.format(
            **line._asdict() | {"detail": ""}, year=year, month=month, day=day, short=line.short, millis=line.millis,
            cut=line.logger[-40:], abbreviated=re.sub(r"(\w)\w*\.", r"\1.", line.logger),
        )  # fmt: skip
        return "\n".join((text, *line.detail))

    return written


def rewrite(source: Path, target: Path, write: Callable[[Line], str], *, rest: bool = True) -> Path:
    """A copy of a run in another layout, without the configuration of its logger."""
    target.mkdir(parents=True)
    for file in source.iterdir():
        if file.suffix == ".log":
            (target / file.name).write_text("".join(f"{write(line)}\n" for line in records(file)))
        elif not file.name.startswith("log4j") and (rest or not file.name.startswith("rest-")):
            (target / file.name).write_bytes(file.read_bytes())
    return target
