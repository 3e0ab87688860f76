"""From bytes to log records: heads in any of the usual layouts, the lines that belong to them, and damage.

A record is a head (time, level, logger, message, and perhaps thread and job) and the lines up to the next head. Layouts
are told from the lines themselves: time with a blank or `T`, with `,` or `.` before the fraction, with or without zone;
thread before or after the level; diagnostic context (`%x`, `%X`) anywhere; packages abbreviated or not.

Damage is never fatal. What cannot be trusted (bytes that are not text, zeros left by a crash, a line cut short) becomes a
`Problem` with file and line, and reading goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

_LEVELS: Final = "TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL"
_TIME: Final = (
    r"\[?(?P<date>\d{4}-\d\d-\d\d)[ T](?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    rf"(?P<zone> ?(?:[+-]\d\d(?::?\d\d)?|(?!(?:{_LEVELS})\b)[A-Z]{{1,5}}(?:[+-]\d\d(?::?\d\d)?)?)(?=[\s\]]))?\]?"
)
# Brackets, braces, or a bare job id: the thread (a user's task name may stand in it) or the diagnostic context.
_ASIDE: Final = r"(?:\[.*?\]|\{.*?\}|[0-9a-f]{32})"
_HEAD: Final = re.compile(
    rf"{_TIME}(?P<before>.*?)[\s\[](?P<level>{_LEVELS}) *\]?\s+(?P<between>(?:{_ASIDE}\s+)*)"
    rf"(?P<logger>[A-Za-z_$][\w$./-]*)(?P<after>(?:\s+{_ASIDE})*)\s*(?: -|:) (?P<message>.*)"
)
_STARTS: Final = re.compile(_TIME)
_JOB: Final = re.compile(r"(?:flink-job-id=)?([0-9a-f]{32})")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST: Final = 1 << 20  # bytes of one line; Flink's longest are some kilobytes
_DETAIL: Final = 2000  # lines kept under one head


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a log that could not be read or trusted. `line` 0 means the file as a whole."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


@dataclass(slots=True)
class Record:
    """One record of a log.

    `ts` is ISO-8601 text; `logger` the last part of the logger's name and `flink` whether its package is Flink's; `job`
    comes from the diagnostic context. `whole` is False if the last line of the record has no end.
    """

    ts: str
    level: str
    logger: str
    message: str
    thread: str | None
    job: str | None
    file: str
    line: int
    flink: bool
    detail: list[str] = field(default_factory=list)
    whole: bool = True


def read_records(files: Iterable[tuple[str, Iterable[bytes]]], report: Callable[[Problem], None]) -> Iterator[Record]:
    """Records of one process, whose `files` (name, lines with their ends) come in the order of writing.

    Damage goes to `report`.
    """
    current: Record | None = None
    for name, lines in files:
        number = 0
        for number, raw in enumerate(_bounded(lines, name, report), 1):
            text = _clean(raw, name, number, report)
            if text is None:
                continue
            head = _head(text, name, number)
            if head is None:
                if _STARTS.match(text):
                    report(Problem(name, number, f"the line has a time but no level and logger: {_shown(text)}"))
                elif current is not None and len(current.detail) < _DETAIL:
                    current.detail.append(text)
                continue
            if current is not None:
                yield current
            current = head
            spliced = _splice(text, name, number)
            if spliced is not None:
                report(Problem(name, number, f"a line was cut and another one written into it: {_shown(text)}"))
                current = spliced
        if current is not None and number and not raw.endswith(b"\n"):
            current.whole = False
            yield current
            current = None
    if current is not None:
        yield current


def time_of(raw: bytes) -> str | None:
    """Time of the record whose head is this line, or None if the line is no head."""
    head = _head(raw.lstrip(b"\0").decode(errors="replace").rstrip("\r\n"), "", 0)
    return None if head is None else head.ts


def _head(text: str, name: str, number: int) -> Record | None:
    found = _HEAD.match(text)
    if found is None:
        return None
    date, clock, fraction, zone, before, level, between, logger, after, message = found.groups()
    thread, job = _context(before, between, after) if before or between or after != " []" else (None, None)
    millis = f"{fraction or '0':0<3.3}"
    ts = f"{date}T{clock}.{millis}{_offset(zone) if zone else ''}"
    short = logger.rpartition(".")[2]
    flink = logger.startswith(("org.apache.flink.", "o.a.f."))
    return Record(ts, level, short, message, thread, job, name, number, flink)


@lru_cache(maxsize=64)
def _offset(zone: str) -> str:
    """A zone as ISO-8601 writes it. Names of zones have no fixed meaning and are left out."""
    zone = zone.strip()
    if zone in ("Z", "UTC", "GMT"):
        return "Z"
    found = re.search(r"([+-]\d\d):?(\d\d)?$", zone)
    return f"{found[1]}:{found[2] or '00'}" if found else ""


@lru_cache(maxsize=8192)
def _context(*parts: str) -> tuple[str | None, str | None]:
    """Thread and job that stand beside level and logger."""
    thread = job = None
    for part in parts:
        for group in _groups(part):
            found = _JOB.search(group) if "flink-job-id=" in group else _JOB.fullmatch(group)
            if found:
                job = job or found[1]
            elif group and thread is None and part is not parts[-1] and "=" not in group.partition(" ")[0]:
                thread = group
    return thread, job


def _groups(text: str) -> Iterator[str]:
    """Contents of the outermost brackets, and the words between them."""
    depth, start = 0, 0
    for place, char in enumerate(text):
        if char in "[{":
            if depth == 0:
                yield from text[start:place].split()
                start = place + 1
            depth += 1
        elif char in "]}" and depth:
            depth -= 1
            if depth == 0:
                yield text[start:place].strip()
                start = place + 1
    yield from text[start:].split()


def _splice(text: str, name: str, number: int) -> Record | None:
    """The record that begins inside a line: its predecessor was cut, as when a process is killed while it writes."""
    place = text.find(text[:11], 11)
    return _head(text[place:], name, number) if place > 0 and _HEAD.match(text, place) else None


def _bounded(lines: Iterable[bytes], name: str, report: Callable[[Problem], None]) -> Iterator[bytes]:
    for number, raw in enumerate(lines, 1):
        if len(raw) > _LONGEST:
            report(Problem(name, number, f"the line has {len(raw)} bytes; the first {_LONGEST} are read"))
            raw = raw[:_LONGEST] + b"\n"
        yield raw


def _clean(raw: bytes, name: str, number: int, report: Callable[[Problem], None]) -> str | None:
    """The text of a line; None if nothing in it can be trusted."""
    if b"\0" in raw:
        report(Problem(name, number, "the line has zero bytes, as a crash or a truncated copy leaves them"))
        # Only what follows the zeros is known to be in one piece.
        raw = raw[raw.rindex(b"\0") + 1 :]
        if not raw.strip():
            return None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        report(Problem(name, number, "the line has bytes that are not UTF-8 text"))
        text = raw.decode(errors="replace")
    text = text.rstrip("\r\n")
    return _COLOUR.sub("", text) if "\x1b" in text else text


def _shown(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."
