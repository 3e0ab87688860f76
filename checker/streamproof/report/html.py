"""The self-contained HTML page about many runs: no scripts, no requests, light and dark, readable on a phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.metadata import version
from typing import Any

from jinja2 import Environment

from streamproof.report import html_charts, html_facts
from streamproof.report.pages import environment
from streamproof.report.run_details import PHASES, CheckKey, check_key, details_of

_KINDS = {
    "action": "No action of the model explains the event",
    "state": "The model cannot be in the recorded state",
    "contradiction": "The log contradicts itself",
    "property": "The run breaks an invariant",
}
"""Descriptions of the kinds of rejection; other kinds are shown unchanged."""


def render_report(
    summary: html_facts.Summary,
    *,
    title: str,
    read: Sequence[str],
    skipped: Sequence[tuple[str, str]],
    drawn: Mapping[CheckKey, Mapping[str, Any]] | None = None,
    drawable: int = 0,
) -> str:
    """The page for a summary of the tables of a report; `read` and `skipped` (path, reason) are its input files.

    `drawn` has what to draw of some verdicts, `drawable` is the number of those of which something could be drawn.

    Deterministic, byte for byte: the page has no date.
    """
    facts = html_facts.facts_of(summary)
    details = details_of(facts["rows"], drawn or {})
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            facts=facts,
            title=title,
            read=read,
            skipped=skipped[: html_facts.SKIPPED_ROWS],
            skipped_total=len(skipped),
            details=details,
            drawable=max(drawable, len(details)),
            anchors={check_key(detail["row"]): detail["anchor"] for detail in details},
            anchor_of=check_key,
            version=version("streamproof"),
            most_events=max((row["events_read"] or row["log_events"] or 0 for row in facts["rows"]), default=0),
            most_actions=max((row["actions"] or 0 for row in facts["rows"]), default=0),
        )
    )


@cache
def _environment() -> Environment:
    found = environment().overlay()
    found.filters.update(moment=_moment, percent=_percent)
    found.globals.update(
        share_bar=html_charts.share_bar,
        small_bar=html_charts.small_bar,
        histogram=html_charts.histogram,
        matrix_head=html_charts.matrix_head,
        matrix_row=html_charts.matrix_row,
        kinds=_KINDS,
        phases=PHASES,
    )
    return found


def _moment(value: datetime) -> str:
    return value.strftime("%Y-%m-%d %H:%M:%S UTC")


def _percent(part: int, whole: int) -> str:
    """A percentage; 100 % only for all, 0 % only for none."""
    if whole == 0:
        return "–"  # noqa: RUF001 (an en dash stands for no value)
    rounded = round(100 * part / whole)
    return f"{min(rounded, 99) if part < whole else 100} %" if rounded or not part else "<1 %"
