"""``streamproof bugbench``: check known defects before and after their fix, and print the table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from streamproof import __version__
from streamproof.api.bugbench import Row, decided, defects
from streamproof.base.errors import Exit
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.base.text import BLANK, Line, StyledText, aligned, line, parameters_text
from streamproof.cli.arguments import argument, json_flag, verb
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.report.console import print_lines
from streamproof.system.verdict import number_of

SCHEMA = "streamproof.bugbench/1"


@dataclass(frozen=True, slots=True)
class BugbenchArguments:
    """The arguments of the verb."""

    tickets: tuple[str, ...] = argument(nargs=-1, metavar="[TICKET]...")
    folder: Path | None = flag(
        "Folder of defects, one TOML file each.  [default: the bundled defects of Flink]", unit="DIR"
    )
    json_to: str | None = json_flag()


@verb(
    "bugbench",
    BugbenchArguments,
    example="streamproof bugbench FLINK-18595",
)
def command(given: BugbenchArguments) -> int:
    """Check every defect, or each TICKET: before the fix its property is violated, after the fix it holds.

    Both searches visit all states at the printed parameters; other parameters are not checked. Ends with 161 if a verdict,
    the length of a counterexample or a number of states differs from the file of the defect.
    """
    json_to = given.json_to
    expect_json_writable(json_to, SCHEMA)
    chosen = defects(given.folder, given.tickets)
    rows: list[Row] = []
    with Status() as status:
        for defect in chosen:
            status(defect.ticket)
            rows.append(Row(defect, decided(defect.buggy), decided(defect.fixed)))
    code = Exit.REJECTED if any(row.problems for row in rows) else Exit.HOLDS
    document = {"schema": SCHEMA, "version": __version__, "exit_code": int(code)}
    write_json({**document, "defects": [row.document() for row in rows]}, json_to)
    if json_to != "-":
        print_lines(_table(rows), people(json_to))
    return code


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
