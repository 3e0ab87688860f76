"""Stored records of points, one per line, so that an interrupted sweep resumes."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamproof.base.errors import SystemFailure
from streamproof.base.files import open_own
from streamproof.base.reading import MOST, Shape, json_problem, misfit, parsed, read_regular
from streamproof.model_registry import Target
from streamproof.sweep.deciding import SHAPE, Record

HEAD = "streamproof.sweep-points/1"


def read_kept(path: Path, about: Mapping[str, Any]) -> tuple[dict[str, Record], str]:
    """The records by key in a file whose first line is `about`; and why part of it is unusable, if so.

    Raises `InputError` if it cannot be read.
    """
    if not os.path.lexists(path):
        return {}, ""
    lines = read_regular(path, MOST).split(b"\n")
    head, why = _object(lines[0], {"schema": frozenset({HEAD})})
    if why:
        return {}, f"they are not readable: {why}"
    for name, value in about.items():
        if head.get(name) != value:
            return {}, f"they are of {name} {head.get(name)}, this is {name} {value}"
    records: dict[str, Record] = {}
    # A last line without line break was truncated when the process died.
    for number, line in enumerate(lines[1:-1], 2):
        record, wrong = _object(line, SHAPE)
        if wrong:
            why = why or f"the one on line {number} is damaged: {wrong}"
        else:
            records[record["key"]] = record
    return records, why


def _object(line: bytes, shape: Shape) -> tuple[dict[str, Any], str]:
    """An object of this shape; otherwise the reason why the line is invalid."""
    try:
        found = parsed(line.decode())
    except ValueError as error:
        return {}, json_problem(error)
    return found, misfit(found, shape)


def kept_text(about: Mapping[str, Any], records: Iterable[Record]) -> str:
    """The file that `read_kept` reads."""
    return "".join(f"{json.dumps(one)}\n" for one in ({"schema": HEAD, **about}, *records))


@contextmanager
def keeping(path: Path) -> Iterator[Callable[[Record], None]]:
    """Appends records to a file; each is on disk before the call returns. Raises `SystemFailure`."""
    with _written(path):
        file = open_own(path)
    with file:

        def keep(record: Record) -> None:
            with _written(path, "make room, and start the same sweep again: it goes on where it was"):
                file.write(json.dumps(record).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())

        yield keep


@contextmanager
def _written(path: Path, remedy: str = "") -> Iterator[None]:
    try:
        yield
    except OSError as failure:
        raise SystemFailure(f"{path} cannot be written: {failure.strerror or failure}", remedy=remedy) from failure


def source_of(target: Target) -> str | None:
    """A hash of every file of the packages of a model and its properties, and of the checker.

    While it is unchanged, so are the records. None for a model outside a package: a file may import anything.
    """
    spec = target.spec
    classes = (spec.model, *spec.model.variants.values())
    modules = {cls.__module__ for one in classes for cls in one.__mro__[:-1]}
    modules |= {function.__module__ for function in spec.properties} | {"streamproof"}
    hashed = hashlib.sha256()
    for package in sorted({module.partition(".")[0] for module in modules}):
        folders = getattr(sys.modules[package], "__path__", None)
        if folders is None:
            return None
        for file in sorted(file for folder in folders for file in Path(folder).rglob("*.py")):
            hashed.update(str(file).encode())
            hashed.update(file.read_bytes())
    return hashed.hexdigest()
