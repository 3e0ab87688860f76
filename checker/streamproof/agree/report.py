"""The report on an agreement: as text, and as JSON data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from streamproof.agree.panel import Agreement
from streamproof.agree.result import Answer, EngineResult
from streamproof.base.text import BLANK, Line, Style, StyledText, line, parameters_text
from streamproof.system.model import Property, System, parameter_json
from streamproof.system.verdict import Verdict
from streamproof.version import VERSION

SCHEMA = "streamproof.agree/1"
HASH_SHOWN = 12
"""Number of hexadecimal digits shown of the hash of the states; the JSON has all 32."""

_STYLES: dict[Verdict, Style] = {
    Verdict.HOLDS: "good",
    Verdict.VIOLATED: "failed",
    Verdict.ERROR: "failed",
    Verdict.INCONCLUSIVE: "new",
}


COLUMNS = ("engine", "distinct", "generated", "depth", "hash of states", "seconds")
WIDTHS = (19, 10, 11, 5, 14, 7)
"""Column widths are fixed, because rows are written before the others' figures are known."""


def heading_lines(system: System) -> Iterator[Line]:
    """The system, and the head of the table of figures."""
    yield line(StyledText(f"{system.name}{f', variant {system.variant}' if system.variant else ''}", "title"))
    if system.parameters:
        yield line(parameters_text(system.parameters), indent=2)
    if system.constraint is not None:
        yield line(f"verdicts are within the constraint {system.constraint.text}", indent=2)
    yield BLANK
    yield _row(COLUMNS, "faint")


def result_line(result: EngineResult) -> Line:
    """The figures of one engine."""
    counts = (result.distinct, result.generated, result.depth)
    figures_text = tuple("-" if figure is None else str(figure) for figure in counts)
    shown = "-" if result.digest is None else result.digest.whole[:HASH_SHOWN]
    return _row((result.engine, *figures_text, shown, f"{result.seconds:.2f}" if result.seconds else "-"), "plain")


def _row(row: tuple[str, ...], style: Style) -> Line:
    figures = "  ".join(f"{text:>{size}}" for text, size in zip(row[1:], WIDTHS[1:], strict=True))
    return line(StyledText(f"{row[0]:<{WIDTHS[0]}}  {figures}", style), indent=2)


def agreement_lines(agreement: Agreement) -> Iterator[Line]:
    """Answers by property, engines without an answer and why, and every difference."""
    yield BLANK
    for prop in agreement.system.properties:
        yield from _answers(prop, agreement)
    levels = next((o.levels for o in agreement.results if o.levels is not None), None)
    if levels is not None:
        yield BLANK
        yield line(f"new states per level: {' '.join(map(str, levels))}", hang=2)
    yield BLANK
    for result in agreement.results:
        for what, why in result.why.items():
            yield line(f"-  {result.engine}{'' if what == 'all' else f', {what}'}: {why}", hang=3)
    if not agreement.differences:
        answering = sum(1 for o in agreement.results if o.answers or o.distinct is not None)
        yield line(StyledText("they agree", "good"), f": {answering} engines")
    for difference in agreement.differences:
        yield line(StyledText("they differ", "failed"), f" in {difference}", hang=2)


def _answers(prop: Property, agreement: Agreement) -> Iterator[Line]:
    """Each different answer on its own line, with its engines."""
    given: dict[Answer, list[str]] = {}
    for result in agreement.results:
        if prop.name in result.answers:
            given.setdefault(result.answers[prop.name], []).append(result.engine)
    silent = [
        o.engine for o in agreement.results if prop.name not in o.answers and (o.answers or o.distinct is not None)
    ]
    yield line(StyledText(prop.name, "title"), StyledText(f"  {prop.kind.value}", "faint"), indent=2)
    for answer, engines in given.items():
        yield line(StyledText(str(answer), _STYLES[answer.verdict]), f": {'; '.join(engines)}", indent=6, hang=2)
    if silent:
        yield line(StyledText("-", "faint"), f": {'; '.join(silent)}", indent=6, hang=2)


def agreement_json(agreement: Agreement) -> dict[str, Any]:
    """The same as JSON data, schema ``streamproof.agree/1``, without the exit code."""
    system = agreement.system
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "model": system.name,
        "variant": system.variant,
        "parameters": {name: parameter_json(value) for name, value in system.parameters.items()},
        "constraint": None if system.constraint is None else system.constraint.text,
        "agree": not agreement.differences,
        "engines": [_engine(result) for result in agreement.results],
        "properties": [_property(prop, agreement) for prop in system.properties],
        "differences": [asdict(difference) for difference in agreement.differences],
    }


def _engine(result: EngineResult) -> dict[str, Any]:
    return {
        "name": result.engine,
        "states": {"distinct": result.distinct, "generated": result.generated, "depth": result.depth},
        "levels": None if result.levels is None else list(result.levels),
        "hash": None if result.digest is None else result.digest.whole,
        "mistake_at_level": result.mistake,
        "steps_ahead": None if result.horizon is None else result.horizon - 1,
        "seconds": round(result.seconds, 6),
        "missing": dict(result.why),
        "unconfirmed": result.unconfirmed,
    }


def _property(prop: Property, agreement: Agreement) -> dict[str, Any]:
    answers = ((o.engine, o.answers[prop.name]) for o in agreement.results if prop.name in o.answers)
    return {
        "name": prop.name,
        "kind": prop.kind.value,
        "verdict": agreement.answer(prop.name).verdict.value,
        "answers": [
            {"engine": engine, "verdict": answer.verdict.value, "states": answer.length, "loop": answer.loop}
            for engine, answer in answers
        ],
    }
