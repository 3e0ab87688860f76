"""A sweep as one picture: a small map for each property that changes and each combination of the axes beyond two."""

from __future__ import annotations

from collections.abc import Iterator

from streamproof.report.pages import environment
from streamproof.report.sweep import Boundary, Mark, SweepReport
from streamproof.report.sweep_maps import Cell, Layout, layout, shown
from streamproof.system.records import dataclass

WIDTH = 860
_EDGE = 24
_PITCH = 25
"""From one cell to the next; a cell is 22 wide."""
_LETTER = 7.2
"""About the width of a letter."""
_LINE = 19
_WORDS: dict[Mark, str] = {
    "holds": "holds",
    "violated": "violated",
    "inconclusive": "inconclusive",
    "error": "mistake of the model",
    "refused": "not allowed",
    "open": "not looked at",
}


@dataclass(frozen=True, slots=True)
class _Text:
    x: float
    y: float
    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class _Mark:
    x: float
    y: float
    mark: Mark
    tells: str = ""


def render_sweep(report: SweepReport) -> str:
    """The picture as SVG, self-contained, for light and dark; equal reports give equal text.

    Answers are told apart by their sign as well as by colour, and each cell says in words what it stands for.
    """
    drawing = _Drawing(report)
    return (
        environment()
        .get_template("sweep.svg.j2")
        .render(
            width=WIDTH,
            height=round(drawing.y + _EDGE),
            title=f"Configurations of {report.model} at which properties hold",
            texts=drawing.texts,
            marks=drawing.marks,
        )
    )


class _Drawing:
    """Places everything from the top down; `y` is where the next thing goes."""

    def __init__(self, report: SweepReport) -> None:
        self.texts: list[_Text] = []
        self.marks: list[_Mark] = []
        self.y = float(_EDGE)
        self._report = report
        self._write(f"{report.model}: where properties hold", "head", 10)
        self._write("; ".join(self._settings()), "faint")
        maps = [b for b in report.boundaries if b.changes or b.undecided]
        self._legend(maps)
        for boundary in maps:
            self._property(boundary)
        self._constant([b for b in report.boundaries if not (b.changes or b.undecided)])

    def _settings(self) -> Iterator[str]:
        yield from (f"{name} {', '.join(map(shown, values))}" for name, values in self._report.axes.items())
        yield from (f"{name}={shown(value)}" for name, value in self._report.fixed.items())

    def _write(self, text: str, style: str = "", more: float = 0.0) -> None:
        """A line, or as many as the text needs."""
        room = int((WIDTH - 2 * _EDGE) / (_LETTER + 0.6 * (style == "formula")))
        while text:
            cut = len(text) if len(text) <= room else (text.rfind(" ", 0, room + 1) + 1 or room)
            self.y += _LINE
            self.texts.append(_Text(_EDGE, self.y - 5, text[:cut].rstrip(), style))
            text = text[cut:]
        self.y += more

    def _legend(self, maps: list[Boundary]) -> None:
        placed = [layout(self._report, b.name, b.variant) for b in maps]
        used = {cell.mark for one in placed for panel in one.panels for row in panel.cells for cell in row}
        x = float(_EDGE)
        self.y += 10
        for mark, word in _WORDS.items():
            if mark in used:
                self.marks.append(_Mark(x, self.y, mark))
                self.texts.append(_Text(x + 29, self.y + 16, word))
                x += 29 + _LETTER * len(word) + 22
        self.y += 30

    def _property(self, boundary: Boundary) -> None:
        self.y += 12
        of = f", variant {boundary.variant}" if boundary.variant else ""
        self._write(f"{boundary.name}{of}", "name")
        if boundary.formula is not None:
            self._write(f"holds where {boundary.formula}", "formula")
            self._write(
                f"agrees with all {boundary.holds + boundary.violated} points that were decided;"
                " a generalisation, not a proof",
                "faint",
            )
        elif boundary.changes:
            self._write(boundary.because, "faint")
        placed = layout(self._report, boundary.name, boundary.variant)
        self._panels(placed)

    def _panels(self, placed: Layout) -> None:
        label = _LETTER * max(len(word) for word in placed.rows) + 8
        least = max((len(panel.title) for panel in placed.panels), default=0) * _LETTER
        width = max(label + _PITCH * len(placed.columns), least) + 26
        axes = (placed.down or "", placed.across or "")
        told = [f"{axes[1]} to the right" if axes[1] else "", f"{axes[0]} by row" if axes[0] else ""]
        told.append(f"the same for every {', '.join(placed.alike)} explored" if placed.alike else "")
        self._write(", ".join(filter(None, told)), "faint")
        beside = max(1, int((WIDTH - 2 * _EDGE) // width))
        titled = any(panel.title for panel in placed.panels)
        for first in range(0, len(placed.panels), beside):
            self.y += 6
            top = self.y + (_LINE if titled else 0) + (_LINE if placed.across else 0)
            for number, panel in enumerate(placed.panels[first : first + beside]):
                left = _EDGE + number * width
                if titled:
                    self.texts.append(_Text(left, self.y + 14, panel.title, "faint"))
                for at, word in enumerate(placed.columns):
                    if word:
                        x = left + label + at * _PITCH + 11
                        self.texts.append(_Text(x, top - 5, word, "faint middle"))
                for at, (word, row) in enumerate(zip(placed.rows, panel.cells, strict=True)):
                    y = top + at * _PITCH
                    self.texts.append(_Text(left + label - 7, y + 16, word, "faint end"))
                    self.marks += [_Mark(left + label + n * _PITCH, y, c.mark, _tells(c)) for n, c in enumerate(row)]
            self.y = top + len(placed.rows) * _PITCH

    def _constant(self, same: list[Boundary]) -> None:
        self.y += 16
        for boundary in same:
            of = f", variant {boundary.variant}" if boundary.variant else ""
            count = boundary.holds + boundary.violated
            if count:
                word = "holds" if boundary.holds else "is violated"
                self._write(f"{boundary.name}{of} {word} at all {count} points")


def _tells(cell: Cell) -> str:
    """A cell in words."""
    return f"{cell.values}: {_WORDS[cell.mark]}" if cell.values else _WORDS[cell.mark]
