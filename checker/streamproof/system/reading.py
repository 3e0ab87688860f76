"""Reading files: those that have an end, unlike pipes and devices, and JSON of a given shape; errors that name the line."""

from __future__ import annotations

import json
import reprlib
import stat
from pathlib import Path
from typing import Any, TypeAlias

from streamproof.system.bounded import Excess, parsed, read_regular
from streamproof.system.errors import InputError, Loc

DIGITS = 4300
"""Digits of an integer that Python reads."""
TOO_LONG = f"an integer has more than {DIGITS:,} digits"
MOST = 1 << 30
"""Bytes of a file."""
WHOLE = "the whole"
"""What messages call a value that is not within another one."""


def why_no_file(path: Path) -> str:
    """Why a path is no regular file, as the end of a sentence; empty for one that is."""
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
    """Raises `InputError` for a path that is no regular file, or has a name that no message and no trace could show."""
    expect_unicode(str(path))
    why = why_no_file(Path(path))
    if why:
        raise InputError(f"{path} {why}", remedy=remedy)


def expect_unicode(path: str) -> None:
    """Raises `InputError` for a path that tables, traces and pages, which are UTF-8, cannot name."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InputError(f"{path!r}: this file name is not valid UTF-8", remedy="rename the file") from None


def read_text(path: Path, most: int = MOST) -> str:
    """The text of a UTF-8 file of at most so many bytes. Raises `InputError` when there is none to read."""
    try:
        return read_regular(path, most).decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#x}") from None


def read_json(path: Path, shape: Shape, remedy: str = "", most: int = MOST) -> Any:
    """The value in a JSON file of at most so many bytes, which has a shape. Raises `InputError`."""
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
"""What JSON data looks like: a type (whole numbers are `float` too), a range of whole numbers, some texts, None, a list of
things of one shape or of as many as it has shapes, an object with at least these keys or (key `str`) with any, or a tuple
of alternatives."""


def misfit(value: Any, shape: Shape, at: str = WHOLE) -> str:
    """What in JSON data has another shape than it should, as a sentence; empty where all has."""
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
    """What `json.loads` found wrong, as the end of a sentence: "the line is ..."."""
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
