"""Records of points on disk, one a line, so that a sweep that was ended goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

from streamproof.pipeline.sweeps.deciding import SHAPE, Record
from streamproof.system.bounded import parsed, read_regular
from streamproof.system.errors import SystemFailure
from streamproof.system.files import open_own
from streamproof.system.reading import MOST, Shape, json_problem, misfit
from streamproof.system.records import dataclass

HEAD = "streamproof.sweep-points/1"


@dataclass(frozen=True, slots=True)
class Found:
    """What an earlier run left: records by key; `because`, where there was something that cannot be used, why."""

    records: Mapping[str, Record]
    because: str | None = None


def read_kept(path: Path, about: Mapping[str, Any]) -> Found:
    """The records in a file whose first line is `about`. Raises `InputError` when it cannot be read."""
    if not os.path.lexists(path):
        return Found({})
    lines = read_regular(path, MOST).split(b"\n")
    head, why = _object(lines[0], {"schema": frozenset({HEAD})})
    if why:
        return Found({}, f"they are not readable: {why}")
    for name, value in about.items():
        if head.get(name) != value:
            return Found({}, f"they are of {name} {head.get(name)}, this is {name} {value}")
    records: dict[str, Record] = {}
    # What follows the last line break was cut off when the process died.
    for number, line in enumerate(lines[1:-1], 2):
        record, wrong = _object(line, SHAPE)
        if wrong:
            why = why or f"the one on line {number} is damaged: {wrong}"
        else:
            records[record["key"]] = record
    return Found(records, why or None)


def _object(line: bytes, shape: Shape) -> tuple[dict[str, Any], str]:
    """An object of this shape, and why a line is none."""
    try:
        found = parsed(line.decode())
    except ValueError as error:
        return {}, json_problem(error)
    return found, misfit(found, shape)


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
