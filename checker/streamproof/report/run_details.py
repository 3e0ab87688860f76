"""The section of the page about one run: job graph, time line, restarts, and the states of the model before a rejection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamproof.report.frontier_graph import drawn_frontier
from streamproof.report.job_graph import MOST_VERTICES, drawn_graph
from streamproof.report.rows import Row, worst_first
from streamproof.report.timeline import MOST_REJECTED, MOST_RESTARTS, timeline

CHECK: Final = ("run", "trace", "model", "variant", "parameters")
"""What identifies a verdict."""
MOST_HAPPENINGS: Final = 40
"""Maximum number of happenings in a section."""
MOST_DETAILED: Final = 30
"""Maximum number of verdicts with a section."""

PHASES: Final = (
    ("waiting", "waiting for a slot"),
    ("starting", "being deployed"),
    ("running", "running"),
    ("cancelling", "being cancelled, job restarting"),
    ("finished", "finished"),
)
"""The phases of an attempt, with their descriptions."""
CheckKey = tuple[Any, ...]


def check_key(row: Mapping[str, Any]) -> CheckKey:
    """The key of a verdict."""
    return tuple(row[name] for name in CHECK)


def most_interesting(rows: Sequence[Row]) -> list[Row]:
    """Of the verdicts that can be drawn, those that get a section: the worst first."""
    return worst_first(rows)[:MOST_DETAILED]


def details_of(rows: Sequence[Row], drawn: Mapping[CheckKey, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The sections, in the order of the table of runs; `drawn` has the parts to draw (see `pipeline.run_history`)."""
    found = [row for row in rows if check_key(row) in drawn]
    return [detail_of(f"run-{number}", row, drawn[check_key(row)]) for number, row in enumerate(found, 1)]


def detail_of(anchor: str, row: Row, drawn: Mapping[str, Any]) -> dict[str, Any]:
    """The section about one verdict; `row` is its row in the table of runs, `drawn` what to draw (`pipeline.run_history`)."""
    history, restarts = drawn["history"], drawn["restarts"]
    notes: list[str] = []
    graph, chart, regions = None, None, 0
    if history is not None and history["vertices"]:
        graph = drawn_graph(history["vertices"], history["edges"])
        regions = len({region for vertex in history["vertices"] for region in vertex["regions"]})
        chart = timeline(history, restarts, hangs=drawn["hangs"])
        if len(history["vertices"]) > MOST_VERTICES:
            notes.append(
                f"The {MOST_VERTICES} of {len(history['vertices']):,} vertices nearest to the sources are drawn."
            )
        notes += [f"Not known: {part}." for part in history["missing"][:3]]
    happenings = history["happenings"] if history is not None else []
    rejected = history["rejected"] if history is not None else []
    rejection = drawn["rejection"]
    frontier = None
    if rejection is not None and rejection["frontier"] is not None:
        frontier = drawn_frontier(rejection["at"] or "the end of the log", rejection["states"], rejection["frontier"])
    return {
        "anchor": anchor,
        "row": row,
        "graph": graph,
        "regions": regions,
        "notes": notes,
        "timeline": chart,
        "restarts": restarts[:MOST_RESTARTS],
        "restarts_total": len(restarts),
        "rejected": rejected[:MOST_REJECTED],
        "rejected_total": len(rejected),
        "rejection": rejection,
        "frontier": frontier,
        "happenings": [h for h in happenings if h["kind"] != "job"][:MOST_HAPPENINGS],
    }
