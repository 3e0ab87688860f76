"""A sweep as one HTML page: what it amounts to, and a table of every point; for what was generated, a row for each sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamproof.report.pages import environment
from streamproof.report.sweep import Answer, Mark, PointReport, SweepReport
from streamproof.report.sweep_console import GLYPHS, WORDS
from streamproof.report.sweep_maps import shown
from streamproof.report.sweep_samples import Swept, setting_of, swept, value_of
from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of the table: a sign, the mark that colours it, and what it says when pointed at."""

    text: str
    mark: str = ""
    tells: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what it is about, and its cells."""

    heads: tuple[str, ...]
    cells: tuple[Cell, ...]


def render_page(report: SweepReport) -> str:
    """The page, self-contained, for light and dark; equal reports give equal text, so that times are left out."""
    sampled = bool(report.sizes)
    return (
        environment()
        .get_template("sweep.html.j2")
        .render(
            report=report,
            settings=tuple(_settings(report)),
            swept=swept(report) if sampled else (),
            parameters=_parameters,
            heads=_sample_heads(report) if sampled else _point_heads(report),
            rows=tuple(_sample_rows(report) if sampled else _point_rows(report)),
            glyphs=[(GLYPHS[mark], word, mark) for mark, word in WORDS.items()],
        )
    )


def _parameters(one: Swept) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in one.parameters.items())


def _settings(report: SweepReport) -> Iterator[str]:
    for name, values in report.axes.items():
        if name != report.sampled:
            yield f"{name}: {', '.join(map(shown, values))}"
    yield from (f"{name}={shown(value)}" for name, value in report.fixed.items())
    yield from (f"{name}={shown(value)}" for name, value in report.limits.items())


def _point_heads(report: SweepReport) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names = ["variant"] if len(report.variants) > 1 else []
    return (*names, *report.axes), ("states", *report.properties)


def _point_rows(report: SweepReport) -> Iterator[Row]:
    for point in report.points:
        heads = [point.variant or ""] if len(report.variants) > 1 else []
        cells = [_cell(point.answers[name], name) for name in report.properties]
        yield Row((*heads, *map(shown, point.values)), (_states(point), *cells))


def _sample_heads(report: SweepReport) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sizes = next(iter(report.sizes.values()))
    settings = [", ".join((s[0] or report.model, *map(shown, s[1:]))) for s in _all_settings(report)]
    return (report.sampled, *sizes), tuple(word for setting in settings for word in ("states", setting))


def _all_settings(report: SweepReport) -> list[tuple[Any, ...]]:
    found = dict.fromkeys(setting_of(report, point) for point in report.points)
    return sorted(found, key=lambda setting: report.variants.index(setting[0]))


def _sample_rows(report: SweepReport) -> Iterator[Row]:
    """A row for each sample, two cells for each variant: states, and the properties that it breaks there."""
    known: dict[Any, dict[tuple[Any, ...], PointReport]] = {}
    for point in report.points:
        known.setdefault(value_of(report, point), {})[setting_of(report, point)] = point
    settings = _all_settings(report)
    for value, points in known.items():
        cells = []
        for setting in settings:
            found = points.get(setting)
            cells += [Cell(""), Cell("")] if found is None else [_states(found), _together(found.answers)]
        yield Row((str(value), *map(str, report.sizes[value].values())), tuple(cells))


def _together(answers: Mapping[str, Answer]) -> Cell:
    """All properties of one point: what is violated, or else what is open, or a plus."""
    for mark in ("error", "violated", "inconclusive", "open"):
        names = [name for name, answer in answers.items() if answer.mark == mark]
        if names:
            told = "; ".join(_told(answers[name], name) for name in names)
            return Cell(f"{GLYPHS[answers[names[0]].mark]} {', '.join(names)}", mark, told)
    left: Mark = "holds" if any(answer.mark == "holds" for answer in answers.values()) else "refused"
    return Cell(GLYPHS[left], left)


def _states(point: PointReport) -> Cell:
    return Cell("" if point.distinct is None else f"{point.distinct:,}")


def _cell(answer: Answer, name: str) -> Cell:
    text = GLYPHS[answer.mark] + (f" {answer.length}" if answer.length is not None else "")
    return Cell(text, answer.mark, _told(answer, name))


def _told(answer: Answer, name: str) -> str:
    steps = f", {answer.length} step{'' if answer.length == 1 else 's'}" if answer.length is not None else ""
    because = f": {answer.because}" if answer.mark in ("inconclusive", "error") else ""
    return f"{name}: {WORDS[answer.mark]}{steps}{because}"
