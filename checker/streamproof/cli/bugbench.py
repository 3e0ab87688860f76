"""``streamproof bugbench``: check known defects before and after their fix, and print the table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from streamproof import __version__
from streamproof.base.errors import Exit
from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass
from streamproof.base.text import BLANK, Line, StyledText, aligned, line, parameters_text
from streamproof.cli.bugbench_table import Defect, Side, defects
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.cli.selection import json_option, path_option
from streamproof.cli.verbs import Verb
from streamproof.engines.registry import CHECKS
from streamproof.system.model import parameter_json
from streamproof.system.verdict import Finding, Verdict, number_of

SCHEMA = "streamproof.bugbench/1"


@click.command(
    "bugbench",
    cls=Verb,
    short_help="Check known defects before and after their fix.",
    example="streamproof bugbench FLINK-18595",
)
@click.argument("tickets", nargs=-1, metavar="[TICKET]...")
@path_option("--folder", "DIR", "Folder of defects, one TOML file each.  [default: the bundled defects of Flink]")
@json_option
def command(tickets: tuple[str, ...], folder: Path | None, json_to: str | None) -> int:
    """Check every defect, or each TICKET: before the fix its property is violated, after the fix it holds.

    Both searches visit all states at the printed parameters; other parameters are not checked. Ends with 161 if a verdict,
    the length of a counterexample or a number of states differs from the file of the defect.
    """
    from streamproof.report.console import print_lines

    expect_json_writable(json_to, SCHEMA)
    chosen = defects(folder, tickets)
    rows: list[Row] = []
    with Status() as status:
        for defect in chosen:
            status(defect.ticket)
            rows.append(Row(defect, _decided(defect.buggy), _decided(defect.fixed)))
    code = Exit.REJECTED if any(row.problems for row in rows) else Exit.HOLDS
    document = {"schema": SCHEMA, "version": __version__, "exit_code": int(code)}
    write_json({**document, "defects": [row.document() for row in rows]}, json_to)
    if json_to != "-":
        print_lines(_table(rows), people(json_to))
    return code


@dataclass(frozen=True, slots=True)
class Outcome:
    """The finding for one side of a defect. `states`: reachable states. `seconds`: with reading the model."""

    finding: Finding
    states: int
    seconds: float

    @property
    def steps(self) -> int | None:
        """The length of the counterexample."""
        return None if self.finding.trace is None else len(self.finding.trace.steps)


def _decided(side: Side) -> Outcome:
    begun = time.perf_counter()
    found = CHECKS["explicit"].run(side.selection.system(), SearchOptions(side.selection.properties))
    if found.interrupted:
        raise KeyboardInterrupt
    states = 0 if found.counts is None else found.counts.distinct
    return Outcome(found.findings[0], states, time.perf_counter() - begun)


@dataclass(frozen=True, slots=True)
class Row:
    """One defect with its two outcomes."""

    defect: Defect
    buggy: Outcome
    fixed: Outcome

    @property
    def problems(self) -> tuple[str, ...]:
        """The differences from the file of the defect."""
        buggy, fixed = self.defect.buggy.expected, self.defect.fixed.expected
        differences = (
            ("before the fix: verdict", self.buggy.finding.text(), Verdict.VIOLATED.value),
            ("before the fix: steps", self.buggy.steps, buggy),
            ("after the fix: verdict", self.fixed.finding.text(), Verdict.HOLDS.value),
            ("after the fix: states", self.fixed.states, fixed),
        )
        return tuple(f"{what} {found}, expected {wanted}" for what, found, wanted in differences if found != wanted)

    def document(self) -> dict[str, Any]:
        """The JSON of the row."""
        defect = self.defect
        return {
            "ticket": defect.ticket,
            "title": defect.title,
            "model": defect.model,
            "property": defect.property,
            "buggy": {**_document(defect.buggy, self.buggy), "steps": self.buggy.steps},
            "fixed": {**_document(defect.fixed, self.fixed), "covered": self.fixed.finding.because},
            "problems": list(self.problems),
        }


def _document(side: Side, outcome: Outcome) -> dict[str, Any]:
    return {
        "variant": side.selection.variant,
        "parameters": {name: parameter_json(value) for name, value in side.selection.parameters.items()},
        "verdict": outcome.finding.text(),
        "states": outcome.states,
        "seconds": round(outcome.seconds, 3),
        "command": side.selection.command("check"),
    }


HEAD = ("defect", "model, variant", "steps", "states", "s", "fixed: states", "s")


def _table(rows: list[Row]) -> Iterator[Line]:
    head, *texts = ("  ".join(cells) for cells in aligned([HEAD, *map(_cells, rows)], right=range(2, len(HEAD))))
    yield line(StyledText(head, "title"))
    for row, text in zip(rows, texts, strict=True):
        fixed = row.defect.fixed.selection
        yield line(text)
        yield line(StyledText(f"{row.defect.title} ({row.defect.property})", "faint"), indent=4)
        yield line(
            StyledText(
                f"{row.fixed.finding.text()} in {fixed.variant or row.defect.model} with {parameters_text(fixed.parameters)}",
                "faint",
            ),
            indent=4,
        )
        for problem in row.problems:
            yield line(StyledText(problem, "failed"), indent=4)
    yield BLANK
    wrong = sum(bool(row.problems) for row in rows)
    seconds = sum(row.buggy.seconds + row.fixed.seconds for row in rows)
    yield line(
        f"{number_of(len(rows), 'defect')} in {seconds:.1f} s, {wrong} not as expected; "
        "each fix holds in all states at the stated parameters, and was not checked at others"
        if not wrong
        else f"{number_of(len(rows), 'defect')} in {seconds:.1f} s, {wrong} not as expected"
    )


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.defect.ticket,
        f"{row.defect.model} {row.defect.buggy.selection.variant or ''}".strip(),
        "-" if row.buggy.steps is None else f"{row.buggy.steps}",
        f"{row.buggy.states:,}",
        f"{row.buggy.seconds:.1f}",
        f"{row.fixed.states:,}",
        f"{row.fixed.seconds:.1f}",
    )
