"""``streamproof sweep``: the same question at many configurations, a map of the answers, and a formula of where it holds."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamproof.cli import completing
from streamproof.cli.answer import DEFAULT_OUT
from streamproof.cli.outputs import Folder, expect_json_writable, people, write_json
from streamproof.cli.progress import Status
from streamproof.cli.selection import json_option, property_option
from streamproof.cli.verbs import Verb
from streamproof.system.errors import ModelError, UsageError
from streamproof.system.records import dataclass
from streamproof.system.version import VERSION

if TYPE_CHECKING:
    from streamproof.pipeline.sweeps.deciding import Record
    from streamproof.pipeline.sweeps.points import Job, Plan, Point
    from streamproof.report.sweep import SweepReport

PROCESSES = 2
MAX_STATES = 10_000_000
TIMEOUT = 300.0
MEMORY_SHARE = 0.8
POINTS = "points.ndjson"


@click.command(
    "sweep",
    cls=Verb,
    short_help="Map the configurations at which properties hold.",
    example="streamproof sweep credit -p floating=0..4 -p depth=1 --property isolation",
)
@click.argument("model", shell_complete=completing.models)
@click.option(
    "--variant",
    "variants",
    metavar="NAME",
    multiple=True,
    shell_complete=completing.variants,
    help="This variant beside the model itself; may be repeated.",
)
@click.option(
    "--size", metavar="small|medium|large", shell_complete=completing.sizes, help="Parameters that do not vary."
)
@click.option(
    "-p",
    "parameters",
    metavar="NAME=VALUES",
    multiple=True,
    shell_complete=completing.parameters,
    help="Values of one parameter: 0..3, or fair,forward-first; may be repeated.  [default: the model's own axes]",
)
@property_option
@click.option(
    "--max-states",
    type=click.IntRange(min=1),
    default=MAX_STATES,
    show_default=True,
    metavar="N",
    help="Stop at a point after so many states.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="Stop at a point after so long.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=PROCESSES, show_default=True, metavar="N", help="Processes at a time."
)
@click.option("--spark", is_flag=True, help="One Spark task for each point instead.")
@click.option("--master", metavar="URL", help="With --spark: where.  [default: local[*]]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help=f"Folder for the maps, and for what is known of points.  [default: {DEFAULT_OUT}/sweep-MODEL]",
)
@click.option("--again", is_flag=True, help="Decide every point again, also those known from before.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no maps, only what they amount to.")
@json_option
def command(
    model: str,
    variants: Sequence[str],
    size: str | None,
    parameters: Sequence[str],
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
) -> int:
    """Decide the properties of MODEL at every combination of its parameters' values, and say where each one holds.

    What is known of each point is kept in a folder: the same sweep, ended at any time, goes on where it was. Ends with 0
    when every point is decided, whatever the answers are, and with 160 when some are not.
    """
    from streamproof.cli.sweep_ranges import plan_of
    from streamproof.pipeline.sweeps.outcome import boundaries, point_reports, properties_of
    from streamproof.report.console import print_lines
    from streamproof.report.sweep import SweepReport
    from streamproof.report.sweep_console import sweep_lines

    begun = time.perf_counter()
    if master is not None and not spark:
        raise UsageError("--master is of --spark", remedy="add --spark")
    plan = plan_of(model, variants, size, parameters, properties)
    kinds = properties_of(plan)
    expect_json_writable(json_to)
    folder = Folder(out if out is not None else DEFAULT_OUT / f"sweep-{_file_name(plan.target.name)}")
    folder.expect_writable([POINTS, *FILES.values()])
    limits = {"max_states": max_states, "timeout": timeout}
    with Status(live=not quiet) as status:
        run = _Run(plan, tuple(kinds), limits, folder, again, status, jobs, master or ("local[*]" if spark else None))
        explored = run.explored(people(json_to))
        points = point_reports(plan, explored.records, tuple(kinds))
        found = boundaries(plan, points, kinds, status, formulas=not explored.interrupted)
    words = [word for name in variants for word in ("--variant", name)]
    words += ["--size", size] if size else []
    words += [word for text in parameters for word in ("-p", text)]
    words += [word for name in properties for word in ("--property", name)]
    words += ["--max-states", str(max_states)] if max_states != MAX_STATES else []
    words += ["--timeout", f"{timeout:g}"] if timeout != TIMEOUT else []
    report = SweepReport(
        model=plan.target.name,
        axes={axis.name: axis.values for axis in plan.axes},
        fixed=plan.fixed,
        variants=plan.variants,
        properties=kinds,
        points=points,
        boundaries=found,
        limits=limits,
        seconds=time.perf_counter() - begun,
        reproduce=shlex.join(["streamproof", "sweep", model, *words]),
        interrupted=explored.interrupted,
        reused=explored.reused,
    )
    report = _written(report, folder)
    if json_to is not None:
        write_json(report.to_json(), json_to)
    print_lines(sweep_lines(report, maps=not quiet), people(json_to))
    return report.exit_code


FILES = {"table": "points.parquet", "map": "map.svg", "answer": "sweep.json"}
"""What is in the folder beside `POINTS`, by what it shows."""


def _written(report: SweepReport, folder: Folder) -> SweepReport:
    """The report with the files that show it, which are written."""
    from streamproof.pipeline.sweeps.tables import parquet
    from streamproof.report.sweep_svg import render_sweep

    report = replace(report, files={shows: str(folder.path / name) for shows, name in FILES.items()})
    folder.write_bytes(FILES["table"], parquet(report), "table")
    folder.write(FILES["map"], render_sweep(report), "map")
    folder.write(FILES["answer"], json.dumps(report.to_json(), indent=2, allow_nan=False) + "\n", "answer")
    return report


@dataclass(frozen=True, slots=True)
class _Explored:
    """Records by key; how many of them were known before; whether the user ended it."""

    records: Mapping[str, Record]
    reused: int
    interrupted: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """Getting every point decided, what was known before being used again."""

    plan: Plan
    properties: tuple[str, ...]
    limits: Mapping[str, Any]
    folder: Folder
    again: bool
    status: Status
    jobs: int
    master: str | None

    def explored(self, stream: Any) -> _Explored:
        """Decide what is not known yet; Ctrl-C ends it with what is."""
        from streamproof.pipeline.sweeps.kept import Found, Keeper, kept_text, read_kept

        about = {"model": self.plan.target.name, "version": VERSION}
        path = self.folder.path / POINTS
        kept = Found({}) if self.again else read_kept(path, about)
        if kept.because is not None:
            stream.write(f"{path}: the points kept there are not used: {kept.because}\n")
        points = self.plan.points()
        known = {point.key: self._usable(kept.records.get(point.key)) for point in points}
        records: dict[str, Record] = {}
        reused = changed = 0
        interrupted = False
        self.folder.write(POINTS, kept_text(about, kept.records.values()), "points")
        with Keeper(path) as keeper:
            try:
                for record in self._decided([self._job(point, known[point.key]) for point in points]):
                    if record["outcome"] == "malformed":
                        raise ModelError(record["because"], remedy=f"at the point {record['key']}")
                    before = known[record["key"]]
                    if record["outcome"] == "unchanged" and before is not None:
                        record = before
                        reused += 1
                    else:
                        changed += before is not None
                        keeper.keep(record)
                    records[record["key"]] = record
                    self.status(f"{len(records)} of {len(points)} points, last {record['key']}")
            except KeyboardInterrupt:
                interrupted = True
        if changed:
            stream.write(f"{changed} points are decided again: the model has changed since\n")
        return _Explored(records, reused, interrupted)

    def _usable(self, record: Record | None) -> Record | None:
        """A record of an earlier run that answers the question of this one."""
        if record is None or record["outcome"] != "decided" or set(self.properties) - set(record["asked"]):
            return None
        open_ = any(found["verdict"] == "inconclusive" for found in record["properties"].values())
        return None if open_ and record["limits"] != self.limits else record

    def _job(self, point: Point, known: Record | None) -> Job:
        place, colon, name = self.plan.target.text.partition(":")
        model = f"{os.path.abspath(place)}{colon}{name}" if place.endswith(".py") else self.plan.target.text
        return {
            "key": point.key,
            "model": model,
            "variant": point.checked_as,
            "parameters": dict(point.parameters),
            "properties": list(self.properties),
            "limits": dict(self.limits),
            "memory": _memory(self.jobs if self.master is None else os.cpu_count() or 1),
            "known": None if known is None else known["fingerprint"],
        }

    def _decided(self, jobs: Sequence[Job]) -> Iterator[Record]:
        if self.master is not None:
            from streamproof.pipeline.sweeps.spark import decide_on_spark

            return decide_on_spark(jobs, self.master, self.status)
        from streamproof.pipeline.sweeps.local import decide_locally

        return decide_locally(jobs, self.jobs)


def _memory(processes: int) -> int | None:
    """Bytes for one of so many processes."""
    from streamproof.explicit.limits import memory_of_machine

    machine = memory_of_machine()
    return None if machine is None else int(machine * MEMORY_SHARE / processes)


def _file_name(name: str) -> str:
    """A model's name as part of a file name."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name)
