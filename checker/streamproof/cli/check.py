"""``streamproof check``: decide every property of a model, by exhaustive search or by bounded model checking."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from streamproof.cli.engines import BMC, DEFAULT_DEPTH, ENGINES, Limits, Outcome, run_engine
from streamproof.cli.evidence import MISTAKE, Evidence, behaviour, confirm
from streamproof.cli.outputs import Folder, expect_json_writable, expect_writable, people, write_json
from streamproof.cli.selection import Selection, json_option, model_options, property_option, select
from streamproof.cli.verbs import Verb
from streamproof.registry import first_line
from streamproof.report.console import print_check
from streamproof.report.memory import peak_bytes
from streamproof.report.model import CheckReport, Result, Seconds
from streamproof.system.errors import Exit, StreamproofError, SystemFailure, UsageError
from streamproof.system.model import System
from streamproof.system.verdict import Finding, Verdict

DEFAULT_OUT = Path("streamproof-out")


@click.command(
    "check",
    cls=Verb,
    short_help="Decide every property of a model.",
    example="streamproof check failover --variant no-versioning --size small",
)
@model_options
@property_option
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default=ENGINES[0],
    show_default=True,
    help="Visit every reachable state, or have a solver look at all behaviours of up to --depth steps.",
)
@click.option("--max-states", type=click.IntRange(min=1), metavar="N", help="Stop after so many distinct states.")
@click.option("--max-depth", type=click.IntRange(min=1), metavar="N", help="Stop after so many breadth-first levels.")
@click.option(
    "--depth", type=click.IntRange(min=0), metavar="N", help=f"Steps that bmc looks ahead.  [default: {DEFAULT_DEPTH}]"
)
@click.option(
    "--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Stop after so long."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help=f"Folder for counterexamples.  [default: {DEFAULT_OUT}/MODEL]",
)
@click.option("--dot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the graph of reachable states.")
@click.option("--full", is_flag=True, help="Show the whole state after every step of a counterexample.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no counterexamples, only the outcome.")
@json_option
def command(
    model: str,
    variant: str | None,
    size: str | None,
    parameters: Sequence[str],
    properties: Sequence[str],
    engine: str,
    max_states: int | None,
    max_depth: int | None,
    depth: int | None,
    time_limit: float | None,
    out: Path | None,
    dot: Path | None,
    full: bool,
    quiet: bool,
    json_to: str | None,
) -> int:
    """Decide every property of MODEL, and show the shortest way in which each violated one breaks.

    Counterexamples are shown, and written to a folder as ITF (NAME.itf.json) and as text (NAME.txt). A violation that
    is expected, as of a variant, ends with its exit code like any other.
    """
    begun = time.perf_counter()
    selection = select(model, variant, size, parameters, properties)
    limits = Limits(engine, max_states, max_depth, depth, time_limit)
    expect_json_writable(json_to)
    if dot is not None and engine == BMC:
        raise UsageError("bmc knows no graph of states to draw", remedy="leave out --dot, or --engine bmc")
    if dot is not None:
        expect_writable(dot)
    folder = _usable(Folder(out or DEFAULT_OUT / selection.name), selection, insist=out is not None)
    reproduce = selection.command("check", *limits.words)
    stream = people(json_to)
    try:
        system = selection.system()
        outcome = run_engine(limits, system, selection.properties, quiet=quiet)
        evidence = _evidence(system, outcome, selection, limits)
    except StreamproofError as error:
        if json_to is not None:
            seconds = Seconds(total=time.perf_counter() - begun)
            failed = CheckReport(
                selection.target.name,
                engine,
                (),
                variant,
                selection.parameters,
                seconds,
                reproduce=reproduce,
                error=error,
            )
            write_json(failed.to_json(), json_to)
        raise
    files = {} if folder is None else _write(folder, selection, evidence)
    if not quiet:
        _show(outcome, evidence, files, stream, full=full)
    report = CheckReport(
        model=system.name,
        engine=engine,
        properties=tuple(_result(f, selection, outcome, files) for f in outcome.findings),
        variant=system.variant,
        parameters=system.parameters,
        seconds=Seconds(time.perf_counter() - begun, outcome.compile_seconds, outcome.explore_seconds),
        counts=outcome.counts,
        peak_bytes=peak_bytes(),
        coverage=outcome.coverage,
        reproduce=reproduce,
        error=outcome.mistake[1] if outcome.mistake else None,
    )
    code = Exit.INTERRUPTED if outcome.interrupted else report.exit_code
    if json_to is not None:
        write_json({**report.to_json(), "exit_code": int(code)}, json_to)
    print_check(report, stream)
    if outcome.interrupted:
        sys.stderr.write("streamproof: interrupted; what was found until then is above\n")
    if dot is not None:
        _draw(outcome, dot)
    return int(code)


def _usable(folder: Folder, selection: Selection, *, insist: bool) -> Folder | None:
    """The folder, when traces of the chosen properties can be written. One that nobody asked for is done without."""
    try:
        folder.expect_writable(f"{name}{s}" for name in (*_names(selection), MISTAKE) for s in (".itf.json", ".txt"))
    except SystemFailure as failure:
        if insist:
            raise
        sys.stderr.write(f"streamproof: warning: {failure.message}; counterexamples are shown, but not kept\n")
        return None
    return folder


def _result(finding: Finding, selection: Selection, outcome: Outcome, files: Mapping[str, str]) -> Result:
    expected = selection.expected(finding.property)
    if outcome.mistake is not None and finding.verdict is Verdict.ERROR:
        # The report gives the mistake itself, once, with its place and remedy.
        undecided = replace(finding, because="not decided: the model itself makes a mistake on the way")
        return Result(undecided, expected, files.get(MISTAKE))
    return Result(replace(finding, because=first_line(finding.because)), expected, files.get(finding.property))


def _evidence(system: System, outcome: Outcome, selection: Selection, limits: Limits) -> list[Evidence]:
    found = []
    if outcome.mistake is not None:
        found.append(behaviour(system, outcome.mistake[0], limits.engine, selection.command("check", *limits.words)))
    for finding in outcome.findings:
        if outcome.mistake is not None and finding.verdict is Verdict.ERROR:
            continue  # the mistake of the model speaks for all that it kept from being decided
        again = selection.only(finding.property).command("check", *limits.words)
        evidence = confirm(system, finding, limits.engine, again)
        if evidence is not None:
            found.append(evidence)
    return found


def _show(
    outcome: Outcome, evidence: Sequence[Evidence], files: Mapping[str, str], stream: TextIO, *, full: bool
) -> None:
    """The way to the model's mistake, or the shortest counterexample; the others are named."""
    broken = [e for e in evidence if e.prop is None or outcome.finding(e.name).verdict is Verdict.VIOLATED]
    if not broken:
        return
    first = min(broken, key=lambda e: (e.prop is not None, len(e.trace.steps)))
    first.show(stream, file=files.get(first.name), full=full)
    others = [e.name for e in broken if e is not first]
    if others:
        some = f"{len(others)} more {'is' if len(others) == 1 else 'are'} violated"
        stream.write(f"\n{some} ({', '.join(others)}); --property NAME shows its counterexample.\n")
    stream.write("\n")


def _write(folder: Folder, selection: Selection, evidence: Sequence[Evidence]) -> dict[str, str]:
    """The paths of the ITF files by property; older files of properties that have no trace any more are removed."""
    files = {shown.name: shown.write(folder) for shown in evidence}
    folder.forget([*_names(selection), MISTAKE])
    return files


def _names(selection: Selection) -> list[str]:
    return [p.name for p in selection.listed()]


def _draw(outcome: Outcome, path: Path) -> None:
    from streamproof.exchange.dot import MAX_STATES
    from streamproof.exchange.files import write_text

    if outcome.graph is None or outcome.counts is None:
        raise AssertionError("drawing is refused for engines without a graph")
    if outcome.counts.distinct > MAX_STATES:
        sys.stderr.write(
            f"streamproof: warning: {path} is not written: {outcome.counts.distinct} states are more than the"
            f" {MAX_STATES} that make a picture\n"
        )
        return
    write_text(path, outcome.graph(MAX_STATES))
