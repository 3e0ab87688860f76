"""How the points of a sweep are laid out: one panel of columns and rows for each combination of the other axes."""

from __future__ import annotations

from itertools import product
from typing import Any

from streamproof.report.sweep import Mark, PointReport, SweepReport
from streamproof.system.records import dataclass

SHORT = 3
"""Characters of a value that may head a column."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a map; `point` None: there is none."""

    mark: Mark
    point: PointReport | None


@dataclass(frozen=True, slots=True)
class Panel:
    """A map of two axes; `title` says what the others are. `cells` go row by row, the top row first."""

    title: str
    cells: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which axis goes where: `across` heads columns, `down` rows (None: there is one row), the others tell panels apart."""

    across: str | None
    columns: tuple[str, ...]
    down: str | None
    rows: tuple[str, ...]
    panels: tuple[Panel, ...]


def layout(report: SweepReport, prop: str, variant: str | None) -> Layout:
    """The map of a property of the model or of a variant.

    Values that are long head rows. Numbers grow to the right and upwards, as in any diagram.
    """
    axes = dict(report.axes)
    across = next((n for n, v in axes.items() if all(len(shown(x)) <= SHORT for x in v)), None)
    rest = [name for name in axes if name != across]
    down = next((n for n in rest if any(len(shown(x)) > SHORT for x in axes[n])), rest[0] if rest else None)
    others = [name for name in rest if name != down]
    columns = axes[across] if across else ("",)
    rows = axes[down] if down else ("",)
    if down and all(isinstance(value, int) for value in rows):
        rows = tuple(reversed(rows))
    places = {point.values: point for point in report.points if point.variant == variant}
    panels = []
    for combination in product(*(axes[name] for name in others)):
        chosen: dict[str | None, Any] = dict(zip(others, combination, strict=True))
        cells = tuple(
            tuple(_cell(report, places, prop, {**chosen, across: column, down: row}) for column in columns)
            for row in rows
        )
        panels.append(Panel(", ".join(f"{name}={shown(value)}" for name, value in chosen.items()), cells))
    return Layout(across, tuple(map(shown, columns)), down, tuple(map(shown, rows)), tuple(panels))


def _cell(
    report: SweepReport, places: dict[tuple[Any, ...], PointReport], prop: str, chosen: dict[str | None, Any]
) -> Cell:
    point = places.get(tuple(chosen[name] for name in report.axes))
    if point is None or prop not in point.answers:
        return Cell("refused", point)
    return Cell(point.answers[prop].mark, point)


def shown(value: Any) -> str:
    """A parameter's value as people write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
