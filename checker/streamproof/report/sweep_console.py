"""A sweep on the console: a map of each property that changes, what it amounts to, and what is left open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from streamproof.report.console import PLAIN_WIDTH
from streamproof.report.sweep import Boundary, Mark, SweepReport
from streamproof.report.sweep_maps import Layout, Panel, layout, shown
from streamproof.report.sweep_samples import Refutation, Swept, swept
from streamproof.traces.lines import BLANK, Line, Span, Style, line

GLYPHS: dict[Mark, str] = {
    "holds": "+",
    "violated": "x",
    "inconclusive": "?",
    "error": "!",
    "refused": "-",
    "open": ".",
}
WORDS: dict[Mark, str] = {
    "holds": "holds",
    "violated": "violated",
    "inconclusive": "inconclusive",
    "error": "error",
    "refused": "not allowed",
    "open": "not looked at",
}
_STYLES: dict[Mark, Style] = {
    "holds": "good",
    "violated": "failed",
    "inconclusive": "new",
    "error": "failed",
    "refused": "faint",
    "open": "faint",
}
_GAP = 3


def opening_lines(report: SweepReport) -> Iterator[Line]:
    """What was swept: the first lines."""
    if report.sizes:
        yield from sampled_lines(report)
        return
    yield line(Span(f"{report.model}", "title"), f", {len(report.points)} points")
    for name, values in report.axes.items():
        yield line(f"{name}: {', '.join(map(shown, values))}", indent=2)
    if report.fixed:
        yield line(", ".join(f"{name}={shown(value)}" for name, value in report.fixed.items()), indent=2)
    yield from _stand_ins(report)


def uneven(report: SweepReport) -> list[Boundary]:
    """The properties that do not have one answer at every point."""
    return [boundary for boundary in report.boundaries if boundary.changes or boundary.undecided]


def boundary_lines(report: SweepReport, boundary: Boundary, *, maps: bool = True) -> Iterator[Line]:
    """The points of one property: known before there is a formula."""
    yield BLANK
    if maps:
        yield from _map(report, boundary)
    else:
        yield line(Span(_title(boundary), "title"))


def closing_lines(report: SweepReport) -> Iterator[Line]:
    """What is the same everywhere, what is left open, and where the answer is: the last lines."""
    if not report.sizes:
        changing = uneven(report)
        yield from _everywhere([boundary for boundary in report.boundaries if boundary not in changing])
    yield from _left_open(report)
    yield from _outcome(report)


def _stand_ins(report: SweepReport) -> Iterator[Line]:
    """Which variants were searched in place of the model, and at how many points."""
    counted = Counter(p.checked_as for p in report.points if p.checked_as != p.variant)
    for variant, count in counted.items():
        yield line(f"{count} points are checked as variant {variant}", indent=2)


def _title(boundary: Boundary) -> str:
    return f"{boundary.name}{f', variant {boundary.variant}' if boundary.variant else ''}"


def _map(report: SweepReport, boundary: Boundary) -> Iterator[Line]:
    placed = layout(report, boundary.name, boundary.variant)
    used = {cell.mark for panel in placed.panels for row in panel.cells for cell in row}
    legend: list[Span | str] = [Span(_title(boundary), "title"), "  "]
    for mark in GLYPHS:
        if mark in used:
            legend += ["  ", Span(GLYPHS[mark], _STYLES[mark]), f" {WORDS[mark]}"]
    yield line(*legend)
    wide = max(len(word) for word in placed.columns)
    label = max((len(word) for word in placed.rows), default=0)
    width = max(label + (wide + 1) * len(placed.columns), *(len(panel.title) for panel in placed.panels)) + _GAP
    beside = max(1, (PLAIN_WIDTH - 4) // width)
    told = [f"columns: {placed.across}" if placed.across else "", f"rows: {placed.down}" if placed.down else ""]
    told.append(f"the same for every {', '.join(placed.alike)} explored" if placed.alike else "")
    yield line(Span(", ".join(filter(None, told)), "faint"), indent=2)
    for first in range(0, len(placed.panels), beside):
        yield BLANK
        yield from _band(placed, placed.panels[first : first + beside], width, wide, label)


def _band(placed: Layout, panels: tuple[Panel, ...], width: int, wide: int, label: int) -> Iterator[Line]:
    """Panels side by side."""
    if any(panel.title for panel in panels):
        yield line(Span("".join(f"{panel.title:<{width}}" for panel in panels), "faint"), indent=4)
    if placed.across:
        heads = " " * label + "".join(f" {word:>{wide}}" for word in placed.columns)
        yield line(Span("".join(f"{heads:<{width}}" for _ in panels), "faint"), indent=4)
    for number, word in enumerate(placed.rows):
        spans: list[Span | str] = []
        for panel in panels:
            spans.append(Span(f"{word:>{label}}", "faint"))
            for cell in panel.cells[number]:
                spans += [" " * wide, Span(GLYPHS[cell.mark], _STYLES[cell.mark])]
            spans.append(" " * (width - label - (wide + 1) * len(placed.columns)))
        yield line(*spans, indent=4)


def formula_lines(boundary: Boundary) -> Iterator[Line]:
    """In words: where it holds."""
    decided = boundary.holds + boundary.violated
    if boundary.formula is not None:
        yield line("holds where ", Span(boundary.formula, "good"), indent=2)
        yield line(
            f"true of the {boundary.holds} points where it holds, false of the {boundary.violated} others", indent=4
        )
        if not boundary.smallest:
            yield line("a smaller formula may exist: the search for one was given up", indent=4)
        for other in boundary.others:
            yield line(f"so is: {other}", indent=4)
    elif boundary.changes:
        yield line(f"holds at {boundary.holds} and not at {boundary.violated} points: {boundary.because}", indent=2)
    elif boundary.holds or boundary.violated:
        word = "holds" if boundary.holds else "violated"
        where = f"all {decided} points that were" if decided > 1 else "the only point that was"
        yield line(f"{word} at {where} decided", indent=2)
    if boundary.vacuous:
        yield line(f"vacuously at {boundary.vacuous} of them", indent=2)
    if boundary.undecided:
        yield line(f"undecided at {boundary.undecided}", indent=2)


def _everywhere(same: Sequence[Boundary]) -> Iterator[Line]:
    """The properties that have one answer at every point, and how to have it for every size."""
    groups: dict[tuple[str | None, bool, int], list[str]] = {}
    for boundary in same:
        key = (boundary.variant, boundary.holds > 0, boundary.holds + boundary.violated)
        groups.setdefault(key, []).append(boundary.name)
    for (variant, holds, count), names in groups.items():
        what = Span("holds" if holds else "violated", "good" if holds else "failed")
        where = f" at all {count} points" if count > 1 else " at the only point"
        yield BLANK
        yield line(what, f"{where}{f' of variant {variant}' if variant else ''}: {', '.join(names)}")
        for boundary in same:
            if boundary.vacuous and boundary.variant == variant and boundary.name in names:
                yield line(f"{boundary.name} vacuously at {boundary.vacuous} of them", indent=2)
        proofs = [b.proof for b in same if b.variant == variant and b.name in names and b.proof is not None]
        if proofs:
            yield line(f"to try to prove it for every size that the model allows: {proofs[0]}", indent=2)


def _left_open(report: SweepReport) -> Iterator[Line]:
    """Points without an answer, by the reason."""
    reasons: Counter[tuple[str, str]] = Counter()
    for point in report.points:
        if point.because is not None:
            reasons[("", point.because)] += 1
        for answer in point.answers.values():
            if answer.mark == "inconclusive":
                reasons[("inconclusive: ", answer.because)] += 1
                break
    if reasons:
        yield BLANK
    for (what, reason), count in reasons.items():
        yield line(f"{count} point{'' if count == 1 else 's'}: {what}{reason}", indent=2)


def sampled_lines(report: SweepReport) -> Iterator[Line]:
    """A sweep over what was generated: how much of each size, and what refutes each variant."""
    found = swept(report)
    most = ", ".join(
        f"{max(s[name] for s in report.sizes.values())} {name}" for name in next(iter(report.sizes.values()))
    )
    yield line(Span(f"{report.model}", "title"), f", {len(report.sizes):,} {report.things}, at most {most}")
    for one in found:
        yield BLANK
        title = f"variant {one.variant}" if one.variant else report.model
        parameters = ", ".join(f"{name}={shown(value)}" for name, value in one.parameters.items())
        yield line(Span(title, "title"), f"  {parameters}")
        yield from _stages(report, one)
        yield from _verdict(report, one)


def _stages(report: SweepReport, one: Swept) -> Iterator[Line]:
    heads = (report.by, report.things, "states", "largest")
    rows = [(stage.size, stage.samples, stage.states, stage.largest) for stage in one.stages]
    texts = [heads, *(tuple(f"{number:,}" for number in row) for row in rows)]
    widths = [max(len(row[at]) for row in texts) for at in range(len(heads))]
    for number, row in enumerate(texts):
        words = "  ".join(f"{word:>{width}}" for word, width in zip(row, widths, strict=True))
        yield line(Span(words, "faint" if number == 0 else "plain"), indent=2)


def _verdict(report: SweepReport, one: Swept) -> Iterator[Line]:
    """What the model or variant amounts to."""
    violated = {found.name for found in one.refutations}
    holds = [name for name in report.properties if name not in violated and _anywhere(one, name, "holds")]
    if holds and not one.undecided:
        yield line(Span("holds", "good"), f" on all {one.samples:,}: {', '.join(holds)}", indent=2)
    elif one.undecided:
        yield line(f"{one.undecided} verdicts are open", indent=2)
    for found in one.refutations:
        yield from _refutation(report, found)


def _anywhere(one: Swept, name: str, mark: Mark) -> bool:
    return any(stage.verdicts[name].get(mark) for stage in one.stages)


def _refutation(report: SweepReport, found: Refutation) -> Iterator[Line]:
    steps = f"{found.length} step{'' if found.length == 1 else 's'}"
    size = f"{found.alike} of the {found.of} with {found.size[report.by]} {report.by}"
    yield line(Span("violated", "failed"), f": {found.name}, {steps}, {size}; the first", indent=2)
    yield line(f"{found.value}", indent=4)


def _outcome(report: SweepReport) -> Iterator[Line]:
    yield BLANK
    if any(boundary.formula for boundary in report.boundaries):
        yield line("Formulas generalise from the points explored; they are no proofs.")
    for name, place in report.files.items():
        yield line(f"{name}: {place}")
    again = f", {report.reused} known from before" if report.reused else ""
    open_ = report.count("inconclusive") + report.count("open")
    decided = len(report.points) - open_ - report.count("error") - report.count("refused")
    yield line(f"{decided} of {len(report.points)} points decided{again}, {report.seconds:.1f} s")
    yield line(Span("reproduce: ", "faint"), report.reproduce)
