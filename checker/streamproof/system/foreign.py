"""Text of others on its way to a reader: names in logs, answers, certificates and models, made visible where they are not.

A terminal obeys escape sequences, a text with bidirectional marks reads otherwise than it is, and a CI service takes some
lines of a log for its own commands. None of that comes from streamproof, so all of it is shown and none of it works.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

_SUSPECT = re.compile(r"[^ -~]|(?<!\S)(?:::(?=[A-Za-z])|##(?=\[|vso\[))")
"""What may have to be escaped: control characters, all that is not ASCII, and what begins a command of a CI service."""


code_of_others: list[str] = []
"""Files and modules of users that this process has begun to run: what happens afterwards may be their doing."""


def visible(text: str, *, lines: bool = False) -> str:
    """`text` with everything that does not print as it stands written as an escape; `lines` keeps line breaks and tabs.

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
    """JSON text, with JSON's own escapes for everything that does not print as it stands."""
    return text if text.isascii() and "\x7f" not in text else _SUSPECT.sub(_escaped_for_json, text)


def _escaped_for_json(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() or found[0] == "\n" else json.dumps(found[0])[1:-1]


_LONG_NUMBER = re.compile(r"-p \S+?=-?\d+|\d{81,}")
"""Numbers that fill more than a line, and those in a command to repeat, which need all their digits."""
_ENDS = 20


def abridged(text: str) -> str:
    """`text` as people read it: of long numbers the first and last digits, and how many there are."""
    return _LONG_NUMBER.sub(_ends, text)


def _ends(found: re.Match[str]) -> str:
    digits = found[0]
    return digits if digits.startswith("-p") else f"{digits[:_ENDS]}...({len(digits)} digits)...{digits[-_ENDS:]}"


class VisibleStream:
    """A text stream for people: what is written to it is `visible` and `abridged`. The program's own go to `inner`."""

    def __init__(self, stream: TextIO) -> None:
        self.inner = stream

    def write(self, text: str) -> int:
        """Write text, made visible."""
        return self.inner.write(visible(abridged(text), lines=True))

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for text in lines:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def inner(stream: TextIO) -> TextIO:
    """The stream below, for colours, for what erases a line, and for documents in which all text is escaped already."""
    return stream.inner if isinstance(stream, VisibleStream) else stream


@contextmanager
def visible_output() -> Iterator[None]:
    """Show all that is written to standard output and standard error with `visible`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, VisibleStream(stream)) if stream else stream for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
