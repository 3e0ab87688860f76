"""How the points of a sweep are laid out: one panel of columns and rows for each combination of the other axes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from streamproof.report.sweep import Mark, SweepReport
from streamproof.system.records import dataclass

SHORT = 3
"""Characters of a value that may head a column."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of a map: its mark, and in words the values it stands for."""

    mark: Mark
    values: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A map of two axes; `title` says what the others are. `cells` go row by row, the top row first."""

    title: str
    cells: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which axis goes where: `across` heads columns, `down` rows (None: there is one row), the others tell panels apart.

    `alike` are axes that make no difference at any point, and are left out.
    """

    across: str | None
    columns: tuple[str, ...]
    down: str | None
    rows: tuple[str, ...]
    panels: tuple[Panel, ...]
    alike: tuple[str, ...]


def layout(report: SweepReport, prop: str, variant: str | None) -> Layout:
    """The map of a property of the model or of a variant.

    Columns are those of the longest axis whose values are short. Numbers grow to the right and upwards, as in any diagram.
    """
    marks = {p.values: p.answers[prop].mark for p in report.points if p.variant == variant}
    names = list(report.axes)
    alike = tuple(name for at, name in enumerate(names) if _makes_no_difference(marks, at))
    axes = {name: values for name, values in report.axes.items() if name not in alike}
    short = [name for name, values in axes.items() if all(len(shown(value)) <= SHORT for value in values)]
    across = max(short, key=lambda name: len(axes[name]), default=None)
    rest = [name for name in axes if name != across]
    down = next((name for name in rest if name not in short), rest[0] if rest else None)
    others = [name for name in rest if name != down]
    columns = axes[across] if across is not None else ("",)
    rows = axes[down] if down is not None else ("",)
    if all(isinstance(value, int) for value in rows):
        rows = tuple(reversed(rows))
    # Where an axis makes no difference any of its values will do.
    usual = {name: report.axes[name][0] for name in alike}

    def cell(chosen: Mapping[Any, Any]) -> Cell:
        mark = marks.get(tuple({**usual, **chosen}[name] for name in names), "refused")
        return Cell(mark, _told({name: chosen[name] for name in axes}))

    panels = []
    for combination in product(*(axes[name] for name in others)):
        chosen: dict[Any, Any] = dict(zip(others, combination, strict=True))
        cells = tuple(tuple(cell({**chosen, across: column, down: row}) for column in columns) for row in rows)
        panels.append(Panel(_told(chosen), cells))
    return Layout(across, tuple(map(shown, columns)), down, tuple(map(shown, rows)), tuple(panels), alike)


def _makes_no_difference(marks: Mapping[tuple[Any, ...], Mark], at: int) -> bool:
    """Whether points that differ in one value only have the same mark."""
    seen: dict[tuple[Any, ...], Mark] = {}
    return all(seen.setdefault((*v[:at], *v[at + 1 :]), mark) == mark for v, mark in marks.items())


def _told(chosen: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in chosen.items())


def shown(value: Any) -> str:
    """A parameter's value as people write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
