"""Reading what users give: files that have an end, unlike pipes and devices, and JSON; errors that name the line."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

from streamproof.system.bounded import CONTAINERS
from streamproof.system.errors import InputError, Loc

DIGITS = 4300
"""Digits of an integer that Python reads."""
TOO_LONG = f"an integer has more than {DIGITS:,} digits"
_DEEP = 200
"""Brackets within each other in JSON that surely nests too deeply; Python reads some more."""


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
    """Raises `InputError` for a path that is no regular file."""
    why = why_no_file(Path(path))
    if why:
        raise InputError(f"{path} {why}", remedy=remedy)


def parse_json(text: str, file: str, remedy: str = "") -> Any:
    """The value of a JSON text, in which no object may have a key twice. Raises `InputError`, with the line if possible."""
    text = text.removeprefix("\ufeff")
    if text.count("[") + text.count("{") > CONTAINERS:
        raise InputError(f"{file}: more than {CONTAINERS:,} lists and objects, which is the limit", remedy=remedy)
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_int=_number)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", loc=Loc(file, error.lineno), remedy=remedy) from None
    except RecursionError:
        raise InputError("values are nested too deeply", loc=Loc(file, _deepest(text)), remedy=remedy) from None
    except _Refused as error:
        found = list(re.finditer(error.pattern, text))
        if len(found) != error.occurs:  # it is not clear which one is meant
            raise InputError(f"{file}: {error}", remedy=remedy) from None
        line = text.count("\n", 0, found[-1].start()) + 1
        raise InputError(str(error), loc=Loc(file, line), remedy=remedy) from None


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


class _Refused(Exception):
    """A value that is JSON, and not accepted; `pattern` finds it in the text, in a short one so many times."""

    def __init__(self, message: str, pattern: str, occurs: int) -> None:
        super().__init__(message)
        self.pattern, self.occurs = pattern, occurs


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise _Refused(f"the key {twice!r} occurs twice in one object", rf'"{re.escape(twice)}"\s*:', 2)
    return found


def _number(digits: str) -> int:
    if len(digits) > DIGITS:
        raise _Refused(TOO_LONG, rf"\d{{{DIGITS + 1},}}", 1)
    return int(digits)


def _deepest(text: str) -> int:
    """The line at which brackets are nested so deeply that this is the reason why a text cannot be read."""
    depth = 0
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[{\]}]', text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > _DEEP:
            return text.count("\n", 0, found.start()) + 1
    return 1
