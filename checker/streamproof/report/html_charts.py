"""The charts of the page: small inline SVG with colours from the page's style, light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from streamproof.report.html_facts import Bin, RunCoverage

_LETTER = 7  # upper bound on the width of a letter, in pixels
_CELL = 15  # width of a matrix cell with its gap, in pixels


def share_bar(parts: Sequence[tuple[str, int]], *, label: str) -> Markup:
    """A bar divided among `parts` (style class, count), as wide as the page."""
    total = sum(count for _, count in parts)
    if total == 0:
        return Markup()
    pieces: list[Markup] = []
    left = 0.0
    for name, count in parts:
        width = 1000 * count / total
        pieces.append(_rect(left, 0, width, 22, f"fill-{name.replace(' ', '-')}", f"{name}: {count:,}"))
        left += width
    return Markup(
        '<svg class="share" viewBox="0 0 1000 22" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(label, Markup().join(pieces))


def small_bar(parts: Sequence[tuple[str, int]], most: int) -> Markup:
    """A bar in a table cell: `parts` (style class, count) end to end; `most` is the full width."""
    pieces: list[Markup] = []
    left = 0.0
    for name, count in parts:
        if count:
            # Every part is visible, however small its share.
            width = max(100 * count / most, 1.5) if most else 0
            pieces.append(_rect(left, 0, width, 6, f"fill-{name}", f"{name}: {count:,}"))
            left += width
    return Markup(
        '<svg class="small" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(Markup().join(pieces))


def histogram(bins: Sequence[Bin], *, label: str) -> Markup:
    """Upright bars with their counts above and their bounds below."""
    if not bins:
        return Markup()
    step = min(64.0, 440 / len(bins))
    width, height, floor = max(step * len(bins), 200), 190, 150
    most = max(item.count for item in bins)
    slant = max(len(item.label) for item in bins) * _LETTER > step
    pieces = [Markup('<line class="axis" x1="0" y1="{y}" x2="{x}" y2="{y}"/>').format(y=floor + 0.5, x=round(width))]
    for index, item in enumerate(bins):
        left = index * step
        middle = left + step / 2
        tall = 125 * item.count / most
        if item.count:
            pieces.append(
                _rect(left + step * 0.1, floor - tall, step * 0.8, tall, "fill-bar", f"{item.label}: {item.count:,}")
            )
            pieces.append(_svg_text(middle, floor - tall - 5, f"{item.count:,}", "middle"))
        if slant:
            pieces.append(_svg_text(middle + 4, floor + 14, item.label, "end", turn=-38))
        else:
            pieces.append(_svg_text(middle, floor + 16, item.label, "middle"))
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" style="max-width:{}px" role="img" aria-label="{}">{}</svg>'
    ).format(round(width), height, round(width * 1.15), label, Markup().join(pieces))


def matrix_head(coverage: RunCoverage) -> Markup:
    """The runs' names above the cells of a coverage matrix, slanted."""
    names = [run if len(run) <= 22 else run[:21] + "…" for run in coverage.runs]
    high = 10 + max((len(name) for name in names), default=0) * 5
    wide = _CELL * len(names) + 40
    pieces = [
        _svg_text(index * _CELL + 10, high - 3, name, "start", turn=-58, title=run)
        for index, (name, run) in enumerate(zip(names, coverage.runs, strict=True))
    ]
    return Markup(
        '<svg class="cells" width="{w}" height="{h}" viewBox="0 0 {w} {h}" aria-hidden="true">{p}</svg>'
    ).format(w=wide, h=high, p=Markup().join(pieces))


def matrix_row(coverage: RunCoverage, cells: Sequence[int], action: str) -> Markup:
    """One action against the runs: darker for higher counts; an empty frame for 0."""
    most = max((count for row in coverage.rows for count in row.cells), default=0)
    pieces: list[Markup] = []
    for index, (run, count) in enumerate(zip(coverage.runs, cells, strict=True)):
        # One of five shades, on a logarithmic scale.
        shade = 1 + min(4, int(5 * math.log1p(count) / math.log1p(most) - 1e-9)) if count else "none"
        pieces.append(_rect(index * _CELL, 0, _CELL - 2, _CELL - 2, f"heat-{shade}", f"{action} in {run}: {count:,}"))
    wide = _CELL * len(cells) + 40
    return Markup(
        '<svg class="cells" width="{w}" height="{h}" viewBox="0 0 {w} {h}" aria-hidden="true">{p}</svg>'
    ).format(w=wide, h=_CELL - 2, p=Markup().join(pieces))


def _rect(x: float, y: float, width: float, height: float, style: str, title: str) -> Markup:
    return Markup('<rect class="{}" x="{:g}" y="{:g}" width="{:g}" height="{:g}"><title>{}</title></rect>').format(
        style, round(x, 2), round(y, 2), round(width, 2), round(height, 2), title
    )


def _svg_text(x: float, y: float, text: str, anchor: str, *, turn: float = 0, title: str = "") -> Markup:
    turned = Markup(' transform="rotate({:g} {:g} {:g})"').format(turn, round(x, 1), round(y, 1)) if turn else Markup()
    full = Markup("<title>{}</title>").format(title) if title else Markup()
    return Markup('<text x="{:g}" y="{:g}" text-anchor="{}"{}>{}{}</text>').format(
        round(x, 1), round(y, 1), anchor, turned, full, escape(text)
    )
