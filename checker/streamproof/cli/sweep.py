"""``streamproof sweep``: verdicts at many configurations, maps, and formulas for the points at which properties hold."""

from __future__ import annotations

import json
import math
import re
import shlex
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from streamproof.base.errors import UsageError
from streamproof.base.optional import expect_pyarrow
from streamproof.cli.answer import DEFAULT_OUT
from streamproof.cli.outputs import Folder, Status, expect_json_writable, people, write_json
from streamproof.cli.selection import (
    complete_models,
    complete_parameters,
    complete_sizes,
    complete_variants,
    json_option,
    number_option,
    path_option,
    property_option,
    timeout_option,
)
from streamproof.cli.sweep_run import POINTS, SweepRun
from streamproof.cli.verbs import Option, Verb
from streamproof.selection import expect_once

if TYPE_CHECKING:
    from streamproof.language.declare.spec import Spec
    from streamproof.sweep.result import Boundary, SweepReport

PROCESSES = 2
MAX_STATES = 10_000_000
TIMEOUT = 300.0
FILES = {"table": "points.parquet", "page": "table.html", "answer": "sweep.json"}
"""The files in the folder besides `POINTS`, by their subject."""
_BOUNDS = "streamproof.sweep.bounds"
_BOUND = "bound_"
"""Prefix of the names of parameters for bounds."""


class SweepVerb(Verb):
    """The verb with an option ``--max-NAME`` for each bound that the model of the command line declares."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options of every model, and those of this one."""
        return [*super().get_params(ctx), *ctx.meta.get(_BOUNDS, ())]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments after the model is found, whose bounds are options."""
        unknown = self.unknown_options(ctx, args)
        if unknown or {"-h", "--help"} & {*args}:
            ctx.meta[_BOUNDS] = bound_options(self.named_model(ctx, args, unknown), self.option_names(ctx))
        return super().parse_args(ctx, args)


def bound_options(spec: Spec | None, known: Collection[str]) -> list[Option]:
    """The options of a model that generates an axis; empty for other models and without a model."""
    generated = spec.sweeps.generated if spec is not None and spec.sweeps is not None else None
    if generated is None:
        return []
    return [
        Option(
            [f"--max-{name}", f"{_BOUND}{name}"],
            group="Limits",
            former=[short for short in (f"--{name}",) if short not in known],
            type=click.IntRange(min=0),
            metavar="N",
            help=generated.about.get(name, f"Bound of the {generated.things}."),
        )
        for name in generated.bounds
        if f"--max-{name}" not in known
    ]


@click.command(
    "sweep",
    cls=SweepVerb,
    short_help="Map the configurations at which properties hold.",
    example="streamproof sweep credit -p floating=0..4 -p depth=1 --property isolation",
)
@click.argument("model", shell_complete=complete_models)
@click.option(
    "--variant",
    "variants",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_variants,
    help="Variant to explore beside the model; may be repeated.",
)
@click.option(
    "--variants",
    "listed",
    metavar="all|NAME,...",
    help="Variants to explore beside the model.",
)
@click.option(
    "--size",
    metavar="small|medium|large",
    shell_complete=complete_sizes,
    help="Named set of values of parameters that do not vary.",
)
@click.option(
    "-p",
    "parameters",
    metavar="NAME=VALUES",
    multiple=True,
    shell_complete=complete_parameters,
    help="Values of one parameter: 0..3, or fair,forward-first; may be repeated.  [default: the model's own axes]",
)
@click.option("--full", is_flag=True, help="Check refuted variants also at larger sizes of generated values.")
@property_option
@number_option("--max-states", help="Stop at a point after N states.", default=MAX_STATES)
@timeout_option("Stop at a point after SECONDS.", default=TIMEOUT)
@number_option(
    "--workers",
    "jobs",
    help="Number of processes, at most one for each processor.",
    default=PROCESSES,
    cls=Option,
    former=("--jobs",),
)
@click.option("--spark", is_flag=True, help="Decide each point in a Spark task instead.")
@click.option("--master", metavar="URL", help="With --spark: Spark master.  [default: local[*]]")
@path_option("--out", "DIR", f"Folder for maps and stored points.  [default: {DEFAULT_OUT}/sweep-MODEL]")
@click.option("--again", is_flag=True, help="Decide every point again; ignore stored points.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no maps, only the summary.")
@json_option
def command(
    model: str,
    variants: Sequence[str],
    listed: str | None,
    size: str | None,
    parameters: Sequence[str],
    full: bool,
    properties: Sequence[str],
    max_states: int,
    timeout: float,
    jobs: int,
    spark: bool,
    master: str | None,
    out: Path | None,
    again: bool,
    quiet: bool,
    json_to: str | None,
    **bounds: int | None,
) -> int:
    """Decide the properties of MODEL at every combination of its parameters' values, and show where each one holds.

    The result of each point is stored in a folder, so that an interrupted sweep continues from there. Ends with 0 when
    every point is decided, whatever the verdicts are, with 75 when the model has an evaluation error at some point, and
    with 160 when some point is undecided.

    A model that generates the values of an axis has an option --max-NAME for each of its bounds; streamproof sweep MODEL
    --help lists them.
    """
    from streamproof.report.console import print_lines
    from streamproof.sweep.console import closing_lines, opening_lines
    from streamproof.sweep.outcome import boundaries, known
    from streamproof.sweep.pages import render_page
    from streamproof.sweep.plan import plan_of
    from streamproof.sweep.result import SweepReport
    from streamproof.sweep.summary import to_json

    begun = time.perf_counter()
    if math.isinf(timeout):
        raise UsageError("a sweep limits the time of each point", remedy="give --timeout a number of seconds")
    if master is not None and not spark:
        raise UsageError("--master requires --spark", remedy="add --spark")
    expect_pyarrow("the table of a sweep")
    variants = (*variants, *(listed.split(",") if listed else ()))
    given = {name.removeprefix(_BOUND): value for name, value in bounds.items() if value is not None}
    plan = plan_of(model, variants, size, expect_once(parameters), properties, given)
    expect_json_writable(json_to, "streamproof.sweep/1")
    folder = Folder(out or DEFAULT_OUT / re.sub(r"[^\w.-]", "-", f"sweep-{plan.target.name}"))
    folder.expect_writable([POINTS, *FILES.values()])
    limits = {"max_states": max_states, "timeout": timeout}
    stream = people(json_to)
    place = master or "local[*]" if spark else None
    with Status(live=not quiet) as status:
        run = SweepRun(plan, limits, folder, status, jobs, place, full)
        run.explore(stream, again=again)
    points = tuple(known(point, run.records.get(point.key), plan.properties) for point in run.points)
    words = [word for name in variants for word in ("--variant", name)]
    words += ["--size", size] if size else []
    words += [word for text in parameters for word in ("-p", text)]
    words += [word for name, value in given.items() for word in (f"--max-{name}", str(value))]
    words += ["--full"] if full else []
    words += [word for name in properties for word in ("--property", name)]
    words += ["--max-states", str(max_states)] if max_states != MAX_STATES else []
    words += ["--timeout", f"{timeout:g}"] if timeout != TIMEOUT else []
    report = SweepReport(
        plan=plan,
        points=points,
        boundaries=boundaries(plan, points),
        limits=limits,
        seconds=0.0,
        reproduce=shlex.join(["streamproof", "sweep", model, *words]),
        interrupted=run.interrupted,
        reused=run.reused,
    )
    print_lines(opening_lines(report), stream)
    with Status(live=not quiet) as status:
        report = _with_formulas(report, stream, status, maps=not quiet)
    from streamproof.sweep.tables import parquet  # it has threads, with which no process may be forked

    files = {shows: str(folder.path / name) for shows, name in FILES.items()}
    report = replace(report, files=files, seconds=time.perf_counter() - begun)
    answer = to_json(report)
    folder.write(FILES["table"], parquet(report), "table")
    folder.write(FILES["page"], render_page(report), "page")
    folder.write(FILES["answer"], json.dumps(answer, indent=2, allow_nan=False) + "\n", "answer")
    write_json(answer, json_to)
    print_lines(closing_lines(report), stream)
    return report.exit_code


def _with_formulas(report: SweepReport, stream: TextIO, status: Status, *, maps: bool) -> SweepReport:
    """The report with formulas; the points of each property are printed before the search for its formula.

    Ctrl-C leaves the remaining formulas out.
    """
    from streamproof.report.console import print_lines
    from streamproof.sweep.console import boundary_lines, formula_lines
    from streamproof.sweep.outcome import with_formula

    found: list[Boundary] = []
    interrupted = report.interrupted
    for boundary in report.boundaries:
        if boundary.uneven:
            print_lines(boundary_lines(report, boundary, maps=maps), stream)
            stream.flush()
            if not interrupted:
                status(f"searching for a formula of {boundary.name}")
                try:
                    boundary = with_formula(report.plan, report.points, boundary)
                except KeyboardInterrupt:
                    interrupted = True
                status.clear()
            print_lines(formula_lines(boundary), stream)
        found.append(boundary)
    return replace(report, boundaries=tuple(found), interrupted=interrupted)
