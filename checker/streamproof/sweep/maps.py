"""The layout of the points of a sweep: one panel of columns and rows for each combination of the other axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from streamproof.sweep.plan import Mark
from streamproof.sweep.result import Boundary, SweepReport, assignments, shown

SHORT = 3
"""Largest length of the heading of a column, in characters."""


@dataclass(frozen=True, slots=True)
class MapPanel:
    """A map of two axes; `title` has the values of the others. `cells` are rows from the top: a mark, and values."""

    title: str
    cells: tuple[tuple[tuple[Mark, str], ...], ...]


@dataclass(frozen=True, slots=True)
class SweepMap:
    """The points of one property.

    `caption` names the axes of columns and rows, and the axes without influence at any point, which are left out; the other
    axes distinguish panels.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    panels: tuple[MapPanel, ...]


def map_of(report: SweepReport, boundary: Boundary) -> SweepMap:
    """The map of a property of the model or of a variant.

    Columns are those of the longest axis whose values are short. Numbers grow to the right and upwards, as in any diagram.
    """
    names = tuple(report.plan.axes)
    marks = {
        tuple(p.parameters[name] for name in names): p.verdicts[boundary.name].verdict
        for p in report.points
        if p.variant == boundary.variant
    }
    alike = [name for at, name in enumerate(names) if _makes_no_difference(marks, at)]
    axes = {name: values for name, values in report.plan.axes.items() if name not in alike}
    short = [name for name, values in axes.items() if all(len(shown(value)) <= SHORT for value in values)]
    across = max(short, key=lambda name: len(axes[name]), default=None)
    rest = [name for name in axes if name != across]
    down = next((name for name in rest if name not in short), rest[0] if rest else None)
    others = [name for name in rest if name != down]
    columns = axes[across] if across is not None else ("",)
    rows = axes[down] if down is not None else ("",)
    if all(isinstance(value, int) for value in rows):
        rows = tuple(reversed(rows))
    # For an axis without influence, any of its values is used.
    usual = {name: report.plan.axes[name][0] for name in alike}

    def cell(chosen: Mapping[Any, Any]) -> tuple[Mark, str]:
        mark = marks.get(tuple({**usual, **chosen}[name] for name in names), "refused")
        return mark, ", ".join(assignments((name, chosen[name]) for name in axes))

    panels = []
    for combination in product(*(axes[name] for name in others)):
        chosen: dict[Any, Any] = dict(zip(others, combination, strict=True))
        cells = tuple(tuple(cell({**chosen, across: column, down: row}) for column in columns) for row in rows)
        panels.append(MapPanel(", ".join(assignments(chosen.items())), cells))
    caption = [f"columns: {across}" if across else "", f"rows: {down}" if down else ""]
    caption.append(f"the same for every {', '.join(alike)} explored" if alike else "")
    return SweepMap(
        ", ".join(filter(None, caption)), tuple(map(shown, columns)), tuple(map(shown, rows)), tuple(panels)
    )


def _makes_no_difference(marks: Mapping[tuple[Any, ...], Mark], at: int) -> bool:
    """Whether points that differ only in the value at position `at` have the same mark."""
    seen: dict[tuple[Any, ...], Mark] = {}
    return all(seen.setdefault((*v[:at], *v[at + 1 :]), mark) == mark for v, mark in marks.items())
