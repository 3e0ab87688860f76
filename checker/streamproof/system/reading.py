"""Reading of regular files, and of JSON with a given shape; errors name the line."""

from __future__ import annotations

import json
import reprlib
import stat
from pathlib import Path
from typing import Any, TypeAlias

from streamproof.system.bounded import Excess, parsed, read_regular
from streamproof.system.errors import InputError, Loc

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
        case _:
            return f"not JSON: {error}"
