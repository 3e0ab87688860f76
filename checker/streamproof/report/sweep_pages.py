"""A sweep as an SVG drawing and an HTML page: the maps of properties that change, and a table of all points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamproof.pipeline.sweeps.plan import Mark, PointVerdict, SweepPoint
from streamproof.report.pages import environment
from streamproof.report.sweep import SIGNS, SweepReport, assignments, shown
from streamproof.report.sweep_console import even_lines, formula_lines
from streamproof.report.sweep_maps import SweepMap, map_of
from streamproof.report.sweep_summary import grouped, settings_of, swept
from streamproof.system.text import Line
from streamproof.system.verdict import WITHIN

WIDTH = 860
_EDGE = 24
_PITCH = 25
"""Distance between two cells; a cell is 22 wide."""
_LETTER = 7.2
"""Approximate width of a letter."""
_LINE = 19


def render_map(report: SweepReport) -> str:
    """The drawing as self-contained SVG, for light and dark; deterministic.

    Verdicts differ by sign as well as by colour, and each cell has its meaning as title.
    """
    drawing = _Drawing(report)
    template = environment().get_template("sweep.svg.j2")
    title = f"Configurations of {report.model} at which properties hold"
    return template.render(
        width=WIDTH, height=round(drawing.y + _EDGE), title=title, texts=drawing.texts, marks=drawing.marks
    )


class _Drawing:
    """Lays out elements from the top down; `y` is the position of the next element."""

    def __init__(self, report: SweepReport) -> None:
        self.texts: list[tuple[float, float, str, str]] = []
        """Position, text and style of each text."""
        self.marks: list[tuple[float, float, Mark, str]] = []
        """Position, mark and title of each cell."""
        self.y = float(_EDGE)
        self._write(f"{report.model}: where properties hold", "head")
        self.y += 10
        self._write("; ".join(report.settings()), "faint")
        maps = [(boundary, map_of(report, boundary)) for boundary in report.boundaries if boundary.uneven]
        self._legend({mark for _, drawn in maps for mark in drawn.marks})
        for boundary, drawn in maps:
            self.y += 12
            self._write(boundary.title, "name")
            for one in formula_lines(boundary):
                self._write(_text(one), "formula" if one.spans[-1].style == "good" else "faint")
            self._panels(drawn)
        self.y += 16
        for text in (*map(_text, even_lines(report, proofs=False)), *report.caveats):
            self._write(text)

    def _write(self, text: str, style: str = "") -> None:
        """A text, wrapped into lines."""
        room = int((WIDTH - 2 * _EDGE) / (_LETTER + 0.6 * (style == "formula")))
        while text:
            cut = len(text) if len(text) <= room else (text.rfind(" ", 0, room + 1) + 1 or room)
            self.y += _LINE
            self.texts.append((_EDGE, self.y - 5, text[:cut].rstrip(), style))
            text = text[cut:]

    def _legend(self, used: set[Mark]) -> None:
        x = float(_EDGE)
        self.y += 10
        for mark, (_, word, _) in SIGNS.items():
            if mark in used:
                self.marks.append((x, self.y, mark, ""))
                self.texts.append((x + 29, self.y + 16, word, ""))
                x += 29 + _LETTER * len(word) + 22
        self.y += 30

    def _panels(self, drawn: SweepMap) -> None:
        label = _LETTER * max(map(len, drawn.rows)) + 8
        widest = max(len(panel.title) for panel in drawn.panels)
        width = max(label + _PITCH * len(drawn.columns), widest * _LETTER) + 26
        self._write(drawn.caption, "faint")
        for panels in drawn.bands(int((WIDTH - 2 * _EDGE) // width)):
            top = self.y + 6 + _LINE * bool(widest) + _LINE * any(drawn.columns)
            for number, panel in enumerate(panels):
                left = _EDGE + number * width
                self.texts.append((left, self.y + 20, panel.title, "faint"))
                for at, word in enumerate(drawn.columns):
                    self.texts.append((left + label + at * _PITCH + 11, top - 5, word, "faint middle"))
                for at, (word, row) in enumerate(zip(drawn.rows, panel.cells, strict=True)):
                    y = top + at * _PITCH
                    self.texts.append((left + label - 7, y + 16, word, "faint end"))
                    self.marks += [
                        (
                            left + label + n * _PITCH,
                            y,
                            mark,
                            f"{values}: {SIGNS[mark].word}" if values else SIGNS[mark].word,
                        )
                        for n, (mark, values) in enumerate(row)
                    ]
            self.y = top + len(drawn.rows) * _PITCH


def _text(one: Line) -> str:
    return "".join(span.text for span in one.spans)


def render_page(report: SweepReport) -> str:
    """A summary, and a table of all points, or of all generated values with the variants side by side.

    Self-contained, for light and dark; deterministic, so without times.
    """
    heads, rows = _table(report)
    uneven = [boundary for boundary in report.boundaries if boundary.uneven]
    return (
        environment()
        .get_template("sweep.html.j2")
        .render(
            report=report,
            settings=report.settings(report.limits),
            swept=[(one, ", ".join(assignments(one.parameters.items()))) for one in swept(report)],
            about=report.plan.sampled and report.plan.sampled.about,
            changing=[(boundary, list(map(_text, formula_lines(boundary)))) for boundary in uneven],
            same=list(filter(None, map(_text, even_lines(report)))),
            heads=heads,
            rows=rows,
            signs=SIGNS,
        )
    )


_TableCell = tuple[str, str, str]
"""A text, the mark of its colour, and its tooltip."""
_Row = tuple[tuple[str, ...], tuple[_TableCell, ...]]
"""The heading of a row, and its cells."""


def _table(report: SweepReport) -> tuple[tuple[str, ...], Iterator[_Row]]:
    """The column headings, and a row per point; with a sampled axis a row per sample, with the violations of each variant."""
    axis, axes = report.plan.sampled, report.plan.axes
    if axis is None:
        several = len(report.plan.variants) > 1
        names = list(report.properties)
        rows = (
            (
                (*([point.variant or ""] if several else []), *(shown(point.parameters[name]) for name in axes)),
                (_states(point), *(_verdict(name, point.verdicts[name]) for name in names)),
            )
            for point in report.points
        )
        return (*(["variant"] if several else []), *axes, "states", *names), rows
    settings = list(settings_of(report))
    blank: tuple[_TableCell, ...] = (("", "", ""),) * 2

    def cells(points: list[SweepPoint]) -> tuple[_TableCell, ...]:
        known = {report.plan.setting(p): (_states(p), _together(p.verdicts)) for p in points}
        return tuple(cell for setting in settings for cell in known.get(setting, blank))

    samples = grouped(report.points, lambda point: point.parameters[axis.parameter])
    named = [", ".join((setting[0] or report.model, *map(shown, setting[1:]))) for setting in settings]
    return (
        (axis.parameter, *next(iter(axis.sizes.values())), *(word for name in named for word in ("states", name))),
        (((str(v), *map(str, axis.sizes[v].values())), cells(points)) for v, points in samples.items()),
    )


def _together(answers: Mapping[str, PointVerdict]) -> _TableCell:
    """All properties of one point: the violated ones, or else the open ones, or a plus."""
    by_mark: dict[Mark, list[str]] = {mark: [n for n, a in answers.items() if a.verdict == mark] for mark in SIGNS}
    mark: Mark
    for mark in ("error", "violated", "inconclusive", "open"):
        if names := by_mark[mark]:
            tooltip = "; ".join(_verdict(name, answers[name])[2] for name in names)
            return f"{SIGNS[mark].glyph} {', '.join(names)}", mark, tooltip
    mark = "holds" if by_mark["holds"] else "refused"
    return SIGNS[mark].glyph, mark, ""


def _states(point: SweepPoint) -> _TableCell:
    return ("" if point.states is None else f"{point.states:,}"), "", ""


def _verdict(name: str, answer: PointVerdict) -> _TableCell:
    sign, length = SIGNS[answer.verdict], answer.length
    steps = f", {length} step{'' if length == 1 else 's'}" if length is not None else ""
    because = f": {answer.because}" if answer.verdict in ("inconclusive", "error") else ""
    text = sign.glyph + (f" {length}" if length is not None else "")
    within = "" if answer.within is None else WITHIN
    return text, answer.verdict, f"{name}: {sign.word}{within}{steps}{because}"
