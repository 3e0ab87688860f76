"""``streamproof report``: a page and tables about many recorded runs, computed by Spark."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from streamproof.base.errors import Exit
from streamproof.base.optional import expect_pyarrow
from streamproof.base.text import visible
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.cli.selection import json_option
from streamproof.cli.verbs import Verb
from streamproof.system.verdict import number_of

SCHEMA = "streamproof.report/1"


@click.command(
    "report",
    cls=Verb,
    short_help="Write one page about many recorded runs.",
    example="streamproof report verdicts.json events/ --out report",
)
@click.argument("inputs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Folder for the report.")
@click.option("--master", default="local[*]", show_default=True, metavar="URL", help="Spark master.")
@click.option("--title", metavar="TEXT", help="Headline of the page.")
@json_option
def command(inputs: Sequence[Path], out: Path, master: str, title: str | None, json_to: str | None) -> Exit:
    """Read event logs and verdicts (files, folders, glob patterns) and write DIR/report.html and DIR/tables/*.parquet.

    INPUTS are the files that `streamproof validate` writes with --events and --json. Ends with 0 when the report was
    written, whatever the verdicts are.
    """
    expect_pyarrow("a report", "spark")
    from streamproof import __version__
    from streamproof.pipeline.spark_report import build_report

    expect_json_writable(json_to, SCHEMA)
    with Status() as status:
        result = build_report(inputs, out, master, title, status)
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
    write_json(document, json_to)
    stream = people(json_to)
    verdicts = ", ".join(f"{count} {name}" for name, count in result.verdicts.items() if count) or "no verdicts"
    stream.write(f"{number_of(result.runs, 'run')}, {number_of(result.events, 'event')}; {verdicts}\n")
    if result.not_validated:
        stream.write(f"{number_of(result.not_validated, 'run has', 'runs have')} no verdict\n")
    for item in result.skipped:
        sys.stderr.write(f"streamproof: warning: {visible(f'{item.path} is left out: {item.reason}')}\n")
    stream.write(f"{result.html}\n")
    return Exit.HOLDS
