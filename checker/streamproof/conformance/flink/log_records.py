"""Parsing of bytes to log records: heads, their continuation lines, and damage.

A record is a head and the lines up to the next head: a stack trace, a table of slots. Damage is never fatal.
Untrustworthy data (bytes that are not text, zeros left by a crash, a truncated line) becomes a `Problem` with file and
line, and reading continues after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from streamproof.conformance.flink.collectors import COLOUR
from streamproof.conformance.flink.log_lines import Head, read_head, second_head, starts_like_head, unescaped

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
        number, ended = 0, True
        for number, raw in enumerate(lines, 1):
            if not raw:
                continue  # a line of another process, or a part of one that was read before
            ended = raw.endswith(b"\n")
            if raw == b"\n" and (current is None or len(current.detail) >= _DETAIL):
                continue
            text = cleaned(raw, name, number, report)
            if text is None:
                continue
            text, *further = text.split("\n", _DETAIL)
            head = read_head(text)
            if head is not None:
                if current is not None:
                    yield current
                later = second_head(text)
                if later is not None:
                    report(Problem(name, number, f"a line was cut and another one written into it: {_shortened(text)}"))
                current = Record(later or head, name, number, further[:_DETAIL])
            elif starts_like_head(text):
                report(Problem(name, number, f"the line has a time but no level and logger: {_shortened(text)}"))
            elif current is not None and len(current.detail) < _DETAIL:
                current.detail.append(text)
        if current is not None and not ended:
            current.open_end = number
            yield current
            current = None
    if current is not None:
        yield current


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
