"""``streamproof sweep``: verdicts at many configurations, maps, and formulas for the points at which properties hold."""

from __future__ import annotations

import json
import math
import re
import shlex
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from streamproof.base.errors import UsageError
from streamproof.base.files import Folder
from streamproof.base.optional import expect_pyarrow
from streamproof.base.options import SearchOptions, flag, flag_words
from streamproof.base.records import dataclass
from streamproof.cli.answer import DEFAULT_OUT
from streamproof.cli.arguments import argument, json_flag, part, verb
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.cli.selection import (
    ModelArguments,
    complete_models,
    complete_parameters,
    complete_sizes,
    complete_variants,
)
from streamproof.cli.verbs import Option, Verb
from streamproof.report.console import print_lines
from streamproof.selection import expect_once
from streamproof.sweep.console import boundary_lines, closing_lines, formula_lines, opening_lines
from streamproof.sweep.outcome import boundaries, known, with_formula
from streamproof.sweep.pages import render_page
from streamproof.sweep.plan import plan_of
from streamproof.sweep.result import Boundary, SweepReport
from streamproof.sweep.running import POINTS, SweepRun
from streamproof.sweep.summary import to_json

if TYPE_CHECKING:
    from streamproof.language.declare.spec import Spec

PROCESSES = 2
USUAL = SearchOptions(max_states=10_000_000, time_limit=300.0)
"""The limits at a point that are not given."""
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


@dataclass(frozen=True, slots=True)
class SweepArguments:
    """The arguments of the verb, without the bounds of its model."""

    model: str = argument(shell_complete=complete_models)
    variants: tuple[str, ...] = flag(
        "Variant to explore beside the model; may be repeated.",
        "--variant", unit="NAME", shell_complete=complete_variants,
    )  # fmt: skip
    listed: str | None = flag("Variants to explore beside the model.", "--variants", unit="all|NAME,...")
    size: str | None = flag(
        "Named set of values of parameters that do not vary.",
        unit="small|medium|large",
        shell_complete=complete_sizes,
    )
    parameters: tuple[str, ...] = flag(
        "Values of one parameter: 0..3, or fair,forward-first; may be repeated.  [default: the model's own axes]",
        "-p", unit="NAME=VALUES", shell_complete=complete_parameters,
    )  # fmt: skip
    full: bool = flag("Check refuted variants also at larger sizes of generated values.")
    chosen: ModelArguments = part(ModelArguments, "properties")
    options: SearchOptions = part(
        SearchOptions,
        *("max_states", "time_limit"),
        usual=USUAL,
        max_states="Stop at a point after N states.",
        time_limit={"help": "Stop at a point after SECONDS.", "read": float},
    )
    workers: int = flag("Number of processes, at most one for each processor.", default=PROCESSES, former=("--jobs",))
    spark: bool = flag("Decide each point in a Spark task instead.")
    master: str | None = flag("With --spark: Spark master.  [default: local[*]]", unit="URL")
    out: Path | None = flag(f"Folder for maps and stored points.  [default: {DEFAULT_OUT}/sweep-MODEL]", unit="DIR")
    again: bool = flag("Decide every point again; ignore stored points.")
    quiet: bool = flag("No progress and no maps, only the summary.", "-q", "--quiet")
    json_to: str | None = json_flag()


@verb(
    "sweep",
    SweepArguments,
    cls=SweepVerb,
    example="streamproof sweep credit -p floating=0..4 -p depth=1 --property isolation",
)
def command(given: SweepArguments, **bounds: int | None) -> int:
    """Decide the properties of MODEL at every combination of its parameters' values, and show where each one holds.

    The result of each point is stored in a folder, so that an interrupted sweep continues from there. Ends with 0 when
    every point is decided, whatever the verdicts are, with 75 when the model has an evaluation error at some point, and
    with 160 when some point is undecided.

    A model that generates the values of an axis has an option --max-NAME for each of its bounds; streamproof sweep MODEL
    --help lists them.
    """

    begun, master, json_to = time.perf_counter(), given.master, given.json_to
    max_states, timeout = given.options.max_states, given.options.time_limit
    assert timeout is not None, "it has a default"
    if math.isinf(timeout):
        raise UsageError("a sweep limits the time of each point", remedy="give --timeout a number of seconds")
    if master is not None and not given.spark:
        raise UsageError("--master requires --spark", remedy="add --spark")
    expect_pyarrow("the table of a sweep")
    variants, properties = (
        (*given.variants, *(given.listed.split(",") if given.listed else ())),
        given.chosen.properties,
    )
    bounded = {name.removeprefix(_BOUND): value for name, value in bounds.items() if value is not None}
    plan = plan_of(given.model, variants, given.size, expect_once(given.parameters), properties, bounded)
    expect_json_writable(json_to, "streamproof.sweep/1")
    folder = Folder(given.out or DEFAULT_OUT / re.sub(r"[^\w.-]", "-", f"sweep-{plan.target.name}"))
    folder.expect_writable([POINTS, *FILES.values()])
    limits = {"max_states": max_states, "timeout": timeout}
    stream = people(json_to)
    place = master or "local[*]" if given.spark else None
    with Status(live=not given.quiet) as status:
        run = SweepRun(plan, limits, folder, status, given.workers, place, given.full)
        run.explore(stream, again=given.again)
    points = tuple(known(point, run.records.get(point.key), plan.properties) for point in run.points)
    words = [word for name in variants for word in ("--variant", name)]
    words += ["--size", given.size] if given.size else []
    words += [word for text in given.parameters for word in ("-p", text)]
    words += [word for name, value in bounded.items() for word in (f"--max-{name}", str(value))]
    words += ["--full"] if given.full else []
    words += [word for name in properties for word in ("--property", name)]
    words += flag_words(given.options, USUAL)
    report = SweepReport(
        plan=plan,
        points=points,
        boundaries=boundaries(plan, points),
        limits=limits,
        seconds=0.0,
        reproduce=shlex.join(["streamproof", "sweep", given.model, *words]),
        interrupted=run.interrupted,
        reused=run.reused,
    )
    print_lines(opening_lines(report), stream)
    with Status(live=not given.quiet) as status:
        report = _with_formulas(report, stream, status, maps=not given.quiet)
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
