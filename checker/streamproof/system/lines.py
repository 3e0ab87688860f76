"""Styled lines with hanging indents: one layout for the console (with colours) and for text files (without).

A style is a role ("action", "place", "failed"), not a colour; `report.console` gives roles their colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from streamproof.system.foreign import visible
from streamproof.system.records import dataclass

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


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """``a=1, b=2`` in the order given."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items())
