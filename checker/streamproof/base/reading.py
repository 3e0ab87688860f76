"""Bounded reading of untrusted data: regular files, JSON with a given shape, and errors that name the line.

Bounds on file size, unpacked size, nesting depth and number length: a small file may unpack to more than the memory, and a
few bytes of JSON may nest deeper than the stack.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import reprlib
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

from streamproof.base.errors import InputError, Loc
from streamproof.base.options import bytes_text, setting

MOST_EVIDENCE = 32_000_000
"""Maximum size of the evidence of a certificate, unpacked, in bytes."""
NESTING = 500
"""Maximum nesting depth of lists and objects."""
CONTAINERS = 1 << 21
"""Maximum number of lists and objects in one text; each takes about fifty bytes of memory, and three of the text."""
NUMBER_DIGITS = 300
"""Maximum number of digits of one number."""
BLANK_LINES = 1_000_000
"""Maximum number of successive empty lines of a log."""
NOT_REGULAR = "it is not a regular file"
LINE = 1 << 24
"""Maximum length of a log line, in bytes."""
REPORTED = 1 << 23
"""Number of bytes between two reports of how much of a file was read."""

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]|[0-9]{' + str(NUMBER_DIGITS + 1) + "}", re.DOTALL)


class Excess(ValueError):
    """Data beyond a bound, or invalid in a JSON text; `at`: the position in the text, if known."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.at = at


class _Regular(io.FileIO):
    """A file that never waits for data: reading fails where a file of the kernel, such as /proc/kmsg, has none now."""

    def __init__(self, handle: int, path: str) -> None:
        super().__init__(handle)
        self._path = path

    def readinto(self, buffer: Any, /) -> int:
        """As usual, but an `OSError` instead of None."""
        return cast(int, self._expect(super().readinto(buffer)))

    def read(self, size: int | None = -1, /) -> bytes:
        """As usual, but an `OSError` instead of None."""
        return cast(bytes, self._expect(super().read(size)))

    def readall(self) -> bytes:
        """As usual, but an `OSError` instead of None."""
        return cast(bytes, self._expect(super().readall()))

    def _expect(self, found: Any) -> Any:
        if found is None:
            raise OSError(errno.EAGAIN, "no data now: it is not a regular file", self._path)
        return found


def open_regular(path: Path | str) -> io.BufferedReader:
    """A regular file, opened. Raises `OSError` for anything else, such as a pipe, without waiting for it."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return io.BufferedReader(_Regular(handle, str(path)))
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, NOT_REGULAR, str(path))


def read_regular(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes. Raises `InputError`."""
    try:
        with open_regular(path) as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist", remedy="check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder", remedy="name a file in it") from None
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.EINVAL and getattr(error, "strerror", None) == NOT_REGULAR:
            raise InputError(f"{path} is not a regular file", remedy="name a file") from None
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > most:
        raise InputError(f"{path} is larger than {bytes_text(most)}, which is the limit")
    return data


def parsed(text: str, *, whole: bool = False) -> Any:
    """The value of a JSON text without duplicate keys. Raises `Excess` and other `ValueError`.

    `whole`: also for a number that is not written as an integer, such as 1.0, which equals 1 in Python.
    """
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
                raise Excess(f"a number has more than {NUMBER_DIGITS} digits, which is the limit", token.start())
    if containers > CONTAINERS:
        raise Excess(f"it has more than {CONTAINERS:,} lists and objects, which is the limit")
    try:
        fractions = _refuse_fraction if whole else None
        return json.loads(text, object_pairs_hook=unique, parse_constant=_refuse, parse_float=fractions)
    except _Twice as twice:
        places = [found.start() for found in re.finditer(rf"{re.escape(json.dumps(twice.key))}\s*:", text)]
        raise Excess(str(twice), places[-1] if len(places) == 2 else None) from None


class _Twice(ValueError):
    """A duplicate key in an object."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key!r} occurs twice in one object")
        self.key = key


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these keys and values, for `json.loads`. Raises a `ValueError` for a key that occurs twice, because the
    intended value is ambiguous."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for at, name in enumerate(names) if name in names[:at]))
    return found


def _refuse_fraction(number: str) -> None:
    raise Excess(f"{number} is not written as an integer")


def _refuse(constant: str) -> None:
    raise Excess(f"{constant} is not a JSON number")


class Lines(Protocol):
    """A binary stream, compressed or not."""

    def readline(self, size: int, /) -> bytes:
        """A line with its end, or its first `size` bytes; empty at the end of the stream."""


def with_progress(listener: Callable[[str], None] | None) -> AbstractContextManager[None]:
    """Within it, `listener` receives a line of progress for each `REPORTED` bytes that are read of a log or an archive."""
    return setting(_listener, listener)


def bytes_read(doing: str, name: str, size: int, added: int) -> None:
    """Reports that `size` unpacked bytes of a file were read, the last `added` of them now."""
    listener = _listener.get()
    if listener is not None and name and size // REPORTED > (size - added) // REPORTED:
        listener(f"{doing} {name}: {size // 10**6:,} MB of unpacked data")


def bounded_lines(stream: Lines, name: str = "", most: int = LINE) -> Iterator[bytes]:
    """The lines of a stream with their ends; of a line longer than `most`, the first `most` + 1 bytes. With the `name` of a
    file, its progress is reported.

    Raises `Excess` for more than `BLANK_LINES` empty lines in a row: a small compressed file may have billions.
    """
    blank = size = 0
    while part := stream.readline(most + 1):
        size += len(part)
        bytes_read("reading", name, size, len(part))
        blank = blank + 1 if part == b"\n" else 0
        if blank > BLANK_LINES:
            raise Excess(f"more than {BLANK_LINES:,} empty lines in a row, which is the limit")
        rest = part
        while len(rest) > most and not rest.endswith(b"\n"):
            rest = stream.readline(most + 1)
            size += len(rest)
            bytes_read("reading", name, size, len(rest))
        cut = len(part) > most and not part.endswith(b"\n")
        yield part + b"\n" if cut and rest.endswith(b"\n") else part


DIGITS = 4300
"""Maximum number of digits of an integer."""
TOO_LONG = f"an integer has more than {DIGITS:,} digits"
MOST = 1 << 30
"""Maximum file size in bytes."""
WHOLE = "the whole"
"""The name of the root value in messages."""


def why_no_file(path: Path) -> str:
    """Why a path is not a regular file, as the end of a sentence; empty if it is one."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "is a link to a file that does not exist" if path.is_symlink() else "does not exist"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except ValueError:  # a zero byte in the name
        return "does not exist"
    if stat.S_ISREG(mode):
        return ""
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return f"is {next((name for test, name in kinds if test(mode)), 'a device')}"


def expect_file(path: Path | str, remedy: str = "check the path") -> None:
    """Raises `InputError` for a path that is not a regular file, or whose name is not printable."""
    expect_unicode(str(path))
    why = why_no_file(Path(path))
    if why:
        raise InputError(f"{path} {why}", remedy=remedy)


def expect_unicode(path: str) -> None:
    """Raises `InputError` for a path whose name is not UTF-8, as tables, traces and pages require."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InputError(f"{path!r}: this file name is not valid UTF-8", remedy="rename the file") from None


def read_text(path: Path, most: int = MOST) -> str:
    """The text of a UTF-8 file of at most `most` bytes. Raises `InputError`."""
    try:
        return read_regular(path, most).decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#x}") from None


def read_piped(most: int = MOST) -> str:
    """The text of standard input, of at most `most` characters. Raises `InputError`."""
    text = sys.stdin.read(most + 1)
    if len(text) > most:
        raise InputError(f"standard input is larger than {bytes_text(most)}, which is the limit")
    return text


def read_json(path: Path, shape: Shape, remedy: str = "", most: int = MOST) -> Any:
    """The value in a JSON file of at most `most` bytes, checked against a shape. Raises `InputError`."""
    found = parse_json(read_text(path, most), str(path), remedy)
    why = misfit(found, shape)
    if why:
        raise InputError(f"{path}: {why}", remedy=remedy)
    return found


def parse_json(text: str, file: str, remedy: str = "") -> Any:
    """The value of a JSON text, within the bounds of `parsed`. Raises `InputError`, with the line if possible."""
    text = text.removeprefix("\ufeff")
    try:
        return parsed(text)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", loc=Loc(file, error.lineno), remedy=remedy) from None
    except Excess as error:
        if error.at is None:
            raise InputError(f"{file}: {error}", remedy=remedy) from None
        raise InputError(str(error), loc=Loc(file, text.count("\n", 0, error.at) + 1), remedy=remedy) from None


Shape: TypeAlias = Any
"""The shape of JSON data: a type (`float` includes whole numbers), a range of whole numbers, a set of texts, None, a
list with one shape for all elements or one per element, an object with at least the given keys (or, with key `str`, any
keys), or a tuple of alternatives."""


def misfit(value: Any, shape: Shape, at: str = WHOLE) -> str:
    """The first mismatch between JSON data and a shape, as a sentence; empty if it matches."""
    wrong = f"{at} has an unexpected value: {reprlib.repr(value)}"
    match shape:
        case tuple():
            found = [misfit(value, one, at) for one in shape]
            return "" if "" in found else next((why for why in found if why != wrong), wrong)
        case list() if isinstance(value, list) and len(shape) in (1, len(value)):
            shapes = shape if len(shape) > 1 else shape * len(value)
            found = [misfit(one, shapes[i], f"{at}[{i}]") for i, one in enumerate(value)]
            return next(filter(None, found), "")
        case dict() if isinstance(value, dict):
            if str in shape:
                shape = dict.fromkeys(value, shape[str])
            missing = next((key for key in shape if key not in value), None)
            if missing is not None:
                return f"{missing} is missing" if at == WHOLE else f"{at}.{missing} is missing"
            found = [misfit(value[key], one, key if at == WHOLE else f"{at}.{key}") for key, one in shape.items()]
            return next(filter(None, found), "")
        case range():
            return "" if type(value) is int and value in shape else wrong
        case frozenset():
            return "" if isinstance(value, str) and value in shape else wrong
        case None:
            return "" if value is None else wrong
        case type():
            kinds = (int, float) if shape is float else shape
            return "" if isinstance(value, kinds) and (shape is bool or not isinstance(value, bool)) else wrong
    return wrong


def json_problem(error: Exception) -> str:
    """The error found by `json.loads`, as the end of a sentence: "the line is ..."."""
    match error:
        case UnicodeDecodeError():
            return "not UTF-8 text"
        case json.JSONDecodeError():
            return f"not one JSON value: {error.msg} at column {error.colno}"
        case RecursionError():
            return "nested too deeply"
        case _ if "for integer string conversion" in str(error):
            return f"not accepted: {TOO_LONG}"
        case _Twice():
            return f"not accepted: {error}"
        case _:
            return f"not JSON: {error}"
