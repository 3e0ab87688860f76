"""``streamproof validate``: did the recorded runs of an implementation follow the protocol?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from streamproof.cli.outputs import expect_json_writable, people, write_json
from streamproof.cli.progress import Status
from streamproof.cli.selection import json_option
from streamproof.cli.verbs import Verb
from streamproof.system.errors import Exit, InputError, UsageError
from streamproof.system.files import expect_writable
from streamproof.traces.lines import BLANK, Line, Span, Style, line

SCHEMA = "streamproof.validate/1"

_STYLES: dict[str, Style] = {"accepted": "good", "rejected": "failed", "inconclusive": "new", "error": "failed"}


class _Runs(click.Path):
    """A path that exists, or a pattern, which the reader of runs expands."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or the pattern as it stands."""
        return Path(value) if any(c in str(value) for c in "*?[") else super().convert(value, param, ctx)


LONGEST = 240
"""Characters of a variable's value that are shown."""


@click.command(
    "validate",
    cls=Verb,
    short_help="Check recorded runs against a model.",
    example="streamproof validate runs/*/ --json verdicts.json --events events",
)
@click.argument("paths", nargs=-1, required=True, type=_Runs(path_type=Path, exists=True))
@click.option(
    "--model", metavar="NAME", help="The protocol to hold them against: failover, credit_channel. Default: as recorded."
)
@click.option(
    "--job-graph", type=click.Path(path_type=Path, exists=True), metavar="FILE", help="Job graph, if not found."
)
@click.option("--events", type=click.Path(path_type=Path), metavar="DIR", help="Also write the events read.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["ndjson", "parquet"]),
    default="ndjson",
    show_default=True,
    help="Format of the event files.",
)
@click.option("--master", metavar="URL", help="Validate on Spark, one task per path: local[*], spark://...")
@json_option
def command(
    paths: Sequence[Path],
    model: str | None,
    job_graph: Path | None,
    events: Path | None,
    form: str,
    master: str | None,
    json_to: str | None,
) -> int:
    """Follow the runs recorded under PATHS through a model and say of each job, or channel, whether the model allows it.

    Ends with 0 when every one is accepted, 161 when one is rejected, 160 when one is inconclusive and none rejected.
    """
    from streamproof import __version__
    from streamproof.report.console import print_lines

    source = click.get_current_context().get_parameter_source("form")
    if events is None and source is ParameterSource.COMMANDLINE:
        raise UsageError("--format is the format of the files that --events writes", remedy="add --events DIR")
    expect_json_writable(json_to, SCHEMA)
    if events is not None:
        expect_writable(events, None)
    one = partial(_one, model=model, job_graph=job_graph, events_dir=events, events_format=form)
    with Status() as status:
        records = _on_spark(paths, one, master, status) if master else _here(paths, one, status)
    if not records:
        raise InputError("no run was found", remedy="name folders that hold the logs of runs")
    if json_to is not None:
        document = {"schema": SCHEMA, "version": __version__, "exit_code": int(_code(records)), "verdicts": records}
        write_json(document, json_to)
    print_lines(_lines(records), people(json_to))
    return _code(records)


def _one(path: Path, status: Status | None = None, **options: Any) -> list[dict[str, Any]]:
    """The verdict records of the runs under one path."""
    from streamproof.conformance.validate import validate_paths

    return validate_paths([path], on_progress=status, **options)


def _here(paths: Sequence[Path], one: partial[list[dict[str, Any]]], status: Status) -> list[dict[str, Any]]:
    return [record for path in paths for record in one(path, status=status)]


def _on_spark(
    paths: Sequence[Path], one: partial[list[dict[str, Any]]], master: str, status: Status
) -> list[dict[str, Any]]:
    from streamproof.pipeline.session import LOCAL
    from streamproof.pipeline.validate import validate_many

    return validate_many(paths, partial(_from, Path.cwd(), one), master or LOCAL, status)


def _from(folder: Path, one: partial[list[dict[str, Any]]], path: Path) -> list[dict[str, Any]]:
    """On a worker: the records of a path as it was given, which is relative to the folder of the program."""
    with chdir(folder):
        return one(path)


def _code(records: Sequence[Mapping[str, Any]]) -> Exit:
    verdicts = {record["verdict"] for record in records}
    for verdict, code in (("rejected", Exit.REJECTED), ("error", Exit.SYSTEM), ("inconclusive", Exit.INCONCLUSIVE)):
        if verdict in verdicts:
            return code
    return Exit.HOLDS


def _lines(records: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    """One line per job or channel, the explanation of each rejection under it, the totals."""
    several = {key for key, count in Counter((r["run"], r["model"]) for r in records).items() if count > 1}
    for record in records:
        yield from _job(record, named=(record["run"], record["model"]) in several)
    totals = [(v, sum(r["verdict"] == v for r in records)) for v in _STYLES]
    yield BLANK
    units = Counter(str(record.get("unit", "job")) for record in records)
    counted = " and ".join(f"{n} {unit}{'' if n == 1 else 's'}" for unit, n in units.items())
    yield line(f"{counted}: ", ", ".join(f"{n} {v}" for v, n in totals if n))


def _job(record: Mapping[str, Any], *, named: bool) -> Iterator[Line]:
    """`named`: say which of the run's jobs it is."""
    verdict, events = record["verdict"], record.get("events") or {}
    name = ", ".join(filter(None, (record["run"], record["trace"] if named else "", record.get("title"))))
    restarts = len(record.get("recoveries") or ())
    facts = f"{events.get('matched', 0)} of {events.get('read', 0)} events matched"
    if restarts:
        facts += f", {restarts} restart{'' if restarts == 1 else 's'}"
    yield line(Span(f"{verdict:<12}", _STYLES.get(verdict, "plain")), f"  {name}: ", Span(facts, "faint"), hang=14)
    if record.get("rejection"):
        yield from _rejection(record["rejection"])
    elif record.get("reason"):
        yield line(record["reason"], indent=14, hang=14)


def _states(states: Sequence[Mapping[str, str]]) -> Iterator[Line]:
    """The first state in full, of the others what differs from it; long values are cut (the JSON has all of them)."""
    for number, state in enumerate(states, 1):
        yield line(Span(f"state {number}" + ("" if number == 1 else ", like state 1 but for"), "faint"), indent=8)
        for name, value in state.items():
            if number == 1 or value != states[0].get(name):
                cut = value if len(value) <= LONGEST else f"{value[:LONGEST]} ..."
                yield line(Span(name, "place"), f" = {cut}", indent=10, hang=14)


def _rejection(rejection: Mapping[str, Any]) -> Iterator[Line]:
    place = f"{rejection['file']}:{rejection['line']}" if rejection.get("file") and rejection.get("line") else None
    event = rejection.get("at") or rejection.get("event") or "end of the log"
    yield line(*((Span(place, "source"), ": ") if place else ()), Span(str(event), "action"), indent=4, hang=8)
    yield line(Span(str(rejection.get("message") or "rejected"), "failed"), indent=6, hang=6)
    index, states = rejection.get("index"), rejection.get("states")
    if index is not None:
        fit = f"; {states} of the model's states fit{'s' if states == 1 else ''} them" if states else ""
        yield line(f"accepted before it: {index} event{'' if index == 1 else 's'}{fit}", indent=6, hang=6)
    yield from _states(rejection.get("states_before") or ())
    for candidate in rejection.get("candidates") or ():
        if candidate["because"] == rejection.get("message"):
            continue  # said above
        yield line(
            Span(str(candidate["action"]), "action"), f"  is not possible: {candidate['because']}", indent=6, hang=10
        )
    if rejection.get("expected"):
        yield line(f"possible here: {', '.join(rejection['expected'])}", indent=6, hang=10)
    if rejection.get("nearest"):
        yield line(f"nearest that would have been accepted: {rejection['nearest']}", indent=6, hang=10)
