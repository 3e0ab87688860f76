"""Two-dimensional text layout: lines are placed beside and below each other without losing their columns.

TLA+ reads the columns of ``/\\`` and ``\\/`` in lists, so everything that belongs to an item must stay to its right.
All lines of a block move together, by the same number of columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum

from streamproof.base.records import dataclass

WIDTH = 100
"""Preferred maximum number of columns of a line; a line without a break point may be longer."""

Lines = tuple[str, ...]


class Bind(IntEnum):
    """Operator precedence of a text, which determines its parentheses."""

    LOOSE = 0
    """Lowest precedence, or a list: IF, LET, quantifiers, and, or."""
    COMPARED = 1
    """A comparison or a negation."""
    COMPUTED = 2
    """An operator on numbers or sets."""
    ATOM = 3
    """A name, a literal, an application, or anything in brackets."""


@dataclass(frozen=True, slots=True)
class Text:
    """An expression as lines, relative to its column."""

    lines: Lines
    bind: Bind = Bind.ATOM

    @property
    def flat(self) -> bool:
        """Whether it is a single line."""
        return len(self.lines) == 1

    @property
    def width(self) -> int:
        """Columns of the longest line."""
        return max(map(len, self.lines))

    @property
    def length(self) -> int:
        """Characters in all."""
        return sum(map(len, self.lines))

    @property
    def words(self) -> set[str]:
        """The names and other words in it."""
        return set(re.findall(r"\w+", "\n".join(self.lines)))


def atom(text: str) -> Text:
    """A single word, or something in brackets."""
    return Text((text,))


def beside(*parts: Text | str, bind: Bind = Bind.ATOM) -> Text:
    """Each part to the right of the end of the one before."""
    lines: list[str] = [""]
    for part in parts:
        first, *rest = (part,) if isinstance(part, str) else part.lines
        column = " " * len(lines[-1])
        lines[-1] += first
        lines += [column + line for line in rest]
    return Text(tuple(lines), bind)


def below(parts: Iterable[Text]) -> Text:
    """Each part under the one before, all from the same column."""
    return Text(tuple(line for part in parts for line in part.lines), Bind.LOOSE)


def closed(text: Text, at_least: Bind) -> Text:
    """`text`, in parentheses if its precedence is below `at_least`."""
    return text if text.bind >= at_least else beside("(", text, ")")


def listed(operator: str, items: Sequence[Text]) -> Text:
    """A conjunction or disjunction: on one line if it fits, otherwise as a list with one item per line."""
    if len(items) == 1:
        return items[0]
    inner = [closed(item, Bind.COMPARED) for item in items]
    if all(item.flat for item in inner):
        line = f" {operator} ".join(item.lines[0] for item in inner)
        if len(line) <= WIDTH * 3 // 4:
            return Text((line,), Bind.LOOSE)
    return bulleted(operator, items)


def bulleted(operator: str, items: Sequence[Text]) -> Text:
    """A list with one item per line, also for a single item."""
    return below(beside(f"{operator} ", item, bind=Bind.LOOSE) for item in items)


def separated(opening: str, items: Sequence[Text], closing: str) -> Text:
    """Items with commas in brackets, on as many lines as they need."""
    return beside(opening, packed(",", items, WIDTH - len(opening)), closing) if items else atom(opening + closing)


def packed(operator: str, items: Sequence[Text], width: int = WIDTH) -> Text:
    """Items with an operator between them, on as many lines of a width as they need."""
    rows: list[Text] = []
    for part in joined(operator, items):
        if rows and rows[-1].flat and part.flat and rows[-1].width + part.width < width:
            rows[-1] = beside(rows[-1], " ", part)
        else:
            rows.append(part)
    return below(rows)


def joined(operator: str, items: Sequence[Text]) -> list[Text]:
    """Items with an operator after each but the last."""
    return [beside(item, operator if at + 1 < len(items) else "") for at, item in enumerate(items)]


def chosen(condition: Text, then: Text, other: Text) -> Text:
    """A conditional."""
    parts = (condition, then, other)
    if all(part.flat for part in parts):
        line = "IF {} THEN {} ELSE {}".format(*(part.lines[0] for part in parts))
        if len(line) <= WIDTH * 3 // 4:
            return Text((line,), Bind.LOOSE)
    rows = (beside("IF ", condition), beside("THEN ", then), beside("ELSE ", other))
    return below(rows)
