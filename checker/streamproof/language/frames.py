"""The user's source position, from the call stack or from the traceback of an exception in user code."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from streamproof.system.errors import Loc, ModelError, StreamproofError, UsageError
from streamproof.system.suggestions import nearest

T = TypeVar("T")

ORDINARY = "this is ordinary Python, run while the model is read"
STANDARD = str(Path(os.__file__).resolve().parent) + os.sep
GUARDED = str(Path(__file__).resolve().parent / "guarded.py")
"""The module that calls user functions on behalf of the user."""
PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep


def caller() -> Loc | None:
    """The position where user code called into streamproof, possibly through the standard library; None without such a
    frame."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((PACKAGE, "<")) and not is_standard(name):
            return Loc(name, frame.f_lineno, frame.f_code.co_name)
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def is_standard(file: str) -> bool:
    """Whether a file belongs to Python's standard library."""
    return file.startswith(STANDARD) and "site-packages" not in file


def is_ours() -> bool:
    """Whether the calling function's caller is part of streamproof, except where it runs a function passed to it."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == "<frozen abc>":  # isinstance() with an abstract class
        frame = frame.f_back
    name = "" if frame is None else frame.f_code.co_filename
    return name.startswith(PACKAGE) and name != GUARDED


def ordinary(run: Callable[[], T], what: str, home: Loc | None) -> T:
    """The result of running ordinary Python of the user; an exception becomes a `ModelError` at the user's line.

    `home` is the definition of that code: the error names the innermost line of its file in the traceback.
    """
    try:
        return run()
    except UsageError as error:
        if error.loc is not None:
            raise
        raise type(error)(error.message, loc=_line(error, home), remedy=error.remedy) from error
    except StreamproofError:
        raise
    except Exception as error:
        raise ModelError(
            f"{type(error).__name__} in {what}: {error}", loc=_line(error, home), remedy=_meant(error) or ORDINARY
        ) from error


def _line(error: Exception, home: Loc | None) -> Loc | None:
    """The innermost traceback line in the file of `home`."""
    loc, trace = home, error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if home is not None and code.co_filename == home.file:
            loc = Loc(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return loc


def _meant(error: Exception) -> str:
    """The attribute that an `AttributeError` probably meant."""
    if not isinstance(error, AttributeError) or error.name is None:
        return ""
    near = nearest(error.name, (n for n in dir(error.obj) if not n.startswith("_")))
    return f"did you mean {near[0]!r}?" if near else ""
