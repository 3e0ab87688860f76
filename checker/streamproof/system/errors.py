"""Errors that a user can cause or must know of, each with the exit code the command line ends with, and what was meant by
a name that does not exist.

The numbers are TLC's where TLC has one, so pipelines that read them keep working; the rest lie outside TLC's range.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import NoReturn

from streamproof.system.records import dataclass


class Exit(IntEnum):
    """Process exit codes (`DESIGN`: TLC's numbers where TLC has one)."""

    HOLDS = 0
    USAGE = 2
    DEADLOCK = 11
    SAFETY = 12
    LIVENESS = 13
    EVALUATION = 75
    INTERRUPTED = 130
    MALFORMED = 150
    TOO_LARGE = 152
    SYSTEM = 153
    INCONCLUSIVE = 160
    REJECTED = 161
    DISAGREE = 162


@dataclass(frozen=True, slots=True)
class Loc:
    """A place in a user's file: where an expression, action or event was written."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def short(self) -> str:
        """As short as it stays clear: from the package's folder, or else from the working folder."""
        return f"{_short(self.file, os.getcwd())}:{self.line}"


@lru_cache(maxsize=1024)
def _short(file: str, folder: str) -> str:
    # The package form does not depend on where the package is installed, so text files compare across machines.
    path = Path(file)
    top = path.parent
    while (top / "__init__.py").is_file():
        top = top.parent
    if top != path.parent:
        return path.relative_to(top).as_posix()
    if path.is_absolute() and path.is_relative_to(folder):
        return path.relative_to(folder).as_posix()
    return file


class StreamproofError(Exception):
    """Base of every error shown to a user as one sentence; `remedy` says what to do instead."""

    exit_code: Exit = Exit.SYSTEM

    def __init__(self, message: str, *, loc: Loc | None = None, remedy: str = "") -> None:
        self.message = message
        self.loc = loc
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        return self._text(f"{self.loc}: " if self.loc else "")

    @property
    def told(self) -> str:
        """As `str` gives it, with the place as short as it stays clear."""
        return self._text(f"{self.loc.short}: " if self.loc else "")

    def _text(self, where: str) -> str:
        then = f"\n  {self.remedy}" if self.remedy else ""
        return f"{where}{self.message}{then}"


class UsageError(StreamproofError):
    """An unknown name, option or value on the command line or in a call."""

    exit_code = Exit.USAGE


class InputError(UsageError):
    """A file given by the user that is missing, unreadable or not what it should be."""


class ModelError(StreamproofError):
    """The model is malformed: wrong sort, name clash, a construct that cannot be lowered."""

    exit_code = Exit.MALFORMED


class EvaluationError(StreamproofError):
    """A value left its domain, or a partial operation was applied outside its domain, while running the model."""

    exit_code = Exit.EVALUATION


class TooLarge(StreamproofError):
    """A state, a domain or an expansion is larger than this engine handles."""

    exit_code = Exit.TOO_LARGE


class SystemFailure(StreamproofError):
    """The environment failed: unwritable folder, missing tool, full disk."""

    exit_code = Exit.SYSTEM


class OutOfTime(StreamproofError):
    """A limit on time was met before anything was decided."""

    exit_code = Exit.INCONCLUSIVE


class Rejected(StreamproofError):
    """A certificate that does not show what it claims."""

    exit_code = Exit.REJECTED


def reject(why: str) -> NoReturn:
    """Raise `Rejected`."""
    raise Rejected(f"the certificate is rejected: {why}")


LONGEST_TEXT = 2000
"""Characters of an exception's text that are shown."""


def text_of(error: BaseException) -> str:
    """The text of somebody else's exception, shortened; empty where the exception has none that can be had."""
    try:
        text = str(error)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:
        return ""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ..."


CLOSE = 0.15
"""How much less alike than the best name another one may be that is offered beside it."""


def nearest(name: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Up to `most` of the names `known` that are like `name`, the best first; `cutoff` is how alike, from 0 to 1."""
    import difflib  # only mistakes need it

    return difflib.get_close_matches(name, list(known), n=most, cutoff=cutoff)


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """The question ``did you mean failover?`` with up to three names, each after `prefix`, or nothing."""
    names = list(known)
    near = nearest(name, names, 3, cutoff=0.6)
    if near:
        import difflib

        alike = [difflib.SequenceMatcher(None, n, name).ratio() for n in near]
        near = [n for n, ratio in zip(near, alike, strict=True) if ratio >= alike[0] - CLOSE]
    near += [n for n in names if name and name in n and n not in near][: 3 - len(near)]
    return f"did you mean {' or '.join(prefix + n for n in near)}?" if near else ""
