"""Parsing of bytes to log records: heads, their continuation lines, and damage.

A record is a head and the lines up to the next head: a stack trace, a table of slots. Damage is never fatal.
Untrustworthy data (bytes that are not text, zeros left by a crash, a truncated line) becomes a `Problem` with file and
line, and reading continues after it.

The layout of a head is recognised from the line itself, because a log often comes without its configuration: dates with
`-` or `/`, or no date; a blank or `T` before the time; `,` or `.` before the fraction, or no fraction; a zone or none;
thread before or after the level; diagnostic context (`%x`, `%X`, `%X{flink-job-id}`) anywhere; packages in full,
abbreviated or omitted; `-`, `:` or nothing before the message; colours.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from streamproof.base.records import dataclass

COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_LEVELS: Final = "TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL"
_DATE: Final = r"\d{4}[-/]\d\d[-/]\d\d"
_TIME: Final = (
    rf"\[?(?:(?P<date>{_DATE}|\d\d/\d\d/\d\d)[ T])?(?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{{1,9}}))?"
    rf"(?P<zone> ?(?:[+-]\d\d(?::?\d\d)?|(?!(?:{_LEVELS})\b)[A-Z]{{1,5}}(?:[+-]\d\d(?::?\d\d)?)?)(?=[\s\]]))?\]?"
)
# Brackets, braces, or a bare job id: the diagnostic context, or the thread, in which a user's task name may stand.
# A name may hold brackets itself, so before the logger they may nest, and some may be open. What repeats gives nothing
# back where nothing after it could take it: on hostile lines the search stays short.
_NESTING: Final = (
    r"(?:\[(?:[^\[\]]++|\[[^\[\]]*+\])*+\]|\[(?:[^\]]*+\]){1,4}?"
    r"|\{(?:[^{}]++|\{[^{}]*+\})*+\}|\{(?:[^}]*+\}){1,4}?|[0-9a-f]{32})"
)
_PLAIN: Final = r"(?:\[[^\]]*+\]|\{[^}]*+\}|[0-9a-f]{32})"
_UP_TO_LOGGER: Final = (
    rf"{_TIME}(?P<before>.{{0,600}}?)[\s\[](?P<level>{_LEVELS})(?: *+\]\s++|\s++)(?P<between>(?:{_NESTING}\s++){{0,2}})"
    r"(?P<logger>[A-Za-z_$][\w$./-]*+)"
)
_HEAD: Final = re.compile(rf"{_UP_TO_LOGGER}(?P<after>(?:\s++{_PLAIN})*+)\s*+(?:(?<= )-|:) ")
# Without a mark before the message, more lines look like heads, so this form is tried last.
_BARE_HEAD: Final = re.compile(rf"{_UP_TO_LOGGER}(?P<after>(?:\s++{_PLAIN}(?=\s))*+)\s++")
# The usual layout, which most lines have: what it matches, `_HEAD` matches alike, more slowly.
_USUAL: Final = (
    r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d),(\d{3}) (TRACE|DEBUG|INFO|WARN|ERROR) {1,2}"
    r"([A-Za-z_][\w.]{0,200}+) +\[\] - (?![\[{])"
)
_USUAL_HEAD: Final = re.compile(rf"{_USUAL}([^&\n\x1f]*+)\Z")
# The same with a message and a line end, without what `cleaned` removes.
_USUAL_LINE: Final = re.compile(rf"{_USUAL}([^&\n\r\0\x1b\x1f]++)\r?\n?\Z")
_LONGEST: Final = 2048
"""Maximum number of characters of a line before its message."""
_DATED: Final = re.compile(rf"\[?{_DATE}[ T]\d\d:\d\d:\d\d")
# `%X{flink-job-id}` gives the job alone, `%X` every entry of the context with its key.
_JOB: Final = re.compile(r"(?:.*\bflink-job-id=|(?=[\w-]*job)[\w-]++[=:] ?)?([0-9a-f]{32})(?:, .*)?")
_STAMP: Final = re.compile(
    rf"(?:({_DATE})[T ])?(\d\d:\d\d:\d\d)(?:[.,](\d{{1,9}}))?(Z| ?(?:UTC|GMT)| ?[+-]\d\d(?::?\d\d)?)?(?: ?\[[\w/+-]+\])?$"
)
_SEPARATORS: Final = re.compile(r"[\s\x1f]")
_LINE_ENDS: Final = re.compile(r"[\r\n\0\x1f]")
_ENTITIES: Final = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&amp;": "&"}
_ENTITY: Final = re.compile("|".join(_ENTITIES))
_MARK: Final = "\x1f"
_TRANSLATED: Final = re.compile(rf"([^ ]*) ([^ ]*) ([^ {_MARK}]*) {_MARK}([^{_MARK}]*){_MARK}([0-9a-f]*){_MARK} - ")
"""A head that was translated from a layout of another kind, by `as_line`."""
_LEADING: Final = re.compile(r"(?:\[([^\[\]]*)\]|\{([^{}]*)\}) +")


@dataclass(slots=True)
class Head:
    """The parsed head of a record.

    `ts` is ISO-8601 text, in milliseconds unless the layout stops at seconds, without a date if the layout has none.
    `logger` is the last part of the logger's name and `flink` whether its package is Flink's; `job` is the job in the
    diagnostic context.
    """

    ts: str
    level: str
    logger: str
    flink: bool
    message: str
    thread: str | None
    job: str | None


def read_head(line: str, *, general: bool = False) -> Head | None:
    """The head in `line`, or None if it is not a head. `general`: not by the shorter way for the usual layout, for tests."""
    usual = None if general else _USUAL_HEAD.match(line)
    if usual is not None:
        return _usual_head(usual)
    if _MARK in line and (translated := _TRANSLATED.match(line)):
        ts, level, logger, thread, job = translated.groups()
        message = unescaped(line[translated.end() :].partition("\n")[0])
        return Head(ts, level, *_class(logger), message, thread or None, job or None)
    found = _HEAD.match(line, 0, _LONGEST) or _BARE_HEAD.match(line, 0, _LONGEST)
    if found is None:
        return None
    date, clock, fraction, zone, before, level, between, logger, after = found.groups()
    message = unescaped(line[found.end() :].partition("\n")[0])
    thread, job = _context(before, between, after) if before or between or after.strip() != "[]" else (None, None)
    if message.startswith(("[", "{")):
        # A context before the message: no message of Flink begins in this way.
        leading = _LEADING.match(message)
        inside = ((leading[1] or leading[2] or "") if leading else "-").strip()
        own = _JOB.fullmatch(inside)
        if leading and (own or not inside):
            message = message[leading.end() :]
            job = job or (own[1] if own else None)
    ts = _time(date, clock, fraction, zone)
    return Head(ts, level, *_class(logger), message, thread and unescaped(thread), job)


def _usual_head(found: re.Match[str]) -> Head:
    """The head in a match of the usual layout."""
    date, clock, fraction, level, logger, message = found.groups()
    name, flink = _class(logger)
    return Head(f"{date}T{clock}.{fraction}", level, name, flink, message, None, None)


@lru_cache(maxsize=4096)
def _class(logger: str) -> tuple[str, bool]:
    """The last part of a logger's name, and whether its package is Flink's."""
    return logger.rpartition(".")[2], logger.startswith(("org.apache.flink.", "o.a.f."))


def _usual_line(raw: bytes) -> Head | None:
    """The head of a line in the usual layout that needs nothing of what `read_records` does with other lines."""
    if len(raw) > LONGEST:
        return None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    found = _USUAL_LINE.match(text)
    # The date once more: another head may be within the line.
    return None if found is None or text.find(text[:11], 11) > 0 else _usual_head(found)


def as_line(ts: str, level: str, logger: str, thread: str, job: str, message: str) -> str:
    """A record of a layout of another kind as a line that `read_head` reads; the message may have further lines.

    `ts` is ISO-8601 text with at most nanoseconds, `job` the job in the diagnostic context or empty.
    """
    found = _STAMP.match(ts)
    ts = "" if found is None else _time(*found.groups())
    words = (_SEPARATORS.sub("?", word) for word in (level, logger))
    text = message.replace("\r\n", "\n").replace("\0", "\ufffd")
    return f"{ts} {' '.join(words)} {_MARK}{_LINE_ENDS.sub('?', thread)}{_MARK}{job}{_MARK} - {text}"


def is_translated(line: str) -> bool:
    """Whether a line has the form of `as_line`."""
    return _MARK in line and _TRANSLATED.match(line) is not None


def unescaped(text: str) -> str:
    """A text with HTML entities decoded: some log viewers and stores escape lines, once or repeatedly."""
    while "&" in text and (less := _ENTITY.sub(lambda found: _ENTITIES[found[0]], text)) != text:
        text = less
    return text


def starts_like_head(line: str) -> bool:
    """Whether a line begins with date and time, as heads do and other lines hardly ever."""
    return _DATED.match(line) is not None


def second_head(line: str) -> Head | None:
    """A second head inside a head's line: the first record was truncated, as when a process is killed while it writes."""
    if is_translated(line):
        return None
    place = line.find(line[:11], 11)
    return read_head(line[place:]) if place > 0 else None


def _time(date: str | None, clock: str, fraction: str | None, zone: str | None) -> str:
    """A time in ISO-8601 form, in milliseconds."""
    millis = f".{fraction:0<3.3}" if fraction else ""
    return f"{_day(date) if date else ''}{clock}{millis}{_offset(zone) if zone else ''}"


@lru_cache(maxsize=64)
def _day(date: str) -> str:
    date = date.replace("/", "-")
    return f"{date if len(date) == 10 else f'20{date}'}T"


@lru_cache(maxsize=64)
def _offset(zone: str) -> str:
    """A zone in ISO-8601 form. Names of zones are ambiguous and omitted."""
    zone = zone.strip()
    if zone in ("Z", "UTC", "GMT"):
        return "Z"
    found = re.search(r"([+-]\d\d):?(\d\d)?$", zone)
    return f"{found[1]}:{found[2] or '00'}" if found else ""


@lru_cache(maxsize=8192)
def _context(before: str, between: str, after: str) -> tuple[str | None, str | None]:
    """Thread and job beside level and logger. The thread is before the logger."""
    thread = job = None
    for part in (before, between, after):
        for group in _groups(part):
            found = _JOB.fullmatch(group)
            if found:
                job = job or found[1]
            elif thread is None and part is not after and "=" not in group.partition(" ")[0]:
                thread = group
    return thread, job


def _groups(text: str) -> Iterator[str]:
    """The contents of the outermost brackets, and the words between them, without empty ones."""
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
                if inside := text[start:place].strip():
                    yield inside
                start = place + 1
    yield from text[start:].split()


LONGEST: Final = 1 << 20  # bytes of one line; Flink's longest are some kilobytes
_DETAIL: Final = 2000  # lines kept under one head
_JITTER: Final = timedelta(seconds=1)
"""Maximum disorder of timestamps between threads, in seconds."""
KEPT: Final = 1000  # problems of one kind in one file
SHOWN: Final = 5  # of these
MORE: Final = ", and so it is further down"


@dataclass(frozen=True, slots=True)
class Problem:
    """Data in a log that is unreadable or untrustworthy. `line` 0 means the file as a whole."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"

    @property
    def kind(self) -> str:
        """The description without the quoted line."""
        return self.text.partition(": ")[0]


class Problems(list[Problem]):
    """Problems in the order of discovery: of each file and kind the first `KEPT`, then one entry for the rest."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: Counter[tuple[str, str]] = Counter()

    def append(self, problem: Problem) -> None:
        """Adds a problem; drops it if its file already has more than `KEPT` + 1 of its kind."""
        key = problem.file, problem.kind
        self._counts[key] += 1
        if self._counts[key] <= KEPT:
            super().append(problem)
        elif self._counts[key] == KEPT + 1:
            super().append(Problem(problem.file, problem.line, f"{problem.kind}{MORE}"))


def problem_lines(problems: Iterable[Problem]) -> tuple[str, ...]:
    """The warnings to print: of each file and kind the first `SHOWN` problems, and the number of the others."""
    several: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        several.setdefault((problem.file, problem.kind.removesuffix(MORE)), []).append(problem)
    lines: list[str] = []
    for (file, kind), found in several.items():
        lines += map(str, found[:SHOWN])
        if len(found) > SHOWN:
            least = "at least " if len(found) > KEPT else ""
            lines.append(f"{file}: {kind}; and {least}{len(found) - SHOWN:,} more")
    return tuple(lines)


@dataclass(slots=True)
class Record:
    """One record of a log: its head, its position, and the continuation lines.

    `open_end` is the number of the record's last line if the file ends there without a line end, else None.
    """

    head: Head
    file: str
    line: int
    detail: list[str] = field(default_factory=list)
    open_end: int | None = None


def read_records(files: Iterable[tuple[str, Iterable[bytes]]], report: Callable[[Problem], None]) -> Iterator[Record]:
    """Records of one process, whose `files` (name, lines with their ends) are in the order of writing.

    A file may begin with continuation lines of the last record in the preceding file. Damage goes to `report`.
    """
    current: Record | None = None
    for name, lines in files:
        number, last = 0, b"\n"
        broken: tuple[int, str] | None = None
        for number, raw in enumerate(lines, 1):
            if not raw:
                continue  # a line of another process, or a part of one that was read before
            last = raw
            if broken is None and (usual := _usual_line(raw)) is not None:
                if current is not None:
                    yield current
                current = Record(usual, name, number)
                continue
            if raw == b"\n" and (current is None or len(current.detail) >= _DETAIL):
                continue
            text = cleaned(raw, name, number, report)
            if text is None:
                continue
            parts = text.split("\n")
            own = is_translated(text)
            # A collector may have put several lines into one; those after a translated head are its stack trace.
            for part in parts:
                head, line = read_head(part) if part is parts[0] or not own or is_translated(part) else None, number
                if broken is not None:
                    # A head that was wrapped: its message is on the next line.
                    begun, broken = broken, None
                    whole = None if head else read_head(f"{begun[1].rstrip()} {part.lstrip()}")
                    if whole is not None:
                        head, line = whole, begun[0]
                        current = None if current is not None and current.line == line else current
                    elif current is None or current.line != begun[0]:
                        _report_headless(name, *begun, report)
                if head is not None:
                    if current is not None:
                        yield current
                    later = second_head(part)
                    if later is not None:
                        cut = f"a line was cut and another one written into it: {_shortened(part)}"
                        report(Problem(name, number, cut))
                    current = Record(later or head, name, line)
                    broken = (line, part) if not current.head.message and len(parts) == 1 else None
                elif starts_like_head(part) and not own:
                    broken = number, part
                elif current is not None and len(current.detail) < _DETAIL:
                    current.detail.append(part)
        if broken is not None and (current is None or current.line != broken[0]):
            _report_headless(name, *broken, report)
        if current is not None and not last.endswith(b"\n"):
            current.open_end = number
            yield current
            current = None
    if current is not None:
        yield current


def _report_headless(name: str, number: int, text: str, report: Callable[[Problem], None]) -> None:
    report(Problem(name, number, f"the line has a time but no level and logger: {_shortened(text)}"))


@dataclass(slots=True)
class Clock:
    """Checks the times of one process, which do not define the order: invalid times and a clock that runs backwards are
    reported once."""

    report: Callable[[Problem], None]
    latest: str = ""
    odd: bool = False
    back: bool = False

    def look(self, record: Record) -> None:
        """Adds the time of one record."""
        ts = record.head.ts
        if ts >= self.latest and ts[5:7] <= "12" and ts[8:10] <= "31":
            self.latest = ts
            return
        if len(ts) < len("2026-11-21T03:17:55"):
            return  # without a date, midnight looks the same
        now = _moment(ts)
        if now is None:
            if not self.odd:
                self.report(Problem(record.file, record.line, f"{ts} is not a date and time"))
            self.odd = True
            return
        before = _moment(self.latest)
        if before is not None and not self.back and before - now > _JITTER:
            self.back = True
            text = f"the clock runs back from {self.latest} to {ts}; events keep the order of the lines"
            self.report(Problem(record.file, record.line, text))


def _moment(ts: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(ts)
    except ValueError:
        return None
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


def time_of(raw: bytes) -> str | None:
    """The time of the record with this head line, or None if the line is not a head."""
    text = raw.rpartition(b"\0")[2].decode(errors="replace").rstrip("\r\n")
    head = read_head(text)
    return None if head is None else head.ts


def plain_text(raw: bytes) -> str:
    """The text of a line as the process wrote it, without its end, colours and entities."""
    text = raw.decode(errors="replace").rstrip("\r\n").removeprefix("\ufeff")
    return unescaped(COLOUR.sub("", text) if "\x1b" in text else text)


def cleaned(raw: bytes, name: str, number: int, report: Callable[[Problem], None]) -> str | None:
    """The text of a line; None if no part of it can be trusted."""
    if len(raw) > LONGEST:
        report(Problem(name, number, f"the line has more than {LONGEST:,} bytes; the rest of it is skipped"))
        raw = raw[:LONGEST]
    if b"\0" in raw:
        report(Problem(name, number, "the line has zero bytes, as a crash or a truncated copy leaves them"))
        # Only the text after the zeros is known to be contiguous.
        raw = raw.rpartition(b"\0")[2]
        if not raw.strip():
            return None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        report(Problem(name, number, "the line has bytes that are not UTF-8 text"))
        text = raw.decode(errors="replace")
    text = text.rstrip("\r\n").removeprefix("\ufeff")
    return COLOUR.sub("", text) if "\x1b" in text else text


def _shortened(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."
