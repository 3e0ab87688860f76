"""A sweep as an HTML page: the maps of properties with different verdicts, and a table of all points."""

from __future__ import annotations

from streamproof.base.text import Line
from streamproof.report.pages import environment
from streamproof.sweep.console import even_lines, formula_lines
from streamproof.sweep.maps import map_of
from streamproof.sweep.plan import Mark, SampledAxis, SweepPoint
from streamproof.sweep.result import ABSENT, REFUSED, SIGNS, SweepReport, assignments, shown
from streamproof.sweep.summary import grouped, settings_of, swept
from streamproof.system.verdict import WITHIN


def render_page(report: SweepReport) -> str:
    """The maps, and a table of all points; for generated values their summary, and a table with the variants side by side.

    Self-contained, for light and dark; deterministic, so without times.
    """
    plan = report.plan
    uneven = [boundary for boundary in report.boundaries if boundary.uneven]
    return (
        environment()
        .get_template("sweep.html.j2")
        .render(
            report=report,
            plan=plan,
            settings=report.settings(report.limits),
            swept=[(one, ", ".join(assignments(one.parameters.items()))) for one in swept(report)],
            maps=[(one, list(map(_plain_text, formula_lines(one))), map_of(report, one)) for one in uneven],
            same=list(filter(None, map(_plain_text, even_lines(report)))),
            samples=[] if plan.sampled is None else _samples(report, plan.sampled),
            columns=[", ".join((one[0] or report.model, *map(shown, one[1:]))) for one in settings_of(report)],
            signs=SIGNS,
            shown=shown,
            described=_described,
            together=_together,
        )
    )


def _plain_text(one: Line) -> str:
    return "".join(span.text for span in one.spans)


def _samples(report: SweepReport, axis: SampledAxis) -> list[tuple[str, list[SweepPoint | None]]]:
    """Each generated value, with its point for the model and for each variant, if it was checked."""
    settings = settings_of(report)
    found = []
    for value, points in grouped(report.points, lambda point: point.parameters[axis.parameter]).items():
        known = {report.plan.setting(point): point for point in points}
        found.append((value, [known.get(setting) for setting in settings]))
    return found


def _together(point: SweepPoint) -> tuple[Mark, list[str]]:
    """All properties of one point: the violated ones, or else the open ones, or none."""
    marks = {name: answer.verdict for name, answer in point.verdicts.items()}
    worst: tuple[Mark, ...] = ("error", "violated", "inconclusive", "open", "holds")
    mark: Mark = next((mark for mark in (*worst, REFUSED) if mark in marks.values()), ABSENT)
    return mark, [name for name in marks if marks[name] == mark and mark not in ("holds", REFUSED, ABSENT)]


def _described(point: SweepPoint, name: str) -> str:
    """The verdict on a property at a point, in words."""
    answer = point.verdicts[name]
    steps = "" if answer.length is None else f", {answer.length} step{'' if answer.length == 1 else 's'}"
    because = f": {answer.because}" if answer.verdict in ("inconclusive", "error") else ""
    return f"{name}: {SIGNS[answer.verdict].word}{'' if answer.within is None else WITHIN}{steps}{because}"
