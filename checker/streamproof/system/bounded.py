"""Bounded reading of untrusted data: bounds on file size, unpacked size, nesting depth and number length.

A small file may unpack to more than the memory, and a few bytes of JSON may nest deeper than the stack.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from streamproof.system.byte_sizes import bytes_text
from streamproof.system.errors import InputError

MOST = 32_000_000
"""Maximum size of the evidence of a certificate, unpacked, in bytes."""
NESTING = 500
"""Maximum nesting depth of lists and objects."""
CONTAINERS = 1 << 21
"""Maximum number of lists and objects in one text; each takes about fifty bytes of memory, and three of the text."""
DIGITS = 300
"""Maximum number of digits of one number."""
LINE = 1 << 24
"""Maximum length of a log line, in bytes."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]|[0-9]{' + str(DIGITS + 1) + "}", re.DOTALL)


class Excess(ValueError):
    """Data beyond a bound, or invalid in a JSON text; `at`: the position in the text, if known."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.at = at


def read_regular(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes. Raises `InputError`."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                raise InputError(f"{path} is a folder", remedy="name a file in it")
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise InputError(f"{path} is not a regular file", remedy="name a file")
            data = file.read(most + 1)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist", remedy="check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder", remedy="name a file in it") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > most:
        raise InputError(f"{path} is larger than {bytes_text(most)}, which is the limit")
    return data


def unpacked(data: bytes, most: int) -> bytes:
    """The unpacked content of xz data. Raises `Excess` beyond `most` bytes, and `lzma.LZMAError`."""
    reader = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=1 << 27)
    found = reader.decompress(data, max_length=most + 1)
    if len(found) > most:
        raise Excess(f"unpacked it is larger than {bytes_text(most)}; --unpacked SIZE moves this limit")
    if not reader.eof or reader.unused_data:
        raise lzma.LZMAError("the compressed data is incomplete, or goes on behind its end")
    return found


def parts_of(data: bytes, most: int) -> tuple[bytes, bytes]:
    """The first line of data, and the unpacked content of the xz data after it; raises as `unpacked`."""
    head, _, packed = data.partition(b"\n")
    return head, unpacked(packed, most)


def parsed(text: str) -> Any:
    """The value of a JSON text without duplicate keys. Raises `Excess` and other `ValueError`."""
    depth = containers = 0
    for token in _TOKEN.finditer(text):
        match token[0][0]:
            case "[" | "{":
                depth, containers = depth + 1, containers + 1
                if depth > NESTING:
                    raise Excess(
                        f"lists and objects are nested deeper than {NESTING}, which is the limit", token.start()
                    )
            case "]" | "}":
                depth -= 1
            case '"':
                pass
            case _:
                raise Excess(f"a number has more than {DIGITS} digits, which is the limit", token.start())
    if containers > CONTAINERS:
        raise Excess(f"it has more than {CONTAINERS:,} lists and objects, which is the limit")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except _Twice as twice:
        places = [found.start() for found in re.finditer(rf"{re.escape(json.dumps(twice.key))}\s*:", text)]
        # With duplicates, the intended value is ambiguous.
        raise Excess(str(twice), places[-1] if len(places) == 2 else None) from None


class _Twice(Exception):
    """A duplicate key in an object."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key!r} occurs twice in one object")
        self.key = key


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for at, name in enumerate(names) if name in names[:at]))
    return found


def _refuse(constant: str) -> None:
    raise Excess(f"{constant} is not a JSON number")


def malformed(error: Exception) -> str:
    """The message for data that could not be read because of `error`: a description for exceeded bounds, else its kind."""
    if isinstance(error, Excess):
        return str(error)
    kinds: list[tuple[type[Exception], str]] = [
        (KeyError, "it names a missing entry"),
        (lzma.LZMAError, "its evidence does not unpack"),
        (IndexError, "a number in it is out of range"),
        (ValueError, "a part of it has another form"),
    ]
    other = "a part of it has another type"
    return "it is malformed: " + next((why for kind, why in kinds if isinstance(error, kind)), other)


class _Lines(Protocol):
    """A binary stream, compressed or not."""

    def readline(self, size: int, /) -> bytes: ...


def bounded_lines(stream: _Lines, most: int = LINE) -> Iterator[bytes]:
    """The lines of a stream with their ends; of a line longer than `most`, the first `most` + 1 bytes."""
    while part := stream.readline(most + 1):
        rest = part
        while len(rest) > most and not rest.endswith(b"\n"):
            rest = stream.readline(most + 1)
        cut = len(part) > most and not part.endswith(b"\n")
        yield part + b"\n" if cut and rest.endswith(b"\n") else part
