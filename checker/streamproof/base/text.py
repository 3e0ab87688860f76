"""Text for readers: escaping of text from other sources, and styled lines with hanging indents.

Terminals obey escape sequences, bidirectional marks reorder text, and CI services execute some lines of a log. Names in logs,
answers, certificates and models may contain these; streamproof itself prints none, so all of them are escaped.

Styled lines have one layout for the console (with colours) and for text files (without). A style is a role ("action",
"place", "failed"), not a colour; `report.console` gives roles their colours.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TextIO, TypeAlias, cast

from streamproof.base.records import dataclass

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


_LONG_NUMBER = re.compile(r"-p \S+?=-?\d+|(?<![\w/])\d{81,}(?!\w|\.\w|/)")
"""Numbers longer than a line; those in a command to repeat keep all digits, and so does the name of a file."""
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


def encodable(text: str, stream: TextIO) -> str:
    """`text` with a question mark for each character that the encoding of `stream` lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


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


Style: TypeAlias = Literal["plain", "title", "failed", "good", "action", "place", "old", "new", "source", "faint"]


@dataclass(frozen=True, slots=True)
class StyledText:
    """A piece of text in one style."""

    text: str
    style: Style = "plain"


@dataclass(frozen=True, slots=True)
class Line:
    """One logical line: `indent` spaces before it, `hang` additional ones before wrapped lines."""

    spans: tuple[StyledText, ...] = ()
    indent: int = 0
    hang: int = 0


def line(*spans: StyledText | str, indent: int = 0, hang: int | None = None) -> Line:
    """A line from spans and plain strings, whose text is escaped by `visible`.

    Wrapped lines are indented by four more spaces unless `hang` differs.
    """
    made = tuple(
        StyledText(visible(s.text), s.style) if isinstance(s, StyledText) else StyledText(visible(s)) for s in spans
    )
    return Line(made, indent, indent + 4 if hang is None else hang)


BLANK = Line()


def wrap(lines: Iterable[Line], width: int) -> Iterator[tuple[StyledText, ...]]:
    """The physical lines of at most `width` columns (at least 20); breaks at spaces, inside a word only if necessary."""
    width = max(width, 20)
    for logical in lines:
        yield from _wrap(logical, width)


def text(lines: Iterable[Line], width: int) -> str:
    """The lines without styles, no trailing spaces, ending with a newline."""
    return "".join(row + "\n" for line in lines for row in _texts(line, max(width, 20)))


def _texts(logical: Line, width: int) -> Iterator[str]:
    whole = " " * min(logical.indent, width // 2) + "".join(span.text for span in logical.spans)
    if len(whole) <= width:
        yield whole.rstrip()
    else:
        yield from ("".join(span.text for span in row).rstrip() for row in _wrap(logical, width))


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[list[str]]:
    """The rows of a table, with cells padded to the width of their column; those in the columns `right` are at its right."""
    columns = zip(*rows, strict=True)
    padded = []
    for at, column in enumerate(columns):
        width = max(map(len, column))
        padded.append([f"{cell:>{width}}" if at in right else f"{cell:<{width}}" for cell in column])
    return list(map(list, zip(*padded, strict=True)))


_Char = tuple[str, Style]


def _wrap(logical: Line, width: int) -> Iterator[tuple[StyledText, ...]]:
    rest: list[_Char] = [(c, span.style) for span in logical.spans for c in span.text]
    # An indent without remaining width would never end; half the width is always reserved for text.
    indent = min(logical.indent, width // 2)
    while len(rest) > width - indent:
        room = width - indent
        # The break replaces a space at or before position `room`; leading spaces are not break points.
        first = next((i for i, (c, _) in enumerate(rest) if c != " "), len(rest))
        cut = next((i for i in range(room, first, -1) if rest[i][0] == " "), None)
        if cut is None:
            yield _spans(indent, rest[:room])
            rest = rest[room:]
        else:
            yield _spans(indent, rest[:cut])
            rest = rest[cut:]
        while rest and rest[0][0] == " ":
            rest = rest[1:]
        if not rest:
            return
        indent = min(logical.hang, width // 2)
    yield _spans(indent, rest)


def _spans(indent: int, chars: list[_Char]) -> tuple[StyledText, ...]:
    while chars and chars[-1][0] == " ":
        chars = chars[:-1]
    spans = [StyledText(" " * indent)] if indent and chars else []
    run: list[str] = []
    for at, (char, style) in enumerate(chars):
        run.append(char)
        if at + 1 == len(chars) or chars[at + 1][1] != style:
            spans.append(StyledText("".join(run), style))
            run = []
    return tuple(spans)


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table for a notebook; all text is escaped."""
    from html import escape  # for notebooks only

    def row(cells: Iterable[object], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{escape(visible(str(cell)))}</{kind}>" for cell in cells) + "</tr>"

    return f"<table><thead>{row(head, 'th')}</thead><tbody>{''.join(row(r, 'td') for r in rows)}</tbody></table>"


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """``a=1, b=2`` in the order given."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


_reserved: list[TextIO] = []
"""The standard output of the program while a verb runs."""


@contextmanager
def reserved_output() -> Iterator[None]:
    """Reserve standard output for results: output of the model goes to standard error."""
    _reserved.append(sys.stdout)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = _reserved.pop()


def standard_output() -> TextIO:
    """The stream for results."""
    return _reserved[-1] if _reserved else sys.stdout
