"""Errors shown to users, each with the exit code of the command line, and suggestions for misspelt names.

The numbers are TLC's where TLC has one, so pipelines that read them keep working; the rest lie outside TLC's range.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import NoReturn

from streamproof.base.records import dataclass


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
    BEHAVIOURS_DIFFER = 163
    VERDICTS_DIFFER = 164


@dataclass(frozen=True, slots=True)
class Loc:
    """A source position in a user's file: of an expression, action or event."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def short(self) -> str:
        """The shortest unambiguous form: relative to the package's folder, or else to the working folder."""
        return f"{_short(self.file, os.getcwd())}:{self.line}"


@lru_cache(maxsize=1024)
def _short(file: str, folder: str) -> str:
    # The package form is independent of where the package is installed, so that texts compare across machines.
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
    """Base of every error shown to users; `remedy` is what to do instead."""

    exit_code: Exit = Exit.SYSTEM

    def __init__(self, message: str, *, loc: Loc | None = None, remedy: str = "") -> None:
        self.message = message
        self.loc = loc
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        return self._message_text(f"{self.loc}: " if self.loc else "")

    @property
    def short_text(self) -> str:
        """The text with the position in short form."""
        return self._message_text(f"{self.loc.short}: " if self.loc else "")

    @property
    def one_line(self) -> str:
        """`short_text` without a line break, for tables and records."""
        return self.short_text.replace("\n  ", "; ")

    def _message_text(self, where: str) -> str:
        then = f"\n  {self.remedy}" if self.remedy else ""
        return f"{where}{self.message}{then}"


class UsageError(StreamproofError):
    """An unknown name, option or value on the command line or in a call."""

    exit_code = Exit.USAGE


class InputError(UsageError):
    """A missing, unreadable or invalid input file."""


class ModelError(StreamproofError):
    """The model is malformed: wrong sort, name clash, a construct that cannot be lowered."""

    exit_code = Exit.MALFORMED


class EvaluationError(StreamproofError):
    """A value left its domain, or a partial operation was applied outside its domain, while running the model."""

    exit_code = Exit.EVALUATION


class TooLarge(StreamproofError):
    """A state, domain or expansion is larger than this engine supports."""

    exit_code = Exit.TOO_LARGE


class SystemFailure(StreamproofError):
    """The environment failed: unwritable folder, missing tool, full disk."""

    exit_code = Exit.SYSTEM


class OutOfTime(StreamproofError):
    """A time limit was reached before anything was decided."""

    exit_code = Exit.INCONCLUSIVE


class Rejected(StreamproofError):
    """A certificate that does not prove its claim."""

    exit_code = Exit.REJECTED


def reject(why: str) -> NoReturn:
    """Raises `Rejected`."""
    raise Rejected(f"the certificate is rejected: {why}")


LONGEST_TEXT = 2000
"""Maximum number of characters shown of an exception's text."""


def text_of(error: BaseException) -> str:
    """The text of an external exception, shortened; empty if the exception has none."""
    try:
        text = str(error)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:
        return ""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ..."


CLOSE = 0.15
"""Largest difference in similarity to the best suggestion at which another one is offered beside it."""


def nearest(name: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """The names in `known` closest to `name`, best first, at most `most`; `cutoff` is the least similarity, from 0 to 1."""
    import difflib  # imported on demand: only errors need it

    return difflib.get_close_matches(name, list(known), n=most, cutoff=cutoff)


def suggest(name: str, known: Iterable[str], otherwise: str) -> str:
    """A remedy: ``did you mean 'failover'?`` for the closest public name in `known`; `otherwise` if no name is close."""
    found = nearest(name, (n for n in known if not n.startswith("_")))
    return f"did you mean {found[0]!r}?" if found else otherwise


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """``did you mean failover?`` with up to three names, each after `prefix`; "" if no name is close."""
    names = list(known)
    near = nearest(name, names, 3, cutoff=0.6)
    if near:
        import difflib

        alike = [difflib.SequenceMatcher(None, n, name).ratio() for n in near]
        near = [n for n, ratio in zip(near, alike, strict=True) if ratio >= alike[0] - CLOSE]
    near += [n for n in names if name and name in n and n not in near][: 3 - len(near)]
    return f"did you mean {' or '.join(prefix + n for n in near)}?" if near else ""
