"""Console output: the result of a check, counterexamples, progress. Colours on a terminal, plain text elsewhere.

Without a terminal, the text is `PLAIN_WIDTH` columns wide whatever the environment, so that logs and golden files are
comparable.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from streamproof.base.records import replace
from streamproof.base.text import (
    BLANK,
    Line,
    Style,
    StyledText,
    abridged,
    aligned,
    encodable,
    inner,
    line,
    parameters_text,
    text,
    visible,
    wrap,
)
from streamproof.report.check_report import EXPLORED, CheckReport, Result
from streamproof.system.verdict import (
    WITHIN,
    Condition,
    Counts,
    Coverage,
    Measured,
    Progress,
    Verdict,
    number_of,
)

if TYPE_CHECKING:
    pass

SHORT = 80
"""Length of a reason, in characters, above which further properties with it refer to the first."""
PLAIN_WIDTH = 100
"""Width of the text without a terminal, in columns."""

_COLOURS: dict[Style, str] = {
    "plain": "",
    "title": "bold",
    "failed": "bold red",
    "good": "bold green",
    "action": "bold cyan",
    "place": "cyan",
    "old": "dim",
    "new": "yellow",
    "source": "dim underline",
    "faint": "dim",
}

EARLY = {
    "every property decided": "all requested properties are decided",
    "max_violations": "the requested number of violations was found",
}
"""Reasons for the end of a search that the rows of undecided properties do not show."""

_VERDICTS: dict[Verdict, Style] = {
    Verdict.HOLDS: "good",
    Verdict.VIOLATED: "failed",
    Verdict.INCONCLUSIVE: "new",
    Verdict.ERROR: "failed",
}


def print_lines(lines: Iterable[Line], stream: TextIO | None = None) -> None:
    """Write styled lines to `stream` (default: standard output): with colours on a terminal, else as plain text."""
    stream = stream or sys.stdout
    lines = [
        replace(one, spans=tuple(StyledText(encodable(abridged(s.text), stream), s.style) for s in one.spans))
        for one in lines
    ]
    if not stream.isatty() and not os.environ.get("FORCE_COLOR"):
        inner(stream).write(visible(text(lines, PLAIN_WIDTH), lines=True))
        return
    # Not needed in a pipe, and as slow to import as the check of a small model.
    from rich.console import Console
    from rich.text import Text

    console = Console(file=inner(stream), highlight=False, markup=False, emoji=False)
    for row in wrap(lines, console.width):
        console.print(Text.assemble(*((span.text, _COLOURS[span.style]) for span in row)), soft_wrap=True)


def print_check(report: CheckReport, stream: TextIO | None = None, *, detailed: bool = False) -> None:
    """Write the result of a check: properties, coverage, counts, verdict. `detailed`: see `check_lines`."""
    print_lines(check_lines(report, detailed=detailed), stream)


def property_lines(report: CheckReport) -> list[Line]:
    """The rows of the properties as styled lines."""
    return list(_properties(report.properties))


def check_lines(report: CheckReport, *, detailed: bool = False) -> list[Line]:
    """The result of a check as styled lines.

    `detailed` shows every action with the conjuncts of its guard, and the levels; otherwise only gaps in coverage are shown.
    """
    variant = f", variant {report.variant}" if report.variant else ""
    lines = [line(StyledText(f"{report.model}{variant}", "title"), f", engine {report.engine}")]
    if report.parameters:
        lines.append(line(parameters_text(report.parameters), indent=2))
    if report.properties:
        lines.extend((BLANK, *_properties(report.properties)))
    if report.measures:
        lines.extend((BLANK, *_measures(report.measures)))
    if report.result.coverage is not None and report.result.coverage.generated:
        within = WITHIN if report.found_outside else ""
        covered = _coverage(report.result.coverage) if detailed else _coverage_summary(report.result.coverage, within)
        lines.extend((BLANK, *covered))
    lines.append(BLANK)
    if report.counts is not None:
        lines.append(line(counts_text(report.counts)))
        lines.append(line(_shape(report.counts, report.result.seconds.explore)))
        if detailed:
            lines.append(line(f"new states per level: {' '.join(map(str, report.counts.levels))}", hang=2))
    if report.constraint is not None:
        lines.append(line(_constraint(report), hang=2))
    told = report.error is not None or any(r.finding.verdict is Verdict.INCONCLUSIVE for r in report.properties)
    if report.stopped is not None and (report.stopped in EARLY or not told):
        because = EARLY.get(report.stopped, f"{report.stopped} was reached")
        lines.append(line(f"the search ended early, not all states were searched: {because}"))
    lines.extend(line(note) for note in report.result.notes)
    for reduction in report.result.reductions:
        why_not = " was not needed" if reduction.not_needed else " does not apply"
        made = StyledText(
            f"{reduction.name} reduction{'' if reduction.applied else why_not}",
            "good" if reduction.applied else "new",
        )
        lines.append(line(made, f": {reduction.because}", hang=2))
    if report.left_out is not None and any(reduction.applied for reduction in report.result.reductions):
        lines.append(line("counts and coverage are those of the reduced search, which left states out"))
    lines.append(line(_effort(report)))
    vacuous = [r.finding.property for r in report.properties if r.finding.vacuous]
    if vacuous:
        lines.append(line(StyledText("vacuously true", "new"), f": {', '.join(vacuous)}"))
    lines.append(_overall(report))
    if report.error is not None and report.error.remedy:
        lines.append(line(report.error.remedy, indent=2))
    if report.reproduce:
        lines.append(line(StyledText("reproduce: ", "faint"), report.reproduce))
    return lines


def _constraint(report: CheckReport) -> str:
    """The behaviours that the constraint cuts."""
    start = f"constraint {report.constraint}: "
    if report.counts is None:
        return f"{start}no step from a state outside it is considered"
    outside = report.found_outside
    if report.left_out is not None:
        found = number_of(outside, "state") if outside else "no state"
        return f"{start}{found} outside it found, but {report.left_out}; no step from a state outside is considered"
    if not outside:
        return f"{start}every state is inside"
    if outside == 1:
        return f"{start}behaviours end at the state outside it, which is checked but not counted"
    return f"{start}behaviours end at the {outside:,} states outside it, which are checked but not counted"


def counts_text(counts: Counts) -> str:
    """State counts in the wording of TLC."""
    return (
        f"{counts.generated} states generated, {counts.distinct} distinct states found, "
        f"{counts.queue} states left on queue, depth {counts.depth}"
    )


def _shape(counts: Counts, seconds: float) -> str:
    """Search speed, share of duplicates, out-degree and level sizes."""
    parts = [
        f"{counts.generated / seconds if seconds > 0 else 0:.0f} s/s, "
        f"{counts.distinct / seconds if seconds > 0 else 0:.0f} ds/s",
        f"{_duplicates(counts):.0f}% duplicates",
    ]
    if counts.out_degree is not None:
        degree = counts.out_degree
        parts.append(f"out-degree {degree.least} to {degree.most}, {degree.mean:.2f} on average")
    if counts.levels:
        parts.append(f"widest level {max(counts.levels)}")
    return ", ".join(parts)


def _duplicates(counts: Counts | Progress) -> float:
    """The share of duplicates among generated states, in percent."""
    return 100 * (1 - counts.distinct / counts.generated) if counts.generated else 0.0


def _properties(results: tuple[Result, ...]) -> Iterator[Line]:
    rows = [("property", "kind", "verdict", "expected")]
    rows += [(r.finding.property, r.finding.kind.value, r.finding.text(), r.expected or "") for r in results]
    head, *cells = aligned(rows)
    if not any(r.expected for r in results):
        head.pop()
    shown: dict[str, str] = {}
    yield line(StyledText("  ".join(head), "faint"), indent=2)
    for (name, kind, verdict, expected), result in zip(cells, results, strict=True):
        yield line(
            f"{name}  ",
            StyledText(f"{kind}  ", "faint"),
            StyledText(f"{verdict}  ", _VERDICTS[result.finding.verdict]),
            StyledText(f"{expected}  <- not as expected", "failed") if result.surprising else expected,
            indent=2,
        )
        for note in _notes(result):
            first = shown.setdefault(note, result.finding.property)
            again = len(note) > SHORT and first != result.finding.property
            yield line(f"as for {first}" if again else note, indent=6, hang=6)


def _measures(measures: tuple[Measured, ...]) -> Iterator[Line]:
    """Quantities with their largest values."""
    head, *rows = aligned([("measure", "largest"), *((m.name, largest_text(m)) for m in measures)])
    yield line(StyledText("  ".join(head), "faint"), indent=2)
    for (name, value), measured in zip(rows, measures, strict=True):
        doc = measured.doc.partition("\n")[0] if measured.value is not None else measured.because
        known = f"{name}  {value}  "
        yield line(known, StyledText(doc, "faint"), indent=2, hang=len(known) + 2)


def largest_text(measured: Measured) -> str:
    """The largest value of a quantity as text: ``4``, ``4 or more``, ``none``."""
    if measured.value is None:
        return "none"
    return str(measured.value) if measured.exact else f"{measured.value} or more"


def _notes(result: Result) -> Iterator[str]:
    trace = result.finding.trace
    if result.finding.because:
        yield result.finding.because
    if trace is not None:
        what = "witness" if result.finding.verdict is Verdict.HOLDS else "counterexample"
        count = len(trace.steps)
        where = f": {result.trace_file}" if result.trace_file else ""
        yield f"{what} of {count} step{'' if count == 1 else 's'}{where}"


def _coverage(coverage: Coverage) -> Iterator[Line]:
    counted = [("action", "generated", "distinct")]
    for action, steps in coverage.generated.items():
        counted.append((action, str(steps), str(coverage.distinct.get(action, 0))))
        taken = ((at, of) for at, of in coverage.branches.items() if at[0] == action)
        counted += [(f"{action}: {branch}", str(some), str(new)) for (_, branch), (some, new) in taken]
    never_taken = {f"{action}: {branch}" for action, branch in coverage.never_branches}
    head, *rows = ("  ".join(row) for row in aligned(counted, right=(1, 2)))
    yield line(StyledText(head, "faint"), indent=2)
    for (name, _, _), row in zip(counted[1:], rows, strict=True):
        never = (StyledText("  <- never enabled", "failed"),) if name in coverage.never else ()
        never = (StyledText("  <- never taken", "failed"),) if name in never_taken else never
        yield line(row, *never, indent=2)
        yield from _conditions([c for c in coverage.conditions or () if c.action == name], coverage)
    if coverage.conditions is None:
        yield line("guard conditions not counted: the search had no time or memory left", indent=2)


def _conditions(conditions: list[Condition], coverage: Coverage) -> Iterator[Line]:
    wide = max((len(str(c.states)) for c in conditions), default=0)
    for condition in conditions:
        never = (StyledText("  <- never true", "failed"),) if coverage.complete and not condition.states else ()
        count = f"{condition.states:>{wide}} of {coverage.expanded}"
        yield line(StyledText(f"{count}  ", "faint"), condition.text, *never, indent=6, hang=6 + len(count) + 2)


def _coverage_summary(coverage: Coverage, within: str) -> Iterator[Line]:
    """`within`: the reservation about actions and conditions that only the behaviours inside a constraint lack."""
    never = coverage.never
    taken = sum(count > 0 for count in coverage.generated.values())
    if taken < len(coverage.generated) and not coverage.complete:
        yield line(f"{taken} of {len(coverage.generated)} actions were taken in the part that was searched")
    elif never:
        names = StyledText(", ".join(never), "failed")
        yield line(f"{taken} of {len(coverage.generated)} actions were taken; never enabled{within}: ", names)
    else:
        yield line(f"all {taken} actions were taken" if taken > 1 else "the action was taken")
    for name, branch in coverage.never_branches:
        yield line(StyledText(f"never taken{within}: ", "failed"), f"{name}: {branch}", indent=2)
    for name, conditions in coverage.never_true.items():
        for written in conditions:
            yield line(StyledText(f"never true{within} in {name}: ", "failed"), written, indent=2)


def _effort(report: CheckReport) -> str:
    seconds = report.result.seconds
    afterwards = f", behaviours {seconds.liveness:.2f} s" if seconds.liveness else ""
    parts = [f"{seconds.total:.2f} s (prepare {seconds.compile:.2f} s, explore {seconds.explore:.2f} s{afterwards})"]
    if report.peak_bytes is not None:
        parts.append(f"peak memory {size_text(report.peak_bytes)}")
    return ", ".join(parts)


def _overall(report: CheckReport) -> Line:
    verdict = report.verdict
    if report.error is not None:
        at = "" if report.error.loc is None else report.error.loc.short
        return line(StyledText("error", "failed"), f": {at}{': ' if at else ''}{report.error.message}")
    if report.explored:
        return line(StyledText(EXPLORED, "good"), ": every reachable state; no property was checked")
    names = [r.finding.property for r in report.properties if r.finding.verdict is verdict]
    what = ", ".join(names) or f"not all states were searched ({report.stopped})"
    if verdict is Verdict.HOLDS and len(names) > 1:
        what = f"{len(names)} of {len(names)} properties"
    within = any(r.finding.within is not None for r in report.properties if r.finding.verdict is verdict)
    code = "" if verdict is Verdict.HOLDS else f" (exit code {int(report.exit_code)})"
    return line(StyledText(verdict.value + WITHIN * within, _VERDICTS[verdict]), f": {what}{code}")


def progress_text(progress: Progress, before: Progress, memory: int) -> str:
    """One line of progress in the wording of TLC, with rates since `before`."""
    span = progress.elapsed - before.elapsed
    generated = (progress.generated - before.generated) / span if span > 0 else 0.0
    distinct = (progress.distinct - before.distinct) / span if span > 0 else 0.0
    minutes, seconds = divmod(int(progress.elapsed), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"Progress({progress.depth}) at {hours:02}:{minutes:02}:{seconds:02}: "
        f"{progress.generated} states generated ({generated:.0f} s/s), "
        f"{progress.distinct} distinct states found ({distinct:.0f} ds/s), "
        f"{progress.queue} states left on queue, {_duplicates(progress):.0f}% duplicates, {size_text(memory)}"
        + (f", {progress.stage}" if progress.stage else "")
    )


def size_text(count: int) -> str:
    """A size in bytes as text, with decimal units: ``45 MB``."""
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.5:
            return f"{size:.3g} {unit}"
    return f"{size / 1000:.3g} TB"
