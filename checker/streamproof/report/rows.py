"""Rows of the table of runs, and durations as text: what drawings and the page share, without packages of extras."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

SEVERITY = ("rejected", "error", "inconclusive", "not validated", "accepted")
"""Verdicts in the order of display."""

Row = Mapping[str, Any]


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """Rows of the table of runs, in the order of display."""
    return sorted(rows, key=lambda row: (SEVERITY.index(row["verdict"]), natural(row["run"]), row["run"], row["trace"]))


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Sort key by which `run-2` comes before `run-10`."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", text))


def duration(seconds: float) -> str:
    """A duration as text: 850 ms, 12.3 s, 2 min 5 s, 1 h 4 min."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
