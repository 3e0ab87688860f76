"""Execution of a comparison: one search per design and setting, and a judgement of each claim."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass
from streamproof.base.text import BLANK, Line, Style, StyledText, aligned, line, parameters_text
from streamproof.explicit.exploration import explore
from streamproof.language.declare.spec import Spec
from streamproof.language.declare.sweeping import Cell, Claim, Column, Comparison, Judgement, Table, UndecidedClaim
from streamproof.system.verdict import Verdict
from streamproof.version import VERSION

SCHEMA = "streamproof.compare/1"

_STYLES: dict[Judgement, Style] = {
    Judgement.CONFIRMED: "good",
    Judgement.PARTLY: "new",
    Judgement.REFUTED: "failed",
    Judgement.OPEN: "new",
}


@dataclass(frozen=True)
class Judged:
    """A claim and its judgement."""

    claim: Claim
    judgement: Judgement
    because: str


@dataclass(frozen=True)
class Compared:
    """The result of a comparison. `searches`: number of state spaces searched; `states`: their total size."""

    model: str
    comparison: Comparison
    table: Table
    claims: tuple[Judged, ...]
    searches: int
    states: int

    @property
    def decided(self) -> bool:
        """Whether every question is decided."""
        return all(cell.text != "?" for cell in self.table.cells.values())

    def to_json(self) -> dict[str, Any]:
        """As JSON data, schema ``streamproof.compare/1``."""
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "model": self.model,
            "parameter": self.comparison.parameter,
            "designs": list(self.comparison.designs),
            "blocks": [
                {
                    "title": block.title,
                    "columns": [
                        {
                            "name": column.name,
                            "title": column.title,
                            "of": column.of,
                            "parameters": dict(column.parameters),
                            "answers": [_answer(d, self.table.cells[d, column.name]) for d in self.comparison.designs],
                        }
                        for column in block.columns
                    ],
                }
                for block in self.comparison.blocks
            ],
            "claims": [
                {"about": j.claim.about, "says": j.claim.says, "judgement": j.judgement.value, "because": j.because}
                for j in self.claims
            ],
            "searches": self.searches,
            "states": self.states,
        }


def _answer(design: str, cell: Cell) -> dict[str, Any]:
    return {
        "design": design,
        "holds": cell.holds,
        "length": cell.length,
        "within": cell.within,
        "vacuous": cell.vacuous,
        "largest": cell.largest,
        "at_least": cell.capped,
    }


def compare(
    spec: Spec,
    comparison: Comparison,
    *,
    max_states: int | None = None,
    on_search: Callable[[str], None] = lambda _: None,
) -> Compared:
    """Decide every question of a comparison, and judge its claims.

    `max_states` limits each search; questions undecided at the limit are open. `on_search` is called before each search with
    its parameters as text. Raises `ModelError` and `UsageError` as the specification does.
    """
    spec = replace(spec, properties=(*spec.properties, *comparison.properties))
    columns = [column for block in comparison.blocks for column in block.columns]
    groups: dict[tuple[tuple[str, Any], ...], list[Column]] = {}
    for column in columns:
        groups.setdefault(tuple(sorted(column.parameters.items())), []).append(column)
    cells: dict[tuple[str, str], Cell] = {}
    states = searches = 0
    for design in comparison.designs:
        for at, group in groups.items():
            parameters = {**dict(at), comparison.parameter: design}
            on_search(parameters_text(parameters))
            found, count = _answers(spec, parameters, group, max_states)
            cells |= {(design, name): cell for name, cell in found.items()}
            searches, states = searches + 1, states + count
    table = Table(cells)
    claims = tuple(_judged(claim, table) for claim in comparison.claims)
    return Compared(spec.model.title(), comparison, table, claims, searches, states)


def _judged(claim: Claim, table: Table) -> Judged:
    try:
        return Judged(claim, *claim.judge(table))
    except UndecidedClaim as missing:
        return Judged(claim, Judgement.OPEN, f"not decided: {missing}")


def _answers(
    spec: Spec, parameters: dict[str, Any], columns: list[Column], max_states: int | None
) -> tuple[dict[str, Cell], int]:
    """The answers to the questions about one instance of the model, and its number of states."""
    wanted = {column.of for column in columns}
    # Skip properties without a question here, such as refinements.
    spec = replace(spec, properties=tuple(f for f in spec.properties if f.__name__ in wanted))
    system = spec.system(None, **parameters)
    properties = [p.name for p in system.properties if p.name in wanted]
    explored = explore(system, SearchOptions(properties, max_states=max_states))
    measures = [m for m in spec.measured(None, **parameters) if m.name in wanted]
    unknown = wanted - {*properties, *(m.name for m in measures)}
    assert not unknown, f"{sorted(unknown)} of {system.name} at {parameters}"
    sizes = {m.name: m for m in explored.measured(measures)}
    found: dict[str, Cell] = {}
    for column in columns:
        if column.of in sizes:
            size = sizes[column.of]
            cap = column.cap is not None and size.value == {**spec.model.parameters(), **parameters}[column.cap]
            lower = explored.complete and not size.exact  # a constraint ends behaviours
            found[column.name] = Cell(largest=size.value if explored.complete else None, capped=cap or lower)
            continue
        finding = explored.finding(column.of)
        if finding.verdict in (Verdict.HOLDS, Verdict.VIOLATED):
            length = None if finding.trace is None or finding.verdict is Verdict.HOLDS else len(finding.trace.steps)
            holds, vacuous = finding.verdict is Verdict.HOLDS, bool(finding.is_vacuous())
            found[column.name] = Cell(holds=holds, length=length, within=finding.within, vacuous=vacuous)
        else:
            found[column.name] = Cell()
    return found, explored.counts.inside.distinct


def compared_lines(compared: Compared) -> Iterator[Line]:
    """The tables and the claims, as styled lines."""
    comparison = compared.comparison
    yield line(StyledText(compared.model, "title"), f" by {comparison.parameter}")
    for block in comparison.blocks:
        yield BLANK
        yield line(StyledText(block.title, "title"), indent=2)
        yield from _block(compared, block.columns)
    if compared.claims:
        yield BLANK
        yield line(StyledText("Claims", "title"), indent=2)
    for judged in compared.claims:
        yield line(
            StyledText(f"{judged.judgement.value:<9}  ", _STYLES[judged.judgement]),
            StyledText(judged.claim.about, "faint"),
            f": {judged.claim.says}",
            indent=2,
            hang=13,
        )
        yield line(judged.because, indent=13, hang=13)
    yield BLANK
    yield line(f"{compared.searches} state spaces searched, {compared.states:,} states")


def _block(compared: Compared, columns: tuple[Column, ...]) -> Iterator[Line]:
    cells = compared.table.cells
    rows = [(design, *(cells[design, c.name].text for c in columns)) for design in compared.comparison.designs]
    head, *texts = aligned([("", *(c.title for c in columns)), *rows])
    yield line(StyledText("  ".join(head), "faint"), indent=2)
    for (design, *_), (name, *results) in zip(rows, texts, strict=True):
        spans = [StyledText(name)]
        for column, text in zip(columns, results, strict=True):
            holds = cells[design, column.name].holds
            spans.append(StyledText(f"  {text}", "plain" if holds is None else "good" if holds else "failed"))
        yield line(*spans, indent=2)
