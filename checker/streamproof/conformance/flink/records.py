"""From bytes to log records: heads, the lines that belong to them, and damage.

A record is a head and the lines up to the next head: a stack trace, a table of slots. Damage is never fatal. What cannot
be trusted (bytes that are not text, zeros left by a crash, a line cut short) becomes a `Problem` with file and line, and
reading goes on with what follows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from streamproof.conformance.flink.heads import Head, read_head, second_head, starts_like_head

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
LONGEST: Final = 1 << 20  # bytes of one line; Flink's longest are some kilobytes
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
    """One record of a log: its head, where it stands, and the lines under it.

    `open_end` is the number of the record's last line if the file ends there without ending the line, else None.
    """

    head: Head
    file: str
    line: int
    detail: list[str] = field(default_factory=list)
    open_end: int | None = None


def read_records(files: Iterable[tuple[str, Iterable[bytes]]], report: Callable[[Problem], None]) -> Iterator[Record]:
    """Records of one process, whose `files` (name, lines with their ends) come in the order of writing.

    A file may begin with lines that belong to the last record of the file before. Damage goes to `report`.
    """
    current: Record | None = None
    for name, lines in files:
        number, raw = 0, b"\n"
        for number, raw in enumerate(lines, 1):
            text = _clean(raw, name, number, report)
            if text is None:
                continue
            head = read_head(text)
            if head is not None:
                if current is not None:
                    yield current
                later = second_head(text)
                if later is not None:
                    report(Problem(name, number, f"a line was cut and another one written into it: {_shown(text)}"))
                current = Record(later or head, name, number)
            elif starts_like_head(text):
                report(Problem(name, number, f"the line has a time but no level and logger: {_shown(text)}"))
            elif current is not None and len(current.detail) < _DETAIL:
                current.detail.append(text)
        if current is not None and not raw.endswith(b"\n"):
            current.open_end = number
            yield current
            current = None
    if current is not None:
        yield current


def time_of(raw: bytes) -> str | None:
    """Time of the record whose head is this line, or None if the line is no head."""
    head = read_head(raw.rpartition(b"\0")[2].decode(errors="replace").rstrip("\r\n"))
    return None if head is None else head.ts


def _clean(raw: bytes, name: str, number: int, report: Callable[[Problem], None]) -> str | None:
    """The text of a line; None if nothing in it can be trusted."""
    if len(raw) > LONGEST:
        report(Problem(name, number, f"the line has more than {LONGEST:,} bytes; only so many are read"))
        raw = raw[:LONGEST]
    if b"\0" in raw:
        report(Problem(name, number, "the line has zero bytes, as a crash or a truncated copy leaves them"))
        # Only what follows the zeros is known to be in one piece.
        raw = raw.rpartition(b"\0")[2]
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
