"""``streamproof report``: a page and tables about many recorded runs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from streamproof import __version__
from streamproof.base.errors import Exit
from streamproof.base.optional import expect_pyarrow
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.base.text import visible
from streamproof.cli.arguments import argument, json_flag, verb
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.pipeline.session import expect_master, require_pyspark
from streamproof.system.verdict import number_of

SCHEMA = "streamproof.report/1"


@dataclass(frozen=True, slots=True)
class ReportArguments:
    """The arguments of the verb."""

    inputs: tuple[Path, ...] = argument(nargs=-1, required=True, type=click.Path(path_type=Path))
    out: Path = flag("Folder for the report.", unit="DIR", required=True)
    master: str | None = flag("Spark master. Default: processes of this machine, without Spark.", unit="URL")
    title: str | None = flag("Headline of the page.", unit="TEXT")
    json_to: str | None = json_flag()


@verb(
    "report",
    ReportArguments,
    example="streamproof report verdicts.json events/ --out report",
)
def command(given: ReportArguments) -> Exit:
    """Read event logs and verdicts (files, folders, glob patterns) and write DIR/report.html and DIR/tables/*.parquet.

    INPUTS are the files that `streamproof validate` writes with --events and --json. Ends with 0 when the report was
    written, whatever the verdicts are.
    """
    expect_pyarrow("a report")
    if given.master is not None:
        require_pyspark()
        expect_master(given.master)
    from streamproof.pipeline.reporting import build_report

    expect_json_writable(given.json_to, SCHEMA)
    with Status() as status:
        result = build_report(given.inputs, given.out, given.master, given.title, status)
    document = {
        "schema": SCHEMA,
        "version": __version__,
        "exit_code": int(Exit.HOLDS),
        "html": str(result.html),
        "tables": {name: str(path) for name, path in result.tables.items()},
        "verdicts": dict(result.verdicts),
        "runs": result.runs,
        "not_validated": result.not_validated,
        "events": result.events,
        "skipped": [{"path": str(item.path), "reason": item.reason} for item in result.skipped],
    }
    write_json(document, given.json_to)
    stream = people(given.json_to)
    verdicts = ", ".join(f"{count} {name}" for name, count in result.verdicts.items() if count) or "no verdicts"
    stream.write(f"{number_of(result.runs, 'run')}, {number_of(result.events, 'event')}; {verdicts}\n")
    if result.not_validated:
        stream.write(f"{number_of(result.not_validated, 'run has', 'runs have')} no verdict\n")
    for item in result.skipped:
        sys.stderr.write(f"streamproof: warning: {visible(f'{item.path} is left out: {item.reason}')}\n")
    stream.write(f"{result.html}\n")
    return Exit.HOLDS
