"""The user's code: its files and modules are run here, and its exceptions become errors at the user's line."""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import sys
import types
from contextlib import suppress
from pathlib import Path

from streamproof import interrupts
from streamproof.base.errors import InputError, Loc, ModelError, StreamproofError, UsageError, text_of
from streamproof.base.reading import MOST, TOO_LONG, expect_file, read_regular
from streamproof.base.text import code_of_others
from streamproof.entries import admit
from streamproof.interrupts import TimeUp

LONGEST_LINE = 120
"""Largest number of characters of a source line in a message."""
_files: dict[str, tuple[bytes, types.ModuleType | StreamproofError | None]] = {}
"""The files that were run, each with its text, and its module or the error that ended it."""


def import_file(path: Path) -> types.ModuleType:
    """The module of a user's file, which runs once in a command; it can import modules of its folder (`entries.admit`).

    Compiled here, not by the import system, whose cache misses edits within the same second.
    """
    expect_file(path)

    full = os.path.abspath(path)
    source = read_regular(Path(full), MOST)
    known, outcome = _files.get(full, (b"", None))
    if outcome is None or known != source or full not in code_of_others:
        try:
            outcome = _run_file(path, full, source)
        except (InputError, ModelError, UsageError) as error:
            outcome = error
        _files[full] = source, outcome
    if isinstance(outcome, StreamproofError):
        raise outcome
    return outcome


def _run_file(path: Path, full: str, source: bytes) -> types.ModuleType:
    """Run the text of a user's file as a module with a unique name. Raises `InputError` or `ModelError`."""
    import hashlib

    name = f"streamproof_file_{path.stem}_{hashlib.sha256(full.encode()).hexdigest()[:12]}"
    module = types.ModuleType(name)
    module.__file__ = full
    sys.modules[name] = module
    admit(name, os.path.dirname(full))
    process = os.getpid()
    code_of_others.append(full)
    try:
        exec(_compiled(path, full, source), vars(module))
        if os.getpid() != process:  # a fork of this process by the user's file: only the original continues
            os._exit(0)
    except StreamproofError:
        raise
    except (KeyboardInterrupt, TimeUp):
        raise
    except BaseException as error:
        raise error_of_user(error, full) from error
    finally:
        interrupts.handle()
    return module


def _compiled(path: Path, full: str, source: bytes) -> types.CodeType:
    """The code of a Python file with the full name `full`. Raises `InputError` or `ModelError`."""
    try:
        source.decode("utf-8")
    except UnicodeDecodeError as error:
        try:
            importlib.util.decode_source(source)
        except (SyntaxError, UnicodeDecodeError):
            raise InputError(
                f"{path} is not UTF-8 text: byte {error.start} is {source[error.start]:#x}",
                remedy="store it as UTF-8, or name its encoding in the first line",
            ) from None
    try:
        return compile(source, full, "exec", dont_inherit=True)
    except (RecursionError, MemoryError):
        raise ModelError(
            "an expression is nested too deeply for Python",
            loc=Loc(full, _longest(source)),
            remedy="give its parts names, or write a sum, a conjunction or a lookup over a list",
        ) from None


def _longest(source: bytes) -> int:
    """The first line of the statement with the most tokens: the one nested too deeply."""
    import tokenize

    counts: dict[int, int] = {}
    first = 0
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            first = first or token.start[0]
            counts[first] = counts.get(first, 0) + 1
            if token.type == tokenize.NEWLINE:
                first = 0
    return max(counts, key=lambda line: counts[line], default=1)


def import_module(name: str) -> types.ModuleType:
    """A module of the working folder or an installed package. Raises `InputError` or `ModelError`."""
    admit(name, os.getcwd())
    code_of_others.append(name)
    try:
        return importlib.import_module(name)
    except StreamproofError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(
                f"no module named {error.name}",
                remedy=f"searched the working folder {os.getcwd()} and the installed packages",
            ) from None
        raise error_of_user(error) from error
    except (KeyboardInterrupt, TimeUp):
        raise
    except BaseException as error:
        raise error_of_user(error) from error


def error_of_user(error: BaseException, file: str | None = None) -> ModelError:
    """The model error for an exception of the user's code, at the user's line."""
    if isinstance(error, SyntaxError):
        place = Loc(error.filename or file or "?", error.lineno or 1)
        if _is_too_long(error):
            return ModelError(TOO_LONG, loc=place, remedy="write a smaller one")
        shown = (error.text or "").strip()
        shown = shown if len(shown) <= LONGEST_LINE else f"{shown[:LONGEST_LINE]} ..."
        text = f"\n    {shown}" if shown else ""
        return ModelError(f"{type(error).__name__}: {error.msg}{text}", loc=place, remedy="correct the file")
    loc = _users_line(error) or (Loc(file, 1) if file else None)
    if _is_too_long(error):
        return ModelError(TOO_LONG, loc=loc, remedy="compute with smaller ones")
    if isinstance(error, SystemExit):
        return ModelError("the file ends the program while it is imported", loc=loc, remedy="guard its script part")
    remedy = "correct the model"
    if isinstance(error, NameError) and error.name in sys.modules["streamproof"].__all__:
        remedy = f"add it to the names imported from streamproof: from streamproof import {error.name}"
    return ModelError(f"{type(error).__name__}: {text_of(error)}", loc=loc, remedy=remedy)


def _is_too_long(error: BaseException) -> bool:
    """Whether Python rejects the conversion of an integer because of its length."""
    return isinstance(error, ValueError | SyntaxError) and "for integer string conversion" in text_of(error)


def _users_line(error: BaseException) -> Loc | None:
    """The innermost line of the traceback outside of streamproof and the standard library."""
    import sysconfig

    own = os.path.dirname(os.path.abspath(__file__)) + os.sep
    library = sysconfig.get_path("stdlib") + os.sep
    found = None
    at = error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        standard = file.startswith("<") or (file.startswith(library) and "site-packages" not in file)
        if not file.startswith(own) and not standard:
            found = Loc(file, at.tb_lineno, at.tb_frame.f_code.co_name)
        at = at.tb_next
    return found
