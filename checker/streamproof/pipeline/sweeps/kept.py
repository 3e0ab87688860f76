"""Records of points on disk, one a line, so that a sweep that was ended goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

from streamproof.pipeline.sweeps.deciding import SCHEMA, Record
from streamproof.system.errors import SystemFailure
from streamproof.system.files import open_own
from streamproof.system.records import dataclass

HEAD = "streamproof.sweep-points/1"


@dataclass(frozen=True, slots=True)
class Found:
    """What an earlier run left: records by key; `because`, where there was something that cannot be used, why."""

    records: Mapping[str, Record]
    because: str | None = None


def read_kept(path: Path, about: Mapping[str, Any]) -> Found:
    """The records in a file whose first line is `about`. Raises `SystemFailure` when it cannot be read."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return Found({})
    except OSError as failure:
        raise SystemFailure(f"{path} cannot be read: {failure.strerror or failure}") from failure
    head = _object(lines[0])
    if head is None or head.get("schema") != HEAD:
        return Found({}, "they are not readable")
    for name, value in about.items():
        if head.get(name) != value:
            return Found({}, f"they are of {name} {head.get(name)}, this is {name} {value}")
    records: dict[str, Record] = {}
    # What follows the last line break was cut off when the process died.
    for line in lines[1:-1]:
        record = _object(line)
        if record is not None and record.get("schema") == SCHEMA:
            records[record["key"]] = record
    return Found(records)


def _object(line: bytes) -> dict[str, Any] | None:
    with suppress(ValueError):
        found = json.loads(line)
        return found if isinstance(found, dict) else None
    return None


def kept_text(about: Mapping[str, Any], records: Iterable[Record]) -> str:
    """The file that `read_kept` reads."""
    lines = [json.dumps({"schema": HEAD, **about}), *map(json.dumps, records)]
    return "".join(f"{line}\n" for line in lines)


class Keeper:
    """Appends records to a file as they come; each is on disk before `keep` returns. Use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file: BinaryIO = open_own(path)
        except OSError as failure:
            raise SystemFailure(f"{path} cannot be written: {failure.strerror or failure}") from failure

    def keep(self, record: Record) -> None:
        """Write one record."""
        try:
            self._file.write(json.dumps(record).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as failure:
            raise SystemFailure(
                f"{self._path} cannot be written: {failure.strerror or failure}",
                remedy="make room, and start the same sweep again: it goes on where it was",
            ) from failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
