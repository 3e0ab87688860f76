"""Console output of a sweep: a map of each property that changes, its formula, and the open points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from streamproof.base.text import BLANK, Line, StyledText, aligned, line
from streamproof.report.console import PLAIN_WIDTH
from streamproof.sweep.maps import MapPanel, SweepMap, map_of
from streamproof.sweep.result import REFUSED, SIGNS, UNDECIDED, Boundary, SweepReport, assignments
from streamproof.sweep.summary import SweptVariant, swept
from streamproof.system.verdict import number_of

_GAP = 3


def opening_lines(report: SweepReport) -> Iterator[Line]:
    """The first lines: model and points; for generated values, also the results."""
    axis = report.plan.sampled
    if axis is None:
        yield line(StyledText(report.model, "title"), f", {len(report.points)} points")
        varied = len(report.plan.axes)
        settings = report.settings()
        yield from (line(text, indent=2) for text in settings[:varied])
        if report.plan.fixed:
            yield line(", ".join(settings[varied:]), indent=2)
        # The variants that replace the model, with their numbers of points.
        for variant, count in Counter(p.checked_as for p in report.points if p.checked_as != p.variant).items():
            yield line(f"{count} points are checked as variant {variant}", indent=2)
        return
    sizes = list(axis.sizes.values())
    most = ", ".join(f"{max(size[name] for size in sizes)} {name}" for name in sizes[0])
    yield line(StyledText(report.model, "title"), f", {len(sizes):,} {axis.about.things}, at most {most}")
    for one in swept(report):
        yield BLANK
        title = f"variant {one.variant}" if one.variant else report.model
        yield line(StyledText(title, "title"), f"  {', '.join(assignments(one.parameters.items()))}")
        yield from _swept(one, axis.about.by, axis.about.things)


def _swept(one: SweptVariant, by: str, things: str) -> Iterator[Line]:
    """The results for the model or a variant: a table by size, and a summary."""
    rows = [(stage.size, stage.samples, stage.states, stage.largest) for stage in one.stages]
    texts = [(by, things, "states", "largest"), *([f"{number:,}" for number in row] for row in rows)]
    for number, row in enumerate(aligned(texts, right=range(4))):
        yield line(StyledText("  ".join(row), "plain" if number else "faint"), indent=2)
    violated = {found.property for found in one.refutations}
    somewhere = {name for stage in one.stages for name, marks in stage.verdicts.items() if marks.get("holds")}
    holds = [name for name in one.stages[0].verdicts if name in somewhere and name not in violated]
    if one.undecided:
        yield line(f"{one.undecided} verdicts are open", indent=2)
    elif holds:
        samples = sum(stage.samples for stage in one.stages)
        yield line(StyledText("holds", "good"), f" on all {samples:,}: {', '.join(holds)}", indent=2)
    for found in one.refutations:
        steps = f"{found.length} step{'' if found.length == 1 else 's'}"
        size = f"{found.alike} of the {found.of} with {found.size[by]} {by}"
        yield line(StyledText("violated", "failed"), f": {found.property}, {steps}, {size}; the first", indent=2)
        yield line(f"{found.value}", indent=4)


def boundary_lines(report: SweepReport, boundary: Boundary, *, maps: bool = True) -> Iterator[Line]:
    """The map of one property, without its formula."""
    yield BLANK
    if not maps:
        yield line(StyledText(boundary.title, "title"))
        return
    drawn = map_of(report, boundary)
    legend: list[StyledText | str] = [StyledText(boundary.title, "title"), "  "]
    used = {mark for panel in drawn.panels for row in panel.cells for mark, _ in row}
    for glyph, word, style in (sign for mark, sign in SIGNS.items() if mark in used):
        legend += ["  ", StyledText(glyph, style), f" {word}"]
    yield line(*legend)
    yield line(StyledText(drawn.caption, "faint"), indent=2)
    wide = max(map(len, drawn.columns)) + 1
    label = max(map(len, drawn.rows))
    width = max(label + wide * len(drawn.columns), *(len(panel.title) for panel in drawn.panels)) + _GAP
    beside = max(1, (PLAIN_WIDTH - 4) // width)
    for first in range(0, len(drawn.panels), beside):
        yield BLANK
        yield from _band(drawn, drawn.panels[first : first + beside], width, wide, label)


def _band(drawn: SweepMap, panels: Sequence[MapPanel], width: int, wide: int, label: int) -> Iterator[Line]:
    """Panels side by side."""
    heads = " " * label + "".join(f"{word:>{wide}}" for word in drawn.columns)
    for texts in ([panel.title for panel in panels], [heads for _ in panels]):
        if any(map(str.strip, texts)):
            yield line(StyledText("".join(f"{text:<{width}}" for text in texts), "faint"), indent=4)
    for number, word in enumerate(drawn.rows):
        spans: list[StyledText | str] = []
        for panel in panels:
            spans.append(StyledText(f"{word:>{label}}", "faint"))
            for mark, _ in panel.cells[number]:
                spans += [" " * (wide - 1), StyledText(SIGNS[mark].glyph, SIGNS[mark].style)]
            spans.append(" " * (width - label - wide * len(drawn.columns)))
        yield line(*spans, indent=4)


def formula_lines(boundary: Boundary) -> Iterator[Line]:
    """The formula of one property, in words."""
    decided = boundary.holds + boundary.violated
    if boundary.formula is not None:
        yield line("holds where ", StyledText(boundary.formula, "good"), indent=2)
        yield line(
            f"true of the {boundary.holds} points where it holds, false of the {boundary.violated} others", indent=4
        )
        if not boundary.smallest:
            yield line("a smaller formula may exist: the search for one was given up", indent=4)
        for other in boundary.others:
            yield line(f"equivalent on these points: {other}", indent=4)
    elif boundary.changes:
        yield line(f"holds at {boundary.holds} and not at {boundary.violated} points: {boundary.because}", indent=2)
    elif decided:
        word = "holds" if boundary.holds else "violated"
        where = f"all {decided} points that were" if decided > 1 else "the only point that was"
        yield line(f"{word} at {where} decided", indent=2)
    if boundary.vacuous:
        yield line(f"vacuously at {boundary.vacuous} of them", indent=2)
    if boundary.undecided:
        yield line(f"undecided at {boundary.undecided}", indent=2)


def even_lines(report: SweepReport) -> Iterator[Line]:
    """The properties with the same verdict at every point, and the commands that prove them for every size."""
    groups: dict[tuple[str | None, bool, int], list[Boundary]] = {}
    for one in report.boundaries:
        if not one.uneven:
            groups.setdefault((one.variant, one.holds > 0, one.holds + one.violated), []).append(one)
    for (variant, holds, count), same in groups.items():
        what = StyledText("holds" if holds else "violated", "good" if holds else "failed")
        where = f" at all {count} points" if count > 1 else " at the only point"
        yield BLANK
        yield line(what, f"{where}{f' of variant {variant}' if variant else ''}: {', '.join(b.name for b in same)}")
        for one in same:
            if one.vacuous:
                yield line(f"{one.name} vacuously at {one.vacuous} of them", indent=2)
        if commands := [one.proof for one in same if one.proof is not None]:
            yield line(f"to try to prove it for every size that the model allows: {commands[0]}", indent=2)


def closing_lines(report: SweepReport) -> Iterator[Line]:
    """The last lines: open points, files, and totals."""
    yield from even_lines(report)
    reasons: Counter[str] = Counter()
    for point in report.points:
        reasons.update([point.because] if point.because is not None else [])
        open_ = [f"inconclusive: {a.because}" for a in point.verdicts.values() if a.verdict == "inconclusive"]
        reasons.update(open_[:1])
    if reasons:
        yield BLANK
    for reason, count in reasons.items():
        yield line(f"{count} point{'' if count == 1 else 's'}: {reason}", indent=2)
    yield BLANK
    yield from map(line, report.caveats)
    for name, place in report.files.items():
        yield line(f"{name}: {place}")
    again = f", {report.reused} from earlier runs" if report.reused else ""
    undecided = sum(any(a.verdict in (*UNDECIDED, REFUSED) for a in point.verdicts.values()) for point in report.points)
    if report.bare:
        yield line(f"{number_of(report.bare, 'point')} without any of the properties")
    count = len(report.points) - report.bare
    yield line(f"{count - undecided} of {count} points decided{again}, {report.seconds:.1f} s")
    yield line(StyledText("reproduce: ", "faint"), report.reproduce)
