"""The log of a run: one event a line, as JSON, in the form that `streamproof validate` reads.

An event has `trace` (``job#attempt``, or the job for what belongs to no attempt), `process` (a subtask or the JobMaster),
`seq` (its number in the process), `clock` (its vector clock), `event`, `args`, `state` (what the process knows of its own).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from json import encoder as json_encoder
from pathlib import Path
from typing import Any, TypeAlias

Entry: TypeAlias = tuple[str, str, str, Mapping[str, Any], Mapping[str, Any], Mapping[str, int]]
"""Trace, process, event, arguments, state, clock."""

_chunks = json_encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, None, json_encoder.encode_basestring_ascii, None, ":", ",", False, False, True
)
"""The encoder of `json.JSONEncoder`, made once: its `encode` makes one at each call, which takes as long as an event."""


def _encode(value: Any) -> str:
    return "".join(_chunks(value, 0))


class Numbering:
    """Numbers the events of each process of each trace; what all its events begin with is encoded once."""

    def __init__(self) -> None:
        self._next: dict[tuple[str, str], int] = {}
        self._heads: dict[tuple[str, str], str] = {}

    def line(self, entry: Entry) -> str:
        """The line of an event, with its end."""
        trace, process, event, args, state, clock = entry
        key = trace, process
        head = self._heads.get(key)
        if head is None:
            head = self._heads[key] = f'{{"trace":{_encode(trace)},"process":{_encode(process)},"seq":'
        seq = self._next[key] = self._next.get(key, -1) + 1
        rest = {"args": args} if args else {}
        if clock:
            rest["clock"] = clock
        if state:
            rest["state"] = state
        return f'{head}{seq},"event":"{event}"{"," + _encode(rest)[1:] if rest else "}"}\n'


def lines(entries: Iterable[Entry]) -> Iterator[str]:
    """The lines of a log."""
    numbering = Numbering()
    return (numbering.line(entry) for entry in entries)


def digest(entries: Iterable[Entry]) -> str:
    """The SHA-256 of a log: equal for equal runs, in every process."""
    found = hashlib.sha256()
    for text in lines(entries):
        found.update(text.encode())
    return found.hexdigest()


class EventWriter:
    """Writes events to a new file. A killed process loses at most the event that it is writing, and those that were kept
    since the last one, after which nothing has left it."""

    def __init__(self, path: Path) -> None:
        """Raises `OSError`, also if there is a file."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._numbering = Numbering()
        self._kept: list[str] = []

    def write(self, entry: Entry) -> None:
        """Writes an event before anything that it sends can leave."""
        self._kept.append(self._numbering.line(entry))
        self.flush()

    def keep(self, entry: Entry) -> None:
        """An event that is written with the next one, or by `flush`, which is called before anything leaves."""
        self._kept.append(self._numbering.line(entry))

    def flush(self) -> None:
        """Writes the events that were kept."""
        text, self._kept = "".join(self._kept).encode(), []
        while text:
            text = text[os.write(self._file, text) :]

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)
