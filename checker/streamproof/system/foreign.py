"""Sanitising of external text (names in logs, answers, certificates and models) before it is shown to a reader.

Terminals obey escape sequences, bidirectional marks reorder text, and CI services execute some lines of a log.
streamproof itself prints none of these, so all of them are escaped.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

_SUSPECT = re.compile(r"[^ -~]|(?<!\S)(?:::(?=[A-Za-z])|##(?=\[|vso\[))")
"""Characters that may need escaping: control characters, non-ASCII, and the starts of CI commands."""


code_of_others: list[str] = []
"""User files and modules executed by this process; they may have changed its state."""


def visible(text: str, *, lines: bool = False) -> str:
    """`text` with every unprintable character escaped; `lines` keeps line breaks and tabs.

    Escapes are Python's: ``\\x1b``, ``\\u202e``, ``\\n``.
    """
    return _SUSPECT.sub(_escaped_but_lines if lines else _escaped, text)


def _escaped(found: re.Match[str]) -> str:
    text = found[0]
    if len(text) > 1:
        return f"\\x{ord(text[0]):02x}{text[1:]}"
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _escaped_but_lines(found: re.Match[str]) -> str:
    return found[0] if found[0] in "\n\t" else _escaped(found)


def visible_json(text: str) -> str:
    """JSON text, with JSON escapes for every unprintable character."""
    return text if text.isascii() and "\x7f" not in text else _SUSPECT.sub(_escaped_for_json, text)


def _escaped_for_json(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() or found[0] == "\n" else json.dumps(found[0])[1:-1]


_LONG_NUMBER = re.compile(r"-p \S+?=-?\d+|\d{81,}")
"""Numbers longer than a line; those in a command to repeat keep all digits."""
_ENDS = 20


def abridged(text: str) -> str:
    """`text` with long numbers abridged to their first and last digits and their length."""
    return _LONG_NUMBER.sub(_ends, text)


def _ends(found: re.Match[str]) -> str:
    digits = found[0]
    return digits if digits.startswith("-p") else f"{digits[:_ENDS]}...({len(digits)} digits)...{digits[-_ENDS:]}"


class VisibleStream:
    """A text stream for people: its output is `visible` and `abridged`. Trusted output goes to `inner`."""

    def __init__(self, stream: TextIO) -> None:
        self.inner = stream

    def write(self, text: str) -> int:
        """Writes text, escaped."""
        return self.inner.write(visible(abridged(text), lines=True))

    def writelines(self, lines: Any) -> None:
        """Writes several texts."""
        for text in lines:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def inner(stream: TextIO) -> TextIO:
    """The underlying stream, for colours, line erasure, and documents whose text is already escaped."""
    return stream.inner if isinstance(stream, VisibleStream) else stream


@contextmanager
def visible_output() -> Iterator[None]:
    """Escapes everything written to standard output and standard error with `visible`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, VisibleStream(stream)) if stream else stream for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
